//! What is read from outputs of real tools, which are stored in `data/`.

use coreward_measure::Tool;

/// The time in s and the number of events that the output of a command line tells.
fn read(line: &str, output: &str) -> (Option<f64>, Option<f64>) {
    let tool = Tool::of(&line.split_whitespace().collect::<Vec<_>>()).unwrap();
    (tool.time_s(output), tool.events(output))
}

#[test]
fn times_and_events_are_read_as_the_tools_print_them() {
    for (line, output, expected) in [
        ("hackbench -g 1 -T -p", include_str!("data/hackbench.txt"), (Some(0.023), None)),
        ("perf bench sched pipe -l 2000", include_str!("data/perf-pipe.txt"), (Some(0.023), None)),
        ("perf bench sched messaging -g 1", include_str!("data/perf-messaging.txt"), (Some(0.056), None)),
        ("sysbench threads run", include_str!("data/sysbench.txt"), (Some(16.8153), Some(50.0))),
        ("cyclictest -t 2 -q", include_str!("data/cyclictest.txt"), (None, Some(824.0))),
        ("stress-ng --cpu 1 --yield 2", include_str!("data/stress-ng.txt"), (None, None)),
        ("schbench -t 2", include_str!("data/schbench.txt"), (None, Some(4_936.0))),
        ("rt-app a.json", "", (None, None)),
        ("schbench-old -t 2", include_str!("data/schbench.txt"), (None, None)),
    ] {
        assert_eq!(read(line, output), expected, "{line}");
    }
}

#[test]
fn output_of_a_run_that_failed_tells_nothing() {
    for line in ["hackbench", "sysbench threads run", "cyclictest", "stress-ng --yield 1", "schbench -t 2"] {
        for output in ["", "Killed\n", "T:\n", "metrc: [1]\n", "Request Latencies percentiles ()\n"] {
            assert_eq!(read(line, output), (None, None), "{line}: {output}");
        }
    }
}
