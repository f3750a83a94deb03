//! What a task's time has of other CPUs, and of other processes: the simulator adds it by itself.

use coreward_engine::{RQ_LINES, SWITCH_LINES, WAKEE_LINES};

use super::*;

/// Events at us, on a CPU, of a task.
fn on_cpus(machine: Machine, events: &[(u64, u32, i32, What)]) -> Recorded {
    let mut import = Import::new(Options { machine: Some(machine), to_ns: u64::MAX, ..Options::default() });
    for (us, cpu, pid, what) in events {
        let event = Event {
            at: us * 1000,
            cpu: *cpu,
            pid: *pid,
            tgid: Some(*pid),
            comm: task(*pid).comm,
            in_interrupt: Some(false),
            what: *what,
        };
        import.event(&event).unwrap();
    }
    import.finish(&Recording::of(Vec::new()).unwrap()).unwrap().0
}

fn costs(set: impl FnOnce(&mut Costs)) -> Machine {
    let mut machine = free("2c");
    set(&mut machine.costs);
    machine
}

fn switch(prev: i32, leaving: Leaving, next: i32) -> What {
    What::Switch { prev: task(prev), leaving, next: task(next) }
}

fn waking(woken: i32) -> What {
    What::Waking { task: task(woken) }
}

/// The second task slept on CPU 1, is woken from CPU 0 at 100 us, and runs so much later on a CPU.
fn woken(machine: Machine, latency: u64, cpu: u32) -> Recorded {
    let switches = match cpu {
        0 => (switch(1, Leaving::Runnable, 2), switch(2, Leaving::Blocked, 1)),
        _ => (switch(0, Leaving::Runnable, 2), switch(2, Leaving::Blocked, 0)),
    };
    on_cpus(
        machine,
        &[
            (0, 0, 0, switch(0, Leaving::Runnable, 1)),
            (0, 1, 0, switch(0, Leaving::Runnable, 2)),
            (10, 1, 2, switch(2, Leaving::Blocked, 0)),
            (100, 0, 1, waking(2)),
            (100 + latency, cpu, if cpu == 0 { 1 } else { 0 }, switches.0),
            (150, cpu, 2, switches.1),
            (200, 0, 1, switch(1, Leaving::Blocked, 0)),
        ],
    )
}

/// Sending an interrupt is the kernel's time, which the simulator charges for, and not the waker's work.
#[test]
fn what_an_interrupt_cost_its_sender_is_no_work() {
    let work = |latency: u64| {
        let machine = costs(|costs| (costs.ipi_send_ns, costs.ipi_deliver_ns) = (4000, 5000));
        steps(&woken(machine, latency, 1), "t1-0")[2]
    };
    assert_eq!(work(5), Step::Run(96), "it halted");
    assert_eq!(work(4), Step::Run(100), "it polled");
}

/// The first task wakes the second from CPU 0 at 100 us, which preempts the third on CPU 1.
fn on_busy(machine: Machine) -> Recorded {
    on_cpus(
        machine,
        &[
            (0, 0, 0, switch(0, Leaving::Runnable, 1)),
            (0, 1, 0, switch(0, Leaving::Runnable, 2)),
            (10, 1, 2, switch(2, Leaving::Blocked, 3)),
            (100, 0, 1, waking(2)),
            (110, 1, 3, switch(3, Leaving::Runnable, 2)),
            (150, 1, 2, switch(2, Leaving::Blocked, 3)),
            (200, 1, 3, switch(3, Leaving::Blocked, 0)),
            (200, 0, 1, switch(1, Leaving::Blocked, 0)),
        ],
    )
}

/// Nor is it that of the task which it interrupted.
#[test]
fn what_an_interrupt_took_of_a_task_is_no_work() {
    let recorded = on_busy(costs(|costs| costs.ipi_handle_ns = 7000));
    assert_eq!(steps(&recorded, "t3-0"), [Step::Run(150 - 7)]);
    assert_eq!(steps(&recorded, "t1-0"), [Step::Run(100), Step::Wake(1), Step::Run(100)]);
}

/// The waker fetches the task from the CPU that it ran on; whoever ran before it where it runs next does so again.
#[test]
fn lines_of_a_task_that_is_woken_elsewhere_are_no_work() {
    let machine = || costs(|costs| (costs.transfer_llc_ns, costs.mlp_pct) = (1000, 100));
    let recorded = woken(machine(), 1, 1);
    assert_eq!(steps(&recorded, "t1-0")[2], Step::Run(100 - WAKEE_LINES));
    assert_eq!(steps(&recorded, "t2-0")[2], Step::Run(49));
    let recorded = woken(machine(), 1, 0);
    assert_eq!(steps(&recorded, "t1-0")[2], Step::Run(51 - WAKEE_LINES), "which is here now");
    let recorded = on_busy(machine());
    assert_eq!(steps(&recorded, "t1-0")[2], Step::Run(100 - WAKEE_LINES - RQ_LINES));
    assert_eq!(steps(&recorded, "t3-0"), [Step::Run(150 - SWITCH_LINES)]);
}

#[test]
fn lines_of_messages_between_cpus_are_no_work() {
    use Step::*;
    const SERVER: Channel = Channel::Epoll(1);
    let recorded = |server: u32| {
        let machine = costs(|costs| (costs.transfer_llc_ns, costs.message_lines) = (1000, 20));
        // the server is awake when the requests come
        let requests = [100, 200].into_iter().flat_map(|us| {
            let leaves = (us + 10, 0, 1, switch(1, Leaving::Runnable, 2));
            let comes = (us + 40, 0, 2, switch(2, Leaving::Runnable, 1));
            let shared = server == 0;
            let arrives = (us, 0, 1, What::Arrived { socket: 5 });
            let receives = (us + 30, server, 2, What::Received { socket: 5 });
            [Some(arrives), Some(leaves).filter(|_| shared), Some(receives), Some(comes).filter(|_| shared)]
        });
        let mut events = vec![(0, server, 0, switch(0, Leaving::Runnable, 2))];
        events.push((5, server, 2, What::WaitsOn { channel: SERVER }));
        events.push((10, server, 2, switch(2, Leaving::Runnable, if server == 0 { 1 } else { 2 })));
        if server == 1 {
            events.push((10, 0, 0, switch(0, Leaving::Runnable, 1)));
        }
        events.extend(requests.flatten());
        events.push((300, 0, 1, switch(1, Leaving::Blocked, 0)));
        if server == 1 {
            events.push((300, 1, 2, switch(2, Leaving::Blocked, 0)));
        }
        on_cpus(machine, &events)
    };
    let apart = recorded(1);
    assert_eq!(apart.sockets, [0]);
    // where the first message was received is not known before
    assert_eq!(steps(&apart, "t1-0"), [Run(90), Post(0), Run(90), Post(0), Run(100)]);
    assert_eq!(steps(&apart, "t2-0"), [Run(120), Take(0), Run(90), Take(0), Run(70)]);
    let together = recorded(0);
    assert_eq!(together.sockets, [0]);
    assert_eq!(steps(&together, "t1-0"), [Run(90), Post(0), Run(70), Post(0), Run(70)]);
    assert_eq!(steps(&together, "t2-0"), [Run(30), Take(0), Run(30), Take(0), Run(10)]);
}

/// A process that takes turns with another one refills a sixth of its translations, and all of them when it comes first.
#[test]
fn translations_that_another_process_has_pushed_out_are_no_work() {
    let waits = What::WaitsOn { channel: Channel::Time };
    let mut events = vec![(0, 0, 1, waits), (0, 1, 2, waits)];
    events.push((0, 1, 2, switch(2, Leaving::Runnable, 0)));
    for turn in 0..6 {
        let (prev, next) = if turn % 2 == 0 { (1, 2) } else { (2, 1) };
        events.push((100 * (turn + 1), 0, prev, switch(prev, Leaving::Runnable, next)));
    }
    events.push((700, 0, 1, switch(1, Leaving::Blocked, 0)));
    let recorded = on_cpus(costs(|costs| costs.tlb_refill_ns = 6000), &events);
    assert_eq!(steps(&recorded, "t1-0"), [Step::Run(400 - 6 - 1 - 1)]);
    assert_eq!(steps(&recorded, "t2-0"), [Step::Run(300 - 6 - 1 - 1)]);
}
