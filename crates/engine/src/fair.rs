//! The fair class's queues: what either discipline, EEVDF or CFS, does at each step of a task's life.

use crate::cfs::Granularity;
use crate::sim::Simulation;
use coreward_policy::layout::{TASK_SCHED_IDLE, WF_FORK};
use coreward_policy::{Feature, System, Tunable};

/// Why a task comes to a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Enqueue {
    /// It slept.
    Wakeup,
    /// It has just been created.
    New,
    /// It waited on another CPU.
    Migration,
}

/// CFS's tunables times `scale`; None if the queues are EEVDF's.
pub(crate) fn cfs_granularity(sys: &System, scale: u64) -> Option<Granularity> {
    let scaled = |tunable| sys.tunable(tunable) as u64 * scale;
    (!sys.sched_feat(Feature::EEVDF)).then(|| Granularity {
        latency: scaled(Tunable::latency_ns),
        min: scaled(Tunable::min_granularity_ns),
        wakeup: scaled(Tunable::wakeup_granularity_ns),
    })
}

impl Simulation<'_> {
    fn is_sched_idle(&self, task: u32) -> bool {
        self.tasks[task as usize].policy.flags & TASK_SCHED_IDLE != 0
    }

    /// Charges the current task `delta` ns. Under EEVDF others get a turn if its request is served.
    pub(crate) fn charge_curr(&mut self, cpu: usize, curr: u32, delta: u64) {
        let se = &mut self.tasks[curr as usize].se;
        if self.cfs.is_some() {
            se.charge(delta);
            self.update_min_vruntime(cpu);
        } else if se.update_curr(delta, self.base_slice_ns) && self.sys.cpu[cpu].cfs_nr_running > 1 {
            self.cpus[cpu].need_resched = true;
        }
    }

    fn update_min_vruntime(&mut self, cpu: usize) {
        let curr = self.running_entity(cpu);
        let c = &mut self.cpus[cpu];
        c.cfs.update_min_vruntime(curr.as_ref(), c.rq.first_vruntime());
    }

    /// A new task begins with its parent, which creates it on `cpu`; under CFS a slice later.
    pub(crate) fn task_fork(&mut self, task: u32, cpu: usize) {
        let Some(granularity) = self.cfs else { return };
        self.update_curr(cpu);
        let rq = &self.sys.cpu[cpu];
        let se = &mut self.tasks[task as usize].se;
        let load = rq.load_weight + u64::from(se.weight);
        let slice = granularity.sched_slice(se.weight, u64::from(rq.cfs_nr_running) + 1, load);
        let debit = if self.feature(Feature::START_DEBIT) { slice } else { 0 };
        let parent = self.running_entity(cpu);
        let se = &mut self.tasks[task as usize].se;
        se.vruntime = parent.map_or(0, |p| p.vruntime);
        self.cpus[cpu].cfs.place_entity(se, se.calc_delta_fair(debit));
        self.cpus[cpu].cfs.leave(se);
    }

    /// A woken task leaves `cpu`, where it slept.
    pub(crate) fn migrate_task_rq(&mut self, task: u32, cpu: usize) {
        if self.cfs.is_some() {
            self.cpus[cpu].cfs.leave(&mut self.tasks[task as usize].se);
        }
    }

    /// Places a task that comes to `cpu`'s queue, and queues it.
    pub(crate) fn enqueue_entity(&mut self, cpu: usize, task: u32, why: Enqueue) {
        if let Some(granularity) = self.cfs {
            let credit = granularity
                .sleeper_credit(self.is_sched_idle(task), self.feature(Feature::GENTLE_FAIR_SLEEPERS));
            let se = &mut self.tasks[task as usize].se;
            self.cpus[cpu].cfs.join(se);
            if why == Enqueue::Wakeup {
                self.cpus[cpu].cfs.place_entity(se, -credit);
            }
        } else {
            self.place_entity(cpu, task, why == Enqueue::New);
        }
        self.cpus[cpu].rq.enqueue(task, &self.tasks[task as usize].se);
    }

    /// EEVDF: places a task that comes to `cpu`'s queue.
    pub(crate) fn place_entity(&mut self, cpu: usize, task: u32, new: bool) {
        let curr = self.running_entity(cpu);
        let mut slice = self.base_slice_ns;
        if new && self.feature(Feature::PLACE_DEADLINE_INITIAL) {
            slice /= 2;
        }
        let lag = self.feature(Feature::PLACE_LAG);
        self.cpus[cpu].rq.place_entity(&mut self.tasks[task as usize].se, curr.as_ref(), slice, lag);
    }

    /// EEVDF: notes the lag of a task that leaves `cpu`.
    pub(crate) fn update_entity_lag(&mut self, cpu: usize, task: u32) {
        let curr = self.running_entity(cpu);
        let (slice, tick) = (self.base_slice_ns, self.tick_ns);
        let se = &mut self.tasks[task as usize].se;
        self.cpus[cpu].rq.update_entity_lag(se, curr.as_ref(), slice, tick);
    }

    /// The current task has gone to sleep, or ended.
    pub(crate) fn dequeue_curr(&mut self, cpu: usize, task: u32) {
        if self.cfs.is_some() {
            self.cpus[cpu].cfs.clear_buddies(task);
            self.update_min_vruntime(cpu);
        } else {
            let (slice, tick) = (self.base_slice_ns, self.tick_ns);
            let t = &mut self.tasks[task as usize];
            let curr = t.se;
            self.cpus[cpu].rq.update_entity_lag(&mut t.se, Some(&curr), slice, tick);
        }
    }

    /// Takes a waiting task off `cpu`'s queue, to which it does not come back before it is placed anew.
    pub(crate) fn dequeue_waiting(&mut self, cpu: usize, task: u32) {
        if self.cfs.is_none() {
            self.update_entity_lag(cpu, task);
        }
        self.cpus[cpu].rq.dequeue(task, &self.tasks[task as usize].se);
        if self.cfs.is_some() {
            let c = &mut self.cpus[cpu];
            c.cfs.clear_buddies(task);
            // before min_vruntime follows the others, which this task may have held back
            c.cfs.leave(&mut self.tasks[task as usize].se);
            self.update_min_vruntime(cpu);
        }
    }

    /// The current task was chosen to run from now on.
    pub(crate) fn set_next_entity(&mut self, cpu: usize, task: u32) {
        let se = &mut self.tasks[task as usize].se;
        let c = &mut self.cpus[cpu];
        c.rq.dequeue(task, se);
        c.cfs.clear_buddies(task);
        se.picked_deadline = se.deadline;
        se.ran = 0;
    }

    /// The waiting task that should run next; None if the current one goes on, or if there is none.
    pub(crate) fn pick_next_entity(&mut self, cpu: usize) -> Option<u32> {
        let entity = self.running_entity(cpu);
        let Some(granularity) = self.cfs else {
            let parity = self.feature(Feature::RUN_TO_PARITY);
            return self.cpus[cpu].rq.pick_eevdf(entity.as_ref(), parity);
        };
        if entity.is_none() {
            self.cpus[cpu].rq.rebase(None);
        }
        let c = &self.cpus[cpu];
        let curr = c.curr.filter(|_| entity.is_some());
        let picked = c.cfs.pick_next_entity(c.rq.tasks(), curr, &granularity, |t| self.tasks[t as usize].se);
        picked.filter(|_| picked != curr)
    }

    /// At a tick: under CFS the current task's turn may be over.
    pub(crate) fn entity_tick(&mut self, cpu: usize, curr: u32) {
        let Some(granularity) = self.cfs else { return };
        let rq = &self.sys.cpu[cpu];
        let (Some(se), Some(leftmost)) = (self.running_entity(cpu), self.cpus[cpu].rq.first_vruntime())
        else {
            return;
        };
        let slice = granularity.sched_slice(se.weight, u64::from(rq.cfs_nr_running), rq.load_weight);
        let c = &mut self.cpus[cpu];
        if c.cfs.check_preempt_tick((curr, &se), leftmost, slice, granularity.min) {
            c.need_resched = true;
        }
    }

    /// Should the task that just came to `cpu`'s queue run in place of the current one?
    pub(crate) fn wakeup_preempt(&mut self, task: u32, cpu: usize, by: usize, wake_flags: u32) {
        let preempts = match (self.cpus[cpu].curr, self.cfs) {
            (None, _) => true,
            (Some(curr), None) => self.check_preempt_eevdf(task, curr, cpu),
            (Some(curr), Some(granularity)) => {
                self.check_preempt_cfs(task, curr, cpu, wake_flags, &granularity)
            }
        };
        if preempts {
            self.resched_curr(cpu, by);
        }
    }

    fn check_preempt_eevdf(&mut self, task: u32, curr: u32, cpu: usize) -> bool {
        if self.cpus[cpu].need_resched || !self.feature(Feature::WAKEUP_PREEMPTION) {
            return false;
        }
        if self.is_sched_idle(curr) != self.is_sched_idle(task) {
            return self.is_sched_idle(curr);
        }
        self.pick_next_entity(cpu) == Some(task)
    }

    fn check_preempt_cfs(
        &mut self,
        task: u32,
        curr: u32,
        cpu: usize,
        wake_flags: u32,
        granularity: &Granularity,
    ) -> bool {
        let crowded = u64::from(self.sys.cpu[cpu].cfs_nr_running) >= granularity.nr_latency();
        let idle = self.is_sched_idle(task);
        if crowded && !idle && wake_flags & WF_FORK == 0 && self.feature(Feature::NEXT_BUDDY) {
            self.cpus[cpu].cfs.set_next_buddy(task);
        }
        if self.cpus[cpu].need_resched {
            return false;
        }
        if self.is_sched_idle(curr) {
            return !idle;
        }
        if idle || !self.feature(Feature::WAKEUP_PREEMPTION) {
            return false;
        }
        let se = self.tasks[task as usize].se;
        let behind = |c| granularity.wakeup_preempt_entity(&c, &se).is_gt();
        if !self.running_entity(cpu).is_none_or(behind) {
            return false;
        }
        let last = crowded && self.feature(Feature::LAST_BUDDY);
        let cfs = &mut self.cpus[cpu].cfs;
        cfs.set_next_buddy(task);
        if last {
            cfs.set_last_buddy(curr);
        }
        true
    }

    /// sched_yield: under EEVDF the task forfeits the rest of its request, under CFS it is passed over once.
    pub(crate) fn yield_task(&mut self, cpu: usize, task: u32) {
        self.update_curr(cpu);
        if self.cfs.is_none() {
            self.tasks[task as usize].se.forfeit(self.base_slice_ns);
        } else if !self.cpus[cpu].rq.is_empty() {
            let cfs = &mut self.cpus[cpu].cfs;
            cfs.clear_buddies(task);
            cfs.skip = Some(task);
        }
    }
}
