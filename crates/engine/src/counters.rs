//! The counters of the simulation, and the metrics derived from them.

use std::collections::BTreeMap;

use coreward_metrics::{LatencyHistogram, Metric, Metrics, PARTS, Part};
use coreward_policy::Distance;
use coreward_policy::layout::{NOTE_CACHE_CPU, NOTE_CACHE_CROWDED};
use coreward_policy::{Code, Decision};

/// How long mechanisms took, in ns, with all that they waited for. They overlap; the parts of [`Counters::spent`] do not.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TimeSpent {
    /// Choosing CPUs and waking: try_to_wake_up with its scans.
    pub(crate) wakeup: u64,
    /// newidle balance.
    pub(crate) newidle: u64,
    /// Of this, when a task waited for a futex.
    pub(crate) newidle_futex: u64,
    /// Of this, when a task slept on a timer.
    pub(crate) newidle_nanosleep: u64,
    /// Periodic balance.
    pub(crate) balance: u64,
}

impl TimeSpent {
    fn add(&mut self, other: &TimeSpent) {
        let pairs = [
            (&mut self.wakeup, other.wakeup),
            (&mut self.newidle, other.newidle),
            (&mut self.newidle_futex, other.newidle_futex),
            (&mut self.newidle_nanosleep, other.newidle_nanosleep),
            (&mut self.balance, other.balance),
        ];
        pairs.into_iter().for_each(|(sum, ns)| *sum += ns);
    }

    fn times(&self, factor: f64) -> TimeSpent {
        let ns = |ns| scaled(ns, factor);
        TimeSpent {
            wakeup: ns(self.wakeup),
            newidle: ns(self.newidle),
            newidle_futex: ns(self.newidle_futex),
            newidle_nanosleep: ns(self.newidle_nanosleep),
            balance: ns(self.balance),
        }
    }
}

/// A count in a stretch that is `factor` times as long.
fn scaled(n: u64, factor: f64) -> u64 {
    (n as f64 * factor).round() as u64
}

/// Latencies, with the values that a histogram does not keep exactly.
#[derive(Clone, Debug, Default)]
pub(crate) struct Latencies {
    histogram: LatencyHistogram,
    sum_ns: u128,
    min_ns: Option<u64>,
    max_ns: u64,
}

impl Latencies {
    pub(crate) fn record(&mut self, ns: u64) {
        self.histogram.record(ns);
        self.sum_ns += u128::from(ns);
        self.min_ns = Some(self.min_ns.map_or(ns, |min| min.min(ns)));
        self.max_ns = self.max_ns.max(ns);
    }

    fn add(&mut self, other: &Latencies) {
        self.histogram.merge(&other.histogram);
        self.sum_ns += other.sum_ns;
        self.min_ns = self.min_ns.into_iter().chain(other.min_ns).min();
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    fn times(&self, factor: f64) -> Latencies {
        let mut histogram = LatencyHistogram::new();
        histogram.merge_times(&self.histogram, factor);
        Latencies { histogram, sum_ns: (self.sum_ns as f64 * factor).round() as u128, ..*self }
    }

    /// What reports show of them; `None` if there are none.
    pub(crate) fn summary(&self) -> Option<LatencySummary> {
        let count = self.histogram.count();
        (count > 0).then(|| LatencySummary {
            count,
            p50_us: self.us(50.0),
            p99_us: self.us(99.0),
            max_us: self.max_ns as f64 / 1e3,
        })
    }

    fn us(&self, percent: f64) -> f64 {
        // the histogram gives the upper end of a bucket, which may be beyond every value in it
        self.histogram.percentile(percent).map_or(0.0, |ns| ns.min(self.max_ns) as f64 / 1e3)
    }
}

/// Latencies in us.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LatencySummary {
    /// How many there are.
    pub count: u64,
    /// Median.
    pub p50_us: f64,
    /// 99th percentile.
    pub p99_us: f64,
    /// The largest one.
    pub max_us: f64,
}

/// A thread that the workload tells apart from others, with its latencies.
#[derive(Clone, Debug, PartialEq)]
pub struct Thread {
    /// What the tool calls it.
    pub name: String,
    /// From a wakeup until it runs; `None` if it was not woken in the measured part.
    pub wakeup_latency: Option<LatencySummary>,
    /// Of its events, rt-app's periods; `None` if there were none.
    pub event_latency: Option<LatencySummary>,
}

/// Latencies of a thread.
#[derive(Clone, Debug, Default)]
pub(crate) struct ThreadLatencies {
    pub(crate) wakeups: Latencies,
    pub(crate) events: Latencies,
}

/// Everything that is counted during a run.
pub(crate) struct Counters {
    pub(crate) time: TimeSpent,
    /// By distance between the old and the new CPU.
    pub(crate) migrations: [u64; 5],
    pub(crate) switches_voluntary: u64,
    pub(crate) switches_involuntary: u64,
    pub(crate) wakeups: u64,
    /// Messages that arrived.
    pub(crate) messages: u64,
    pub(crate) ticks: u64,
    /// Ends of segments, arrivals of interrupts, expiries of sleeps.
    pub(crate) timers: u64,
    pub(crate) cpus_scanned: u64,
    pub(crate) groups_scanned: u64,
    pub(crate) newidle_calls: u64,
    pub(crate) pulled_tasks: u64,
    /// Tasks that balancing, including active balance, moved to their preferred LLC.
    pub(crate) llc_pulled_tasks: u64,
    /// Wakeups that searched the LLC that the process prefers, and wakeups that did not because it was crowded.
    pub(crate) cache_wakeups: u64,
    pub(crate) cache_crowded: u64,
    /// The CPUs' time by part, in ns; of the idle time it does not tell when tasks waited.
    pub(crate) spent: [u64; PARTS],
    pub(crate) idle_while_waiting_ns: u64,
    /// While a task was current, summed over the CPUs.
    pub(crate) task_clock_ns: u64,
    pub(crate) latency: LatencyHistogram,
    /// Latencies of events.
    pub(crate) events: Latencies,
    /// Events in each second since the start.
    pub(crate) events_by_second: Vec<u64>,
    /// From the time that the answering task reads from the clock until the answered task runs.
    pub(crate) replies: Latencies,
    /// Of the threads that the workload tells apart, by their index.
    pub(crate) threads: BTreeMap<u32, ThreadLatencies>,
    pub(crate) reasons: Vec<u64>,
    /// Decisions of the queues, by their reasons.
    pub(crate) queue_reasons: Vec<u64>,
}

impl Counters {
    pub(crate) fn new(code: &Code) -> Self {
        Counters {
            time: TimeSpent::default(),
            migrations: [0; 5],
            switches_voluntary: 0,
            switches_involuntary: 0,
            wakeups: 0,
            messages: 0,
            ticks: 0,
            timers: 0,
            cpus_scanned: 0,
            groups_scanned: 0,
            newidle_calls: 0,
            pulled_tasks: 0,
            llc_pulled_tasks: 0,
            cache_wakeups: 0,
            cache_crowded: 0,
            spent: [0; PARTS],
            idle_while_waiting_ns: 0,
            task_clock_ns: 0,
            latency: LatencyHistogram::new(),
            events: Latencies::default(),
            events_by_second: Vec::new(),
            replies: Latencies::default(),
            threads: BTreeMap::new(),
            reasons: vec![0; code.reasons().count()],
            queue_reasons: vec![0; code.nr_queue_reasons()],
        }
    }

    /// Adds what was counted in another span of the run.
    pub(crate) fn add(&mut self, other: &Counters) {
        // every field is named, so that a new one cannot be forgotten
        let Counters {
            time,
            migrations,
            switches_voluntary,
            switches_involuntary,
            wakeups,
            messages,
            ticks,
            timers,
            cpus_scanned,
            groups_scanned,
            newidle_calls,
            pulled_tasks,
            llc_pulled_tasks,
            cache_wakeups,
            cache_crowded,
            spent,
            idle_while_waiting_ns,
            task_clock_ns,
            latency,
            events,
            events_by_second,
            replies,
            threads,
            reasons,
            queue_reasons,
        } = self;
        time.add(&other.time);
        let numbers = [
            (switches_voluntary, other.switches_voluntary),
            (switches_involuntary, other.switches_involuntary),
            (wakeups, other.wakeups),
            (messages, other.messages),
            (ticks, other.ticks),
            (timers, other.timers),
            (cpus_scanned, other.cpus_scanned),
            (groups_scanned, other.groups_scanned),
            (newidle_calls, other.newidle_calls),
            (pulled_tasks, other.pulled_tasks),
            (llc_pulled_tasks, other.llc_pulled_tasks),
            (cache_wakeups, other.cache_wakeups),
            (cache_crowded, other.cache_crowded),
            (idle_while_waiting_ns, other.idle_while_waiting_ns),
            (task_clock_ns, other.task_clock_ns),
        ];
        numbers.into_iter().for_each(|(sum, n)| *sum += n);
        latency.merge(&other.latency);
        events.add(&other.events);
        replies.add(&other.replies);
        for (thread, latencies) in &other.threads {
            let own = threads.entry(*thread).or_default();
            own.wakeups.add(&latencies.wakeups);
            own.events.add(&latencies.events);
        }
        events_by_second.resize(events_by_second.len().max(other.events_by_second.len()), 0);
        let lists: [(&mut [u64], &[u64]); 5] = [
            (spent, &other.spent),
            (migrations, &other.migrations),
            (events_by_second, &other.events_by_second),
            (reasons, &other.reasons),
            (queue_reasons, &other.queue_reasons),
        ];
        for (sums, numbers) in lists {
            sums.iter_mut().zip(numbers).for_each(|(sum, n)| *sum += n);
        }
    }

    /// What would be counted in a span that is `factor` times as long.
    pub(crate) fn times(&self, factor: f64) -> Counters {
        let n = |n| scaled(n, factor);
        let list = |list: &[u64]| list.iter().map(|n| scaled(*n, factor)).collect::<Vec<u64>>();
        let mut latency = LatencyHistogram::new();
        latency.merge_times(&self.latency, factor);
        Counters {
            time: self.time.times(factor),
            migrations: self.migrations.map(n),
            switches_voluntary: n(self.switches_voluntary),
            switches_involuntary: n(self.switches_involuntary),
            wakeups: n(self.wakeups),
            messages: n(self.messages),
            ticks: n(self.ticks),
            timers: n(self.timers),
            cpus_scanned: n(self.cpus_scanned),
            groups_scanned: n(self.groups_scanned),
            newidle_calls: n(self.newidle_calls),
            pulled_tasks: n(self.pulled_tasks),
            llc_pulled_tasks: n(self.llc_pulled_tasks),
            cache_wakeups: n(self.cache_wakeups),
            cache_crowded: n(self.cache_crowded),
            spent: self.spent.map(n),
            idle_while_waiting_ns: n(self.idle_while_waiting_ns),
            task_clock_ns: n(self.task_clock_ns),
            latency,
            events: self.events.times(factor),
            events_by_second: list(&self.events_by_second),
            replies: self.replies.times(factor),
            threads: self
                .threads
                .iter()
                .map(|(thread, ThreadLatencies { wakeups, events })| {
                    (
                        *thread,
                        ThreadLatencies { wakeups: wakeups.times(factor), events: events.times(factor) },
                    )
                })
                .collect(),
            reasons: list(&self.reasons),
            queue_reasons: list(&self.queue_reasons),
        }
    }

    /// Its events were spread evenly between these times since the start of the measured part.
    pub(crate) fn spread_events(&mut self, from_ns: u64, to_ns: u64) {
        const SECOND_NS: u64 = 1_000_000_000;
        let events = self.events.histogram.count() as f64;
        let span = |second: u64| {
            let (start, end) = (second * SECOND_NS, (second + 1) * SECOND_NS);
            end.min(to_ns).saturating_sub(start.max(from_ns))
        };
        self.events_by_second = (0..to_ns.div_ceil(SECOND_NS))
            .map(|second| scaled(span(second), events / (to_ns - from_ns) as f64))
            .collect();
    }

    /// Messages and events, of which a workload has one or the other.
    pub(crate) fn work(&self) -> u64 {
        self.messages + self.events.histogram.count()
    }

    /// An event has ended, `since_start` ns after the start of the measured part.
    pub(crate) fn event_ended(&mut self, latency_ns: u64, since_start: u64) {
        self.events.record(latency_ns);
        let second = (since_start / 1_000_000_000) as usize;
        if second >= self.events_by_second.len() {
            self.events_by_second.resize(second + 1, 0);
        }
        self.events_by_second[second] += 1;
    }

    pub(crate) fn record(&mut self, d: &Decision) {
        self.cpus_scanned += u64::from(d.cpus_scanned);
        self.groups_scanned += u64::from(d.groups_scanned);
        self.reasons[d.reason as usize] += 1;
        self.cache_wakeups += u64::from(d.notes & NOTE_CACHE_CPU != 0);
        self.cache_crowded += u64::from(d.notes & NOTE_CACHE_CROWDED != 0);
    }

    /// Adds the metrics of a policy that uses preferred LLCs.
    pub(crate) fn add_preferred_llc(&self, metrics: &mut Metrics) {
        metrics.set(Metric::wakeups_preferred_llc, self.cache_wakeups as f64);
        metrics.set(Metric::wakeups_llc_crowded, self.cache_crowded as f64);
        metrics.set(Metric::balance_llc_pulled_tasks, self.llc_pulled_tasks as f64);
        metrics.set(Metric::llc_search_time_s, self.spent[Part::LlcSearch as usize] as f64 / 1e9);
    }

    fn busy_ns(&self) -> u64 {
        self.spent.iter().sum::<u64>() - self.spent[Part::Idle as usize]
    }

    /// Events of the scheduler: wakeups, switches, ticks and timers.
    pub(crate) fn sim_events(&self) -> u64 {
        self.wakeups + self.switches_voluntary + self.switches_involuntary + self.ticks + self.timers
    }

    /// The metrics of a measured span of `runtime_ns`.
    pub(crate) fn metrics(&self, runtime_ns: u64) -> Metrics {
        let s = |ns: u64| ns as f64 / 1e9;
        let runtime = s(runtime_ns);
        let busy = s(self.busy_ns());
        let part = |part: Part| s(self.spent[part as usize]);
        let switches = self.switches_voluntary + self.switches_involuntary;
        let migrations: u64 = self.migrations.iter().sum();
        let task_clock = s(self.task_clock_ns);
        let per_task_clock = |n: u64| if task_clock > 0.0 { n as f64 / task_clock } else { 0.0 };
        let cpus = |time: f64| if runtime > 0.0 { time / runtime } else { 0.0 };
        let pct_busy = |ns: u64| if busy > 0.0 { 100.0 * s(ns) / busy } else { 0.0 };
        let mut values = vec![
            (Metric::runtime_s, runtime),
            (Metric::cpu_migrations, migrations as f64),
            (Metric::migrations_smt, self.migrations[Distance::Core as usize] as f64),
            (Metric::migrations_llc, self.migrations[Distance::Llc as usize] as f64),
            (Metric::migrations_node, self.migrations[Distance::Node as usize] as f64),
            (Metric::migrations_remote, self.migrations[Distance::Across as usize] as f64),
            (Metric::cpu_migrations_per_s, per_task_clock(migrations)),
            (Metric::context_switches, switches as f64),
            (Metric::context_switches_voluntary, self.switches_voluntary as f64),
            (Metric::context_switches_involuntary, self.switches_involuntary as f64),
            (Metric::context_switches_per_s, per_task_clock(switches)),
            (Metric::wakeups, self.wakeups as f64),
            (Metric::task_clock_s, task_clock),
            (Metric::cpus_utilized, cpus(task_clock)),
            (Metric::cpus_busy, cpus(busy)),
            (Metric::busy_s, busy),
            (Metric::idle_while_waiting_s, s(self.idle_while_waiting_ns)),
            (Metric::newidle_time_s, s(self.time.newidle)),
            (Metric::newidle_pct, pct_busy(self.time.newidle)),
            (Metric::newidle_futex_pct, pct_busy(self.time.newidle_futex)),
            (Metric::newidle_nanosleep_pct, pct_busy(self.time.newidle_nanosleep)),
            (Metric::newidle_calls, self.newidle_calls as f64),
            (Metric::balance_time_s, s(self.time.balance)),
            (Metric::balance_pulled_tasks, self.pulled_tasks as f64),
            (Metric::wakeup_time_s, s(self.time.wakeup)),
            (Metric::refill_time_s, part(Part::Refill)),
            (
                Metric::transfer_time_s,
                part(Part::ChannelLines)
                    + part(Part::FileLines)
                    + part(Part::FutexLines)
                    + part(Part::TaskLines)
                    + part(Part::MmCount),
            ),
            (Metric::lock_wait_s, part(Part::RqLock)),
            (Metric::channel_wait_s, part(Part::ChannelLock)),
            (Metric::tg_load_avg_wait_s, part(Part::TgLoadAvg)),
            (Metric::idle_exit_s, part(Part::IdleExit)),
            (Metric::cpus_scanned, self.cpus_scanned as f64),
            (Metric::groups_scanned, self.groups_scanned as f64),
            (Metric::sim_events, self.sim_events() as f64),
        ];
        if self.messages > 0 && runtime > 0.0 {
            values.push((Metric::messages_per_s, self.messages as f64 / runtime));
        }
        values.extend(self.wakeup_metrics());
        values.extend(self.event_metrics(runtime));
        values.extend(self.reply_metrics());
        values.into_iter().collect()
    }

    /// Percentiles of the latencies of wakeups; none of them if nothing woke.
    fn wakeup_metrics(&self) -> impl Iterator<Item = (Metric, f64)> {
        let percentiles = [
            (Metric::wakeup_latency_us_p50, 50.0),
            (Metric::wakeup_latency_us_p90, 90.0),
            (Metric::wakeup_latency_us_p99, 99.0),
            (Metric::wakeup_latency_us_p999, 99.9),
        ];
        let us = |percent| self.latency.percentile(percent).map(|ns| ns as f64 / 1e3);
        percentiles.into_iter().filter_map(move |(metric, percent)| Some((metric, us(percent)?)))
    }

    fn event_metrics(&self, runtime: f64) -> Vec<(Metric, f64)> {
        let e = &self.events;
        let n = e.histogram.count() as f64;
        let Some(min_ns) = e.min_ns else { return Vec::new() };
        vec![
            (Metric::events, n),
            (Metric::events_per_s, n / runtime),
            (Metric::event_latency_us_min, min_ns as f64 / 1e3),
            (Metric::event_latency_us_avg, e.sum_ns as f64 / n / 1e3),
            (Metric::event_latency_us_p50, e.us(50.0)),
            (Metric::event_latency_us_p90, e.us(90.0)),
            (Metric::event_latency_us_p95, e.us(95.0)),
            (Metric::event_latency_us_p99, e.us(99.0)),
            (Metric::event_latency_us_p999, e.us(99.9)),
            (Metric::event_latency_us_max, e.max_ns as f64 / 1e3),
        ]
    }

    /// Percentiles of the events of a second, of the whole seconds of a measured part that takes `runtime` s.
    pub(crate) fn event_rate_percentiles(&self, runtime: f64) -> Vec<(Metric, f64)> {
        let mut seconds = self.events_by_second.clone();
        seconds.resize(runtime as usize, 0);
        seconds.sort_unstable();
        let percentiles =
            [(Metric::events_per_s_p20, 20), (Metric::events_per_s_p50, 50), (Metric::events_per_s_p90, 90)];
        let of_all = |(metric, percent): (Metric, usize)| {
            let rank = (seconds.len() * percent).div_ceil(100).max(1);
            seconds.get(rank - 1).map(|events| (metric, *events as f64))
        };
        percentiles.into_iter().filter_map(of_all).collect()
    }

    fn reply_metrics(&self) -> Vec<(Metric, f64)> {
        let r = &self.replies;
        if r.min_ns.is_none() {
            return Vec::new();
        }
        vec![
            (Metric::reply_latency_us_p50, r.us(50.0)),
            (Metric::reply_latency_us_p75, r.us(75.0)),
            (Metric::reply_latency_us_p90, r.us(90.0)),
            (Metric::reply_latency_us_p95, r.us(95.0)),
            (Metric::reply_latency_us_p99, r.us(99.0)),
            (Metric::reply_latency_us_p995, r.us(99.5)),
            (Metric::reply_latency_us_p999, r.us(99.9)),
            (Metric::reply_latency_us_max, r.max_ns as f64 / 1e3),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_percentile_is_beyond_the_longest_latency() {
        let mut latencies = Latencies::default();
        // in the bucket of the histogram that ends at 66,519 us or so
        (0..1000).for_each(|_| latencies.record(66_511_000));
        assert_eq!(latencies.us(99.9), 66_511.0);
        latencies.record(1_000);
        assert_eq!(latencies.us(0.0), 1.0);
    }
}
