//! Moving tasks: newidle balance, periodic balance, and the balance that one idle
//! CPU does for all. The policy decides; tasks and queues are moved here.

use crate::affinity::contains;
use crate::fair::Enqueue;
use crate::sim::Simulation;
use crate::task::{State, Task, WaitsIn};
use coreward_metrics::Part;
use coreward_policy::layout::{
    CPU_IDLE, CPU_NOT_IDLE, LBF_NOT_MINE, MIGRATE_LLC_TASK, TASK_BUDDY, TASK_INELIGIBLE,
};
use coreward_policy::{Balance, Detach, Feature, Lb, LbStep};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What an idle CPU has been asked to do for all idle ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum NohzKick {
    #[default]
    Nothing,
    /// Bring their averages up to date (NOHZ_STATS_KICK).
    Stats,
    /// That, and balance for them (NOHZ_BALANCE_KICK).
    Balance,
}

impl Simulation<'_> {
    /// `cpu` has nothing to run: it looks for a waiting task elsewhere. True if it found one.
    pub(crate) fn sched_balance_newidle(&mut self, cpu: usize) -> bool {
        let before = self.local_now(cpu);
        let random = if self.feature(Feature::NI_RANDOM) { self.random(u32::MAX) } else { 0 };
        let mut lb = Lb::default();
        if self.sys.lb_newidle(&mut lb, cpu, self.now, random) {
            self.counters.newidle_calls += 1;
        }
        self.balance(&mut lb, cpu);
        self.account_newidle(cpu, self.local_now(cpu) - before);
        if lb.found == 0 && self.sys.nohz_newidle_stats(cpu, self.now) {
            self.nohz_idle_balance(cpu, NohzKick::Stats);
        }
        lb.found != 0 && !self.cpus[cpu].fair.is_empty()
    }

    /// Counts the time of a newidle balance, by the system call that called schedule().
    fn account_newidle(&mut self, cpu: usize, ns: u64) {
        let time = &mut self.counters.time;
        time.newidle += ns;
        let blocked = |t: &&Task| t.state == State::Sleeping;
        match self.cpus[cpu].curr.map(|t| &self.tasks[t as usize]).filter(blocked).map(|t| t.waits_in) {
            Some(WaitsIn::Futex) => time.newidle_futex += ns,
            Some(WaitsIn::Nanosleep) => time.newidle_nanosleep += ns,
            Some(WaitsIn::Other) | None => {}
        }
    }

    /// From the tick: balances the domains that are due, and makes an idle CPU balance for the idle ones.
    pub(crate) fn sched_balance_trigger(&mut self, cpu: usize) {
        if self.jiffies() >= self.sys.cpu[cpu].next_balance {
            let idle = if self.cpus[cpu].curr.is_none() { CPU_IDLE } else { CPU_NOT_IDLE };
            let before = self.local_now(cpu);
            self.sched_balance_domains(cpu, cpu, idle);
            self.counters.time.balance += self.local_now(cpu) - before;
        }
        let balances = self.sys.kick_ilb(cpu, &self.nohz_idle, self.now).map(|ilb| (ilb, NohzKick::Balance));
        let updates = || Some((self.sys.kick_nohz_stats(cpu, &self.nohz_idle, self.now)?, NohzKick::Stats));
        if let Some((ilb, kick)) = balances.or_else(updates) {
            let asked = &mut self.cpus[ilb].nohz_kick;
            if std::mem::replace(asked, kick.max(*asked)) == NohzKick::Nothing {
                self.send_ipi(ilb, cpu);
            }
        }
    }

    fn jiffies(&self) -> u64 {
        self.now / self.tick_ns
    }

    /// One idle CPU brings the averages of all idle ones up to date, and with [`NohzKick::Balance`] balances for them.
    pub(crate) fn nohz_idle_balance(&mut self, by: usize, kick: NohzKick) {
        let before = self.local_now(by);
        let mut next = u64::MAX;
        let mut has_blocked = false;
        for cpu in 0..self.cpus.len() {
            let idle = cpu == by || contains(&self.nohz_idle, cpu);
            if !idle {
                continue;
            }
            has_blocked |= self.sys.update_nohz_stats(cpu, self.now);
            self.charge_tg_writes(cpu, by);
            self.charge_work(by, Part::Balance, self.costs.balance_cpu_ns);
            if kick == NohzKick::Balance && self.jiffies() >= self.sys.cpu[cpu].next_balance {
                self.sched_balance_domains(cpu, by, CPU_IDLE);
            }
            next = next.min(self.sys.cpu[cpu].next_balance);
        }
        if kick == NohzKick::Balance {
            self.sys.nohz_next_balance = next.max(self.jiffies() + 1);
        }
        self.sys.nohz_stats_done(self.now, has_blocked);
        self.counters.time.balance += self.local_now(by) - before;
    }

    /// Balances the domains of `cpu` that are due; `by` does the work.
    fn sched_balance_domains(&mut self, cpu: usize, by: usize, idle: u32) {
        let mut lb = Lb::default();
        self.sys.lb_periodic(&mut lb, cpu, idle, self.now);
        self.balance(&mut lb, by);
    }

    /// Carries out the steps of the balance; `by` does the work and pays for it.
    fn balance(&mut self, lb: &mut Lb, by: usize) {
        let before = self.local_now(by);
        let cpu = lb.cpu as usize;
        loop {
            let step = self.sys.lb_next(lb);
            self.charge_tg_writes(cpu, by);
            let (kind, level) = (lb.env.idle as usize, lb.env.level as usize);
            let for_llc = lb.env.migration_type == MIGRATE_LLC_TASK;
            match step {
                LbStep::Done => break,
                LbStep::Begin => {
                    self.schedstat[cpu].domains[level].lb_count[kind] += 1;
                    self.charge_work(by, Part::Balance, self.costs.balance_ns);
                }
                LbStep::Decided => {
                    self.counters.record(&lb.decision);
                    self.trace.decision(&lb.decision);
                    self.charge_work(
                        by,
                        Part::Balance,
                        u64::from(lb.decision.cpus_scanned) * self.costs.balance_cpu_ns,
                    );
                    self.count_search(&lb.env);
                }
                LbStep::Detach => lb.moved += self.detach_tasks(&mut lb.env, by),
                LbStep::Push => {
                    let pushed = self.active_load_balance(lb.env.src_cpu as usize, cpu, by, for_llc);
                    let stat = &mut self.schedstat[cpu].domains[level];
                    stat.alb_count += 1;
                    stat.alb_pushed += u64::from(pushed);
                    stat.alb_failed += u64::from(!pushed);
                    self.counters.llc_pulled_tasks += u64::from(pushed && for_llc);
                }
                LbStep::End => {
                    let moved = u64::from(lb.moved);
                    let stat = &mut self.schedstat[cpu].domains[level];
                    stat.lb_gained[kind] += moved;
                    stat.lb_failed[kind] += u64::from(lb.env.src_cpu >= 0 && moved == 0);
                    self.counters.pulled_tasks += moved;
                    self.counters.llc_pulled_tasks += if for_llc { moved } else { 0 };
                    lb.cost = self.local_now(by) - before;
                }
            }
        }
    }

    /// Counts the result of a search for tasks to pull.
    fn count_search(&mut self, env: &Balance) {
        let kind = env.idle as usize;
        let stat = &mut self.schedstat[env.this_cpu as usize].domains[env.level as usize];
        if env.src_cpu >= 0 {
            stat.lb_imbalance[kind] += env.imbalance.max(0) as u64;
            return;
        }
        stat.lb_balanced[kind] += 1;
        if env.flags & LBF_NOT_MINE == 0 {
            // an imbalance was found if there was a busiest group
            if env.imbalance > 0 { stat.lb_nobusyq[kind] += 1 } else { stat.lb_nobusyg[kind] += 1 }
        }
    }

    /// Offers the tasks of the source to the policy, oldest first, and moves the ones that it takes.
    fn detach_tasks(&mut self, env: &mut Balance, by: usize) -> u32 {
        let src = env.src_cpu as usize;
        self.lock_rq(src, by);
        self.update_curr(src, by);
        let c = &self.cpus[src];
        let age = |task| Reverse((self.tasks[task as usize].list_order, task));
        // a heap, because most of a long queue is never offered
        let mut offered: BinaryHeap<Reverse<(u64, u32)>> = c.fair.tasks().chain(c.curr).map(age).collect();
        let mut moved = Vec::new();
        while let Some(Reverse((_, task))) = offered.pop() {
            // throttled_lb_pair()
            if self.is_throttled(task, src) || self.is_throttled(task, env.dst_cpu as usize) {
                continue;
            }
            self.note_queue_state(task, src);
            let t = &self.tasks[task as usize];
            let running = self.cpus[src].curr == Some(task);
            match self.sys.offer_task(env, &t.policy, &self.masks[t.allowed], running) {
                Detach::Take => {
                    self.detach_task(task, src, by);
                    moved.push(task);
                }
                Detach::Stop => break,
                _ => {}
            }
        }
        self.unlock_rq(src, by);
        let dst = env.dst_cpu as usize;
        for &task in &moved {
            self.attach_task(task, dst, by);
        }
        moved.len() as u32
    }

    /// Reports to the policy what the queue knows about a task on `cpu`: whether it has had
    /// more than its share, is a buddy, or prefers an LLC.
    fn note_queue_state(&mut self, task: u32, cpu: usize) {
        let t = &self.tasks[task as usize];
        let c = &self.cpus[cpu];
        let mut flags = t.policy.flags & !(TASK_INELIGIBLE | TASK_BUDDY);
        let vruntime = self.entity(task, cpu).vruntime;
        if self.feature(Feature::EEVDF) && !c.fair.rq.vruntime_eligible(&self.sys, vruntime) {
            flags |= TASK_INELIGIBLE;
        }
        if self.is_buddy(task, cpu) {
            flags |= TASK_BUDDY;
        }
        self.tasks[task as usize].policy.flags = flags;
        self.note_cache_cpu(task);
    }

    /// Takes a waiting task off `src`'s queue.
    pub(crate) fn detach_task(&mut self, task: u32, src: usize, by: usize) {
        self.charge_work(by, Part::Balance, self.costs.detach_task_ns);
        self.dequeue_waiting(src, task, false);
        self.account_dequeue(src, task, false, by);
        self.sys.detach_task(&mut self.tasks[task as usize].policy);
        self.charge_tg_writes(src, by);
    }

    /// Puts a task that was detached on `dst`'s queue.
    pub(crate) fn attach_task(&mut self, task: u32, dst: usize, by: usize) {
        let src = self.tasks[task as usize].cpu();
        self.count_migration(task, src, dst, by);
        let (delayed, queued) = {
            let t = &self.tasks[task as usize];
            (t.is_delayed(), t.state == State::Queued)
        };
        if queued {
            self.set_waiting(false);
        }
        self.activate_task(task, dst, by, Enqueue::Migration);
        if delayed {
            // still asleep: only the queue on which it catches up has changed
            self.tasks[task as usize].state = State::Sleeping;
            self.set_waiting(false);
        }
        self.resched_if_idle(dst, by);
    }

    /// Notifies a CPU for which another one has pulled a task.
    fn resched_if_idle(&mut self, cpu: usize, by: usize) {
        if cpu != by && self.cpus[cpu].curr.is_none() {
            self.resched_curr(cpu, by);
        }
    }

    /// Moves the running task of `src` by active balance, which stops its CPU. False if the task may
    /// not move. `for_llc`: the move is to the LLC that it prefers.
    fn active_load_balance(&mut self, src: usize, dst: usize, by: usize, for_llc: bool) -> bool {
        let Some(task) = self.cpus[src].curr else { return false };
        if self.is_throttled(task, src) || self.is_throttled(task, dst) {
            return false;
        }
        if src == by || !self.cpus[src].fair.rq.curr_competes() {
            return false;
        }
        let mut env = Balance::default();
        if !self.sys.active_balance_begin(&mut env, src, dst, for_llc, self.now) {
            return false;
        }
        self.note_cache_cpu(task);
        let t = &self.tasks[task as usize];
        if !self.sys.active_balance_task(&mut env, &t.policy, &self.masks[t.allowed]) {
            return false;
        }
        // the stopper preempts the task, so it can be detached like a waiting one
        self.update_curr(src, by);
        self.save_rest(src, task);
        self.put_prev_task(src, task);
        self.charge_work(src, Part::Switch, self.costs.context_switch_ns);
        self.count_switch(src, Some(task), None);
        self.detach_task(task, src, by);
        self.attach_task(task, dst, by);
        self.schedule(src);
        self.reprogram(src);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::Activity;
    use crate::testing::{begun, one_message, settings};
    use coreward_machine::Machine;
    use coreward_policy::Changes;

    #[test]
    fn an_idle_cpu_updates_the_averages_of_the_others_and_balances_only_if_asked_to() {
        for (kick, balances) in [(NohzKick::Stats, false), (NohzKick::Balance, true)] {
            begun(&Machine::load("4c").unwrap(), &one_message(), &settings(&Changes::default(), 0), |sim| {
                let idle: Vec<usize> = (0..4).filter(|cpu| sim.cpus[*cpu].curr.is_none()).collect();
                let avg = &mut sim.sys.cpu[idle[1]].avg;
                (avg.util_avg, avg.util_sum) = (400, 400 * 47_000);
                sim.sys.nohz_next_balance = 0;
                sim.now += 50_000_000;
                sim.nohz_idle_balance(idle[0], kick);
                assert!(sim.sys.cpu[idle[1]].avg.util_avg < 200, "it has decayed");
                assert_eq!(sim.sys.nohz_has_blocked, 1, "there is some left");
                assert_eq!(sim.sys.nohz_next_balance > 0, balances);
            });
        }
    }

    #[test]
    fn the_switch_to_the_stopper_takes_its_time() {
        let busy_ns = |context_switch_ns| {
            let mut machine = Machine::load("2c").unwrap();
            machine.costs.context_switch_ns = context_switch_ns;
            machine.costs.kernel_jitter_pct = 0;
            begun(&machine, &one_message(), &settings(&Changes::default(), 0), |sim| {
                let src = (0..2).find(|cpu| sim.cpus[*cpu].need_resched).unwrap();
                sim.schedule(src);
                assert!(sim.active_load_balance(src, 1 - src, 1 - src, false));
                assert_eq!(sim.cpus[src].activity, Activity::GoingIdle);
                sim.cpus[src].segment.end() - sim.now
            })
        };
        // so long that nobody else holds the runqueue any more
        assert_eq!(busy_ns(10_000) - busy_ns(3_000), 7_000);
    }
}
