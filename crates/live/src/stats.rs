//! The scheduler's counters, and the server that reports them on the socket of scx_stats, so that
//! the tools of sched_ext's ecosystem can read them, too.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::thread;
use std::time::Duration;

use anyhow::{Result, anyhow};
use scx_stats::prelude::*;
use scx_stats_derive::{Stats, stat_doc};
use serde::{Deserialize, Serialize};

use crate::counters::counters;
use crate::skel::live::types::live_stats;
use crate::socket;

/// The end of the first bucket of latencies, in ns (`latency_bucket()`, `bpf/live/stats.bpf.h`); each
/// other bucket ends at twice the end of the one before, and the last one has no end.
pub(crate) const FIRST_LATENCY_NS: u64 = 1024;

/// The end, in us, of the bucket in which the `per_mille` smallest latencies end; 0 without any.
/// For the last bucket, which has no end, it is where the next one would begin.
pub(crate) fn percentile(latencies: &[u64], per_mille: u64) -> f64 {
    let total: u64 = latencies.iter().sum();
    let mut left = (total * per_mille).div_ceil(1000);
    for (i, n) in latencies.iter().enumerate() {
        left = left.saturating_sub(*n);
        if left == 0 && total > 0 {
            return (FIRST_LATENCY_NS << i) as f64 / 1e3;
        }
    }
    0.0
}

#[stat_doc]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Stats)]
#[stat(desc = "Each reason for a placement", _om_prefix = "coreward_reason_", _om_label = "reason")]
pub(crate) struct ReasonMetrics {
    #[stat(desc = "Tasks that were placed for it")]
    pub(crate) placements: u64,
}

#[stat_doc]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Stats)]
#[stat(desc = "Each CPU", _om_prefix = "coreward_cpu_", _om_label = "cpu")]
pub(crate) struct CpuMetrics {
    #[stat(desc = "NUMA node")]
    pub(crate) node: i64,
    #[stat(desc = "Last-level cache")]
    pub(crate) llc: u64,
    #[stat(desc = "Lowest CPU of the core")]
    pub(crate) core: u64,
    #[stat(desc = "Runnable tasks")]
    pub(crate) nr_running: u64,
    #[stat(desc = "Utilisation (of 1024)")]
    pub(crate) util: u64,
    #[stat(desc = "Capacity (of 1024)")]
    pub(crate) capacity: u64,
    #[stat(desc = "Tasks switched to")]
    pub(crate) switches: u64,
    #[stat(desc = "Tasks that its balancing moved")]
    pub(crate) pulled: u64,
}

/// A counter of the file of metrics.
pub(crate) struct Counter {
    pub(crate) family: &'static str,
    /// Of the family's label.
    pub(crate) value: &'static str,
    pub(crate) get: fn(&Metrics) -> u64,
}

/// Defines [`Metrics`], and the code that treats all counters alike, from `bpf/live/stats.def`.
macro_rules! metrics {
    ($(($family:tt, $label:tt, $family_help:tt))* ; $(($name:ident, $of:tt, $value:tt, $help:tt))*) => {
        #[stat_doc]
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Stats)]
        #[stat(desc = "All CPUs", top, _om_prefix = "coreward_")]
        pub(crate) struct Metrics {
            #[stat(desc = "Tasks that were placed")]
            pub(crate) placements: u64,
            #[stat(desc = "Of these by reason")]
            pub(crate) reasons: BTreeMap<String, ReasonMetrics>,
            $(#[stat(desc = $help)] pub(crate) $name: u64,)*
            #[stat(desc = "Wakeup latencies below 1.024 us, and below each double of that", _om_skip)]
            pub(crate) latencies: Vec<u64>,
            #[stat(desc = "Half of the wakeup latencies are below (us)")]
            pub(crate) latency_p50_us: f64,
            #[stat(desc = "99 % of the wakeup latencies are below (us)")]
            pub(crate) latency_p99_us: f64,
            #[stat(desc = "99.9 % of the wakeup latencies are below (us)")]
            pub(crate) latency_p999_us: f64,
            #[stat(desc = "Each CPU")]
            pub(crate) cpus: BTreeMap<String, CpuMetrics>,
        }

        impl Metrics {
            /// Adds what a CPU counted.
            pub(crate) fn add(&mut self, stats: &live_stats) {
                $(self.$name += stats.$name;)*
                self.latencies.resize(stats.latencies.len(), 0);
                self.latencies.iter_mut().zip(stats.latencies).for_each(|(sum, n)| *sum += n);
            }

            fn subtract(&mut self, earlier: &Metrics) {
                $(self.$name -= earlier.$name;)*
                self.latencies.iter_mut().zip(&earlier.latencies).for_each(|(n, before)| *n -= before);
            }
        }

        /// The families of counters: name, label, meaning.
        pub(crate) const FAMILIES: &[(&str, &str, &str)] = &[$(($family, $label, $family_help)),*];

        /// The counters; those without a family are reported in another way.
        pub(crate) const COUNTERS: &[Counter] =
            &[$(Counter { family: $of, value: $value, get: |metrics| metrics.$name }),*];
    };
}

counters!(metrics);

impl Metrics {
    /// What was counted since `earlier`; loads and lengths are as they are now.
    pub(crate) fn since(&self, earlier: &Metrics) -> Metrics {
        let mut delta = self.clone();
        for (reason, earlier) in &earlier.reasons {
            if let Some(reason) = delta.reasons.get_mut(reason) {
                reason.placements -= earlier.placements;
            }
        }
        delta.placements -= earlier.placements;
        delta.subtract(earlier);
        for (cpu, earlier) in &earlier.cpus {
            if let Some(cpu) = delta.cpus.get_mut(cpu) {
                cpu.switches -= earlier.switches;
                cpu.pulled -= earlier.pulled;
            }
        }
        delta.latency_p50_us = percentile(&delta.latencies, 500);
        delta.latency_p99_us = percentile(&delta.latencies, 990);
        delta.latency_p999_us = percentile(&delta.latencies, 999);
        delta
    }

    /// One line of what happened.
    fn line(&self) -> String {
        format!(
            "placed {}, direct {}, queued {}, preempting {}, switches {}, pulled {} newidle {} balance, \
             migrations {} core {} LLC {} node {} across, latency p50 < {:.1} us, p99 < {:.1} us",
            self.placements,
            self.direct,
            self.enqueued,
            self.preempted,
            self.switches,
            self.pulled_newidle,
            self.pulled_balance,
            self.migrations_core,
            self.migrations_llc,
            self.migrations_node,
            self.migrations_across,
            self.latency_p50_us,
            self.latency_p99_us
        )
    }
}

/// How long the scheduler may take to answer, in ms.
const TIMEOUT_MS: u64 = 5000;

/// A connection to the running scheduler. The first request for metrics gets those since the
/// scheduler's start, each later one those since the previous request.
///
/// # Errors
/// No scheduler runs, or the user is not root.
pub(crate) fn connect() -> Result<StatsClient> {
    connect_for(Some(TIMEOUT_MS))
}

/// The same, with another limit for answers.
fn connect_for(timeout_ms: Option<u64>) -> Result<StatsClient> {
    StatsClient::new().set_path(socket::path()).connect(timeout_ms).map_err(|error| {
        match error.downcast_ref::<io::Error>().map(io::Error::kind) {
            Some(ErrorKind::PermissionDenied) => {
                anyhow!("only root may ask `coreward live`: run this as root")
            }
            Some(ErrorKind::NotFound | ErrorKind::ConnectionRefused) => anyhow!("no `coreward live` runs"),
            _ => error.context("`coreward live` cannot be asked"),
        }
    })
}

/// Asks the running scheduler.
///
/// # Errors
/// It refuses (`StatsErrno`), does not answer in time, or answers what no `coreward live` answers.
pub(crate) fn request<T>(client: &mut StatsClient, args: Vec<(String, String)>) -> Result<T>
where
    T: for<'a> Deserialize<'a>,
{
    client.request("stats", args).map_err(|error| {
        if error.is::<StatsErrno>() {
            error
        } else if error.is::<serde_json::Error>() {
            error.context("the scheduler that runs does not tell what `coreward live` tells")
        } else {
            error.context("`coreward live` does not answer: it is stopped, ends, or the machine is too busy")
        }
    })
}

/// Requests from the threads that serve the socket to the scheduler's thread.
#[derive(Clone, Debug)]
pub(crate) enum Request {
    Metrics,
    Get(Option<String>),
}

/// What it answers.
#[derive(Clone, Debug)]
pub(crate) enum Response {
    Metrics(Box<Metrics>),
    Settings(BTreeMap<String, i64>),
    Refused(String),
}

type Ops = StatsOps<Request, Response>;

/// The metrics of an interval, from one request of a connection to the next.
fn top() -> Ops {
    let open: Box<dyn StatsOpener<Request, Response>> = Box::new(|_| {
        let mut before = Metrics::default();
        let read: Box<dyn StatsReader<Request, Response>> = Box::new(move |_, (ask, answer)| {
            ask.send(Request::Metrics)?;
            let Response::Metrics(now) = answer.recv()? else { return Err(anyhow!("no metrics")) };
            let delta = now.since(&before);
            before = *now;
            delta.to_json()
        });
        Ok(read)
    });
    StatsOps { open, close: None }
}

/// Settings: the named one, or all.
fn settings() -> Ops {
    let open: Box<dyn StatsOpener<Request, Response>> = Box::new(|_| {
        let read: Box<dyn StatsReader<Request, Response>> = Box::new(|args, (ask, answer)| {
            let name = args.get("name").cloned();
            if args.contains_key("value") {
                return Err(anyhow!("settings are changed with `coreward set`"));
            }
            ask.send(Request::Get(name))?;
            match answer.recv()? {
                Response::Settings(settings) => Ok(serde_json::to_value(settings)?),
                Response::Refused(why) => Err(anyhow!(why)),
                Response::Metrics(_) => Err(anyhow!("no settings")),
            }
        });
        Ok(read)
    });
    StatsOps { open, close: None }
}

/// What the socket serves.
pub(crate) fn server_data() -> StatsServerData<Request, Response> {
    StatsServerData::new()
        .add_meta(Metrics::meta())
        .add_meta(CpuMetrics::meta())
        .add_meta(ReasonMetrics::meta())
        .add_ops("top", top())
        .add_ops("settings", settings())
}

/// Prints a line each `interval` until standard output is closed or the scheduler ends.
pub(crate) fn monitor(interval: Duration) {
    // a scheduler that is loaded again, because a CPU has come online, answers only afterwards
    let result =
        connect_for(None).and_then(|mut client| print_each(&mut client, interval, &mut io::stdout()));
    if let Err(error) = result
        && error.downcast_ref::<io::Error>().map(io::Error::kind) != Some(ErrorKind::BrokenPipe)
    {
        eprintln!("--stats prints nothing more: {error:#}");
    }
}

/// Writes a line each `interval`.
///
/// # Errors
/// The scheduler does not answer, or nothing can be written.
fn print_each(client: &mut StatsClient, interval: Duration, out: &mut impl io::Write) -> Result<()> {
    loop {
        let metrics: Metrics = client.request("stats", Vec::new())?;
        writeln!(out, "{}", metrics.line())?;
        thread::sleep(interval);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_the_end_of_its_bucket() {
        assert_eq!(percentile(&[0; 4], 990), 0.0, "nothing was counted");
        let latencies = [0, 0, 98, 0, 2]; // 98 below 4.096 us, 2 below 16.384 us
        assert_eq!(percentile(&latencies, 500), 4.096);
        assert_eq!(percentile(&latencies, 980), 4.096);
        assert_eq!(percentile(&latencies, 990), 16.384);
        assert_eq!(percentile(&latencies, 1000), 16.384);
    }

    #[test]
    fn an_interval_counts_what_came_in_it() {
        let cpu = |switches| CpuMetrics { switches, nr_running: 3, ..CpuMetrics::default() };
        let of = |n, switches| Metrics {
            placements: n,
            reasons: [("TARGET_IDLE".to_owned(), ReasonMetrics { placements: n })].into(),
            latencies: vec![n; 2],
            cpus: [("0".to_owned(), cpu(switches))].into(),
            ..Metrics::default()
        };
        let mut later = of(10, 50);
        later.reasons.insert("IDLE_CPU".to_owned(), ReasonMetrics { placements: 4 });
        let delta = later.since(&of(7, 20));
        assert_eq!(delta.placements, 3);
        assert_eq!(delta.reasons["TARGET_IDLE"].placements, 3);
        assert_eq!(delta.reasons["IDLE_CPU"].placements, 4, "new in this interval");
        assert_eq!(delta.latencies, [3, 3]);
        assert_eq!(delta.latency_p50_us, 1.024);
        assert_eq!(delta.latency_p99_us, 2.048);
        assert_eq!((delta.cpus["0"].switches, delta.cpus["0"].nr_running), (30, 3));
    }

    /// What tools that do not know these structures rely on, such as scx_stats' own
    /// scxstats_to_openmetrics.py: every dictionary is one of structures with a label.
    #[test]
    fn the_socket_tells_intervals_and_what_they_mean() {
        let path = std::env::temp_dir().join(format!("coreward-stats-{}", std::process::id()));
        let server = StatsServer::new(server_data()).set_path(&path).launch().unwrap();
        let (answer, ask) = server.channels();
        thread::spawn(move || {
            for placements in [5, 8] {
                assert!(matches!(ask.recv().unwrap(), Request::Metrics));
                let metrics = Metrics { placements, ..Metrics::default() };
                answer.send(Response::Metrics(Box::new(metrics))).unwrap();
            }
        });
        let mut client = StatsClient::new().set_path(&path).connect(Some(TIMEOUT_MS)).unwrap();
        let mut placements = || client.request::<Metrics>("stats", Vec::new()).unwrap().placements;
        assert_eq!((placements(), placements()), (5, 3));
        let meta: serde_json::Value = client.request("stats_meta", Vec::new()).unwrap();
        assert_eq!(meta["Metrics"]["top"], "true");
        for (_, own) in meta.as_object().unwrap() {
            for (name, field) in own["fields"].as_object().unwrap() {
                assert!(field["desc"].is_string(), "{name} is described");
                if let Some(datum) = field.pointer("/dict/datum") {
                    let inner = datum["struct"].as_str().expect("a structure");
                    assert!(meta[inner]["user"]["_om_label"].is_string(), "{inner} has a label");
                }
            }
        }
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_scheduler_that_is_stopped_does_not_answer() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("stats");
        let _listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let mut client = StatsClient::new().set_path(&path).connect(Some(10)).unwrap();
        let error = request::<Metrics>(&mut client, Vec::new()).expect_err("nobody accepts");
        let text = format!("{error:#}");
        assert!(text.starts_with("`coreward live` does not answer: ") && !error.is::<StatsErrno>(), "{text}");
    }

    /// scx_stats has a thread for each connection, and no limit. Only root may connect (see [`crate::socket`]); and
    /// many that say nothing neither keep others waiting nor remain when they are gone.
    #[test]
    fn many_silent_connections_keep_nobody_waiting_and_leave_nothing() {
        const SILENT: usize = 200;
        let threads = || std::fs::read_dir("/proc/self/task").unwrap().count();
        // other tests run beside this one
        let most = threads() + SILENT / 2;
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("stats");
        let server = StatsServer::new(server_data()).set_path(&path).launch().unwrap();
        let (answer, ask) = server.channels();
        thread::spawn(move || {
            while let Ok(Request::Metrics) = ask.recv() {
                answer.send(Response::Metrics(Box::default())).unwrap();
            }
        });
        let silent: Vec<_> =
            (0..SILENT).map(|_| std::os::unix::net::UnixStream::connect(&path).unwrap()).collect();
        let mut client = StatsClient::new().set_path(&path).connect(Some(TIMEOUT_MS)).unwrap();
        client.request::<Metrics>("stats", Vec::new()).unwrap();
        assert!(threads() >= SILENT, "each has its thread");
        drop(silent);
        let start = std::time::Instant::now();
        while threads() > most {
            assert!(start.elapsed() < Duration::from_secs(30), "{} threads are left", threads());
            thread::sleep(Duration::from_millis(10));
        }
        client.request::<Metrics>("stats", Vec::new()).unwrap();
    }

    #[test]
    fn a_refusal_keeps_its_words() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("stats");
        let _server = StatsServer::new(server_data()).set_path(&path).launch().unwrap();
        let mut client = StatsClient::new().set_path(&path).connect(Some(TIMEOUT_MS)).unwrap();
        let none = vec![("target".to_owned(), "none".to_owned())];
        let error = request::<Metrics>(&mut client, none).expect_err("there is no such target");
        assert!(error.is::<StatsErrno>(), "{error:#}");
    }

    #[test]
    fn lines_are_printed_until_the_scheduler_ends() {
        let path = std::env::temp_dir().join(format!("coreward-lines-{}", std::process::id()));
        let server = StatsServer::new(server_data()).set_path(&path).launch().unwrap();
        let (answer, ask) = server.channels();
        thread::spawn(move || {
            for placements in [5, 8] {
                ask.recv().unwrap();
                let metrics = Metrics { placements, ..Metrics::default() };
                answer.send(Response::Metrics(Box::new(metrics))).unwrap();
            }
        });
        let mut client = StatsClient::new().set_path(&path).connect(Some(TIMEOUT_MS)).unwrap();
        let mut out = Vec::new();
        print_each(&mut client, Duration::ZERO, &mut out).expect_err("nobody answers any more");
        let lines: Vec<_> = out.split(|c| *c == b'\n').map(|line| String::from_utf8_lossy(line)).collect();
        assert!(lines[0].starts_with("placed 5, ") && lines[1].starts_with("placed 3, "), "{lines:?}");
        assert_eq!(lines[2..], [""]);
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn an_interval_without_work_counts_nothing() {
        let busy = Metrics { placements: 5, latencies: vec![5], waited_ns: 9, ..Metrics::default() };
        let idle = busy.since(&busy);
        assert_eq!((idle.placements, idle.waited_ns, idle.latency_p99_us), (0, 0, 0.0));
    }
}
