//! Counts compared with Valgrind's "total heap usage" of single-threaded programs.

use std::process::Command;

use heapr_testkit::run;

use crate::header::Header;
use crate::recording::{self, Settings};
use crate::victim_build::{build, sources};

/// A variable that Valgrind adds where it is missing, as Cargo does. Some programs (git) allocate
/// for each variable of their environment.
const VARIABLE: (&str, &str) = ("LD_LIBRARY_PATH", "/usr/lib");

#[derive(Debug, PartialEq, Eq)]
struct Usage {
    allocs: u64,
    frees: u64,
    bytes: u64,
}

/// Returns Valgrind's last line of numbers; it counts a realloc as an allocation and a free, as
/// heapr does.
fn valgrind(command: &[String]) -> Usage {
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--run-libc-freeres=no", "--run-cxx-freeres=no", "--undef-value-errors=no"]).args(command);
    valgrind.env(VARIABLE.0, VARIABLE.1);
    let outcome = run(&mut valgrind);
    let line = outcome
        .stderr
        .lines()
        .find_map(|line| line.split_once("total heap usage:"))
        .expect(&outcome.stderr)
        .1;
    let numbers: Vec<u64> =
        line.replace(',', "").split_whitespace().filter_map(|word| word.parse().ok()).collect();
    match numbers[..] {
        [allocs, frees, bytes] => Usage { allocs, frees, bytes },
        _ => panic!("{line}"),
    }
}

fn heapr(command: &[String]) -> Usage {
    let environment = [(VARIABLE.0.to_owned(), VARIABLE.1.to_owned())];
    let settings = Settings { environment: &environment, limit: heapr_testkit::LIMIT, ..Settings::default() };
    let recording = recording::record(command, &settings);
    let totals = recording.json(&["report", "--totals"])["totals"].clone();
    let number = |name: &str| totals[name].as_u64().unwrap();
    Usage { allocs: number("alloc_count"), frees: number("free_count"), bytes: number("alloc_bytes") }
}

fn assert_same(command: &[&str]) {
    let command: Vec<String> = command.iter().map(|word| (*word).to_owned()).collect();
    assert_eq!(heapr(&command), valgrind(&command), "heapr (left) and Valgrind on {command:?}");
}

#[test]
fn jq_counts_are_those_of_valgrind() {
    assert_same(&[
        "jq",
        "-n",
        "[range(500) | {id: ., name: tostring, list: [., . + 1]}] | group_by(.id % 7) | map(length)",
    ]);
}

#[test]
fn sqlite_counts_are_those_of_valgrind() {
    let script = "create table t(a, b); with recursive n(i) as (select 1 union all select i + 1 from n where i < 2000) \
                  insert into t select i, 'text ' || i from n; select count(*), sum(length(b)) from t group by a % 3;";
    assert_same(&["sqlite3", ":memory:", script]);
}

#[test]
fn git_counts_are_those_of_valgrind() {
    let git = ["/usr/bin/git", "--no-pager", "-c", "color.ui=never", "log", "--oneline", "-20"];
    let folder = tempfile::tempdir().unwrap();
    let script = "git init -q . && for i in 1 2 3 4 5; do echo $i > f && git add f && \
                  git -c user.name=a -c user.email=a@b commit -q -m \"commit $i\"; done";
    let made = Command::new("sh").args(["-c", script]).current_dir(folder.path()).status().unwrap();
    assert!(made.success());
    let place = folder.path().to_str().unwrap();
    assert_same(&[&[git[0], "-C", place], &git[1..]].concat());
}

#[test]
fn victim_counts_are_those_of_valgrind() {
    for name in ["realloc_forms.c", "peaks.c", "exceptions.cc", "libc_inside.c", "long_jumps.c"] {
        let header = Header::read(&sources().join(name));
        let program = build(name, &header, &["-O1".to_owned()]);
        assert_same(&[program.to_str().unwrap()]);
    }
}
