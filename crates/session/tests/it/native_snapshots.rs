//! Tests of snapshots taken while events come: each must equal a replay of the events before it.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use heapr_ledger::Ledger;
use heapr_session::{
    Error, Session, SnapshotReport, SnapshotRequest, SnapshotRule, SnapshotScope, SnapshotWhen,
};
use heapr_trace::{Block, SnapshotTrigger, Trace};

use crate::producer::{Producer, ProducerThread, join, live_tid};
use crate::recording::{Recorded, pass_watermark, start, stop};

/// Returns the blocks of a snapshot by (process, address).
fn blocks_of(trace: &Trace, report: &SnapshotReport) -> BTreeMap<(u32, u64), Block> {
    let snapshot = trace.snapshot(report.snapshot.number).expect("it is in the file");
    assert_eq!(*snapshot, report.snapshot);
    let mut blocks = BTreeMap::new();
    let damage = trace
        .for_each_snapshot_block(snapshot, |block| {
            let old = blocks.insert((block.process.0, block.address_avma), *block);
            assert!(old.is_none(), "a block is there twice: {block:?}");
        })
        .expect("it can be read");
    assert!(damage.is_empty(), "{damage:?}");
    assert_eq!(blocks.len() as u64, snapshot.block_count);
    assert_eq!(blocks.values().map(|block| block.size_bytes).sum::<u64>(), snapshot.block_bytes);
    blocks
}

/// Returns the live blocks after a replay of the events before a snapshot, of the snapshot's
/// processes.
fn replayed(recorded: &Recorded, report: &SnapshotReport) -> BTreeMap<(u32, u64), Block> {
    let mut ledger = Ledger::new();
    for event in &recorded.events[..report.snapshot.event_index as usize] {
        assert!(event.time_ns <= report.snapshot.time_ns);
        ledger.apply(event, recorded.trace.process_of(event.thread), &mut ());
    }
    let is_of_it =
        |block: &Block| report.snapshot.processes.iter().any(|process| process.process == block.process);
    ledger
        .live_blocks()
        .filter(is_of_it)
        .map(|block| ((block.process.0, block.address_avma), block))
        .collect()
}

fn churn(thread: &mut ProducerThread<'_>, random: &mut u64, live: &mut Vec<u64>, count: usize) {
    for _ in 0..count {
        *random ^= *random << 13;
        *random ^= *random >> 7;
        *random ^= *random << 17;
        if live.is_empty() || !(*random).is_multiple_of(3) {
            let address = 0x10_0000 + (*random >> 20) % 200_000 * 32;
            if live.contains(&address) {
                continue;
            }
            assert!(thread.alloc(address, 8 + (*random % 100) as u32, 0));
            live.push(address);
        } else {
            let address = live.swap_remove((*random >> 8) as usize % live.len());
            assert!(thread.free(address));
        }
    }
}

#[test]
fn a_snapshot_taken_while_events_come_is_of_one_moment() {
    let (mut session, directory) = start(|properties| properties.max_buffers = 512);
    let pool = join(&session);
    let process = Producer::exec(&pool, None);
    let mut thread = process.thread(live_tid(1));
    let (mut random, mut live) = (7_u64, Vec::new());
    let mut reports = Vec::new();
    for round in 0..40 {
        churn(&mut thread, &mut random, &mut live, 700);
        pass_watermark();
        if round % 4 == 3 {
            session.request_snapshot(SnapshotRequest::default()).expect("there is room");
        }
        session.step();
        reports.extend(std::iter::from_fn(|| session.take_snapshot_report()));
    }
    let name = "the last".to_owned();
    reports
        .push(session.snapshot(SnapshotRequest { name, ..SnapshotRequest::default() }).expect("it is taken"));
    let recorded = stop(session, directory);
    reports.extend(recorded.summary.snapshots.iter().cloned());
    assert_eq!(reports.len(), 11);
    for report in &reports {
        assert!(report.write_error.is_none());
        let found = blocks_of(&recorded.trace, report);
        assert!(!found.is_empty());
        assert_eq!(found, replayed(&recorded, report));
    }
    assert_eq!(recorded.trace.snapshots().last().map(|snapshot| snapshot.name.as_str()), Some("the last"));
}

#[test]
fn a_snapshot_of_one_process_has_no_block_of_another() {
    let (mut session, directory) = start(|_| {});
    let pool = join(&session);
    let one = Producer::exec(&pool, None);
    let other = one.fork(std::os::unix::process::parent_id());
    one.thread(live_tid(1)).alloc(0x1000, 10, 0);
    other.thread(live_tid(2)).alloc(0x1000, 20, 0);
    other.thread(live_tid(3)).alloc(0x2000, 30, 0);
    pass_watermark();
    session.step_now();
    let scope = SnapshotScope::Pids(vec![std::os::unix::process::parent_id()]);
    let report =
        session.snapshot(SnapshotRequest { scope, ..SnapshotRequest::default() }).expect("it is known");
    let unknown =
        SnapshotRequest { scope: SnapshotScope::Pids(vec![u32::MAX]), ..SnapshotRequest::default() };
    assert!(matches!(session.snapshot(unknown), Err(Error::NotRecorded { pid: u32::MAX })));
    let recorded = stop(session, directory);
    let sizes: Vec<u64> =
        blocks_of(&recorded.trace, &report).values().map(|block| block.size_bytes).collect();
    assert_eq!(sizes, [20, 30]);
    assert_eq!(report.snapshot.processes.len(), 1);
    assert!(report.snapshot.processes[0].rss_bytes.is_some());
}

fn step_until(session: &mut Session, mut is_reached: impl FnMut(&SnapshotReport) -> bool) -> SnapshotReport {
    heapr_testkit::wait_until("such a snapshot is taken", || {
        session.step();
        session.take_snapshot_report().filter(&mut is_reached)
    })
}

#[test]
fn rules_take_snapshots_without_being_asked() {
    let (mut session, directory) = start(|_| {});
    let pool = join(&session);
    let process = Producer::exec(&pool, None);
    let mut thread = process.thread(live_tid(1));
    let rule = |when| SnapshotRule { when, pids: Vec::new(), graph: None };
    session.add_snapshot_rule(rule(SnapshotWhen::Every { interval: Duration::from_millis(100) }));
    session.add_snapshot_rule(rule(SnapshotWhen::AtRss { threshold_bytes: 1 }));
    session.add_snapshot_rule(rule(SnapshotWhen::OnGrowth { percent: 50 }));
    thread.alloc(0x1000, 2 << 20, 0);
    let by_time = SnapshotTrigger::Interval { interval_ms: 100 };
    let mut taken = Vec::new();
    let began = Instant::now();
    while taken.iter().filter(|&&trigger| trigger == by_time).count() < 3 {
        session.step();
        taken.extend(session.take_snapshot_report().map(|report| report.snapshot.trigger));
        assert!(began.elapsed() < heapr_testkit::LIMIT, "{taken:?}");
    }
    assert_eq!(taken.iter().filter(|trigger| matches!(trigger, SnapshotTrigger::Rss { .. })).count(), 1);
    assert_eq!(taken.iter().filter(|trigger| matches!(trigger, SnapshotTrigger::Growth { .. })).count(), 1);
    session.retain_snapshot_rules(|rule| matches!(rule.when, SnapshotWhen::OnGrowth { .. }));
    thread.alloc(0x2000, 2 << 20, 0);
    let grown =
        step_until(&mut session, |report| report.snapshot.trigger == SnapshotTrigger::Growth { percent: 50 });
    assert_eq!(grown.snapshot.block_bytes, 4 << 20);
    stop(session, directory);
}

#[test]
fn what_a_process_held_when_it_was_killed_is_in_its_last_snapshot() {
    let (mut session, directory) = start(|_| {});
    session.add_snapshot_rule(SnapshotRule { when: SnapshotWhen::AtExit, pids: Vec::new(), graph: None });
    let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("sleep runs");
    let pool = join(&session);
    let process = Producer::exec(&pool, Some(child.id()));
    let mut thread = process.thread(child.id());
    thread.alloc(0x1000, 11, 0);
    thread.alloc(0x2000, 22, 0);
    thread.free(0x1000);
    session.step_now();
    child.kill().expect("it is killed");
    let status = child.wait().expect("it is waited for");
    session.process_exited(child.id(), std::os::unix::process::ExitStatusExt::into_raw(status));
    let report = step_until(&mut session, |_| true);
    assert_eq!(report.snapshot.trigger, SnapshotTrigger::Killed { signal: 9 });
    assert_eq!(report.snapshot.processes[0].rss_bytes, None);
    let recorded = stop(session, directory);
    assert!(recorded.summary.snapshots.is_empty(), "one end, one snapshot");
    let sizes: Vec<u64> =
        blocks_of(&recorded.trace, &report).values().map(|block| block.size_bytes).collect();
    assert_eq!(sizes, [22]);
}

#[test]
fn a_snapshot_that_is_asked_for_at_the_end_is_taken() {
    let (mut session, directory) = start(|_| {});
    let pool = join(&session);
    let process = Producer::exec(&pool, None);
    process.thread(live_tid(1)).alloc(0x1000, 10, 0);
    session.request_snapshot(SnapshotRequest::default()).expect("there is room");
    let recorded = stop(session, directory);
    let [report] = recorded.summary.snapshots.as_slice() else { panic!("{:?}", recorded.summary.snapshots) };
    assert_eq!(report.snapshot.block_count, 1);
    assert!(report.ticket.is_some());
}
