//! What `coreward top` shows for an interval.

use std::collections::BTreeMap;

use coreward_policy::Code;
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::Text;
use ratatui::widgets::{Row, Table, Widget};

use crate::stats::{CpuMetrics, Metrics};

/// Columns of the text, and of the part about CPUs.
const WIDTH: u16 = 110;
const MACHINE_WIDTH: u16 = 48;
/// Lines above the tables.
const SUMMARY: u16 = 6;
/// Cells of a full bar.
const BAR: usize = 10;

/// What was counted in so many seconds.
#[derive(Default)]
pub(super) struct View {
    pub(super) metrics: Metrics,
    pub(super) seconds: f64,
}

/// CPUs taken together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Sum {
    util: u64,
    capacity: u64,
    nr_running: u64,
    switches: u64,
}

impl Sum {
    fn of<'a>(cpus: impl IntoIterator<Item = &'a &'a CpuMetrics>) -> Self {
        let mut sum = Sum::default();
        for cpu in cpus {
            sum.util += cpu.util;
            sum.capacity += cpu.capacity;
            sum.nr_running += cpu.nr_running;
            sum.switches += cpu.switches;
        }
        sum
    }

    /// Utilisation as a part of the capacity: 0 to 1.
    fn load(&self) -> f64 {
        if self.capacity == 0 { 0.0 } else { (self.util as f64 / self.capacity as f64).min(1.0) }
    }
}

impl View {
    /// Nodes, their LLCs, and the CPUs of these, each with its name.
    fn machine(&self) -> Vec<(String, Sum)> {
        let mut nodes: BTreeMap<i64, BTreeMap<u64, BTreeMap<u32, &CpuMetrics>>> = BTreeMap::new();
        for (name, cpu) in &self.metrics.cpus {
            let number = name.parse().unwrap_or(u32::MAX);
            nodes.entry(cpu.node).or_default().entry(cpu.llc).or_default().insert(number, cpu);
        }
        let mut rows = Vec::new();
        for (node, llcs) in &nodes {
            rows.push((format!("node {node}"), Sum::of(llcs.values().flat_map(BTreeMap::values))));
            for (llc, cpus) in llcs {
                rows.push((format!("  LLC {llc}"), Sum::of(cpus.values())));
                for (number, cpu) in cpus {
                    rows.push((format!("    CPU {number}"), Sum::of([cpu])));
                }
            }
        }
        rows
    }

    /// How many rows the part about CPUs has.
    pub(super) fn rows(&self) -> usize {
        self.machine().len()
    }

    fn per_second(&self, n: u64) -> String {
        if self.seconds > 0.0 { format!("{:.0}", n as f64 / self.seconds) } else { "-".into() }
    }

    fn summary(&self) -> String {
        let m = &self.metrics;
        let rate = |n| self.per_second(n);
        let scanned = ratio(m.cpus_scanned, m.placements);
        let waits: u64 = m.latencies.iter().sum();
        let mean = ratio(m.waited_ns / 1000, waits);
        format!(
            "coreward, {:.1} s, {} CPUs\n\
             per second: {} placed, {} direct, {} queued, {} preempting, {} switches\n\
             balancing:  {} pulled newidle, {} otherwise; {scanned} CPUs scanned a placement\n\
             migrations: {} within cores, {} within LLCs, {} within nodes, {} across\n\
             wakeups:    {waits}, after {mean} us on average; p50 < {:.1} us, p99 < {:.1} us, p99.9 < {:.1} us\n",
            self.seconds,
            m.cpus.len(),
            rate(m.placements),
            rate(m.direct),
            rate(m.enqueued),
            rate(m.preempted),
            rate(m.switches),
            rate(m.pulled_newidle),
            rate(m.pulled_balance),
            rate(m.migrations_core),
            rate(m.migrations_llc),
            rate(m.migrations_node),
            rate(m.migrations_across),
            m.latency_p50_us,
            m.latency_p99_us,
            m.latency_p999_us,
        )
    }

    /// Reasons by how often they placed a task.
    fn reasons(&self) -> Vec<(String, u64)> {
        let known = |name: &str| Code::built_in().reasons().find(|reason| reason.name == name);
        let text = |name: &str| known(name).map_or(name, |reason| reason.text).to_owned();
        let mut reasons: Vec<_> = self
            .metrics
            .reasons
            .iter()
            .map(|(name, r)| (text(name), r.placements))
            .filter(|(_, n)| *n > 0)
            .collect();
        reasons.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        reasons
    }

    /// Draws it without the first `scrolled` rows of the part about CPUs.
    pub(super) fn draw(&self, area: Rect, scrolled: usize, buffer: &mut Buffer) {
        let [summary, tables] =
            Layout::vertical([Constraint::Length(SUMMARY), Constraint::Min(0)]).areas(area);
        let [machine, reasons] = Layout::horizontal([Constraint::Length(MACHINE_WIDTH), Constraint::Min(0)])
            .spacing(2)
            .areas(tables);
        let head = Style::new().add_modifier(Modifier::BOLD);
        let right = |text: String| Text::from(text).right_aligned();
        Text::from(self.summary()).render(summary, buffer);

        let rows = self.machine().into_iter().skip(scrolled).map(|(name, sum)| {
            Row::new([
                Text::from(name),
                right(format!("{:.0} %", 100.0 * sum.load())),
                Text::from(bar(sum.load())),
                right(sum.nr_running.to_string()),
                right(self.per_second(sum.switches)),
            ])
        });
        let widths = [12, 5, BAR as u16, 5, 10].map(Constraint::Length);
        let names = ["", "util", "", "tasks", "switches/s"].map(|n| right(n.into()));
        Widget::render(Table::new(rows, widths).header(Row::new(names).style(head)), machine, buffer);

        let rows = self.reasons().into_iter().map(|(text, n)| {
            let share = 100.0 * n as f64 / self.metrics.placements.max(1) as f64;
            Row::new([right(self.per_second(n)), right(format!("{share:.1} %")), Text::from(text)])
        });
        let widths = [Constraint::Length(9), Constraint::Length(7), Constraint::Min(0)];
        let names = [right("per s".into()), right("share".into()), Text::from("placed, by reason")];
        Widget::render(Table::new(rows, widths).header(Row::new(names).style(head)), reasons, buffer);
    }

    /// The same without a terminal.
    pub(super) fn text(&self) -> String {
        let rows = self.rows().max(self.reasons().len()) + 1;
        let height = SUMMARY.saturating_add(u16::try_from(rows).unwrap_or(u16::MAX));
        let area = Rect::new(0, 0, WIDTH, height);
        let mut buffer = Buffer::empty(area);
        self.draw(area, 0, &mut buffer);
        let line = |y| (0..WIDTH).map(|x| buffer[(x, y)].symbol()).collect::<String>();
        (0..height).map(|y| format!("{}\n", line(y).trim_end())).collect()
    }
}

/// A part of a whole, or of nothing.
fn ratio(part: u64, whole: u64) -> String {
    if whole == 0 { "-".into() } else { format!("{:.1}", part as f64 / whole as f64) }
}

/// A bar for 0 to 1.
fn bar(part: f64) -> String {
    let full = (part * BAR as f64).round() as usize;
    format!("{}{}", "█".repeat(full), "·".repeat(BAR - full))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::ReasonMetrics;

    fn view() -> View {
        let cpu = |node, llc, util, switches| CpuMetrics {
            node,
            llc,
            util,
            switches,
            nr_running: 1,
            capacity: 1024,
            ..CpuMetrics::default()
        };
        let cpus = [
            ("0", cpu(0, 0, 1024, 40)),
            ("1", cpu(0, 0, 0, 0)),
            ("2", cpu(0, 1, 512, 20)),
            ("10", cpu(1, 2, 256, 10)),
        ];
        let reasons = [("IDLE_CPU", 30), ("TARGET_IDLE", 90), ("NONE", 0)];
        let metrics = Metrics {
            placements: 120,
            cpus_scanned: 180,
            direct: 100,
            enqueued: 20,
            switches: 70,
            migrations_llc: 6,
            pulled_newidle: 4,
            latencies: vec![98, 0, 2],
            waited_ns: 250_000,
            latency_p50_us: 1.024,
            latency_p99_us: 4.096,
            latency_p999_us: 4.096,
            reasons: reasons.map(|(name, placements)| (name.to_owned(), ReasonMetrics { placements })).into(),
            cpus: cpus.map(|(name, cpu)| (name.to_owned(), cpu)).into(),
            ..Metrics::default()
        };
        View { metrics, seconds: 2.0 }
    }

    #[test]
    fn cpus_are_summed_up_by_llc_and_node() {
        let rows = view().machine();
        let names: Vec<_> = rows.iter().map(|(name, _)| name.trim()).collect();
        assert_eq!(
            names,
            ["node 0", "LLC 0", "CPU 0", "CPU 1", "LLC 1", "CPU 2", "node 1", "LLC 2", "CPU 10"]
        );
        let loads: Vec<_> = rows.iter().map(|(_, sum)| sum.load()).collect();
        assert_eq!(loads, [0.5, 0.5, 1.0, 0.0, 0.5, 0.5, 0.25, 0.25, 0.25]);
        assert_eq!(rows[0].1.switches, 60);
    }

    #[test]
    fn the_table() {
        assert_eq!(view().text(), GOLDEN, "{}", view().text());
    }

    #[test]
    fn nothing_counted_is_no_division_by_nothing() {
        assert!(View::default().text().contains("- CPUs scanned a placement"));
    }

    const GOLDEN: &str = "\
coreward, 2.0 s, 4 CPUs
per second: 60 placed, 50 direct, 10 queued, 0 preempting, 35 switches
balancing:  2 pulled newidle, 0 otherwise; 1.5 CPUs scanned a placement
migrations: 0 within cores, 3 within LLCs, 0 within nodes, 0 across
wakeups:    100, after 2.5 us on average; p50 < 1.0 us, p99 < 4.1 us, p99.9 < 4.1 us

              util            tasks switches/s        per s   share placed, by reason
node 0        50 % █████·····     3         30           45  75.0 % target idle
  LLC 0       50 % █████·····     2         20           15  25.0 % idle CPU by scan
    CPU 0    100 % ██████████     1         20
    CPU 1      0 % ··········     1          0
  LLC 1       50 % █████·····     1         10
    CPU 2     50 % █████·····     1         10
node 1        25 % ███·······     1          5
  LLC 2       25 % ███·······     1          5
    CPU 10    25 % ███·······     1          5
";
}
