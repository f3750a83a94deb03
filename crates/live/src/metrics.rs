//! `coreward live --metrics FILE`: the counters since the start, in the text format of Prometheus, for the textfile
//! collector of node_exporter.

use std::fmt::{self, Display, Write as _};
use std::fs::{self, Permissions};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::stats::{COUNTERS, FAMILIES, FIRST_LATENCY_NS, Metrics};

/// A file that is written again and again, always as a whole. It is removed when the scheduler ends.
pub(crate) struct MetricsFile {
    path: PathBuf,
    every: Duration,
    due: Instant,
    /// The last attempt failed, which has been reported.
    failing: bool,
}

impl MetricsFile {
    /// Writes for the first time what has been counted so far: nothing. So a path that cannot be written is known before
    /// the scheduler starts.
    ///
    /// # Errors
    /// There is something else than a file, or none can be written.
    pub(crate) fn create(path: &Path, every: Duration) -> Result<MetricsFile> {
        if fs::symlink_metadata(path).is_ok_and(|found| !found.is_file()) {
            bail!("--metrics: {} is no regular file", path.display());
        }
        let file = MetricsFile { path: path.to_owned(), every, due: Instant::now(), failing: false };
        file.write(&Metrics::default())?;
        Ok(file)
    }

    /// Writes the counters if it is time. A failure is reported once, and the next attempt is made in its time: the
    /// scheduler goes on.
    pub(crate) fn update(&mut self, metrics: impl FnOnce() -> Metrics) {
        if Instant::now() < self.due {
            return;
        }
        self.due = Instant::now() + self.every;
        let result = self.write(&metrics());
        if let Some(error) = result.as_ref().err().filter(|_| !self.failing) {
            eprintln!("coreward: {error:#}; it will be tried again");
        }
        self.failing = result.is_err();
    }

    fn write(&self, metrics: &Metrics) -> Result<()> {
        let cannot = || format!("--metrics: cannot write {}", self.path.display());
        let parent = self.path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let mut file = tempfile::Builder::new()
            .prefix(".coreward-metrics-")
            .tempfile_in(parent.unwrap_or(Path::new(".")))
            .with_context(cannot)?;
        file.write_all(text(metrics).as_bytes()).with_context(cannot)?;
        // whoever collects it need not be root
        file.as_file().set_permissions(Permissions::from_mode(0o644)).with_context(cannot)?;
        file.persist(&self.path).with_context(cannot)?;
        Ok(())
    }
}

impl Drop for MetricsFile {
    fn drop(&mut self) {
        // it may be gone already, with its directory
        let _ = fs::remove_file(&self.path);
    }
}

/// All metrics.
fn text(metrics: &Metrics) -> String {
    let mut out = String::new();
    write(&mut out, metrics).expect("a string can be written");
    out
}

fn write(out: &mut String, m: &Metrics) -> fmt::Result {
    let reasons = m.reasons.iter().map(|(name, reason)| ([("reason", name.clone())], reason.placements));
    let cpus = || {
        m.cpus.iter().map(|(name, cpu)| {
            let labels =
                [("cpu", name.clone()), ("llc", cpu.llc.to_string()), ("node", cpu.node.to_string())];
            (labels, cpu)
        })
    };
    family(out, "placements_total", "counter", "Tasks that were placed, by reason", reasons)?;
    for (name, label, help) in FAMILIES {
        let own = COUNTERS.iter().filter(|counter| counter.family == *name);
        let name = format!("{name}_total");
        if label.is_empty() {
            let sum: u64 = own.map(|counter| (counter.get)(m)).sum();
            family(out, &name, "counter", help, [([], sum)])?;
        } else {
            let values = own.map(|counter| ([(*label, counter.value.to_owned())], (counter.get)(m)));
            family(out, &name, "counter", help, values)?;
        }
    }
    let switches = cpus().map(|(labels, cpu)| (labels, cpu.switches));
    family(out, "switches_total", "counter", "Tasks that a CPU switched to", switches)?;
    let running = cpus().map(|(labels, cpu)| (labels, cpu.nr_running));
    family(out, "runnable_tasks", "gauge", "Tasks that run on a CPU or wait for it", running)?;
    let capacity = cpus().map(|(labels, cpu)| (labels, cpu.capacity as f64 / 1024.0));
    family(out, "cpu_capacity_ratio", "gauge", "Capacity, 1 is that of the biggest CPU", capacity)?;
    let util = cpus().map(|(labels, cpu)| (labels, cpu.util as f64 / 1024.0));
    family(out, "cpu_utilization_ratio", "gauge", "Average utilisation, on the same scale", util)?;
    latencies(out, m)
}

/// A metric of all its labels' values.
fn family<const N: usize, T: Display>(
    out: &mut String,
    name: &str,
    kind: &str,
    help: &str,
    samples: impl IntoIterator<Item = ([(&'static str, String); N], T)>,
) -> fmt::Result {
    head(out, name, kind, help)?;
    for (labels, value) in samples {
        let labels: Vec<String> =
            labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        writeln!(out, "coreward_{name}{labels} {value}")?;
    }
    Ok(())
}

fn head(out: &mut String, name: &str, kind: &str, help: &str) -> fmt::Result {
    writeln!(out, "# HELP coreward_{name} {help}\n# TYPE coreward_{name} {kind}")
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

fn latencies(out: &mut String, m: &Metrics) -> fmt::Result {
    let name = "wakeup_latency_seconds";
    head(out, name, "histogram", "Time from a wakeup until the task runs")?;
    let mut below = 0;
    for (i, n) in m.latencies.iter().enumerate() {
        below += n;
        if i + 1 < m.latencies.len() {
            let end = (FIRST_LATENCY_NS << i) as f64 / 1e9;
            writeln!(out, "coreward_{name}_bucket{{le=\"{end}\"}} {below}")?;
        }
    }
    writeln!(out, "coreward_{name}_bucket{{le=\"+Inf\"}} {below}")?;
    writeln!(out, "coreward_{name}_sum {}\ncoreward_{name}_count {below}", m.waited_ns as f64 / 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::{CpuMetrics, ReasonMetrics};

    const GOLDEN: &str = r#"# HELP coreward_placements_total Tasks that were placed, by reason
# TYPE coreward_placements_total counter
coreward_placements_total{reason="IDLE_CPU"} 4
# HELP coreward_cpus_scanned_total CPUs whose state was read by scans for placements
# TYPE coreward_cpus_scanned_total counter
coreward_cpus_scanned_total 7
# HELP coreward_direct_dispatches_total Tasks dispatched directly to a CPU
# TYPE coreward_direct_dispatches_total counter
coreward_direct_dispatches_total 0
# HELP coreward_enqueues_total Tasks queued to wait for a CPU
# TYPE coreward_enqueues_total counter
coreward_enqueues_total 0
# HELP coreward_preemptions_total Tasks that made the CPU reschedule when they were queued
# TYPE coreward_preemptions_total counter
coreward_preemptions_total 0
# HELP coreward_pulled_tasks_total Tasks moved by balancing; newidle: by CPUs that ran out of work
# TYPE coreward_pulled_tasks_total counter
coreward_pulled_tasks_total{by="newidle"} 0
coreward_pulled_tasks_total{by="balance"} 0
# HELP coreward_migrations_total Tasks that ran on another CPU than before, by distance
# TYPE coreward_migrations_total counter
coreward_migrations_total{distance="core"} 0
coreward_migrations_total{distance="llc"} 5
coreward_migrations_total{distance="node"} 0
coreward_migrations_total{distance="across"} 0
# HELP coreward_switches_total Tasks that a CPU switched to
# TYPE coreward_switches_total counter
coreward_switches_total{cpu="0",llc="2",node="1"} 9
# HELP coreward_runnable_tasks Tasks that run on a CPU or wait for it
# TYPE coreward_runnable_tasks gauge
coreward_runnable_tasks{cpu="0",llc="2",node="1"} 3
# HELP coreward_cpu_capacity_ratio Capacity, 1 is that of the biggest CPU
# TYPE coreward_cpu_capacity_ratio gauge
coreward_cpu_capacity_ratio{cpu="0",llc="2",node="1"} 1
# HELP coreward_cpu_utilization_ratio Average utilisation, on the same scale
# TYPE coreward_cpu_utilization_ratio gauge
coreward_cpu_utilization_ratio{cpu="0",llc="2",node="1"} 0.5
# HELP coreward_wakeup_latency_seconds Time from a wakeup until the task runs
# TYPE coreward_wakeup_latency_seconds histogram
coreward_wakeup_latency_seconds_bucket{le="0.000001024"} 1
coreward_wakeup_latency_seconds_bucket{le="0.000002048"} 3
coreward_wakeup_latency_seconds_bucket{le="+Inf"} 6
coreward_wakeup_latency_seconds_sum 1.5
coreward_wakeup_latency_seconds_count 6
"#;

    fn counted() -> Metrics {
        let cpu = CpuMetrics {
            node: 1,
            llc: 2,
            nr_running: 3,
            util: 512,
            capacity: 1024,
            switches: 9,
            ..Default::default()
        };
        Metrics {
            reasons: [("IDLE_CPU".to_owned(), ReasonMetrics { placements: 4 })].into(),
            cpus_scanned: 7,
            migrations_llc: 5,
            latencies: vec![1, 2, 3],
            waited_ns: 1_500_000_000,
            cpus: [("0".to_owned(), cpu)].into(),
            ..Default::default()
        }
    }

    #[test]
    fn the_text_is_that_of_prometheus() {
        let text = text(&counted());
        assert_eq!(text, GOLDEN, "{text}");
        assert_eq!(escaped("a\\b\"c\nd"), "a\\\\b\\\"c\\nd");
    }

    #[test]
    fn the_file_is_replaced_when_it_is_due_and_removed_at_the_end() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("coreward.prom");
        fs::write(&path, "of an earlier run").unwrap();
        let mut file = MetricsFile::create(&path, Duration::from_secs(3600)).unwrap();
        assert!(fs::read_to_string(&path).unwrap().starts_with("# HELP"));
        file.update(counted);
        assert_eq!(fs::read_to_string(&path).unwrap(), GOLDEN);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o644);
        file.update(|| panic!("it is not due"));
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "nothing is left beside it");
        drop(file);
        assert!(!path.exists());
    }

    #[test]
    fn what_is_no_file_is_refused_and_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let refused =
            |path: &Path| MetricsFile::create(path, Duration::ZERO).err().expect("it is no file").to_string();
        assert!(refused(directory.path()).ends_with("is no regular file"));
        let link = directory.path().join("link");
        std::os::unix::fs::symlink("/dev/null", &link).unwrap();
        assert!(refused(&link).ends_with("is no regular file"));
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert!(refused(&directory.path().join("none/m.prom")).starts_with("--metrics: cannot write"));
    }

    #[test]
    fn a_failure_later_on_ends_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let below = directory.path().join("below");
        fs::create_dir(&below).unwrap();
        let mut file = MetricsFile::create(&below.join("m.prom"), Duration::ZERO).unwrap();
        fs::remove_dir_all(&below).unwrap();
        file.update(counted);
        assert!(file.failing);
        fs::create_dir(&below).unwrap();
        file.update(counted);
        assert!(!file.failing && below.join("m.prom").exists());
    }
}
