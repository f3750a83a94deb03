//! The sockets of statistics and of settings. Only one scheduler has them at a time, and only its user may connect.

use std::fs::{self, File, Permissions, TryLockError};
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::Receiver;

use anyhow::{Context, Result, bail};
use rustix::fs::Mode;
use scx_stats::StatsServer;

use crate::setting::{self, Asked};
use crate::stats::{self, Request, Response};

pub(crate) type Server = StatsServer<Request, Response>;

/// Where scx_stats has sockets. It names the directory /var/run/scx, which is another one where /var/run is no link to
/// /run, so both sides are told this path.
pub(crate) const DIRECTORY: &str = "/run/scx";

/// The sockets in this directory: what is asked for, and what is changed.
const NAME: &str = "root/stats";
const SETTINGS: &str = "root/settings";

/// The socket of the scheduler that runs.
pub(crate) fn path() -> PathBuf {
    Path::new(DIRECTORY).join(NAME)
}

/// The socket on which its settings are changed.
pub(crate) fn settings_path() -> PathBuf {
    Path::new(DIRECTORY).join(SETTINGS)
}

/// Removes the socket of a scheduler that was killed. Whoever calls this holds the lock.
///
/// # Errors
/// It cannot be removed.
pub(crate) fn remove_stale(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot replace {}", path.display()))
        }
        _ => Ok(()),
    }
}

/// The right to have the sockets, which ends with the process.
pub(crate) struct Lock {
    directory: &'static Path,
    _file: File,
}

/// Takes the right to have the sockets in a directory. Without it, a second scheduler would replace the socket of the
/// first.
///
/// # Errors
/// Another one has it, or the directory cannot be written.
pub(crate) fn lock(directory: &'static Path) -> Result<Lock> {
    // everybody who may connect may change settings, so only this user may access what is created here
    rustix::process::umask(Mode::RWXG | Mode::RWXO);
    fs::create_dir_all(directory).with_context(|| directory.display().to_string())?;
    let path = directory.join("coreward.lock");
    let cannot = || format!("cannot lock {}", path.display());
    let file = File::options().create(true).append(true).open(&path).with_context(cannot)?;
    match file.try_lock() {
        Ok(()) => Ok(Lock { directory, _file: file }),
        Err(TryLockError::WouldBlock) => bail!("another `coreward live` runs: end it first"),
        Err(TryLockError::Error(error)) => Err(error).with_context(cannot),
    }
}

impl Lock {
    /// Serves statistics and settings on the socket.
    ///
    /// # Errors
    /// The socket cannot be made.
    pub(crate) fn serve(&self) -> Result<Server> {
        let path = self.directory.join(NAME);
        let server = StatsServer::new(stats::server_data()).set_path(&path).launch();
        let server = server.context("cannot serve statistics")?;
        // nobody could connect before, either, because of the umask
        fs::set_permissions(&path, Permissions::from_mode(0o600)).context("cannot serve statistics")?;
        Ok(server)
    }

    /// Serves the socket on which settings are changed, once [`Lock::serve`] has made its directory.
    ///
    /// # Errors
    /// The socket cannot be made.
    pub(crate) fn serve_settings(&self) -> Result<Receiver<Asked>> {
        let path = self.directory.join(SETTINGS);
        let asked = setting::serve(&path)?;
        fs::set_permissions(&path, Permissions::from_mode(0o600)).context("cannot serve settings")?;
        Ok(asked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

    #[test]
    fn the_unit_gives_the_scheduler_its_directory_and_little_else() {
        let unit = include_str!("../../../contrib/coreward.service");
        let values = |key: &str| -> Vec<&str> {
            let line = unit.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
            line.unwrap_or_else(|| panic!("{key} is missing")).split(' ').collect()
        };
        let directories = values("RuntimeDirectory");
        assert!(directories.iter().any(|name| Path::new("/run").join(name) == Path::new(DIRECTORY)));
        // that of the example of --metrics
        assert!(unit.contains("--metrics /run/coreward/") && directories.contains(&"coreward"));
        assert_eq!(values("UMask"), ["0077"]);
        assert_eq!(values("RestrictAddressFamilies"), ["AF_UNIX"], "nothing is served on the network");
        assert_eq!(values("CapabilityBoundingSet"), ["CAP_BPF", "CAP_PERFMON"]);
        assert_eq!(values("SystemCallFilter"), ["@system-service", "bpf", "perf_event_open"]);
    }

    #[test]
    fn a_second_one_leaves_the_first_ones_socket_alone() {
        let directory = std::env::temp_dir().join(format!("coreward-socket-{}", std::process::id()));
        let directory: &'static Path = Box::leak(directory.into_boxed_path());
        rustix::process::umask(Mode::empty());
        let first = lock(directory).unwrap();
        let server = first.serve().unwrap();
        let socket = directory.join(NAME);
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&socket), mode(socket.parent().unwrap())), (0o600, 0o700));
        first.serve_settings().unwrap();
        assert_eq!(mode(&directory.join(SETTINGS)), 0o600);
        let error = lock(directory).err().expect("the first one holds it").to_string();
        assert_eq!(error, "another `coreward live` runs: end it first");
        UnixStream::connect(&socket).unwrap();
        drop((server, first));
        lock(directory).expect("it is free again");
        fs::remove_dir_all(directory).unwrap();
    }
}
