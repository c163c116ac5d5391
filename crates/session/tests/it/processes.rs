//! Tests of processes and threads that come, exec, and go.

use std::process::{Command, Stdio};
use std::sync::atomic::Ordering::{Relaxed, Release};

use heapr_ring::reader;
use heapr_ring::writer::{self, BufferUse, NO_CLAIM, ProcessClaim};
use heapr_session::OnFull;
use heapr_trace::ProcessOrigin;
use heapr_wire::{NO_SLOT, ORIGIN_EXEC, PROCESS_FREE};

use crate::producer::{Producer, join, live_tid, ticks};
use crate::recording::{pass_watermark, start, stop};

/// Returns the id of a process that has ended.
fn dead_pid() -> u32 {
    let mut child = Command::new("true").stdin(Stdio::null()).spawn().expect("true runs");
    child.wait().expect("it ends");
    child.id()
}

#[test]
fn images_that_follow_each_other_by_exec_within_one_round_lose_nothing() {
    let (mut session, directory) = start(|_| ());
    let pool = join(&session);
    for image in 0..5_u64 {
        let process = Producer::exec(&pool, Some(4_000_000));
        let mut thread = process.thread(4_000_000);
        for block in 0..300 {
            assert!(thread.alloc(0x1000 * (image + 1) + block * 16, 1, 0));
        }
    }
    for _ in 0..3 {
        pass_watermark();
        session.step_now();
    }
    let recorded = stop(session, directory);
    assert_eq!(recorded.trace.processes().len(), 5);
    assert_eq!(recorded.summary.summary.totals.alloc_count, 1500);
    assert_eq!(recorded.summary.statistics.loss, heapr_trace::Loss::default());
}

#[test]
fn a_program_that_ends_before_anybody_looks_and_allocates_nothing_has_its_name() {
    let (mut session, directory) = start(|_| ());
    let pool = join(&session);
    Producer::exec(&pool, Some(dead_pid()));
    Producer::exec(&pool, Some(dead_pid())).fork(dead_pid());
    session.step_now();
    let recorded = stop(session, directory);
    let names: Vec<&str> = recorded.trace.processes().iter().map(heapr_trace::Process::name).collect();
    assert_eq!(names, ["producer"; 3]);
}

#[test]
fn of_a_path_the_slot_has_the_whole_file_name_or_nothing() {
    let (session, directory) = start(|_| ());
    let pool = join(&session);
    let longest = "n".repeat(heapr_wire::EXECUTABLE_NAME_BYTES_MAX);
    for (path, name) in [
        ("/usr/bin/true", "true"),
        ("/opt/My App/app (deleted)", "app (deleted)"),
        ("plain", "plain"),
        ("", ""),
        (&format!("/{longest}"), &longest),
        (&format!("/{longest}n"), ""),
    ] {
        let claim = ProcessClaim {
            process_id: 0,
            parent_id: 0,
            origin: ORIGIN_EXEC,
            parent_slot: NO_SLOT,
            start_ticks: 0,
            has_own_malloc: false,
            executable: path.as_bytes(),
        };
        let claim = writer::claim_process(&pool, claim).expect("a free process slot");
        let slot = pool.process_slot(claim.index).expect("the slot");
        let bytes = reader::executable_name(slot);
        assert_eq!(bytes[..name.len()], *name.as_bytes());
        assert!(bytes[name.len()..].iter().all(|&byte| byte == 0), "{path}");
        slot.state.store(PROCESS_FREE, Release);
    }
    stop(session, directory);
}

/// Frees the slot of an image that the recorder has not seen, as if it had been read to its end.
fn give_up(image: &Producer<'_>) {
    let slot = image.pool.process_slot(image.claim.index).expect("its slot");
    slot.state.store(PROCESS_FREE, Release);
}

#[test]
fn an_image_in_a_lower_slot_than_the_one_before_it_lives_on() {
    let (mut session, directory) = start(|_| ());
    let pool = join(&session);
    let other = Producer::exec(&pool, Some(dead_pid()));
    let before = Producer::exec(&pool, None);
    let mut thread = before.thread(live_tid(1));
    assert!(thread.alloc(0x100, 1, 0));
    give_up(&other);
    let after = Producer::exec(&pool, None);
    assert!(after.claim.index < before.claim.index);
    let mut thread = after.thread(live_tid(2));
    // Over several checks of the processes.
    for round in 0..4_u64 {
        for block in 0..100 {
            assert!(thread.alloc(0x1000 * (round + 1) + block * 16, 1, 0));
        }
        session.step_now();
        std::thread::sleep(std::time::Duration::from_millis(110));
        session.step_now();
    }
    assert_eq!(session.live_process_count(), 1);
    let recorded = stop(session, directory);
    assert_eq!(recorded.summary.statistics.loss, heapr_trace::Loss::default());
    assert_eq!(recorded.summary.summary.totals.alloc_count, 401);
    let [first, second] = recorded.trace.processes() else { panic!("{:?}", recorded.trace.processes()) };
    assert!(first.start_ns < second.start_ns);
    // The image ended when the next one began, not when that was noticed.
    assert_eq!(first.end_ns, Some(second.start_ns));
}

#[test]
fn a_child_in_a_lower_slot_than_its_parent_is_its_child() {
    let (mut session, directory) = start(|_| ());
    let pool = join(&session);
    let other = Producer::exec(&pool, Some(dead_pid()));
    let parent = Producer::exec(&pool, None);
    let mut thread = parent.thread(live_tid(1));
    assert!(thread.alloc(0x100, 10, 0));
    give_up(&other);
    let child = parent.fork(dead_pid());
    assert!(child.claim.index < parent.claim.index);
    assert!(child.thread(4_000_001).free(0x100));
    pass_watermark();
    session.step_now();
    let recorded = stop(session, directory);
    let parent = heapr_trace::ProcessIndex(0);
    let [first, second] = recorded.trace.processes() else { panic!("{:?}", recorded.trace.processes()) };
    assert_eq!(second.origin, ProcessOrigin::Fork { parent });
    // The child had ended before it was seen, and ran its parent's program.
    assert!(!first.executable.is_empty() && !first.command_line.is_empty());
    assert_eq!((&second.executable, &second.command_line), (&first.executable, &first.command_line));
    let totals = recorded.summary.summary.totals;
    assert_eq!((totals.inherited_frees, totals.unmatched_frees), (1, 0));
}

#[test]
fn a_child_that_has_gone_on_to_another_program_was_its_parents() {
    let (mut session, directory) = start(|_| ());
    let pool = join(&session);
    let parent = Producer::exec(&pool, None);
    let mut other = Command::new("sleep").arg("60").spawn().expect("sleep runs");
    let child = parent.fork(other.id());
    let mut thread = child.thread(other.id());
    assert!(thread.alloc(0x100, 10, 0));
    session.step_now();
    other.kill().and_then(|()| other.wait()).expect("it is killed");
    let recorded = stop(session, directory);
    let [first, second] = recorded.trace.processes() else { panic!("{:?}", recorded.trace.processes()) };
    assert_eq!((&second.executable, &second.command_line), (&first.executable, &first.command_line));
}

#[test]
fn what_a_dead_process_had_published_is_read() {
    let (mut session, directory) = start(|_| ());
    let pool = join(&session);
    let pid = dead_pid();
    let process = Producer::exec(&pool, Some(pid));
    let mut thread = process.thread(pid);
    for block in 0..1000_u64 {
        assert!(thread.alloc(0x1000 + block * 16, 1, 0));
    }
    // The thread died in the middle of an event.
    assert!(thread.begin(3));
    session.look_for_ends();
    let buffers = 0..pool.buffer_count() as u32;
    heapr_testkit::wait_until("all its buffers are free again", || {
        session.step_now();
        let is_free = |index| heapr_ring::reader::claimed_buffer(&pool, index).is_none();
        buffers.clone().all(is_free).then_some(())
    });
    assert_eq!(session.live_process_count(), 0);
    let recorded = stop(session, directory);
    assert_eq!(recorded.summary.summary.totals.alloc_count, 1000);
}

#[test]
fn a_process_elsewhere_that_has_ended_is_not_taken_for_one_of_its_number_here() {
    let (mut session, directory) = start(|_| ());
    let pool = join(&session);
    let process = Producer::exec(&pool, Some(1));
    // The namespace 7 does not exist; process 1 lives here.
    pool.process_slot(process.claim.index).expect("its slot").namespace.store(7, Relaxed);
    let mut thread = process.thread(2);
    assert!(thread.alloc(0x100, 10, 0));
    pass_watermark();
    session.step_now();
    session.look_for_ends();
    assert_eq!(session.live_process_count(), 0);
    let recorded = stop(session, directory);
    assert_eq!((recorded.trace.processes()[0].pid, recorded.summary.summary.totals.alloc_count), (1, 1));
}

#[test]
fn a_forked_child_frees_what_it_inherited() {
    let (mut session, directory) = start(|_| ());
    let pool = join(&session);
    let parent = Producer::exec(&pool, None);
    let mut thread = parent.thread(live_tid(1));
    assert!(thread.alloc(0x100, 10, 0));
    pass_watermark();
    session.step_now();
    let child = parent.fork(4_000_001);
    let mut child_thread = child.thread(4_000_001);
    assert!(child_thread.free(0x100));
    pass_watermark();
    session.step_now();
    let recorded = stop(session, directory);
    let parent = heapr_trace::ProcessIndex(0);
    assert_eq!(recorded.trace.processes()[1].origin, ProcessOrigin::Fork { parent });
    let totals = recorded.summary.summary.totals;
    assert_eq!((totals.inherited_frees, totals.unmatched_frees, totals.outstanding_bytes), (1, 0, 10));
}

#[test]
fn processes_and_threads_start_when_they_say_and_not_at_the_round_before() {
    let (mut session, directory) = start(|_| ());
    session.step_now();
    let pool = join(&session);
    std::thread::sleep(std::time::Duration::from_millis(30));
    let process = Producer::exec(&pool, None);
    let mut thread = process.thread(live_tid(1));
    assert!(thread.alloc(0x100, 10, 0));
    session.step_now();
    let recorded = stop(session, directory);
    assert!(recorded.trace.processes()[0].start_ns >= 30_000_000);
    assert!(recorded.trace.threads()[0].start_ns >= 30_000_000);
}

#[test]
fn losses_reach_the_file_by_process_and_thread() {
    let (session, directory) = start(|properties| {
        properties.on_full = OnFull::Drop;
        properties.max_buffers = 2;
    });
    let pool = join(&session);
    let process = Producer::exec(&pool, None);
    let mut thread = process.thread(live_tid(3));
    let slot = pool.thread_slot(thread.claim.index).expect("its slot");
    let mut written_count = 0;
    for block in 0..1000_u64 {
        if thread.alloc(0x1000 + block * 16, 1, 0) {
            written_count += 1;
        } else {
            slot.events_lost.store(slot.events_lost.load(Relaxed) + 1, Relaxed);
        }
    }
    pool.process_slot(process.claim.index).expect("its slot").events_lost.store(3, Relaxed);
    pool.control().processes_refused.store(2, Relaxed);
    let recorded = stop(session, directory);
    assert!(written_count < 1000);
    assert_eq!(recorded.summary.summary.totals.alloc_count, written_count);
    let loss = recorded.summary.statistics.loss;
    assert_eq!((loss.events_lost, loss.processes_refused), (1000 - written_count + 3, 2));
    let of_thread =
        recorded.trace.losses().iter().find(|entry| entry.thread.is_some()).expect("the thread's loss");
    assert_eq!(of_thread.loss.events_lost, 1000 - written_count);
    let in_file: u64 = recorded.trace.losses().iter().map(|entry| entry.loss.events_lost).sum();
    assert_eq!(in_file, loss.events_lost);
}

#[test]
fn a_buffer_whose_owner_is_gone_is_counted_and_freed() {
    let (mut session, directory) = start(|_| ());
    let pool = join(&session);
    let process = Producer::exec(&pool, None);
    let mut thread = process.thread(live_tid(1));
    assert!(thread.alloc(0x100, 10, 0));
    let ghost = writer::SlotClaim { generation: thread.claim.generation + 9, ..thread.claim };
    let index =
        writer::claim_buffer(&pool, BufferUse::Events { thread: ghost, sequence: 0 }, ticks(&pool)).unwrap();
    session.step_now();
    assert!(heapr_ring::reader::claimed_buffer(&pool, index).is_none());
    let recorded = stop(session, directory);
    assert_eq!(recorded.summary.statistics.loss.records_invalid, 1);
    assert_eq!(recorded.trace.threads().len(), 1);
    assert_ne!(ghost, NO_CLAIM);
}

#[test]
fn a_node_block_that_was_given_back_is_not_read_for_its_first_owner() {
    let (mut session, directory) = start(|_| ());
    let pool = join(&session);
    let mut process = Producer::exec(&pool, None);
    let node = process.node(0, 0x4000);
    // Two threads wanted the same block; the loser of the race gives its buffer back after the
    // recorder has seen it.
    let purpose = BufferUse::Nodes { process: process.claim, block: 0 };
    let loser = writer::claim_buffer(&pool, purpose, ticks(&pool)).expect("a free buffer");
    session.step_now();
    writer::unclaim_buffer(&pool, loser);
    let mut thread = process.thread(live_tid(1));
    assert!(thread.alloc(0x9999_0000, 10, node));
    assert_eq!(thread.buffer, Some(loser));
    for block in 0..50 {
        assert!(thread.alloc(0x9999_1000 + block * 16, 10, node));
    }
    pass_watermark();
    session.step_now();
    let recorded = stop(session, directory);
    assert_eq!(recorded.events.len(), 51);
    for event in &recorded.events {
        let heapr_trace::Action::Alloc { stack, .. } = event.action else { panic!("{event:?}") };
        let stacks = recorded.trace.stacks();
        // Below the frame of malloc.
        assert_eq!(stacks.node(stacks.parent(stack)).expect("a stack").return_address_avma, 0x4000);
    }
}

#[test]
fn a_node_is_known_although_one_before_it_is_not_written_yet() {
    let (mut session, directory) = start(|_| ());
    let pool = join(&session);
    let mut process = Producer::exec(&pool, None);
    let mut thread = process.thread(live_tid(1));
    // Another thread has reserved a number and lost its processor before it wrote the node.
    let late = process.take_node_number();
    let (parent, node) = (process.node(0, 0x4000), process.node(2, 0x5000));
    assert_eq!((late, parent, node), (1, 2, 3));
    assert!(thread.alloc(0x1000, 8, node));
    pass_watermark();
    session.step_now();
    process.write_node(late, 0, 0x6000);
    assert!(thread.alloc(0x2000, 8, late) && thread.alloc(0x3000, 8, process.node(late, 0x7000)));
    pass_watermark();
    session.step_now();
    let recorded = stop(session, directory);
    assert_eq!(recorded.summary.statistics.loss, heapr_trace::Loss::default());
    let frames = |event: &heapr_trace::Event| {
        let heapr_trace::Action::Alloc { stack, .. } = event.action else {
            unreachable!("only allocations were written")
        };
        let stacks = recorded.trace.stacks();
        // Below the frame of malloc.
        let node = stacks.node(stacks.parent(stack)).expect("a stack");
        (node.return_address_avma, stacks.node(node.parent).map(|caller| caller.return_address_avma))
    };
    let found: Vec<_> = recorded.events.iter().map(frames).collect();
    assert_eq!(found, [(0x5000, Some(0x4000)), (0x6000, None), (0x7000, Some(0x6000))]);
}
