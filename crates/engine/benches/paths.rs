//! The paths that a simulation spends its time on, one by one.

#![allow(missing_docs)] // of the function that criterion_group makes

use coreward_engine::queue::EventQueue;
use coreward_policy::System;
use criterion::{Criterion, criterion_group, criterion_main};
use std::hint::black_box;

fn event_queue(c: &mut Criterion) {
    let mut queue = EventQueue::new(385);
    (0..385).for_each(|slot| queue.set(slot, slot as u64 * 7 % 1000));
    c.bench_function("event queue: move the next of 385", |b| {
        b.iter(|| {
            let (time, slot) = queue.next();
            queue.set(black_box(slot), time + 1000 + slot as u64 % 13);
        });
    });
}

fn pelt(c: &mut Criterion) {
    let mut sys = System::default();
    sys.cpu[0].load_weight = 1024;
    sys.cpu[0].cfs_nr_running = 1;
    sys.cpu[0].capacity_orig = 1024;
    sys.cpu[0].curr = 1;
    let mut now = 1 << 20;
    c.bench_function("PELT: a runqueue, every 300 us", |b| {
        b.iter(|| {
            now += 300_000;
            sys.update_blocked_averages(0, now);
            black_box(sys.cpu[0].avg.load_avg)
        });
    });
}

criterion_group!(benches, event_queue, pelt);
criterion_main!(benches);
