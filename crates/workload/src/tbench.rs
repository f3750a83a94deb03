//! tbench of dbench 4.0: the requests that a file server gets, without the files.
//!
//! Each of `CLIENTS` processes has a connection to a process of the server, over the loopback
//! interface. An operation is a request, which the server receives in two parts, its first 4
//! bytes and the rest, and a response, which the client receives likewise. Operations are
//! events: `events_per_s`, and `event_latency_us_*` as tbench's table of operations has it.
//!
//! tbench replays a recorded load file. Here stands its mean in place of it, in 116 operations
//! (`CYCLE`), so that MB/s are `events_per_s` times 5,428 bytes. Counted from the load file
//! that dbench 4.0 has (`client.txt`, 458,344 lines): 27.1 % are reads of 11,853 bytes on average
//! (67 % of 4096, 13 % of 61,440), 8.6 % are writes of 25,720 bytes (32 % of 65,536, 25 % of 4096,
//! 19 % of 1), the others carry no data. Sizes of messages are as tbench under strace sends them.
//! A client ends with the cycle that it has begun.

use crate::netperf::{client, clients_and_servers};
use crate::program::{Channel, ChannelKind, Footprint, Limits, Op, ProgramBuilder, Scale, Shared, Workload};
use crate::{Role, WorkloadError, usage};
use clap::Parser;
use coreward_input::within;

/// Hot bytes of a task: as for hackbench, and part of the message buffer. assumption.
const PRIVATE_BYTES: u64 = 16 << 10;
/// Hot text and data of the tool and libc. assumption, as for hackbench.
const SHARED_BYTES: u64 = 8 << 10;
const ALLOWED: &str = "-t SECONDS, CLIENTS, and 127.0.0.1 or localhost as server";

/// Bytes of a request and of a response that carry no data, of a read's or write's message
/// besides its data, and of what is received first.
const OTHER_REQUEST: u32 = 115;
const OTHER_RESPONSE: u32 = 62;
const HEADER: u32 = 59;
const LENGTH: u32 = 4;
/// What a client computes for an operation, in ns. Measured: 1.8 us of user time an operation, one client,
/// dbench 4.0, Linux 6.18 guest on Sapphire Rapids.
const CLIENT_NS: u64 = 2_000;

/// (how many of the 116 operations, bytes read, bytes written)
const CYCLE: [(u32, u32, u32); 11] = [
    (74, 0, 0),
    (21, 4096, 0),
    (4, 61_440, 0),
    (2, 2048, 0),
    (2, 8192, 0),
    (1, 16_384, 0),
    (2, 512, 0),
    (3, 0, 65_536),
    (3, 0, 4096),
    (2, 0, 24_576),
    (2, 0, 1),
];

/// The options of tbench that can be simulated, with the real tool's defaults.
#[derive(Parser, Clone, Debug, PartialEq, Eq)]
#[command(name = "tbench", no_binary_name = true, disable_help_flag = true)]
pub struct Tbench {
    /// Run time in s.
    #[arg(short = 't', long = "timelimit", default_value_t = 600, value_parser = within(1u64..=1_000_000))]
    pub seconds: u64,
    /// Clients.
    #[arg(value_parser = within(1u32..=100_000))]
    pub clients: u32,
    /// Where the server runs: here.
    #[arg(default_value = "localhost", value_parser = ["localhost", "127.0.0.1"])]
    pub server: String,
}

/// The operations of a cycle, each kind spread evenly over it.
fn operations() -> Vec<(u32, u32)> {
    let total: u32 = CYCLE.iter().map(|kind| kind.0).sum();
    let at = |i: u32, n: u32| u64::from(2 * i + 1) * u64::from(total) * 1000 / u64::from(2 * n);
    let mut placed: Vec<(u64, u32, u32)> =
        CYCLE.iter().flat_map(|&(n, read, written)| (0..n).map(move |i| (at(i, n), read, written))).collect();
    placed.sort_unstable();
    placed.into_iter().map(|(_, read, written)| (read, written)).collect()
}

/// Bytes of the request and of the response of an operation.
fn messages((read, written): (u32, u32)) -> (u32, u32) {
    match (read, written) {
        (0, 0) => (OTHER_REQUEST, OTHER_RESPONSE),
        _ => (HEADER + written, HEADER + read),
    }
}

/// Receives a message as tbench does.
fn receive(b: ProgramBuilder, channel: u32, bytes: u32) -> ProgramBuilder {
    b.op(Op::Read { channel, bytes: LENGTH }).op(Op::Read { channel, bytes: bytes - LENGTH })
}

impl Tbench {
    /// Reads the options, without the leading `tbench`.
    ///
    /// # Errors
    /// An option that the tool does not have, that is out of range, or that cannot be simulated.
    pub fn parse<'a>(words: impl Iterator<Item = &'a str>) -> Result<Self, WorkloadError> {
        Self::try_parse_from(words).map_err(|e| usage("tbench", ALLOWED, &e))
    }

    /// The workload that these options mean, with the time shortened by `scale`.
    pub fn workload(&self, scale: Scale) -> Workload {
        let (there, back) = (0, self.clients);
        let asking = client(None, |b| {
            operations().into_iter().map(messages).fold(b, |b, (request, response)| {
                let sent = b
                    .op(Op::Run { ns: CLIENT_NS })
                    .op(Op::EventStart)
                    .op(Op::Write { channel: there, bytes: request });
                receive(sent, back, response).op(Op::EventEnd)
            })
        });
        let answering = ProgramBuilder::default().repeat(u64::MAX, |b| {
            operations().into_iter().map(messages).fold(b, |b, (request, response)| {
                receive(b, there, request).op(Op::Write { channel: back, bytes: response })
            })
        });
        Workload {
            name: format!("tbench -t {} {}", self.seconds, self.clients),
            channels: vec![Channel { kind: ChannelKind::Tcp }; 2 * self.clients as usize],
            // operations are counted as events
            first_message_channel: 2 * self.clients,
            programs: vec![clients_and_servers(self.clients), asking, answering.build()],
            footprint: Footprint { private_bytes: PRIVATE_BYTES, shared_bytes: SHARED_BYTES },
            roles: vec![Role::One("tbench".into()), Role::Each("client"), Role::Each("server")],
            shared: Shared { barriers: vec![self.clients + 1], ..Shared::default() },
            limits: Limits { time_ns: scale.of(self.seconds * 1_000_000_000), ..Limits::default() },
            ..Workload::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;

    #[test]
    fn a_cycle_is_the_mean_of_the_load_file() {
        let ops = operations();
        assert_eq!(ops.len(), 116);
        let near = |sum: u32, published: f64| {
            let mean = f64::from(sum) / 116.0;
            assert!((mean / published - 1.0).abs() < 0.02, "{mean} {published}");
        };
        near(ops.iter().map(|op| op.0).sum(), 0.27098 * 11_852.66);
        near(ops.iter().map(|op| op.1).sum(), 0.08618 * 25_719.56);
    }

    #[test]
    fn kinds_are_spread_over_the_cycle() {
        let big: Vec<usize> = (0..116).filter(|i| operations()[*i].1 == 65_536).collect();
        assert_eq!(big.len(), 3);
        assert!(big.windows(2).all(|w| w[1] - w[0] > 30), "{big:?}");
    }

    #[test]
    fn the_server_reads_what_the_client_writes_and_the_other_way_round() {
        let w = parse("tbench -t 60 5", Scale::FULL).unwrap();
        assert_eq!(
            (w.name.as_str(), w.channels.len(), w.limits.time_ns),
            ("tbench -t 60 5", 10, 60_000_000_000)
        );
        let bytes = |program: usize, wanted: u32, writes: bool| -> u64 {
            let of = |op: &Op| match *op {
                Op::Write { channel, bytes } if writes && channel == wanted => u64::from(bytes),
                Op::Read { channel, bytes } if !writes && channel == wanted => u64::from(bytes),
                _ => 0,
            };
            w.programs[program].iter().map(of).sum()
        };
        assert_eq!(bytes(1, 0, true), bytes(2, 0, false));
        assert_eq!(bytes(2, 5, true), bytes(1, 5, false));
        assert!(bytes(1, 0, true) > 0 && bytes(2, 5, true) > 0);
    }

    #[test]
    fn what_cannot_be_simulated_is_refused_by_name() {
        for (bad, part) in [
            ("-t 60", "required"),
            ("-c client.txt 4", "'-c'"),
            ("-t 0 4", "allowed are 1 to "),
            ("0", "allowed are 1 to "),
            ("4 10.0.0.1", "'10.0.0.1'"),
        ] {
            let e = parse(&format!("tbench {bad}"), Scale::FULL).unwrap_err().to_string();
            assert!(e.contains(part) && e.contains("allowed: ") && e.lines().count() == 1, "{bad}: {e}");
        }
    }
}
