//! `heapr push`: arguments, and the loop that follows a session.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use heapr_export::Profile;
use heapr_filters::quantity::{parse_bytes, parse_duration_ns};
use heapr_query::Metric;
use heapr_session::{Answer, Request, SessionClient, SessionName, Update, closed_files};
use heapr_table::quantity::count;
use heapr_trace::Trace;

use super::engines::ENGINES;
use super::sender::Sender;
use super::snapshot::{METRICS, SinceLast, program};
use super::spool::Spool;
use crate::export::labels::{Labels, host_name};
use crate::report::names::NameArguments;
use crate::trace_file::open;
use crate::transfer::Url;

/// Arguments of `heapr push`.
#[derive(Debug, clap::Args)]
pub(crate) struct PushArguments {
    /// A recording; also a file of another tool
    #[arg(value_name = "FILE", required_unless_present = "session", conflicts_with = "session")]
    file: Option<PathBuf>,
    /// A session that runs: it is sent again and again, until it ends
    #[arg(long, value_name = "NAME")]
    session: Option<String>,
    /// Send to Pyroscope
    #[arg(long, value_name = "URL")]
    pyroscope: Option<String>,
    /// Send to Parca
    #[arg(long, value_name = "URL")]
    parca: Option<String>,
    /// Send to a collector of OpenTelemetry, by OTLP over HTTP
    #[arg(long, value_name = "URL")]
    otlp: Option<String>,
    /// Time between two profiles of a session
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = parse_duration_ns)]
    every: u64,
    /// A label; may be given several times
    #[arg(long, value_name = "KEY=VALUE")]
    label: Vec<String>,
    /// Name of the service [default: the program's]
    #[arg(long, value_name = "NAME")]
    service: Option<String>,
    /// A header of each request, such as X-Scope-OrgID: 1; may be given several times. @FILE: those
    /// in a file, a line each, where other users do not see them
    #[arg(long, value_name = "NAME: VALUE|@FILE")]
    header: Vec<String>,
    /// Certificates to trust for https, in place of the machine's own (https is spoken by the
    /// program curl)
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// Number of attempts to send a profile before it is left in the spool
    #[arg(long, value_name = "N", default_value_t = 5)]
    tries: u32,
    /// Folder for what is not taken [default of a session: heapr/push below $XDG_STATE_HOME]
    #[arg(long, value_name = "DIR")]
    spool: Option<PathBuf>,
    /// Most that waits there; the oldest is dropped, and counted
    #[arg(long, value_name = "BYTES", default_value = "64M", value_parser = parse_bytes)]
    spool_size: u64,
    #[command(flatten)]
    names: NameArguments,
}

/// Runs the command.
pub(crate) fn run(arguments: PushArguments) -> anyhow::Result<ExitCode> {
    let mut sender = sender(&arguments)?;
    let labels = Labels::parse(&arguments.label)?;
    match (&arguments.file, &arguments.session) {
        (Some(file), _) => {
            let is_taken = Push::new(&arguments, &labels, &mut sender).file(file)?;
            if !is_taken {
                bail!("{}: not all of it is with its engine", file.display());
            }
        }
        (None, Some(name)) => follow(name, &arguments, &labels, &mut sender)?,
        (None, None) => bail!("name a file, or a session (--session NAME)"),
    }
    let lost = sender.lost_count();
    if lost > 0 {
        bail!("{} profiles were sent, {} were lost", count(sender.sent_count), count(lost));
    }
    Ok(ExitCode::SUCCESS)
}

fn sender(arguments: &PushArguments) -> anyhow::Result<Sender> {
    let given = [&arguments.pyroscope, &arguments.parca, &arguments.otlp];
    let mut targets = Vec::new();
    for (engine, url) in ENGINES.iter().zip(given) {
        if let Some(url) = url {
            targets.push((engine.name, Url::parse(url)?.join(engine.path)));
        }
    }
    let options: Vec<String> = ENGINES.iter().map(|engine| format!("--{} URL", engine.name)).collect();
    ensure!(!targets.is_empty(), "name where to: {}", options.join(", "));
    let headers = headers(&arguments.header)?;
    let folder = match (&arguments.spool, &arguments.session) {
        (Some(folder), _) => Some(folder.clone()),
        (None, Some(name)) => Some(state_folder()?.join(SessionName::new(name)?.as_str())),
        (None, None) => None,
    };
    let spool = folder.map(|folder| Spool::open(&folder, arguments.spool_size)).transpose()?;
    Ok(Sender::new(targets, headers, arguments.ca.clone(), arguments.tries, spool))
}

fn headers(given: &[String]) -> anyhow::Result<Vec<(String, String)>> {
    let mut lines = Vec::new();
    for text in given {
        match text.strip_prefix('@') {
            Some(file) => {
                let text = heapr_files::read_text(Path::new(file), heapr_files::LIST_BYTES_MAX)
                    .with_context(|| format!("cannot read {file}"))?;
                lines.extend(text.lines().filter(|line| !line.trim().is_empty()).map(str::to_owned));
            }
            None => lines.push(text.clone()),
        }
    }
    let header = |text: &String| {
        // The header's value may be a secret, so the error leaves it out.
        let (name, value) = text.split_once(':').context("--header: it is NAME: VALUE")?;
        ensure!(!text.contains(['\r', '\n']), "--header: it has more than one line");
        Ok((name.trim().to_owned(), value.trim().to_owned()))
    };
    lines.iter().map(header).collect()
}

fn state_folder() -> anyhow::Result<PathBuf> {
    let state = std::env::var_os("XDG_STATE_HOME").filter(|folder| !folder.is_empty()).map(PathBuf::from);
    let home = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".local/state"));
    let state = state.or_else(home).context("there is no home for the spool: name one (--spool DIR)")?;
    Ok(state.join("heapr/push"))
}

/// Sends a session's state at every interval, and once more when the session has ended.
fn follow(name: &str, arguments: &PushArguments, labels: &Labels, sender: &mut Sender) -> anyhow::Result<()> {
    let name = SessionName::new(name)?;
    let status = |client: &SessionClient| match client.ask(Request::Status)? {
        Answer::Status(status) => Ok(status),
        _ => bail!("session {name} gives an answer that makes no sense"),
    };
    let output = PathBuf::from(status(&SessionClient::find(&name)?)?.output);
    let mut push = Push::new(arguments, labels, sender);
    let last_closed = || closed_files(&output).last().map_or(0, |(number, _)| *number);
    // Number of the last closed file that was sent, for a session with files in turn.
    let mut sent_number = last_closed();
    loop {
        let runs = SessionClient::find(&name).is_ok_and(|client| {
            // Brings the contents of the recorder's buffers to the file.
            client.ask(Request::Update(Update { flush: true, ..Update::default() })).is_ok()
        });
        // All files closed since the last round, then the current one.
        for (number, closed) in closed_files(&output) {
            if number > sent_number {
                sent_number = number;
                tell(push.file(&closed));
            }
        }
        match open(&output) {
            // A file was closed meanwhile: the next round sends both.
            Ok(_) if last_closed() > sent_number => {}
            Ok(trace) => tell(push.trace(&trace, &output)),
            Err(error) => tell(Err(error)),
        }
        if !runs {
            return Ok(());
        }
        wait(&name, Duration::from_nanos(arguments.every));
    }
}

/// Prints an error as a warning: a file that is being written may be readable a moment later.
fn tell(outcome: anyhow::Result<bool>) {
    if let Err(error) = outcome {
        warn!("{error:#}");
    }
}

/// Waits for the next round, or for the session's end.
fn wait(name: &SessionName, pause: Duration) {
    let end = std::time::Instant::now() + pause;
    while let Some(left) = end.checked_duration_since(std::time::Instant::now()) {
        std::thread::sleep(left.min(Duration::from_secs(1)));
        if SessionClient::find(name).is_err() {
            return;
        }
    }
}

/// State of the rounds: what is sent, and where to.
struct Push<'a> {
    arguments: &'a PushArguments,
    labels: &'a Labels,
    sender: &'a mut Sender,
    since_last: SinceLast,
}

impl<'a> Push<'a> {
    fn new(arguments: &'a PushArguments, labels: &'a Labels, sender: &'a mut Sender) -> Self {
        Self { arguments, labels, sender, since_last: SinceLast::default() }
    }

    /// Sends the contents of a file to all engines; `false` if one of them did not get it.
    fn file(&mut self, file: &Path) -> anyhow::Result<bool> {
        self.trace(&open(file)?, file)
    }

    /// Sends the contents of an open trace to all engines; `false` if one of them did not get it.
    fn trace(&mut self, trace: &Trace, file: &Path) -> anyhow::Result<bool> {
        let moment = self.since_last.take(trace, &self.arguments.names)?;
        let service = self.arguments.service.clone().unwrap_or_else(|| program(trace, file));
        let pid = trace.processes().first().map_or(0, |process| process.pid);
        let mut all = vec![
            ("service.name".to_owned(), service),
            ("host.name".to_owned(), host_name()),
            ("process.pid".to_owned(), pid.to_string()),
        ];
        all.extend(self.labels.0.iter().cloned());
        let title = trace.session().name.clone();
        let mut profile = Profile::new(&moment.samples, Metric::OutstandingBytes, &title).of_trace(trace);
        profile.metrics = METRICS.to_vec();
        profile.start_unix_ns = profile.start_unix_ns.saturating_add(moment.from_ns);
        profile.duration_ns = moment.to_ns - moment.from_ns;
        profile.labels = all;
        let mut is_taken = true;
        for engine in &ENGINES {
            if self.sender.targets.iter().any(|(name, _)| *name == engine.name) {
                let body = engine.body(&profile)?;
                is_taken &= self.sender.send(engine.name, &body);
            }
        }
        Ok(is_taken)
    }
}
