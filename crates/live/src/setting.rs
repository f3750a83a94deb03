//! The socket on which settings are changed. It is apart from that of scx_stats, whose server does not tell who asks.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use rustix::process::{Uid, geteuid};
use serde::{Deserialize, Serialize};

use crate::policy::WrongArgument;
use crate::socket::remove_stale;

/// How long a client may take to ask, and the scheduler to answer.
const TIMEOUT: Duration = Duration::from_secs(5);
/// The longest request, in bytes.
const MAX_BYTES: u64 = 4096;

/// A setting and its new value.
#[derive(Serialize, Deserialize)]
struct Request {
    name: String,
    value: i64,
}

/// None if it was set, else why not.
#[derive(Serialize, Deserialize)]
struct Answer {
    refused: Option<String>,
}

/// What a client asks for, and where the answer goes.
pub(crate) struct Asked {
    pub(crate) name: String,
    pub(crate) value: i64,
    answer: Sender<Option<String>>,
}

impl Asked {
    /// Tells the client why the setting was refused, if it was.
    pub(crate) fn answer(self, refused: Option<String>) {
        // the client may have gone
        let _ = self.answer.send(refused);
    }
}

/// Serves the socket until the process ends. What is asked arrives at the receiver.
///
/// # Errors
/// The socket cannot be made.
pub(crate) fn serve(path: &Path) -> Result<Receiver<Asked>> {
    let owner = geteuid();
    serve_those(path, move |uid| uid.is_root() || uid == owner)
}

fn serve_those(path: &Path, may_set: impl Fn(Uid) -> bool + Send + 'static) -> Result<Receiver<Asked>> {
    remove_stale(path)?;
    let listener = UnixListener::bind(path).with_context(|| format!("cannot serve {}", path.display()))?;
    let (ask, asked) = channel();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // a client that is gone, or does not keep to the form, gets no answer
            let _ = respond(&stream, &may_set, &ask);
        }
    });
    Ok(asked)
}

fn respond(mut stream: &UnixStream, may_set: &impl Fn(Uid) -> bool, ask: &Sender<Asked>) -> Result<()> {
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    let peer = rustix::net::sockopt::socket_peercred(stream.as_fd())?;
    let refused = if may_set(peer.uid) {
        let mut line = String::new();
        BufReader::new(stream.take(MAX_BYTES)).read_line(&mut line)?;
        let Request { name, value } = serde_json::from_str(&line)?;
        let (answer, answered) = channel();
        ask.send(Asked { name, value, answer })?;
        match answered.recv_timeout(TIMEOUT) {
            Ok(refused) => refused,
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                Some("the scheduler does not answer".into())
            }
        }
    } else {
        Some("only root and the user who started `coreward live` may change settings".into())
    };
    let line = serde_json::to_string(&Answer { refused })? + "\n";
    Ok(stream.write_all(line.as_bytes())?)
}

/// Asks the scheduler whose socket this is to change a setting.
///
/// # Errors
/// None runs, or it refuses.
pub(crate) fn request(path: &Path, name: &str, value: i64) -> Result<()> {
    let stream = UnixStream::connect(path).map_err(|error| match error.kind() {
        ErrorKind::PermissionDenied => anyhow!("only root may ask `coreward live`: run this as root"),
        ErrorKind::NotFound | ErrorKind::ConnectionRefused => anyhow!("no `coreward live` runs"),
        _ => anyhow::Error::from(error).context("`coreward live` cannot be asked"),
    })?;
    ask(stream, name, value)
}

fn ask(mut stream: UnixStream, name: &str, value: i64) -> Result<()> {
    let cannot = "`coreward live` cannot be asked";
    stream.set_read_timeout(Some(2 * TIMEOUT)).context(cannot)?;
    let line = serde_json::to_string(&Request { name: name.to_owned(), value })? + "\n";
    match stream.write_all(line.as_bytes()) {
        // whoever may not ask is answered before the request is read
        Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
        written => written.context(cannot)?,
    }
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).context(cannot)?;
    let answer: Answer = serde_json::from_str(&line).context(cannot)?;
    answer.refused.map_or(Ok(()), |why| Err(WrongArgument(why).into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    /// A directory for a test's socket.
    fn directory() -> tempfile::TempDir {
        tempfile::tempdir().unwrap()
    }

    #[test]
    fn what_is_asked_arrives_and_is_answered() {
        let directory = directory();
        let path = directory.path().join("settings");
        let asked = serve(&path).unwrap();
        let server = thread::spawn(move || {
            for asked in asked.iter().take(2) {
                let refused = (asked.value < 0).then(|| format!("{} is {}", asked.name, asked.value));
                asked.answer(refused);
            }
        });
        request(&path, "SIS_UTIL", 1).unwrap();
        assert_eq!(request(&path, "nr_migrate", -1).unwrap_err().to_string(), "nr_migrate is -1");
        server.join().unwrap();
    }

    #[test]
    fn others_are_refused_before_anything_is_read() {
        let directory = directory();
        let path = directory.path().join("settings");
        let asked = serve_those(&path, |_| false).unwrap();
        let error = request(&path, "SIS_UTIL", 1).unwrap_err().to_string();
        assert!(error.starts_with("only root and the user who started"), "{error}");
        assert!(asked.try_recv().is_err());
    }

    #[test]
    fn a_refusal_that_comes_before_the_request_keeps_its_words() {
        let (stream, mut server) = UnixStream::pair().unwrap();
        server.write_all(b"{\"refused\":\"not you\"}\n").unwrap();
        drop(server);
        assert_eq!(ask(stream, "SIS_UTIL", 1).unwrap_err().to_string(), "not you");
    }

    #[test]
    fn nonsense_and_endless_lines_stop_nobody() {
        let directory = directory();
        let path = directory.path().join("settings");
        let asked = serve(&path).unwrap();
        thread::spawn(move || asked.iter().for_each(|asked| asked.answer(None)));
        for text in ["\n".to_owned(), "{}\n".to_owned(), "x".repeat(1 << 20)] {
            let mut stream = UnixStream::connect(&path).unwrap();
            // the server closes it before all is written
            let _ = stream.write_all(text.as_bytes());
            let mut answer = String::new();
            let _ = stream.read_to_string(&mut answer);
            assert_eq!(answer, "");
        }
        let start = Instant::now();
        request(&path, "SIS_UTIL", 1).unwrap();
        assert!(start.elapsed() < TIMEOUT);
    }

    #[test]
    fn without_a_scheduler_there_is_no_socket() {
        let directory = directory();
        let path = directory.path().join("settings");
        assert_eq!(request(&path, "SIS_UTIL", 1).unwrap_err().to_string(), "no `coreward live` runs");
        drop(UnixListener::bind(&path).unwrap());
        assert_eq!(request(&path, "SIS_UTIL", 1).unwrap_err().to_string(), "no `coreward live` runs");
        // and one that a killed scheduler left is replaced
        serve(&path).unwrap();
    }
}
