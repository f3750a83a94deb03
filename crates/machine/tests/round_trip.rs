//! What `coreward topology` prints as JSON or as a machine file is the same machine when it is read back.

use coreward_machine::Machine;

fn json(machine: &Machine) -> String {
    serde_json::to_string_pretty(machine).unwrap()
}

#[test]
fn every_preset_comes_back() {
    for (name, _) in Machine::presets() {
        let machine = Machine::load(&name).unwrap();
        assert_eq!(Machine::from_json_str("m.json", &json(&machine)).unwrap(), machine, "{name}");
        assert_eq!(Machine::from_toml_str("m.toml", &machine.to_toml()).unwrap(), machine, "{name}");
    }
}

#[test]
fn no_preset_leaves_anything_open() {
    for (name, _) in Machine::presets() {
        assert_eq!(Machine::load(&name).unwrap().assumptions, [""; 0], "{name}");
    }
}

#[test]
fn a_json_file_is_refused_by_what_is_wrong() {
    let text = json(&Machine::load("2n2l2c2t").unwrap());
    let message = |text: &str| Machine::from_json_str("m.json", text).unwrap_err().to_string();
    let changed = |from: &str, to: &str| {
        assert!(text.contains(from), "{from}");
        message(&text.replacen(from, to, 1))
    };
    assert_eq!(message("{"), "m.json:1: EOF while parsing an object");
    assert_eq!(changed("\"hz\": 250", "\"hz\": 9"), "m.json: hz is 9, allowed are 24 to 1200");
    assert_eq!(
        changed("\"hz\": 250,", ""),
        "m.json:255: missing field `hz`".replace("255", &last_line(&text, 1))
    );
    assert_eq!(
        changed("\"capacity\": 1024", "\"capacity\": 0"),
        "m.json: capacity.0 is 0, allowed are 1 to 1024"
    );
    assert_eq!(
        changed("\"l2_bytes\": 1048576", "\"l2_bytes\": 0"),
        "m.json: caches.l2_bytes is 0, allowed are 1 to 17179869184 bytes, as a number or like \"32KiB\", \"2MiB\""
    );
    assert!(changed("\"node\": 0", "\"nodes\": 0").contains("unknown field `nodes`"));
    assert_eq!(changed("\"nodes\": 2", "\"nodes\": 9"), "m.json: nodes is 9, but the CPUs are in 2");
    let of_no_cost = "\"own_bounds\": {\"nope\": [1, 9]}, \"hz\": 250";
    assert_eq!(changed("\"hz\": 250", of_no_cost), "m.json: own_bounds.nope: there is no such cost");
    let cpus = text.split_once("\"cpus\": [").unwrap().1.split_once("\n  ]").unwrap().0;
    assert_eq!(message(&text.replacen(cpus, "", 1)), "m.json: cpus has none");
    assert!(Machine::from_json_str("m.json", &format!("\u{feff}{text}")).is_ok());
    for (from, to) in
        [("\"core\": 0", "\"core\": 7"), ("\"llc\": 0", "\"llc\": 3"), ("\"package\": 0", "\"package\": 9")]
    {
        let what = changed(from, to);
        assert!(what.starts_with("m.json: "), "{what}");
    }
}

/// The number of the last line of a text that is `fewer` lines shorter.
fn last_line(text: &str, fewer: usize) -> String {
    (text.lines().count() - fewer + 1).to_string()
}
