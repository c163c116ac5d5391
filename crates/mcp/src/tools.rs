//! The tools, one row each, with the command line that each runs.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::arguments::{Argument, Given, Kind};
use crate::file_ids::FileIds;
use crate::{Error, Result};

/// Action of a tool.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Action {
    /// Lists processes.
    Processes,
    /// Runs a program and records it.
    Run,
    /// Records a process for a while.
    Attach,
    /// Takes a snapshot of a process.
    Snapshot,
    /// Ranks source lines, and shows them.
    SourceLines,
    /// Runs a command that only reads.
    Ask(fn(&Given, &FileIds) -> Result<Vec<OsString>>),
}

/// A tool.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tool {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) action: Action,
    pub(crate) arguments: &'static [Argument],
}

impl Tool {
    /// True if the tool neither starts programs nor stops processes.
    pub(crate) fn is_read_only(&self) -> bool {
        !matches!(self.action, Action::Run | Action::Attach | Action::Snapshot)
    }
}

const fn required(name: &'static str, kind: Kind, about: &'static str) -> Argument {
    Argument { name, kind, about, is_required: true, was: "" }
}

const fn optional(name: &'static str, kind: Kind, about: &'static str) -> Argument {
    Argument { name, kind, about, is_required: false, was: "" }
}

/// An argument with a former name, which is understood, too.
const fn formerly(was: &'static str, argument: Argument) -> Argument {
    Argument { was, ..argument }
}

const SORT: Argument = optional(
    "sort",
    Kind::SortKey,
    "so live bytes (default), soc live blocks, st bytes in all, stc allocations, src reallocs, peak bytes at the peak, \
     temporary short-lived",
);
const TOP: Argument = optional("top", Kind::Count(200), "most rows (default 5)");
const DEPTH: Argument = optional("depth", Kind::Count(100), "most frames of a stack (default 12)");
const FILE: &str = "a trace or snapshot: an id such as t1 or s2, or a path";

/// All tools.
pub(crate) const TOOLS: &[Tool] = &[
    Tool {
        name: "list_processes",
        about: "Processes of this user with their resident memory, largest first.",
        action: Action::Processes,
        arguments: &[optional("name", Kind::Text, "only those with this in their command line")],
    },
    Tool {
        name: "record",
        about: "Runs a program to its end and records every allocation with its stack. Gives the id of the trace.",
        action: Action::Run,
        arguments: &[
            required("program", Kind::Texts, "the program and its arguments"),
            optional("folder", Kind::Text, "working directory"),
            optional("seconds", Kind::Count(540), "end the program after this time (default 60)"),
        ],
    },
    Tool {
        name: "attach",
        about: "Records a running process for some seconds, then lets it go. Gives the id of the trace.",
        action: Action::Attach,
        arguments: &[
            required("pid", Kind::Count(1 << 32), "the process"),
            optional("seconds", Kind::Count(540), "how long (default 10)"),
            optional("tree", Kind::Flag, "the processes that it has started, too"),
        ],
    },
    Tool {
        name: "snapshot",
        about: "Takes a heap snapshot of a running process: of JavaScript for Node, of the objects of CPython, else of all live native \
                blocks. Take two or three, some time apart, for suspects.",
        action: Action::Snapshot,
        arguments: &[required("pid", Kind::Count(1 << 32), "the process")],
    },
    Tool {
        name: "explain",
        about: "What stands out, in words: of a process what its resident memory is, of a trace or snapshots what grows, peaks or churns.",
        action: Action::Ask(explain),
        arguments: &[
            optional("pid", Kind::Count(1 << 32), "a process that runs; or files"),
            formerly(
                "targets",
                optional("files", Kind::Texts, "traces or snapshots: ids such as t1 or s2, or paths"),
            ),
        ],
    },
    Tool {
        name: "summary",
        about: "What a file holds: a trace's processes, duration and losses, or a snapshot's classes or stacks.",
        action: Action::Ask(summary),
        arguments: &[required("file", Kind::Text, FILE), TOP],
    },
    Tool {
        name: "report",
        about: "Where the memory of a trace is: ranks stacks, functions, lines, modules or threads, after filters.",
        action: Action::Ask(report),
        arguments: &[
            formerly("trace", required("file", Kind::Text, FILE)),
            optional(
                "by",
                Kind::Choice(&["stack", "frame", "line", "image", "thread"]),
                "what is ranked (default stack)",
            ),
            SORT,
            optional("at", Kind::Moment, "what was live then: peak, or a time such as 1.5s"),
            optional(
                "from",
                Kind::Time,
                "begin of a range of time: live is then what was allocated in it and not freed in it",
            ),
            optional("to", Kind::Time, "end of the range"),
            optional("size_from", Kind::Size, "blocks of at least this size, such as 4K"),
            optional("size_to", Kind::Size, "blocks below this size"),
            optional("lifetime_from", Kind::Duration, "blocks that lived at least this long, such as 1ms"),
            optional("lifetime_to", Kind::Duration, "blocks that lived shorter"),
            optional(
                "require_frames",
                Kind::Texts,
                "only stacks with one of these: module!, module!symbol or symbol, * for any",
            ),
            optional("callers_of", Kind::Text, "the tree of callers of this frame, in place of a ranking"),
            optional("thread", Kind::Text, "only of this thread: its id or name"),
            TOP,
            DEPTH,
        ],
    },
    Tool {
        name: "source_lines",
        about: "The source lines that allocate most, with their text where the source is on this machine.",
        action: Action::SourceLines,
        arguments: &[formerly("trace", required("file", Kind::Text, FILE)), SORT, TOP],
    },
    Tool {
        name: "diff",
        about: "What changed between two traces, or between snapshots of one process.",
        action: Action::Ask(diff),
        arguments: &[required("before", Kind::Text, FILE), required("after", Kind::Text, FILE), TOP],
    },
    Tool {
        name: "suspects",
        about: "Ranks what keeps growing over snapshots, the likeliest leak first: its name, where it was made, what holds it.",
        action: Action::Ask(suspects),
        arguments: &[
            formerly(
                "snapshots",
                required(
                    "files",
                    Kind::Texts,
                    "ids or paths in the order of time, at least two of JavaScript or Python",
                ),
            ),
            TOP,
        ],
    },
    Tool {
        name: "retainers",
        about: "What holds an object of a JavaScript or Python snapshot: the shortest ways from the roots.",
        action: Action::Ask(retainers),
        arguments: &[
            formerly("snapshot", required("file", Kind::Text, FILE)),
            required("object", Kind::Text, "an object's number such as @4711, as other answers name it"),
            TOP,
        ],
    },
];

fn words<const N: usize>(words: [&str; N]) -> Vec<OsString> {
    words.iter().map(OsString::from).collect()
}

fn top(given: &Given) -> OsString {
    format!("--top={}", given.count("top").unwrap_or(5)).into()
}

/// Formats `--option=value`, so that a value cannot be mistaken for an option.
fn option(name: &str, value: &str) -> OsString {
    format!("--{name}={value}").into()
}

fn is_trace(path: &std::path::Path) -> bool {
    path.extension().is_some_and(|extension| extension == "heapr")
}

fn explain(given: &Given, ids: &FileIds) -> Result<Vec<OsString>> {
    let mut asked = words(["explain"]);
    asked.extend(given.count("pid").map(|pid| pid.to_string().into()));
    for file in given.texts("files") {
        // The former name took processes, too.
        if file.parse::<u32>().is_ok() {
            asked.push(file.into());
        } else {
            asked.push(ids.path("files", file)?.into());
        }
    }
    if asked.len() == 1 {
        return Err(Error::Argument { name: "files", reason: "it is required, or pid".to_owned() });
    }
    Ok(asked)
}

fn summary(given: &Given, ids: &FileIds) -> Result<Vec<OsString>> {
    let path = ids.path("file", given.required("file")?)?;
    if is_trace(&path) {
        return Ok(vec!["report".into(), path.into(), "--totals".into()]);
    }
    Ok(vec!["snapshot".into(), "summary".into(), path.into(), top(given)])
}

fn report(given: &Given, ids: &FileIds) -> Result<Vec<OsString>> {
    let mut asked = vec!["report".into(), OsString::from(ids.path("file", given.required("file")?)?)];
    let sort = given.text("sort").unwrap_or("so");
    match given.text("callers_of") {
        Some(frame) if frame.starts_with('-') => {
            return Err(Error::Argument { name: "callers_of", reason: "no frame begins with -".to_owned() });
        }
        Some(frame) => asked.extend(words(["--callers", frame, sort])),
        None => asked.extend(words(["--by", given.text("by").unwrap_or("stack"), sort])),
    }
    for (name, from, to, least, most) in [
        ("range", "from", "to", "0", "8760h"),
        ("size", "size_from", "size_to", "0", "18446744073709551615"),
        ("lifetime", "lifetime_from", "lifetime_to", "0", "8760h"),
    ] {
        let (from, to) = (given.text(from), given.text(to));
        if from.is_some() || to.is_some() {
            let values = [from.unwrap_or(least), to.unwrap_or(most)];
            asked.push(format!("--{name}").into());
            asked.extend(values.iter().map(OsString::from));
        }
    }
    asked.extend(given.text("at").map(|at| option("at", at)));
    asked.extend(given.text("thread").map(|thread| option("thread", thread)));
    asked.extend(given.texts("require_frames").into_iter().map(|frame| option("require-frames", frame)));
    asked.extend([top(given), format!("--depth={}", given.count("depth").unwrap_or(12)).into()]);
    Ok(asked)
}

/// Command of the report from which [`crate::source_lines`] makes its answer.
pub(crate) fn lines_report(given: &Given, ids: &FileIds) -> Result<(Vec<OsString>, String, usize)> {
    let sort = given.text("sort").unwrap_or("so").to_owned();
    let mut asked = vec!["report".into(), OsString::from(ids.path("file", given.required("file")?)?)];
    asked.extend(words(["--stacks", &sort, "--format", "json", "--top=1000"]));
    Ok((asked, sort, given.count("top").and_then(|top| usize::try_from(top).ok()).unwrap_or(5)))
}

fn diff(given: &Given, ids: &FileIds) -> Result<Vec<OsString>> {
    let [before, after] = [("before", given.required("before")?), ("after", given.required("after")?)];
    let [before, after]: [PathBuf; 2] = [ids.path(before.0, before.1)?, ids.path(after.0, after.1)?];
    let mut asked = if is_trace(&before) { words(["diff"]) } else { words(["snapshot", "diff"]) };
    asked.extend([before.into(), after.into(), top(given)]);
    Ok(asked)
}

fn suspects(given: &Given, ids: &FileIds) -> Result<Vec<OsString>> {
    let mut asked = words(["snapshot", "suspects"]);
    for file in given.texts("files") {
        asked.push(ids.path("files", file)?.into());
    }
    asked.push(top(given));
    Ok(asked)
}

fn retainers(given: &Given, ids: &FileIds) -> Result<Vec<OsString>> {
    let object = given.required("object")?;
    let number = object.trim_start_matches('@');
    if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Error::Argument { name: "object", reason: "it is a number such as @4711".to_owned() });
    }
    let path = ids.path("file", given.required("file")?)?;
    Ok(vec!["snapshot".into(), "retainers".into(), path.into(), format!("@{number}").into(), top(given)])
}
