//! Frames of a language as other readers see them: function, file and line of each, with native
//! frames between them.

use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};

use heapr_export::Samples;
use heapr_query::Metric;
use heapr_trace::{
    Action, Event, HeapId, Language, LanguageFunction, LanguagePlace, Process, ProcessOrigin, StackIndex,
    StackNode, Thread, Trace, TraceWriter,
};

use crate::made_trace::named_report;
use crate::python;
use crate::round_trip::written;

/// Function, file and line, outermost first. A frame without a file is native code.
const STACK: [(&str, &str, u32); 4] =
    [("", "", 0), ("Server.do_GET", "/app/server.py", 88), ("features", "/app/cache.py", 41), ("", "", 0)];

/// Trace with one block of 64 bytes, allocated by `STACK`.
pub(crate) fn python_program() -> Trace {
    let mut bytes = Vec::new();
    let mut writer = TraceWriter::new(&mut bytes).unwrap();
    let process = writer
        .add_process(Process {
            pid: 7,
            parent_pid: 1,
            origin: ProcessOrigin::Exec,
            start_ns: 0,
            end_ns: None,
            executable: "/usr/bin/python3".to_owned(),
            command_line: vec!["python3".to_owned()],
            exit_status: None,
        })
        .unwrap();
    let name = "python3".to_owned();
    let thread = writer.add_thread(Thread { process, tid: 7, name, start_ns: 0, end_ns: None }).unwrap();
    let mut parent = StackIndex::EMPTY;
    for (number, (function, file, line)) in (1..).zip(STACK) {
        let mut return_address_avma = 0x1000 * u64::from(number);
        if !file.is_empty() {
            let (language, name, file) = (Language::PYTHON, function.to_owned(), file.to_owned());
            writer
                .function(&LanguageFunction { process, language, number, name, file, first_line: 1 })
                .unwrap();
            return_address_avma = LanguagePlace { language, function: number, line }.return_address();
        }
        let node = StackNode { parent, process, return_address_avma, first_seen_ns: 0 };
        parent = writer.add_stack(node).unwrap();
    }
    let action =
        Action::Alloc { address_avma: 0x9000, size_bytes: 64, stack: parent, is_moved_realloc: false };
    writer.event(&Event { time_ns: 10, thread, heap: HeapId::MALLOC, action }).unwrap();
    writer.flush().unwrap();
    drop(writer);
    Trace::from_source(Box::new(bytes)).unwrap()
}

fn stacks(trace: &heapr_trace::Trace) -> Samples {
    Samples::of_report(&named_report(trace), &mut |_, _| {})
}

fn frames(samples: &Samples) -> Vec<&heapr_export::SampleFrame> {
    samples.stacks().next().unwrap().0
}

/// Frames with a line, innermost first.
fn with_lines(samples: &Samples) -> Vec<(String, String, u32)> {
    assert_eq!(samples.len(), 1);
    let frames = frames(samples);
    let frames = frames.into_iter().filter(|frame| frame.line != 0);
    frames.map(|frame| (frame.name.clone(), frame.file.clone(), frame.line)).collect()
}

fn expected() -> Vec<(String, String, u32)> {
    let shown = STACK.iter().rev().filter(|frame| frame.2 != 0);
    shown.map(|&(name, file, line)| (name.to_owned(), file.to_owned(), line)).collect()
}

#[test]
fn frames_of_a_language_are_in_pprof() {
    let trace = python_program();
    let samples = stacks(&trace);
    assert_eq!(with_lines(&samples), expected());
    assert_eq!(frames(&samples).len(), STACK.len());
    let again = heapr_import::from_bytes(&written("pprof", &samples, Metric::default())).unwrap();
    let again = stacks(&again);
    assert_eq!(with_lines(&again), expected());
    assert_eq!(frames(&again).len(), STACK.len());
}

#[test]
fn frames_of_a_language_are_in_otlp() {
    const READ: &str = r"
import sys, json
from opentelemetry.proto.collector.profiles.v1development.profiles_service_pb2 import ExportProfilesServiceRequest
d = ExportProfilesServiceRequest.FromString(sys.stdin.buffer.read()).dictionary
(stack,) = [stack for stack in d.stack_table if stack.location_indices]
lines = [d.location_table[number].lines[0] for number in stack.location_indices]
text = lambda line: [d.string_table[n] for n in (d.function_table[line.function_index].name_strindex,
                                                 d.function_table[line.function_index].filename_strindex)]
print(json.dumps([text(line) + [line.line] for line in lines if line.line]))
";
    let packages = [("opentelemetry-proto", "opentelemetry.proto.profiles.v1development.profiles_pb2")];
    let Some(python) = python::with(&packages) else { return };
    let trace = python_program();
    let bytes = written("otlp", &stacks(&trace), Metric::default());
    let mut reader = Command::new(python);
    let mut child = reader.args(["-c", READ]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(&bytes).unwrap();
    let mut text = String::new();
    child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    assert!(child.wait().unwrap().success());
    let lines: Vec<(String, String, u32)> = serde_json::from_str(&text).unwrap();
    assert_eq!(lines, expected());
}

#[test]
fn frames_of_a_language_are_in_tables() {
    let Some(python) = python::with(&[("duckdb", "duckdb")]) else { return };
    let folder = tempfile::tempdir().unwrap();
    crate::tables::write(&python_program(), folder.path(), "python");
    let read = |table: &str| format!("read_parquet('{}/{table}/**/*.parquet')", folder.path().display());
    let statement = format!(
        "SELECT f.function, f.file, f.line, f.kind, f.module FROM {} s JOIN {} f USING (frame_id) \
         ORDER BY s.position;\n",
        read("stacks"),
        read("frames")
    );
    let rows = &crate::tables::ask(&python, &statement)[0];
    assert_eq!(rows.len(), STACK.len());
    let of_language = rows.iter().filter(|row| row["kind"] == "language");
    let lines: Vec<(String, String, u32)> = of_language
        .map(|row| {
            assert_eq!(row["module"], "py");
            let text = |name: &str| row[name].as_str().unwrap().to_owned();
            (text("function"), text("file"), row["line"].as_u64().unwrap() as u32)
        })
        .collect();
    assert_eq!(lines, expected());
}
