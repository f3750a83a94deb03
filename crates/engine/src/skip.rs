//! Skips the steady middle of a run.
//!
//! A benchmark that runs for minutes does the same thing for most of them. Once its warm-up is over and its rates are
//! known well enough, the rest but for its end is not simulated: every task's loop, or the workload's limit, moves on by
//! the same amount of work, and what was counted in the steady window is added for it in proportion. The run still has
//! the benchmark's own start and end.
//!
//! The warm-up is found by MSER-5, the interval of the rates by batch means (`coreward_metrics::steady`). What is added
//! has the error of that interval. What tasks would have drifted apart meanwhile is lost: the end is a little shorter.

use coreward_metrics::steady::{BatchMeans, warm_up};

use crate::counters::Counters;
use crate::queue::NEVER;
use crate::sim::{START_NS, Simulation};
use crate::task::State;

/// First distance between two observations, in ns: the tick of a kernel with 1000 Hz.
const SPAN_NS: u64 = 1_000_000;
/// With as many observations, each two become one.
const MOST: usize = 2000;
/// Observations between two looks at them.
const LOOK_EVERY: usize = 50;
/// Batches of the steady window (Law, section 9.5.3: 20 to 40; more do not narrow the interval).
const BATCHES: usize = 20;
/// Least observations in a batch.
const LEAST_IN_BATCH: usize = 10;
/// The steady middle of a run, and how much of it was skipped.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Skipped {
    /// Length of the warm-up, in ns since the measured part began.
    pub warm_up_ns: u64,
    /// Length of the window in which the rates were measured, in ns.
    pub window_ns: u64,
    /// Half width of the 95 % confidence interval of the rate of messages or events, in per cent.
    pub work_pct: f64,
    /// The same for context switches.
    pub switches_pct: f64,
    /// Time that was not simulated, in ns.
    pub skipped_ns: u64,
}

/// What is observed: messages and events, and context switches.
type Counts = [u64; 2];

enum Phase {
    WarmUp,
    /// The steady window: since when, and what the tasks had left then.
    Window {
        begun_at: u64,
        progress: Progress,
    },
    Done(Skipped),
}

/// How far the workload has come.
#[derive(Clone, Copy)]
struct Progress {
    /// Units of work that all tasks together have left. A unit is the smallest piece into which all loops can be cut.
    units_left: f64,
    /// Repetitions that [`Limits::events`](coreward_workload::Limits) counts.
    repetitions: u64,
}

/// Where all tasks are in their outermost loops.
struct Loops {
    /// The greatest common divisor of all loops' repetitions.
    units: u64,
    /// Mean number of units left, and the smallest.
    mean_left: f64,
    least_left: u64,
}

/// Looks for the steady part of a run, and skips it.
pub(crate) struct Skip {
    /// The rates have to be known to this many per cent.
    half_width_pct: f64,
    /// The least length of the steady window.
    least_window_ns: u64,
    span_ns: u64,
    /// Time of the next observation; [`NEVER`] if there is none.
    pub(crate) next_at: u64,
    started_at: u64,
    last: Counts,
    series: [Vec<f64>; 2],
    phase: Phase,
    /// What was counted in the steady window.
    pub(crate) window: Option<Counters>,
}

impl Skip {
    /// Skips nothing.
    pub(crate) fn nothing() -> Skip {
        Skip {
            half_width_pct: 0.0,
            least_window_ns: 0,
            span_ns: SPAN_NS,
            next_at: NEVER,
            started_at: START_NS,
            last: [0; 2],
            series: [Vec::new(), Vec::new()],
            phase: Phase::WarmUp,
            window: None,
        }
    }

    /// The measured part begins at `now`.
    pub(crate) fn start(&mut self, now: u64) {
        if self.half_width_pct > 0.0 {
            let Skip { half_width_pct, least_window_ns, .. } = *self;
            let (started_at, next_at) = (now, now + SPAN_NS);
            *self = Skip { half_width_pct, least_window_ns, started_at, next_at, ..Skip::nothing() };
        }
    }

    /// What was skipped; None if nothing was.
    pub(crate) fn skipped(&self) -> Option<Skipped> {
        match self.phase {
            Phase::Done(skipped) => Some(skipped),
            _ => None,
        }
    }

    /// Time that was not simulated, in ns.
    pub(crate) fn skipped_ns(&self) -> u64 {
        self.skipped().map_or(0, |s| s.skipped_ns)
    }

    fn observe(&mut self, counts: Counts) {
        for ((series, count), last) in self.series.iter_mut().zip(counts).zip(self.last) {
            series.push((count - last) as f64 / self.span_ns as f64);
        }
        self.last = counts;
        if self.series[0].len() == MOST {
            self.span_ns *= 2;
            for series in &mut self.series {
                *series = series.chunks_exact(2).map(|pair| (pair[0] + pair[1]) / 2.0).collect();
            }
        }
        self.next_at += self.span_ns;
    }

    fn forget(&mut self) {
        self.series.iter_mut().for_each(Vec::clear);
    }

    /// Has everything that is observed settled? Few observations cannot tell.
    fn is_settled(&self) -> bool {
        self.series[0].len() >= 2 * LOOK_EVERY && self.series.iter().all(|series| warm_up(series).is_some())
    }

    /// Is the window so long that its rates should be known? If they are not, it may have begun too early.
    fn is_long(&self) -> bool {
        self.series[0].len() >= MOST / 2
    }

    /// The half widths of the rates' intervals in per cent, if they are narrow enough.
    fn narrow(&self) -> Option<[f64; 2]> {
        if self.series[0].len() < BATCHES * LEAST_IN_BATCH {
            return None;
        }
        let half_width_pct = |series| BatchMeans::of(series, BATCHES).map(|means| means.half_width_pct());
        let [work, switches] = &self.series;
        let widths = [half_width_pct(work)?, half_width_pct(switches)?];
        widths.iter().all(|pct| *pct <= self.half_width_pct).then_some(widths)
    }
}

impl Simulation<'_> {
    /// Skips the steady middle of the run, once the rates of messages or events and of context switches are known to
    /// `half_width_pct` per cent (95 % confidence) from a window of at least `least_window_ns`. A run without a steady
    /// middle, or of a workload that no loop or limit ends, is simulated whole. The interval knows nothing of what happens
    /// more rarely than once in the window. Intervals ([`with_intervals`](Self::with_intervals)) and changes
    /// ([`with_changes`](Self::with_changes)) have times of their own, which may not be skipped: a run has one or the other.
    pub fn with_skip(mut self, half_width_pct: f64, least_window_ns: u64) -> Self {
        self.skip.half_width_pct = half_width_pct;
        self.skip.least_window_ns = least_window_ns;
        self.skip.start(self.marked_start.unwrap_or(START_NS));
        self
    }

    /// Length of the measured part so far, with what was skipped of it.
    pub(crate) fn measured_ns(&self) -> u64 {
        self.now - self.marked_start.unwrap_or(START_NS) + self.skip.skipped_ns()
    }

    /// An observation is due; `now` is the time of the next event.
    pub(crate) fn observe(&mut self, now: u64) {
        while self.skip.next_at <= now {
            self.now = self.skip.next_at;
            self.skip.observe(self.counted());
            if self.skip.series[0].len() % LOOK_EVERY == 0 {
                self.look();
            }
        }
    }

    fn counted(&self) -> Counts {
        [self.intervals.ended(), &self.counters].iter().fold([0; 2], |[work, switches], c| {
            [work + c.work(), switches + c.switches_voluntary + c.switches_involuntary]
        })
    }

    fn look(&mut self) {
        match self.skip.phase {
            Phase::WarmUp if self.skip.is_settled() => self.begin_window(),
            Phase::WarmUp => {}
            Phase::Window { begun_at, progress } => {
                // a window that is shorter than the warm-up cannot tell whether that is over
                let least_ns = (begun_at - self.skip.started_at).max(self.skip.least_window_ns);
                let long_enough = self.now - begun_at >= least_ns;
                if let Some([work_pct, switches_pct]) = self.skip.narrow().filter(|_| long_enough) {
                    let window_ns = self.now - begun_at;
                    let warm_up_ns = begun_at - self.skip.started_at;
                    let known = Skipped { warm_up_ns, window_ns, work_pct, switches_pct, skipped_ns: 0 };
                    self.skip_middle(known, progress);
                } else if self.skip.is_long() && !self.skip.is_settled() {
                    self.begin_window();
                }
            }
            Phase::Done(_) => {}
        }
    }

    /// From here on it is steady, as far as one knows.
    fn begin_window(&mut self) {
        self.end_interval();
        let Some(progress) = self.progress() else { return };
        self.skip.forget();
        self.skip.window = Some(Counters::new(self.sys.code()));
        self.skip.phase = Phase::Window { begun_at: self.now, progress };
    }

    fn progress(&self) -> Option<Progress> {
        let units_left = self.loops()?.map_or(0.0, |loops| loops.mean_left);
        Some(Progress { units_left, repetitions: self.stop.repetitions() })
    }

    /// The outermost loops of all tasks; Some(None) if only limits end the workload, None if a task is in no loop.
    fn loops(&self) -> Option<Option<Loops>> {
        let mut counted = Vec::new();
        for task in &self.tasks {
            match task.outermost_loop() {
                _ if task.state == State::Dead || task.waits_for_children => {}
                None => return None,
                Some(repetitions) => counted.extend(repetitions),
            }
        }
        let units = counted.iter().fold(0, |units, (times, _)| gcd(units, *times));
        if units == 0 {
            return Some(None);
        }
        let left = counted.iter().map(|(times, left)| left.saturating_sub(1) / (times / units));
        let least_left = left.clone().min().unwrap_or(0);
        let mean_left = left.map(|left| left as f64).sum::<f64>() / counted.len() as f64;
        Some(Some(Loops { units, mean_left, least_left }))
    }

    /// Moves the workload on to shortly before its end, and adds what that takes.
    fn skip_middle(&mut self, known: Skipped, begun: Progress) {
        self.skip.next_at = NEVER;
        let Some(loops) = self.loops() else { return };
        // how many windows fit before the end begins, by everything that may end the workload
        let window = known.window_ns as f64;
        let end = (known.warm_up_ns as f64).max(window / 2.0) / window;
        let repetitions = self.stop.repetitions() - begun.repetitions;
        let mut windows = self.stop.left(self.now, window, repetitions as f64) - end;
        if let Some(loops) = loops {
            // whole units only, so that what one task writes another one still reads
            let done = begun.units_left - loops.mean_left;
            let units = ((loops.least_left as f64 / done - end).min(windows).max(0.0) * done) as u64;
            windows = units as f64 / done;
            for task in &mut self.tasks {
                if let Some(Some((times, _))) = task.outermost_loop() {
                    task.skip_repetitions(units * (times / loops.units));
                }
            }
        }
        if !windows.is_finite() || windows <= 0.0 {
            return;
        }
        let skipped_ns = (windows * window) as u64;
        self.stop.skip(skipped_ns, (windows * repetitions as f64) as u64);
        self.end_interval();
        let from_ns = self.measured_ns();
        let mut counted = self.skip.window.take().expect("a window was open").times(windows);
        counted.spread_events(from_ns, from_ns + skipped_ns);
        self.intervals.add(&counted);
        self.skip.phase = Phase::Done(Skipped { skipped_ns, ..known });
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}
