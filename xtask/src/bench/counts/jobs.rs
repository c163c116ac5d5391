//! Jobs that are counted: one row each.

/// Job that is counted.
#[derive(Debug)]
pub(super) struct Job {
    /// Name of the job in the table and in `benches/counts.tsv`.
    pub(super) name: &'static str,
    pub(super) work: Work,
}

impl Job {
    /// Whether the job counts a recorded program.
    pub(super) fn is_of_program(&self) -> bool {
        matches!(self.work, Work::Program { .. })
    }

    /// Whether the check of each commit measures the job, too, with a build without optimization.
    /// Recorders and servers look more often while a busy machine keeps them waiting. Samples fall
    /// by chance. V8's snapshots take minutes without optimization.
    pub(super) fn is_checked(&self) -> bool {
        match &self.work {
            Work::Events { options, .. } => !options.contains(&"--sample"),
            Work::Program { .. } => true,
            Work::Command { arguments, .. } => {
                !arguments.starts_with(&["snapshot", "summary"])
                    && !arguments.starts_with(&["snapshot", "suspects"])
            }
            Work::Recorder { .. } | Work::RecorderEvents | Work::View | Work::Running { .. } => false,
        }
    }
}

/// Work that is done and counted. In arguments, `{name}` is an input of [`super::inputs::Inputs`].
#[derive(Debug)]
pub(super) enum Work {
    /// A thousand more events of a kind in `benches/events.c`: the agent's instructions.
    Events {
        kind: &'static str,
        /// Library that the program loads first.
        library: Option<&'static str>,
        options: &'static [&'static str],
        /// Number of additional events over which the mean is computed.
        more_events: u64,
    },
    /// A program from its start to its end: the agent's instructions, and the whole tree's system
    /// calls above those of the bare program.
    Program { command: &'static [&'static str] },
    /// A program under `heapr run`: the recorder's instructions.
    Recorder { command: &'static [&'static str] },
    /// 100,000 more events: the recorder's instructions.
    RecorderEvents,
    /// A command that reads files: all of its instructions, its system calls, its memory.
    Command {
        arguments: &'static [&'static str],
        /// True if saved answers of earlier runs are removed.
        is_first: bool,
    },
    /// First answers of the page's server.
    View,
    /// Shell commands on a running process, `$1`, by `$0`: their system calls. Valgrind does not
    /// know all calls that reach into another process.
    Running { script: &'static str },
}

/// Number of additional events where all events cost about the same.
const MORE_EVENTS: u64 = 10_000;

const fn events(name: &'static str, kind: &'static str) -> Job {
    Job { name, work: Work::Events { kind, library: None, options: &[], more_events: MORE_EVENTS } }
}

const fn command(name: &'static str, arguments: &'static [&'static str]) -> Job {
    Job { name, work: Work::Command { arguments, is_first: false } }
}

const fn first_command(name: &'static str, arguments: &'static [&'static str]) -> Job {
    Job { name, work: Work::Command { arguments, is_first: true } }
}

const fn program(name: &'static str, command: &'static [&'static str]) -> Job {
    Job { name, work: Work::Program { command } }
}

const fn recorder(name: &'static str, command: &'static [&'static str]) -> Job {
    Job { name, work: Work::Recorder { command } }
}

const ATTACH: &str = "$0 start counts --pid $1 -f -o recorded.heapr && $0 stop counts";

/// Jobs, in the order of the table.
pub(super) const JOBS: &[Job] = &[
    events("event pair", "pair"),
    events("event calloc", "calloc"),
    events("event realloc", "realloc"),
    events("event aligned", "aligned"),
    events("event deep", "deep"),
    Job {
        name: "event pair, interpreter loaded",
        work: Work::Events {
            kind: "pair",
            library: Some("libluajit-5.1.so.2"),
            options: &[],
            more_events: MORE_EVENTS,
        },
    },
    Job {
        name: "event pair, sampled",
        work: Work::Events {
            kind: "pair",
            library: None,
            options: &["--sample", "512K"],
            more_events: 400_000,
        },
    },
    Job {
        name: "event mmap",
        work: Work::Events { kind: "mmap", library: None, options: &["--mmap"], more_events: MORE_EVENTS },
    },
    program("true: program", &["true"]),
    recorder("true: recorder", &["true"]),
    program("40 libraries: program", &["{forty}"]),
    recorder("40 libraries: recorder", &["{forty}"]),
    recorder("clang++ --version: recorder", &["clang++", "--version"]),
    Job { name: "100,000 events: recorder", work: Work::RecorderEvents },
    Job { name: "attach and detach", work: Work::Running { script: ATTACH } },
    Job { name: "snapshot take", work: Work::Running { script: "$0 snapshot take $1 -f -o taken.heapr" } },
    command("report --totals", &["report", "{trace}", "--totals"]),
    command("report", &["report", "{trace}"]),
    command("report --range", &["report", "{trace}", "--range", "1000", "10000000"]),
    command("explain", &["explain", "{trace}"]),
    command("diff", &["diff", "{other}", "{trace}"]),
    command("export collapsed", &["export", "{trace}", "--to", "collapsed", "-o", "{out}"]),
    command("export speedscope", &["export", "{trace}", "--to", "speedscope", "-o", "{out}"]),
    command("export pprof", &["export", "{trace}", "--to", "pprof", "-o", "{out}"]),
    command("export parquet", &["export", "{trace}", "--to", "parquet", "-o", "{folder}"]),
    Job { name: "view: five answers", work: Work::View },
    first_command("V8 summary", &["snapshot", "summary", "{v8}"]),
    command("V8 summary, known", &["snapshot", "summary", "{v8}"]),
    first_command("V8 suspects", &["snapshot", "suspects", "{v8_before}", "{v8}"]),
    command("leaks of a graph", &["snapshot", "leaks", "{graph}"]),
];
