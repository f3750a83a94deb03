//! netperf 2.7: request and response, or a stream, over the loopback interface.
//!
//! `--clients N`, which is not an option of netperf, stands for N netperfs that are started
//! together, each with a netserver process of its own. Of a transaction (TCP_RR, UDP_RR) the
//! client sends a request of `-r REQ,RESP` bytes and waits for the response; of a stream
//! (TCP_STREAM) it sends messages of `-m` bytes, as many as the connection takes, and the
//! server receives them one by one. Test-specific options may follow `--`, as netperf has it.
//! As netperf's, a negative `-l` is no time but the transactions of each client, or the bytes of each stream.
//! netperf's transactions per second, and a stream's messages per second, are `messages_per_s`
//! of all clients together.

use crate::program::{Channel, ChannelKind, Footprint, Limits, Op, ProgramBuilder, Scale, Shared, Workload};
use crate::{Program, Role, WorkloadError, usage};
use clap::{Parser, ValueEnum};
use coreward_input::within;

/// Hot bytes of a task, its socket included: as for hackbench. assumption.
const PRIVATE_BYTES: u64 = 8 << 10;
/// Hot text and data of the tool and libc. assumption, as above.
const SHARED_BYTES: u64 = 8 << 10;
/// Bytes of a stream's message: netperf sends as much as the send buffer first holds (net.ipv4.tcp_wmem).
const STREAM_BYTES: u32 = 16_384;
/// The largest datagram.
const UDP_BYTES: u32 = 65_507;
const ALLOWED: &str =
    "-t TCP_RR, UDP_RR or TCP_STREAM, --clients -l, -r REQ,RESP of TCP_RR and UDP_RR, -m of TCP_STREAM";

/// What netperf measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Test {
    /// Requests and responses over TCP.
    TcpRr,
    /// The same over UDP.
    UdpRr,
    /// A stream over TCP.
    TcpStream,
}

/// The options of netperf that can be simulated, with the real tool's defaults.
#[derive(Parser, Clone, Debug, PartialEq, Eq)]
#[command(name = "netperf", no_binary_name = true, disable_help_flag = true)]
pub struct Netperf {
    /// What to measure.
    #[arg(short, value_enum, default_value = "TCP_STREAM")]
    pub test: Test,
    /// netperfs at once.
    #[arg(long, default_value_t = 1, value_parser = within(1u32..=100_000))]
    pub clients: u32,
    /// Run time in s; or negative, the number of a client's transactions, or of the bytes that it sends.
    #[arg(short = 'l', default_value_t = 10, allow_negative_numbers = true, value_parser = length)]
    pub length: i64,
    /// Bytes of a request and of its response; one number for both.
    #[arg(short = 'r', value_name = "REQ,RESP", value_parser = request_response)]
    pub sizes: Option<(u32, u32)>,
    /// Bytes of a stream's message.
    #[arg(short, value_parser = within(1u32..=1_048_576))]
    pub message: Option<u32>,
}

/// The most that a client does, and the longest time in s.
const LENGTHS: (i64, i64) = (-1_000_000_000_000, 1_000_000);

fn length(text: &str) -> Result<i64, String> {
    let (least, most) = LENGTHS;
    let number = text.parse::<i64>().ok().filter(|number| *number != 0 && (least..=most).contains(number));
    number.ok_or_else(|| {
        format!("allowed are 1 to {most} s, and {least} to -1 for a number of transactions or bytes")
    })
}

fn request_response(text: &str) -> Result<(u32, u32), String> {
    let (request, response) = text.split_once(',').unwrap_or((text, text));
    let size = |text: &str| text.parse().ok().filter(|bytes| (1..=1_048_576).contains(bytes));
    size(request).zip(size(response)).ok_or_else(|| "sizes are 1 to 1048576".to_owned())
}

impl Netperf {
    /// Reads the options, without the leading `netperf`.
    ///
    /// # Errors
    /// An option that the tool does not have for this test, that is out of range, or that cannot
    /// be simulated.
    pub fn parse<'a>(words: impl Iterator<Item = &'a str>) -> Result<Self, WorkloadError> {
        let mut separators = 0;
        let words = words.filter(|word| {
            separators += u32::from(*word == "--");
            *word != "--" || separators > 1
        });
        let parsed = Self::try_parse_from(words).map_err(|e| usage("netperf", ALLOWED, &e))?;
        let refused =
            |what: String| Err(WorkloadError::Usage(format!("netperf: {what} (allowed: {ALLOWED})")));
        match (parsed.test, parsed.sizes, parsed.message) {
            (Test::TcpStream, Some(_), _) => refused("-r has no meaning to TCP_STREAM".into()),
            (Test::TcpRr | Test::UdpRr, _, Some(_)) => {
                refused("-m has no meaning to TCP_RR and UDP_RR".into())
            }
            (Test::UdpRr, Some((request, response)), _) if request.max(response) > UDP_BYTES => {
                refused(format!("-r {request},{response}: a datagram has up to {UDP_BYTES} bytes"))
            }
            _ => Ok(parsed),
        }
    }

    /// The workload that these options mean, with the time shortened by `scale`.
    pub fn workload(&self, scale: Scale) -> Workload {
        let kind = if self.test == Test::UdpRr { ChannelKind::Udp } else { ChannelKind::Tcp };
        let stream = self.test == Test::TcpStream;
        let (client, server) = if stream { self.stream(scale) } else { self.transactions(scale) };
        let time_ns =
            u64::try_from(self.length).map_or(u64::MAX, |seconds| scale.of(seconds * 1_000_000_000));
        Workload {
            name: self.command(),
            // of each client the requests, then of each the responses
            channels: vec![Channel { kind }; 2 * self.clients as usize],
            first_message_channel: if stream { 0 } else { self.clients },
            programs: vec![clients_and_servers(self.clients), client, server],
            footprint: Footprint { private_bytes: PRIVATE_BYTES, shared_bytes: SHARED_BYTES },
            roles: vec![Role::One("netperf".into()), Role::Each("client"), Role::Each("server")],
            shared: Shared { barriers: vec![self.clients + 1], ..Shared::default() },
            limits: Limits { time_ns, ..Limits::default() },
            ..Workload::default()
        }
    }

    fn transactions(&self, scale: Scale) -> (Program, Program) {
        let (request, response) = self.sizes.unwrap_or((1, 1));
        let (there, back) = (0, self.clients);
        let client = client(self.rounds(1, scale), |b| {
            b.op(Op::Write { channel: there, bytes: request }).op(Op::Read { channel: back, bytes: response })
        });
        let server = ProgramBuilder::default().repeat(u64::MAX, |b| {
            b.op(Op::Read { channel: there, bytes: request }).op(Op::Write { channel: back, bytes: response })
        });
        (client, server.build())
    }

    fn stream(&self, scale: Scale) -> (Program, Program) {
        let bytes = self.message.unwrap_or(STREAM_BYTES);
        let server = ProgramBuilder::default().repeat(u64::MAX, |b| b.op(Op::Read { channel: 0, bytes }));
        (client(self.rounds(bytes, scale), |b| b.op(Op::Write { channel: 0, bytes })), server.build())
    }

    /// How often a client does what it does, if that is not limited by a time; each round is so many of what `-l` counts.
    fn rounds(&self, each: u32, scale: Scale) -> Option<u64> {
        (self.length < 0).then(|| scale.of(self.length.unsigned_abs().div_ceil(u64::from(each))).max(1))
    }

    fn command(&self) -> String {
        let test = self.test.to_possible_value();
        let test = test.as_ref().map_or("", |value| value.get_name());
        let sizes =
            self.sizes.map_or(String::new(), |(request, response)| format!(" -r {request},{response}"));
        let message = self.message.map_or(String::new(), |bytes| format!(" -m {bytes}"));
        format!("netperf -t {test} --clients {} -l {}{sizes}{message}", self.clients, self.length)
    }
}

/// The first task: for each client a process of program 1 and one of program 2, its server, on channels
/// from the client's number on. The clients begin together.
pub(crate) fn clients_and_servers(clients: u32) -> Program {
    let pair = |b: ProgramBuilder, base| {
        b.op(Op::Spawn { program: 2, base, process: true }).op(Op::Spawn { program: 1, base, process: true })
    };
    (0..clients)
        .fold(ProgramBuilder::default(), pair)
        .op(Op::Barrier { barrier: 0, starts: true })
        .op(Op::WaitChildren)
        .op(Op::MarkEnd)
        .build()
}

/// A client that does `body` so often, or until the time is over, and closes its connection.
pub(crate) fn client(rounds: Option<u64>, body: impl FnOnce(ProgramBuilder) -> ProgramBuilder) -> Program {
    let begun = ProgramBuilder::default().op(Op::Barrier { barrier: 0, starts: true });
    let done = match rounds {
        Some(rounds) => begun.repeat(rounds, body),
        None => begun.until_stopped(body),
    };
    done.op(Op::Close { channel: 0 }).build()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;

    #[test]
    fn defaults_are_the_real_tools() {
        let w = parse("netperf", Scale::FULL).unwrap();
        assert_eq!(w.name, "netperf -t TCP_STREAM --clients 1 -l 10");
        assert!(w.programs[1].contains(&Op::Write { channel: 0, bytes: 16_384 }));
        let w = parse("netperf -t TCP_RR", Scale(500_000)).unwrap();
        assert!(w.programs[1].contains(&Op::Write { channel: 0, bytes: 1 }));
        assert_eq!(w.limits.time_ns, 5_000_000_000);
    }

    #[test]
    fn every_client_has_a_server_of_its_own() {
        let w = parse("netperf -t UDP_RR --clients 3 -l 1 -- -r 64,1400", Scale::FULL).unwrap();
        assert_eq!((w.channels.len(), w.channels[5].kind), (6, ChannelKind::Udp));
        let spawned = |wanted: u32| -> Vec<u32> {
            let spawns = w.programs[0].iter().filter_map(|op| match *op {
                Op::Spawn { program, base, process: true } if program == wanted => Some(base),
                _ => None,
            });
            spawns.collect()
        };
        assert_eq!((spawned(1), spawned(2)), (vec![0, 1, 2], vec![0, 1, 2]));
        for (program, op) in [
            (1, Op::Write { channel: 0, bytes: 64 }),
            (2, Op::Read { channel: 0, bytes: 64 }),
            (2, Op::Write { channel: 3, bytes: 1400 }),
            (1, Op::Read { channel: 3, bytes: 1400 }),
        ] {
            assert!(w.programs[program].contains(&op), "{program} {op:?}");
        }
        assert_eq!(w.first_message_channel, 3, "responses are counted");
    }

    #[test]
    fn a_name_is_read_again_as_the_same() {
        for text in
            ["netperf -t TCP_RR --clients 7 -l -3 -r 5", "netperf -m 64 -l 2", "netperf -t UDP_RR -- -r 1,2"]
        {
            let w = parse(text, Scale::FULL).unwrap();
            let again = parse(&w.name, Scale::FULL).unwrap();
            assert_eq!((&w.name, &w.programs), (&again.name, &again.programs));
        }
    }

    #[test]
    fn what_cannot_be_simulated_is_refused_by_name() {
        for (bad, part) in [
            ("-t UDP_STREAM", "'UDP_STREAM'"),
            ("-t TCP_RR -r 0,1", "'0,1'"),
            ("-t TCP_RR -r 1,2,3", "'1,2,3'"),
            ("-r 1,1", "-r has no meaning"),
            ("-t TCP_RR -m 5", "-m has no meaning"),
            ("-t UDP_RR -r 1,65508", "up to 65507 bytes"),
            ("-l 0", "allowed are 1 to 1000000 s, and "),
            ("--clients 0", "allowed are 1 to "),
            ("-l -- -r 1", "'-l <LENGTH>'"),
        ] {
            let e = parse(&format!("netperf {bad}"), Scale::FULL).unwrap_err().to_string();
            assert!(e.contains(part) && e.contains("allowed: ") && e.lines().count() == 1, "{bad}: {e}");
        }
    }
}
