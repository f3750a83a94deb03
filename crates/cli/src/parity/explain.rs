//! `--explain`: one decision step by step: its inputs, the rule that applied, and the result.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result, bail};
use coreward_parity::format::{
    BalanceHead, CPU_CURR_IDLE, CPU_IDLE_STATE, CPU_TTWU_PENDING, CpuState, PLACEMENT_IN_TASK, PlacementHead,
    TASK_EXITING, TASK_PERCPU_KTHREAD, TASK_SCHED_IDLE, TaskState,
};
use coreward_parity::{Balance, Choice, Outcome, Placement, Record, RecordedMachine, Replay, States};
use coreward_policy::Code;
use serde::Serialize;

use super::list::task_name;
use super::settings::Input;
use crate::cli;
use crate::explain::notes;
use crate::output;

/// One step: a heading and its lines.
#[derive(Serialize)]
struct Step {
    step: String,
    lines: Vec<String>,
}

impl Step {
    fn new(step: impl Into<String>, lines: Vec<String>) -> Step {
        Step { step: step.into(), lines }
    }
}

pub(crate) fn run(args: &cli::Parity, file: &Path, number: u64, out: &mut dyn Write) -> Result<()> {
    let Input { mut reader, mut replay, .. } = Input::open(args, file)?;
    let machine = reader.machine().clone();
    // the last balance of each CPU, for the choice of a queue that follows it
    let mut balances = BTreeMap::new();
    let (mut read, mut steps) = (0, None);
    for record in &mut reader {
        let record = record?;
        read += 1;
        let outcomes = replay.compare(&record);
        if read == number {
            steps = Some(explain(&machine, &mut replay, &record, &outcomes, &balances)?);
        } else if let (None, Record::Balance(balance)) = (&steps, record) {
            balances.insert(balance.head.dst_cpu, balance);
        }
    }
    let Some(steps) = steps else {
        bail!("--explain is {number}, allowed are 1 to {read} in {}", file.display());
    };
    if args.json {
        return output::json(out, &steps);
    }
    for Step { step, lines } in steps {
        writeln!(out, "{step}")?;
        lines.iter().try_for_each(|line| writeln!(out, "  {line}"))?;
    }
    Ok(())
}

fn explain(
    machine: &RecordedMachine,
    replay: &mut Replay,
    record: &Record,
    outcomes: &[Outcome],
    balances: &BTreeMap<i32, Box<Balance>>,
) -> Result<Vec<Step>> {
    let outcome =
        outcomes.first().context("the balance that this choice of a queue belongs to is not in the file")?;
    let mut steps = match record {
        Record::Placement(placement) => placement_steps(machine, replay.code(), placement, outcome),
        Record::Balance(balance) => balance_steps(machine, replay, balance),
        Record::Queue(queue) => {
            let balance = balances.values().find(|balance| balance.head.sequence == queue.sequence);
            balance.map_or_else(Vec::new, |balance| queue_steps(machine, balance))
        }
        Record::Step(_) => Vec::new(),
    };
    steps.insert(0, Step::new(format!("decision {}: {}", outcome.number, outcome.path.name()), Vec::new()));
    steps.push(stability(outcome));
    for outcome in outcomes {
        steps.push(Step::new(
            format!("{}: {}", outcome.path.name(), if outcome.agrees() { "agree" } else { "DIFFER" }),
            vec![
                format!("policy: {} ({})", outcome.policy, outcome.policy_reason),
                format!("kernel: {} ({})", outcome.kernel, outcome.kernel_reason),
            ],
        ));
    }
    Ok(steps)
}

fn stability(outcome: &Outcome) -> Step {
    match outcome.is_stable() {
        true => Step::new("stable: nothing that it may read changed meanwhile", Vec::new()),
        false => Step::new(
            "unstable: these changed meanwhile",
            outcome.moved.iter().map(ToString::to_string).collect(),
        ),
    }
}

fn placement_steps(
    machine: &RecordedMachine,
    code: &Code,
    placement: &Placement,
    outcome: &Outcome,
) -> Vec<Step> {
    let head = &placement.head;
    let decision = &outcome.decision;
    let mut inputs = vec![
        format!(
            "{} of {} by {} on CPU {}{}; previous CPU {}, last ran on CPU {}",
            crate::explain::placement(decision),
            task_name(&head.task.comm, head.task.pid),
            task_name(&head.waker.comm, head.waker.pid),
            head.this_cpu,
            if head.flags & PLACEMENT_IN_TASK == 0 { ", from an interrupt" } else { "" },
            head.prev_cpu,
            head.task_cpu
        ),
        format!("allowed CPUs {}; {}", placement.allowed, task_line(&head.task)),
        format!("waker: {}", task_line(&head.waker)),
    ];
    inputs.push(if head.waker.woke_task != 0 {
        String::from("the task is the waker's last wakee")
    } else {
        String::from("the waker's last wakee is another task")
    });
    let mut marks = BTreeMap::new();
    mark(&mut marks, head.this_cpu, "waker");
    mark(&mut marks, head.prev_cpu, "previous");
    if !head.is_slow() {
        mark(&mut marks, head.task.recent_used_cpu, "recent");
        mark(&mut marks, decision.target, "target");
    }
    mark(&mut marks, decision.cpu, "policy");
    mark(&mut marks, head.chosen, "kernel");
    let mut rule: Vec<_> = notes(code, decision).map(|(_, text)| text.to_owned()).collect();
    if !head.is_slow() {
        rule.insert(0, format!("target: CPU {}", decision.target));
    }
    rule.push(format!("{} CPUs and {} groups looked at", decision.cpus_scanned, decision.groups_scanned));
    rule.push(format!("rule: {}", outcome.policy_reason));
    vec![
        Step::new("task and waker", inputs),
        domain_step(machine, head.this_cpu),
        cache_step(machine, head, &placement.states),
        cpu_step(machine, &placement.states, &marks),
        Step::new("the policy's way", rule),
    ]
}

fn balance_steps(machine: &RecordedMachine, replay: &mut Replay, balance: &Balance) -> Vec<Step> {
    let head = &balance.head;
    let mut marks = BTreeMap::new();
    mark(&mut marks, head.dst_cpu, "destination");
    vec![
        Step::new("balance", vec![balance_line(head), format!("considered CPUs {}", balance.cpus)]),
        domain_step(machine, head.dst_cpu),
        group_step(machine, balance),
        cpu_step(machine, &balance.states, &marks),
        Step::new("the policy's way", replay.describe_groups(balance).to_vec()),
    ]
}

fn queue_steps(machine: &RecordedMachine, balance: &Balance) -> Vec<Step> {
    let mut marks = BTreeMap::new();
    mark(&mut marks, balance.head.dst_cpu, "destination");
    let wanted = Choice::Imbalance(balance.head.migration_type, balance.head.imbalance);
    let group = format!("the kernel moves {wanted} from the group of CPUs {}", balance.group);
    // a queue is chosen on the state that the choice of the group ended with
    let mut states = balance.states.clone();
    states.changed.iter().for_each(|changed| states.cpus[changed.cpu as usize] = changed.after);
    vec![Step::new("balance", vec![balance_line(&balance.head), group]), cpu_step(machine, &states, &marks)]
}

fn balance_line(head: &BalanceHead) -> String {
    let idle = ["busy", "idle", "newly idle"].get(head.idle as usize).unwrap_or(&"?");
    format!(
        "CPU {} ({idle}) balances its domain of {} CPUs; {} attempts failed before",
        head.dst_cpu, head.span_weight, head.nr_balance_failed
    )
}

fn mark(marks: &mut BTreeMap<usize, Vec<&'static str>>, cpu: i32, what: &'static str) {
    if let Ok(cpu) = usize::try_from(cpu) {
        marks.entry(cpu).or_default().push(what);
    }
}

fn task_line(task: &TaskState) -> String {
    let flags = [
        (TASK_PERCPU_KTHREAD, ", per-CPU kthread"),
        (TASK_SCHED_IDLE, ", SCHED_IDLE"),
        (TASK_EXITING, ", exiting"),
    ];
    let flags: String =
        flags.iter().filter(|(bit, _)| task.flags & bit != 0).map(|(_, text)| *text).collect();
    format!(
        "load {} (of its queue {}, which is {} of its CPU), utilisation {}, estimated {}, {} wakee flips, recent CPU {}{flags}",
        task.load_avg,
        task.cfs_rq_load_avg,
        task.cfs_rq_h_load,
        task.util_avg,
        task.util_est & 0x7fff_ffff,
        task.wakee_flips,
        task.recent_used_cpu
    )
}

fn domain_step(machine: &RecordedMachine, cpu: i32) -> Step {
    let domains = usize::try_from(cpu).ok().and_then(|cpu| machine.domains.get(cpu));
    let lines = domains.into_iter().flatten().map(|domain| {
        let groups: Vec<_> = domain.groups.iter().map(|group| group.span.to_string()).collect();
        format!(
            "domain {}: CPUs {}, groups {}, imbalance_pct {}",
            domain.head.index,
            domain.span,
            groups.join(" | "),
            domain.head.imbalance_pct
        )
    });
    Step::new(format!("domains of CPU {cpu}"), lines.collect())
}

fn cache_step(machine: &RecordedMachine, head: &PlacementHead, states: &States) -> Step {
    let mut lines = Vec::new();
    for cpu in [head.this_cpu as usize, head.prev_cpu as usize] {
        let llc = machine.cpus[cpu].head.llc_id;
        let state = &states.cpus[cpu];
        let core =
            if state.has_idle_cores != 0 { "has an idle core" } else { "is not known to have an idle core" };
        lines.push(format!("LLC {llc} of CPU {cpu}: {core}; a scan may look at {} CPUs", state.nr_idle_scan));
    }
    lines.dedup();
    Step::new("last-level caches", lines)
}

fn group_step(machine: &RecordedMachine, balance: &Balance) -> Step {
    let mut states = balance.states.groups.iter();
    let mut lines = Vec::new();
    for domain in machine.domains.iter().flatten() {
        let Some(state) = states.next() else { break };
        if domain.head.cpu as i32 == balance.head.dst_cpu {
            lines.push(format!(
                "domain {}: CPUs {}: capacity {} ({} to {} a CPU), imbalance {}, to be updated at tick {} (it is {})",
                domain.head.index,
                domain.groups[0].span,
                state.capacity,
                state.min_capacity,
                state.max_capacity,
                state.imbalance,
                state.next_update,
                balance.head.jiffies
            ));
        }
    }
    Step::new("own groups", lines)
}

fn cpu_step(machine: &RecordedMachine, states: &States, marks: &BTreeMap<usize, Vec<&'static str>>) -> Step {
    let lines = states.cpus.iter().enumerate().map(|(cpu, state)| {
        let place = &machine.cpus[cpu];
        let marks = marks.get(&cpu).map_or(String::new(), |marks| format!("  <- {}", marks.join(", ")));
        format!("CPU {cpu} (core {}, LLC {}): {}{marks}", place.core, place.head.llc_id, cpu_line(state))
    });
    Step::new("CPUs before the decision", lines.collect())
}

fn cpu_line(state: &CpuState) -> String {
    let idle = match (state.flags & CPU_CURR_IDLE != 0, state.nr_running) {
        (true, 0) => String::from("idle"),
        (true, n) => format!("idle task runs, {n} queued"),
        (false, n) => format!("{n} running"),
    };
    let pending = if state.flags & CPU_TTWU_PENDING != 0 { ", a wakeup is on its way" } else { "" };
    let delayed = state.h_nr_queued.saturating_sub(state.h_nr_runnable);
    let delayed = if delayed > 0 { format!(", {delayed} delayed") } else { String::new() };
    let sched_idle =
        if state.h_nr_idle > 0 { format!(", {} SCHED_IDLE", state.h_nr_idle) } else { String::new() };
    let sleep = match state.flags & CPU_IDLE_STATE {
        0 => String::new(),
        _ => format!(", exit latency {} us", state.exit_latency),
    };
    let misfit = match state.misfit_task_load {
        0 => String::new(),
        load => format!(", misfit load {load}"),
    };
    format!(
        "{idle}{pending}{delayed}{sched_idle}{sleep}, load {}, runnable {}, utilisation {} (estimated {}), capacity {}{misfit}",
        state.load_avg, state.runnable_avg, state.util_avg, state.util_est, state.capacity
    )
}
