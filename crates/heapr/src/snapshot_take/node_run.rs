//! `heapr node -- node app.js`: starts Node so that it writes a snapshot on a signal, and one
//! before its heap is full.
//!
//! All options go through `NODE_OPTIONS`, so that `npm start` and other programs that start Node
//! work, too.

use std::ffi::{OsStr, OsString};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, bail};
use heapr_inspector::SnapshotSignal;

/// Arguments of `heapr node -- PROGRAM`.
#[derive(Debug, clap::Args)]
pub(crate) struct RunArguments {
    /// Write a snapshot on this signal: SIGUSR2 or SIGUSR1
    #[arg(long, value_name = "SIGNAL", default_value = "SIGUSR2", value_parser = parse_signal)]
    signal: SnapshotSignal,
    /// Write up to so many snapshots when the heap is nearly full (Node 14.18 and later; 0: none)
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    near_heap_limit: u32,
    /// Directory for snapshots near the limit [default: heapr/snapshots in $XDG_STATE_HOME
    /// (~/.local/state)]
    #[arg(short, long, value_name = "DIRECTORY")]
    output: Option<PathBuf>,
    /// Say nothing but errors
    #[arg(short, long)]
    quiet: bool,
    /// The program: node, npm, a script …
    #[arg(value_name = "PROGRAM", last = true, required = true)]
    program: Vec<OsString>,
}

/// Parses the name of a signal.
pub(crate) fn parse_signal(name: &str) -> Result<SnapshotSignal, String> {
    SnapshotSignal::parse(name).ok_or_else(|| "Node takes SIGUSR1 or SIGUSR2".to_owned())
}

/// Replaces this process by the program.
pub(crate) fn run(arguments: RunArguments) -> anyhow::Result<ExitCode> {
    let Some((name, rest)) = arguments.program.split_first() else { bail!("name a program after --") };
    let directory = match &arguments.output {
        Some(directory) => directory.clone(),
        None => default_directory().context("there is no home directory: name a directory with -o")?,
    };
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&directory)
        .with_context(|| format!("cannot make {}", directory.display()))?;
    let directory =
        directory.canonicalize().with_context(|| format!("cannot find {}", directory.display()))?;
    let metadata = directory.metadata().with_context(|| format!("cannot look at {}", directory.display()))?;
    let is_sticky = metadata.mode() & 0o1000 != 0;
    if metadata.mode() & 0o022 != 0 && !is_sticky {
        bail!(
            "{} can be written to by others, who could lay links there: chmod go-w it",
            directory.display()
        );
    }
    let before = std::env::var_os("NODE_OPTIONS").unwrap_or_default();
    let options = node_options(&before, arguments.signal, arguments.near_heap_limit, &directory)?;
    if !arguments.quiet {
        let signal = arguments.signal.name();
        tell!(
            "heapr: heapr snapshot take --signal {signal} {} takes a snapshot; one that is written near the heap's limit \
             is in {}",
            std::process::id(),
            directory.display()
        );
    }
    let error = Command::new(name).args(rest).env("NODE_OPTIONS", options).exec();
    tell!("heapr: cannot run {}: {error}", name.to_string_lossy());
    let is_missing = error.kind() == std::io::ErrorKind::NotFound;
    Ok(ExitCode::from(if is_missing { 127 } else { 126 }))
}

fn default_directory() -> Option<PathBuf> {
    Some(state_directory()?.join("snapshots"))
}

/// Returns the folder of data that outlives a command: `heapr` in `$XDG_STATE_HOME`, or in
/// `~/.local/state`.
pub(crate) fn state_directory() -> Option<PathBuf> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = absolute("XDG_STATE_HOME").or_else(|| Some(absolute("HOME")?.join(".local/state")))?;
    Some(state.join("heapr"))
}

/// Builds `NODE_OPTIONS`. Existing options go last, so that they override.
fn node_options(
    before: &OsStr,
    signal: SnapshotSignal,
    near_heap_limit: u32,
    directory: &Path,
) -> anyhow::Result<OsString> {
    let directory = directory.to_str().context("the directory's name is no UTF-8, which NODE_OPTIONS is")?;
    let mut options = OsString::from(format!("--heapsnapshot-signal={}", signal.name()));
    if near_heap_limit > 0 {
        options.push(format!(" --heapsnapshot-near-heap-limit={near_heap_limit}"));
    }
    options.push(format!(" {}", quoted(&format!("--diagnostic-dir={directory}"))));
    if !before.is_empty() {
        options.push(" ");
        options.push(before);
    }
    Ok(options)
}

/// Quotes an option as Node parses `NODE_OPTIONS`: quotes protect blanks, and backslashes count
/// only inside of quotes.
fn quoted(option: &str) -> String {
    if !option.contains([' ', '"']) {
        return option.to_owned();
    }
    format!("\"{}\"", option.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_that_are_there_already_come_last() {
        let options =
            node_options(OsStr::new("--max-old-space-size=64"), SnapshotSignal::Usr2, 2, Path::new("/a b"));
        assert_eq!(
            options.unwrap(),
            "--heapsnapshot-signal=SIGUSR2 --heapsnapshot-near-heap-limit=2 \"--diagnostic-dir=/a b\" \
             --max-old-space-size=64"
        );
        let options = node_options(OsStr::new(""), SnapshotSignal::Usr1, 0, Path::new("/a")).unwrap();
        assert_eq!(options, "--heapsnapshot-signal=SIGUSR1 --diagnostic-dir=/a");
    }
}
