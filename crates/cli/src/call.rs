//! Commands as functions, for programs that link this library: the Python package.

use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::bail;
use coreward_input::Printer;
use coreward_tables::Memory;

use crate::caller;
use crate::cli::Command;
use crate::compare;
use crate::output::{OutputFile, Outputs};
use crate::progress::Told;
use crate::unmet::Unmet;

/// What a command answered.
#[derive(Debug)]
pub struct Answer {
    /// What it would have printed, to the byte.
    pub output: Vec<u8>,
    /// What it would have remarked on standard error: what was assumed, or is not as it was asked for.
    pub remarks: Vec<String>,
    /// The requirement that the result does not meet: exit status 1.
    pub unmet: Option<String>,
    /// The rows that `--output` would have written to a file, if they were wanted.
    pub rows: Option<Memory>,
}

/// Carries out a command in this process, as [`main`](crate::main) does. `arguments` come after the program's name. A
/// thread that sets the flag interrupts it: simulations end at their next event, measurements after their current step.
/// `told` is kept current while it compares. Rows take some 10 KiB a run.
///
/// # Errors
/// What the command would have said on standard error, as one line.
pub fn call(
    arguments: Vec<OsString>,
    wants_rows: bool,
    interrupt: Arc<AtomicBool>,
    told: Arc<Told>,
) -> Result<Answer, String> {
    let mut output = Vec::new();
    let work = || {
        let arguments = std::iter::once("coreward".into()).chain(arguments).collect();
        let command = crate::parse(arguments)?;
        answers(&command)?;
        crate::carry_out(command, &mut Printer::new(&mut output))
    };
    let (result, remarks, rows) = caller::program(interrupt, told, wants_rows, work);
    let unmet = match result {
        Ok(()) => None,
        Err(error) if error.is::<Unmet>() => Some(crate::message(&error)),
        Err(error) => return Err(crate::message(&error)),
    };
    Ok(Answer { output, remarks, unmet, rows })
}

/// Files that a program writes, as the commands write theirs: none of them is an input or another one, and a file appears, or
/// takes the place of another, as a whole.
pub struct Files {
    outputs: Outputs,
    files: Vec<OutputFile>,
}

impl Files {
    /// None of the files will be one of these.
    pub fn new(inputs: Vec<PathBuf>) -> Files {
        Files { outputs: Outputs::new(inputs), files: Vec::new() }
    }

    /// Opens a file that an option names, so that one that cannot be written is found before any work is done.
    ///
    /// # Errors
    /// It cannot be written, or is an input or another file, as one line.
    pub fn open(&mut self, option: String, target: &Path) -> Result<(), String> {
        let opened =
            caller::program(Arc::default(), Arc::default(), false, || self.outputs.create(option, target)).0;
        self.files.push(opened.map_err(|error| crate::message(&error))?);
        Ok(())
    }

    /// Writes the files, in the order in which they were opened.
    ///
    /// # Errors
    /// One cannot be written, as one line.
    pub fn finish(self, texts: &[String]) -> Result<(), String> {
        let write = |(mut file, text): (OutputFile, &String)| -> anyhow::Result<()> {
            file.write_all(text.as_bytes())?;
            file.finish()
        };
        let mut files = self.files.into_iter().zip(texts);
        let written = caller::program(Arc::default(), Arc::default(), false, || files.try_for_each(write)).0;
        written.map_err(|error| crate::message(&error))
    }
}

/// The first run of each side of a comparison, drawn as in the page that `--html` writes. `arguments` are those of the
/// command, `compare` included.
///
/// # Errors
/// What the command would have said on standard error, as one line.
pub fn draw(arguments: Vec<OsString>) -> Result<String, String> {
    let arguments = std::iter::once("coreward".into()).chain(arguments).collect();
    let drawn = crate::parse(arguments).and_then(|command| match command {
        Command::Compare(args) => compare::look(&args),
        _ => bail!("only a comparison can be drawn"),
    });
    drawn.map_err(|error| crate::message(&error))
}

/// Some commands are no functions: they replace the process by another, or end it.
fn answers(command: &Command) -> anyhow::Result<()> {
    match command {
        Command::Tune(_)
        | Command::Record(_)
        | Command::Policy(_)
        | Command::Live(_)
        | Command::Shadow(_)
        | Command::Top(_)
        | Command::Get(_)
        | Command::Set(_) => bail!("a program cannot call this command as a function"),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;
    use std::thread;
    use std::time::{Duration, Instant};

    use super::*;

    fn answer(arguments: &[&str]) -> Result<Answer, String> {
        call(arguments.iter().map(OsString::from).collect(), false, Arc::default(), Arc::default())
    }

    #[test]
    fn the_answer_is_what_is_printed_and_remarked() {
        let answer = answer(&["run", "--machine=2c", "--json", "--", "hackbench -g 1 -l 10 --pipe"]).unwrap();
        assert!(answer.output.starts_with(b"{\n  \"machine\": \"2c\""));
        assert!(answer.output.ends_with(b"}\n"));
        assert_eq!(answer.unmet, None);
    }

    #[test]
    fn errors_are_those_of_the_command() {
        for (arguments, message) in [
            (&[][..], "no command given, see coreward --help"),
            (&["run", "--machine=2x", "hackbench"], "--machine: "),
            (
                &["run", "--sed=1", "hackbench"],
                "unexpected argument '--sed' found, a similar argument exists: '--seed'",
            ),
            (&["live"], "a program cannot call this command as a function"),
        ] {
            let error = answer(arguments).unwrap_err();
            assert!(error.starts_with(message), "{error}");
        }
    }

    #[test]
    fn a_program_is_told_how_far_it_is() {
        let small = ["--machine=2c", "--with=NO_SIS_UTIL", "--runs=2"];
        let workload = "hackbench -g 1 -l 10 --pipe";
        for (words, number) in [
            (vec!["compare", small[0], small[1], small[2], "--", workload], 4),
            (vec!["matrix", small[0], small[1], small[2], "--workload", workload], 1),
        ] {
            let told = Arc::new(Told::default());
            let arguments = words.iter().map(OsString::from).collect();
            call(arguments, false, Arc::default(), Arc::clone(&told)).unwrap();
            assert_eq!(told.done_of_total(), (number, number), "{words:?}");
        }
    }

    #[test]
    fn a_flag_interrupts_it() {
        let interrupt = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&interrupt);
        let arguments = ["compare", "--machine=2c", "--with=NO_SIS_UTIL", "--", "hackbench -g 40 -l 100000"];
        let arguments = arguments.map(OsString::from).to_vec();
        let work = thread::spawn(move || call(arguments, false, flag, Arc::default()));
        thread::sleep(Duration::from_millis(200));
        assert!(!work.is_finished(), "it takes minutes");
        interrupt.store(true, Ordering::Relaxed);
        let asked = Instant::now();
        let error = work.join().unwrap().unwrap_err();
        assert!(error.ends_with("the run was interrupted"), "{error}");
        assert!(asked.elapsed() < Duration::from_secs(1), "{:?}", asked.elapsed());
    }
}
