//! Sections of the options, by their long names: one name has one meaning, and one section.

/// Section of an option, wherever it stands.
const SECTIONS: &[(&str, &[&str])] = &[
    (
        "Output",
        &[
            "output", "force", "quiet", "wide", "format", "layout", "top", "depth", "static", "into",
            "markdown",
        ],
    ),
    ("Limits (exit status 1)", &["fail-on", "fail-if-retained", "fail-if-growth", "fail-if-leaks"]),
    (
        "Names of code",
        &["symbol-path", "sysroot", "source-map-dir", "no-source-maps", "own", "library-frames"],
    ),
    ("Frames", &["cull-frames", "cull-lists", "no-default-cull", "lang-frames"]),
    ("Actions", &["totals", "free-stacks"]),
];
/// Section of an option without a section of its own.
const DEFAULTS: &[(&str, &[&str])] = &[
    (
        "Processes",
        &[
            "pid",
            "tree",
            "flagged",
            "running",
            "despite-seccomp",
            "no-follow",
            "add-pid",
            "remove-pid",
            "container",
        ],
    ),
    ("Sampling", &["sample", "full-on-growth", "for", "all"]),
    ("Events", &["stack-events", "max-frames", "mmap", "allocator", "lang"]),
    ("File", &["mode", "memory", "max-file", "rotate", "keep", "flush-timer", "flush"]),
    ("Buffers", &["buffer-size", "min-buffers", "max-buffers", "on-full"]),
];
/// Options that `-h` leaves out where a command has many.
const RARE: &[&str] = &[
    "after-at",
    "again",
    "confirm",
    "container",
    "cull-frames",
    "free-stacks",
    "max-size",
    "native",
    "own",
    "signal",
    "allocator",
    "at-risk",
    "at-rss",
    "before-at",
    "buffer-size",
    "by-thread",
    "ca",
    "depth",
    "filter",
    "at-swap",
    "close-between",
    "contents",
    "cull-lists",
    "despite-seccomp",
    "expose-internals",
    "flush-timer",
    "for",
    "full-for",
    "full-on-growth",
    "function-lines",
    "graph",
    "graph-at-exit",
    "heap",
    "hide-known",
    "host",
    "innermost-frames",
    "interval",
    "keep",
    "keep-age",
    "keep-size",
    "label",
    "lang",
    "lang-frames",
    "layout",
    "library-frames",
    "lifetime",
    "lines",
    "max-buffers",
    "max-frames",
    "max-pause",
    "memory",
    "min-buffers",
    "mode",
    "native-context",
    "no-default-cull",
    "no-scripts",
    "no-signal",
    "no-source-maps",
    "numeric-values",
    "on-full",
    "on-growth",
    "pause",
    "running",
    "service",
    "snapshot",
    "snapshot-at-exit",
    "snapshot-signal",
    "source-map-dir",
    "spool",
    "spool-size",
    "stack-events",
    "suppress",
    "symbol-path",
    "sysroot",
    "target",
    "temporary",
    "texts",
    "tries",
    "type",
    "wait",
    "wide",
    "allocated-after",
    "allocated-before",
    "rss-step",
];

/// Returns the section of an option whose own section is `own`.
pub(super) fn of(name: &str, own: Option<&str>) -> Option<&'static str> {
    let find = |sections: &[(&'static str, &[&str])]| {
        sections.iter().find(|(_, names)| names.contains(&name)).map(|(section, _)| *section)
    };
    find(SECTIONS).or_else(|| if own.is_none() { find(DEFAULTS) } else { None })
}

/// True for options that stand last in their section.
pub(super) fn is_last(name: &str) -> bool {
    name == "wide"
}

/// True for options that `-h` leaves out where a command has many.
pub(super) fn is_rare(name: &str) -> bool {
    RARE.contains(&name)
}

/// Returns all names of the tables.
#[cfg(test)]
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    let sections = SECTIONS.iter().chain(DEFAULTS).flat_map(|(_, names)| names.iter());
    sections.chain(RARE).copied()
}
