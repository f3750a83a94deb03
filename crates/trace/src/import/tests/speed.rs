//! Work where cycles are counted.

use super::*;

/// A task works for 40 us, wakes another one and works for 60 more, all at one speed; having slept, it works for 20 us, is
/// preempted, and works for 30 us more, at others.
fn ran_at(mhz: [u32; 3]) -> (Vec<Step>, Option<f64>) {
    let switch = |prev, leaving, next| What::Switch { prev: task(prev), leaving, next: task(next) };
    let speed = |mhz| What::Speed { khz: mhz * 1000, fastest_khz: 3_000_000 };
    let (recorded, report) = import_events_with(
        &[
            (0, 0, switch(0, Leaving::Runnable, 1)),
            wakes(40, 1, 2),
            (100, 1, speed(mhz[0])),
            (100, 1, switch(1, Leaving::Blocked, 0)),
            wakes(110, 0, 1),
            (110, 0, switch(0, Leaving::Runnable, 1)),
            (130, 1, speed(mhz[1])),
            (130, 1, switch(1, Leaving::Runnable, 2)),
            (140, 2, switch(2, Leaving::Runnable, 1)),
            (170, 1, speed(mhz[2])),
            (170, 1, switch(1, Leaving::Blocked, 0)),
        ],
        Options { machine: Some(free("2c")), only: vec!["t1".into()], ..Options::default() },
    );
    (steps(&recorded, "t1-0"), report.speed_pct)
}

#[test]
fn work_is_what_it_takes_at_full_speed() {
    use Step::*;
    assert_eq!(ran_at([3000; 3]), (vec![Run(100), Sleep(10), Run(50)], Some(100.0)));
    // each stint of a segment has its own speed
    assert_eq!(ran_at([1500, 3000, 1000]), (vec![Run(50), Sleep(10), Run(30)], Some(100.0 * 80.0 / 150.0)));
    let turbo = ran_at([3300, 3000, 3000]);
    assert_eq!(turbo.0[0], Run(110), "faster than its fastest tenth");
}
