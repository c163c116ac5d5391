//! Test of the options' names: one name for one thing, in all commands.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use clap::CommandFactory as _;

/// Names that another option has already: a new option takes that one.
const SYNONYMS: &[(&str, &str)] = &[
    ("limit", "top"),
    ("max-items", "top"),
    ("max-rows", "top"),
    ("rows", "top"),
    ("order", "sort"),
    ("order-by", "sort"),
    ("sort-by", "sort"),
    ("sort-key", "sort"),
    ("out", "output"),
    ("outfile", "output"),
    ("output-file", "output"),
    ("to-file", "output"),
    ("overwrite", "force"),
    ("replace", "force"),
    ("output-format", "format"),
    ("form", "format"),
    ("json", "format"),
    ("csv", "format"),
    ("silent", "quiet"),
    ("process", "pid"),
    ("fail-if", "fail-on"),
    ("filter-frames", "require-frames"),
    ("children", "tree"),
    ("with-children", "tree"),
    ("recursive", "tree"),
    ("no-browser", "no-open"),
    ("symbols", "symbol-path"),
    ("debug-path", "symbol-path"),
];

/// Options of which the name means different things in different commands, with the reason.
const TWO_MEANINGS: &[(&str, &str)] = &[
    ("by", "groups: those of a trace, with a key, or of the packages of a snapshot"),
    ("cgroup", "explain: a switch; config: the group that is flagged"),
    ("class", "a class by its name, or by a pattern in queries"),
    ("depth", "frames or levels; node sample: frames of a stack of V8"),
    ("every", "time between two readings, in seconds or with a unit"),
    ("fail-if-growth", "of snapshots: an amount, or amounts of classes"),
    ("fail-on", "findings of a recording; of a comparison growth alone, with an amount"),
    ("for", "length of a recording in full; config shell: the reader of its lines"),
    ("frames", "an action of a report, with its key; of a comparison a switch"),
    ("images", "an action of a report, with its key; of a comparison a switch"),
    ("interval", "time between two moments; node sample: bytes between two samples"),
    ("keep", "files that stay; snapshot take: the session goes on"),
    ("name", "config: a program; snapshot take: the snapshot's own; query: a pattern"),
    ("output", "a file; a folder where several files are made"),
    ("pid", "processes: numbers of a trace, or names, too, where they run"),
    ("sample", "rates: only sessions that go on can turn theirs off"),
    ("snapshots", "numbers of snapshots: a pair to compare, or several"),
    ("sort", "keys of a metric; orders of objects"),
    ("stacks", "an action of a report, with its key; of a comparison a switch"),
    ("type", "types against a range; of a snapshot types of nodes"),
];

/// Visible options with a long name: name and value, and the commands that have them.
fn options() -> BTreeMap<(String, String), BTreeSet<String>> {
    fn collect(
        command: &clap::Command,
        path: &str,
        found: &mut BTreeMap<(String, String), BTreeSet<String>>,
    ) {
        for option in command.get_opts().filter(|option| !option.is_hide_set()) {
            let Some(long) = option.get_long().filter(|long| !["help", "version"].contains(long)) else {
                continue;
            };
            let values = match option.get_action().takes_values() {
                true => option
                    .get_value_names()
                    .unwrap_or_default()
                    .iter()
                    .map(|name| name.to_string())
                    .collect::<Vec<_>>()
                    .join(" "),
                false => String::new(),
            };
            found.entry((long.to_owned(), values)).or_default().insert(path.to_owned());
        }
        for below in
            command.get_subcommands().filter(|below| !below.is_hide_set() && below.get_name() != "help")
        {
            collect(below, format!("{path} {}", below.get_name()).trim_start(), found);
        }
    }
    let mut found = BTreeMap::new();
    collect(&crate::Arguments::command(), "", &mut found);
    found
}

#[test]
fn a_new_option_takes_the_name_that_its_meaning_has() {
    let found = options();
    for (name, _) in found.keys() {
        let known = SYNONYMS.iter().find(|(synonym, _)| synonym == name);
        assert_eq!(known, None, "--{name} means what another option means already");
    }
    let mut values: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    found.keys().for_each(|(name, value)| {
        values.entry(name).or_default().insert(value);
    });
    for (name, values) in &values {
        let is_known = TWO_MEANINGS.iter().any(|(known, _)| known == name);
        assert!(values.len() == 1 || is_known, "--{name} takes {values:?}: one name, one meaning");
    }
    for (name, reason) in TWO_MEANINGS {
        assert!(values.contains_key(name) && !reason.is_empty(), "--{name} is no option any more");
    }
}

#[test]
fn an_option_takes_one_value_or_a_fixed_number() {
    fn check(command: &clap::Command, known: &[&str]) {
        for option in command.get_opts().filter(|option| option.get_action().takes_values()) {
            let name = option.get_long().unwrap_or_default();
            let values = option.get_num_args().expect("a built command");
            let is_fixed = values.min_values() == values.max_values() || option.is_require_equals_set();
            assert!(
                is_fixed || known.contains(&name),
                "--{name} of {}: a file behind it would be its value",
                command.get_name()
            );
        }
        command.get_subcommands().for_each(|below| check(below, known));
    }
    let mut command = crate::Arguments::command();
    command.build();
    // Actions of a report may be followed by a sort key: any other word is the file. The other
    // options take numbers, and refuse a file's name.
    let actions =
        ["stacks", "frames", "functions", "function-lines", "lines", "images", "by-thread", "invert"];
    check(&command, &[&actions[..], &["by", "callers", "watch", "snapshots"]].concat());
}

/// Compares the table in docs/contributing.md; `HEAPR_WRITE_GENERATED=1` writes it.
#[test]
fn the_options_of_several_commands_are_listed() {
    let mut text = String::from("| option | value | commands |\n|---|---|---|\n");
    for ((name, value), commands) in options() {
        if commands.len() < 2 {
            continue;
        }
        let commands: Vec<&str> = commands.iter().map(String::as_str).collect();
        let value = value.replace('|', "\\|");
        text += &format!("| `--{name}` | {value} | {} |\n", commands.join(", "));
    }
    let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/contributing.md");
    heapr_testkit::check_part(&document, "options", &text);
}
