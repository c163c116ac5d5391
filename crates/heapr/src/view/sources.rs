//! What the words of the command line name: files, or sessions that run.

use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use heapr_files::Existing;
use heapr_server::Source;
use heapr_session::{Answer, Request, SessionClient, SessionName, sessions};
use heapr_trace::Trace;

use crate::snapshot::native::{GraphArguments, NativeHeap};
use crate::snapshot::verbs::is_trace;

/// The graphs of native heaps in traces, as the page shows heaps: written into `folder`.
fn graphs(words: &[PathBuf], folder: &Path) -> anyhow::Result<Vec<Source>> {
    let mut found = Vec::new();
    for (number, word) in
        words.iter().enumerate().filter(|(_, word)| is_trace(word) && heapr_import::tool_of(word).is_none())
    {
        let trace = Trace::open(word)?;
        if !trace.snapshots().iter().any(|snapshot| !trace.graph_processes(snapshot).is_empty()) {
            continue;
        }
        let path = folder.join(graph_name(word, number));
        let mut out = BufWriter::with_capacity(1 << 20, heapr_files::make(&path, Existing::Kept)?);
        NativeHeap::of(word, &GraphArguments::default())?.write(&mut out)?;
        out.flush()?;
        found.push(Source::File(path));
    }
    Ok(found)
}

/// What the graph of a trace is called, by the trace's place among the words.
fn graph_name(word: &Path, number: usize) -> String {
    format!("{}.{number}.heapsnapshot", word.file_stem().unwrap_or_default().to_string_lossy())
}

/// The trace among the words that a graph in `folder` is of.
pub(super) fn trace_of_graph(words: &[PathBuf], folder: &Path, graph: &Path) -> Option<PathBuf> {
    let mut numbered = words.iter().enumerate();
    let found = numbered.find(|&(number, word)| folder.join(graph_name(word, number)) == graph);
    found.map(|(_, word)| word.clone())
}

/// The sources, in the order of the words; after them the graphs of traces, written into `folder`;
/// without any the session that runs. What is wrong from the start is said at once, and not on a
/// page.
pub(crate) fn sources(words: &[PathBuf], folder: &Path) -> anyhow::Result<Vec<Source>> {
    if words.is_empty() {
        let running = sessions();
        return match running.as_slice() {
            [only] => Ok(vec![session(&only.name)?]),
            [] => bail!("name a file; no session is running either"),
            several => {
                let names: Vec<&str> = several.iter().map(|entry| entry.name.as_str()).collect();
                bail!("name a file or a session; running: {}", names.join(", "))
            }
        };
    }
    let mut sources = words.iter().map(|word| source(word)).collect::<anyhow::Result<Vec<_>>>()?;
    sources.extend(graphs(words, folder)?);
    sort_snapshots(&mut sources);
    Ok(sources)
}

/// Snapshots of V8 stand in order of time, whatever order they are given in: what is said of growth
/// would be turned round.
fn sort_snapshots(sources: &mut [Source]) {
    let taken = |source: &Source| match source {
        Source::File(path) if !is_trace(path) => {
            path.metadata().and_then(|metadata| metadata.modified()).ok()
        }
        _ => None,
    };
    if sources.len() > 1 && sources.iter().all(|source| taken(source).is_some()) {
        let is_sorted = sources.is_sorted_by_key(taken);
        sources.sort_by_key(taken);
        if !is_sorted {
            tell!("heapr: the snapshots are shown in the order in which their files were written");
        }
    }
}

fn source(word: &Path) -> anyhow::Result<Source> {
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
            // A name that is a session's, where there is no file of that name.
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

/// A session by its name.
fn session(name: &str) -> anyhow::Result<Source> {
    let name = SessionName::new(name)?;
    match SessionClient::find(&name)?.ask(Request::Status)? {
        Answer::Status(status) => Ok(Source::Session { name, path: PathBuf::from(status.output) }),
        _ => bail!("session {name} gives an answer that makes no sense"),
    }
}

/// The session that writes a file, if one does: then it is shown as it grows.
fn written_by_session(path: &Path) -> Option<Source> {
    let real = path.canonicalize().ok()?;
    let all = sessions().into_iter().filter_map(|entry| session(&entry.name).ok());
    let mut of_file = all.filter(|source| {
        matches!(source, Source::Session { path, .. } if path.canonicalize().is_ok_and(|path| path == real))
    });
    of_file.next()
}
