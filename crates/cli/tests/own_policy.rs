//! `--policy` and `coreward policy`: a policy of the user's own.

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::{Ran, directory};
use serde_json::Value;

/// A place of work: `own` is a directory that `coreward policy new` wrote; libraries are kept in `cache`.
struct Place(PathBuf);

impl Place {
    fn new(test: &str) -> Place {
        let place = Place(directory(test));
        assert_eq!(place.run(&["policy", "new", "own"], "cc").status, 0);
        place
    }

    /// Runs the command there with a C compiler.
    fn run(&self, args: &[&str], compiler: &str) -> Ran {
        let output = Command::new(env!("CARGO_BIN_EXE_coreward"))
            .args(args)
            .current_dir(&self.0)
            .env("XDG_CACHE_HOME", self.0.join("cache"))
            .env("CC", compiler)
            .output()
            .expect("it starts");
        Ran {
            status: output.status.code().expect("it ends by itself"),
            stdout: String::from_utf8(output.stdout).expect("text"),
            stderr: String::from_utf8(output.stderr).expect("text"),
        }
    }

    /// The report of a run with these options.
    fn report(&self, options: &[&str]) -> Value {
        let run = ["run", "hackbench -g 1 -l 20", "--machine", "2n2l4c2t", "--json"];
        let ran = self.run(&[&run[..], options].concat(), "cc");
        assert_eq!((ran.status, ran.stderr.as_str()), (0, ""));
        serde_json::from_str(&ran.stdout).expect("JSON")
    }

    fn change(&self, file: &str, from: &str, to: &str) {
        let path = self.0.join("own").join(file);
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains(from));
        fs::write(path, text.replacen(from, to, 1)).unwrap();
    }
}

/// All files below a directory, with their text.
fn files(dir: &Path) -> Vec<(PathBuf, String)> {
    let mut all = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => all.extend(files(&path)),
            false => all.push((path.clone(), fs::read_to_string(path).unwrap())),
        }
    }
    all.sort();
    all
}

/// Three threads that are released from CPU 0 after 0.1 s, and compute for 1 s each.
const RELEASED: &str = r#"{"tasks": {"t": {"instance": 3, "loop": 1, "phases": {
    "held": {"cpus": [0], "loop": 1, "runtime": 100000},
    "free": {"cpus": [0, 1, 2, 3], "loop": 1, "run": 1000000}}}}}"#;

#[test]
fn a_policy_that_pulls_nothing_breaks_an_invariant() {
    let place = Place::new("own_policy_pulls_nothing");
    fs::write(place.0.join("w.json"), RELEASED).unwrap();
    let run = ["run", "rt-app w.json", "--machine", "4c", "--json", "--check"];
    let checks = |ran: &Ran| serde_json::from_str::<Value>(&ran.stdout).expect("JSON")["checks"].clone();

    let intact = place.run(&run, "cc");
    assert_eq!((intact.status, intact.stderr.as_str()), (0, ""));
    assert_eq!(checks(&intact)["violations"].as_array().map(Vec::len), Some(0));

    place.change("balance/imbalance.h", "if (!is_imbalanced(sys, env))", "if (1)");
    let broken = place.run(&[&run[..], &["--policy", "own"]].concat(), "cc");
    assert_eq!(broken.status, 1);
    assert!(broken.stderr.starts_with("coreward: work_conserving at 0."), "{}", broken.stderr);
    let seconds = |ran: &Ran| checks(ran)["idle_beside_waiting_s"].as_f64().expect("a number");
    assert!(seconds(&broken) > seconds(&intact) + 0.5);
    assert_eq!(checks(&broken)["violations"][0]["invariant"], "work_conserving");

    // without --check it is only reported
    let reported = place.run(&["run", "rt-app w.json", "--machine", "4c", "--policy", "own"], "cc");
    assert_eq!((reported.status, reported.stderr.as_str()), (0, ""));
    assert!(reported.stdout.contains("\nnote      broken: work_conserving at "));
}

#[test]
fn a_comparison_says_which_side_breaks_an_invariant() {
    let place = Place::new("own_policy_compared");
    fs::write(place.0.join("w.json"), RELEASED).unwrap();
    place.change("balance/imbalance.h", "if (!is_imbalanced(sys, env))", "if (1)");
    let text = "name = \"e\"\nmachine = \"4c\"\nworkload = \"rt-app w.json\"\nruns = 2\n[baseline]\nlabel = \"a\"\n\
                [[variant]]\nlabel = \"b\"\n";
    fs::write(place.0.join("intact.toml"), text).unwrap();
    fs::write(place.0.join("own.toml"), format!("{text}policy = \"own\"\n")).unwrap();

    let intact = place.run(&["compare", "intact.toml", "--check"], "cc");
    assert_eq!((intact.status, intact.stderr.as_str()), (0, ""));
    assert!(!intact.stdout.contains("broken"), "{}", intact.stdout);

    let what = "b: in 2 of 2 runs, first with seed 1: work_conserving at 0.";
    let broken = place.run(&["compare", "own.toml", "--check"], "cc");
    assert_eq!(broken.status, 1);
    assert!(broken.stderr.starts_with(&format!("coreward: e: {what}")), "{}", broken.stderr);
    assert!(broken.stdout.contains(&format!("\nnote: broken: {what}")), "{}", broken.stdout);
    let reported = place.run(&["compare", "own.toml", "--json"], "cc");
    assert_eq!((reported.status, reported.stderr.as_str()), (0, ""));
    let json: Value = serde_json::from_str(&reported.stdout).expect("JSON");
    assert!(json["broken"][0].as_str().is_some_and(|broken| broken.starts_with(what)), "{}", json["broken"]);
}

#[test]
fn the_rule_acts_when_its_feature_is_on_and_nothing_else_changes() {
    let place = Place::new("own_policy_acts");
    let built_in = place.report(&[]);
    let off = place.report(&["--policy", "own"]);
    assert_eq!(off["policy"], "own");
    assert_eq!((&off["metrics"], &off["reasons"]), (&built_in["metrics"], &built_in["reasons"]));
    assert_eq!(off["tunables"]["prev_hot_ns"], 500_000);

    let on = place.report(&["--policy", "own", "--sched-feat", "PREV_HOT"]);
    assert!(on["reasons"]["PREV_HOT"].as_u64() > Some(0));
    assert_ne!(on["metrics"], off["metrics"]);
    assert_eq!(on, place.report(&["--policy", "own", "--sched-feat", "PREV_HOT"]), "it is deterministic");
    let at_once = ["--policy", "own", "--sched-feat", "PREV_HOT", "--set", "prev_hot_ns=0"];
    assert_eq!(place.report(&at_once)["metrics"], off["metrics"]);

    let explain = ["explain", "hackbench -g 1 -l 20", "--machine", "2n2l4c2t", "--first", "1000"];
    let ran = place.run(&[&explain[..], &["--policy", "own", "--sched-feat", "PREV_HOT"]].concat(), "cc");
    assert!(ran.stdout.contains("previous CPU idle, and the task ran there a moment ago"));
}

#[test]
fn a_library_is_kept_until_the_text_changes() {
    let place = Place::new("own_policy_kept");
    let features = ["features", "--policy", "own"];
    assert_eq!(place.run(&features, "cc").status, 0);
    // the compiler is part of what the library is made of
    let kept = place.0.join("cache/coreward");
    assert_eq!(fs::read_dir(&kept).unwrap().count(), 1);
    let ran = place.run(&features, "/no/compiler");
    assert_eq!(ran.status, 2);
    assert!(
        ran.stderr.starts_with("coreward: --policy: own: it needs a C compiler: /no/compiler: "),
        "{}",
        ran.stderr
    );
    assert_eq!(place.run(&features, "cc").status, 0);
    assert_eq!(fs::read_dir(&kept).unwrap().count(), 1, "compiled once");
    place.change("features.def", "500000, 0, 1000000000", "600000, 0, 1000000000");
    let ran = place.run(&features, "cc");
    assert!(ran.stdout.contains("600000"), "{}", ran.stdout);
}

#[test]
fn what_it_has_is_known_only_with_it() {
    let place = Place::new("own_policy_names");
    let run = ["run", "hackbench -g 1 -l 20", "--machine", "2c", "--sched-feat", "PREV_HOT"];
    let ran = place.run(&run, "cc");
    assert!(
        ran.stderr
            .starts_with("coreward: --sched-feat: unknown feature `PREV_HOT`, `coreward features` lists all")
    );
    let with = |directory: &str| {
        let ran = place.run(&[&run[..], &["--policy", directory]].concat(), "cc");
        (ran.status, ran.stderr)
    };
    assert_eq!(with("own"), (0, String::new()));
    assert_eq!(with("none"), (2, "coreward: --policy: none: it is not a directory\n".into()));
    place.change("types.h", "u64 idle_stamp;", "u64 idle_stamp; u64 own;");
    assert_eq!(
        with("own"),
        (
            2,
            "coreward: --policy: own: struct cw_cpu differs from this coreward's: structures and constants must stay \
             as they are, and tables may only be appended to\n"
                .into()
        )
    );
}

#[test]
fn a_side_of_an_experiment_may_have_one() {
    let place = Place::new("own_policy_compared");
    let text = |variant: &str| {
        format!(
            "name = 'n'\nmachine = '2n2l4c2t'\nworkload = 'hackbench -g 1 -l 20'\nruns = 2\n\
             [baseline]\nlabel = 'a'\n[[variant]]\nlabel = 'b'\n{variant}\n"
        )
    };
    let compare = |variant: &str| {
        fs::write(place.0.join("e.toml"), text(variant)).unwrap();
        place.run(&["compare", "e.toml", "--json"], "cc")
    };
    let equal = compare("policy = 'own'");
    assert_eq!((equal.status, equal.stderr.as_str()), (0, ""));
    let other = compare("policy = 'own'\nsched_feat = ['PREV_HOT']");
    assert_eq!(other.status, 0);
    assert_ne!(equal.stdout, other.stdout);
    let wrong = compare("policy = 'none'");
    assert_eq!(
        (wrong.status, wrong.stderr.as_str()),
        (2, "coreward: e.toml:9: variant.policy: none: it is not a directory\n")
    );
}

#[test]
fn new_overwrites_nothing() {
    let place = Place::new("own_policy_new");
    let before = files(&place.0);
    let ran = place.run(&["policy", "new", "own"], "cc");
    assert_eq!(
        (ran.status, ran.stderr.as_str()),
        (2, "coreward: own: it is not empty; allowed is a directory that is, or a name that is not taken\n")
    );
    assert_eq!(files(&place.0), before);
}

#[test]
fn new_leaves_no_part_of_a_copy() {
    let place = Place::new("own_policy_part");
    fs::create_dir(place.0.join("empty")).unwrap();
    let before = files(&place.0);
    for directory in ["empty", "new", "new/below"] {
        // no file may have more than 8 blocks
        let ran = Command::new("sh")
            .args([
                "-c",
                "trap '' XFSZ; ulimit -f 8; exec \"$0\" policy new \"$1\"",
                env!("CARGO_BIN_EXE_coreward"),
            ])
            .arg(directory)
            .current_dir(&place.0)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&ran.stderr);
        assert!(said.ends_with(": File too large (os error 27)\n"), "{said}");
        assert_eq!(files(&place.0), before, "{directory}");
        assert_eq!(fs::read_dir(place.0.join("empty")).unwrap().count(), 0);
        assert!(!place.0.join("new").exists());
    }
}

#[test]
fn check_says_what_is_wrong() {
    let place = Place::new("own_policy_check");
    // the rule without its feature bit: its test and the run notice
    place.change("wakeup/prev_hot.h", "sched_feat(sys, CW_FEAT_PREV_HOT) && ", "");
    let ran = place.run(&["policy", "check", "own"], "cc");
    assert_eq!(ran.status, 1, "{}", ran.stderr);
    assert!(ran.stderr.starts_with("coreward: own: its tests fail: tests/"), "{}", ran.stderr);
}
