//! Output files, which are written completely or not at all. Anything that is not a regular file is written
//! to directly.

mod leftovers;
mod until_closed;

use std::borrow::Cow;
use std::fs::{self, File, Metadata};
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, fchown};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use coreward_input::printable_json;
use rustix::fs::{AtFlags, CWD, OFlags, linkat};
use rustix::io::Errno;

use leftovers::TemporaryName;
pub(crate) use until_closed::UntilClosed;

/// Where Linux shows a process its open files.
const OWN_FILES: &str = "/proc/self/fd";

/// The files that a command writes, none of which is one that it reads or another that it writes.
pub(crate) struct Outputs {
    inputs: Vec<PathBuf>,
    /// The option and the place of each output that is a file.
    taken: Vec<(Cow<'static, str>, Place)>,
}

impl Outputs {
    /// `inputs` are files, or directories of which any file may be one.
    pub(crate) fn new(inputs: impl IntoIterator<Item = PathBuf>) -> Outputs {
        Outputs { inputs: inputs.into_iter().collect(), taken: Vec::new() }
    }

    /// Opens the output that an option names, so that one that cannot be written is found before any work is done.
    ///
    /// # Errors
    /// It cannot be written, or is an input, or another option names it too.
    pub(crate) fn create(
        &mut self,
        option: impl Into<Cow<'static, str>>,
        target: &Path,
    ) -> Result<OutputFile> {
        let option = option.into();
        let cannot = || format!("{option}: cannot write {}", target.display());
        let place = Place::of(target).with_context(cannot)?;
        if let Some(place) = &place {
            if self.inputs.iter().any(|input| place.is_in(input)) {
                bail!("{}: it is an input", cannot());
            }
            if let Some((other, _)) = self.taken.iter().find(|(_, taken)| taken.is(place)) {
                bail!("{other} and {option} name the same file");
            }
        }
        let file = OutputFile::open(target, place.as_ref()).with_context(cannot)?;
        self.taken.extend(place.map(|place| (option, place)));
        Ok(file)
    }
}

/// Where a regular file is, or will be.
struct Place {
    /// No link, and in a directory without one.
    path: PathBuf,
    /// The metadata of the existing file.
    existing: Option<Metadata>,
}

impl Place {
    /// `None` if the target is written to directly: it is not a regular file, or this process was given it open.
    fn of(target: &Path) -> Result<Option<Place>> {
        let existing = match fs::metadata(target) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            found => Some(found?),
        };
        match &existing {
            Some(found) if found.is_dir() => bail!("it is a directory"),
            None if target.as_os_str().as_encoded_bytes().ends_with(b"/") => bail!("it is not a file name"),
            Some(found) if !found.is_file() || standard(found)?.is_some() => return Ok(None),
            _ => {}
        }
        let mut path = target.to_owned();
        loop {
            let name = path.file_name().context("it is not a file name")?;
            let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
            let directory = fs::canonicalize(directory.unwrap_or(Path::new(".")))?;
            if directory.starts_with("/proc") {
                return Ok(None);
            }
            path = directory.join(name);
            // a dangling link is followed, too; that ends, otherwise the metadata would not be missing
            match fs::read_link(&path) {
                Ok(link) => path = directory.join(link),
                Err(_) => return Ok(Some(Place { path, existing })),
            }
        }
    }

    fn is(&self, other: &Place) -> bool {
        match (&self.existing, &other.existing) {
            (Some(own), Some(other)) => is_same(own, other),
            _ => self.path == other.path,
        }
    }

    /// Whether it is this input, or lies within it.
    fn is_in(&self, input: &Path) -> bool {
        let Ok(found) = fs::metadata(input) else {
            // it may be written first, like the file of `--state`
            return Place::of(input).is_ok_and(|input| input.is_some_and(|input| input.path == self.path));
        };
        match &self.existing {
            Some(own) if is_same(own, &found) => true,
            _ => found.is_dir() && fs::canonicalize(input).is_ok_and(|input| self.path.starts_with(input)),
        }
    }

    fn directory(&self) -> &Path {
        self.path.parent().unwrap_or(&self.path)
    }
}

fn is_same(a: &Metadata, b: &Metadata) -> bool {
    (a.dev(), a.ino()) == (b.dev(), b.ino())
}

/// A file that appears in its place, or takes the place of another, only when it is finished. Until then it has no
/// name, or, where the file system cannot do that, a temporary one.
pub(crate) struct OutputFile {
    file: BufWriter<Named<File>>,
    end: End,
}

/// What finishing the file does.
enum End {
    /// Nothing: it was written to directly.
    Written,
    /// Gives it its name.
    Name { path: PathBuf, replaces: bool },
    /// Changes its name.
    Rename { path: PathBuf, from: TemporaryName },
}

impl OutputFile {
    fn open(target: &Path, place: Option<&Place>) -> io::Result<OutputFile> {
        let (file, end) = match place {
            None => (as_it_is(target)?, End::Written),
            Some(place) => beside(place)?,
        };
        Ok(OutputFile { file: BufWriter::new(Named::new(target.display().to_string(), file)), end })
    }

    /// Writes what is left of the file.
    pub(crate) fn complete(self) -> Result<Complete> {
        let file = self.file.into_inner().map_err(|error| error.into_error())?;
        Ok(Complete { file, end: self.end })
    }

    /// Puts the only file that a command writes in the target's place.
    pub(crate) fn finish(self) -> Result<()> {
        place([self.complete()?])
    }
}

/// A file that is written completely, and not in its place yet.
#[must_use]
pub(crate) struct Complete {
    file: Named<File>,
    end: End,
}

/// Puts all files of a command in their places, when nothing can be wrong with one of them any more: older files are there
/// until then.
pub(crate) fn place(files: impl IntoIterator<Item = Complete>) -> Result<()> {
    for Complete { file, end } in files {
        end.reach(&file.writer).map_err(|error| file.named(error))?;
    }
    Ok(())
}

/// A writer whose errors say what cannot be written.
pub(crate) struct Named<W> {
    name: String,
    writer: W,
}

impl<W> Named<W> {
    pub(crate) fn new(name: impl Into<String>, writer: W) -> Named<W> {
        Named { name: name.into(), writer }
    }

    fn named(&self, error: io::Error) -> io::Error {
        io::Error::new(error.kind(), format!("cannot write {}: {error}", self.name))
    }
}

impl<W: Write> Write for Named<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writer.write(bytes).map_err(|error| self.named(error))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush().map_err(|error| self.named(error))
    }
}

impl<W: Seek> Seek for Named<W> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.writer.seek(to).map_err(|error| self.named(error))
    }
}

impl End {
    fn reach(self, file: &File) -> io::Result<()> {
        match self {
            End::Written => Ok(()),
            End::Name { path, replaces: false } => match link(file, &path) {
                // another process was faster
                Err(Errno::EXIST) => replace(file, path),
                linked => Ok(linked?),
            },
            End::Name { path, replaces: true } => replace(file, path),
            End::Rename { path, from } => from.rename(&path),
        }
    }
}

impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Seek for OutputFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

/// Opens a target that is not a regular file, or that this process was given open.
fn as_it_is(target: &Path) -> io::Result<File> {
    match standard(&fs::metadata(target)?)? {
        Some(file) => Ok(file),
        None => File::options().write(true).open(target),
    }
}

/// Standard output or standard error, if that is what was found: shared, so that neither of two writers overwrites
/// the other.
fn standard(found: &Metadata) -> io::Result<Option<File>> {
    let (stdout, stderr) = (io::stdout(), io::stderr());
    for given in [stdout.as_fd(), stderr.as_fd()] {
        let given = File::from(given.try_clone_to_owned()?);
        if is_same(&given.metadata()?, found) {
            return Ok(Some(given));
        }
    }
    Ok(None)
}

/// A new file in the directory of its place.
fn beside(place: &Place) -> io::Result<(File, End)> {
    let path = place.path.clone();
    if let Some(existing) = &place.existing {
        // fails as writing the file itself would, if that is not permitted
        drop(File::options().write(true).open(&path)?);
        let (file, end) = new_file(place.directory(), path, true)?;
        // only root can, and only root has to
        let _ = fchown(&file, Some(existing.uid()), Some(existing.gid()));
        file.set_permissions(existing.permissions())?;
        return Ok((file, end));
    }
    new_file(place.directory(), path, false)
}

fn new_file(directory: &Path, path: PathBuf, replaces: bool) -> io::Result<(File, End)> {
    let unnamed = OFlags::TMPFILE.bits() as i32;
    match File::options().write(true).custom_flags(unnamed).open(directory) {
        Ok(file) if Path::new(OWN_FILES).exists() => Ok((file, End::Name { path, replaces })),
        Err(error) if !is_unsupported(&error) => Err(error),
        _ => {
            let (from, file) = TemporaryName::make(&path, |name| File::create_new(name))?;
            Ok((file, End::Rename { path, from }))
        }
    }
}

/// Whether a file system refuses files without a name; old kernels take the directory for the file.
fn is_unsupported(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL))
}

/// Gives a file without a name a new one.
fn link(file: &File, path: &Path) -> rustix::io::Result<()> {
    linkat(CWD, format!("{OWN_FILES}/{}", file.as_raw_fd()), CWD, path, AtFlags::SYMLINK_FOLLOW)
}

/// Gives a file without a name one that may exist: a link cannot replace a file, but a rename can.
fn replace(file: &File, path: PathBuf) -> io::Result<()> {
    let (name, ()) = TemporaryName::make(&path, |name| Ok(link(file, name)?))?;
    name.rename(&path)
}

/// Prints a value as JSON, indented, with a newline at the end. A terminal shows all of it as it is.
pub(crate) fn json(out: &mut dyn Write, value: &impl serde::Serialize) -> Result<()> {
    let text = serde_json::to_string_pretty(value)?;
    Ok(writeln!(out, "{}", printable_json(&text))?)
}
