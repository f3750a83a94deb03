//! How fast CPUs ran, where a recording counts their cycles. Work is what a task would have taken at its CPU's fastest speed.

use super::Import;
use super::draft::Draft;

/// Work of tasks, as their time on a CPU and as it is at that CPU's fastest speed.
#[derive(Default)]
pub(super) struct Speed {
    time: u64,
    work: u64,
}

impl Speed {
    /// The average speed, in percent of the fastest; `None` if no cycles were counted.
    pub(super) fn pct(&self) -> Option<f64> {
        (self.time > 0).then(|| 100.0 * self.work as f64 / self.time as f64)
    }

    fn scale(&mut self, work: &mut u64, before: u64, khz: u32, fastest_khz: u32) {
        let time = *work - before;
        let scaled = (u128::from(time) * u128::from(khz) / u128::from(fastest_khz.max(1))) as u64;
        self.time += time;
        self.work += scaled;
        *work = before + scaled;
    }
}

impl Import {
    /// What a task has done since it was switched to was done at this speed.
    pub(super) fn ran_at(&mut self, index: usize, khz: u32, fastest_khz: u32) {
        let task = &mut self.tasks[index];
        let (from, mut before) = task.switched_to;
        for draft in task.drafts.iter_mut().skip(from) {
            if let Draft::Run { work, .. } = draft {
                self.speed.scale(work, std::mem::take(&mut before), khz, fastest_khz);
            }
        }
        self.speed.scale(&mut task.open.0, before, khz, fastest_khz);
        task.switched_to = (task.drafts.len(), task.open.0);
    }
}
