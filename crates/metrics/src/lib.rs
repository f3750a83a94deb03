//! Metrics, statistics and reports of coreward runs.
//!
//! Everything here describes a run after the fact, so floating point is allowed; nothing here decides anything inside a
//! simulation, except where a run may skip its steady middle ([`steady`]). [`registry`] names the metrics, [`histogram`]
//! collects latencies, [`stats`] summarises samples, [`difference`] tests two, [`sequential`] says how large they have to
//! be, [`uncertainty`] says what hangs on costs that are not known exactly, [`compare`] puts variants beside a baseline, [`published`] names what was published of them, [`ablation`] says which
//! mechanism carries a difference, [`fidelity`] how well the differences agree with published ones, and [`verdict`],
//! [`table`], [`html`], [`schedstat`] and [`perfetto`] write what people and the field's tools read.

pub mod ablation;
pub mod compare;
pub mod cpu_time;
pub mod difference;
pub mod fidelity;
pub mod histogram;
pub mod html;
mod markdown;
pub mod perfetto;
pub mod published;
pub mod registry;
pub mod schedstat;
pub mod sequential;
pub mod stats;
pub mod steady;
pub mod table;
pub mod uncertainty;
pub mod verdict;
pub mod why;

pub use ablation::Ablated;
pub use compare::{Comparison, Recipe, Runs, Side, Variant};
pub use cpu_time::{CpuTime, PARTS, Part};
pub use fidelity::Fidelity;
pub use histogram::LatencyHistogram;
pub use published::Published;
pub use registry::{Better, Metric, Metrics};
pub use stats::{Statistic, Summary, Verdict};
pub use uncertainty::Uncertainty;
