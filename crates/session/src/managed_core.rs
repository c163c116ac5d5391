//! Reads the heap of a managed language from the core file of a process that has ended.

use std::path::PathBuf;

use heapr_glibc_heap::Plan;
use heapr_managed::{Contents, HeapRequest, Interpreter, ManagedHeap, NativeBlock};
use heapr_proc::CoreFile;

use crate::Error;
use crate::core_snapshot::open_core;
use crate::snapshots::managed_capture::native_blocks;

/// Input of [`managed_heap_of_core`].
#[derive(Debug, Clone)]
pub struct ManagedCoreRequest {
    /// Interpreter whose heap is read.
    pub interpreter: Interpreter,
    /// Path of the core file.
    pub core: PathBuf,
    /// Program of the core file, if it is not at its path any more.
    pub executable: Option<PathBuf>,
    /// Root of the files of the machine on which the core was written.
    pub sysroot: Option<PathBuf>,
    /// Contents that are written.
    pub contents: Contents,
}

/// Reads the heap of a core file. What could not be seen is among the notes of the heap.
///
/// # Errors
/// The file is not a core file, or no heap can be read in it; the reason is part of the error.
pub fn managed_heap_of_core(request: &ManagedCoreRequest) -> Result<ManagedHeap, Error> {
    let refuse = |reason: String| Error::Core { path: request.core.clone(), reason };
    let (core, mut notes) =
        open_core(&request.core, request.executable.as_deref(), request.sysroot.as_deref())?;
    let blocks = match blocks_of(&core) {
        Ok(blocks) => blocks,
        Err(reason) => {
            notes.push(format!("native blocks are not in it: {reason}"));
            Vec::new()
        }
    };
    let read = request.interpreter.read(&HeapRequest {
        memory: &core,
        mappings: core.mappings(),
        blocks: &blocks,
        contents: request.contents,
        goes_on: &|| true,
    });
    let mut heap =
        read.map_err(|reason| refuse(format!("the heap of its process cannot be read: {reason}")))?;
    heap.notes.extend(notes);
    Ok(heap)
}

/// Returns the version of the interpreter that the process of a core file ran; `None` if no heap of
/// one can be read in it.
#[must_use]
pub fn managed_runtime_of_core(request: &ManagedCoreRequest) -> Option<String> {
    let (core, _) =
        open_core(&request.core, request.executable.as_deref(), request.sysroot.as_deref()).ok()?;
    request.interpreter.check(&core, core.mappings()).ok()
}

fn blocks_of(core: &CoreFile) -> Result<Vec<NativeBlock>, heapr_glibc_heap::Error> {
    let plan = Plan::make(core)?;
    let mut room = plan.room(core);
    let thread_pointers: Vec<u64> = core.threads().iter().map(|thread| thread.thread_pointer).collect();
    let rundown = heapr_glibc_heap::walk(&plan, core, &thread_pointers, &mut room)?;
    Ok(native_blocks(rundown.blocks()))
}
