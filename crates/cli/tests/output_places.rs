//! What an output is decides how it is written: a file is put in place when it is finished, anything else is written
//! as it is, and an input is no output.

mod common;

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use common::{coreward, directory, names, stdout};

const RUN: [&str; 4] = ["run", "hackbench -g 1 -f 2 -l 10 -T --pipe", "--machine", "1n2l2c1t"];

fn run_with(options: &[&str]) -> String {
    stdout(&[&RUN[..], options].concat())
}

fn mode(file: &Path) -> u32 {
    fs::metadata(file).unwrap().permissions().mode() & 0o777
}

fn is_schedstat(text: &str) -> bool {
    text.starts_with("version 16\n") && text.lines().last().unwrap().starts_with("domain")
}

#[test]
fn a_file_keeps_its_mode_and_a_new_one_has_that_of_any_new_file() {
    let dir = directory("mode");
    let (old, new, plain) = (dir.join("old"), dir.join("new"), dir.join("plain"));
    fs::write(&old, "secret").unwrap();
    fs::set_permissions(&old, Permissions::from_mode(0o600)).unwrap();
    fs::write(&plain, "").unwrap();
    run_with(&["--schedstat", old.to_str().unwrap(), "--domains", new.to_str().unwrap()]);
    assert!(is_schedstat(&fs::read_to_string(&old).unwrap()));
    assert_eq!(mode(&old), 0o600);
    assert_eq!(mode(&new), mode(&plain), "by the umask");
}

#[test]
fn a_file_with_the_longest_name_is_replaced() {
    let long = directory("long").join("x".repeat(255));
    for _ in 0..2 {
        run_with(&["--schedstat", long.to_str().unwrap()]);
        assert!(is_schedstat(&fs::read_to_string(&long).unwrap()));
        fs::write(&long, "old").unwrap();
    }
}

#[test]
fn links_are_followed() {
    let dir = directory("links");
    fs::create_dir(dir.join("there")).unwrap();
    fs::write(dir.join("there/old"), "old").unwrap();
    symlink("there/old", dir.join("to_old")).unwrap();
    symlink("there/to_new", dir.join("to_to_new")).unwrap();
    symlink("new", dir.join("there/to_new")).unwrap();
    for (link, file) in [("to_old", "there/old"), ("to_to_new", "there/new")] {
        run_with(&["--schedstat", dir.join(link).to_str().unwrap()]);
        assert!(fs::symlink_metadata(dir.join(link)).unwrap().is_symlink());
        assert!(is_schedstat(&fs::read_to_string(dir.join(file)).unwrap()), "{file}");
    }
    assert_eq!(names(&dir.join("there")), ["new", "old", "to_new"]);
}

#[test]
fn a_device_is_written_as_it_is() {
    let dir = directory("a_device");
    symlink("/dev/null", dir.join("null")).unwrap();
    symlink("/dev/full", dir.join("full")).unwrap();
    let null = dir.join("null");
    let null = null.to_str().unwrap();
    run_with(&["--trace", null, "--schedstat", null, "--domains", null]);
    assert!(fs::metadata(null).unwrap().file_type().is_char_device());
    assert!(fs::symlink_metadata(null).unwrap().is_symlink());

    assert_eq!(names(&dir), ["full", "null"]);
}

#[test]
fn what_cannot_be_written_is_named_once() {
    let dir = directory("full");
    let options = [
        ("--schedstat", "full"),
        ("--domains", "full"),
        ("--trace", "full"),
        ("--ftrace", "full"),
        ("--perf-data", "full"),
        ("--html", "full"),
        ("--output", "full.csv"),
        ("--output", "full.jsonl"),
        ("--output", "full.parquet"),
    ];
    for (option, name) in options {
        let full = dir.join(name).to_str().unwrap().to_owned();
        let _ = symlink("/dev/full", &full);
        let ran = coreward(&[&RUN[..], &[option, &full]].concat());
        let message = format!("coreward: cannot write {full}: No space left on device (os error 28)\n");
        assert_eq!((ran.status, ran.stderr), (2, message), "{option}");
    }
    let printed = Command::new(env!("CARGO_BIN_EXE_coreward"))
        .args(RUN)
        .stdout(fs::File::create("/dev/full").unwrap())
        .output()
        .unwrap();
    let message = "coreward: cannot write to standard output: No space left on device (os error 28)\n";
    assert_eq!(String::from_utf8_lossy(&printed.stderr), message);
    assert_eq!(printed.status.code(), Some(2));
}

#[test]
fn a_pipe_is_written_as_it_is() {
    let dir = directory("a_pipe");
    let pipe = dir.join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let reader = std::thread::spawn({
        let pipe = pipe.clone();
        move || fs::read_to_string(pipe).unwrap()
    });
    run_with(&["--schedstat", pipe.to_str().unwrap()]);
    assert!(is_schedstat(&reader.join().unwrap()));
    assert!(fs::metadata(&pipe).unwrap().file_type().is_fifo());
}

#[test]
fn standard_output_has_the_file_before_the_report() {
    let dir = directory("standard_output");
    let both = run_with(&["--schedstat", "/dev/stdout"]);
    let report = run_with(&[]);
    assert!(both.ends_with(&report) && is_schedstat(both.strip_suffix(&report).unwrap()));

    let file = dir.join("both");
    let mut command = Command::new(env!("CARGO_BIN_EXE_coreward"));
    command.args(RUN).args(["--schedstat", file.to_str().unwrap()]).stdout(File::create(&file).unwrap());
    assert!(command.status().unwrap().success());
    assert_eq!(fs::read_to_string(&file).unwrap(), both, "neither overwrites the other");
    command.stdout(File::options().append(true).open(&file).unwrap());
    assert!(command.arg("--domains").arg("/dev/stdout").status().unwrap().success());
    assert!(fs::read_to_string(&file).unwrap().starts_with(&both));
}

#[test]
fn an_input_is_no_output() {
    let dir = directory("an_input");
    let path = |name: &str| dir.join(name).to_str().unwrap().to_owned();
    let refused = |args: &[&str], option: &str, file: &str| {
        let before = fs::read(file).unwrap();
        let ran = coreward(args);
        let message = format!("coreward: {option}: cannot write {file}: it is an input");
        // notes on what the machine's file leaves out come first
        assert_eq!((ran.status, ran.stderr.lines().last()), (2, Some(message.as_str())), "{args:?}");
        assert_eq!(fs::read(file).unwrap(), before);
    };
    let (machine, link, hard) = (path("m.toml"), path("link"), path("hard"));
    fs::write(&machine, "shape = \"1n1l2c1t\"\n").unwrap();
    symlink("m.toml", &link).unwrap();
    fs::hard_link(&machine, &hard).unwrap();
    for output in [&machine, &link, &hard] {
        refused(&["run", RUN[1], "--machine", &machine, "--trace", output], "--trace", output);
    }

    let (rt_app, experiment) = (path("w.json"), path("e.toml"));
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds");
    fs::copy(seeds.join("rt_app/phases.json"), &rt_app).unwrap();
    let workload = format!("rt-app {rt_app}");
    refused(&["run", &workload, "--machine", "1n1l2c1t", "--domains", &rt_app], "--domains", &rt_app);

    let text = format!(
        "name = 'e'\nmachine = '{machine}'\nworkload = '{workload}'\nruns = 1\nheadline = ['runtime_s']\n\
         baseline.label = 'a'\nvariant = [{{ label = 'b' }}]\n\
         published = [{{ metric = 'runtime_s', delta_pct = 1, source = 's' }}]\n"
    );
    fs::write(&experiment, text).unwrap();
    for output in [&experiment, &machine, &rt_app] {
        refused(&["compare", &experiment, "--html", output], "--html", output);
        refused(&["fidelity", &experiment, "-o", output], "--output", output);
    }

    let cpus = dir.join("tree/devices/system/cpu");
    fs::create_dir_all(cpus.join("cpu0/topology")).unwrap();
    for file in ["online", "cpu0/topology/core_cpus_list", "cpu0/topology/physical_package_id"] {
        fs::write(cpus.join(file), "0").unwrap();
    }
    let sysfs = format!("sysfs:{}", path("tree"));
    let online = path("tree/devices/system/cpu/online");
    refused(&["run", RUN[1], "--machine", &sysfs, "--trace", &online], "--trace", &online);
}

#[test]
fn a_file_is_one_output() {
    let dir = directory("one_output");
    fs::write(dir.join("old"), "old").unwrap();
    symlink("old", dir.join("link")).unwrap();
    fs::hard_link(dir.join("old"), dir.join("hard")).unwrap();
    fs::create_dir(dir.join("in")).unwrap();
    symlink("new", dir.join("dangling")).unwrap();
    for (first, second) in
        [("old", "old"), ("old", "link"), ("hard", "old"), ("new", "in/../new"), ("dangling", "new")]
    {
        let (first, second) = (dir.join(first), dir.join(second));
        let options = ["--domains", first.to_str().unwrap(), "--schedstat", second.to_str().unwrap()];
        let ran = coreward(&[&RUN[..], &options].concat());
        let message = "coreward: --schedstat and --domains name the same file\n";
        assert_eq!((ran.status, ran.stderr.as_str()), (2, message), "{options:?}");
    }
    assert_eq!(names(&dir), ["dangling", "hard", "in", "link", "old"]);
    assert_eq!(fs::read_to_string(dir.join("old")).unwrap(), "old");
}

#[test]
fn a_file_that_may_not_be_written_is_not_replaced() {
    let dir = directory("read_only");
    let file = dir.join("file");
    fs::write(&file, "old").unwrap();
    fs::set_permissions(&file, Permissions::from_mode(0o400)).unwrap();
    if File::options().write(true).open(&file).is_ok() {
        eprintln!("left out: root may write every file");
        return;
    }
    let ran = coreward(&[&RUN[..], &["--trace", file.to_str().unwrap()]].concat());
    assert_eq!(ran.status, 2);
    assert!(ran.stderr.ends_with("Permission denied (os error 13)\n"), "{}", ran.stderr);
}

/// A program that heeds all signals, also those that these tests ignore because they run in the background.
fn heeds_signals() -> Command {
    let mut command = Command::new("env");
    command.arg("--default-signal");
    command
}

/// A run that does not end by itself, and has its files open.
fn endless(mut program: Command, dir: &Path) -> Child {
    fs::write(dir.join("old"), "old").unwrap();
    program
        .args(["run", "hackbench -g 1 -f 2 -l 100000000 --pipe", "--machine", "1n1l1c1t"])
        .args(["--trace", dir.join("new").to_str().unwrap(), "--domains", dir.join("old").to_str().unwrap()])
        .stderr(Stdio::null());
    let child = program.spawn().unwrap();
    let files = format!("/proc/{}/fd", child.id());
    let is_ours = |entry: &fs::DirEntry| fs::read_link(entry.path()).is_ok_and(|file| file.starts_with(dir));
    let start = Instant::now();
    while fs::read_dir(&files).unwrap().flatten().filter(is_ours).count() < 2 {
        assert!(start.elapsed() < Duration::from_secs(60), "it opens its files");
        sleep(Duration::from_millis(5));
    }
    child
}

fn signal(child: &Child, name: &str) {
    assert!(Command::new("kill").args([name, &child.id().to_string()]).status().unwrap().success());
}

fn end(mut child: Child, name: &str) {
    signal(&child, name);
    assert!(!child.wait().unwrap().success());
}

#[test]
fn a_signal_leaves_nothing() {
    for signal in ["-INT", "-TERM", "-HUP", "-QUIT", "-KILL"] {
        let dir = directory("a_signal");
        let mut program = heeds_signals();
        program.arg(env!("CARGO_BIN_EXE_coreward"));
        end(endless(program, &dir), signal);
        assert_eq!(names(&dir), ["old"], "{signal}");
        assert_eq!(fs::read_to_string(dir.join("old")).unwrap(), "old");
    }
}

/// A file without a name cannot be given one without /proc/self/fd, so temporary names are used there. Of what is
/// ignored, as by nohup, the shell tells /proc.
fn without_proc(ignored: &str) -> Command {
    let script = "mount -t tmpfs none /proc && mkdir /proc/self || exit 1; \
                  echo \"SigIgn:\t000000000000000$0\" > /proc/self/status; \
                  test $0 = 0 || trap '' HUP; exec \"$@\"";
    let mut command = heeds_signals();
    command.args(["unshare", "-rm", "sh", "-c", script, ignored]);
    command
}

fn has_namespaces() -> bool {
    let tried = without_proc("0").arg("true").stderr(Stdio::null()).status();
    let has = tried.is_ok_and(|status| status.success());
    if !has {
        eprintln!("left out: no namespaces for us");
    }
    has
}

#[test]
fn a_signal_leaves_no_temporary_name() {
    if !has_namespaces() {
        return;
    }
    let program = |ignored| {
        let mut command = without_proc(ignored);
        command.arg(env!("CARGO_BIN_EXE_coreward"));
        command
    };
    for signal in ["-INT", "-TERM", "-HUP", "-QUIT"] {
        let dir = directory("no_temporary_name");
        let child = endless(program("0"), &dir);
        // it may have the old file open twice before it opens the new one
        let start = Instant::now();
        while names(&dir).len() < 3 {
            let names = names(&dir);
            assert!(
                start.elapsed() < Duration::from_secs(60),
                "the new, one for the old, the old: {names:?}"
            );
            sleep(Duration::from_millis(5));
        }
        end(child, signal);
        assert_eq!(names(&dir), ["old"], "{signal}");
    }
    let dir = directory("no_temporary_name");
    let mut child = endless(program("1"), &dir);
    signal(&child, "-HUP");
    sleep(Duration::from_millis(300));
    assert!(child.try_wait().unwrap().is_none(), "what is ignored stays ignored");
    end(child, "-INT");
    assert_eq!(names(&dir), ["old"]);
}

#[test]
fn a_temporary_name_is_changed_at_the_end() {
    if !has_namespaces() {
        return;
    }
    let dir = directory("changed_at_the_end");
    let (old, new) = (dir.join("old"), dir.join("new"));
    fs::write(&old, "old").unwrap();
    fs::set_permissions(&old, Permissions::from_mode(0o600)).unwrap();
    let mut command = without_proc("0");
    command.arg(env!("CARGO_BIN_EXE_coreward")).args(RUN).arg("--schedstat").arg(&old);
    assert!(command.arg("--domains").arg(&new).stdout(Stdio::null()).status().unwrap().success());
    assert_eq!((names(&dir), mode(&old)), (vec!["new".to_owned(), "old".to_owned()], 0o600));
    assert!(is_schedstat(&fs::read_to_string(&old).unwrap()));
}
