//! Standard output whose reader may leave.

use std::io::{self, Write};

/// A writer that discards what comes after its reader has closed it (`coreward features | head`): the command still
/// writes its files, and its exit status still says whether all requirements are met.
pub(crate) struct UntilClosed<W> {
    out: W,
    closed: bool,
}

impl<W> UntilClosed<W> {
    pub(crate) fn new(out: W) -> Self {
        UntilClosed { out, closed: false }
    }

    /// Notes if the reader has closed it, which is no failure.
    fn closing<T>(&mut self, done: io::Result<T>, instead: T) -> io::Result<T> {
        match done {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.closed = true;
                Ok(instead)
            }
            done => done,
        }
    }
}

impl<W: Write> Write for UntilClosed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.closed {
            return Ok(bytes.len());
        }
        let written = self.out.write(bytes);
        self.closing(written, bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.closed {
            return Ok(());
        }
        let flushed = self.out.flush();
        self.closing(flushed, ())
    }
}
