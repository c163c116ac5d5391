//! Facts about commands that are no options: exit status, files, variables of the environment.

/// Fact with its name: a status, a path, a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fact {
    pub(crate) name: &'static str,
    pub(crate) meaning: &'static str,
    /// Commands that it is about, by the beginning of their words; empty: all.
    commands: &'static [&'static str],
}

const fn fact(name: &'static str, meaning: &'static str, commands: &'static [&'static str]) -> Fact {
    Fact { name, meaning, commands }
}

/// Commands that read traces and name code.
const READERS: &[&str] = &[
    "report",
    "explain",
    "diff",
    "export",
    "push",
    "serve",
    "view",
    "symbolize",
    "snapshot",
    "top",
    "run",
    "stop",
    "mcp",
];
/// Commands that ask sessions or start them.
const OF_SESSIONS: &[&str] = &[
    "run",
    "start",
    "status",
    "update",
    "top",
    "mark",
    "stop",
    "cancel",
    "push",
    "serve",
    "view",
    "explain",
    "snapshot take",
    "snapshot every",
    "watch",
    "mcp",
    "config shell",
];

const STATUSES: &[Fact] = &[
    fact("0", "done", &[]),
    fact("1", "a threshold of --fail-on is exceeded, and the program succeeded", &["run"]),
    fact("1", "what --fail-on names is found, or grows by more", &["explain", "diff"]),
    fact("1", "there is an incident of the kind that --fail-on names", &["incidents"]),
    fact("1", "with --until-end: a watched process died", &["watch"]),
    fact(
        "1",
        "a limit of --fail-if-… is exceeded",
        &["snapshot summary", "snapshot diff", "snapshot suspects", "snapshot leaks"],
    ),
    fact("1", "the file is damaged", &["snapshot check"]),
    fact("1", "something does not work here", &["doctor"]),
    fact("1", "not all of it could be done", &["config enable", "config disable"]),
    fact("1", "the flag that is asked for is not set", &["config query"]),
    fact("2", "heapr could not do it, and says why", &[]),
    fact("126", "the program cannot be executed", &["run", "node"]),
    fact("127", "there is no such program", &["run", "node"]),
    fact(
        "else",
        "the program's own status; the signal that ended the program ends heapr, too",
        &["run", "node"],
    ),
];

const FILES: &[Fact] = &[
    fact("heapr.PROGRAM.PID.heapr", "trace of heapr run, in the working directory", &["run"]),
    fact("heapr.NAME.PID.heapr", "trace of heapr start, in the working directory", &["start"]),
    fact(
        "$XDG_CACHE_HOME/heapr/traces",
        "traces where the working directory cannot be written",
        &["run", "start"],
    ),
    fact("$XDG_RUNTIME_DIR/heapr", "sockets of sessions", OF_SESSIONS),
    fact(
        "$XDG_CACHE_HOME/heapr",
        "symbols, indexes of snapshots, the agent; may be removed, but for traces (~/.cache)",
        READERS,
    ),
    fact(
        "$XDG_CONFIG_HOME/heapr/library-frames",
        "frames that are a library's (~/.config)",
        &["report", "explain", "top", "view"],
    ),
    fact(
        "$XDG_CONFIG_HOME/heapr/flags.json",
        "this user's flagged programs (~/.config)",
        &["config", "start"],
    ),
    fact("/etc/heapr/flags.json", "the machine's flagged programs", &["config", "start"]),
    fact("$XDG_STATE_HOME/heapr/push", "what a receiver has not taken yet (~/.local/state)", &["push"]),
    fact(
        "$XDG_STATE_HOME/heapr/incidents",
        "incidents with their recordings (~/.local/state)",
        &["watch", "incidents"],
    ),
    fact(
        "$XDG_STATE_HOME/heapr/snapshots",
        "snapshots near the limit of the heap (~/.local/state)",
        &["node"],
    ),
];

const ENVIRONMENT: &[Fact] = &[
    fact("NO_COLOR", "no bold or faint text, and no colours", &[]),
    fact("CLICOLOR_FORCE", "bold and faint text where the output is no terminal, too", &[]),
    fact("TERM", "a terminal called dumb gets plain text", &[]),
    fact("COLUMNS", "width of tables, where the output is no terminal", READERS),
    fact(
        "XDG_RUNTIME_DIR, HEAPR_RUNTIME_DIR",
        "folder of the sessions' sockets; the second goes before",
        OF_SESSIONS,
    ),
    fact("DEBUGINFOD_URLS", "servers that are asked for debug files of system libraries", READERS),
    fact("XDG_CACHE_HOME", "base of the folder for files that can be made anew (~/.cache)", READERS),
    fact(
        "XDG_CONFIG_HOME",
        "base of the folder for settings (~/.config)",
        &["report", "explain", "top", "view", "config", "start"],
    ),
    fact(
        "XDG_STATE_HOME",
        "base of the folder for what is kept (~/.local/state)",
        &["push", "node", "watch", "incidents"],
    ),
    fact(
        "HEAPR_INDEX_SIZE",
        "bytes that indexes of V8 heaps may use in the cache; 0: none is made",
        &["snapshot"],
    ),
    fact(
        "HEAPR_MEMORY",
        "bytes of memory that count as free; a heap dump that needs more has columns in files",
        &["snapshot"],
    ),
    fact(
        "HEAPR_DISABLE",
        "set in a program's environment: the program is not recorded",
        &["run", "start", "config"],
    ),
];

/// Returns the statuses with which a command ends.
pub(crate) fn exit_status(path: &str) -> impl Iterator<Item = &'static Fact> {
    of(STATUSES, path)
}

/// Returns the files that a command reads or writes beside those that it is given.
pub(crate) fn files(path: &str) -> impl Iterator<Item = &'static Fact> {
    of(FILES, path)
}

/// Returns the variables of the environment that a command reads.
pub(crate) fn environment(path: &str) -> impl Iterator<Item = &'static Fact> {
    of(ENVIRONMENT, path)
}

/// Returns the facts about a command: those of all, and those of its words or of their beginning.
fn of(facts: &'static [Fact], path: &str) -> impl Iterator<Item = &'static Fact> {
    let is_of = move |fact: &&Fact| {
        fact.commands.is_empty()
            || path.is_empty()
            || fact.commands.iter().any(|command| {
                path.strip_prefix(command).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
            })
    };
    facts.iter().filter(is_of)
}

/// Returns the commands that the tables name.
#[cfg(test)]
pub(super) fn commands() -> impl Iterator<Item = &'static str> {
    let facts = STATUSES.iter().chain(FILES).chain(ENVIRONMENT);
    facts.flat_map(|fact| fact.commands).copied()
}
