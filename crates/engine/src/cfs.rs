//! The completely fair scheduler: the fair class's queue until 6.5.
//!
//! Each task has a virtual time `vruntime` that runs at 1024 / weight of real time while
//! it runs, and the task that is behind all others runs next. A sleeper comes back a
//! little behind the others, and preempts the running task if that is ahead of it by
//! more than the wakeup granularity; the running task's turn ends at a tick. Two
//! *buddies* are preferred to the task that is farthest behind, and one is passed over,
//! as long as that puts nobody back by more than the wakeup granularity.
//! (kernel/sched/fair.c, 4.8 to 6.5, without task groups as entities.)
//!
//! Under CFS the waiting tasks stand in [`crate::eevdf::RunQueue`] in order of vruntime:
//! their deadline is their vruntime.

use crate::eevdf::Entity;
use std::cmp::Ordering;

/// The tunables of CFS, scaled by the number of CPUs; all in ns.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Granularity {
    /// Each of few tasks runs once in this time.
    pub(crate) latency: u64,
    /// Each of many tasks runs for this time.
    pub(crate) min: u64,
    /// A woken task preempts if it is behind by more.
    pub(crate) wakeup: u64,
}

impl Granularity {
    /// Number of tasks up to which the period is the latency (sched_nr_latency).
    pub(crate) fn nr_latency(&self) -> u64 {
        self.latency.div_ceil(self.min)
    }

    /// The part of a period that is due to a task of this weight, in ns: one of `nr_running`
    /// tasks, which weigh `load` together, itself included.
    pub(crate) fn sched_slice(&self, weight: u32, nr_running: u64, load: u64) -> u64 {
        let period = if nr_running > self.nr_latency() { nr_running * self.min } else { self.latency };
        (u128::from(period) * u128::from(weight) / u128::from(load.max(1))) as u64
    }

    /// How far behind the others a sleeper comes back, in virtual ns. One of policy
    /// SCHED_IDLE gets less (`idle`), and with GENTLE_FAIR_SLEEPERS (`gentle`) all get half.
    pub(crate) fn sleeper_credit(&self, idle: bool, gentle: bool) -> i64 {
        let credit = if idle { self.min } else { self.latency };
        (if gentle { credit / 2 } else { credit }) as i64
    }

    /// Is `curr` ahead of `se`: not at all, by up to a wakeup granularity, or by more?
    pub(crate) fn wakeup_preempt_entity(&self, curr: &Entity, se: &Entity) -> Ordering {
        let ahead = curr.vruntime - se.vruntime;
        if ahead <= 0 {
            Ordering::Less
        } else if ahead > se.calc_delta_fair(self.wakeup) {
            Ordering::Greater
        } else {
            Ordering::Equal
        }
    }
}

impl Entity {
    /// Moves to this vruntime.
    fn move_to(&mut self, vruntime: i64) {
        self.vruntime = vruntime;
        self.deadline = vruntime;
    }

    /// Charges `delta` ns of running.
    pub(crate) fn charge(&mut self, delta: u64) {
        self.ran += delta;
        self.move_to(self.vruntime + self.calc_delta_fair(delta));
    }
}

/// What CFS knows of one CPU besides the tasks that wait there.
#[derive(Default)]
pub(crate) struct CfsRq {
    /// Follows the least vruntime of the CPU's tasks, and never goes back: where tasks are placed from.
    min_vruntime: i64,
    /// A woken task that is to run next.
    next: Option<u32>,
    /// A task that was preempted by a woken one, and is to go on after it.
    last: Option<u32>,
    /// A task that has yielded.
    pub(crate) skip: Option<u32>,
}

impl CfsRq {
    /// `curr` is the running task while it wants to run on, `leftmost` the least vruntime that waits.
    pub(crate) fn update_min_vruntime(&mut self, curr: Option<&Entity>, leftmost: Option<i64>) {
        let least = curr.map(|c| c.vruntime).into_iter().chain(leftmost).min();
        self.min_vruntime = self.min_vruntime.max(least.unwrap_or(self.min_vruntime));
    }

    /// Places a task that comes to the queue `offset` virtual ns after min_vruntime, or
    /// where it is if that is later: nobody gains time by sleeping shortly.
    pub(crate) fn place_entity(&self, se: &mut Entity, offset: i64) {
        se.move_to(se.vruntime.max(self.min_vruntime + offset));
    }

    /// The task leaves for another CPU: it takes along how far it is ahead of min_vruntime.
    pub(crate) fn leave(&self, se: &mut Entity) {
        se.move_to(se.vruntime - self.min_vruntime);
        se.relative = true;
    }

    /// A task that may have left another CPU is as far ahead of min_vruntime here as it was there.
    pub(crate) fn join(&self, se: &mut Entity) {
        if std::mem::take(&mut se.relative) {
            se.move_to(se.vruntime + self.min_vruntime);
        }
    }

    /// Prefers a woken task.
    pub(crate) fn set_next_buddy(&mut self, task: u32) {
        self.next = Some(task);
    }

    /// Prefers a task that is preempted.
    pub(crate) fn set_last_buddy(&mut self, task: u32) {
        self.last = Some(task);
    }

    /// Neither prefers the task any more nor passes it over.
    pub(crate) fn clear_buddies(&mut self, task: u32) {
        for buddy in [&mut self.next, &mut self.last, &mut self.skip] {
            buddy.take_if(|b| *b == task);
        }
    }

    /// Is the task preferred?
    pub(crate) fn is_buddy(&self, task: u32) -> bool {
        self.next == Some(task) || self.last == Some(task)
    }

    /// At a tick: has the running task had its slice, or got a slice ahead of the leftmost one?
    pub(crate) fn check_preempt_tick(
        &mut self,
        (task, curr): (u32, &Entity),
        leftmost: i64,
        slice: u64,
        min_granularity: u64,
    ) -> bool {
        if curr.ran > slice {
            // or it would be chosen again as a buddy
            self.clear_buddies(task);
            return true;
        }
        curr.ran >= min_granularity && curr.vruntime - leftmost > slice as i64
    }

    /// The task to run, of `waiting` (in order of vruntime) and `curr`, the running one while it wants to run on.
    pub(crate) fn pick_next_entity(
        &self,
        mut waiting: impl Iterator<Item = u32>,
        curr: Option<u32>,
        granularity: &Granularity,
        se: impl Fn(u32) -> Entity,
    ) -> Option<u32> {
        let (first, second) = (waiting.next(), waiting.next());
        // the earlier of a waiting task and the running one
        let earlier = |task: Option<u32>| match (task, curr) {
            (Some(t), Some(c)) if se(c).vruntime < se(t).vruntime => curr,
            (Some(_), _) => task,
            (None, _) => curr,
        };
        let left = earlier(first)?;
        let after_left = if Some(left) == curr { first } else { earlier(second) };
        let is_fair = |t: &u32| granularity.wakeup_preempt_entity(&se(*t), &se(left)).is_le();
        let passed_over = self.skip == Some(left);
        self.next
            .filter(is_fair)
            .or_else(|| self.last.filter(is_fair))
            .or_else(|| after_left.filter(|t| passed_over && is_fair(t)))
            .or(Some(left))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: u64 = 1_000_000;
    /// The defaults on a machine of one CPU.
    const DEFAULT: Granularity = Granularity { latency: 6 * MS, min: 750_000, wakeup: MS };

    fn se(vruntime: i64, weight: u32) -> Entity {
        Entity { vruntime, deadline: vruntime, weight, ..Entity::default() }
    }

    #[test]
    fn a_period_is_shared_by_weight_and_stretched_for_many() {
        assert_eq!(DEFAULT.nr_latency(), 8);
        assert_eq!(DEFAULT.sched_slice(1024, 2, 2048), 3 * MS);
        assert_eq!(DEFAULT.sched_slice(1024, 8, 8 * 1024), 750_000);
        assert_eq!(DEFAULT.sched_slice(1024, 12, 12 * 1024), 750_000, "9 ms for twelve");
        assert_eq!(DEFAULT.sched_slice(2048, 2, 3072), 4 * MS);
        assert_eq!(DEFAULT.sched_slice(1024, 0, 0), 6_144 * MS, "no load is no panic");
    }

    #[test]
    fn a_sleeper_comes_back_half_a_latency_behind() {
        let rq = CfsRq { min_vruntime: 100 * MS as i64, ..CfsRq::default() };
        let back = |from: i64, idle, gentle| {
            let mut sleeper = se(from, 1024);
            rq.place_entity(&mut sleeper, -DEFAULT.sleeper_credit(idle, gentle));
            assert_eq!(sleeper.deadline, sleeper.vruntime);
            sleeper.vruntime
        };
        assert_eq!(back(0, false, true), 97_000_000);
        assert_eq!(back(0, false, false), 94_000_000);
        assert_eq!(back(0, true, true), 99_625_000);
        assert_eq!(back(99_000_000, false, true), 99_000_000, "a short sleep gains nothing");
    }

    #[test]
    fn a_waker_is_preempted_beyond_the_granularity_of_the_woken() {
        let by = |ahead: i64, weight| DEFAULT.wakeup_preempt_entity(&se(ahead, 1024), &se(0, weight));
        assert_eq!(by(0, 1024), Ordering::Less);
        assert_eq!(by(1, 1024), Ordering::Equal);
        assert_eq!(by(1_000_000, 1024), Ordering::Equal);
        assert_eq!(by(1_000_001, 1024), Ordering::Greater);
        // 1 ms is 0.5 ms of virtual time to a task of twice the weight
        assert_eq!(by(500_001, 2048), Ordering::Greater);
    }

    #[test]
    fn min_vruntime_follows_and_never_goes_back() {
        let mut rq = CfsRq::default();
        let mut after = |curr: Option<i64>, leftmost| {
            rq.update_min_vruntime(curr.map(|v| se(v, 1024)).as_ref(), leftmost);
            rq.min_vruntime
        };
        assert_eq!(after(Some(50), Some(20)), 20);
        assert_eq!(after(Some(50), Some(60)), 50);
        assert_eq!(after(None, Some(40)), 50);
        assert_eq!(after(None, None), 50);
        assert_eq!(after(None, Some(70)), 70);
    }

    #[test]
    fn a_task_keeps_its_distance_from_min_vruntime_across_cpus() {
        let (from, to) = (
            CfsRq { min_vruntime: 1_000, ..CfsRq::default() },
            CfsRq { min_vruntime: 7, ..CfsRq::default() },
        );
        let mut t = se(1_300, 1024);
        from.leave(&mut t);
        to.join(&mut t);
        assert_eq!((t.vruntime, t.deadline), (307, 307));
        to.join(&mut t);
        assert_eq!(t.vruntime, 307, "who has not left does not move");
    }

    #[test]
    fn a_turn_ends_at_a_tick() {
        let mut rq = CfsRq::default();
        let mut ends = |ran: u64, ahead: i64| {
            rq.set_last_buddy(1);
            let curr = Entity { ran, ..se(ahead, 1024) };
            (rq.check_preempt_tick((1, &curr), 0, 3 * MS, 750_000), rq.is_buddy(1))
        };
        assert_eq!(ends(3 * MS, 3_000_000), (false, true));
        assert_eq!(ends(3 * MS + 1, 0), (true, false), "and a buddy has had its turn");
        assert_eq!(ends(750_000, 3_000_001), (true, true));
        assert_eq!(ends(749_999, 3_000_001), (false, true), "not before the least granularity");
    }

    /// Tasks 0.. have these vruntimes; the last one runs if `runs`.
    fn pick(rq: &CfsRq, vruntimes: &[i64], runs: bool) -> Option<u32> {
        let waiting = vruntimes.len() - usize::from(runs);
        let mut order: Vec<u32> = (0..waiting as u32).collect();
        order.sort_by_key(|t| vruntimes[*t as usize]);
        let curr = runs.then_some(waiting as u32);
        rq.pick_next_entity(order.into_iter(), curr, &DEFAULT, |t| se(vruntimes[t as usize], 1024))
    }

    #[test]
    fn who_is_farthest_behind_runs() {
        let rq = CfsRq::default();
        assert_eq!(pick(&rq, &[], false), None);
        assert_eq!(pick(&rq, &[5, 3, 4], false), Some(1));
        assert_eq!(pick(&rq, &[5, 3, 4, 2], true), Some(3));
        assert_eq!(pick(&rq, &[5, 3, 4, 3], true), Some(1), "a tie goes to who waits");
    }

    #[test]
    fn buddies_run_unless_that_is_unfair() {
        let mut rq = CfsRq::default();
        rq.set_last_buddy(1);
        assert_eq!(pick(&rq, &[0, 1_000_000, 10], false), Some(1));
        assert_eq!(pick(&rq, &[0, 1_000_001, 10], false), Some(0));
        rq.set_next_buddy(2);
        assert_eq!(pick(&rq, &[0, 1_000_000, 10], false), Some(2), "the next one before the last one");
        rq.clear_buddies(2);
        rq.clear_buddies(0);
        assert_eq!(pick(&rq, &[0, 1_000_000, 10], false), Some(1));
    }

    #[test]
    fn who_yielded_is_passed_over_unless_that_is_unfair() {
        let rq = CfsRq { skip: Some(2), ..CfsRq::default() };
        assert_eq!(pick(&rq, &[900_000, 800_000, 0], true), Some(1));
        assert_eq!(pick(&rq, &[1_900_000, 1_800_000, 0], true), Some(2));
        assert_eq!(pick(&rq, &[900_000, 800_000, 0], false), Some(1), "also while it waits");
        assert_eq!(pick(&rq, &[900_000, 800_000, 850_000], true), Some(1), "it was not its turn");
    }

    proptest! {
        /// Whatever the buddies, nobody runs who is ahead of another by more than the granularity.
        #[test]
        fn the_pick_is_never_unfair(
            vruntimes in prop::collection::vec(0i64..4_000_000, 1..12),
            runs in any::<bool>(),
            buddies in prop::array::uniform3(prop::option::of(0usize..12)),
        ) {
            let [next, last, skip] = buddies.map(|b| b.map(|b| (b % vruntimes.len()) as u32));
            let rq = CfsRq { next, last, skip, ..CfsRq::default() };
            let picked = pick(&rq, &vruntimes, runs).unwrap();
            let ahead = vruntimes[picked as usize] - vruntimes.iter().min().unwrap();
            prop_assert!(ahead <= DEFAULT.wakeup as i64);
        }

        /// Tasks that always run in turn have run in proportion to their weights.
        #[test]
        fn time_is_shared_by_weight(weights in prop::collection::vec(15u32..9_000, 2..6)) {
            let mut tasks: Vec<Entity> = weights.iter().map(|w| se(0, *w)).collect();
            let rq = CfsRq::default();
            for _ in 0..2_000 {
                let mut order: Vec<u32> = (0..tasks.len() as u32).collect();
                order.sort_by_key(|t| tasks[*t as usize].vruntime);
                let next = rq.pick_next_entity(order.into_iter(), None, &DEFAULT, |t| tasks[t as usize]).unwrap();
                tasks[next as usize].charge(100_000);
            }
            // no task is ahead of another by more than one turn of the lightest
            let turn = 100_000 * 1024 / i64::from(*weights.iter().min().unwrap());
            let vruntimes = || tasks.iter().map(|t| t.vruntime);
            prop_assert!(vruntimes().max().unwrap() - vruntimes().min().unwrap() <= turn + 1);
        }
    }
}
