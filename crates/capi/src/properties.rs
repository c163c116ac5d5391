//! Properties of a session in their C form.

use std::ffi::c_char;
use std::time::Duration;

use heapr_session::{LoggingMode, OnFull, SessionProperties, StackEvents};

use crate::result::{Failed, call, heapr_result};
use crate::strings::os_text;

/// Allocations carry stacks.
pub const HEAPR_STACK_ALLOC: u32 = 1;
/// Reallocations carry stacks.
pub const HEAPR_STACK_REALLOC: u32 = 2;
/// Frees carry stacks.
pub const HEAPR_STACK_FREE: u32 = 4;
/// The creation of heaps carries stacks.
pub const HEAPR_STACK_CREATE: u32 = 8;
/// The destruction of heaps carries stacks.
pub const HEAPR_STACK_DESTROY: u32 = 16;
/// Events that have stacks by default: allocations, reallocations, the creation of heaps.
pub const HEAPR_STACK_DEFAULT: u32 = HEAPR_STACK_ALLOC | HEAPR_STACK_REALLOC | HEAPR_STACK_CREATE;
const STACK_ALL: u32 = 31;

/// A thread that finds no free buffer waits.
pub const HEAPR_ON_FULL_BLOCK: u32 = 0;
/// A thread that finds no free buffer goes on, and the event is counted as lost.
pub const HEAPR_ON_FULL_DROP: u32 = 1;

/// Parts of the events that the file has.
#[allow(non_camel_case_types, reason = "the name in C")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub enum heapr_mode {
    /// All of them, in the file.
    HEAPR_MODE_TRACE = 0,
    /// The newest, in memory until the stop: circular.
    HEAPR_MODE_MEMORY = 1,
    /// Only the live heap, and snapshots of it.
    HEAPR_MODE_SNAPSHOT = 2,
}

/// Properties of a session. heapr_properties_init sets the defaults; then change what is to be
/// different.
#[allow(non_camel_case_types, reason = "the name in C")]
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct heapr_properties {
    /// Size of this structure, set by heapr_properties_init.
    pub size: usize,
    /// Path of the trace file. Must be set.
    pub output: *const c_char,
    /// Not 0: an existing file is overwritten.
    pub overwrite: u32,
    /// A `heapr_mode`.
    pub mode: u32,
    /// Bytes for events in HEAPR_MODE_MEMORY.
    pub memory_bytes: u64,
    /// The recording ends when the file has this size; 0: it has no bound.
    pub max_file_bytes: u64,
    /// Bytes per buffer: a power of two from 4096 to 1048576.
    pub buffer_bytes: usize,
    /// Buffers that are there from the start.
    pub min_buffers: usize,
    /// Most buffers.
    pub max_buffers: usize,
    /// Milliseconds between two states of the file that survive a crash.
    pub flush_timer_ms: u32,
    /// HEAPR_ON_FULL_BLOCK or HEAPR_ON_FULL_DROP.
    pub on_full: u32,
    /// Frames kept of a stack, innermost first; 0: all.
    pub max_frames: u32,
    /// Not 0: mmap, munmap and mremap are recorded as a second heap.
    pub record_mmap: u32,
    /// Not 0: children of the processes are recorded too.
    pub follow_children: u32,
}

/// Sets the defaults.
///
/// # Safety
/// `properties` points to a structure of this type that may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heapr_properties_init(properties: *mut heapr_properties) -> heapr_result {
    call(|| {
        if properties.is_null() || !properties.is_aligned() {
            return Err(Failed::invalid("the properties are a null or misaligned pointer"));
        }
        let defaults = SessionProperties::new(std::path::PathBuf::new());
        let value = heapr_properties {
            size: size_of::<heapr_properties>(),
            output: std::ptr::null(),
            overwrite: 0,
            mode: heapr_mode::HEAPR_MODE_TRACE as u32,
            memory_bytes: 0,
            max_file_bytes: 0,
            buffer_bytes: defaults.buffer_bytes,
            min_buffers: defaults.min_buffers,
            max_buffers: defaults.max_buffers,
            flush_timer_ms: u32::try_from(defaults.flush_timer.as_millis()).unwrap_or(u32::MAX),
            on_full: HEAPR_ON_FULL_BLOCK,
            max_frames: defaults.max_frames,
            record_mmap: u32::from(defaults.mmap),
            follow_children: u32::from(defaults.follow),
        };
        // SAFETY: not null and aligned (checked above), and the caller guarantees that it may be
        // written.
        unsafe { properties.write(value) };
        Ok(())
    })
}

/// Converts the properties from C.
///
/// # Safety
/// `properties` is null or points to a structure of this type whose `output` is null or a text.
pub(crate) unsafe fn from_c(properties: *const heapr_properties) -> Result<SessionProperties, Failed> {
    if properties.is_null() || !properties.is_aligned() {
        return Err(Failed::invalid("the properties are a null or misaligned pointer"));
    }
    // SAFETY: not null and aligned (checked above), and the caller guarantees the structure.
    let given = unsafe { properties.read() };
    if given.size != size_of::<heapr_properties>() {
        return Err(Failed::invalid(
            "the properties were not set by heapr_properties_init, or by that of another version",
        ));
    }
    // SAFETY: the caller guarantees it.
    let output = unsafe { os_text(given.output, "output") }?;
    let mut properties = SessionProperties::new(output.into());
    properties.overwrite = given.overwrite != 0;
    properties.mode = match given.mode {
        0 => LoggingMode::Trace,
        1 => LoggingMode::Memory { bytes: given.memory_bytes },
        2 => LoggingMode::Snapshot,
        other => return Err(Failed::invalid(&format!("{other} is no mode"))),
    };
    properties.max_file_bytes = (given.max_file_bytes != 0).then_some(given.max_file_bytes);
    properties.buffer_bytes = given.buffer_bytes;
    properties.min_buffers = given.min_buffers;
    properties.max_buffers = given.max_buffers;
    properties.flush_timer = Duration::from_millis(given.flush_timer_ms.into());
    properties.on_full = match given.on_full {
        HEAPR_ON_FULL_BLOCK => OnFull::Block,
        HEAPR_ON_FULL_DROP => OnFull::Drop,
        other => return Err(Failed::invalid(&format!("{other} is neither of HEAPR_ON_FULL_*"))),
    };
    properties.max_frames = given.max_frames;
    properties.mmap = given.record_mmap != 0;
    properties.follow = given.follow_children != 0;
    Ok(properties)
}

/// Converts the flags of the events that carry stacks.
pub(crate) fn stack_events(flags: u32) -> Result<StackEvents, Failed> {
    if flags & !STACK_ALL != 0 {
        return Err(Failed::invalid(&format!("{flags:#x} has flags that are none of HEAPR_STACK_*")));
    }
    Ok(StackEvents {
        alloc: flags & HEAPR_STACK_ALLOC != 0,
        realloc: flags & HEAPR_STACK_REALLOC != 0,
        free: flags & HEAPR_STACK_FREE != 0,
        create: flags & HEAPR_STACK_CREATE != 0,
        destroy: flags & HEAPR_STACK_DESTROY != 0,
    })
}
