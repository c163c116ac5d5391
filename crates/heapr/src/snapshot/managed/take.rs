//! `heapr snapshot take` of processes with a managed heap.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::bail;
use heapr_known::runtimes::{self, Runtime};
use heapr_managed::{Contents, Interpreter, ManagedHeap};
use heapr_session::{ManagedRequest, ManagedTaken, managed_heap, managed_runtime, may_be_read};
use heapr_table::quantity::duration;
use serde_json::{Value, json};

use super::heap_facts::{HeapFacts, create, write};
use super::recorded_stacks::RecordedStacks;
use crate::processes;
use crate::snapshot::native::{NativeTakeOptions, free_name, told_before};
use crate::snapshot_take::{Format, TakeQuestion};

/// Heap that a snapshot is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum HeapChoice {
    /// Objects of CPython, 3.8 to 3.15
    Python,
    /// Objects of Ruby, 3.1 and 3.3
    Ruby,
    /// Objects of a HotSpot Java virtual machine, which stops to write them
    Java,
    /// Objects of .NET (3.1 and 8 tried), which stops to tell them
    Dotnet,
    /// Objects of V8 (Node, Deno, Electron, Chrome)
    Javascript,
    /// Blocks of the C library's heap, or of another allocator
    Native,
}

impl HeapChoice {
    /// Interpreter whose objects are read from memory; `None` for other heaps.
    pub(crate) const fn interpreter(self) -> Option<Interpreter> {
        match self {
            Self::Python => Some(Interpreter::Python),
            Self::Ruby => Some(Interpreter::Ruby),
            Self::Java | Self::Dotnet | Self::Javascript | Self::Native => None,
        }
    }
}

/// True if a snapshot without `--heap` is of an interpreter's objects: the process runs one, and
/// its objects can be read. If they cannot, the reason is told.
pub(crate) fn is_chosen(pid: u32, is_quiet: bool) -> bool {
    let Some(interpreter) = interpreter_of(pid) else { return false };
    // A process that may not be read is refused by either heap, with advice.
    match managed_runtime(pid, interpreter) {
        Err(reason) if may_be_read(pid) => {
            if !is_quiet {
                tell!("heapr: {reason}; so its native heap is taken");
            }
            false
        }
        Ok(_) | Err(_) => true,
    }
}

/// Interpreter that a process's program or one of its libraries is, by their names.
pub(super) fn interpreter_of(pid: u32) -> Option<Interpreter> {
    let mappings = heapr_proc::mappings::read(pid).unwrap_or_default();
    let mut files = mappings.iter().filter(|mapping| mapping.is_executable && mapping.inode != 0);
    files.find_map(|mapping| {
        let name = mapping.name.rsplit('/').next().unwrap_or_default();
        match runtimes::of_file(name)?.runtime {
            Runtime::Python => Some(Interpreter::Python),
            Runtime::Ruby => Some(Interpreter::Ruby),
            _ => None,
        }
    })
}

/// Runs the command.
pub(crate) fn take(
    asked: &TakeQuestion,
    heap: Option<HeapChoice>,
    options: &NativeTakeOptions,
    is_quiet: bool,
) -> anyhow::Result<ExitCode> {
    let pids = processes::named_with_children(&asked.pids, asked.tree)?;
    let (pause, request) = options.managed()?;
    let named = asked.output.as_deref().filter(|path| !path.is_dir());
    if named.and_then(Path::extension).is_some_and(|end| end == "heapr") {
        bail!("-o names a .heapr, and objects are written as .heapsnapshot: --heap native writes a .heapr");
    }
    if named.is_some() && pids.len() > 1 {
        bail!("-o names one file, and these are {} processes: each has a file of its own", pids.len());
    }
    let mut status = ExitCode::SUCCESS;
    let mut taken = Vec::new();
    for pid in pids {
        let interpreter = heap.and_then(HeapChoice::interpreter).or_else(|| interpreter_of(pid));
        let request = ManagedRequest { interpreter: interpreter.unwrap_or_default(), ..request };
        // A process that is refused is not stopped.
        let is_told =
            !is_quiet && asked.format == Format::Text && managed_runtime(pid, request.interpreter).is_ok();
        if let Some(told) = told_before(pid, pause).filter(|_| is_told) {
            tell!("heapr: {told}");
        }
        let path = output(asked.output.as_deref(), pid, asked.force);
        match take_one(pid, path, asked.force, &request) {
            Ok(facts) => {
                if asked.format == Format::Text && !is_quiet {
                    facts.print();
                }
                taken.push(facts.json(pid));
            }
            Err(error) => {
                // The other processes are not affected.
                tell!("heapr: {error:#}");
                status = ExitCode::from(2);
            }
        }
    }
    if asked.format == Format::Json {
        crate::plain_text::say_json(&json!({ "schema": "heapr.snapshot.take/1", "snapshots": taken }));
    }
    Ok(status)
}

/// Facts of a written snapshot.
pub(super) struct Facts {
    pub(super) path: PathBuf,
    contents_of: HeapFacts,
    pause: Duration,
    copy_life: Option<Duration>,
    no_copy: Option<String>,
    taken_in: Duration,
    contents: Contents,
}

/// Takes a snapshot of one process into a file.
pub(super) fn take_one(
    pid: u32,
    path: PathBuf,
    overwrites: bool,
    request: &ManagedRequest,
) -> anyhow::Result<Facts> {
    // Before the process stands still: a file that cannot be written costs it no pause.
    let file = create(&path, overwrites)?;
    let begin = Instant::now();
    let recorded = RecordedStacks::before(pid);
    let ManagedTaken { mut heap, pause, copy_life, no_copy } =
        managed_heap(pid, request).map_err(with_native_heap)?;
    if let Some(recorded) = recorded {
        recorded.add_to(&mut heap);
    }
    write(&mut heap, file, &path)?;
    Ok(Facts {
        path,
        contents_of: HeapFacts::of(&heap),
        pause,
        copy_life,
        no_copy,
        taken_in: begin.elapsed(),
        contents: request.contents,
    })
}

/// Reads the heap of a process, with the stacks of a session that records it. Returns the time for
/// which the process stood still, too.
///
/// # Errors
/// It runs no interpreter whose heap can be read, or may not be stopped.
pub(crate) fn heap_with_stacks(pid: u32) -> anyhow::Result<(ManagedHeap, Duration)> {
    let Some(interpreter) = interpreter_of(pid) else {
        bail!("it runs neither CPython nor Ruby, and objects of others are not read here");
    };
    let recorded = RecordedStacks::before(pid);
    let request = ManagedRequest { interpreter, ..NativeTakeOptions::usual_managed() };
    let ManagedTaken { mut heap, pause, .. } = managed_heap(pid, &request)?;
    if let Some(recorded) = recorded {
        recorded.add_to(&mut heap);
    }
    Ok((heap, pause))
}

/// Adds what can be taken of a process whose objects cannot be read.
fn with_native_heap(error: heapr_session::Error) -> anyhow::Error {
    match error {
        heapr_session::Error::NoManagedHeap { .. } => {
            anyhow::anyhow!("{error}; --heap native takes the blocks of its C library")
        }
        // Its sentence has the sentence of its cause already.
        error => anyhow::anyhow!("{error}"),
    }
}

/// Path of the snapshot: the requested file, else `heapr.PID.heapsnapshot` in the requested or the
/// working directory. The name has a number if that file exists and must not be overwritten.
pub(super) fn output(asked: Option<&Path>, pid: u32, may_overwrite: bool) -> PathBuf {
    let name = |number: Option<u32>| name_of(pid, number.unwrap_or(1));
    let folder = match asked {
        Some(file) if !file.is_dir() => return file.to_path_buf(),
        Some(folder) => folder,
        None => Path::new(""),
    };
    let is_taken = |name: &String| !may_overwrite && folder.join(name).symlink_metadata().is_ok();
    folder.join(free_name(name, is_taken))
}

/// Path of the first free file of a process in a folder whose number is beyond `last`, and its
/// number. Numbers of deleted files are not given again, so that names are in order of time.
pub(super) fn output_after(last: u32, folder: &Path, pid: u32) -> (PathBuf, u32) {
    let mut number = last.saturating_add(1);
    loop {
        let path = folder.join(name_of(pid, number));
        if number == u32::MAX || path.symlink_metadata().is_err() {
            return (path, number);
        }
        number += 1;
    }
}

/// Name of the snapshot of a process with a number, which is left out for the first.
fn name_of(pid: u32, number: u32) -> String {
    match number {
        0 | 1 => format!("heapr.{pid}.heapsnapshot"),
        number => format!("heapr.{pid}.{number}.heapsnapshot"),
    }
}

impl Facts {
    fn print(&self) {
        self.contents_of.print(&self.path, self.taken_in);
        let copied = match (&self.no_copy, self.copy_life) {
            (Some(reason), _) => format!(" until all was read, as it could not be copied: {reason}"),
            (None, Some(life)) => format!("; a copy of it lived for {}", duration(life.as_nanos() as u64)),
            (None, None) => String::new(),
        };
        say!("  it stood still for {}{copied}", duration(self.pause.as_nanos() as u64));
        self.contents_of.print_rest();
    }

    fn json(&self, pid: u32) -> Value {
        let mut all = self.contents_of.json(&self.path, self.contents);
        all["pids"] = json!([pid]);
        all["pause_ns"] = json!(self.pause.as_nanos() as u64);
        all["copy_ns"] = json!(self.copy_life.map(|life| life.as_nanos() as u64));
        all["no_copy"] = json!(self.no_copy);
        all["taken_ns"] = json!(self.taken_in.as_nanos() as u64);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_gets_files_of_free_names_and_a_file_keeps_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let first = output(Some(folder.path()), 7, false);
        assert_eq!(first, folder.path().join("heapr.7.heapsnapshot"));
        std::fs::write(&first, "").unwrap();
        let second = output(Some(folder.path()), 7, false);
        assert_eq!(second, folder.path().join("heapr.7.2.heapsnapshot"));
        assert_eq!(output(Some(folder.path()), 7, true), first);
        let named = folder.path().join("x.heapsnapshot");
        assert_eq!(output(Some(&named), 7, false), named);
        std::fs::write(&second, "").unwrap();
        let third = folder.path().join("heapr.7.3.heapsnapshot");
        assert_eq!(output_after(0, folder.path(), 7), (third.clone(), 3));
        std::fs::remove_file(&first).unwrap();
        assert_eq!(output_after(2, folder.path(), 7), (third, 3));
        assert_eq!(output_after(0, folder.path(), 7), (first, 1));
    }
}
