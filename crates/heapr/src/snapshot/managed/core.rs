//! `heapr snapshot graph --core FILE --heap python`: the objects of a process that has ended.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use heapr_session::{ManagedCoreRequest, managed_heap_of_core};

use super::heap_facts::{HeapFacts, create, write};

/// Output of a snapshot of a core file.
pub(crate) struct CoreOutput {
    /// Path of the snapshot; `None`: the core's name with `.heapsnapshot`.
    pub(crate) path: Option<PathBuf>,
    /// Whether an existing file may be overwritten.
    pub(crate) overwrites: bool,
    /// Whether the result is printed as JSON.
    pub(crate) is_json: bool,
    /// True if no text is printed.
    pub(crate) is_quiet: bool,
}

/// Reads the heap of a core file and writes the snapshot.
///
/// # Errors
/// No heap can be read, or the file cannot be written.
pub(crate) fn take_of_core(request: &ManagedCoreRequest, output: CoreOutput) -> anyhow::Result<ExitCode> {
    let CoreOutput { path, overwrites, is_json, is_quiet } = output;
    let path = path.unwrap_or_else(|| default_path(&request.core));
    let file = create(&path, overwrites)?;
    let begin = Instant::now();
    let mut heap = managed_heap_of_core(request)?;
    write(&mut heap, file, &path)?;
    let facts = HeapFacts::of(&heap);
    if is_json {
        let mut all = facts.json(&path, request.contents);
        all["schema"] = "heapr.snapshot.graph/1".into();
        crate::plain_text::say_json(&all);
    } else if !is_quiet {
        facts.print(&path, begin.elapsed());
        facts.print_rest();
    }
    Ok(ExitCode::SUCCESS)
}

fn default_path(core: &Path) -> PathBuf {
    let name = core.file_name().unwrap_or_default().to_string_lossy().into_owned();
    PathBuf::from(format!("{name}.heapsnapshot"))
}
