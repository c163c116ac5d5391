//! Tests of programs that run on unchanged, and of what is recorded of them.

use std::process::Command;

use crate::victim::{Victim, build};
use crate::{record_for, session};

fn counts_of_two_rounds(victim: &mut Victim, blocks_before: u64) -> (u64, u64, u64, u64) {
    let (mut session, _folder) = session();
    let pid = victim.pid();
    let report = session.attach(pid).unwrap();
    assert!(report.hooks.iter().any(|name| name == "malloc"), "{report:?}");
    assert!(!report.was_allocator_busy && report.not_hooked.is_empty(), "{report:?}");
    for _ in 0..2 {
        victim.say("go\n");
        assert_eq!(victim.line(), "done");
    }
    let detached = session.detach(pid).unwrap();
    assert_eq!((detached.hooks_removed, detached.bytes_left), (report.hooks.len(), 0));
    // The third round is not recorded.
    victim.say("go\n");
    assert_eq!(victim.line(), "done");
    let summary = session.stop().summary;
    let totals = summary.totals;
    // Blocks from before the attach, still live.
    let before = report.blocks_before;
    assert_eq!((before, &report.heap_unread), (blocks_before, &None));
    assert_eq!(totals.unmatched_frees + totals.implied_frees, 0);
    (
        totals.alloc_count - before,
        totals.realloc_count,
        totals.outstanding_count - before,
        summary.event_count - before,
    )
}

#[test]
fn counts_are_exact_from_the_moment_of_attaching() {
    let mut victim = Victim::of("counted", &[]);
    let before = (victim.mapping_count(), victim.descriptors());
    // 1180 allocations, 30 reallocations, 1170 frees a round.
    let expected = (2 * 1210, 2 * 30, 2 * 10, 2 * (1180 + 30 + 1170));
    assert_eq!(counts_of_two_rounds(&mut victim, 1), expected);
    // A second attach: the removed agent does not hinder it.
    assert_eq!(counts_of_two_rounds(&mut victim, 31), expected);
    assert_eq!(victim.descriptors(), before.1, "no descriptor is left");
    // Code pages that were written are at most separate mappings.
    assert!(victim.mapping_count() <= before.0 + 1, "{} {}", victim.mapping_count(), before.0);
}

#[test]
fn a_program_that_the_loader_was_told_to_start_is_recorded() {
    let mut command = Command::new("/lib64/ld-linux-x86-64.so.2");
    command.arg(build("counted", &[]));
    let mut victim = Victim::start(command);
    let expected = (2 * 1210, 2 * 30, 2 * 10, 2 * (1180 + 30 + 1170));
    assert_eq!(counts_of_two_rounds(&mut victim, 1), expected);
}

#[test]
fn threads_in_system_calls_and_in_a_handler_see_nothing() {
    let mut victim = Victim::of("blocked", &[]);
    for _ in 0..3 {
        let (mut session, _folder) = session();
        session.attach(victim.pid()).unwrap();
        record_for(&mut session, 50);
        session.detach(victim.pid()).unwrap();
        drop(session.stop());
    }
    victim.say("go\n");
    assert_eq!(victim.line(), "ok");
}

#[test]
fn a_thread_that_cannot_be_stopped_goes_on_when_it_wakes() {
    let mut victim = Victim::of("vfork_waits", &[]);
    let (mut session, _folder) = session();
    let error = session.attach(victim.pid()).unwrap_err().to_string();
    assert!(error.contains("vfork"), "{error}");
    // The failed stop leaves no trace: the program lives on and runs.
    for _ in 0..3 {
        victim.say("on\n");
        assert_eq!(victim.line(), "went on");
    }
    // The child ends while the attach is tried again: then the program can be stopped.
    let pid = victim.pid();
    let attaching = std::thread::spawn(move || session.attach(pid).map(|_| session));
    heapr_testkit::wait_until("it is tried again", || (!victim.is_untraced()).then_some(()));
    victim.say("on\n");
    assert_eq!(victim.line(), "went on");
    // By chance the next child may be there sooner.
    if let Ok(mut session) = attaching.join().unwrap() {
        record_for(&mut session, 20);
        drop(session.stop());
    }
    victim.say("on\n");
    assert_eq!(victim.line(), "went on");
}

#[test]
fn a_worker_of_io_uring_is_in_nobodys_way() {
    let mut victim = Victim::of("io_ring", &[]);
    if victim.line() != "worker" {
        // Not available on this kernel, or not allowed.
        return;
    }
    let (mut session, _folder) = session();
    let report = session.attach(victim.pid()).unwrap();
    assert_eq!((report.thread_count, report.was_allocator_busy), (1, false), "{report:?}");
    victim.say("on\n");
    assert_eq!(victim.line(), "read");
    record_for(&mut session, 50);
    assert_eq!(session.detach(victim.pid()).unwrap().bytes_left, 0);
    assert!(session.stop().summary.totals.alloc_count >= 1000);
}

#[test]
fn the_only_thread_sleeps_on_while_it_is_borrowed() {
    let mut victim = Victim::of("alone", &[]);
    for answer in ["slept", "polled"] {
        let (mut session, _folder) = session();
        session.attach(victim.pid()).unwrap();
        record_for(&mut session, 50);
        session.detach(victim.pid()).unwrap();
        drop(session.stop());
        assert_eq!(victim.line(), answer);
        victim.say("on\n");
    }
}

fn rounds(victim: &mut Victim, count: usize) -> u64 {
    let mut event_count = 0;
    for _ in 0..count {
        let (mut session, _folder) = session();
        let report = session.attach(victim.pid()).unwrap();
        assert!(!report.was_allocator_busy && report.heap_unread.is_none(), "{report:?}");
        assert!(report.pause >= report.parts.install, "{report:?}");
        record_for(&mut session, 200);
        assert_eq!(session.detach(victim.pid()).unwrap().bytes_left, 0);
        event_count += session.stop().summary.event_count;
        victim.goes_on();
    }
    event_count
}

#[test]
fn many_threads_go_on() {
    // Fewer than the session has buffers: a thread that waits for a buffer cannot leave the agent.
    assert!(rounds(&mut Victim::of("threads", &["40"]), 2) > 1000);
}

#[test]
fn a_program_that_forks_all_the_time_goes_on() {
    assert!(rounds(&mut Victim::of("forks", &[]), 3) > 0);
}

#[test]
fn a_program_that_loads_libraries_all_the_time_goes_on() {
    assert!(rounds(&mut Victim::of("plugins", &[]), 3) > 0);
}

#[test]
fn a_program_in_namespaces_of_its_own_is_recorded() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let mut command = Command::new("unshare");
    command.args(["--pid", "--fork", "--mount-proc", "--net", "--mount"]).arg(build("counted", &[]));
    let mut victim = Victim::start(command);
    let children = format!("/proc/{0}/task/{0}/children", victim.pid());
    let pid: u32 = std::fs::read_to_string(children).unwrap().trim().parse().unwrap();
    let (mut session, _folder) = session();
    let report = session.attach(pid).unwrap();
    assert_eq!(report.inner_pid, 1);
    victim.say("go\n");
    assert_eq!(victim.line(), "done");
    // The recorder must not consider the process ended, although its own id means another process
    // here.
    record_for(&mut session, 300);
    victim.say("go\n");
    assert_eq!(victim.line(), "done");
    session.look_for_ends();
    assert_eq!(session.live_process_count(), 1);
    session.detach(pid).unwrap();
    assert_eq!(session.stop().summary.event_count - report.blocks_before, 2 * (1180 + 30 + 1170));
}

#[test]
fn a_process_that_is_taken_in_again_goes_on() {
    let mut victim = Victim::of("stays_and_goes", &[]);
    let (mut session, _folder) = session();
    let pid = victim.pid();
    let before = session.attach(pid).unwrap().blocks_before;
    let mut step = |session: &mut heapr_session::Session| {
        victim.say("go\n");
        assert_eq!(victim.line(), "done");
        record_for(session, 1);
    };
    step(&mut session);
    session.detach(pid).unwrap();
    step(&mut session);
    // The block allocated in between is the only unknown one.
    assert_eq!(session.attach(pid).unwrap().blocks_before, 1);
    step(&mut session);
    session.detach(pid).unwrap();
    let summary = session.stop().summary;
    let totals = summary.totals;
    assert_eq!(totals.alloc_count, before + 2 + 1);
    assert_eq!(totals.outstanding_count, before);
    assert_eq!((totals.unmatched_frees, totals.implied_frees), (0, 0));
    let mut processes: Vec<_> = summary.by_heap.iter().map(|&(process, ..)| process).collect();
    processes.dedup();
    assert_eq!(processes.len(), 1);
}

#[test]
fn a_process_whose_first_thread_has_ended_is_recorded() {
    let mut victim = Victim::of("alone_after", &[]);
    let (mut session, _folder) = session();
    let report = session.attach(victim.pid()).unwrap();
    assert_eq!((report.thread_count, report.inner_pid), (1, victim.pid()), "{report:?}");
    victim.say("go\n");
    assert_eq!(victim.line(), "done");
    record_for(&mut session, 300);
    victim.say("go\n");
    assert_eq!(victim.line(), "done");
    session.look_for_ends();
    assert_eq!(session.live_process_count(), 1);
    assert_eq!(session.detach(victim.pid()).unwrap().bytes_left, 0);
    assert_eq!(session.stop().summary.event_count - report.blocks_before, 2000);
}

#[test]
fn a_thread_on_the_stack_of_one_that_an_earlier_agent_has_seen_runs_on() {
    let mut victim = Victim::of("ends_late", &[]);
    for _ in 0..3 {
        let (mut session, _folder) = session();
        let report = session.attach(victim.pid()).unwrap();
        victim.say("go\n");
        assert_eq!(victim.line(), "done");
        record_for(&mut session, 100);
        assert_eq!(session.detach(victim.pid()).unwrap().bytes_left, 0);
        assert!(session.stop().summary.event_count - report.blocks_before >= 200);
        victim.say("go\n");
        assert_eq!(victim.line(), "done");
    }
}

#[test]
fn children_that_are_forked_after_the_attach_have_the_names_of_their_modules() {
    let mut victim = Victim::of("forks_later", &[]);
    let (mut session, folder) = session();
    session.attach(victim.pid()).unwrap();
    victim.say("go\n");
    assert_eq!(victim.line(), "done");
    record_for(&mut session, 100);
    session.detach(victim.pid()).unwrap();
    drop(session.stop());
    let trace = heapr_trace::Trace::open(&folder.path().join("trace.heapr")).unwrap();
    assert_eq!(trace.processes().len(), 3);
    // The parent itself allocates nothing.
    for process in 1..3 {
        let is_program = |mapping: &&heapr_trace::Mapping| {
            let module = trace.modules().get(mapping.module.0 as usize);
            mapping.process.0 == process
                && module.is_some_and(|module| module.path.contains("attach-forks_later"))
        };
        assert!(trace.mappings().iter().any(|mapping| is_program(&mapping)), "process {process}");
    }
}
