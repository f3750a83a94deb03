//! A task's steps as they were seen, and how they become those of a workload.

use coreward_machine::Costs;
use coreward_workload::LOGIN_SESSION_DEPTH;
use coreward_workload::recorded::Step;

use super::cause::Cause;
use super::channel::Via;

/// So many differences in a row have to be equal for a timer to be periodic.
const PERIODS: usize = 10;
/// How far they may be off, in percent.
const TOLERANCE_PCT: u64 = 5;

/// What was seen of a task. Tasks are named by their index in the import.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Draft {
    /// It did this much work, and was switched to so often meanwhile.
    Run {
        work: u64,
        switches: u32,
        /// Its CPU was idle afterwards: the entities of its groups left their queues, too.
        empties: bool,
    },
    /// Through a channel, if it is known.
    Wake {
        task: usize,
        via: Option<Via>,
        /// The task was awake: it was a message, and no wakeup.
        awake: bool,
        /// What it took the waker that the task had run on another CPU, or would, in ns.
        far_ns: u64,
        /// It answers that task's request.
        answer: bool,
        /// Nothing came of it.
        nothing: bool,
    },
    Await {
        task: usize,
        via: Option<Via>,
        /// It did not sleep, since the message was there.
        awake: bool,
        /// It waits for requests.
        request: bool,
        /// Nothing came of it.
        nothing: bool,
    },
    /// It sent something that nobody is known to have waited for.
    Sent,
    /// The lines of a message through a channel came from another CPU, which took so long in the work that follows here.
    Lines {
        via: Via,
        ns: u64,
    },
    /// In the work that follows here is so much that the simulator adds by itself.
    Kernel {
        ns: u64,
    },
    /// It happened without a wakeup.
    Unseen(Unseen),
    Start(usize),
    /// It may run on other CPUs from then on; `None`: on all.
    Allow(Option<u32>),
    Nice(i8),
    /// It is in another task group from then on; `None`: in the root group.
    Group(Option<u32>),
    /// It waited for something that is not a task.
    Block {
        since: u64,
        at: u64,
        cause: Cause,
    },
    /// It waited before the recording began, until then.
    First {
        at: u64,
    },
}

/// What does not show in wakeups, but follows from others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unseen {
    /// A request whose taker was awake.
    Post(Via),
    Request(Via),
    /// An answer that came before its client slept.
    Answer,
    Take(Via),
}

/// How drafts become steps.
pub(super) struct Style<'a> {
    /// What the simulator will charge for by itself, on the machine of the recording.
    pub(super) costs: &'a Costs,
    /// From tick to tick.
    pub(super) tick_ns: u64,
    /// Interrupts come at their times, whatever the tasks do.
    pub(super) open_loop: bool,
    /// When the task started.
    pub(super) born: u64,
    /// Who started it in the recording, if that one is imported.
    pub(super) parent: Option<usize>,
    /// It was started as a process or as a thread.
    pub(super) started: Option<bool>,
    /// It is the first task of its process.
    pub(super) leads: bool,
    /// It has ended in the recording.
    pub(super) ended: bool,
}

impl Style<'_> {
    /// What arming a timer takes on average that expires after `ns`: nothing if the tick comes first.
    fn arm_ns(&self, ns: u64) -> u64 {
        let first = self.tick_ns.saturating_sub(ns);
        (u128::from(self.costs.timer_arm_ns) * u128::from(first) / u128::from(self.tick_ns.max(1))) as u64
    }
}

/// The steps, and how much of the work is the kernel's, which the simulator adds by itself.
pub(super) struct Steps {
    pub(super) steps: Vec<Step>,
    pub(super) kernel_ns: u64,
    /// Of these, what a segment was too short for.
    pub(super) missing_ns: u64,
    /// Waits that end at times of a periodic timer.
    pub(super) periodic: u64,
}

/// Leaves out what was sent to nobody, and joins the work before and after it.
pub(super) fn join(drafts: &mut Vec<Draft>) {
    drafts.retain(|draft| *draft != Draft::Sent);
    drafts.dedup_by(|next, draft| match (draft, next) {
        (
            Draft::Run { work, switches, empties },
            Draft::Run { work: more, switches: again, empties: afterwards },
        ) => {
            (*work, *switches, *empties) = (*work + *more, *switches + *again, *afterwards);
            true
        }
        _ => false,
    });
}

/// `number` is a task's index in the workload, and whether it is another process.
pub(super) fn steps(
    drafts: &[Draft],
    style: &Style<'_>,
    number: impl Fn(usize) -> Option<(u32, bool)>,
    channel: impl Fn(Via) -> Option<u32>,
) -> Steps {
    let Style { costs, born, .. } = *style;
    let periodic = periodic(drafts);
    let mut out = Steps { steps: Vec::new(), kernel_ns: 0, missing_ns: 0, periodic: 0 };
    let mut debt = match style.started {
        Some(true) => costs.fork_start_ns,
        Some(false) => costs.thread_start_ns,
        None => 0,
    };
    let exits = exits(drafts, style);
    let last = drafts[..exits.unwrap_or(drafts.len())].iter().rposition(is_work);
    for (index, draft) in drafts.iter().enumerate() {
        if exits == Some(index) {
            out.steps.push(Step::Exit);
        }
        match *draft {
            Draft::Run { work, switches, empties } => {
                debt += u64::from(switches) * (costs.context_switch_ns + costs.pick_next_ns);
                let sleeps =
                    |draft: &&Draft| !matches!(draft, Draft::Await { awake: true, .. }) && !is_debt(draft);
                debt += match drafts[index + 1..].iter().find(sleeps) {
                    Some(Draft::Await { .. }) => costs.wait_ns + costs.dequeue_ns,
                    Some(Draft::Block { since, at, cause }) => {
                        let arm_ns =
                            if cause.is_device() { 0 } else { style.arm_ns(at.saturating_sub(*since)) };
                        costs.wait_ns + costs.dequeue_ns + costs.syscall_ns + arm_ns
                    }
                    _ if style.ended && last == Some(index) => {
                        costs.exit_ns + if style.leads { costs.process_exit_ns } else { 0 }
                    }
                    _ => 0,
                };
                debt += if empties { u64::from(LOGIN_SESSION_DEPTH) * costs.group_entity_ns } else { 0 };
                let paid = debt.min(work);
                debt -= paid;
                out.kernel_ns += paid;
                match out.steps.last_mut() {
                    Some(Step::Run(ns)) => *ns += work - paid,
                    _ if work > paid => out.steps.push(Step::Run(work - paid)),
                    _ => {}
                }
            }
            Draft::Sent => {}
            Draft::Lines { via, ns } => debt += if channel(via).is_some() { ns } else { 0 },
            Draft::Kernel { ns } => debt += ns,
            Draft::Wake { task, via, awake, far_ns, answer, nothing } => {
                let Some((task, _)) = number(task) else { continue };
                debt += if awake { 0 } else { costs.wakeup_ns + costs.enqueue_ns };
                debt += far_ns;
                if nothing {
                    continue;
                }
                out.steps.push(match via.and_then(&channel) {
                    Some(_) if answer => Step::Answer,
                    channel => channel.map_or(Step::Wake(task), Step::Post),
                });
            }
            Draft::Unseen(unseen) => out.steps.extend(match unseen {
                Unseen::Post(via) => channel(via).map(Step::Post),
                Unseen::Request(via) => channel(via).map(Step::Request),
                Unseen::Answer => Some(Step::Answer),
                Unseen::Take(via) => channel(via).map(Step::Take),
            }),
            Draft::Start(task) => {
                let Some((task, process)) = number(task) else { continue };
                debt += if process { costs.fork_ns } else { costs.thread_ns };
                out.steps.push(Step::Start(task));
            }
            Draft::Allow(set) => out.steps.push(Step::Allow(set)),
            Draft::Nice(nice) => out.steps.push(Step::Nice(nice)),
            Draft::Group(group) => out.steps.push(Step::Group(group)),
            Draft::Await { .. } | Draft::Block { .. } | Draft::First { .. } => {
                // what is still owed when it sleeps cannot come out of the next segment, which has its own
                if !matches!(draft, Draft::Await { awake: true, .. }) {
                    out.missing_ns += std::mem::take(&mut debt);
                }
                let step = match *draft {
                    Draft::Await { nothing: true, .. } => None,
                    Draft::Await { task, via, request, .. } => number(task).map(|(task, _)| {
                        let take = if request { Step::Request } else { Step::Take };
                        via.and_then(&channel).map_or(Step::Await(task), take)
                    }),
                    Draft::Block { at, cause, .. } if periodic[index] || opens(style, cause) => {
                        out.periodic += u64::from(periodic[index]);
                        Some(Step::Until(at.saturating_sub(born)))
                    }
                    Draft::Block { since, at, cause } => {
                        let ns = at.saturating_sub(since);
                        Some(if cause.is_device() { Step::Device(ns) } else { Step::Sleep(ns) })
                    }
                    Draft::First { at } => Some(Step::Until(at.saturating_sub(born))),
                    _ => None,
                };
                out.steps.extend(step);
            }
        }
    }
    out.missing_ns += debt;
    out
}

fn is_work(draft: &Draft) -> bool {
    matches!(draft, Draft::Run { .. })
}

/// Does it only say what the work that follows has of others?
fn is_debt(draft: &Draft) -> bool {
    matches!(draft, Draft::Lines { .. } | Draft::Kernel { .. })
}

/// Where a process that ends wakes its parent, having given back its memory: there is no time for that afterwards.
fn exits(drafts: &[Draft], style: &Style<'_>) -> Option<usize> {
    let parent = style.parent.filter(|_| style.ended && style.leads)?;
    let other = |draft: &Draft| !is_work(draft) && !is_debt(draft) && !matches!(draft, Draft::Wake { .. });
    let before = drafts.iter().rposition(other);
    let end = before.map_or(0, |before| before + 1);
    let wakes = |draft: &Draft| matches!(draft, Draft::Wake { task, awake: false, .. } if *task == parent);
    let at = end + drafts[end..].iter().rposition(wakes)?;
    let work = |draft: &Draft| if let Draft::Run { work, .. } = draft { *work } else { 0 };
    let left: u64 = drafts[at..].iter().map(work).sum();
    (left < style.costs.process_exit_ns).then_some(at)
}

fn opens(style: &Style<'_>, cause: Cause) -> bool {
    style.open_loop && matches!(cause, Cause::Network | Cause::Interrupt | Cause::LeftOut)
}

/// Which waits end on a grid of times: a timer with a period ends them. If the waits are all equally long as well, or
/// more so, it was a sleep, and the grid is that of equal rounds.
fn periodic(drafts: &[Draft]) -> Vec<bool> {
    let mut found = vec![false; drafts.len()];
    let timed: Vec<(usize, u64, u64)> = drafts
        .iter()
        .enumerate()
        .filter_map(|(index, draft)| match *draft {
            Draft::Block { since, at, cause: Cause::Timer | Cause::Interrupt } => {
                Some((index, at, at.saturating_sub(since)))
            }
            _ => None,
        })
        .collect();
    let mut from = 0;
    while from + 1 < timed.len() {
        let period = |i: usize| timed[i + 1].1.saturating_sub(timed[i].1);
        let first = period(from);
        let equal = |i: &usize| period(*i).abs_diff(first) <= first * TOLERANCE_PCT / 100;
        let to = (from..timed.len() - 1).take_while(equal).last().unwrap_or(from) + 1;
        let spread = |values: &dyn Fn(usize) -> u64| {
            let (n, sum) = ((to - from) as f64, (from..to).map(|i| values(i) as f64).sum::<f64>());
            (from..to).map(|i| (values(i) as f64 - sum / n).abs()).sum::<f64>()
        };
        if to - from >= PERIODS && spread(&period) < spread(&|i| timed[i + 1].2) {
            timed[from..=to].iter().for_each(|(index, ..)| found[*index] = true);
        }
        from = to;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn free() -> Costs {
        let mut costs = Costs::default();
        for field in Costs::FIELDS.iter().filter(|field| field.min == 0) {
            costs.set(field.name, 0).unwrap();
        }
        costs
    }

    fn style(costs: &Costs) -> Style<'_> {
        Style {
            costs,
            tick_ns: 4_000_000,
            open_loop: false,
            born: 1000,
            parent: None,
            started: None,
            leads: false,
            ended: false,
        }
    }

    fn made(drafts: &[Draft], style: &Style<'_>) -> Vec<Step> {
        steps(drafts, style, |task| Some((task as u32, true)), |_| None).steps
    }

    fn wake(task: usize, far_ns: u64) -> Draft {
        Draft::Wake { task, via: None, awake: false, far_ns, answer: false, nothing: false }
    }

    fn awaits(task: usize) -> Draft {
        Draft::Await { task, via: None, awake: false, request: false, nothing: false }
    }

    fn run(work: u64) -> Draft {
        Draft::Run { work, switches: 0, empties: false }
    }

    #[test]
    fn waits_keep_their_length_or_their_end() {
        let costs = free();
        let block = |cause| Draft::Block { since: 5000, at: 9000, cause };
        let of = |draft, open_loop| made(&[run(1), draft], &Style { open_loop, ..style(&costs) })[1];
        let (sleeps, device, at_time) = (Step::Sleep(4000), Step::Device(4000), Step::Until(8000));
        for (cause, wanted) in [
            (Cause::Timer, [sleeps; 2]),
            (Cause::Unknown, [sleeps; 2]),
            (Cause::Block, [device; 2]),
            (Cause::Interrupt, [sleeps, at_time]),
            (Cause::Network, [device, at_time]),
            (Cause::LeftOut, [device, at_time]),
        ] {
            assert_eq!([of(block(cause), false), of(block(cause), true)], wanted, "{cause:?}");
        }
        assert_eq!(of(Draft::First { at: 9000 }, false), Step::Until(8000));
    }

    #[test]
    fn what_the_simulator_charges_for_is_taken_out() {
        let mut costs = free();
        (costs.context_switch_ns, costs.pick_next_ns, costs.wait_ns, costs.dequeue_ns) = (100, 20, 4, 3);
        (costs.wakeup_ns, costs.enqueue_ns, costs.syscall_ns) = (1000, 200, 10);
        (costs.fork_ns, costs.fork_start_ns, costs.exit_ns) = (5000, 400, 700);
        let work = |step: &Step| if let Step::Run(ns) = step { *ns } else { 0 };
        let drafted = |draft: &Draft| if let Draft::Run { work, .. } = draft { *work } else { 0 };
        let of = |drafts: &[Draft], style: &Style<'_>| {
            let steps = steps(drafts, style, |task| Some((task as u32, true)), |_| None);
            assert_eq!(
                steps.kernel_ns + steps.steps.iter().map(work).sum::<u64>(),
                drafts.iter().map(drafted).sum::<u64>()
            );
            (steps.steps, steps.missing_ns)
        };
        let twice = Draft::Run { work: 10_000, switches: 2, empties: false };
        assert_eq!(
            of(&[twice, wake(1, 0), run(10_000), awaits(1)], &style(&costs)),
            (vec![Step::Run(9760), Step::Wake(1), Step::Run(8793), Step::Await(1)], 0)
        );
        assert_eq!(of(&[wake(1, 2000), run(10_000)], &style(&costs)).0[1], Step::Run(6800));
        let block = Draft::Block { since: 0, at: 50, cause: Cause::Timer };
        assert_eq!(of(&[run(10_000), block], &style(&costs)).0[0], Step::Run(9983));
        // a timer is armed unless the tick comes first: in three of four cases, as it is a quarter of the time to the next one
        let armed = Costs { timer_arm_ns: 1000, ..costs.clone() };
        let wait = |cause| Draft::Block { since: 0, at: 1_000_000, cause };
        assert_eq!(of(&[run(10_000), wait(Cause::Timer)], &style(&armed)).0[0], Step::Run(9983 - 750));
        assert_eq!(of(&[run(10_000), wait(Cause::Block)], &style(&armed)).0[0], Step::Run(9983));
        let grouped = Costs { group_entity_ns: 40, ..costs.clone() };
        let empties = Draft::Run { work: 10_000, switches: 0, empties: true };
        assert_eq!(of(&[empties, awaits(1)], &style(&grouped)).0[0], Step::Run(9993 - 3 * 40));
        assert_eq!(of(&[run(10_000), awaits(1)], &style(&grouped)).0[0], Step::Run(9993));
        let started = Style { started: Some(true), ended: true, ..style(&costs) };
        assert_eq!(of(&[run(10_000)], &started).0, [Step::Run(8900)]);
        let process = Costs { process_exit_ns: 2000, ..costs.clone() };
        let ends = |leads| Style { ended: true, leads, ..style(&process) };
        assert_eq!(of(&[run(10_000)], &ends(true)).0, [Step::Run(7300)]);
        assert_eq!(of(&[run(10_000)], &ends(false)).0, [Step::Run(9300)]);
        assert_eq!(of(&[run(100), Draft::Start(1), run(10_000)], &style(&costs)).0[2], Step::Run(5000));
        // a process has given back its memory when it wakes its parent, unless it goes on for longer than that takes
        let ends = Style { started: Some(true), parent: Some(7), ..ends(true) };
        for (after, left) in
            [(1999, vec![Step::Exit, Step::Wake(7), Step::Run(799)]), (2001, vec![Step::Wake(7)])]
        {
            let steps = of(&[run(10_000), wake(7, 0), run(after)], &ends).0;
            assert!(steps[1..].starts_with(&left), "{after}: {steps:?}");
        }
        assert_eq!(of(&[run(10_000), wake(7, 0), run(1500)], &ends).0[0], Step::Run(10_000 - 400 - 2700));
        let other = [run(10_000), wake(6, 0), run(1500)];
        assert!(!of(&other, &ends).0.contains(&Step::Exit));
        // a segment that is too short for its costs has none, and the next one does not pay
        let short = [wake(1, 0), run(200), awaits(1), run(10_000)];
        assert_eq!(
            of(&short, &style(&costs)),
            (vec![Step::Wake(1), Step::Await(1), Step::Run(10_000)], 1007)
        );
    }

    #[test]
    fn a_periodic_timer_is_told_from_a_sleep() {
        let costs = free();
        // rounds of 10 us with work of 1 to 3 us: either the rounds are equal, or the sleeps
        let rounds = |timer: bool, n: u64| {
            let mut at = 1000;
            let mut drafts = Vec::new();
            for i in 0..n {
                let work = 1000 + 100 * (i * 7 % 3);
                let since = at + work;
                at = if timer { 1000 + 10_000 * (i + 1) } else { since + 9000 };
                drafts.extend([run(work), Draft::Block { since, at, cause: Cause::Interrupt }]);
            }
            made(&drafts, &style(&costs))
        };
        assert_eq!(rounds(true, 12)[23], Step::Until(120_000));
        assert_eq!(rounds(false, 12)[23], Step::Sleep(9000));
        assert!(matches!(rounds(true, 10)[19], Step::Sleep(_)), "too few to tell");
    }
}
