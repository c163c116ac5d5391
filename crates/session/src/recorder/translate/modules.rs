//! Translates modules that a process has loaded, and the program that it runs.

use heapr_trace::{Mapping, Module};
use heapr_wire::{MODULE_MAIN, MODULE_UNLOADED, ModuleRecord};

use super::Record;
use crate::recorder::facts::process_facts;
use crate::recorder::names::module_files::{self, SeenModule};
use crate::recorder::output::sink::Sink;
use crate::recorder::state::process_state::ProcessState;

/// Hands a module that was loaded or unloaded on; `None` if the record is invalid.
pub(super) fn module(
    record: &Record<'_>,
    time_ns: u64,
    process: &mut ProcessState,
    sink: &mut Sink,
) -> Option<()> {
    let lengths = record.word(5);
    let (build_id_bytes, path_bytes) = ((lengths >> 32) as usize, (lengths as u32) as usize);
    let command_bytes = usize::try_from(record.word(7)).unwrap_or(usize::MAX);
    let path_word = ModuleRecord::FIXED_WORDS + build_id_bytes.div_ceil(8);
    let command_word = path_word + path_bytes.div_ceil(8);
    let is_sane = record.words >= ModuleRecord::FIXED_WORDS
        && build_id_bytes <= ModuleRecord::BUILD_ID_BYTES_MAX
        && path_bytes <= ModuleRecord::PATH_BYTES_MAX
        && command_bytes <= ModuleRecord::COMMAND_BYTES_MAX
        && command_word + command_bytes.div_ceil(8) == record.words;
    let (bias_avma, start_avma, end_avma) = (record.word(2), record.word(3), record.word(4));
    let flags = record.word(6);
    if !is_sane || start_avma >= end_avma {
        return None;
    }
    unload_overlapping((start_avma, end_avma), time_ns, process, sink);
    if flags & MODULE_UNLOADED != 0 {
        return Some(());
    }
    let text = |first: usize, bytes: usize| -> Vec<u8> {
        let words = (first..first + bytes.div_ceil(8)).flat_map(|number| record.word(number).to_le_bytes());
        words.take(bytes).collect()
    };
    let build_id = text(ModuleRecord::FIXED_WORDS, build_id_bytes);
    let mut raw_path = text(path_word, path_bytes);
    if raw_path.contains(&b'/') && !raw_path.starts_with(b"/") {
        raw_path = module_files::absolute(process.pid, raw_path, start_avma);
    }
    let mut path = String::from_utf8_lossy(&raw_path).into_owned();
    if flags & MODULE_MAIN != 0 {
        if path.is_empty() {
            path = process.executable.clone();
        }
        note_program(&path, &text(command_word, command_bytes), process, sink);
    }
    let module = Module { path, build_id };
    let seen = SeenModule {
        pid: process.pid,
        path: if raw_path.is_empty() { module.path.as_bytes() } else { &raw_path },
        start_avma,
        bias_avma,
        is_main: flags & MODULE_MAIN != 0,
        is_old: process.was_attached,
    };
    sink.module_files.see(&module, &seen);
    let added = sink.writer.add_module(module).and_then(|module| {
        sink.writer.add_mapping(Mapping {
            process: process.index,
            module,
            start_avma,
            end_avma,
            bias_avma,
            loaded_ns: time_ns,
            unloaded_ns: u64::MAX,
        })
    });
    match added {
        Ok(number) => {
            process.mappings.insert(start_avma, (end_avma, number));
        }
        Err(error) => sink.keep(Err(error)),
    }
    Some(())
}

/// Unloads the mappings of modules that overlap a range of addresses.
fn unload_overlapping(
    (start_avma, end_avma): (u64, u64),
    time_ns: u64,
    process: &mut ProcessState,
    sink: &mut Sink,
) {
    let overlapping: Vec<u64> = process
        .mappings
        .range(..end_avma)
        .filter(|&(_, &(end, _))| end > start_avma)
        .map(|(&start, _)| start)
        .collect();
    for start in overlapping {
        if let Some((_, number)) = process.mappings.remove(&start) {
            let outcome = sink.writer.unload_mapping(number, time_ns);
            sink.keep(outcome);
        }
    }
}

/// Notes that the process runs `path`, started with these words, as the agent reports.
///
/// What was read from `/proc` may belong to another program, if the process ended or execed before
/// it was read.
fn note_program(path: &str, command: &[u8], process: &mut ProcessState, sink: &mut Sink) {
    let Some(entry) = &mut process.entry else {
        path.clone_into(&mut process.executable);
        return;
    };
    let before = (entry.executable.clone(), entry.command_line.clone());
    if process.executable != path {
        if !process_facts::may_be_same_program(&process.executable, path) {
            entry.command_line.clear();
        }
        path.clone_into(&mut process.executable);
        path.clone_into(&mut entry.executable);
    }
    let is_whole = command.len() < ModuleRecord::COMMAND_BYTES_MAX;
    if !command.is_empty() && (is_whole || entry.command_line.is_empty()) {
        entry.command_line = heapr_proc::command_words(command);
        if !is_whole && let Some(last) = entry.command_line.last_mut() {
            last.push('…');
        }
    }
    if (&before.0, &before.1) != (&entry.executable, &entry.command_line) {
        let outcome = sink.writer.update_process(process.index, entry);
        sink.keep(outcome);
    }
}
