//! `heapr run`: records a program from its first instruction to its end.

use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, ExitStatus};
use std::time::Duration;

use anyhow::Context;
use heapr_session::{OrderDesk, Session, SessionName, SessionProperties, SessionSummary, SnapshotRequest};
use heapr_trace::{Notice, SnapshotTrigger, Trace};
use rustix::process::{Resource, Rlimit, setrlimit};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};

use crate::output::DefaultPath;
use crate::run::output_error::{self, keeps_heapr_out};
use crate::run::passed_signals::{Passed, PassedSignals};
use crate::run::program::{self, Found, Traceability};
use crate::run::progress_line::{self, ProgressLine};
use crate::run::record_arguments::RecordArguments;
use crate::run::snapshot_rules::SnapshotRuleArguments;
use crate::run::{summary, typed_instead};
use crate::symbolize;
use crate::thresholds::{Threshold, threshold};
use crate::trace_file::open;

/// Arguments of `heapr run`.
#[derive(Debug, clap::Args)]
pub(crate) struct RunArguments {
    /// The trace file [default: heapr.PROGRAM.PID.heapr]
    #[arg(short, long, value_name = "FILE", value_parser = crate::output::file_path())]
    output: Option<PathBuf>,
    /// Overwrite an existing file
    #[arg(short = 'f', long)]
    force: bool,
    /// Print nothing but errors
    #[arg(short, long)]
    quiet: bool,
    /// End with 1 if the program succeeds and this is found: growth, leak (growth that is never
    /// freed), churn, peak=SIZE; may be given several times
    #[arg(long, value_name = "KIND", value_parser = threshold)]
    fail_on: Vec<Threshold>,
    #[command(flatten)]
    record: RecordArguments,
    #[command(flatten)]
    snapshots: SnapshotRuleArguments,
    /// Take a snapshot when heapr gets this signal, instead of passing it on to the program
    #[arg(long, value_name = "USR1|USR2", value_parser = parse_signal, help_heading = "Snapshots of the live heap")]
    snapshot_signal: Option<i32>,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "PROGRAM")]
    program: Vec<std::ffi::OsString>,
}

fn parse_signal(text: &str) -> Result<i32, String> {
    match text.to_ascii_uppercase().trim_start_matches("SIG") {
        "USR1" => Ok(SIGUSR1),
        "USR2" => Ok(SIGUSR2),
        _ => Err(format!("{text:?} is neither USR1 nor USR2")),
    }
}

/// Returns sentences on the thresholds that a trace exceeds.
type Judge = fn(&Path, &[Threshold]) -> anyhow::Result<Vec<String>>;

/// Runs the command. `judge` is for `--fail-on`.
pub(crate) fn run(arguments: RunArguments, judge: Judge) -> anyhow::Result<ExitCode> {
    let Some((name, words)) = arguments.program.split_first() else { anyhow::bail!("no program given") };
    let found = match program::find(name) {
        Ok(found) => found,
        Err(refusal) => {
            tell!("heapr: {refusal}");
            if let Some(advice) = typed_instead::advice(&arguments.program) {
                tell!("heapr: {advice}");
            }
            return Ok(ExitCode::from(refusal.exit_code()));
        }
    };
    let mut command = Command::new(&found.path);
    command.arg0(name).args(words);
    if let Traceability::No(reason) = &found.traceability {
        arguments.needs_no_recording(&found.path, reason)?;
        warn!("{} runs untraced: {reason}", found.path.display());
        if let Some(advice) = typed_instead::advice(&arguments.program) {
            tell!("heapr: {advice}");
        }
        return run_untraced(command);
    }
    let output = arguments.output.clone().unwrap_or_else(|| default_output(&found.path));
    let mut properties = SessionProperties::new(output.clone());
    arguments.record.apply(&mut properties)?;
    properties.overwrite = arguments.force;
    properties.graph_at_exit = arguments.snapshots.graph_at_exit;
    properties.graph_contents = arguments.snapshots.graph_contents();
    properties.command_line =
        arguments.program.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let is_output_named = arguments.output.is_some();
    let (mut session, mut signals) = match start(properties, is_output_named, &output) {
        Ok(started) => started,
        Err((true, error)) => {
            arguments.needs_no_recording(&found.path, &format!("{error:#}"))?;
            return run_without_recorder(&found.path, command, &output, &error);
        }
        Err((false, error)) => return Err(error),
    };
    session.use_spare_time();
    arguments.snapshots.rules().into_iter().for_each(|rule| session.add_snapshot_rule(rule));
    progress_line::announce(arguments.quiet, &output);
    let child = match spawn(&mut session, &mut command, &found) {
        Ok(child) => child,
        // There is no process or memory for a second one: the program replaces this process.
        Err(error) if is_want(&error) => {
            drop(session);
            let mut command = Command::new(&found.path);
            command.arg0(name).args(words);
            return run_without_recorder(&found.path, command, &output, &error.into());
        }
        Err(error) => {
            drop(session);
            let _ = std::fs::remove_file(&output);
            tell!("heapr: cannot run {}: {error}", found.path.display());
            return Ok(ExitCode::from(if error.kind() == std::io::ErrorKind::NotFound { 127 } else { 126 }));
        }
    };
    // Without a socket the session takes no requests; the program is recorded all the same.
    let desk = OrderDesk::open(&session, SessionName::of_run(std::process::id())).ok();
    let mut has_told_incomplete = false;
    let status = record(&mut session, child, &mut signals, &arguments, desk, &mut has_told_incomplete)?;
    let ended = session.stop();
    tell_shortcomings(&ended, &found.path, &output, has_told_incomplete);
    // The program's status is passed through, whatever becomes of the summary.
    if !arguments.quiet
        && let Err(error) = summary::print(&summary::Ending::of(&ended, status), &output)
    {
        warn!("no summary: {error:#}");
    }
    if status.success() && !arguments.fail_on.is_empty() {
        if ended.process_count == 0 {
            arguments.needs_no_recording(&found.path, "it has not loaded the agent")?;
        }
        if arguments.fails(&output, judge)? {
            return Ok(ExitCode::FAILURE);
        }
    }
    Ok(end_as(status))
}

/// Starts the session and the watch for signals. An error comes with whether the program runs
/// untraced all the same.
fn start(
    properties: SessionProperties,
    is_output_named: bool,
    output: &Path,
) -> Result<(Session, PassedSignals), (bool, anyhow::Error)> {
    let session = Session::start(properties)
        .map_err(|error| (keeps_heapr_out(&error, is_output_named), output_error::explain(error, output)))?;
    let signals = PassedSignals::watch()
        .map_err(|error| (true, anyhow::Error::from(error).context("cannot watch for signals")))?;
    Ok((session, signals))
}

/// Starts the program, with the session's environment.
fn spawn(session: &mut Session, command: &mut Command, found: &Found) -> std::io::Result<Child> {
    let mut environment = session.environment_for_target();
    if found.traceability == Traceability::HeldAlone {
        environment.retain(|(name, _)| name != "LD_PRELOAD");
        warn!("{}: it loads no library: programs that it starts are not recorded", found.path.display());
    }
    heapr_inject::start_as_given(command, &environment);
    heapr_inject::program_starts();
    match found.traceability {
        Traceability::Held | Traceability::HeldAlone => session.spawn_held(command),
        _ => command.spawn(),
    }
}

/// Warns of an incomplete file, of a program that ran untraced, and of missing names.
fn tell_shortcomings(ended: &SessionSummary, program: &Path, output: &Path, has_told_incomplete: bool) {
    if let Some(error) = ended.write_error.as_ref().filter(|_| !has_told_incomplete) {
        warn!("{} is incomplete: {error}", output.display());
    }
    let path = program.display();
    if let Some(reason) = &ended.not_held {
        warn!("{path} ran untraced: {reason}");
    } else if ended.process_count == 0 {
        warn!("{path} ran untraced: it has not loaded the agent; heapr doctor tells what works here");
    }
    if let Err(error) = symbolize::embed_held(output, &ended.held_modules, &ended.held_made_code) {
        warn!("no names of files that are no longer where they were: {error:#}");
    }
}

/// Returns sentences on processes whose leaks are unknown, because they have no graph of their end.
fn missing_graphs(trace: &Trace) -> Vec<String> {
    let missing = trace.notices().iter().filter(|notice| notice.is_of_a_missing_graph());
    let sentence = |notice: &Notice| {
        let process = trace.processes().get(notice.process.0 as usize);
        let name =
            process.map_or_else(String::new, |process| format!("{} ({})", process.name(), process.pid));
        format!("leak: {name}: {}", notice.text)
    };
    missing.map(sentence).collect()
}

impl RunArguments {
    /// Fails if `--fail-on` was given: without a recording no threshold is met.
    fn needs_no_recording(&self, program: &Path, why: &str) -> anyhow::Result<()> {
        let is_judged = !self.fail_on.is_empty();
        anyhow::ensure!(!is_judged, "--fail-on cannot be judged: {} runs untraced: {why}", program.display());
        Ok(())
    }

    /// Judges the file by `--fail-on`, and tells the failures.
    fn fails(&self, output: &Path, judge: Judge) -> anyhow::Result<bool> {
        let mut failures = judge(output, &self.fail_on)?;
        if self.snapshots.graph_at_exit && self.fail_on.contains(&Threshold::Leak) {
            failures.extend(missing_graphs(&open(output)?));
        }
        failures.iter().for_each(|failure| tell!("heapr: failed: {failure}"));
        Ok(!failures.is_empty())
    }
}

/// Time between two samples of the program's children, after its end.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Children that outlive the program by less are about to end, and are not mentioned.
const TELL_AFTER: Duration = Duration::from_millis(500);

/// Longest wait for a forked process to register, which normally takes a millisecond. It never does
/// if it was killed, or if the fork failed.
const FORK_WAIT: Duration = Duration::from_secs(1);

/// Runs the recorder until the program and its traced children have ended. `has_told_incomplete` is
/// set once the user was told that the file could not be written.
fn record(
    session: &mut Session,
    mut child: Child,
    signals: &mut PassedSignals,
    arguments: &RunArguments,
    mut desk: Option<OrderDesk>,
    has_told_incomplete: &mut bool,
) -> anyhow::Result<ExitStatus> {
    let pid = child.id();
    let mut status = None;
    let mut has_told = arguments.quiet;
    let mut ended = std::time::Instant::now();
    let mut next_look = ended;
    let mut has_told_full = false;
    let mut line = ProgressLine::new(arguments.quiet);
    loop {
        session.step();
        line.show(session);
        if let Some(desk) = &mut desk {
            desk.attend(session);
        }
        if let Some(error) = session.take_write_error() {
            *has_told_incomplete = true;
            let left = match error.is_readable {
                true => "the file can be read up to here",
                false => "nothing of what it did is in the file",
            };
            warn!("{}; the program runs on, {left}", error.message);
        }
        if session.is_full() && !std::mem::replace(&mut has_told_full, true) {
            warn!("the file has the size of --max-file: recording has ended, the program runs on untraced");
        }
        for passed in signals.pending(pid) {
            let signal = match passed {
                Passed::Signal(signal) if arguments.snapshot_signal == Some(signal) => {
                    request_snapshot(session, signal);
                    continue;
                }
                Passed::Signal(signal) | Passed::OfGroup(signal) => signal,
                Passed::TimeUsedUp => {
                    session.end_recording();
                    warn!(
                        "the processor time that heapr may use is used up (ulimit -t): recording has ended, the program runs on untraced"
                    );
                    continue;
                }
            };
            match status {
                // The program has ended, so the signal cannot be passed on.
                Some(status) if is_end(signal) => return Ok(status),
                Some(_) => {}
                None if matches!(passed, Passed::Signal(_)) => signals.pass_on(pid, signal),
                None => {}
            }
        }
        if status.is_none() {
            status = session.child_ended(&mut child).context("cannot wait for the program")?;
            if status.is_some() {
                session.look_for_ends();
                ended = std::time::Instant::now();
                next_look = ended;
            }
        }
        let Some(status) = status else { continue };
        if next_look.elapsed() >= LOOK_EVERY {
            session.look_for_ends();
            next_look = std::time::Instant::now();
        }
        if has_no_process(session, ended) {
            return Ok(status);
        }
        if !has_told && ended.elapsed() >= TELL_AFTER {
            has_told = true;
            tell!(
                "heapr: the program has ended, {} of its children still run: recording until they end (Ctrl-C: stop now)",
                session.live_process_count()
            );
        }
    }
}

/// True if all processes have ended. `ended`: when the program did.
fn has_no_process(session: &mut Session, ended: std::time::Instant) -> bool {
    let is_waiting = session.has_forks_on_their_way() && ended.elapsed() < FORK_WAIT;
    if session.live_process_count() != 0 || is_waiting {
        return false;
    }
    // A forked process may have registered since the last round: one more step decides.
    session.step_now();
    session.look_for_ends();
    session.live_process_count() == 0
}

fn request_snapshot(session: &mut Session, signal: i32) {
    let trigger = SnapshotTrigger::Signal { signal: u64::from(signal.unsigned_abs()) };
    if let Err(error) = session.request_snapshot(SnapshotRequest { trigger, ..SnapshotRequest::default() }) {
        warn!("no snapshot: {error}");
    }
}

/// Whether the signal requests an end.
fn is_end(signal: i32) -> bool {
    matches!(signal, SIGINT | SIGQUIT | SIGTERM | SIGHUP)
}

/// Default path of the trace: `heapr.PROGRAM.PID.heapr` in the working directory, or where
/// [`DefaultPath`] says so.
fn default_output(program: &std::path::Path) -> PathBuf {
    let name = program.file_name().unwrap_or_default().to_string_lossy().replace(['\n', '\t'], "_");
    let default = DefaultPath::of(&format!("heapr.{name}.{}.heapr", std::process::id()));
    default.tell();
    default.path
}

/// Runs the program without recording: whatever heapr lacks, the program runs.
fn run_without_recorder(
    program: &std::path::Path,
    command: Command,
    output: &std::path::Path,
    why: &anyhow::Error,
) -> anyhow::Result<ExitCode> {
    warn!("{} runs untraced: {why:#}", program.display());
    if output.metadata().is_ok_and(|metadata| metadata.len() == 0) {
        let _ = std::fs::remove_file(output);
    }
    run_untraced(command)
}

/// Whether the kernel lacked resources for a second process.
fn is_want(error: &std::io::Error) -> bool {
    use rustix::io::Errno;
    let wants = [Errno::AGAIN, Errno::NOMEM, Errno::MFILE, Errno::NFILE];
    wants.iter().any(|want| error.raw_os_error() == Some(want.raw_os_error()))
}

fn run_untraced(mut command: Command) -> anyhow::Result<ExitCode> {
    heapr_inject::start_as_given(&mut command, &[]);
    let error = command.exec();
    anyhow::bail!("cannot run {}: {error}", command.get_program().to_string_lossy())
}

/// Ends with the program's status. If a signal killed the program, heapr ends by the same signal,
/// so that a shell stops its loop after Ctrl-C.
fn end_as(status: ExitStatus) -> ExitCode {
    if let Some(signal) = status.signal() {
        // The program has left its core, if any.
        let no_core = Rlimit { current: Some(0), maximum: Some(0) };
        let _ = setrlimit(Resource::Core, no_core);
        let _ = signal_hook::low_level::emulate_default_handler(signal);
    }
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(2);
    ExitCode::from(code as u8)
}
