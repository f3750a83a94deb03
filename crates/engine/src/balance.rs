//! Moving tasks: newidle balance, periodic balance, and the balance that one idle
//! CPU does for all. The policy decides; tasks and queues are moved here.

use crate::fair::Enqueue;
use crate::sim::Simulation;
use crate::task::{State, Task, WaitsIn};
use coreward_policy::layout::{
    CPU_IDLE, CPU_NEWLY_IDLE, CPU_NOT_IDLE, LBF_NOT_MINE, MIGRATE_LLC_TASK, TASK_BUDDY, TASK_INELIGIBLE,
};
use coreward_policy::{Balance, BalanceStep, Detach, Feature, Newidle, Periodic, System};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

impl Simulation<'_> {
    /// `cpu` has nothing to run: it looks for a waiting task elsewhere. True if it found one.
    pub(crate) fn sched_balance_newidle(&mut self, cpu: usize) -> bool {
        let before = self.local_now(cpu);
        let mut walk = Newidle::default();
        // the CPU's averages are brought up to date before others read them
        self.sys.update_blocked_averages(cpu, self.now);
        let random = if self.feature(Feature::NI_RANDOM) { self.random(u32::MAX) } else { 0 };
        if self.sys.newidle_begin(&mut walk, cpu, self.now, random) {
            self.counters.newidle_calls += 1;
            while let Some(level) = self.sys.newidle_next(&mut walk, self.now) {
                let start = self.local_now(cpu);
                let (moved, may_go_on) = self.sched_balance_rq(cpu, cpu, level, CPU_NEWLY_IDLE);
                let cost = self.local_now(cpu) - start;
                self.sys.newidle_account(&mut walk, cost, moved, may_go_on, self.now);
            }
        }
        let next = &mut self.cpus[cpu].next_balance;
        *next = walk.next_balance.min(*next);
        let found = self.sys.newidle_end(&walk) && !self.cpus[cpu].fair.is_empty();
        self.account_newidle(cpu, self.local_now(cpu) - before);
        found
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

    /// From the tick: balances the domains that are due, and sees that somebody balances for idle CPUs.
    pub(crate) fn sched_balance_trigger(&mut self, cpu: usize) {
        let jiffies = self.now / self.tick_ns;
        if jiffies >= self.cpus[cpu].next_balance {
            let idle = if self.cpus[cpu].curr.is_none() { CPU_IDLE } else { CPU_NOT_IDLE };
            let before = self.local_now(cpu);
            self.sched_balance_domains(cpu, cpu, idle);
            self.counters.time.balance += self.local_now(cpu) - before;
        }
        if jiffies >= self.nohz_next_balance && self.sys.nohz_balancer_kick(cpu, &self.nohz_idle) {
            if let Some(ilb) = self.sys.find_new_ilb(&self.nohz_idle, cpu) {
                self.nohz_next_balance = jiffies + 1;
                self.cpus[ilb].nohz_kicked = true;
                self.send_ipi(ilb, cpu);
            }
        }
    }

    /// One idle CPU balances for itself and all other idle ones.
    pub(crate) fn nohz_idle_balance(&mut self, by: usize) {
        let before = self.local_now(by);
        let jiffies = self.now / self.tick_ns;
        let mut next = u64::MAX;
        for cpu in 0..self.cpus.len() {
            let idle = cpu == by || self.nohz_idle.bits[cpu / 64] >> (cpu % 64) & 1 == 1;
            if !idle {
                continue;
            }
            // blocked load decays on CPUs that have no tick
            self.sys.update_blocked_averages(cpu, self.now);
            self.charge_work(by, self.costs.balance_cpu_ns);
            if jiffies >= self.cpus[cpu].next_balance {
                self.sched_balance_domains(cpu, by, CPU_IDLE);
            }
            next = next.min(self.cpus[cpu].next_balance);
        }
        self.nohz_next_balance = next.max(jiffies + 1);
        self.counters.time.balance += self.local_now(by) - before;
    }

    /// Balances the domains of `cpu` that are due; `by` does the work.
    fn sched_balance_domains(&mut self, cpu: usize, by: usize, idle: u32) {
        let mut walk = Periodic::default();
        self.sys.periodic_begin(&mut walk, cpu, idle, self.now);
        while let Some(level) = self.sys.periodic_next(&mut walk) {
            let (moved, may_go_on) = self.sched_balance_rq(cpu, by, level, walk.idle);
            self.sys.periodic_account(&mut walk, moved, may_go_on);
        }
        self.sys.periodic_end(&walk);
        self.cpus[cpu].next_balance = walk.next_balance;
    }

    /// One attempt to balance one domain of `cpu`; `by` does the work and pays for it.
    /// Returns how many tasks moved, and whether the walk up the domains may go on.
    fn sched_balance_rq(&mut self, cpu: usize, by: usize, level: u32, idle: u32) -> (u32, bool) {
        let mut env = Balance::default();
        System::balance_begin(&mut env, cpu, level, idle, self.now);
        let kind = idle as usize;
        self.schedstat[cpu].domains[level as usize].lb_count[kind] += 1;
        self.charge_work(by, self.costs.balance_ns);
        self.sys.note_pref_dst_llc(cpu, level);
        let mut moved = 0;
        loop {
            let (src, d) = self.sys.sched_balance_find_src(&mut env);
            self.counters.record(&d);
            self.trace.decision(&d);
            self.charge_work(by, u64::from(d.cpus_scanned) * self.costs.balance_cpu_ns);
            let Some(src) = src else {
                let stat = &mut self.schedstat[cpu].domains[level as usize];
                stat.lb_balanced[kind] += 1;
                if env.flags & LBF_NOT_MINE == 0 {
                    // an imbalance was found if there was a busiest group
                    if env.imbalance > 0 { stat.lb_nobusyq[kind] += 1 } else { stat.lb_nobusyg[kind] += 1 }
                }
                break;
            };
            self.schedstat[cpu].domains[level as usize].lb_imbalance[kind] += env.imbalance.max(0) as u64;
            let mut step = BalanceStep::More;
            while step == BalanceStep::More {
                moved += self.detach_tasks(&mut env, src, by);
                step = self.sys.balance_next_step(&mut env);
            }
            if step == BalanceStep::Done {
                break;
            }
        }
        let found = env.src_cpu >= 0;
        let for_llc = env.migration_type == MIGRATE_LLC_TASK;
        if let Some(curr) = usize::try_from(env.src_cpu).ok().and_then(|src| self.cpus[src].curr) {
            env.curr_util = self.tasks[curr as usize].policy.avg.util_avg as u32;
        }
        if self.sys.balance_done(&mut env, moved, true)
            && self.active_load_balance(env.src_cpu as usize, cpu, by, for_llc)
        {
            self.schedstat[cpu].domains[level as usize].alb_pushed += 1;
            self.counters.llc_pulled_tasks += u64::from(for_llc);
        }
        if for_llc {
            self.counters.llc_pulled_tasks += u64::from(moved);
        }
        let stat = &mut self.schedstat[cpu].domains[level as usize];
        stat.lb_gained[kind] += u64::from(moved);
        stat.lb_failed[kind] += u64::from(found && moved == 0);
        self.counters.pulled_tasks += u64::from(moved);
        (moved, env.flags & LBF_NOT_MINE == 0)
    }

    /// Offers the tasks of `src` to the policy, oldest first, and moves those that it takes.
    fn detach_tasks(&mut self, env: &mut Balance, src: usize, by: usize) -> u32 {
        self.lock_rq(src, by);
        self.update_curr(src);
        let c = &self.cpus[src];
        let age = |task| Reverse((self.tasks[task as usize].list_order, task));
        // a heap, as most of a long queue is never offered
        let mut offered: BinaryHeap<Reverse<(u64, u32)>> = c.fair.tasks().chain(c.curr).map(age).collect();
        let mut moved = Vec::new();
        while let Some(&Reverse((_, task))) = offered.peek() {
            self.note_queue_state(task, src);
            let t = &self.tasks[task as usize];
            let running = self.cpus[src].curr == Some(task);
            match self.sys.detach_task_step(env, &t.policy, &self.cpus_allowed, running) {
                Detach::Skip => _ = offered.pop(),
                Detach::Take => {
                    self.detach_task(task, src, by);
                    moved.push(task);
                    offered.pop();
                }
                Detach::Break => {}
                Detach::Stop => break,
            }
        }
        self.unlock_rq(src, by);
        let dst = env.dst_cpu as usize;
        for &task in &moved {
            self.attach_task(task, dst, by);
        }
        moved.len() as u32
    }

    /// Tells the policy what the queue knows of a task on `cpu`: whether it has had more
    /// than its share, is a buddy, or prefers an LLC.
    fn note_queue_state(&mut self, task: u32, cpu: usize) {
        let t = &self.tasks[task as usize];
        let c = &self.cpus[cpu];
        let mut flags = t.policy.flags & !(TASK_INELIGIBLE | TASK_BUDDY);
        let vruntime = self.entity(task, cpu).vruntime;
        if self.feature(Feature::EEVDF) && !c.fair.rq.vruntime_eligible(vruntime) {
            flags |= TASK_INELIGIBLE;
        }
        if self.is_buddy(task, cpu) {
            flags |= TASK_BUDDY;
        }
        self.tasks[task as usize].policy.flags = flags;
        self.note_cache_cpu(task);
    }

    /// Takes a waiting task off `src`'s queue.
    fn detach_task(&mut self, task: u32, src: usize, by: usize) {
        self.charge_work(by, self.costs.detach_task_ns);
        self.account_dequeue(src, task, false, by);
        self.dequeue_waiting(src, task, false);
        self.sys.detach_task(&mut self.tasks[task as usize].policy);
        self.update_tg_load_avg(src, by);
    }

    /// Puts a task that was detached on `dst`'s queue.
    fn attach_task(&mut self, task: u32, dst: usize, by: usize) {
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
            // still asleep: it only changed the queue on which it catches up
            self.tasks[task as usize].state = State::Sleeping;
            self.set_waiting(false);
        }
        self.resched_if_idle(dst, by);
    }

    /// A CPU that another one pulled a task for has to be told.
    fn resched_if_idle(&mut self, cpu: usize, by: usize) {
        if cpu != by && self.cpus[cpu].curr.is_none() {
            self.resched_curr(cpu, by);
        }
    }

    /// Moves the running task of `src` by force: its CPU is stopped for that. False if it may not
    /// move. `for_llc`: it is to come to the LLC that it prefers.
    fn active_load_balance(&mut self, src: usize, dst: usize, by: usize, for_llc: bool) -> bool {
        let Some(task) = self.cpus[src].curr else { return false };
        if src == by || !self.cpus[src].fair.rq.curr_competes() {
            return false;
        }
        let mut env = Balance::default();
        if !self.sys.active_balance_begin(&mut env, src, dst, for_llc, self.now) {
            return false;
        }
        self.note_cache_cpu(task);
        let p = &self.tasks[task as usize].policy;
        let may = self.sys.can_migrate_task(&mut env, p, &self.cpus_allowed, false);
        self.sys.active_balance_done(&env, may);
        if !may {
            return false;
        }
        // the stopper preempts the task, and so it can be detached like a waiting one
        self.charge_work(src, self.costs.context_switch_ns);
        self.extend_segment(src);
        self.update_curr(src);
        self.save_rest(src, task);
        self.put_prev_task(src, task);
        self.count_switch(src, Some(task), None);
        self.detach_task(task, src, by);
        self.attach_task(task, dst, by);
        self.schedule(src);
        self.reprogram(src);
        true
    }
}
