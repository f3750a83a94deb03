//! Operations on shared objects, and ops that take a given time.

use crate::contention::{Line, Moment};
use crate::cpu::Activity;
use crate::segment::{Segment, Work};
use crate::shared::{Futex, MAX_REQUESTS, MutexState};
use crate::sim::Simulation;
use crate::task::WaitsIn;
use coreward_metrics::Part;
use coreward_workload::Op;

/// A locked instruction on a line that the core has, in ns.
/// Source: Agner Fog, Instruction tables: LOCK CMPXCHG takes 18 to 20 cycles on Skylake and Zen; 3 GHz.
const ATOMIC_NS: u64 = 7;
/// How long a spinner spins before it checks again; it is notified earlier if there is a change.
const SPIN_NS: u64 = 1_000_000_000;
/// How long a sender of requests sleeps if the receiver has too many (schbench: `usleep(100)`).
const BACK_OFF_NS: u64 = 100_000;

/// The object of an op on a futex.
#[derive(Clone, Copy)]
enum On {
    Mutex(u32),
    Cond(u32),
    Barrier(u32),
    Flag(u32),
}

impl Simulation<'_> {
    /// The work of an op; see [`Self::sync_effect`] for its effect.
    pub(crate) fn sync_work(&mut self, cpu: usize, task: usize, op: &Op, entry: u64) -> Work {
        let base = self.tasks[task].base;
        match *op {
            Op::Spin { ns } => {
                let at = self.local_now(cpu);
                let sync = &mut self.tasks[task].sync;
                if sync.step == 0 {
                    sync.step = 1;
                    sync.until = at + ns;
                }
                Work { work: 0, stall: sync.until.saturating_sub(at) }
            }
            Op::SleepJitter { .. } | Op::Timer { .. } => self.jittered(entry),
            Op::TakeTurn { .. } => self.atomic(cpu, |sim| &mut sim.shared.turns_line),
            Op::Lock { mutex } | Op::Unlock { mutex } => {
                let mutex = self.turned(task, mutex);
                self.mutex_work(cpu, mutex)
            }
            Op::CondWait { cond, .. } | Op::Signal { cond } | Op::Broadcast { cond } => {
                self.atomic(cpu, |sim| &mut sim.futex(On::Cond(cond)).line)
            }
            Op::Barrier { barrier, .. } => self.atomic(cpu, |sim| &mut sim.futex(On::Barrier(barrier)).line),
            Op::Clear { flag } | Op::Await { flag } => {
                self.atomic(cpu, |sim| &mut sim.futex(On::Flag(base + flag)).line)
            }
            Op::TakeRequest => self.atomic(cpu, |sim| &mut sim.futex(On::Flag(base)).line),
            Op::Post { flag } => self.atomic(cpu, |sim| &mut sim.futex(On::Flag(flag)).line),
            Op::SendRequest { first, count } => {
                let flag = first + self.tasks[task].sync.turn % count;
                self.atomic(cpu, |sim| &mut sim.futex(On::Flag(flag)).line)
            }
            Op::Enlist { list } | Op::PostListed { list } => {
                self.atomic(cpu, |sim| &mut sim.shared.lists[list as usize].line)
            }
            Op::LockCpu | Op::UnlockCpu => {
                let of = self.cpu_lock_of(cpu, task);
                if *op == Op::LockCpu && self.tasks[task].sync.step == 1 && self.shared.cpu_locks[of].locked {
                    self.cpus[cpu].bill.stall(Part::Spin, SPIN_NS);
                    return Work { work: 0, stall: SPIN_NS };
                }
                self.atomic(cpu, |sim| &mut sim.shared.cpu_locks[of].line)
            }
            Op::Up { .. }
            | Op::Down { .. }
            | Op::Answer
            | Op::Origin
            | Op::Stop
            | Op::EventStart
            | Op::EventEnd => Work::default(),
            _ => unreachable!("op_work does the others"),
        }
    }

    /// A locked instruction: the line comes from the CPU that had it last.
    fn atomic(&mut self, cpu: usize, line: impl Fn(&mut Self) -> &mut Line) -> Work {
        let m = self.moment(cpu);
        // the line is copied out while the distances are read
        let mut copy = *line(self);
        let got = copy.modify(&self.distances, cpu, m, ATOMIC_NS);
        *line(self) = copy;
        let stall = got.waited + got.transfer;
        self.cpus[cpu].bill.stall(Part::FutexLines, stall);
        Work { work: ATOMIC_NS, stall }
    }

    /// Locks or unlocks a mutex, whose type is read before.
    fn mutex_work(&mut self, cpu: usize, mutex: u32) -> Work {
        let m = self.moment(cpu);
        let [of_type, of_lock] = self.shared.lines_of_mutex(mutex);
        let lines = &mut self.shared.mutex_lines;
        let stall = if of_type == of_lock {
            let got = lines[of_lock].load_and_modify(&self.distances, cpu, m, ATOMIC_NS);
            got.waited + got.transfer
        } else {
            let read = lines[of_type].modify(&self.distances, cpu, m, 0);
            let read_ns = read.waited + read.transfer;
            let m = Moment { at: m.at + read_ns, ..m };
            let got = lines[of_lock].modify(&self.distances, cpu, m, ATOMIC_NS);
            read_ns + got.waited + got.transfer
        };
        self.cpus[cpu].bill.stall(Part::FutexLines, stall);
        Work { work: ATOMIC_NS, stall }
    }

    fn futex(&mut self, on: On) -> &mut Futex {
        match on {
            On::Mutex(i) => &mut self.shared.mutexes[i as usize].futex,
            On::Cond(i) => &mut self.shared.conds[i as usize],
            On::Barrier(i) => &mut self.shared.barriers[i as usize].futex,
            On::Flag(i) => &mut self.shared.flags[i as usize].futex,
        }
    }

    fn turned(&self, task: usize, mutex: u32) -> u32 {
        mutex + self.tasks[task].sync.turn
    }

    /// The effect of an op. False if the task blocks.
    pub(crate) fn sync_effect(&mut self, cpu: usize, id: u32, op: &Op) -> bool {
        let task = id as usize;
        let base = self.tasks[task].base;
        let waited = self.tasks[task].in_syscall;
        match *op {
            Op::Spin { .. } => {
                if self.now < self.tasks[task].sync.until {
                    return true; // it was preempted, and goes on spinning
                }
            }
            Op::SleepJitter { ns, jitter_ns } => {
                if !waited {
                    let jitter = self.random(u32::try_from(jitter_ns).unwrap_or(u32::MAX));
                    return self.sleep_until(self.now + ns + u64::from(jitter), id);
                }
            }
            Op::Timer { timer, period_ns, relative } => {
                if !waited && !self.timer_expired(task, timer, period_ns, relative) {
                    let at = self.shared.timers[timer as usize].expect("it was just set");
                    return self.sleep_until(at, id);
                }
            }
            Op::TakeTurn { of } => {
                self.tasks[task].sync.turn = self.shared.turns % of;
                self.shared.turns = self.shared.turns.wrapping_add(1);
            }
            Op::Lock { mutex } => {
                let mutex = self.turned(task, mutex);
                return self.lock(cpu, id, mutex);
            }
            Op::Unlock { mutex } => {
                let mutex = self.turned(task, mutex);
                self.unlock(cpu, mutex);
            }
            Op::CondWait { cond, mutex } => return self.cond_wait(cpu, id, cond, mutex),
            Op::Signal { cond } => self.futex_wake(cpu, On::Cond(cond), 1),
            Op::Broadcast { cond } => self.futex_wake(cpu, On::Cond(cond), usize::MAX),
            Op::Barrier { barrier, starts } => {
                if !waited && !self.arrive(cpu, barrier, starts) {
                    return self.futex_wait(cpu, id, On::Barrier(barrier));
                }
            }
            Op::Clear { flag } => self.shared.flags[(base + flag) as usize].set = false,
            Op::Post { flag } => self.post(cpu, flag),
            Op::Await { flag } => {
                if !self.take_flag(base + flag) && !self.stop.stopped {
                    return self.futex_wait(cpu, id, On::Flag(base + flag));
                }
            }
            Op::Up { semaphore, reply } => self.up(cpu, semaphore, reply),
            Op::Answer => {
                if let Some(Some(semaphore)) = self.tasks[task].requests.pop() {
                    self.up(cpu, semaphore, None);
                }
            }
            Op::Down { semaphore, count, request } => {
                let s = &mut self.shared.semaphores[semaphore as usize];
                if s.messages.len() < count as usize {
                    if self.stop.stopped {
                        return self.leave_loop(task);
                    }
                    s.waiters.push_back((id, count));
                    return self.block(task, WaitsIn::Futex);
                }
                let taken = s.messages.drain(..count as usize);
                match request {
                    true => self.tasks[task].requests.extend(taken),
                    false => drop(taken),
                }
                self.move_messages(cpu, semaphore, count, true);
            }
            Op::Enlist { list } => self.shared.lists[list as usize].flags.push(base),
            Op::PostListed { list } => {
                if self.post_listed(cpu, task, list) {
                    return true; // one at a time
                }
            }
            Op::SendRequest { first, count } => {
                if self.stop.stopped {
                    return self.leave_loop(task);
                }
                if !waited && !self.send_request(cpu, task, first, count) {
                    return self.sleep_until(self.now + BACK_OFF_NS, id);
                }
            }
            Op::TakeRequest => return self.take_request(cpu, id),
            Op::LockCpu => {
                if !self.lock_cpu(cpu, id) {
                    return true; // it spins
                }
            }
            Op::UnlockCpu => self.unlock_cpu(cpu, task),
            Op::Stop => {
                self.stop.stopped = true;
                for waiter in self.shared.take_waiters() {
                    self.try_to_wake_up(waiter, cpu, false);
                }
            }
            Op::Origin => self.tasks[task].sync.origin = Some(self.now),
            Op::EventStart => self.tasks[task].sync.event_at = self.now,
            Op::EventEnd => {
                let since_start = self.measured_ns();
                let sync = &mut self.tasks[task].sync;
                sync.events += 1;
                let latency = self.now - sync.event_at;
                self.counters.event_ended(latency, since_start);
                if self.by_thread {
                    self.counters.threads.entry(task as u32).or_default().events.record(latency);
                }
            }
            _ => unreachable!("effect does the others"),
        }
        self.tasks[task].advance();
        true
    }

    /// Moves a timer on by a period. True if it has expired.
    fn timer_expired(&mut self, task: usize, timer: u32, period_ns: u64, relative: bool) -> bool {
        let origin = self.tasks[task].sync.origin.unwrap_or(self.now);
        let next = &mut self.shared.timers[timer as usize];
        let at = next.unwrap_or(origin) + period_ns;
        let expired = at <= self.now;
        *next = Some(if expired && relative { self.now } else { at });
        expired
    }

    /// Calls the kernel to wait.
    fn futex_wait(&mut self, cpu: usize, id: u32, on: On) -> bool {
        self.futex_call(cpu, on, self.costs.futex_wait_ns);
        self.futex_queue(id, on)
    }

    /// The kernel lets a task wait.
    fn futex_queue(&mut self, id: u32, on: On) -> bool {
        self.futex(on).waiters.push_back(id);
        self.block(id as usize, WaitsIn::Futex)
    }

    /// Calls the kernel to wake up to `n` waiters.
    fn futex_wake(&mut self, cpu: usize, on: On, n: usize) {
        if self.futex(on).waiters.is_empty() && matches!(on, On::Cond(_)) {
            return; // a condition's word says if anybody waits
        }
        self.futex_call(cpu, on, self.costs.futex_wake_ns);
        for _ in 0..n {
            let Some(waiter) = self.futex(on).waiters.pop_front() else { break };
            self.try_to_wake_up(waiter, cpu, false);
        }
    }

    /// The system call, which itself takes `ns`, and the lock of the hash bucket.
    fn futex_call(&mut self, cpu: usize, on: On, ns: u64) {
        self.charge_work(cpu, Part::Task, self.costs.syscall_ns + ns);
        let m = self.moment(cpu);
        let mut bucket = self.futex(on).bucket;
        let got = bucket.acquire(&self.distances, cpu, m, 1);
        bucket.release(m.at + got.waited + got.transfer + ATOMIC_NS);
        self.futex(on).bucket = bucket;
        self.charge_stall(cpu, Part::FutexLines, got.waited + got.transfer);
    }

    /// Takes a mutex, or calls the kernel to wait for it. The kernel lets the task wait if the mutex is still locked by
    /// the time that it looks at it.
    fn lock(&mut self, cpu: usize, id: u32, mutex: u32) -> bool {
        let in_kernel = std::mem::take(&mut self.tasks[id as usize].sync.calls_wait);
        let waited = self.tasks[id as usize].in_syscall || in_kernel;
        let state = &mut self.shared.mutexes[mutex as usize].state;
        if *state == MutexState::Free {
            // a woken task does not know if others wait
            *state = if waited { MutexState::Contended } else { MutexState::Locked };
            self.tasks[id as usize].advance();
            return true;
        }
        *state = MutexState::Contended;
        if in_kernel {
            return self.futex_queue(id, On::Mutex(mutex));
        }
        self.futex_call(cpu, On::Mutex(mutex), self.costs.futex_wait_ns);
        let task = &mut self.tasks[id as usize];
        task.sync.calls_wait = true;
        task.left = Some(Work::default());
        true
    }

    fn unlock(&mut self, cpu: usize, mutex: u32) {
        let state = std::mem::take(&mut self.shared.mutexes[mutex as usize].state);
        if state == MutexState::Contended {
            self.futex_wake(cpu, On::Mutex(mutex), 1);
        }
    }

    fn cond_wait(&mut self, cpu: usize, id: u32, cond: u32, mutex: u32) -> bool {
        let task = id as usize;
        if self.tasks[task].sync.step == 0 && !self.stop.stopped {
            self.tasks[task].sync.step = 1;
            self.unlock(cpu, mutex);
            return self.futex_wait(cpu, id, On::Cond(cond));
        }
        if self.tasks[task].sync.step == 0 {
            // it has the mutex, and would wait in vain
            self.tasks[task].advance();
            return true;
        }
        self.lock(cpu, id, mutex)
    }

    /// True if the task need not wait at the barrier.
    fn arrive(&mut self, cpu: usize, barrier: u32, starts: bool) -> bool {
        let b = &mut self.shared.barriers[barrier as usize];
        b.arrived += 1;
        if b.arrived < b.needs {
            return self.stop.stopped;
        }
        b.arrived = 0;
        if starts {
            self.mark_start();
        }
        self.futex_wake(cpu, On::Barrier(barrier), usize::MAX);
        true
    }

    /// Charges a CPU for the lines of messages that it sends or receives, if the semaphore stands for a socket.
    fn move_messages(&mut self, cpu: usize, semaphore: u32, count: u32, receive: bool) {
        let Some(ends) = &mut self.shared.semaphores[semaphore as usize].socket else { return };
        let (own, other) = match receive {
            true => (&mut ends.receiver, ends.sender),
            false => (&mut ends.sender, ends.receiver),
        };
        *own = cpu as u32;
        let line_ns = self.distances.transfer(other as usize, cpu);
        self.charge_stall(cpu, Part::ChannelLines, u64::from(count) * line_ns * self.costs.message_lines / 2);
    }

    /// Puts a message on a semaphore, and wakes the first task that waits there if there are as many as it needs.
    fn up(&mut self, cpu: usize, semaphore: u32, reply: Option<u32>) {
        self.move_messages(cpu, semaphore, 1, false);
        let s = &mut self.shared.semaphores[semaphore as usize];
        if s.owed > 0 {
            s.owed -= 1;
            return;
        }
        s.messages.push_back(reply);
        let enough = s.waiters.front().is_some_and(|(_, count)| s.messages.len() >= *count as usize);
        if enough && let Some((waiter, _)) = s.waiters.pop_front() {
            self.try_to_wake_up(waiter, cpu, false);
        }
    }

    /// Sets a flag and wakes the task that waits for it.
    fn post(&mut self, cpu: usize, flag: u32) {
        let was_set = std::mem::replace(&mut self.shared.flags[flag as usize].set, true);
        if !was_set {
            self.futex_wake(cpu, On::Flag(flag), 1);
        }
    }

    /// Unsets a flag if it is set.
    fn take_flag(&mut self, flag: u32) -> bool {
        let f = &mut self.shared.flags[flag as usize];
        if !std::mem::take(&mut f.set) {
            return false;
        }
        if let Some(posted) = f.posted_at.take() {
            self.counters.replies.record(self.now - posted);
        }
        true
    }

    /// Sets the next flag of a list. False if there is none.
    fn post_listed(&mut self, cpu: usize, task: usize, list: u32) -> bool {
        let l = &mut self.shared.lists[list as usize];
        if self.tasks[task].sync.step == 0 {
            self.tasks[task].sync.step = 1;
            l.posting = std::mem::take(&mut l.flags);
            l.taken_at = self.now;
        }
        let Some(flag) = l.posting.pop() else { return false };
        self.shared.flags[flag as usize].posted_at = Some(l.taken_at);
        self.post(cpu, flag);
        true
    }

    /// False if the task whose turn it is has too many requests.
    fn send_request(&mut self, cpu: usize, task: usize, first: u32, count: u32) -> bool {
        let turn = &mut self.tasks[task].sync.turn;
        let flag = first + *turn % count;
        *turn = (*turn + 1) % count;
        let f = &mut self.shared.flags[flag as usize];
        if f.requests > MAX_REQUESTS {
            return false;
        }
        f.requests += 1;
        f.posted_at = Some(self.now);
        self.post(cpu, flag);
        true
    }

    fn take_request(&mut self, cpu: usize, id: u32) -> bool {
        let flag = self.tasks[id as usize].base;
        if self.tasks[id as usize].in_syscall {
            self.take_flag(flag);
        }
        let f = &mut self.shared.flags[flag as usize];
        if f.requests > 0 {
            f.requests -= 1;
            // it works now, and needs no waking
            f.set = true;
            self.tasks[id as usize].advance();
            return true;
        }
        f.set = false;
        if self.stop.stopped {
            return self.leave_loop(id as usize);
        }
        self.futex_wait(cpu, id, On::Flag(flag))
    }

    /// The task continues after its innermost loop.
    pub(crate) fn leave_loop(&mut self, task: usize) -> bool {
        self.tasks[task].leave_loop();
        true
    }

    /// The CPU whose lock the task holds or spins on, or that it runs on.
    fn cpu_lock_of(&self, cpu: usize, task: usize) -> usize {
        self.tasks[task].sync.cpu_lock.map_or(cpu, |of| of as usize)
    }

    /// Tries to lock the CPU's lock; false if the task has to spin, or to start over because it has moved.
    fn lock_cpu(&mut self, cpu: usize, id: u32) -> bool {
        let of = self.cpu_lock_of(cpu, id as usize);
        let lock = &mut self.shared.cpu_locks[of];
        let sync = &mut self.tasks[id as usize].sync;
        if lock.locked {
            if sync.step == 0 {
                sync.step = 1;
                sync.cpu_lock = Some(of as u32);
                lock.spinners.push(id);
            }
            return false;
        }
        lock.spinners.retain(|spinner| *spinner != id);
        if of != cpu {
            sync.step = 0;
            sync.cpu_lock = None;
            return false;
        }
        lock.locked = true;
        sync.cpu_lock = Some(of as u32);
        true
    }

    /// Frees the lock that the task holds; a task that spins on it sees that now.
    fn unlock_cpu(&mut self, cpu: usize, task: usize) {
        let of = self.cpu_lock_of(cpu, task);
        self.tasks[task].sync.cpu_lock = None;
        self.shared.cpu_locks[of].locked = false;
        for i in 0..self.shared.cpu_locks[of].spinners.len() {
            let spinner = self.shared.cpu_locks[of].spinners[i];
            let at = self.tasks[spinner as usize].cpu();
            let c = &mut self.cpus[at];
            if c.curr == Some(spinner) && c.activity == Activity::Task {
                c.bill.settle(self.now, &mut self.counters.spent);
                c.segment = Segment::new(self.now, Work::default(), c.rate);
                self.reprogram(at);
            }
        }
    }

    /// Standard deviation of how many events the tasks have ended, of those that could. None without an event.
    pub(crate) fn events_per_task_stddev(&self) -> Option<f64> {
        let counts: Vec<f64> =
            self.tasks.iter().filter(|t| t.has_events()).map(|t| t.sync.events as f64).collect();
        let n = counts.len() as f64;
        let mean = counts.iter().sum::<f64>() / n;
        let variance = counts.iter().map(|count| (count - mean).powi(2)).sum::<f64>() / n;
        (mean > 0.0).then(|| variance.sqrt())
    }
}
