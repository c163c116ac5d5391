//! Tests of the help of all commands.

use std::collections::BTreeSet;

use clap::{Command, CommandFactory as _, Parser as _};

use super::{examples, facts, sections, shaped};

/// Commands with their words, without hidden ones.
fn commands() -> Vec<(String, Command)> {
    fn collect(command: &Command, path: &str, found: &mut Vec<(String, Command)>) {
        found.push((path.to_owned(), command.clone()));
        let is_shown = |below: &&Command| !below.is_hide_set() && below.get_name() != "help";
        for below in command.get_subcommands().filter(is_shown) {
            collect(below, format!("{path} {}", below.get_name()).trim(), found);
        }
    }
    let mut command = shaped(crate::Arguments::command());
    command.build();
    let mut found = Vec::new();
    collect(&command, "", &mut found);
    found
}

#[test]
fn short_help_fits_a_screen_and_long_help_tells_all() {
    for (path, command) in commands() {
        for columns in [80, 100] {
            let short = command.clone().term_width(columns).render_help().to_string();
            let lines = short.lines().count();
            assert!(lines <= 40, "heapr {path} -h has {lines} lines at {columns} columns:\n{short}");
        }
        let mut command = command.term_width(100);
        let long = command.render_long_help().to_string();
        for name in super::options(&command).filter_map(clap::Arg::get_long) {
            assert!(long.contains(&format!("--{name}")), "heapr {path} --help has no --{name}");
        }
        for heading in ["Examples:", "Exit status:"] {
            assert!(long.contains(heading), "heapr {path} --help");
        }
        let keys = long.matches("outstanding count").count();
        assert!(keys <= 1, "heapr {path} --help lists the sort keys {keys} times:\n{long}");
    }
}

#[test]
fn options_for_the_output_stand_under_output() {
    for (path, command) in commands() {
        for option in super::options(&command) {
            let Some(name @ ("output" | "format" | "top" | "force" | "quiet" | "wide")) = option.get_long()
            else {
                continue;
            };
            assert_eq!(option.get_help_heading(), Some("Output"), "heapr {path} --{name}");
        }
        for argument in command.get_positionals() {
            assert_eq!(argument.get_help_heading(), None, "heapr {path} {}", argument.get_id());
        }
    }
}

#[test]
fn each_command_has_three_examples_that_are_understood() {
    let commands = commands();
    for (path, _) in &commands {
        let found = examples::of(path);
        assert_eq!(found.len(), 3, "heapr {path}: {found:?}");
        for example in found {
            let words: Vec<_> = example.line.split_whitespace().map(std::ffi::OsString::from).collect();
            let words = crate::command_words::normal(words);
            assert_eq!(crate::command_words::tip(&words), None, "{}", example.line);
            if let Err(error) = crate::Arguments::try_parse_from(&words) {
                panic!("{}: {error}", example.line);
            }
            let begin = format!("heapr {path}");
            let is_own = path.is_empty() || ["snapshot", "config", "node"].contains(&path.as_str());
            assert!(is_own || example.line.starts_with(begin.trim()), "{}", example.line);
            assert!(!example.meaning.is_empty() && example.line.len() < 76, "{}", example.line);
        }
    }
    let known: BTreeSet<&str> = commands.iter().map(|(path, _)| path.as_str()).collect();
    for named in examples::commands().filter(|name| *name != "heapr").chain(facts::commands()) {
        assert!(known.contains(named), "{named} is no command");
    }
}

#[test]
fn the_tables_name_options_that_exist() {
    let commands = commands();
    let options = commands.iter().flat_map(|(_, command)| super::options(command));
    let known: BTreeSet<&str> = options.filter_map(clap::Arg::get_long).collect();
    let unknown: Vec<&str> = sections::names().filter(|name| !known.contains(name)).collect();
    assert_eq!(unknown, [""; 0], "they are no options");
}

/// Prints the help of all commands with `HEAPR_PRINT=1 cargo test … -- --nocapture`, to be read.
#[test]
fn short_texts_are_sentences() {
    for (path, mut command) in commands() {
        let text = command.clone().term_width(80).render_help().to_string();
        if std::env::var_os("HEAPR_PRINT").is_some() {
            println!("=== heapr {path} -h\n{text}");
        }
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        assert!(!about.is_empty() && !about.ends_with([',', ':', ';', '.']), "heapr {path}: {about}");
        command = command.term_width(80);
        assert!(command.render_long_help().to_string().lines().count() > 3);
    }
}
