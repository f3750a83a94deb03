//! Input files.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

/// Opens a regular file.
///
/// # Errors
/// It is not there or may not be read, or is something that reading could wait for: a pipe, a device, a socket.
pub fn open(path: &Path) -> io::Result<File> {
    // looked at first: opening some devices has effects
    regular(&fs::metadata(path)?)?;
    // and again, without waiting: it may be another one by now
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = File::options().read(true).custom_flags(flags.bits() as i32).open(path)?;
    regular(&file.metadata()?)?;
    Ok(file)
}

fn regular(found: &fs::Metadata) -> io::Result<()> {
    if found.is_file() { Ok(()) } else { Err(io::Error::other("it is not a regular file")) }
}

/// Reads a text file of at most `max_kib` KiB.
///
/// # Errors
/// As for [`open`], or it is larger, or no UTF-8.
pub fn read_text(path: &Path, max_kib: u64) -> io::Result<String> {
    let max = max_kib << 10;
    let mut bytes = Vec::new();
    // its size is not asked for: that of a file in /sys or /proc says nothing
    open(path)?.take(max + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max {
        return Err(io::Error::other(format!("it is larger than {max_kib} KiB")));
    }
    String::from_utf8(bytes).map_err(|_| io::Error::other("it is not UTF-8 text"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    fn refusal(path: &Path) -> String {
        read_text(path, 1).unwrap_err().to_string()
    }

    #[test]
    fn only_regular_files_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe");
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let _socket = std::os::unix::net::UnixListener::bind(dir.path().join("socket")).unwrap();
        std::os::unix::fs::symlink("pipe", dir.path().join("link")).unwrap();
        for path in
            [&pipe, &dir.path().join("link"), &dir.path().join("socket"), dir.path(), Path::new("/dev/zero")]
        {
            assert_eq!(refusal(path), "it is not a regular file", "{}", path.display());
        }
        assert_eq!(refusal(&dir.path().join("no")), "No such file or directory (os error 2)");
    }

    #[test]
    fn text_has_a_limit_and_is_utf8() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        fs::write(&file, "ü".repeat(512)).unwrap();
        assert_eq!(read_text(&file, 1).unwrap().chars().count(), 512);
        fs::write(&file, "x".repeat(1025)).unwrap();
        assert_eq!(refusal(&file), "it is larger than 1 KiB");
        fs::write(&file, b"\xff").unwrap();
        assert_eq!(refusal(&file), "it is not UTF-8 text");
        assert!(read_text(Path::new("/proc/self/status"), 64).unwrap().contains("Name:"));
    }
}
