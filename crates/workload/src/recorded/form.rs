//! The forms of a recorded workload's file, which the ending of its name tells apart.

use std::io::{self, Read, Write};
use std::path::Path;

use coreward_input::{line_at, toml_refusal};
use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;

use super::file::{File, MAX_BYTES, Versioned};
use super::{MAX_TASKS, Recorded};

/// How a workload is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// JSON, compressed by gzip; read whether it is compressed or not.
    #[default]
    Compressed,
    /// JSON.
    Json,
    /// TOML, with a line for each turn of a task.
    Toml,
}

const ENDINGS: [(&str, Form); 3] =
    [(".cww", Form::Compressed), (".cww.json", Form::Json), (".cww.toml", Form::Toml)];

/// The most values in TOML: twice what as many tasks as are allowed need without affinity.
const MAX_VALUES: usize = 1 << 21;
const _: () = assert!(MAX_VALUES > 2 * MAX_TASKS * 7);

/// What a refusal of a name says.
pub const ALLOWED: &str = "names that end with .cww, .cww.json or .cww.toml";

impl Form {
    /// The form of a file by its name. `None` if it is not one of a recorded workload.
    pub fn of(name: &str) -> Option<Form> {
        ENDINGS.iter().find(|(ending, _)| name.ends_with(ending)).map(|(_, form)| *form)
    }
}

impl Recorded {
    /// Reads a file.
    ///
    /// # Errors
    /// It cannot be read, or [`Recorded::from_bytes`] refuses it.
    pub fn read(path: &Path) -> Result<Recorded, String> {
        let form = Form::of(&path.to_string_lossy()).unwrap_or_default();
        let file = coreward_input::open(path).map_err(|error| error.to_string())?;
        Self::from_bytes(file, form)
    }

    /// Reads the bytes of a file.
    ///
    /// # Errors
    /// It is larger than 256 MiB, not of this form, not of this version, or has a field or step that there is not; with
    /// line or task.
    pub fn from_bytes(mut input: impl Read, form: Form) -> Result<Recorded, String> {
        let mut start = Vec::new();
        let error = |error: io::Error| error.to_string();
        input.by_ref().take(2).read_to_end(&mut start).map_err(error)?;
        let compressed = start == b"\x1f\x8b";
        let whole = io::Cursor::new(start).chain(input);
        let mut text = Vec::new();
        match compressed {
            true => MultiGzDecoder::new(whole).take(MAX_BYTES + 1).read_to_end(&mut text),
            false => whole.take(MAX_BYTES + 1).read_to_end(&mut text),
        }
        .map_err(error)?;
        if text.len() as u64 > MAX_BYTES {
            return Err(format!("its text is larger than {} MiB", MAX_BYTES >> 20));
        }
        let text = std::str::from_utf8(&text).map_err(|_| "it is not UTF-8 text")?;
        match form {
            Form::Compressed | Form::Json => Self::from_json(text),
            Form::Toml => Self::from_toml(text),
        }
    }

    /// Writes a file.
    ///
    /// # Errors
    /// `out` cannot be written, or as TOML it would have too many values to be read.
    pub fn write(&self, mut out: impl Write, form: Form) -> io::Result<()> {
        match form {
            Form::Compressed => {
                let mut gzip = GzEncoder::new(out, Compression::default());
                gzip.write_all(self.to_json().as_bytes())?;
                gzip.finish()?.flush()
            }
            Form::Json => out.write_all(self.to_json().as_bytes()),
            Form::Toml => {
                let text = toml::to_string_pretty(&File::of(self, "\n")).map_err(io::Error::other)?;
                values_fit(&text).map_err(io::Error::other)?;
                out.write_all(text.as_bytes())
            }
        }
    }

    fn from_toml(text: &str) -> Result<Recorded, String> {
        values_fit(text)?;
        let refuse = |error: toml::de::Error| {
            let line = line_at(text, error.span().map_or(0, |span| span.start));
            format!("line {line}: {}", toml_refusal(error.message()))
        };
        toml::from_str::<Versioned>(text)
            .map_err(|error| format!("it is not a recorded workload: {}", refuse(error)))?
            .check()?;
        toml::from_str::<File>(text).map_err(refuse)?.recorded()
    }
}

/// The reader of TOML needs some 200 bytes for each value and each table before it is known whether they may be there.
/// Steps are strings without any of these characters.
fn values_fit(text: &str) -> Result<(), String> {
    match text.bytes().filter(|byte| b",=[.".contains(byte)).count() {
        0..=MAX_VALUES => Ok(()),
        _ => Err(format!(
            "as TOML it has more than {MAX_VALUES} values (a .cww or .cww.json file may have more)"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_say_where_and_what() {
        assert!(Recorded::from_bytes(&b"\x1f\x8bxx"[..], Form::Compressed).is_err());
        assert!(Recorded::from_bytes(&b"\xff\xff"[..], Form::Json).unwrap_err().contains("UTF-8"));
        let head = |rest: &str| format!("coreward_workload = 1\norigin = ''\nassumptions = []\n{rest}");
        let class = |cpu_s: &str| {
            format!(
                "tasks = []\n[[classes]]\nclass = 'c'\ntasks = 1\ncpu_s = {cpu_s}\nwakeups = 1\nmoves = 1\n\
                 wakeup_latency_us = [1, 2]\nrequests = 1\nrequest_us = [1, 2]"
            )
        };
        assert!(Recorded::from_bytes(head(&class("1")).as_bytes(), Form::Toml).is_ok());
        for (text, what) in [
            ("x = 1", "it is not a recorded workload: line 1: missing field"),
            ("coreward_workload = 2", "coreward_workload is 2 (allowed: 1)"),
            ("coreward_workload = 1\norigin = 7", "line 2: invalid type: integer `7`, expected a string"),
            (&head(&class("inf")), "class c: a number is not finite"),
            (&head("duration_s = nan\ntasks = []"), "duration_s is NaN (allowed: finite numbers)"),
            (
                &head(&format!("tasks = [\n{}]", "{},\n".repeat(1 << 22))),
                "as TOML it has more than 2097152 values (a .cww or .cww.json file may have more)",
            ),
            (
                &head(&format!(
                    "[[tasks]]\nname = 'n'\nprocess = 0\nnice = 0\nsteps = ''\ncpus = [{}]",
                    "1,".repeat(4097)
                )),
                "line 9: invalid length 4097, expected a list of at most 4096",
            ),
        ] {
            let error = Recorded::from_bytes(text.as_bytes(), Form::Toml).unwrap_err();
            assert!(error.contains(what) && !error.contains('\n'), "{what}: {error}");
        }
    }
}
