//! The format of experiment files as a JSON schema, for editors: taplo, and what is built on it, completes and checks
//! TOML files with it. It is derived from the types that the parser fills, so that the two cannot know different keys.

use coreward_machine::Costs;
use coreward_metrics::Metric;
use coreward_policy::{FEATURES, Profile, TUNABLES};
use schemars::{Schema, SchemaGenerator, json_schema, schema_for};
use serde_json::{Map, Value, json};

use super::MAX_RUNS;
use super::parse::MAX_PARTS;
use super::raw::RawExperiment;
use crate::setup::{MAX_TIME_LIMIT_S, SKIP_STEADY_PCT};
use crate::uncertainty;

/// The schema.
pub(crate) fn schema() -> Schema {
    let mut schema = schema_for!(RawExperiment);
    schema.insert("title".into(), "An experiment of coreward".into());
    schema.insert("oneOf".into(), json!([{"required": ["workload"]}, {"required": ["case"]}]));
    schema
}

pub(super) fn metrics(_: &mut SchemaGenerator) -> Schema {
    let metrics: Vec<_> = Metric::ALL
        .iter()
        .map(|metric| json!({"const": metric.name(), "description": metric.help()}))
        .collect();
    json_schema!({"type": "array", "items": {"oneOf": metrics}})
}

pub(super) fn profile(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "enum": Profile::ALL})
}

pub(super) fn features(_: &mut SchemaGenerator) -> Schema {
    let states = |name: &str, help: &str| {
        [name.to_owned(), format!("NO_{name}")].map(|name| json!({"const": name, "description": help}))
    };
    let states: Vec<_> = FEATURES.iter().flat_map(|feature| states(feature.name, feature.help)).collect();
    // a policy out of the tree has others
    json_schema!({"type": "array", "items": {"anyOf": [{"oneOf": states}, {"type": "string"}]}})
}

pub(super) fn tunables(_: &mut SchemaGenerator) -> Schema {
    let entry = |t: &coreward_policy::TunableInfo| {
        let what = format!("{} [{}; default: {}]", t.help, t.unit, t.default);
        (t.name.to_owned(), setting(t.min.into(), t.max.into(), &what))
    };
    json_schema!({
        "type": "object",
        "properties": TUNABLES.iter().map(entry).collect::<Map<_, _>>(),
        "additionalProperties": {"type": ["integer", "string"]},
    })
}

pub(super) fn costs(_: &mut SchemaGenerator) -> Schema {
    let entry = |field: &coreward_machine::CostField| {
        (field.name.to_owned(), setting(field.min.into(), field.max.into(), field.meaning))
    };
    let costs: Map<_, _> = Costs::FIELDS.iter().map(entry).collect();
    json_schema!({"type": "object", "properties": costs, "additionalProperties": false})
}

pub(super) fn runs(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "integer", "minimum": 1, "maximum": MAX_RUNS})
}

pub(super) fn points(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "integer", "minimum": uncertainty::ALLOWED.start(), "maximum": uncertainty::ALLOWED.end()})
}

pub(super) fn points_scale(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "number", "exclusiveMinimum": 0, "maximum": 1})
}

pub(super) fn skip_steady(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "number", "minimum": SKIP_STEADY_PCT.start(), "maximum": SKIP_STEADY_PCT.end()})
}

pub(super) fn task_group_depth(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "integer", "minimum": 0, "maximum": coreward_engine::Settings::MAX_DEPTH})
}

pub(super) fn time_limit(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "integer", "minimum": 1, "maximum": MAX_TIME_LIMIT_S})
}

pub(super) fn variants(generator: &mut SchemaGenerator) -> Schema {
    let side = generator.subschema_for::<super::raw::RawSide>();
    json_schema!({"type": "array", "items": side, "minItems": 1, "maxItems": MAX_PARTS})
}

/// An integer, or a time with its unit as a text.
fn setting(min: Value, max: Value, description: &str) -> Value {
    json!({
        "type": ["integer", "string"],
        "minimum": min,
        "maximum": max,
        "pattern": "^[0-9]+(ns|us|ms|s)?$",
        "description": description,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::experiment::Experiment;

    /// The keys of a table by the schema.
    fn keys(table: &Value) -> BTreeSet<String> {
        table["properties"].as_object().expect("a table").keys().cloned().collect()
    }

    /// The keys that the parser lists when it is given an unknown one.
    fn parsed(text: &str) -> BTreeSet<String> {
        let message = Experiment::parse("e.toml", text).unwrap_err().to_string();
        let (_, expected) = message.split_once("expected one of ").unwrap_or_else(|| panic!("{message}"));
        expected.split('`').skip(1).step_by(2).map(str::to_owned).collect()
    }

    #[test]
    fn schema_and_parser_have_the_same_keys() {
        let schema = serde_json::to_value(schema()).unwrap();
        let part = |name: &str| &schema["$defs"][name];
        assert_eq!(keys(&schema), parsed("zzz = 1"));
        assert_eq!(keys(part("RawSide")), parsed("[baseline]\nzzz = 1"));
        assert_eq!(keys(part("RawCase")), parsed("[[case]]\nzzz = 1"));
        assert_eq!(keys(part("RawAblation")), parsed("[[ablation]]\nzzz = 1"));
        assert_eq!(keys(part("Published")), parsed("[[published]]\nzzz = 1"));
        assert_eq!(schema["required"], json!(["name", "machine", "baseline", "variant"]));
        for table in ["RawSide", "RawCase", "RawAblation", "Published"] {
            assert_eq!(part(table)["additionalProperties"], false, "{table}");
        }
    }

    /// What the schema names is accepted, at the ends of the ranges that it gives.
    #[test]
    fn what_the_schema_allows_is_accepted() {
        let schema = serde_json::to_value(schema()).unwrap();
        let side = &schema["$defs"]["RawSide"]["properties"];
        let accepted = |line: String| {
            let text = format!(
                "name = 'n'\nmachine = '1c'\nworkload = 'hackbench'\n[baseline]\nlabel = 'a'\n[[variant]]\nlabel = 'b'\n{line}\n"
            );
            if let Err(error) = Experiment::parse("e.toml", &text) {
                panic!("{error}");
            }
        };
        for key in ["set", "cost"] {
            for (name, range) in side[key]["properties"].as_object().unwrap() {
                for end in ["minimum", "maximum"] {
                    accepted(format!("{key} = {{ {name} = {} }}", range[end]));
                }
            }
        }
        for feature in side["sched_feat"]["items"]["anyOf"][0]["oneOf"].as_array().unwrap() {
            accepted(format!("sched_feat = [{}]", feature["const"]));
        }
        for profile in side["profile"]["enum"].as_array().unwrap() {
            accepted(format!("profile = {profile}"));
        }
    }
}
