//! Every feature and tunable has a state built by hand in which its two sides differ: in one of the
//! policy's C tests, or, if only the engine or the machine's builder reads it, in a test listed
//! here. (That it changes a run, too, is shown in `policy_knobs.rs`.)

use coreward_policy::{FEATURES, TUNABLES};
use std::fs;
use std::path::{Path, PathBuf};

/// What the C policy does not read, with the file, from the workspace's root, and the test of it.
const OUTSIDE_THE_POLICY: &[(&str, &str, &str)] = &[
    // which CPU queues a woken task
    ("TTWU_QUEUE", "crates/engine/tests/ttwu_queue.rs", "across_caches_the_target_queues_with_ttwu_queue"),
    (
        "TTWU_QUEUE_IDLE",
        "crates/engine/tests/ttwu_queue.rs",
        "within_a_cache_an_idle_target_queues_with_ttwu_queue_idle",
    ),
    (
        "TTWU_QUEUE_L2",
        "crates/engine/tests/ttwu_queue.rs",
        "within_a_cache_another_core_queues_with_ttwu_queue_l2",
    ),
    // when a running task gives way
    ("HRTICK", "crates/engine/tests/preemption.rs", "with_hrtick_a_turn_ends_when_the_request_is_served"),
    (
        "PREEMPT_FULL",
        "crates/engine/tests/preemption.rs",
        "a_system_call_is_finished_first_but_with_preempt_full",
    ),
    ("PREEMPT_LAZY", "crates/engine/src/wakeup.rs", "a_lazy_request_interrupts_nobody_but_an_idle_cpu"),
    // which of the two disciplines a queue has
    ("EEVDF", "crates/engine/tests/cfs.rs", "a_sleeper_waits_without_preemption_and_under_eevdf"),
    // what a task group's line costs
    // which tasks a pipe wakes
    (
        "PIPE_WAKE_WHILE_FULL",
        "crates/engine/src/channel.rs",
        "a_pipes_writer_is_woken_when_a_buffer_is_free_or_before_6_14_on_every_read_of_a_full_pipe",
    ),
    // what a message takes
    (
        "PIPE_TIMES",
        "crates/engine/tests/physics.rs",
        "a_pipes_times_are_set_by_each_write_and_read_before_6_15",
    ),
    // flags of domains, which the machine's rules set
    ("relax_domain_level", "crates/machine/tests/seed002.rs", "after_the_patch"),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// All C tests of the policy, one after the other.
fn c_tests() -> String {
    let mut files: Vec<PathBuf> =
        fs::read_dir(root().join("policy/tests")).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|e| e == "c" || e == "h"));
    files.iter().map(|path| fs::read_to_string(path).unwrap()).collect()
}

/// Does this name of C stand in the text, and not as a part of another?
fn names(text: &str, name: &str) -> bool {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    text.split(|c| !part(c)).any(|word| word == name)
}

#[test]
fn every_feature_and_tunable_has_a_state_by_hand() {
    let c = c_tests();
    let in_c = |name: &str, kind: &str| names(&c, &format!("CW_{kind}_{name}"));
    let listed = |name: &str| OUTSIDE_THE_POLICY.iter().any(|(listed, ..)| *listed == name);
    let features = FEATURES.iter().map(|f| (f.name, "FEAT"));
    let all = features.chain(TUNABLES.iter().map(|t| (t.name, "TUNE")));
    let missing: Vec<&str> =
        all.filter(|(name, kind)| !in_c(name, kind) && !listed(name)).map(|(name, _)| name).collect();
    assert!(missing.is_empty(), "no test in policy/tests or in OUTSIDE_THE_POLICY names {missing:?}");
}

#[test]
fn what_is_listed_exists() {
    let known: Vec<&str> = FEATURES.iter().map(|f| f.name).chain(TUNABLES.iter().map(|t| t.name)).collect();
    for (name, file, test) in OUTSIDE_THE_POLICY {
        assert!(known.contains(name), "{name} is not in features.def any more");
        let text = fs::read_to_string(root().join(file)).unwrap();
        assert!(text.contains(&format!("fn {test}()")), "{name}: {file} has no test {test}");
    }
}
