//! `heapr serve`: serves the heap of a session or a recording to `go tool pprof` and scrapers.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use heapr_export::{Format, Profile};
use heapr_incident::{Store, metrics};
use heapr_query::Metric;
use heapr_server::{MakeMetrics, ProfileServer};
use heapr_session::{Answer, Request, SessionClient, SessionName, Update, sessions};

use crate::incidents::default_folder;
use crate::push::{METRICS, SinceLast};
use crate::report::names::NameArguments;
use crate::trace_file::open;
use crate::view::until_signal;

/// Arguments of `heapr serve`.
#[derive(Debug, clap::Args)]
pub(crate) struct ServeArguments {
    /// The name of a session that runs, or a recording
    #[arg(value_name = "NAME|FILE")]
    subject: PathBuf,
    /// Address to listen on; anyone who reaches it reads what the program does
    #[arg(long, value_name = "IP:PORT", default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// Folder of incidents that /metrics counts, in the form of Prometheus [default: that of `heapr
    /// watch`, if there is one]
    #[arg(long, value_name = "DIRECTORY")]
    incidents: Option<PathBuf>,
    #[command(flatten)]
    names: NameArguments,
}

/// Runs the command.
pub(crate) fn run(arguments: ServeArguments) -> anyhow::Result<ExitCode> {
    // The first profile is made at once, so that errors show at the start.
    profile(&arguments.subject, "heap", &arguments.names)?;
    let address = arguments.listen;
    let metrics = metrics_of(arguments.incidents.clone())?;
    let make = move |name: &str| {
        profile(&arguments.subject, name, &arguments.names).map_err(|error| format!("{error:#}"))
    };
    let mut server = ProfileServer::bind(address, Arc::new(make))?;
    if let Some(metrics) = metrics {
        server = server.with_metrics(metrics);
    }
    say!("{}", server.url());
    tell!("heapr: go tool pprof {}", server.url());
    tell!("heapr: Ctrl-C ends it");
    server.run(until_signal()?)?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the maker of `/metrics`, if a folder of incidents is named, or the default one exists.
fn metrics_of(named: Option<PathBuf>) -> anyhow::Result<Option<Arc<MakeMetrics>>> {
    let folder = match named {
        Some(folder) => {
            Store::open(&folder)?;
            folder
        }
        None => match default_folder() {
            Ok(folder) if folder.exists() => folder,
            _ => return Ok(None),
        },
    };
    Ok(Some(Arc::new(move || {
        let store = Store::open(&folder).map_err(|error| error.to_string())?;
        let all = store.all();
        let total = all.last().map_or(0, |(number, _)| *number);
        Ok(metrics(all.iter().filter_map(|(_, read)| read.as_ref().ok()), total))
    })))
}

/// Returns the profile at this moment; a session flushes its file first.
fn profile(subject: &Path, name: &str, names: &NameArguments) -> anyhow::Result<Vec<u8>> {
    let trace = open(&file_of(subject)?)?;
    let moment = SinceLast::default().take(&trace, names)?;
    let value = if name == "allocs" { Metric::TotalBytes } else { Metric::OutstandingBytes };
    let mut profile = Profile::new(&moment.samples, value, name).of_trace(&trace);
    profile.metrics = METRICS.to_vec();
    let mut bytes = Vec::new();
    if let Some(format) = Format::of_name("pprof") {
        (format.write)(&mut bytes, &profile)?;
    }
    Ok(bytes)
}

fn file_of(subject: &Path) -> anyhow::Result<PathBuf> {
    let name = subject.to_string_lossy();
    if subject.exists() {
        return Ok(subject.to_owned());
    }
    anyhow::ensure!(
        sessions().iter().any(|entry| entry.name == name),
        "{name} is no file, and no session that runs: `heapr status` lists them"
    );
    let name = SessionName::new(&name)?;
    let client = SessionClient::find(&name)?;
    client.ask(Request::Update(Update { flush: true, ..Update::default() }))?;
    match SessionClient::find(&name)?.ask(Request::Status)? {
        Answer::Status(status) => Ok(PathBuf::from(status.output)),
        _ => anyhow::bail!("session {name} gives an answer that makes no sense"),
    }
}
