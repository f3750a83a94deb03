//! The columns of every table.

use coreward_metrics::stats::Verdict;
use coreward_metrics::{Better, Metric};
use schemars::{JsonSchema, Schema, schema_for};
use serde::Serialize;
use serde_json::Value;

/// Rises when a column goes or changes its meaning. A new column does not raise it.
pub const SCHEMA_VERSION: u64 = 1;

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// UTF-8.
    Text,
    /// Unsigned, of 64 bits.
    Integer,
    /// A floating-point number of 64 bits.
    Number,
}

/// A column of every table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// What it is called.
    pub name: &'static str,
    /// What it holds.
    pub kind: Kind,
    /// Whether a row may have no value in it.
    pub optional: bool,
    /// What it means.
    pub help: &'static str,
}

/// The value of a row in a column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cell<'a> {
    /// In a column of texts.
    Text(&'a str),
    /// In a column of integers.
    Integer(u64),
    /// In a column of numbers.
    Number(f64),
    /// No value.
    Missing,
}

/// The type of a field of [`Row`].
trait Field<'a> {
    const KIND: Kind;
    const OPTIONAL: bool = false;
    fn cell(&self) -> Cell<'a>;
}

impl<'a> Field<'a> for &'a str {
    const KIND: Kind = Kind::Text;
    fn cell(&self) -> Cell<'a> {
        Cell::Text(self)
    }
}

impl<'a> Field<'a> for u64 {
    const KIND: Kind = Kind::Integer;
    fn cell(&self) -> Cell<'a> {
        Cell::Integer(*self)
    }
}

impl<'a> Field<'a> for f64 {
    const KIND: Kind = Kind::Number;
    fn cell(&self) -> Cell<'a> {
        Cell::Number(*self)
    }
}

impl<'a, T: Field<'a>> Field<'a> for Option<T> {
    const KIND: Kind = T::KIND;
    const OPTIONAL: bool = true;
    fn cell(&self) -> Cell<'a> {
        self.as_ref().map_or(Cell::Missing, T::cell)
    }
}

/// Builds [`Row`] and [`COLUMNS`] from the table below: one line per column, `name: type, help;`.
macro_rules! columns {
    ($a:lifetime: $($name:ident: $type:ty, $help:literal;)+) => {
        /// A metric of a run, with all that the run was.
        #[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
        #[schemars(deny_unknown_fields)]
        pub struct Row<$a> {
            $(#[doc = $help] pub $name: $type,)+
        }

        impl<$a> Row<$a> {
            const COLUMNS: &'static [Column] = &[$(Column {
                name: stringify!($name),
                kind: <$type as Field<$a>>::KIND,
                optional: <$type as Field<$a>>::OPTIONAL,
                help: $help,
            },)+];

            /// The values, in the order of the columns.
            pub fn cells(&self) -> [Cell<$a>; COLUMNS.len()] {
                [$(self.$name.cell(),)+]
            }
        }
    };
}

columns! { 'a:
    schema_version: u64, "version of these columns, 1; it rises when one goes or changes its meaning";
    coreward_version: &'a str, "version of the program";
    command: &'a str, "run, compare, matrix or sweep";
    experiment: Option<&'a str>, "name of the experiment or sweep; none for run and matrix";
    case: Option<&'a str>, "label of the experiment's case, or name of the workload in a matrix or sweep";
    machine: &'a str, "name of the machine";
    cpus: u64, "number of its CPUs";
    workload: &'a str, "command line of the workload, with its defaults";
    scale: f64, "fraction of the workload that was run, 0.000001 to 1";
    task_group_depth: u64, "nesting depth of the workload's task group";
    profile: &'a str, "kernel that the policy stands for, like linux-6.12";
    role: &'a str, "baseline, variant (what is compared with it), or single (a run by itself)";
    side: &'a str, "label of the side; in a matrix or sweep the change or setting";
    changes: &'a str, "what is not as in the profile and the machine file, separated by comma and blank; empty if all is";
    run: u64, "number of the run on its side, from 0 on";
    seed: u64, "seed of the run";
    metric: &'a str, "name of the metric";
    value: f64, "value of the metric in this run; where a run has none, there is no row";
    unit: &'a str, "unit of the value (s, us, 1/s, %); empty for a count";
    better: &'a str, "which value is better: lower, higher, or neutral";
    delta_pct: Option<f64>, "of the variant, the same in all its runs: change of the mean from the baseline's in %, + is better, or more if neutral";
    ci95_low_pct: Option<f64>, "of the variant: lower end of the 95 % confidence interval of delta_pct";
    ci95_high_pct: Option<f64>, "of the variant: upper end of that interval";
    p_value: Option<f64>, "of the variant: p-value of the change, of this metric by itself";
    verdict: Option<&'a str>, "of the variant, for metrics that are judged: better, worse, different (neutral), not_shown or untested; corrected for all metrics judged together";
}

/// The columns, in their order.
pub const COLUMNS: &[Column] = Row::COLUMNS;

/// The schema of a row as JSON, as in a file of lines of JSON.
pub fn schema() -> Schema {
    let mut schema = schema_for!(Row<'_>);
    schema.insert("title".into(), "A row of coreward's tables".into());
    // a row has every column, with null for no value
    schema.insert("required".into(), COLUMNS.iter().map(|column| column.name).collect());
    let mut values = |name: &str, values: &[&str]| {
        if let Some(column) = schema.pointer_mut(&format!("/properties/{name}")) {
            let null = column["type"].is_array().then_some(Value::Null);
            column["enum"] = values.iter().map(|value| Value::from(*value)).chain(null).collect();
        }
    };
    values("command", &["run", "compare", "matrix", "sweep"]);
    values("role", &["baseline", "variant", "single"]);
    values("metric", &Metric::ALL.iter().map(|metric| metric.name()).collect::<Vec<_>>());
    values("better", &[Better::Lower, Better::Higher, Better::Neutral].map(better));
    let verdicts =
        [Verdict::Better, Verdict::Worse, Verdict::Different, Verdict::NotShown, Verdict::Untested];
    values("verdict", &verdicts.map(verdict));
    if let Some(column) = schema.pointer_mut("/properties/schema_version") {
        column["const"] = SCHEMA_VERSION.into();
    }
    schema
}

/// How a row says which value of a metric is better.
pub fn better(better: Better) -> &'static str {
    match better {
        Better::Lower => "lower",
        Better::Higher => "higher",
        Better::Neutral => "neutral",
    }
}

/// How a row says what a comparison showed.
pub fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Better => "better",
        Verdict::Worse => "worse",
        Verdict::Different => "different",
        Verdict::NotShown => "not_shown",
        Verdict::Untested => "untested",
    }
}
