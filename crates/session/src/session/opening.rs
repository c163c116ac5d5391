//! Start of a session: its description in the file, and the control page that lets agents in.

use std::sync::atomic::Ordering::{Relaxed, Release};
use std::time::{SystemTime, UNIX_EPOCH};

use heapr_ring::Pool;
use heapr_wire::{
    FLAG_CLOCK_TSC, FLAG_DROP_ON_FULL, FLAG_HOOK_MMAP, FLAG_LOOK_INSIDE, FLAG_NO_FOLLOW, FLAG_NO_LANGUAGES,
    FLAG_SAMPLED, FLAG_SEE_EXITS, FLAG_STACK_ALLOC, FLAG_STACK_CREATE, FLAG_STACK_DESTROY, FLAG_STACK_FREE,
    FLAG_STACK_REALLOC, FLAG_STACK_SPECIAL, SAMPLE_ALL, SESSION_RECORDING,
};

use crate::recorder::facts::{process_facts, system_facts};
use crate::recorder::intake::clock::{Clock, ClockSource};
use crate::recorder::output::sink::Sink;
use crate::{Error, OnFull, SampleRate, SessionProperties, StackEvents};

/// Checks that the buffers fit into free memory: with too much shared memory the kernel kills a
/// process of its choice.
pub(super) fn check_memory(properties: &SessionProperties) -> Result<(), Error> {
    let needed_bytes = properties.min_buffers.saturating_mul(properties.buffer_bytes) as u64;
    match heapr_proc::Fields::of_machine().bytes("MemAvailable") {
        Some(available_bytes) if needed_bytes > available_bytes => {
            Err(Error::OutOfMemory { needed_mib: needed_bytes >> 20, available_mib: available_bytes >> 20 })
        }
        _ => Ok(()),
    }
}

pub(super) fn unix_ns() -> u64 {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since_1970.as_nanos()).unwrap_or(0)
}

/// Flags that may change while a session runs.
pub(super) const STACK_FLAGS: u32 =
    FLAG_STACK_ALLOC | FLAG_STACK_REALLOC | FLAG_STACK_FREE | FLAG_STACK_CREATE | FLAG_STACK_DESTROY;

pub(super) fn stack_flags(stacks: StackEvents) -> u32 {
    let flags = [
        (stacks.alloc, FLAG_STACK_ALLOC),
        (stacks.realloc, FLAG_STACK_REALLOC),
        (stacks.free, FLAG_STACK_FREE),
        (stacks.create, FLAG_STACK_CREATE),
        (stacks.destroy, FLAG_STACK_DESTROY),
    ];
    flags.into_iter().filter(|&(is_on, _)| is_on).fold(0, |all, (_, flag)| all | flag)
}

/// Writes what is known at the start into the file.
pub(super) fn describe(
    sink: &mut Sink,
    properties: &SessionProperties,
    source: ClockSource,
    start_unix_ns: u64,
) {
    let session = heapr_trace::Session {
        name: properties.name.clone(),
        heapr_version: env!("CARGO_PKG_VERSION").to_owned(),
        command_line: properties.command_line.clone(),
        start_unix_ns,
        clock: source.name().to_owned(),
        buffer_bytes: properties.buffer_bytes as u32,
        min_buffers: properties.min_buffers as u32,
        max_buffers: properties.max_buffers as u32,
        flush_timer_ms: u32::try_from(properties.flush_timer.as_millis()).unwrap_or(u32::MAX),
        on_full: match properties.on_full {
            OnFull::Block => "block".to_owned(),
            OnFull::Drop => "drop".to_owned(),
        },
        stacks: properties.stacks.to_text(),
        max_frames: properties.max_frames,
    };
    let outcome =
        sink.writer.set_system(&system_facts::system()).and_then(|()| sink.writer.set_session(&session));
    sink.keep(outcome);
}

/// Fills in the control page. Its state, stored last, lets the agents in.
pub(super) fn open_pool(
    pool: &Pool,
    clock: &Clock,
    source: ClockSource,
    properties: &SessionProperties,
    looks_inside: bool,
) {
    let flags = [
        (source == ClockSource::Tsc, FLAG_CLOCK_TSC),
        (properties.on_full == OnFull::Drop, FLAG_DROP_ON_FULL),
        (properties.mmap, FLAG_HOOK_MMAP),
        (!properties.follow, FLAG_NO_FOLLOW),
        (looks_inside, FLAG_LOOK_INSIDE),
        (!properties.languages, FLAG_NO_LANGUAGES),
        (properties.graph_at_exit, FLAG_SEE_EXITS),
        (properties.sample.is_some(), FLAG_SAMPLED),
    ];
    let flags = flags.into_iter().filter(|&(is_on, _)| is_on).fold(0, |all, (_, flag)| all | flag);
    let is_special = properties.max_frames | properties.verify_every != 0;
    let flags = flags | stack_flags(properties.stacks) | if is_special { FLAG_STACK_SPECIAL } else { 0 };
    let control = pool.control();
    control.flags.store(flags, Relaxed);
    control
        .sample_mean_bytes
        .store(properties.sample.map_or(SAMPLE_ALL, SampleRate::first_mean_bytes), Relaxed);
    control.max_frames.store(properties.max_frames, Relaxed);
    control.verify_every.store(properties.verify_every, Relaxed);
    control.recorder_pid.store(std::process::id(), Relaxed);
    control.recorder_namespace.store(process_facts::own_namespace(), Relaxed);
    control.recorder_uid.store(process_facts::own_user(), Relaxed);
    let start_time = heapr_proc::start_ticks(std::process::id()).unwrap_or(0);
    control.recorder_start_time.store(start_time, Relaxed);
    control.start_ticks.store(clock.start_ticks(), Relaxed);
    // Release: a reader of the state also sees the rest.
    control.state.store(SESSION_RECORDING, Release);
}
