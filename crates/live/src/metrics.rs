//! `coreward live --metrics PORT`: the counters since the start, in the text format of
//! OpenMetrics 1.0, for monitoring agents on this machine.

use std::fmt;
use std::net::Ipv4Addr;

use anyhow::{Result, anyhow};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};
use tiny_http::{Header, Method, Request, Response, Server};

use crate::stats::{self, COUNTERS, FAMILIES, FIRST_LATENCY_NS, Metrics};

/// `Content-Type` of an answer, as the specification of OpenMetrics 1.0 gives it.
const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Takes the port, on the loopback interface only.
///
/// # Errors
/// It is taken, or not for this user.
pub(crate) fn bind(port: u16) -> Result<Server> {
    Server::http((Ipv4Addr::LOCALHOST, port))
        .map_err(|error| anyhow!("cannot serve metrics on {}:{port}: {error}", Ipv4Addr::LOCALHOST))
}

/// Answers until the process ends.
pub(crate) fn serve(server: &Server) {
    for request in server.incoming_requests() {
        let response = respond(&request);
        // the client may have gone
        let _ = request.respond(response);
    }
}

fn respond(request: &Request) -> Response<std::io::Cursor<Vec<u8>>> {
    if request.url() != "/metrics" {
        return Response::from_string("only /metrics is served\n").with_status_code(404);
    }
    if *request.method() != Method::Get {
        return Response::from_string("only GET is answered\n")
            .with_status_code(405)
            .with_header(header("Allow", "GET"));
    }
    match since_start().and_then(|metrics| encode(metrics).map_err(anyhow::Error::from)) {
        Ok(text) => Response::from_string(text).with_header(header("Content-Type", CONTENT_TYPE)),
        Err(error) => Response::from_string(format!("{error:#}\n")).with_status_code(503),
    }
}

fn header(name: &str, value: &str) -> Header {
    Header::from_bytes(name, value).expect("ASCII")
}

/// The first answer on a new connection holds the counters since the start.
fn since_start() -> Result<Metrics> {
    stats::connect()?.request("stats", Vec::new())
}

fn encode(metrics: Metrics) -> Result<String, fmt::Error> {
    let mut registry = Registry::with_prefix("coreward");
    registry.register_collector(Box::new(Scrape(metrics)));
    let mut out = String::new();
    text::encode(&mut out, &registry)?;
    Ok(out)
}

/// One scrape's metrics.
#[derive(Debug)]
struct Scrape(Metrics);

/// A value, and the labels that distinguish it from others of its family.
type Labelled<const N: usize, T> = ([(&'static str, String); N], T);

impl Collector for Scrape {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let m = &self.0;
        let reasons = m.reasons.iter().map(|(name, r)| ([("reason", name.clone())], r.placements));
        let cpus = || {
            m.cpus.iter().map(|(name, cpu)| {
                let labels =
                    [("cpu", name.clone()), ("llc", cpu.llc.to_string()), ("node", cpu.node.to_string())];
                (labels, cpu)
            })
        };
        let e = &mut encoder;

        counters(e, "placements", "Tasks that were placed, by reason", reasons)?;
        for (family, label, help) in FAMILIES {
            let own = COUNTERS.iter().filter(|c| c.family == *family);
            if label.is_empty() {
                counter(e, family, help, own.map(|c| (c.get)(m)).sum())?;
            } else {
                counters(e, family, help, own.map(|c| ([(*label, c.value.to_owned())], (c.get)(m))))?;
            }
        }
        let switches = cpus().map(|(labels, cpu)| (labels, cpu.switches));
        counters(e, "switches", "Tasks that a CPU switched to", switches)?;
        let running = cpus().map(|(labels, cpu)| (labels, cpu.nr_running as f64));
        gauges(e, "runnable_tasks", "Tasks that run on a CPU or wait for it", running)?;
        let capacity = cpus().map(|(labels, cpu)| (labels, cpu.capacity as f64 / 1024.0));
        gauges(e, "cpu_capacity_ratio", "Capacity, 1 is that of the biggest CPU", capacity)?;
        let util = cpus().map(|(labels, cpu)| (labels, cpu.util as f64 / 1024.0));
        gauges(e, "cpu_utilization_ratio", "Average utilisation, on the same scale", util)?;
        let name = "wakeup_latency";
        let what = "Time from a wakeup until the task runs";
        latencies(e.encode_descriptor(name, what, Some(&Unit::Seconds), MetricType::Histogram)?, m)
    }
}

fn counter(e: &mut DescriptorEncoder<'_>, name: &str, help: &str, value: u64) -> fmt::Result {
    let mut family = e.encode_descriptor(name, help, None, MetricType::Counter)?;
    family.encode_counter::<NoLabelSet, _, u64>(&value, None)
}

fn counters<const N: usize>(
    e: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    values: impl Iterator<Item = Labelled<N, u64>>,
) -> fmt::Result {
    let mut family = e.encode_descriptor(name, help, None, MetricType::Counter)?;
    for (labels, value) in values {
        family.encode_family(&labels)?.encode_counter::<NoLabelSet, _, u64>(&value, None)?;
    }
    Ok(())
}

fn gauges<const N: usize>(
    e: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    values: impl Iterator<Item = Labelled<N, f64>>,
) -> fmt::Result {
    let mut family = e.encode_descriptor(name, help, None, MetricType::Gauge)?;
    for (labels, value) in values {
        family.encode_family(&labels)?.encode_gauge(&value)?;
    }
    Ok(())
}

fn latencies(mut family: MetricEncoder<'_>, m: &Metrics) -> fmt::Result {
    let last = m.latencies.len().saturating_sub(1);
    let ends = (0..last).map(|i| (FIRST_LATENCY_NS << i) as f64 / 1e9).chain([f64::INFINITY]);
    let buckets: Vec<_> = ends.zip(m.latencies.iter().copied()).collect();
    let count = m.latencies.iter().sum();
    family.encode_histogram::<NoLabelSet>(m.waited_ns as f64 / 1e9, count, &buckets, None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::{CpuMetrics, ReasonMetrics};

    const GOLDEN: &str = r#"# HELP coreward_placements Tasks that were placed, by reason
# TYPE coreward_placements counter
coreward_placements_total{reason="IDLE_CPU"} 4
# HELP coreward_cpus_scanned CPUs whose state was read by scans for placements
# TYPE coreward_cpus_scanned counter
coreward_cpus_scanned_total 7
# HELP coreward_direct_dispatches Tasks dispatched directly to a CPU
# TYPE coreward_direct_dispatches counter
coreward_direct_dispatches_total 0
# HELP coreward_enqueues Tasks queued to wait for a CPU
# TYPE coreward_enqueues counter
coreward_enqueues_total 0
# HELP coreward_preemptions Tasks that made the CPU reschedule when they were queued
# TYPE coreward_preemptions counter
coreward_preemptions_total 0
# HELP coreward_pulled_tasks Tasks moved by balancing; newidle: by CPUs that ran out of work
# TYPE coreward_pulled_tasks counter
coreward_pulled_tasks_total{by="newidle"} 0
coreward_pulled_tasks_total{by="balance"} 0
# HELP coreward_migrations Tasks that ran on another CPU than before, by distance
# TYPE coreward_migrations counter
coreward_migrations_total{distance="core"} 0
coreward_migrations_total{distance="llc"} 5
coreward_migrations_total{distance="node"} 0
coreward_migrations_total{distance="across"} 0
# HELP coreward_switches Tasks that a CPU switched to
# TYPE coreward_switches counter
coreward_switches_total{cpu="0",llc="2",node="1"} 9
# HELP coreward_runnable_tasks Tasks that run on a CPU or wait for it
# TYPE coreward_runnable_tasks gauge
coreward_runnable_tasks{cpu="0",llc="2",node="1"} 3.0
# HELP coreward_cpu_capacity_ratio Capacity, 1 is that of the biggest CPU
# TYPE coreward_cpu_capacity_ratio gauge
coreward_cpu_capacity_ratio{cpu="0",llc="2",node="1"} 1.0
# HELP coreward_cpu_utilization_ratio Average utilisation, on the same scale
# TYPE coreward_cpu_utilization_ratio gauge
coreward_cpu_utilization_ratio{cpu="0",llc="2",node="1"} 0.5
# HELP coreward_wakeup_latency_seconds Time from a wakeup until the task runs
# TYPE coreward_wakeup_latency_seconds histogram
# UNIT coreward_wakeup_latency_seconds seconds
coreward_wakeup_latency_seconds_sum 1.5
coreward_wakeup_latency_seconds_count 6
coreward_wakeup_latency_seconds_bucket{le="0.000001024"} 1
coreward_wakeup_latency_seconds_bucket{le="0.000002048"} 3
coreward_wakeup_latency_seconds_bucket{le="+Inf"} 6
# EOF
"#;

    #[test]
    fn the_text_is_openmetrics() {
        let cpu = CpuMetrics {
            node: 1,
            llc: 2,
            nr_running: 3,
            util: 512,
            capacity: 1024,
            switches: 9,
            ..Default::default()
        };
        let metrics = Metrics {
            reasons: [("IDLE_CPU".to_owned(), ReasonMetrics { placements: 4 })].into(),
            cpus_scanned: 7,
            migrations_llc: 5,
            latencies: vec![1, 2, 3],
            waited_ns: 1_500_000_000,
            cpus: [("0".to_owned(), cpu)].into(),
            ..Default::default()
        };
        let text = encode(metrics).unwrap();
        assert_eq!(text, GOLDEN, "{text}");
    }

    #[test]
    fn only_get_of_metrics_is_answered_and_only_on_loopback() {
        use std::io::{Read, Write};
        let server = bind(0).unwrap();
        let address = server.server_addr().to_ip().unwrap();
        assert!(address.ip().is_loopback());
        std::thread::spawn(move || serve(&server));
        let ask = |line: &str| {
            let mut stream = std::net::TcpStream::connect(address).unwrap();
            write!(stream, "{line} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            answer.split(' ').nth(1).unwrap().to_owned()
        };
        assert_eq!(ask("GET /"), "404");
        assert_eq!(ask("GET /metrics/x"), "404");
        assert_eq!(ask("POST /metrics"), "405");
        let taken = bind(address.port()).err().expect("the port is taken").to_string();
        assert!(taken.starts_with("cannot serve metrics on 127.0.0.1:"), "{taken}");
    }
}
