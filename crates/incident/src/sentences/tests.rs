//! Tests of the sentences.

use super::*;
use crate::cause::Cause;
use crate::climb::Trigger;
use crate::course::Point;
use crate::incident::{GroupProcess, ProcessNamed};

const MIB: u64 = 1 << 20;
const SECOND_NS: u64 = 1_000_000_000;

fn incident() -> Incident {
    let time_unix_ns = 1_700_000_000 * SECOND_NS;
    let mut incident = Incident {
        time_unix_ns,
        process: ProcessNamed {
            pid: 4711,
            name: "web".to_owned(),
            rss_bytes: Some(512 * MIB),
            ..ProcessNamed::default()
        },
        ending: Some(Ending::Signalled { signal: 9, has_core: false }),
        cause: Cause {
            kind: CauseKind::KernelGroup,
            certainty: Certainty::Fact,
            group: Some("/web".to_owned()),
            limit_bytes: Some(512 * MIB),
            evidence: Vec::new(),
        },
        group: Some(GroupFacts {
            path: "/web".to_owned(),
            limit_bytes: Some(512 * MIB),
            usage_bytes: Some(511 * MIB),
            anonymous_bytes: 480 * MIB,
            file_bytes: 22 * MIB,
            ..GroupFacts::default()
        }),
        holders: vec![Holder {
            name: "OrderCache.remember (cache.py:31)".to_owned(),
            bytes: 364 * MIB,
            bytes_plus_minus: 9 * MIB,
            bytes_per_minute: Some(38 * MIB as i64),
            change_ns: Some(540 * SECOND_NS),
            ..Holder::default()
        }],
        ..Incident::default()
    };
    for second in 0..10 {
        let held_bytes = (second + 1) * 50 * MIB;
        let unix_ns = time_unix_ns - (10 - second) * 60 * SECOND_NS;
        incident.course.add(Point { unix_ns, usage_bytes: held_bytes, held_bytes });
    }
    incident
}

#[test]
fn a_kill_in_a_group_is_told_with_its_holder_the_rest_and_the_climb() {
    let mut incident = incident();
    incident.holders[0].held_by = Some("module cache: _orders (dict)".to_owned());
    tell(&mut incident);
    let first = &incident.sentences[0];
    assert!(first.starts_with("web (4711) was killed by the kernel for lack of memory at "), "{first}");
    assert!(
        first.ends_with(
            ": /web reached its limit of 512.0 MiB, 71 % of it in OrderCache.remember (cache.py:31), held by module cache: _orders (dict)."
        ),
        "{first}"
    );
    assert_eq!(
        incident.sentences[1],
        "71 % of it: OrderCache.remember (cache.py:31) held 364.0 MiB ± 9.00 MiB, 38.0 MiB a minute more for 9 minutes; \
         held by module cache: _orders (dict)."
    );
    assert_eq!(incident.sentences[2], "The rest: in no recorded block 116.0 MiB, files 22.0 MiB.");
    let climb = incident.sentences.last().unwrap();
    assert!(climb.contains("by 450.0 MiB; at that rate 1.00 GiB would have lasted until "), "{climb}");
}

#[test]
fn blocks_that_are_larger_than_the_limit_are_told_as_allocated() {
    let mut incident = incident();
    let holder = &mut incident.holders[0];
    (holder.bytes, holder.bytes_per_minute) = (2048 * MIB, None);
    tell(&mut incident);
    assert_eq!(
        incident.sentences[1],
        "100 % of it: OrderCache.remember (cache.py:31) had allocated (only what is written counts) 2.00 GiB ± 9.00 MiB."
    );
    // An estimate may be a little more than the limit.
    incident.holders[0].bytes = 520 * MIB;
    tell(&mut incident);
    assert!(incident.sentences[1].contains(" held 520.0 MiB"), "{}", incident.sentences[1]);
}

#[test]
fn a_limit_that_was_lowered_is_told_with_the_one_before() {
    let mut incident = incident();
    let time_unix_ns = incident.time_unix_ns;
    let facts = incident.group.as_mut().unwrap();
    facts.limited_group = Some("/web".to_owned());
    let read_unix_ns = time_unix_ns - 60 * SECOND_NS;
    let before = GroupFacts { limit_bytes: Some(1024 * MIB), read_unix_ns, ..facts.clone() };
    facts.lowered = facts.lowered_since(&before);
    let after = clock_text(read_unix_ns, time_unix_ns);
    let told = format!("its limit of 512.0 MiB (lowered from 1.00 GiB after {after}), 71 % of it in ");
    let first = first_sentence(&incident);
    assert!(first.contains(&told), "{first}");
    incident.cause.limit_bytes = Some(2048 * MIB);
    assert!(!first_sentence(&incident).contains("lowered"), "it was raised since");
    // It stays known at later readings, until the limit is raised again.
    let lowered = incident.group.unwrap();
    assert_eq!(lowered.clone().lowered_since(&lowered), lowered.lowered);
    assert_eq!(before.lowered_since(&lowered), None);
}

#[test]
fn unknown_is_said_as_unknown() {
    let mut incident = incident();
    incident.cause = Cause::default();
    incident.ending = Some(Ending::Unknown);
    incident.not_before_unix_ns = Some(incident.time_unix_ns - SECOND_NS);
    incident.holders.clear();
    tell(&mut incident);
    assert!(incident.sentences[0].contains(" ended between "), "{}", incident.sentences[0]);
    assert!(incident.sentences[0].ends_with("; why is unknown."), "{}", incident.sentences[0]);
    assert_eq!(incident.sentences[1], "What held the memory is unknown.");
}

#[test]
fn a_kill_by_hand_is_none_of_the_kernel() {
    let mut incident = incident();
    incident.cause = Cause { kind: CauseKind::Killed, certainty: Certainty::Fact, ..Cause::default() };
    let first = first_sentence(&incident);
    assert!(first.contains("by SIGKILL, which the kernel did not send for lack of memory"), "{first}");
    assert!(first.ends_with("; 71 % of its memory was in OrderCache.remember (cache.py:31)."), "{first}");
}

#[test]
fn a_group_of_several_processes_names_them_and_the_one_that_held_the_memory() {
    let mut incident = incident();
    let process = |pid, name: &str, mib| GroupProcess {
        pid,
        name: name.to_owned(),
        rss_bytes: mib * MIB,
        is_recorded: true,
    };
    incident.group.as_mut().unwrap().processes = vec![process(4712, "side", 400), process(4711, "web", 90)];
    incident.holders[0].processes = vec![(4712, 364 * MIB)];
    tell(&mut incident);
    assert!(
        incident.sentences[0].ends_with("71 % of it in OrderCache.remember (cache.py:31) of side (4712).")
    );
    let all = incident
        .sentences
        .iter()
        .find(|sentence| sentence.starts_with("Resident of the 2 processes"))
        .unwrap();
    incident.holders[0].processes.push((4711, 1));
    assert!(first_sentence(&incident).ends_with("(cache.py:31) of 2 processes."));
    assert_eq!(
        all,
        "Resident of the 2 processes of /web, as last read: side (4712) 400.0 MiB, web (4711) 90.0 MiB."
    );
}

#[test]
fn memory_outside_of_processes_is_named_once() {
    let mut incident = incident();
    let group = incident.group.as_mut().unwrap();
    (group.shared_memory_bytes, group.anonymous_bytes) = (400 * MIB, 10 * MIB);
    incident.holders = vec![Holder {
        kind: HolderKind::Group,
        name: "tmpfs and shared memory".to_owned(),
        bytes: 400 * MIB,
        ..Holder::default()
    }];
    tell(&mut incident);
    assert!(
        incident.sentences[0].ends_with("78 % of it in tmpfs and shared memory."),
        "{}",
        incident.sentences[0]
    );
    assert_eq!(incident.sentences[2], "The rest: files 22.0 MiB, in no recorded block 10.0 MiB.");
}

#[test]
fn a_warning_tells_what_may_come() {
    let mut incident = incident();
    incident.kind = Kind::Warning;
    incident.cause = Cause { kind: CauseKind::NearLimit, certainty: Certainty::Fact, ..Cause::default() };
    incident.trigger = Some(Trigger::Trend { minutes: 4 });
    incident.group.as_mut().unwrap().limited_group = Some("/web".to_owned());
    let first = first_sentence(&incident);
    assert!(first.contains("/web reaches its limit of 512.0 MiB within 5 minutes, 71 % of it in"), "{first}");
}

#[test]
fn shares_of_the_process_are_not_told_as_shares_of_the_machine() {
    let mut incident = incident();
    incident.cause =
        Cause { kind: CauseKind::KernelMachine, certainty: Certainty::Likely, ..Cause::default() };
    let first = first_sentence(&incident);
    assert!(first.contains("was probably killed by the kernel"), "{first}");
    assert!(first.contains("as the machine had no memory left; 71 % of its memory was in"), "{first}");
    incident.cause.kind = CauseKind::Crash;
    incident.ending = Some(Ending::Signalled { signal: 11, has_core: false });
    let first = first_sentence(&incident);
    assert!(first.contains(" by SIGSEGV; 71 % of its memory was in") && !first.contains("itself"), "{first}");
}
