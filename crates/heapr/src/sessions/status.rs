//! `heapr status`: shows sessions that run.

use std::io::{IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use heapr_session::{
    Answer, ClientError, FailureKind, Request, SessionClient, SessionName, SessionStatus, sessions,
};
use heapr_table::SortRows as _;
use serde_json::{Value, json};

use super::status_text;
use crate::plain_text::PlainText;
use heapr_filters::quantity::parse_seconds;

/// Arguments of `heapr status`.
#[derive(Debug, clap::Args)]
pub(crate) struct StatusArguments {
    /// The session; without it all are shown
    name: Option<String>,
    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Show it again every N seconds until the session ends
    #[arg(short, long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "1", value_parser = parse_seconds)]
    watch: Option<Duration>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// For people
    Text,
    /// For programs: schema heapr.status/1
    Json,
}

/// Session that has answered.
struct Answered {
    socket: PathBuf,
    status: SessionStatus,
}

/// Escape sequences that move the cursor to the upper left corner and clear the screen.
const CLEAR: &str = "\u{1b}[H\u{1b}[2J";

pub(super) fn run(arguments: &StatusArguments) -> anyhow::Result<ExitCode> {
    let interval = arguments.watch;
    anyhow::ensure!(
        interval.is_none_or(|interval| interval >= Duration::from_millis(100)),
        "--watch takes at least 0.1 seconds"
    );
    let mut has_shown = false;
    loop {
        let all = match statuses(arguments.name.as_deref()) {
            Ok(all) => all,
            // A session may end while it is watched.
            Err(_) if has_shown => return Ok(ExitCode::SUCCESS),
            Err(error) => return Err(error),
        };
        let text = match arguments.format {
            Format::Json => format!("{}\n", json_of(&all)),
            Format::Text if arguments.name.is_some() => {
                all.iter().map(|session| status_text::whole(&session.status)).collect::<Vec<_>>().concat()
            }
            Format::Text => status_text::list(&all.iter().map(|session| &session.status).collect::<Vec<_>>()),
        };
        let mut out = std::io::stdout().lock();
        let is_screen = interval.is_some() && arguments.format == Format::Text && out.is_terminal();
        let clear = if is_screen { CLEAR } else { "" };
        let printed = match arguments.format {
            Format::Json => out.write_all(text.as_bytes()),
            Format::Text => {
                out.write_all(clear.as_bytes()).and_then(|()| PlainText(&mut out).write_all(text.as_bytes()))
            }
        };
        printed.and_then(|()| out.flush()).context("cannot print")?;
        drop(out);
        let Some(interval) = interval else { return Ok(ExitCode::SUCCESS) };
        if all.is_empty() {
            return Ok(ExitCode::SUCCESS);
        }
        has_shown = true;
        std::thread::sleep(interval);
    }
}

fn statuses(name: Option<&str>) -> anyhow::Result<Vec<Answered>> {
    if let Some(name) = name {
        let found = SessionClient::find(&SessionName::new(name)?);
        let status = found.and_then(|client| ask(&client)).map_err(|error| match error.kind() {
            FailureKind::NoSuchSession => with_traces(error, name),
            _ => error.into(),
        });
        return Ok(vec![status?]);
    }
    let mut all = Vec::new();
    let mut silent = Vec::new();
    for entry in sessions() {
        let client = SessionName::new(&entry.name).ok().and_then(|name| SessionClient::find(&name).ok());
        // A session that ends meanwhile is left out; one that does not answer must not hide the
        // others.
        let Some(client) = client else { continue };
        match ask(&client) {
            Ok(status) => all.push(status),
            Err(error) if error.kind() == FailureKind::NoSuchSession => {}
            Err(error) => silent.push(error),
        }
    }
    // "No session is running" would be wrong if a session does not answer.
    let reason = if all.is_empty() { silent.pop() } else { None };
    for error in silent {
        tell!("heapr: {error}");
    }
    reason.map_or(Ok(all), |error| Err(error.into()))
}

/// Adds to an error the traces of sessions of that name in the working directory.
fn with_traces(error: ClientError, name: &str) -> anyhow::Error {
    let is_its = |file: &String| {
        let number =
            file.strip_prefix(&format!("heapr.{name}.")).and_then(|rest| rest.strip_suffix(".heapr"));
        number.is_some_and(|number| number.parse::<u32>().is_ok())
    };
    let entries = std::fs::read_dir(".").into_iter().flatten().flatten();
    let mut files: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    files.retain(is_its);
    files.sort_rows();
    match files.as_slice() {
        [] => error.into(),
        files => anyhow::anyhow!("{error}; ended ones have left {}", files.join(", ")),
    }
}

fn ask(client: &SessionClient) -> Result<Answered, ClientError> {
    match client.ask(Request::Status)? {
        Answer::Status(status) => Ok(Answered { socket: client.socket(), status: *status }),
        _ => Err(ClientError::NoAnswer {
            name: client.name().to_string(),
            reason: "its answer makes no sense".to_owned(),
        }),
    }
}

fn json_of(all: &[Answered]) -> Value {
    let entry = |session: &Answered| {
        let mut entry = heapr_server::status_json(&session.status);
        entry["socket"] = json!(session.socket.to_string_lossy());
        entry
    };
    let sessions: Vec<Value> = all.iter().map(entry).collect();
    json!({ "schema": "heapr.status/1", "sessions": sessions })
}
