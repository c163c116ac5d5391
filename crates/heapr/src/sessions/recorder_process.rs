//! The recorder's process: heapr again, in a session of its own, so that it survives the terminal.
//!
//! ```text
//! heapr start                                  heapr recorder-of-session NAME
//!   spawn, standard input is a socket  ----->    setsid
//!   request (one line of JSON)         ----->    take the name, make file, buffers, socket; start or attach to targets
//!   answer (one line of JSON)          <-----    begun, or why not
//!   prints, exits                                lets go of terminal and working directory; records until told to stop
//! ```

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use anyhow::Context as _;
use heapr_session::{BackgroundSession, Failure, InheritedDescriptors, SessionName, StartRequest};
use serde::{Deserialize, Serialize};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::session_end::{self, KEEP, SessionEnd};
use crate::symbolize;
use crate::trace_file::open;

/// Name of the internal command, which is no part of the command line that users see.
pub(crate) const SUBCOMMAND: &str = "recorder-of-session";

/// Interval at which the end of a session is requested again if its socket does not answer.
const ASK_AGAIN: Duration = Duration::from_millis(100);
/// Number of requests after which the session ends without its socket.
const ASKED_MAX: usize = 50;

/// Arguments of the hidden command.
#[derive(Debug, clap::Parser)]
#[command(name = SUBCOMMAND)]
pub(super) struct RecorderArguments {
    /// The session's name, for lists of processes
    #[arg(value_name = "NAME")]
    name: String,
    /// End the session when its starter ends, by any means
    #[arg(long)]
    ends_with_starter: bool,
}

/// First answer of the recorder, once it has begun.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Beginning {
    pub(super) recorder_pid: u32,
    /// Remarks on the targets for the user.
    pub(super) remarks: Vec<String>,
}

pub(super) fn run(arguments: &RecorderArguments) -> anyhow::Result<ExitCode> {
    let inherited = InheritedDescriptors::now();
    // Fails only if this process leads a group, which means that `start` did not start it; then it
    // needs no new session.
    let _ = rustix::process::setsid();
    let starter = rustix::stdio::stdin().try_clone_to_owned().context("no standard input")?;
    let starter = UnixStream::from(starter);
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGTERM, SIGINT, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&stop)).context("cannot watch for signals")?;
    }
    let mut line = String::new();
    BufReader::new(&starter).read_line(&mut line).context("cannot read the request")?;
    let request: StartRequest =
        serde_json::from_str(&line).context("this command is started by `heapr start` only")?;
    if request.properties.sample.is_some() {
        // Many hosts always run a recorder.
        heapr_inject::give_back_memory();
    }
    let output = request.properties.output.clone();
    let begun = BackgroundSession::begin(request);
    let answer: Result<Beginning, Failure> = match &begun {
        Ok(session) => {
            Ok(Beginning { recorder_pid: std::process::id(), remarks: session.remarks().to_vec() })
        }
        Err(error) => Err(Failure::from(error)),
    };
    let mut line = serde_json::to_vec(&answer).context("cannot answer")?;
    line.push(b'\n');
    let is_heard = (&starter).write_all(&line).is_ok();
    let Ok(mut session) = begun else { return Ok(ExitCode::from(2)) };
    let end = StarterEnd { stop, is_kept: Arc::default() };
    let settled = is_heard.then(|| settle(inherited, starter, arguments, end.clone()));
    if !matches!(settled, Some(Ok(()))) {
        // A session that is only dropped would leave its targets traced.
        session.run(&AtomicBool::new(true), |_| {});
        // `start` may have gone, so that the session is unknown to its user.
        if !is_heard || arguments.ends_with_starter {
            let _ = std::fs::remove_file(output);
        }
        return settled.unwrap_or(Ok(())).map(|()| ExitCode::from(2));
    }
    session.use_spare_time();
    let mut is_unwanted = false;
    // An error here has no reader. Names are missing in that case, and the report says of which
    // modules.
    session.run(&end.stop, |summary| {
        // A recording that another command stops is that command's.
        is_unwanted = arguments.ends_with_starter
            && end.stop.load(Relaxed)
            && !end.is_kept.load(Relaxed)
            && open(&output).map_or(true, |trace| trace.snapshots().is_empty());
        if !is_unwanted {
            let _ = symbolize::embed_held(&output, &summary.held_modules, &summary.held_made_code);
        }
    });
    if is_unwanted {
        let _ = std::fs::remove_file(&output);
    }
    Ok(ExitCode::SUCCESS)
}

/// Facts that the end of the starter leaves for the session.
#[derive(Debug, Clone)]
struct StarterEnd {
    /// Ends the session; signals set it, too.
    stop: Arc<AtomicBool>,
    /// True once the starter has sent [`KEEP`].
    is_kept: Arc<AtomicBool>,
}

/// Lets go of what belongs to the starter, and watches it if the session depends on it.
fn settle(
    inherited: InheritedDescriptors,
    starter: UnixStream,
    arguments: &RecorderArguments,
    end: StarterEnd,
) -> anyhow::Result<()> {
    let_go(inherited)?;
    if arguments.ends_with_starter {
        end_with(starter, SessionName::new(&arguments.name)?, end)?;
    }
    Ok(())
}

/// Starts a thread that ends the session by its own socket once `starter` is closed. The kernel
/// closes the socket of a starter that is killed. The recording is removed unless the starter has
/// sent [`KEEP`], or it has a snapshot.
fn end_with(mut starter: UnixStream, name: SessionName, end: StarterEnd) -> anyhow::Result<()> {
    let watch = move || {
        let mut byte = [0];
        loop {
            match starter.read(&mut byte) {
                Ok(1..) if byte[0] == KEEP => end.is_kept.store(true, Relaxed),
                Ok(1..) => {}
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Ok(0) | Err(_) => break,
            }
        }
        // This process ends with its session, so that it needs no request then.
        for _ in 0..ASKED_MAX {
            let is_kept = end.is_kept.load(Relaxed);
            match session_end::end(&name, std::process::id(), is_kept) {
                Ok(SessionEnd::Kept(_) | SessionEnd::Removed) => return,
                // All places for clients may be taken for a moment.
                Ok(SessionEnd::Before) | Err(_) => std::thread::sleep(ASK_AGAIN),
            }
        }
        end.stop.store(true, Relaxed);
    };
    std::thread::Builder::new().name("heapr-starter".to_owned()).spawn(watch).context("no thread")?;
    Ok(())
}

/// Closes the inherited descriptors, replaces the terminal, and leaves the working directory's file
/// system.
fn let_go(inherited: InheritedDescriptors) -> anyhow::Result<()> {
    inherited.close();
    let nothing = File::options().read(true).write(true).open("/dev/null").context("no /dev/null")?;
    rustix::stdio::dup2_stdin(&nothing)?;
    rustix::stdio::dup2_stdout(&nothing)?;
    rustix::stdio::dup2_stderr(&nothing)?;
    std::env::set_current_dir("/").context("cannot leave the working directory")
}
