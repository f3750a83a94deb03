//! How far many simulations are: a bar for a person at a terminal, numbers for a program.

use std::io::{IsTerminal, stderr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use indicatif::{ProgressBar, ProgressStyle};

use crate::caller;

/// What a program that called a command can see of its progress, from any thread.
#[derive(Debug, Default)]
pub struct Told {
    done: AtomicU64,
    total: AtomicU64,
}

impl Told {
    /// How many runs or cells are done, and of how many; there may be more later.
    pub fn done_of_total(&self) -> (u64, u64) {
        (self.done.load(Ordering::Relaxed), self.total.load(Ordering::Relaxed))
    }
}

/// The progress of some simulations, which may be called from any thread.
pub(crate) struct Progress {
    bar: ProgressBar,
    told: Option<Arc<Told>>,
}

impl Progress {
    /// Nobody is told.
    pub(crate) fn hidden() -> Progress {
        Progress { bar: ProgressBar::hidden(), told: None }
    }

    /// Of so many simulations, whose weights have this sum. A bar is on standard error, and only if that is a terminal;
    /// `template` is its text.
    pub(crate) fn new(number: usize, weight: u64, message: String, template: &str) -> Progress {
        let told = caller::told();
        told.as_ref().map(|told| told.total.fetch_add(number as u64, Ordering::Relaxed));
        if !stderr().is_terminal() || caller::is_quiet() {
            return Progress { bar: ProgressBar::hidden(), told };
        }
        let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
        Progress { bar: ProgressBar::new(weight).with_message(message).with_style(style), told }
    }

    /// A simulation of this weight is done.
    pub(crate) fn done(&self, weight: u64) {
        self.bar.inc(weight);
        self.told.as_ref().map(|told| told.done.fetch_add(1, Ordering::Relaxed));
    }

    /// All are.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
