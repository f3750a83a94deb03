//! Wakeups: what wakes a task, and what that makes of its wait.

use coreward_engine::WAKEE_LINES;

use super::cause::Cause;
use super::channel::Via;
use super::cpu::Current;
use super::draft::Draft;
use super::{DEFAULT_PRIO, Import, ImportError, State, Wakeup};
use crate::event::{Event, Task};

impl Import {
    /// What wakes a task, or sends something: an interrupt, or the task that runs.
    pub(super) fn cause(
        &mut self,
        event: &Event,
        cpu: usize,
        woken: Option<usize>,
    ) -> Result<(Cause, Option<usize>), ImportError> {
        // a packet over the loopback interface comes by a handler, but from a task
        if event.in_interrupt != Some(false)
            && let Some(handler) = self.cpus.handler(cpu)
        {
            return Ok((handler.into(), None));
        }
        if event.in_interrupt == Some(true) || event.pid == 0 {
            return Ok((Cause::Interrupt, None));
        }
        if event.pid < 0 {
            return Ok((Cause::Unknown, None));
        }
        let waker = self.task(&Task { pid: event.pid, comm: event.comm, prio: DEFAULT_PRIO })?;
        if self.tasks[waker].left_out.is_some() {
            return Ok((Cause::LeftOut, None));
        }
        if Some(waker) == woken {
            return Ok((Cause::Unknown, None));
        }
        self.unsure += u64::from(event.in_interrupt.is_none());
        Ok((Cause::Task, Some(waker)))
    }

    /// A task is woken: a wait of it ends, by whatever causes that.
    pub(super) fn waking(&mut self, event: &Event, cpu: usize, woken: &Task) -> Result<(), ImportError> {
        let at = event.at;
        if woken.pid == 0 {
            return Ok(());
        }
        let index = self.task(woken)?;
        let (cause, waker) = self.cause(event, cpu, Some(index))?;
        let state = self.tasks[index].state;
        let by_socket = self.sockets.wakes(cpu, self.tasks[index].waits_on);
        if self.tasks[index].left_out.is_some() {
            self.tasks[index].state = State::Queued { since: at };
            return Ok(());
        }
        match (state, waker) {
            (State::Dead, _) => return Ok(()),
            (State::Running | State::Queued { .. }, None) => {
                self.report.woken_awake += 1;
                self.tasks[index].woken_awake = (state == State::Running).then_some(cause);
                return Ok(());
            }
            (_, Some(waker)) => {
                // a packet over the loopback interface may be delivered when its sender does not run
                self.account_task(waker, at);
                // it had not gone to sleep yet, but was about to
                let awake = matches!(state, State::Running | State::Queued { .. });
                if awake {
                    self.report.woken_awake += 1;
                    self.tasks[index].woken_awake = (state == State::Running).then_some(cause);
                    self.account_task(index, at);
                }
                match state {
                    State::Blocked { since } => self.waited(index, since, at, Cause::Task),
                    State::Unknown => self.tasks[index].waits.count(Cause::Task),
                    _ => {}
                }
                let sleeps = matches!(state, State::Blocked { .. });
                let on = self.tasks[index].waits_on.filter(|_| sleeps);
                // it was about to sleep where it does so otherwise
                let on = on.or(self.tasks[index].listens.filter(|_| by_socket && awake));
                let via = on.and_then(|on| Via::of(on, index));
                if let Some(via) = via {
                    self.channels.wakes(via, waker, index, at);
                }
                let far_ns = self.tasks[index].cpu.map_or(0, |from| self.lines_ns(from, cpu, WAKEE_LINES));
                self.step(
                    waker,
                    Some(Draft::Wake {
                        task: index,
                        via,
                        awake: false,
                        far_ns,
                        answer: false,
                        nothing: false,
                    }),
                );
                let draft = self.tasks[waker].drafts.len() - 1;
                self.tasks[index].wakeup = Some(Wakeup { by: waker, draft, cpu, at });
                self.step(
                    index,
                    Some(Draft::Await { task: waker, via, awake: false, request: false, nothing: false }),
                );
                if awake {
                    return Ok(());
                }
            }
            (State::Unknown, None) => {
                self.tasks[index].waits.count(cause);
                self.step(index, Some(Draft::First { at }));
            }
            (State::Blocked { since }, None) => self.wait(index, since, at, cause),
        }
        self.watch.woken(index, at);
        self.tasks[index].state = State::Queued { since: at };
        Ok(())
    }

    /// Gives a task that runs on any CPU its time.
    pub(super) fn account_task(&mut self, index: usize, at: u64) {
        let runs = (0..self.cpus.len()).find(|cpu| self.cpus.current(*cpu) == Current::Task(index));
        runs.into_iter().for_each(|cpu| self.account(cpu, at));
    }
}
