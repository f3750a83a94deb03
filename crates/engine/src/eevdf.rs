//! Earliest eligible virtual deadline first: the fair class's queue since 6.6.
//!
//! Each task has a virtual time `vruntime` that runs at 1024 / weight of real
//! time while it runs. With V the weighted mean of all vruntimes, a task's lag is
//! V - vruntime, and it is eligible while its lag is not negative. Of the eligible
//! tasks the one with the earliest virtual deadline runs, the deadline being the
//! vruntime at which its current request (slice) is served.
//! (Stoica and Abdel-Wahab 1995; kernel/sched/fair.c, 6.12.)

/// Weight of a nice-0 task.
pub(crate) const NICE_0_WEIGHT: u64 = 1024;

/// Weight of each nice value from -20 to 19: a step is about a tenth of the CPU
/// (sched_prio_to_weight, kernel/sched/core.c).
const WEIGHTS: [u32; 40] = [
    88761, 71755, 56483, 46273, 36291, 29154, 23254, 18705, 14949, 11916, 9548, 7620, 6100, 4904, 3906, 3121,
    2501, 1991, 1586, 1277, 1024, 820, 655, 526, 423, 335, 272, 215, 172, 137, 110, 87, 70, 56, 45, 36, 29,
    23, 18, 15,
];

/// The weight of a nice value; one out of range counts as the nearest that is in range.
pub(crate) fn weight_of_nice(nice: i8) -> u32 {
    WEIGHTS[(i32::from(nice) + 20).clamp(0, 39) as usize]
}

/// A task's place in virtual time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Entity {
    pub(crate) vruntime: i64,
    /// Its place in the queue; under CFS that is its vruntime.
    pub(crate) deadline: i64,
    /// Lag at the last time that it left a queue, in virtual ns.
    pub(crate) vlag: i64,
    /// The deadline that it had when it was picked; while it is unchanged, the
    /// request is not yet served (RUN_TO_PARITY).
    pub(crate) picked_deadline: i64,
    pub(crate) weight: u32,
    /// ns that it has run since it was last picked (CFS).
    pub(crate) ran: u64,
    /// It is on its way to another CPU: its vruntime counts from min_vruntime (CFS).
    pub(crate) relative: bool,
}

impl Entity {
    /// Real time to virtual time.
    pub(crate) fn calc_delta_fair(&self, delta: u64) -> i64 {
        if u64::from(self.weight) == NICE_0_WEIGHT {
            delta as i64
        } else {
            (u128::from(delta) * u128::from(NICE_0_WEIGHT) / u128::from(self.weight.max(1))) as i64
        }
    }

    /// Gives up what is left of the request (sched_yield).
    pub(crate) fn forfeit(&mut self, slice: u64) {
        self.deadline += self.calc_delta_fair(slice);
    }

    /// Charges `delta` ns of running; true if the request is served and a new one begins.
    pub(crate) fn update_curr(&mut self, delta: u64, slice: u64) -> bool {
        self.vruntime += self.calc_delta_fair(delta);
        let served = self.vruntime >= self.deadline;
        if served {
            self.deadline = self.vruntime + self.calc_delta_fair(slice);
        }
        served
    }
}

#[derive(Clone, Copy, Debug)]
struct Queued {
    deadline: i64,
    vruntime: i64,
    task: u32,
}

/// One CPU's queue of waiting fair tasks, in order of deadline. The running
/// task is not in it; callers pass it where it counts.
#[derive(Default)]
pub(crate) struct RunQueue {
    queue: Vec<Queued>,
    /// Where virtual times are counted from, so that the sums below stay small.
    base: i64,
    /// Sum of (vruntime - base) * weight over the queue.
    sum: i64,
    weight: i64,
}

impl RunQueue {
    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// The waiting tasks in order of deadline.
    pub(crate) fn tasks(&self) -> impl DoubleEndedIterator<Item = u32> {
        self.queue.iter().map(|q| q.task)
    }

    /// The vruntime of the first task.
    pub(crate) fn first_vruntime(&self) -> Option<i64> {
        self.queue.first().map(|q| q.vruntime)
    }

    /// (sum of (vruntime - base) * weight, total weight), the running task included.
    fn load(&self, curr: Option<&Entity>) -> (i64, i64) {
        match curr {
            Some(c) => {
                (self.sum + (c.vruntime - self.base) * i64::from(c.weight), self.weight + i64::from(c.weight))
            }
            None => (self.sum, self.weight),
        }
    }

    /// V: the weighted mean of the vruntimes, rounded down.
    pub(crate) fn avg_vruntime(&self, curr: Option<&Entity>) -> i64 {
        match self.load(curr) {
            (_, 0) => self.base,
            (sum, weight) => self.base + sum.div_euclid(weight),
        }
    }

    /// Does it have a lag that is not negative?
    pub(crate) fn entity_eligible(&self, vruntime: i64, curr: Option<&Entity>) -> bool {
        let (sum, weight) = self.load(curr);
        sum >= (vruntime - self.base) * weight
    }

    /// Moves the origin of virtual time to V; keeps every comparison as it is.
    pub(crate) fn rebase(&mut self, curr: Option<&Entity>) {
        let v = self.avg_vruntime(curr);
        self.sum -= (v - self.base) * self.weight;
        self.base = v;
    }

    /// Puts a task into the queue at its vruntime and deadline.
    pub(crate) fn enqueue(&mut self, task: u32, se: &Entity) {
        let at = self.queue.partition_point(|q| q.deadline <= se.deadline);
        self.queue.insert(at, Queued { deadline: se.deadline, vruntime: se.vruntime, task });
        self.sum += (se.vruntime - self.base) * i64::from(se.weight);
        self.weight += i64::from(se.weight);
    }

    /// Takes a task out of the queue.
    pub(crate) fn dequeue(&mut self, task: u32, se: &Entity) {
        let from = self.queue.partition_point(|q| q.deadline < se.deadline);
        let at = from
            + self.queue[from..]
                .iter()
                .position(|q| q.task == task)
                .expect("a queued task is found at its deadline");
        self.queue.remove(at);
        self.sum -= (se.vruntime - self.base) * i64::from(se.weight);
        self.weight -= i64::from(se.weight);
    }

    /// Places a task that comes (back) to the queue: at V, less the lag that it
    /// left with. Its own weight will pull V along, so the lag is scaled up to be
    /// what it was once the task is in.
    pub(crate) fn place_entity(&self, se: &mut Entity, curr: Option<&Entity>, slice: u64, lag: bool) {
        let (_, weight) = self.load(curr);
        let mut vlag = 0;
        if lag && weight > 0 && se.vlag != 0 {
            let total = weight + i64::from(se.weight);
            vlag = (i128::from(se.vlag) * i128::from(total) / i128::from(weight)) as i64;
        }
        se.vruntime = self.avg_vruntime(curr) - vlag;
        se.deadline = se.vruntime + se.calc_delta_fair(slice);
    }

    /// Notes the lag of a task that leaves, at most two slices or a tick either way.
    pub(crate) fn update_entity_lag(&self, se: &mut Entity, curr: Option<&Entity>, slice: u64, tick: u64) {
        let limit = se.calc_delta_fair((2 * slice).max(tick));
        se.vlag = (self.avg_vruntime(curr) - se.vruntime).clamp(-limit, limit);
    }

    /// The queued task that should run next, or None if `curr` should go on (or nothing waits).
    ///
    /// `curr` is the running task while it wants to run on. With `to_parity` it
    /// keeps the CPU, as long as it is eligible, until its request is served.
    pub(crate) fn pick_eevdf(&mut self, curr: Option<&Entity>, to_parity: bool) -> Option<u32> {
        if let Some(c) = curr {
            let eligible = self.entity_eligible(c.vruntime, curr);
            if eligible && to_parity && c.picked_deadline == c.deadline {
                return None;
            }
            let best = self.first_eligible(curr)?;
            return (!eligible || best.deadline <= c.deadline).then_some(best.task);
        }
        self.rebase(None);
        self.first_eligible(None).map(|q| q.task)
    }

    fn first_eligible(&self, curr: Option<&Entity>) -> Option<&Queued> {
        self.queue.iter().find(|q| self.entity_eligible(q.vruntime, curr))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SLICE: u64 = 3_000_000;

    fn se(vruntime: i64, deadline: i64, weight: u32) -> Entity {
        Entity { vruntime, deadline, weight, ..Entity::default() }
    }

    #[test]
    fn mean_is_weighted_and_rounds_down() {
        let mut rq = RunQueue::default();
        rq.enqueue(1, &se(-10, 0, 1024));
        rq.enqueue(2, &se(5, 0, 2048));
        assert_eq!(rq.avg_vruntime(None), 0, "(-10 + 2 * 5) / 3");
        rq.enqueue(3, &se(-1, 0, 1024));
        assert_eq!(rq.avg_vruntime(None), -1, "-1/4 rounds down");
        assert_eq!(rq.avg_vruntime(Some(&se(29, 0, 1024))), 5, "28 / 5");
    }

    #[test]
    fn earliest_deadline_runs_only_if_eligible() {
        let mut rq = RunQueue::default();
        rq.enqueue(1, &se(300, 310, 1024)); // earliest deadline, but ahead of V = 200
        rq.enqueue(2, &se(100, 400, 1024));
        assert_eq!(rq.pick_eevdf(None, true), Some(2));
        rq.enqueue(3, &se(500, 600, 1024)); // V = 300 now
        assert_eq!(rq.pick_eevdf(None, true), Some(1));
    }

    #[test]
    fn run_to_parity_keeps_the_running_task_until_its_request_is_served() {
        let mut rq = RunQueue::default();
        let mut curr = se(0, 3_000_000, 1024);
        curr.picked_deadline = curr.deadline;
        rq.enqueue(7, &se(0, 1_000_000, 1024));
        assert_eq!(rq.pick_eevdf(Some(&curr), true), None);
        assert_eq!(rq.pick_eevdf(Some(&curr), false), Some(7), "the earlier deadline");
        assert!(!curr.update_curr(2_999_999, SLICE));
        assert!(curr.update_curr(1, SLICE));
        assert_eq!(rq.pick_eevdf(Some(&curr), true), Some(7));
    }

    #[test]
    fn lag_survives_a_sleep() {
        let mut rq = RunQueue::default();
        let curr = se(1_000, 9_000, 1024);
        let mut sleeper = se(0, 0, 1024);
        rq.enqueue(1, &sleeper);
        rq.dequeue(1, &sleeper);
        // V = (1000 + 0) / 2 with the sleeper in; it left owed 500
        rq.enqueue(1, &sleeper);
        let v = rq.avg_vruntime(Some(&curr));
        rq.dequeue(1, &sleeper);
        sleeper.vlag = v - sleeper.vruntime;
        assert_eq!(sleeper.vlag, 500);
        rq.place_entity(&mut sleeper, Some(&curr), SLICE, true);
        // 1000 - 500 * 2: once it is in, V is 500 and its lag 500 again
        assert_eq!(sleeper.vruntime, 0);
        rq.place_entity(&mut sleeper, Some(&curr), SLICE, false);
        assert_eq!(sleeper.vruntime, 1_000, "without PLACE_LAG it comes back at V");
    }

    #[test]
    fn lag_is_bounded_by_two_slices() {
        let rq = RunQueue::default();
        let mut far = se(-1_000_000_000, 0, 1024);
        rq.update_entity_lag(&mut far, Some(&se(0, 0, 1024)), SLICE, 4_000_000);
        assert_eq!(far.vlag, 6_000_000);
    }

    #[test]
    fn heavier_tasks_age_slower() {
        let mut heavy = se(0, i64::MAX, 2048);
        heavy.update_curr(1_000, SLICE);
        assert_eq!(heavy.vruntime, 500);
    }

    proptest! {
        /// Some waiting task is always eligible, and the pick is the eligible one of earliest deadline.
        #[test]
        fn pick_is_the_eligible_task_of_earliest_deadline(
            tasks in prop::collection::vec((-1_000_000i64..1_000_000, 0i64..5_000_000, 3u32..90_000), 1..40)
        ) {
            let mut rq = RunQueue::default();
            for (i, (v, d, w)) in tasks.iter().enumerate() {
                rq.enqueue(i as u32, &se(*v, v + d, *w));
            }
            let total: i128 = tasks.iter().map(|t| i128::from(t.2)).sum();
            let sum: i128 = tasks.iter().map(|t| i128::from(t.0) * i128::from(t.2)).sum();
            let best = tasks.iter().enumerate()
                .filter(|(_, t)| sum >= i128::from(t.0) * total)
                .map(|(i, t)| (t.0 + t.1, i)).min_by_key(|x| x.0).unwrap();
            let picked = rq.pick_eevdf(None, true).unwrap();
            let t = tasks[picked as usize];
            prop_assert_eq!(t.0 + t.1, best.0);
            // taking all out again leaves nothing behind
            for (i, (v, d, w)) in tasks.iter().enumerate() {
                rq.dequeue(i as u32, &se(*v, v + d, *w));
            }
            prop_assert_eq!((rq.sum, rq.weight, rq.queue.len()), (0, 0, 0));
        }
    }
}
