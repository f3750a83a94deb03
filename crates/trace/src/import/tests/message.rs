//! Messages over sockets that wake nobody.

use super::*;

/// Server 2 sleeps on an instance of epoll for sockets 5 and 8, and client 10 on its own for socket 6.
const SERVER: Channel = Channel::Epoll(1);
const CLIENT: Channel = Channel::Epoll(2);

fn arrives(us: u64, pid: i32, socket: u32) -> (u64, i32, What) {
    (us, pid, What::Arrived { socket })
}

fn receives(us: u64, pid: i32, socket: u32) -> (u64, i32, What) {
    (us, pid, What::Received { socket })
}

/// The first of two tasks is preempted by the other one.
fn preempted(us: u64, pid: i32, next: i32) -> (u64, i32, What) {
    (us, pid, What::Switch { prev: task(pid), leaving: Leaving::Runnable, next: task(next) })
}

#[test]
fn a_message_that_wakes_nobody_is_waited_for_before_the_next_one_is_sent() {
    use Step::*;
    let mut events: Vec<_> = blocks(0, 2, SERVER, 10).into();
    // the first of two requests wakes the server, which finds both
    events.extend([arrives(100, 10, 5), wakes(100, 10, 2), arrives(150, 10, 8)]);
    events.extend(blocks(200, 10, CLIENT, 2));
    events.extend([receives(210, 2, 5), receives(230, 2, 8)]);
    events.extend([arrives(250, 2, 6), wakes(250, 2, 10)]);
    events.extend(blocks(300, 2, SERVER, 10));
    events.push(receives(310, 10, 6));
    events.extend(blocks(320, 10, CLIENT, 0));
    let (recorded, report) = import_events(&events);
    assert_eq!((report.messages, report.waits.task), (1, 2));
    assert_eq!(steps(&recorded, "t10-0"), [Run(100), Post(0), Run(50), Post(0), Run(50), Take(1), Run(20)]);
    assert_eq!(steps(&recorded, "t2-0"), [Take(0), Run(50), Take(0), Post(1), Run(50)]);
    // which shows in these events only
    events.retain(|event| !matches!(event.2, What::Arrived { .. } | What::Received { .. }));
    let (recorded, report) = import_events(&events);
    assert_eq!(report.messages, 0);
    assert_eq!(steps(&recorded, "t10-0"), [Run(100), Post(0), Run(100), Take(1), Run(20)]);
    assert_eq!(steps(&recorded, "t2-0"), [Take(0), Run(50), Post(1), Run(50)]);
}

#[test]
fn a_message_that_came_after_the_last_one_was_received_is_waited_for_at_once() {
    use Step::*;
    let mut events: Vec<_> = blocks(0, 2, SERVER, 10).into();
    events.extend([arrives(100, 10, 5), wakes(100, 10, 2), preempted(110, 10, 2), receives(120, 2, 5)]);
    // the server is awake when the second request comes, and also when it asks something itself, of a task that it has not
    // waited for before
    events.extend([preempted(130, 2, 10), arrives(140, 10, 8), preempted(150, 10, 2), receives(160, 2, 8)]);
    events.extend([arrives(170, 2, 6), preempted(180, 2, 10), receives(190, 10, 6)]);
    events.extend(blocks(200, 10, CLIENT, 2));
    let (recorded, report) = import_events(&events);
    let (client, server) = (1, 0);
    assert_eq!(report.messages, 2);
    assert_eq!(
        steps(&recorded, "t2-0"),
        [Take(0), Run(30), Take(0), Run(10), Wake(client), Run(10)],
        "{recorded:?}"
    );
    assert_eq!(
        steps(&recorded, "t10-0"),
        [Run(100), Post(0), Run(20), Post(0), Run(20), Await(server), Run(10)]
    );
}

#[test]
fn messages_of_tasks_that_are_left_out_are_none() {
    let mut events: Vec<_> = blocks(0, 2, SERVER, 10).into();
    // of itself, of a task that is left out, and for one
    events.extend([arrives(10, 10, 6), receives(20, 10, 6), arrives(30, 10, 5), preempted(40, 10, 2)]);
    events.extend([receives(50, 2, 5), arrives(60, 2, 6), preempted(70, 2, 10), receives(80, 10, 6)]);
    events.extend(blocks(100, 10, CLIENT, 2));
    let machine = Some(free("2c"));
    let without = vec!["t10".to_owned()];
    let (recorded, report) = import_events_with(&events, Options { machine, without, ..Options::default() });
    assert_eq!((recorded.tasks.len(), report.messages), (1, 0));
    assert!(
        recorded.tasks[0]
            .steps
            .iter()
            .all(|step| matches!(step, Step::Run(_) | Step::Sleep(_) | Step::Device(_)))
    );
    assert_eq!(import_events(&events).1.messages, 2);
}

#[test]
fn who_has_several_connections_may_await_several_answers() {
    // as above, over sockets: so many of each client with the server, used in turn
    let recorded = |connections: u64| {
        let mut events: Vec<_> = blocks(0, 2, SERVER, 10).into();
        for i in 0..24 {
            let (at, client, next) = (1000 * (i + 1), 10 + i as i32 % 2, 11 - i as i32 % 2);
            let socket = |i: u64| 100 * client as u32 + (i / 2 % connections) as u32;
            // the answer before
            events.extend((i > 1).then(|| receives(at - 10, client, socket(i - 2))));
            events.extend([arrives(at, client, 5000 + socket(i)), wakes(at, client, 2)]);
            events.extend(blocks(at + 100, client, Channel::Epoll(client as u32), 2));
            events.push(receives(at + 110, 2, 5000 + socket(i)));
            events.extend([arrives(at + 300, 2, socket(i)), wakes(at + 300, 2, client)]);
            events.extend(blocks(at + 400, 2, SERVER, next));
        }
        import_events(&events).1.answers
    };
    assert_eq!([recorded(1), recorded(2)], [24, 0]);
}
