//! What a task's time has of other CPUs and of other processes. The simulator adds it by itself, so it is no work.

use coreward_engine::{RQ_LINES, SWITCH_LINES};
use coreward_machine::Machine;

use super::cpu::Current;
use super::draft::Draft;
use super::{Import, Wakeup};
use crate::event::Leaving;

impl Import {
    /// A woken task runs on another CPU than its waker did, after another one: notes what that took the two. The wakeup
    /// interrupted the CPU if the task preempted the other one there, or if the CPU was idle, and took so long that it did not
    /// just poll.
    pub(super) fn woken_afar(
        &mut self,
        wakeup: Wakeup,
        cpu: usize,
        at: u64,
        left: Current,
        leaving: Leaving,
    ) {
        let Some(machine) = self.options.machine.as_ref().filter(|_| wakeup.cpu != cpu) else { return };
        let (deliver_ns, handle_ns) = (machine.costs.ipi_deliver_ns, machine.costs.ipi_handle_ns);
        let send_ns = machine.costs.ipi_send_ns;
        let idle = self.cpus.idle_since(cpu).is_some_and(|since| since <= wakeup.at);
        let preempts = matches!(left, Current::Task(_)) && leaving == Leaving::Runnable;
        // whoever leaves chooses the next task, and fetches it
        if let Current::Task(index) = left {
            let fetch_ns = self.lines_ns(wakeup.cpu, cpu, SWITCH_LINES);
            self.kernel(index, fetch_ns + if preempts { handle_ns } else { 0 });
        }
        let interrupted = preempts || (idle && at - wakeup.at >= deliver_ns);
        // an idle CPU queues the task by itself
        let queue_ns = if idle { 0 } else { self.lines_ns(cpu, wakeup.cpu, RQ_LINES) };
        if let Draft::Wake { far_ns, .. } = &mut self.tasks[wakeup.by].drafts[wakeup.draft] {
            *far_ns += queue_ns + if interrupted { send_ns } else { 0 };
        }
    }

    /// How long a CPU waits for lines that another one has written.
    pub(super) fn lines_ns(&self, from: usize, to: usize, lines: u64) -> u64 {
        let Some(machine) = &self.options.machine else { return 0 };
        let ns = lines * self.transfer_ns(from, to) * 100 / machine.costs.mlp_pct.max(1);
        ns.saturating_sub(machine.costs.lookahead_ns)
    }

    /// How long a line takes from one CPU to another.
    pub(super) fn transfer_ns(&self, from: usize, to: usize) -> u64 {
        let of = |machine: &Machine| machine.costs.get(machine.transfer_cost(from, to)?);
        self.options.machine.as_ref().and_then(of).unwrap_or(0)
    }

    /// In a task's work since its last step is so much that the simulator adds by itself.
    fn kernel(&mut self, index: usize, ns: u64) {
        if ns > 0 {
            self.tasks[index].drafts.push(Draft::Kernel { ns });
        }
    }

    /// A CPU switches to a task, whose process may have lost translations to others.
    pub(super) fn switches_to(&mut self, cpu: usize, index: usize) {
        let refill_ns = self.options.machine.as_ref().map_or(0, |machine| machine.costs.tlb_refill_ns);
        let task = &self.tasks[index];
        if task.left_out.is_none() {
            // a task of an unknown process is one of its own
            let process = task.tgid.map_or(u32::MAX - index as u32, |tgid| tgid as u32);
            let ns = self.cpus.switch_to(cpu, process, refill_ns);
            self.kernel(index, ns);
        }
    }
}
