//! Tests of programs with an allocator of their own, or with several.

use std::process::Command;

use heapr_trace::Summary;

use crate::victim::{Victim, build};
use crate::{record_for, session};

/// Attaches for a number of rounds. Returns what was recorded; `None` if the program cannot run
/// here.
fn recorded_rounds(victim: &mut Victim, rounds: u64) -> Option<(Summary, u64)> {
    let (mut session, _folder) = session();
    let report = session.attach(victim.pid()).unwrap();
    assert!(report.not_hooked.is_empty(), "{report:?}");
    for _ in 0..rounds {
        victim.say("go\n");
        let line = victim.line();
        if line == "skip" {
            return None;
        }
        assert_eq!(line, "done");
    }
    let detached = session.detach(victim.pid()).unwrap();
    assert_eq!((detached.hooks_removed, detached.bytes_left), (report.hooks.len(), 0));
    victim.say("go\n");
    assert_eq!(victim.line(), "done");
    record_for(&mut session, 1);
    Some((session.stop().summary, report.blocks_before))
}

#[test]
fn a_caller_that_sees_its_allocator_keeps_every_register() {
    for vectors in ["0", "1", "2"] {
        let mut victim = Victim::of("registers", &[vectors]);
        let Some((summary, _)) = recorded_rounds(&mut victim, 2) else {
            heapr_testkit::cannot_run_here("the processor has no such registers");
            continue;
        };
        let totals = summary.totals;
        // calloc and memalign reach malloc: by a jump, and by a call.
        assert_eq!((totals.alloc_count, totals.outstanding_count, totals.unmatched_frees), (16, 0, 0));
    }
}

#[test]
fn calls_among_an_allocators_functions_count_once() {
    let path = build("nested", &["-O2", "-rdynamic"]);
    let mut victim = Victim::start(Command::new(path));
    let (summary, _) = recorded_rounds(&mut victim, 2).unwrap();
    let totals = summary.totals;
    assert_eq!((totals.alloc_count - totals.realloc_count, totals.realloc_count), (140, 20));
    assert_eq!((totals.outstanding_count, totals.unmatched_frees, totals.implied_frees), (0, 0, 0));
    assert_eq!(totals.failed_count, 20);
}

#[test]
fn a_second_c_library_is_hooked_too() {
    let plugin = build("plugin", &["-shared", "-fPIC"]);
    let mut command = Command::new(build("namespaces", &[]));
    command.arg(plugin);
    let mut victim = Victim::start(command);
    // The permanent blocks of the loader and the threads exist after the first round.
    victim.say("go\n");
    assert_eq!(victim.line(), "done");
    let (summary, before) = recorded_rounds(&mut victim, 3).unwrap();
    assert_eq!(summary.totals.alloc_count - before, 3 * 60);
}

#[test]
fn what_an_operator_throws_comes_to_who_called_it() {
    for variant in ["-DTHROW", "-DNOTHROW"] {
        let path = build("throws.cc", &[variant, "-O2", "-rdynamic", "-lstdc++"]);
        let mut victim = Victim::start(Command::new(path));
        let (summary, _) = recorded_rounds(&mut victim, 2).unwrap();
        // The program's 10 a round, and each exception's memory, which the C++ library also gets
        // from malloc.
        let totals = summary.totals;
        assert_eq!((totals.alloc_count, totals.outstanding_count), (2 * 30, 0));
    }
}

#[test]
fn an_allocator_inside_that_no_loader_knows_is_recorded() {
    let path = build("inner", &["-O2"]);
    let mut victim = Victim::start(Command::new(path));
    let (summary, _) = recorded_rounds(&mut victim, 2).unwrap();
    let totals = summary.totals;
    assert_eq!((totals.alloc_count, totals.alloc_bytes, totals.outstanding_count), (200, 10_000, 20));
    assert_eq!(totals.unmatched_frees, 0);
}

#[test]
fn an_allocator_in_a_library_that_is_loaded_after_the_attach_is_recorded_and_taken_back() {
    let library = build("inner", &["-O2", "-shared", "-fPIC", "-DLIBRARY"]);
    let mut command = Command::new(build("inner", &["-O2"]));
    command.arg(library);
    let mut victim = Victim::start(command);
    let (mut session, _folder) = session();
    let report = session.attach(victim.pid()).unwrap();
    // The recorder searches for embedded allocators from the first step on.
    record_for(&mut session, 1);
    for _ in 0..2 {
        victim.say("go\n");
        assert_eq!(victim.line(), "done");
    }
    let detached = session.detach(victim.pid()).unwrap();
    assert!(detached.hooks_removed >= report.hooks.len() + 4, "{detached:?} {report:?}");
    assert_eq!(detached.bytes_left, 0);
    // The original code is back, and nothing of it is recorded.
    victim.say("go\n");
    assert_eq!(victim.line(), "done");
    record_for(&mut session, 1);
    let found = session.stop();
    let of_library = |size: u64| found.summary.totals.alloc_bytes >= size;
    assert!(of_library(200 * 50) && found.summary.totals.outstanding_count >= 20, "{found:?}");
    assert_eq!(found.summary.totals.unmatched_frees, 0);
}

#[test]
fn a_static_program_is_hooked_by_the_names_in_its_file() {
    for flag in ["-static", "-static-pie"] {
        let mut victim = Victim::start(Command::new(build("counted", &[flag])));
        let (summary, before) = recorded_rounds(&mut victim, 2).unwrap();
        let totals = summary.totals;
        assert_eq!(before, 0, "its earlier blocks are not known");
        assert_eq!((totals.alloc_count, totals.realloc_count), (2 * 1210, 2 * 30), "{flag}");
        assert_eq!((totals.outstanding_count, totals.unmatched_frees), (2 * 10, 0), "{flag}");
    }
}
