//! Machine files and shorthands: what they mean, how they fail, and the way back.

use coreward_machine::{Costs, IdleState, Machine};
use proptest::prelude::*;

fn read(text: &str) -> Machine {
    Machine::from_toml_str("m.toml", text).unwrap()
}

/// The message for a wrong machine file.
fn message(text: &str) -> String {
    Machine::from_toml_str("m.toml", text).unwrap_err().to_string()
}

#[test]
fn explicit_form() {
    let machine = read(
        "hz = 1000\n[[llc]]\ncores = [\"0,2\", \"4,6\"]\nbytes = \"4MiB\"\n\n[[llc]]\ncpus = \"1,3,5\"\nnode = 1\npackage = 7\n",
    );
    assert_eq!(machine.name, "m");
    assert_eq!(machine.hz, 1000);
    assert_eq!(machine.smt_mask(6).to_string(), "4,6");
    assert_eq!(machine.llc_mask(3).to_string(), "1,3,5");
    assert_eq!(machine.smt_mask(3).to_string(), "3");
    assert_eq!(machine.cpus[1].package, 1, "packages are numbered without gaps");
    assert_eq!(machine.llc_bytes, [4 << 20, 32 << 20]);
    assert_eq!(machine.distances, [[10, 20], [20, 10]]);
}

#[test]
fn regular_form() {
    let machine =
        read("shape = \"2l4c2t\"\nnumbering = \"threads-adjacent\"\npackages = 2\ncluster_cores = 2\n");
    assert_eq!(machine.smt_mask(0).to_string(), "0-1");
    assert_eq!(machine.cluster_mask(0).to_string(), "0-3");
    assert_eq!(machine.llc_mask(15).to_string(), "8-15");
    assert_eq!((machine.nodes, machine.nr_packages()), (1, 2));
}

#[test]
fn the_cores_of_power_alternate() {
    let machine = read("shape = \"1n4l1c4t\"\nnumbering = \"cores-alternate\"\n");
    let core = |cpu| machine.smt_mask(cpu).to_string();
    assert_eq!([core(0), core(1), core(8), core(15)], ["0,2,4,6", "1,3,5,7", "8,10,12,14", "9,11,13,15"]);
    assert_eq!(
        message("shape = \"3c4t\"\nnumbering = \"cores-alternate\"\n"),
        "m.toml:2: numbering is `cores-alternate`, which goes with an even number of cores"
    );
}

#[test]
fn like_a_preset_but_for_what_is_given() {
    let other = Machine::load("power10").unwrap();
    let machine = read("like = \"power10\"\nshape = \"2n1l4c2t\"\n[costs]\ntick_ns = 7\n");
    assert_eq!((machine.arch, machine.reclaim_distance, machine.hz), (other.arch, 10, other.hz));
    assert_eq!((&machine.caches, &machine.idle_states), (&other.caches, &other.idle_states));
    assert_eq!((machine.costs.tick_ns, machine.costs.smt_pct), (7, other.costs.smt_pct));
    assert_eq!(machine.llc_bytes, [other.caches.llc_bytes; 2]);
    assert_eq!(machine.source("costs.smt_pct"), other.source("costs.smt_pct"));
    let default = Costs::field("tick_ns").unwrap().source;
    assert_ne!(machine.source("costs.tick_ns"), Some(default), "7 is not from there");
    // the CPUs, their numbering and the distances are its own
    assert_eq!((machine.nr_cpus(), machine.source("shape")), (16, None));
    assert_eq!(machine.smt_mask(0).to_string(), "0,8");
    assert_eq!(machine.distances, [[10, 20], [20, 10]]);
    let refused = message("shape = \"2c\"\nlike = \"power9\"\n");
    assert!(refused.starts_with("m.toml:2: like is `power9`, allowed are arm-2x4, "), "{refused}");
}

#[test]
fn sources_go_with_figures() {
    let machine =
        read("shape = \"2c\"\n[costs]\ntick_ns = { value = 7, source = \"a clock\" }\nipi_send_ns = 9\n");
    assert_eq!(machine.costs.tick_ns, 7);
    assert_eq!(machine.source("costs.tick_ns"), Some("a clock"));
    assert_eq!(machine.source("costs.ipi_send_ns"), None, "a user's figure without a source");
    let default = Costs::field("fork_ns").unwrap();
    assert_eq!(machine.source("costs.fork_ns"), Some(default.source));
}

#[test]
fn sources_of_tables_do_not_pass_for_those_of_the_machine() {
    let machine = read(
        "name = \"n\"\n[[llc]]\ncpus = \"1\"\nbytes = { value = 4096, source = \"b\" }\n[[llc]]\ncpus = \"0\"\n\
         [[idle]]\nname = { value = \"C1\", source = \"i\" }\nexit_ns = 1\nresidency_ns = 1\npolling = true\n",
    );
    assert_eq!((machine.source("name"), machine.source("idle.0.name")), (None, Some("i")));
    assert_eq!(machine.llc_bytes[1], 4096, "the LLC of CPU 1 is the second one");
    assert_eq!((machine.source("llc.0.bytes"), machine.source("llc.1.bytes")), (None, Some("b")));
}

#[test]
fn every_figure_of_a_preset_has_a_source() {
    let presets = Machine::presets();
    assert_eq!(presets.len(), 18);
    for (name, description) in presets {
        assert!(!description.is_empty(), "{name}");
        let machine = Machine::load(&name).unwrap();
        assert_eq!(machine.name, name);
        let costs = Costs::FIELDS.iter().map(|field| format!("costs.{}", field.name));
        let caches = ["l1d_bytes", "l2_bytes", "llc_bytes", "line_bytes"];
        let mut figures: Vec<_> = costs.chain(caches.map(|cache| format!("caches.{cache}"))).collect();
        figures.push("shape".to_owned());
        if machine.nodes > 1 {
            figures.push("distances".to_owned());
        }
        if machine.reclaim_distance != 30 {
            figures.push("reclaim_distance".to_owned());
        }
        for figure in figures {
            let source = machine.source(&figure).unwrap_or_default();
            assert!(!source.is_empty(), "{name}: {figure} has no source");
        }
        let reduced = machine.cpus.iter().any(|cpu| cpu.capacity < 1024);
        let sourced = machine.sources.keys().any(|path| path.starts_with("capacity."));
        assert!(sourced || !reduced, "{name}: capacities have no source");
        for state in &machine.idle_states {
            assert!(!state.source.is_empty(), "{name}: {} has no source", state.name);
        }
    }
}

#[test]
fn defaults_are_in_range_and_named() {
    let mut costs = Costs::default();
    for field in Costs::FIELDS {
        assert!((field.min..=field.max).contains(&field.default), "{}", field.name);
        assert!(!field.source.is_empty() && !field.meaning.is_empty(), "{}", field.name);
        assert_eq!(costs.get(field.name), Some(field.default));
        costs.set(field.name, field.max).unwrap();
        assert_eq!(costs.get(field.name), Some(field.max));
    }
    assert_eq!(costs.set("mlp_pct", 99).unwrap_err(), "mlp_pct is 99, allowed are 100 to 10000");
    assert!(
        costs
            .set("nothing", 1)
            .unwrap_err()
            .starts_with("unknown cost `nothing`, `coreward topology 1c --toml` lists all")
    );
    assert_eq!(costs.get("nothing"), None);
}

#[test]
fn costs_have_bounds() {
    let field = |name: &str| Costs::field(name).unwrap();
    for field in Costs::FIELDS {
        assert!((field.min..=field.default).contains(&field.low), "{}", field.name);
        assert!((field.default..=field.max).contains(&field.high), "{}", field.name);
    }
    let machine = read(
        "shape = \"2c\"\n[costs]\nwakeup_ns = { value = 200, low = 150, high = 900, source = \"s\" }\n\
         tick_ns = { value = 100, source = \"measured: here\" }\nsyscall_ns = 200\n\
         exit_ns = { value = 1000, high = 1500 }\n",
    );
    assert_eq!(machine.cost_bounds(field("wakeup_ns")), (150, 900));
    assert_eq!(machine.source("costs.wakeup_ns"), Some("s"));
    assert_eq!(machine.cost_bounds(field("exit_ns")), (1000, 1500), "one that is not given is the value");
    assert_eq!(machine.cost_bounds(field("tick_ns")), (85, 115), "measured costs are known well");
    let of_default = (field("syscall_ns").low, field("syscall_ns").high);
    let twice = (2 * of_default.0, 2 * of_default.1);
    assert_eq!(machine.cost_bounds(field("syscall_ns")), twice, "twice the default, without a source");
    assert_eq!(machine.cost_bounds(field("fork_ns")), (field("fork_ns").low, field("fork_ns").high));
    let again = Machine::from_toml_str("other.toml", &machine.to_toml()).unwrap();
    assert_eq!((again.costs, again.own_bounds), (machine.costs, machine.own_bounds));
    for (cost, said) in [
        ("{ value = 200, low = 201 }", "low of costs.wakeup_ns is 201, allowed are 0 to 200"),
        ("{ value = 200, high = 2000000 }", "high of costs.wakeup_ns is 2000000, allowed are 200 to 1000000"),
        ("{ value = 200, low = \"x\" }", "low of costs.wakeup_ns is \"x\", allowed are 0 to 200"),
    ] {
        let text = format!("shape = \"2c\"\n[costs]\nwakeup_ns = {cost}\n");
        let error = Machine::from_toml_str("m.toml", &text).unwrap_err().to_string();
        assert_eq!(error, format!("m.toml:3: {said}"));
    }
    let error =
        Machine::from_toml_str("m.toml", "shape = { value = \"2c\", low = 1 }").unwrap_err().to_string();
    assert_eq!(error, "m.toml:1: unknown key `low` in shape, allowed are value, source");
}

#[test]
fn round_trip_of_presets_and_specials() {
    for (name, _) in Machine::presets() {
        let machine = Machine::load(&name).unwrap();
        let again = Machine::from_toml_str("other.toml", &machine.to_toml()).unwrap();
        assert_eq!(again, machine);
    }
    let mut machine = read("shape = \"8c\"\ncluster_cores = 4\n[capacity]\n\"0-3\" = 512\n");
    machine.name = "a \"name\"".to_owned();
    machine.description = "tab\t, umlaut ü, back\\slash, 'quotes', new\nline, \u{7f}".to_owned();
    machine.sources.insert("a 'quoted' \\ \"key\"".to_owned(), "s".to_owned());
    machine.idle_states.clear();
    machine.assumptions.clear();
    assert_eq!(read(&machine.to_toml()), machine);
    machine.idle_states.push(IdleState {
        name: "C1".to_owned(),
        exit_ns: 1,
        residency_ns: 2,
        polling: false,
        promoted: false,
        source: String::new(),
    });
    assert_eq!(read(&machine.to_toml()), machine);
    machine.idle_states.push(IdleState { promoted: true, ..machine.idle_states[0].clone() });
    assert_eq!(read(&machine.to_toml()), machine);
}

#[test]
fn wrong_shorthands() {
    let message = |text: &str| Machine::load(text).unwrap_err().to_string();
    let form =
        "expected NODESn LLCSl CORESc THREADSt without blanks, like 2n4l8c2t; n, l and t may be left out";
    assert_eq!(message("2n"), format!("shorthand `2n`: the number of cores is missing: {form}"));
    assert_eq!(message("2x4c"), format!("shorthand `2x4c`: `2x4c` is not understood: {form}"));
    assert_eq!(message("4c2n"), format!("shorthand `4c2n`: `2n` is not understood: {form}"));
    assert_eq!(message("4c "), format!("shorthand `4c `: ` ` is not understood: {form}"));
    assert_eq!(message("0c"), "shorthand `0c`: `0c` is out of range, allowed are 1 to 1024");
    assert_eq!(
        message("99999999999999999999c"),
        "shorthand `99999999999999999999c`: `99999999999999999999c` is out of range, allowed are 1 to 1024"
    );
    assert_eq!(message("2n4l64c4t"), "shorthand `2n4l64c4t`: 2048 CPUs are too many, the limit is 1024");
    assert_eq!(message("65n1c"), "shorthand `65n1c`: 65 NUMA nodes, allowed are 1 to 64");
}

#[test]
fn wrong_structure() {
    assert_eq!(message(""), "m.toml:1: the CPUs are missing: give shape or [[llc]] tables");
    assert_eq!(
        message("shape = \"2c\"\n\n[[llc]]\ncpus = \"0\""),
        "m.toml:3: give either shape or [[llc]] tables, not both"
    );
    assert_eq!(
        message("\n\nshap = \"2c\""),
        "m.toml:3: unknown field `shap`, did you mean `shape`? expected one of `name`, `description`, `like`, `arch`, `shape`, `numbering`, `packages`, `cluster_cores`, `hz`, `kernel`, `preemption`, `features`, `vcpu_pack`, `distances`, `reclaim_distance`, `llc`, `capacity`, `caches`, `costs`, `idle`, `sources`"
    );
    assert_eq!(message("shape = \"2c"), "m.toml:1: invalid basic string");
    assert_eq!(message("shape = 2"), "m.toml:1: shape must be a text, not integer");
    assert_eq!(message("shape = \"2c\"\nshape = \"3c\""), "m.toml:2: duplicate key `shape` in document root");
    assert_eq!(
        message("shape = { value = \"2c\", sauce = \"x\" }"),
        "m.toml:1: unknown key `sauce` in shape, allowed are value, source"
    );
    assert_eq!(message("shape = { source = \"x\" }"), "m.toml:1: shape has no value");
    assert_eq!(
        message("shape = { value = \"2c\", source = 1 }"),
        "m.toml:1: the source of shape must be a text"
    );
    assert_eq!(
        message("shape = \"2c\"\narch = \"mips\""),
        "m.toml:2: arch is `mips`, allowed are x86, arm64, power"
    );
    assert_eq!(
        message("shape = \"2c\"\nnumbering = \"random\""),
        "m.toml:2: numbering is `random`, allowed are cores-first, threads-adjacent, cores-alternate"
    );
    assert_eq!(
        message("shape = \"3l2c\"\npackages = 2"),
        "m.toml:2: packages is 2, it must divide the 3 LLCs of shape"
    );
    assert_eq!(
        message("shape = \"3l2c\"\ncluster_cores = 4"),
        "m.toml:2: cluster_cores is 4, it must divide the 2 cores of an LLC"
    );
    assert_eq!(message("shape = \"2c\"\nhz = 0"), "m.toml:2: hz is 0, allowed are 24 to 1200");
    assert_eq!(
        message("shape = \"2c\"\nhz = \"250\""),
        "m.toml:2: hz must be an integer from 24 to 1200, not string"
    );
}

#[test]
fn wrong_cpus() {
    assert_eq!(message("[[llc]]\ncpus = \"0-1\"\n[[llc]]\ncpus = \"1\""), "m.toml:3: CPU 1 is listed twice");
    assert_eq!(
        message("[[llc]]\ncpus = \"0,2\""),
        "m.toml: CPU 1 is missing; CPUs are numbered from 0 without gaps"
    );
    assert_eq!(message("[[llc]]\nnode = 0"), "m.toml:1: an [[llc]] table needs either cpus or cores");
    assert_eq!(
        message("[[llc]]\ncpus = \"0-x\""),
        "m.toml:2: llc.0.cpus: `0-x` is not a CPU number or a range like 0-3"
    );
    assert_eq!(message("[[llc]]\ncpus = \"\""), "m.toml:2: llc.0.cpus: a list is empty");
    assert_eq!(message("[[llc]]\ncores = [\"0\", \"\"]"), "m.toml:2: llc.0.cores: a list is empty");
    assert_eq!(message("[[llc]]\ncores = []"), "m.toml:1: an [[llc]] table needs at least one core");
    for (field, value) in [("preemption", "\"lazy\""), ("features", "\"SIS_UTIL\""), ("vcpu_pack", "15")] {
        let without = format!("m.toml:1: {field} is of a kernel, and there is no `kernel` in the file");
        assert_eq!(message(&format!("{field} = {value}\nshape = \"2c\"")), without);
        let with = format!("{field} = {value}\nkernel = \"6.18.44\"\nshape = \"2c\"");
        assert!(Machine::from_toml_str("m.toml", &with).is_ok(), "{with}");
    }
    assert_eq!(
        message("[[llc]]\ncores = [\"0\", \"1\"]\nclusters = [\"0\", \"0-1\"]"),
        "m.toml:3: llc.0.clusters: CPU 0 is listed twice"
    );
    assert_eq!(
        message("[[llc]]\ncores = \"0,1\""),
        "m.toml:2: llc.0.cores must be an array of CPU lists, like [\"0,24\", \"1,25\"]"
    );
    assert_eq!(
        message("[[llc]]\ncores = [\"0,1\"]\nclusters = [\"0\"]"),
        "m.toml:1: cluster 0 must consist of whole cores of its LLC"
    );
    assert_eq!(
        message("[[llc]]\ncpus = \"0\"\nnode = 1"),
        "m.toml: node 0 has no CPU; nodes are numbered from 0 without gaps"
    );
    assert_eq!(
        message("packages = 1\n[[llc]]\ncpus = \"0\""),
        "m.toml:1: packages goes with shape, not with [[llc]] tables"
    );
    assert_eq!(
        message("shape = \"1c2t\"\n[capacity]\n\"0\" = 512"),
        "m.toml: CPUs 0 and 1 are of one core but differ in capacity"
    );
    assert_eq!(message("shape = \"2c\"\n[capacity]\n\"2\" = 512"), "m.toml:3: capacity.2: there is no CPU 2");
    assert_eq!(
        message("shape = \"2c\"\n[capacity]\n\"0\" = 512\n\"0-1\" = 256"),
        "m.toml:4: capacity.0-1: CPU 0 already has a capacity"
    );
    assert_eq!(message("shape = \"2c\"\n[capacity]\n\"\" = 10"), "m.toml:3: capacity.: it names no CPU");
    assert_eq!(
        message("shape = \"2c\"\n[capacity]\n\"0\" = 1025"),
        "m.toml:3: capacity.0 is 1025, allowed are 1 to 1024"
    );
}

#[test]
fn wrong_figures() {
    let distances = |rows: &str| message(&format!("shape = \"2n1c\"\ndistances = {rows}"));
    let form = "m.toml:2: distances must be rows of numbers, like [[10, 21], [21, 10]]";
    assert_eq!(distances("10"), form);
    assert_eq!(distances("[[10, -1], [21, 10]]"), form);
    assert_eq!(distances("[[10, 21]]"), "m.toml: distances must be 2 rows of 2 numbers, one a node");
    assert_eq!(
        distances("[[10, 21], [22, 10]]"),
        "m.toml: distances of nodes 0 and 1 are 21 and 22, they must be equal"
    );
    assert_eq!(
        distances("[[10, 300], [300, 10]]"),
        "m.toml: distance of node 0 to node 1 is 300, allowed are 11 to 254"
    );
    assert_eq!(
        distances("[[11, 21], [21, 10]]"),
        "m.toml: distance of node 0 to itself is 11, it must be 10"
    );
    let row = |from: u32| (0..12).map(|to| 10 + from.abs_diff(to) * (from + to)).collect::<Vec<u32>>();
    let rows: Vec<_> = (0..12).map(row).collect();
    assert_eq!(
        message(&format!("shape = \"12n1c\"\ndistances = {rows:?}")),
        "m.toml: 54 different distances, allowed are up to 16"
    );
    let figure = |text: &str| message(&format!("shape = \"2c\"\n{text}"));
    assert_eq!(
        figure("[caches]\nl3_bytes = 1"),
        "m.toml:3: unknown key `l3_bytes` in caches, allowed are l1d_bytes, l2_bytes, llc_bytes, line_bytes"
    );
    assert_eq!(
        figure("[caches]\nl2_bytes = \"1 cup\""),
        "m.toml:3: caches.l2_bytes is \"1 cup\", allowed are 1 to 17179869184 bytes, as a number or like \"32KiB\", \"2MiB\""
    );
    assert_eq!(
        figure("[caches]\nline_bytes = 65"),
        "m.toml: caches.line_bytes is 65, it must be a power of two, at most 4096"
    );
    assert!(
        figure("\n[costs]\ntik_ns = 1")
            .starts_with("m.toml:4: unknown cost `tik_ns`, did you mean `tick_ns`? ")
    );
    assert_eq!(figure("[costs]\nsmt_pct = 201"), "m.toml:3: costs.smt_pct is 201, allowed are 100 to 200");
    assert_eq!(figure("[costs]\ntick_ns = -1"), "m.toml:3: costs.tick_ns is -1, allowed are 0 to 1000000");
    assert_eq!(
        figure("[[idle]]\nname = \"C1\"\nexit_ns = 1\nresidency_ns = 1"),
        "m.toml:2: missing field `polling`"
    );
    assert_eq!(
        figure("[[idle]]\nname = \"C1\"\nexit_ns = 1\nresidency_ns = 1\npolling = 0"),
        "m.toml:6: idle.0.polling must be true or false"
    );
    let promoted = |value| {
        let state = "[[idle]]\nname = \"C1\"\nexit_ns = 1\nresidency_ns = 1\npolling = false";
        figure(&format!("{state}\npromoted = {value}"))
    };
    assert_eq!(promoted("1"), "m.toml:7: idle.0.promoted must be true or false");
    assert_eq!(promoted("true"), "m.toml:7: idle.0.promoted needs a state before it");
    let second = |residency_ns: u64| {
        let state =
            |ns| format!("[[idle]]\nname = \"C1\"\nexit_ns = 1\nresidency_ns = {ns}\npolling = false\n");
        figure(&format!("{}{}", state(500), state(residency_ns)))
    };
    assert_eq!(second(499), "m.toml:10: idle.1.residency_ns is 499, allowed are 500 to 1000000000");
}

proptest! {
    #[test]
    fn never_panics(text in "[ \\[\\]\"=,{}a-z0-9\n-]{0,60}") {
        let _ = Machine::from_toml_str("x", &text);
        let _ = Machine::from_shorthand(&text);
        let _ = Machine::from_hwloc_str("x", &text);
    }
}
