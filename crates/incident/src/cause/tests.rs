//! Tests of causes.

use super::*;
use crate::group_events::GroupEvents;

fn kill(scope: Scope) -> KernelKill {
    KernelKill {
        time_us: 1_500_000,
        pid: 7,
        name: "web".to_owned(),
        scope,
        limited_group: (scope == Scope::Group).then(|| "/pod".to_owned()),
        group: Some("/pod/web".to_owned()),
        is_of_whole_group: false,
        rss_bytes: None,
    }
}

fn level(path: &str, limit_bytes: Option<u64>, events: GroupEvents) -> More {
    More { path: path.to_owned(), limit_bytes, used_bytes: limit_bytes, events, is_killed_whole: false }
}

const KILLED: Ending = Ending::Signalled { signal: 9, has_core: false };

#[test]
fn the_log_decides_and_its_group_has_the_limit() {
    let kill = kill(Scope::Group);
    let levels =
        [level("/pod/web", None, GroupEvents::default()), level("/pod", Some(64), GroupEvents::default())];
    let facts = DeathFacts { ending: KILLED, kill: Some(&kill), levels: &levels, ..DeathFacts::default() };
    let found = cause(&facts);
    assert_eq!((found.kind, found.certainty), (CauseKind::KernelGroup, Certainty::Fact));
    assert_eq!((found.group.as_deref(), found.limit_bytes), (Some("/pod"), Some(64)));
    let machine = self::kill(Scope::Machine);
    let found = cause(&DeathFacts { kill: Some(&machine), ..facts });
    assert_eq!((found.kind, found.group, found.limit_bytes), (CauseKind::KernelMachine, None, None));
}

#[test]
fn without_the_log_counters_tell_and_say_how_surely() {
    let events = GroupEvents { oom_kill: Some(1), limit_hits: Some(9), ..GroupEvents::default() };
    let levels = [level("/web", Some(64), events)];
    let facts =
        DeathFacts { ending: KILLED, levels: &levels, deaths_without_record: 1, ..DeathFacts::default() };
    let found = cause(&facts);
    assert_eq!(
        (found.kind, found.certainty, found.limit_bytes),
        (CauseKind::KernelGroup, Certainty::Fact, Some(64))
    );
    let found = cause(&DeathFacts { deaths_without_record: 2, ..facts.clone() });
    assert_eq!(found.certainty, Certainty::Likely);
    let found = cause(&DeathFacts { ending: Ending::Unknown, ..facts });
    assert_eq!((found.kind, found.certainty), (CauseKind::KernelGroup, Certainty::Likely));
}

#[test]
fn version_2_tells_a_kill_for_the_machine_and_of_a_whole_group() {
    let events =
        GroupEvents { oom_kill: Some(1), limit_hits: Some(0), oom: Some(0), ..GroupEvents::default() };
    let levels = [level("/web", Some(64), events)];
    let facts =
        DeathFacts { ending: KILLED, levels: &levels, deaths_without_record: 1, ..DeathFacts::default() };
    assert_eq!(cause(&facts).kind, CauseKind::KernelMachine);
    let events = GroupEvents { oom_kill: Some(3), oom_group_kill: Some(1), limit_hits: Some(4), ..events };
    let levels = [level("/web", Some(64), events)];
    assert_eq!(cause(&DeathFacts { levels: &levels, ..facts }).kind, CauseKind::KernelWholeGroup);
}

#[test]
fn a_kill_by_hand_is_told_from_one_by_the_kernel() {
    let levels = [level("/web", Some(64), GroupEvents { oom_kill: Some(0), ..GroupEvents::default() })];
    let facts =
        DeathFacts { ending: KILLED, levels: &levels, deaths_without_record: 1, ..DeathFacts::default() };
    assert_eq!(cause(&facts).kind, CauseKind::Killed);
    assert_eq!(cause(&DeathFacts { is_log_read: true, ..facts.clone() }).kind, CauseKind::Killed);
    // Another process of the group was killed by the kernel, and the log says so.
    let levels = [level("/web", Some(64), GroupEvents { oom_kill: Some(1), ..GroupEvents::default() })];
    let others = DeathFacts { is_log_read: true, levels: &levels, deaths_with_record: 1, ..facts.clone() };
    assert_eq!(cause(&others).kind, CauseKind::Killed);
    let nothing = DeathFacts { levels: &[], ..facts };
    assert_eq!((cause(&nothing).kind, cause(&nothing).certainty), (CauseKind::Unknown, Certainty::Unknown));
}

#[test]
fn systemd_oomd_leaves_its_count() {
    let events = GroupEvents { oomd_kill: Some(1), oom_kill: Some(0), ..GroupEvents::default() };
    let levels = [level("/web", None, events)];
    let facts = DeathFacts { ending: KILLED, levels: &levels, is_log_read: true, ..DeathFacts::default() };
    assert_eq!(cause(&facts).kind, CauseKind::SystemdOomd);
}

#[test]
fn an_abort_at_a_limit_of_the_process_is_no_mere_crash() {
    let abort = Ending::Signalled { signal: 6, has_core: false };
    let amount = Limited { used_bytes: 250, limit_bytes: 256 };
    let runtime = RuntimeLimit {
        heap: "V8's heap".to_owned(),
        set_by: "--max-old-space-size".to_owned(),
        amount,
        expected_bytes: None,
    };
    let facts = DeathFacts { ending: abort, runtime: Some(&runtime), ..DeathFacts::default() };
    assert_eq!((cause(&facts).kind, cause(&facts).certainty), (CauseKind::RuntimeLimit, Certainty::Likely));
    let facts = DeathFacts { ending: abort, address_space: Some(amount), ..DeathFacts::default() };
    assert_eq!(cause(&facts).kind, CauseKind::AddressSpace);
    let far = Limited { used_bytes: 100, ..amount };
    let facts = DeathFacts { ending: abort, address_space: Some(far), ..DeathFacts::default() };
    assert_eq!(cause(&facts).kind, CauseKind::Crash);
    let facts = DeathFacts { ending: Ending::Exited { status: 3 }, ..DeathFacts::default() };
    assert_eq!(cause(&facts).kind, CauseKind::Exit);
}

#[test]
fn what_counters_leave_open_is_no_fact() {
    let of = |path: &str, events| [level(path, Some(64), events)];
    let events =
        GroupEvents { oom_kill: Some(1), oom: Some(0), limit_hits: Some(9), ..GroupEvents::default() };
    let levels = of("/web", events);
    let facts =
        DeathFacts { ending: KILLED, levels: &levels, deaths_without_record: 1, ..DeathFacts::default() };
    let found = cause(&facts);
    assert_eq!((found.kind, found.certainty), (CauseKind::KernelMachine, Certainty::Likely));
    // The root of a namespace: there may be limits above it.
    let levels = of("/", events);
    assert_eq!(cause(&DeathFacts { levels: &levels, ..facts.clone() }).kind, CauseKind::Kernel);
    // The log was read, without a kill in it.
    let levels = of("/web", GroupEvents { oom: Some(1), ..events });
    let found = cause(&DeathFacts { levels: &levels, is_log_read: true, ..facts.clone() });
    assert_eq!((found.kind, found.certainty), (CauseKind::KernelGroup, Certainty::Likely));
    // A group that is killed whole for the machine's memory has reached no limit.
    let levels = of("/web", GroupEvents { oom_group_kill: Some(1), ..events });
    let found = cause(&DeathFacts { levels: &levels, ..facts });
    assert_eq!((found.kind, found.group), (CauseKind::KernelWholeGroup, None));
    assert!(!Limited { used_bytes: 5, limit_bytes: 0 }.is_full());
}

#[test]
fn ends_after_failed_allocations_and_java_errors_are_likely_and_have_their_evidence() {
    let abort = Ending::Signalled { signal: 6, has_core: false };
    let facts = DeathFacts { ending: abort, failed_count: 2, ..DeathFacts::default() };
    let found = cause(&facts);
    assert_eq!((found.kind, found.certainty), (CauseKind::FailedAllocation, Certainty::Likely));
    assert!(found.evidence[1].starts_with("2 allocations failed"), "{:?}", found.evidence);
    let options = [AtOutOfMemory::Exit];
    let exit = DeathFacts {
        ending: Ending::Exited { status: 3 },
        at_out_of_memory: &options,
        ..DeathFacts::default()
    };
    assert_eq!(cause(&exit).kind, CauseKind::OutOfMemoryError);
    let other = DeathFacts { ending: Ending::Exited { status: 1 }, ..exit.clone() };
    assert_eq!(cause(&other).kind, CauseKind::Exit);
    // A full heap is the better reason.
    let full = RuntimeLimit {
        heap: "Java's heap".to_owned(),
        set_by: "-Xmx".to_owned(),
        amount: Limited { used_bytes: 95, limit_bytes: 100 },
        expected_bytes: None,
    };
    let found = cause(&DeathFacts { runtime: Some(&full), ..exit.clone() });
    assert_eq!((found.kind, found.limit_bytes), (CauseKind::RuntimeLimit, Some(100)));
    assert!(found.evidence[1].contains("ExitOnOutOfMemoryError"), "{:?}", found.evidence);
    let growing =
        RuntimeLimit { amount: Limited { used_bytes: 60, ..full.amount }, expected_bytes: Some(93), ..full };
    let found = cause(&DeathFacts { runtime: Some(&growing), ..exit });
    assert_eq!((found.kind, found.certainty), (CauseKind::RuntimeLimit, Certainty::Likely));
    assert!(found.evidence[2].ends_with(" at its growth before, 93 B at the end"), "{:?}", found.evidence);
}
