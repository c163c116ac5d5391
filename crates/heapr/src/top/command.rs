//! Run of `heapr top`.

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use heapr_server::{Files, Limits, Source};

use super::arguments::TopArguments;
use super::draw::Look;
use super::reader::Reader;
use super::state::State;
use super::target::Target;
use super::{filter_line, plain_screens, screen};
use crate::view::CommandLineHost;

/// Shortest interval between two readings.
const INTERVAL_MIN: Duration = Duration::from_millis(100);

/// Runs the command.
pub(crate) fn run(arguments: TopArguments) -> anyhow::Result<ExitCode> {
    anyhow::ensure!(
        arguments.interval >= INTERVAL_MIN,
        "--interval takes at least {} s",
        INTERVAL_MIN.as_secs_f64()
    );
    anyhow::ensure!(
        arguments.filters.suppress.is_empty() && arguments.filters.cull_lists.is_empty(),
        "{}",
        filter_line::NO_LISTS
    );
    let stdout = std::io::stdout();
    let is_on_screen = !arguments.once
        && stdout.is_terminal()
        && std::io::stdin().is_terminal()
        && std::env::var_os("TERM").is_some_and(|term| !term.is_empty() && term != "dumb");
    let mut target = Target::of(&arguments)?;
    let outcome = show(&arguments, &mut target, is_on_screen);
    let ended = target.end();
    if let Ok(Some(text)) = &ended {
        tell!("heapr: {text}");
    }
    outcome?;
    ended.map(|_| ExitCode::SUCCESS)
}

fn show(arguments: &TopArguments, target: &mut Target, is_on_screen: bool) -> anyhow::Result<()> {
    let host = Arc::new(CommandLineHost {
        names: arguments.names.clone(),
        own: arguments.own.clone(),
        shown: arguments.filters.lang_frames.unwrap_or_default(),
        folder: PathBuf::new(),
        is_static: false,
        graphs: Vec::new(),
    });
    let source = Source::Session { name: target.session().clone(), path: target.path().to_owned() };
    let files = Files::open_sources(&[source], host, Limits::default());
    let mut state = State::new(arguments.filters.clone(), target.title());
    state.message = target.remark().filter(|remark| !remark.is_empty());
    let session = (target.session().clone(), target.recorder_pid());
    let reader = Reader::start(files, session, arguments.interval, state.query());
    if is_on_screen {
        return screen::run(state, &reader, target);
    }
    plain_screens::run(state, &reader, Look::plain(), arguments.once)
}
