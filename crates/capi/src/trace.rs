//! Sessions: start, update, query, mark, snapshot, stop, cancel.

use std::ffi::c_char;
use std::time::Duration;

use heapr_session::{GraphPause, GraphRequest, HeapTrace, ProgramCommand, StartRequest, Update};

use crate::properties::{from_c, heapr_properties, stack_events};
use crate::result::{Failed, call, heapr_result};
use crate::status::heapr_status;
use crate::strings::{arguments, pids, text};

/// A session. Made by heapr_start, ended by heapr_stop or heapr_cancel.
#[allow(non_camel_case_types, reason = "the name in C")]
#[derive(Debug)]
pub struct heapr_trace {
    session: HeapTrace,
}

/// Registers and starts a session for a set of processes, which may be empty. When it returns, the
/// processes are traced. `stack_events`: HEAPR_STACK_*. `*trace` is set to null if it fails.
///
/// # Safety
/// `trace` may be written; `properties` was set by heapr_properties_init and its `output` is a
/// text; `name` is a text; `pids` points to `pid_count` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heapr_start(
    trace: *mut *mut heapr_trace,
    properties: *const heapr_properties,
    name: *const c_char,
    pids: *const u32,
    pid_count: usize,
    stack_events: u32,
) -> heapr_result {
    call(|| {
        // SAFETY: the caller guarantees what the pointers lead to.
        let mut request = unsafe { request(trace, properties, name, stack_events) }?;
        // SAFETY: as above.
        request.pids = unsafe { crate::strings::pids(pids, pid_count) }?;
        // SAFETY: checked by `request`.
        unsafe { begin(trace, request) }
    })
}

/// As heapr_start, with a program that is started with the session and traced from its first
/// instruction. `argv` ends in a null pointer; its first text is the program's path. Its standard
/// input is empty; it is a child of this process.
///
/// # Safety
/// As heapr_start; `argv` is an array of texts that ends in a null pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heapr_start_program(
    trace: *mut *mut heapr_trace,
    properties: *const heapr_properties,
    name: *const c_char,
    argv: *const *const c_char,
    stack_events: u32,
) -> heapr_result {
    call(|| {
        // SAFETY: the caller guarantees what the pointers lead to.
        let mut request = unsafe { request(trace, properties, name, stack_events) }?;
        // SAFETY: as above.
        let words = unsafe { arguments(argv) }?;
        let Some(path) = words.first().cloned() else {
            return Err(Failed::invalid("there is no program among the arguments"));
        };
        request.program = Some(ProgramCommand { path, arguments: words });
        // SAFETY: checked by `request`.
        unsafe { begin(trace, request) }
    })
}

/// Checks `trace`, sets it to null, and reads the other arguments.
///
/// # Safety
/// The conditions of [`heapr_start`] hold.
unsafe fn request(
    trace: *mut *mut heapr_trace,
    properties: *const heapr_properties,
    name: *const c_char,
    flags: u32,
) -> Result<StartRequest, Failed> {
    if trace.is_null() || !trace.is_aligned() {
        return Err(Failed::invalid("the place for the trace is a null or misaligned pointer"));
    }
    // SAFETY: not null and aligned (checked above), and the caller guarantees that it may be
    // written.
    unsafe { trace.write(std::ptr::null_mut()) };
    // SAFETY: the caller guarantees it.
    let mut properties = unsafe { from_c(properties) }?;
    // SAFETY: the caller guarantees it.
    properties.name = unsafe { text(name, "name") }?;
    properties.stacks = stack_events(flags)?;
    Ok(StartRequest::new(properties))
}

/// # Safety
/// `trace` is as `request` has checked.
unsafe fn begin(trace: *mut *mut heapr_trace, request: StartRequest) -> Result<(), Failed> {
    let session = HeapTrace::start_request(request)?;
    // SAFETY: the condition of this function.
    unsafe { trace.write(Box::into_raw(Box::new(heapr_trace { session }))) };
    Ok(())
}

/// Returns the session of a handle.
///
/// # Safety
/// `trace` is null or a handle that is not ended, and no other call uses it meanwhile.
unsafe fn session<'a>(trace: *mut heapr_trace) -> Result<&'a mut HeapTrace, Failed> {
    // SAFETY: the condition of this function; null becomes `None`.
    let trace = unsafe { trace.as_mut() };
    trace.map(|trace| &mut trace.session).ok_or_else(|| Failed::invalid("the trace is a null pointer"))
}

/// Adds and removes processes, and chooses anew which events carry stacks (HEAPR_STACK_*). If some
/// processes fail the others are done all the same, and the result is that of the first that
/// failed.
///
/// # Safety
/// `trace` is a handle that is not ended; `add` and `remove` point to as many numbers as their
/// counts say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heapr_update(
    trace: *mut heapr_trace,
    add: *const u32,
    add_count: usize,
    remove: *const u32,
    remove_count: usize,
    stack_events: u32,
) -> heapr_result {
    call(|| {
        // SAFETY: the caller guarantees it.
        let session = unsafe { session(trace) }?;
        // SAFETY: the caller guarantees it.
        let add_pids = unsafe { pids(add, add_count) }?;
        // SAFETY: the caller guarantees it.
        let remove_pids = unsafe { pids(remove, remove_count) }?;
        let stacks = Some(crate::properties::stack_events(stack_events)?);
        let report = session.update(Update { add_pids, remove_pids, stacks, ..Update::default() })?;
        match report.failed.into_iter().next() {
            Some((_, failure)) => Err(Failed::of_kind(failure.kind, failure.message)),
            None => Ok(()),
        }
    })
}

/// Tells how a session stands.
///
/// # Safety
/// `trace` is a handle that is not ended; `status` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heapr_query(trace: *mut heapr_trace, status: *mut heapr_status) -> heapr_result {
    call(|| {
        // SAFETY: the caller guarantees it.
        let session = unsafe { session(trace) }?;
        if status.is_null() || !status.is_aligned() {
            return Err(Failed::invalid("the status is a null or misaligned pointer"));
        }
        let value = heapr_status::of_status(&session.query()?);
        // SAFETY: not null and aligned (checked above), and the caller guarantees that it may be
        // written.
        unsafe { status.write(value) };
        Ok(())
    })
}

/// Puts a text into the trace, with the time.
///
/// # Safety
/// `trace` is a handle that is not ended; `marker` is a text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heapr_mark(trace: *mut heapr_trace, marker: *const c_char) -> heapr_result {
    call(|| {
        // SAFETY: the caller guarantees it.
        let session = unsafe { session(trace) }?;
        // SAFETY: the caller guarantees it.
        let marker = unsafe { text(marker, "marker") }?;
        Ok(session.mark(&marker)?)
    })
}

/// Takes a snapshot of the live heaps of some processes, or of all (`pid_count` 0), without
/// stopping them.
///
/// # Safety
/// `trace` is a handle that is not ended; `name` is a text; `pids` points to `pid_count` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heapr_snapshot(
    trace: *mut heapr_trace,
    name: *const c_char,
    pids: *const u32,
    pid_count: usize,
) -> heapr_result {
    call(|| {
        // SAFETY: the caller guarantees it.
        let session = unsafe { session(trace) }?;
        // SAFETY: the caller guarantees it.
        let name = unsafe { text(name, "name") }?;
        // SAFETY: the caller guarantees it.
        let pids = unsafe { crate::strings::pids(pids, pid_count) }?;
        session.snapshot(&name, &pids)?;
        Ok(())
    })
}

/// Takes a snapshot of the live heap of one process with its graph: which block refers to which,
/// and what holds them. `stops` 0: the process stands still until its memory is copied, for at most
/// `max_pause_ms`. 1: it stands still until all is read, without a copy. 2: it does not stand
/// still, and is read twice while it runs.
///
/// # Safety
/// `trace` is a handle that is not ended; `name` is a text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heapr_graph_snapshot(
    trace: *mut heapr_trace,
    name: *const c_char,
    pid: u32,
    max_pause_ms: u32,
    stops: i32,
) -> heapr_result {
    call(|| {
        // SAFETY: the caller guarantees it.
        let session = unsafe { session(trace) }?;
        // SAFETY: the caller guarantees it.
        let name = unsafe { text(name, "name") }?;
        let max_pause = Duration::from_millis(u64::from(max_pause_ms));
        let pause = match stops {
            0 => GraphPause::Copy,
            2 => GraphPause::None,
            _ => GraphPause::Stop,
        };
        let graph = GraphRequest { max_pause, pause, ..GraphRequest::default() };
        session.graph_snapshot(&name, pid, graph)?;
        Ok(())
    })
}

/// Ends a session: what is in the buffers is taken, the file is completed, the processes run on as
/// they were. The handle is given back whatever the result. `status`, if not null, gets the totals.
///
/// # Safety
/// `trace` is a handle that is not ended, and is not used again; `status` is null or may be
/// written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heapr_stop(trace: *mut heapr_trace, status: *mut heapr_status) -> heapr_result {
    call(|| {
        // SAFETY: the caller guarantees it.
        let session = unsafe { taken(trace) }?;
        let summary = session.stop()?;
        if !status.is_null() && status.is_aligned() {
            // SAFETY: not null and aligned (checked above), and the caller guarantees that it may
            // be written.
            unsafe { status.write(heapr_status::of_summary(&summary)) };
        }
        match summary.write_error {
            Some(error) => Err(Failed { result: heapr_result::HEAPR_OUTPUT, message: error.to_string() }),
            None => Ok(()),
        }
    })
}

/// Ends a session and removes its file. The handle is given back whatever the result.
///
/// # Safety
/// `trace` is a handle that is not ended, and is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heapr_cancel(trace: *mut heapr_trace) -> heapr_result {
    call(|| {
        // SAFETY: the caller guarantees it.
        let session = unsafe { taken(trace) }?;
        Ok(session.cancel()?)
    })
}

/// Takes the session out of its handle, and frees the handle.
///
/// # Safety
/// `trace` is null or a handle that is not ended, and is not used again.
unsafe fn taken(trace: *mut heapr_trace) -> Result<HeapTrace, Failed> {
    if trace.is_null() {
        return Err(Failed::invalid("the trace is a null pointer"));
    }
    // SAFETY: a handle comes from `Box::into_raw` in `begin`, and the caller gives it up.
    Ok(unsafe { Box::from_raw(trace) }.session)
}
