//! Sources that the words of the command line name: files, or sessions that run.

use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use heapr_files::Existing;
use heapr_server::{GraphQuestion, Source};
use heapr_session::{Answer, Request, SessionClient, SessionName, sessions};
use heapr_table::SortRows as _;
use heapr_trace::{Snapshot, Trace};

use crate::incidents::recording_of_incident;
use crate::report::names::NameArguments;
use crate::snapshot::native::{GraphArguments, NativeHeap};
use crate::snapshot::verbs::is_trace;
use crate::trace_file::named_or_newest;

/// Largest number of processes of a trace whose graphs are shown as heaps.
const GRAPHS_MAX: usize = 4;

/// Graph of a trace that was written as a heap.
#[derive(Debug, Clone)]
pub(crate) struct WrittenGraph {
    pub(super) path: PathBuf,
    pub(super) of: GraphQuestion,
}

/// Writes the last native heap graphs of traces into `folder`.
fn graphs(words: &[PathBuf], folder: &Path) -> anyhow::Result<Vec<WrittenGraph>> {
    let mut found = Vec::new();
    for (number, word) in
        words.iter().enumerate().filter(|(_, word)| is_trace(word) && heapr_import::tool_of(word).is_none())
    {
        let trace = Trace::open(word)?;
        let has_graph = |snapshot: &&Snapshot| !trace.graph_processes(snapshot).is_empty();
        let Some(snapshot) = trace.snapshots().iter().rev().find(has_graph) else { continue };
        let processes = trace.graph_processes(snapshot);
        for process in processes.iter().take(GRAPHS_MAX) {
            let known = trace.processes().get(process.0 as usize);
            let pid = known.map(|known| known.pid).filter(|_| processes.len() > 1);
            let stem = word.file_stem().unwrap_or_default().to_string_lossy();
            let path = folder.join(format!("{stem}.{number}.{}.heapsnapshot", process.0));
            let asked = GraphArguments {
                snapshot: Some(snapshot.number.to_string()),
                pid,
                names: NameArguments::default(),
            };
            let mut out = BufWriter::with_capacity(1 << 20, heapr_files::make(&path, Existing::Kept)?);
            NativeHeap::of(word, &asked)?.write(&mut out)?;
            out.flush()?;
            let trace = std::path::absolute(word)?;
            let of = GraphQuestion { trace, snapshot: snapshot.number, pid };
            found.push(WrittenGraph { path, of });
        }
    }
    Ok(found)
}

/// Returns the sources in the order of the words, then the graphs of traces, written into `folder`
/// and listed beside. Without words it is the session that runs, or the newest trace here. Errors
/// are reported before a page opens.
pub(crate) fn sources(words: &[PathBuf], folder: &Path) -> anyhow::Result<(Vec<Source>, Vec<WrittenGraph>)> {
    if words.is_empty() {
        let running = sessions();
        return match running.as_slice() {
            [only] => Ok((vec![session(&only.name)?], Vec::new())),
            [] => {
                let newest = named_or_newest(None, "view").context("no session is running either")?;
                sources(&[newest], folder)
            }
            several => {
                let names: Vec<&str> = several.iter().map(|entry| entry.name.as_str()).collect();
                bail!("name a file or a session; running: {}", names.join(", "))
            }
        };
    }
    let mut sources = words.iter().map(|word| source(word)).collect::<anyhow::Result<Vec<_>>>()?;
    sort_snapshots(&mut sources);
    let graphs = graphs(words, folder)?;
    sources.extend(graphs.iter().map(|graph| Source::File(graph.path.clone())));
    Ok((sources, graphs))
}

/// Sorts V8 snapshots by time: in any other order, growth would be reported reversed.
fn sort_snapshots(sources: &mut [Source]) {
    let taken = |source: &Source| match source {
        Source::File(path) if !is_trace(path) => {
            path.metadata().and_then(|metadata| metadata.modified()).ok()
        }
        _ => None,
    };
    if sources.len() > 1 && sources.iter().all(|source| taken(source).is_some()) {
        let is_sorted = sources.is_sorted_by_key(taken);
        sources.sort_rows_by_key(taken);
        if !is_sorted {
            tell!("heapr: the snapshots are shown in the order in which their files were written");
        }
    }
}

fn source(word: &Path) -> anyhow::Result<Source> {
    if let Some(recording) = recording_of_incident(word)? {
        return Ok(Source::File(recording));
    }
    match heapr_files::regular(word) {
        Ok(_) => Ok(written_by_session(word).unwrap_or_else(|| Source::File(word.to_owned()))),
        Err(error)
            if matches!(
                error.kind(),
                std::io::ErrorKind::IsADirectory | std::io::ErrorKind::InvalidInput
            ) =>
        {
            bail!("{} is no file: {error}", word.display())
        }
        Err(error) => {
            // No file of this name exists, so the word may name a session.
            let name = word.to_str().filter(|name| {
                error.kind() == std::io::ErrorKind::NotFound && SessionName::new(name).is_ok()
            });
            match name {
                Some(name) if sessions().iter().any(|entry| entry.name == name) => session(name),
                Some(_) => Err(error)
                    .with_context(|| format!("{} is no file, and no session has this name", word.display())),
                None => Err(error).with_context(|| format!("cannot read {}", word.display())),
            }
        }
    }
}

/// Returns a session by its name as a source.
fn session(name: &str) -> anyhow::Result<Source> {
    let name = SessionName::new(name)?;
    match SessionClient::find(&name)?.ask(Request::Status)? {
        Answer::Status(status) => Ok(Source::Session { name, path: PathBuf::from(status.output) }),
        _ => bail!("session {name} gives an answer that makes no sense"),
    }
}

/// Returns the session that is writing a file, if any: it is shown as it grows.
fn written_by_session(path: &Path) -> Option<Source> {
    let real = path.canonicalize().ok()?;
    let all = sessions().into_iter().filter_map(|entry| session(&entry.name).ok());
    let mut of_file = all.filter(|source| {
        matches!(source, Source::Session { path, .. } if path.canonicalize().is_ok_and(|path| path == real))
    });
    of_file.next()
}
