//! `heapr snapshot take` and `every`, for heaps of managed languages and native ones.

use std::path::Path;
use std::process::ExitCode;

use heapr_inspector::Process;

use super::managed::{self, HeapChoice, StoppingOptions};
use super::native::{self, NativeEveryOptions, NativeTakeOptions};
use super::verbs::{HeapKind, OnlyOf};
use crate::snapshot_take::{self, EveryOptions, EveryQuestion, TakeOptions, TakeQuestion, javascript};
use crate::{containers, processes};

/// Arguments of `heapr snapshot take`.
#[derive(Debug, clap::Args)]
pub(crate) struct TakeArguments {
    #[command(flatten)]
    asked: TakeQuestion,
    /// Heap to take [default: python, ruby or javascript, if the processes run it, else native;
    /// java and dotnet only if they are named]
    #[arg(long, value_enum, value_name = "HEAP")]
    heap: Option<HeapChoice>,
    #[command(flatten, next_help_heading = "JavaScript")]
    v8: OnlyOf<TakeOptions>,
    #[command(flatten, next_help_heading = "Native heaps")]
    native: OnlyOf<NativeTakeOptions>,
}

/// Arguments of `heapr snapshot every`.
#[derive(Debug, clap::Args)]
pub(crate) struct EveryArguments {
    #[command(flatten)]
    asked: EveryQuestion,
    #[command(flatten, next_help_heading = "JavaScript")]
    v8: OnlyOf<EveryOptions>,
    #[command(flatten, next_help_heading = "Native heaps")]
    native: OnlyOf<NativeEveryOptions>,
}

/// Runs `take`.
pub(crate) fn take(arguments: TakeArguments) -> anyhow::Result<ExitCode> {
    let TakeArguments { asked, heap, v8, native } = arguments;
    let asked = asked.with_containers();
    // These runtimes stand still for seconds: only where that is asked for.
    if let Some((name, take)) = heap.and_then(managed::of_stopping) {
        let reason = format!("{name}'s heap has no such option");
        v8.refuse_but(&[], &reason)?;
        native.refuse_but(&["--max-pause", "--contents"], &reason)?;
        let options = StoppingOptions {
            max_pause: native.options.max_pause(),
            contents: native.options.managed()?.1.contents,
            is_quiet: v8.options.is_quiet(),
        };
        return take(&asked, &options);
    }
    let with_pause = ["--pause", "--max-pause", "--contents"];
    if is_of_objects(&asked, heap, &v8, &native) {
        v8.refuse_but(&[], "a heap of objects has no such option")?;
        native.refuse_but(&with_pause, "a heap of objects has no such option")?;
        return managed::take(&asked, heap, &native.options, v8.options.is_quiet());
    }
    native.options.check()?;
    match heap {
        Some(HeapChoice::Native) => {
            v8.refuse(HeapKind::Native)?;
            return native::take(&asked, &native.options, v8.options.is_quiet());
        }
        Some(HeapChoice::Javascript) => {
            native.refuse(HeapKind::V8)?;
            return snapshot_take::take(&asked, &v8.options);
        }
        _ => {}
    }
    match kind(&asked.pids, asked.tree, asked.output.as_deref(), &v8, &native)? {
        HeapKind::V8 => snapshot_take::take(&asked, &v8.options),
        HeapKind::Native => native::take(&asked, &native.options, v8.options.is_quiet()),
    }
}

/// True if the snapshots are of an interpreter's objects, read from memory. They are if that is
/// asked for. They also are if nothing asks for another heap, and all processes run an interpreter
/// whose objects can be read.
fn is_of_objects(
    asked: &TakeQuestion,
    heap: Option<HeapChoice>,
    v8: &OnlyOf<TakeOptions>,
    native: &OnlyOf<NativeTakeOptions>,
) -> bool {
    if let Some(heap) = heap {
        return heap.interpreter().is_some();
    }
    let is_trace = asked.output.as_deref().and_then(Path::extension).is_some_and(|end| end == "heapr");
    if is_trace || v8.is_given() || native.has_other_than(&["--pause", "--max-pause", "--contents"]) {
        return false;
    }
    let pids = processes::named(&asked.pids, asked.tree).unwrap_or_default();
    !pids.is_empty()
        && native::watched(&pids).0.is_empty()
        && pids.iter().all(|&pid| managed::is_chosen(pid, v8.options.is_quiet()))
}

/// Whether `every` takes an interpreter's objects. It does if nothing asks for another heap, no
/// session records the processes, and all run an interpreter whose objects can be read.
fn is_every_of_objects(
    asked: &EveryQuestion,
    v8: &OnlyOf<EveryOptions>,
    native: &OnlyOf<NativeEveryOptions>,
) -> bool {
    let is_trace = asked.output.as_deref().and_then(Path::extension).is_some_and(|end| end == "heapr");
    if is_trace || v8.has_other_than(&["--count", "--keep"]) || native.is_given() {
        return false;
    }
    let names = asked.words.get(1..).unwrap_or_default();
    let pids = processes::named(names, asked.tree).unwrap_or_default();
    !pids.is_empty()
        && native::watched(&pids).0.is_empty()
        && pids.iter().all(|&pid| managed::is_chosen(pid, v8.options.is_quiet()))
}

/// Runs `every`.
pub(crate) fn every(arguments: EveryArguments) -> anyhow::Result<ExitCode> {
    let EveryArguments { asked, v8, native } = arguments;
    if is_every_of_objects(&asked, &v8, &native) {
        let limits = managed::Limits { count: v8.options.count, keep: v8.options.keep };
        return managed::every(&asked, &NativeTakeOptions::usual_managed(), limits, v8.options.is_quiet());
    }
    match kind(asked.words.get(1..).unwrap_or_default(), asked.tree, None, &v8, &native)? {
        HeapKind::V8 => snapshot_take::every(&asked, &v8.options),
        HeapKind::Native => native::every(&asked, &native.options, v8.options.is_quiet()),
    }
}

/// Returns the kind of heap to capture: the one whose options are given. By default it is the
/// native one if no process runs JavaScript.
fn kind<A, B>(
    words: &[String],
    with_children: bool,
    output: Option<&Path>,
    v8: &OnlyOf<A>,
    native: &OnlyOf<B>,
) -> anyhow::Result<HeapKind> {
    if native.is_given() {
        v8.refuse(HeapKind::Native)?;
        return Ok(HeapKind::Native);
    }
    if output.is_some_and(native::is_name_of_javascript) {
        return Ok(HeapKind::V8);
    }
    let pids =
        words.iter().filter_map(|word| processes::named(std::slice::from_ref(word), with_children).ok());
    let mut found = pids.flatten().filter(|&pid| Process::examine(pid).is_ok()).peekable();
    // In a container, only the processes that run JavaScript count, if there are any.
    if words.iter().any(|word| word.starts_with(containers::PREFIX)) {
        let has_javascript = found.any(|pid| javascript::is_meant(pid, false));
        return Ok(if has_javascript || v8.is_given() { HeapKind::V8 } else { HeapKind::Native });
    }
    // Only an inspector could find JavaScript in a program of unknown make; native heaps are the
    // common case.
    let is_native = found.peek().is_some() && found.all(|pid| !javascript::is_meant(pid, with_children));
    Ok(if is_native && !v8.is_given() { HeapKind::Native } else { HeapKind::V8 })
}
