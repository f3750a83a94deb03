//! The tracepoints of the kernel that runs the tests.

use std::io::ErrorKind;
use std::thread::available_parallelism;

use coreward_measure::{Distance, Tracer};

/// As root a command's wakeups are seen; another user is told that it may not, and root that tracefs is missing.
#[test]
fn a_command_is_followed_by_whoever_may() {
    let cpus = available_parallelism().unwrap().get();
    match Tracer::new(cpus) {
        Ok(tracer) => {
            let sleeps = ["sh", "-c", "for i in 1 2 3; do sleep 0.01; done"];
            let traced = tracer.run(&sleeps, |_, _| Distance::Llc).unwrap();
            assert_eq!(traced.lost, 0);
            assert!(traced.scheduling.wakeup_latency_us(50.0).unwrap() > 0.0);
            // the shell's children were followed, too: each of them runs before and after it sleeps
            assert!(traced.scheduling.run_us(50.0).unwrap() > 0.0);
            assert!(traced.counted.switches_voluntary >= 3);
        }
        Err(error) => {
            let expected = [ErrorKind::PermissionDenied, ErrorKind::NotFound];
            assert!(expected.contains(&error.kind()), "{error}");
        }
    }
}
