//! `heapr info --format json`: the contents of a trace, with the schema `heapr.info/1`.

use heapr_export::OwnMemoryIntervals;
use heapr_trace::{Damage, Loss, Process, ProcessOrigin, SamplingPeriod, Trace};
use serde_json::{Map, Value, json};

use crate::snapshot::native::snapshot_json;

use super::{End, end_of, hexadecimal, kind_name};

/// Returns all contents as one value. `file_bytes`: size of the file; `damaged`: all damage in it.
pub(crate) fn value(trace: &Trace, file: &str, file_bytes: u64, damaged: &[Damage]) -> Value {
    json!({
        "schema": "heapr.info/1",
        "file": file,
        "file_bytes": file_bytes,
        "is_complete": trace.is_complete(),
        "event_count": trace.event_count(),
        "duration_ns": trace.duration_ns(),
        "system": system(trace),
        "session": session(trace),
        "sampling": sampling(trace),
        "processes": trace.processes().iter().map(process).collect::<Vec<_>>(),
        "threads": threads(trace),
        "modules": modules(trace),
        "mappings": mappings(trace),
        "markers": markers(trace),
        "rss": rss(trace),
        "resident": resident(trace),
        "own_memory": own_memory(trace),
        "snapshots": trace.snapshots().iter().map(|snapshot| snapshot_json(trace, snapshot)).collect::<Vec<_>>(),
        "notices": notices(trace),
        "heap_names": trace.heap_names().iter().map(heap_name).collect::<Vec<_>>(),
        "chunks": chunks(trace),
        "loss": loss(&trace.whole_loss()),
        "losses": losses(trace),
        "statistics": statistics(trace),
        "damage": damage(damaged),
    })
}

fn system(trace: &Trace) -> Value {
    let system = trace.system();
    json!({
        "kernel": system.kernel,
        "machine": system.machine,
        "distribution": system.distribution,
        "cpu_count": system.cpu_count,
        "memory_bytes": system.memory_bytes,
        "page_bytes": system.page_bytes,
    })
}

fn session(trace: &Trace) -> Value {
    let session = trace.session();
    json!({
        "name": session.name,
        "heapr_version": session.heapr_version,
        "command_line": session.command_line,
        "start_unix_ns": session.start_unix_ns,
        "clock": session.clock,
        "buffer_bytes": session.buffer_bytes,
        "min_buffers": session.min_buffers,
        "max_buffers": session.max_buffers,
        "flush_timer_ms": session.flush_timer_ms,
        "on_full": session.on_full,
        "stacks": session.stacks,
        "max_frames": session.max_frames,
    })
}

/// Returns the sampling periods by process and time; empty if all allocations are recorded.
fn sampling(trace: &Trace) -> Value {
    let entry = |period: &SamplingPeriod| {
        let whose = trace.processes().get(period.runtime_of().unwrap_or(period.process).0 as usize);
        json!({
            "pid": whose.map(|process| process.pid),
            "is_runtime": period.runtime_of().is_some(),
            "from_ns": period.from_ns,
            "mean_bytes": (period.mean_bytes != SamplingPeriod::NOTHING_BYTES).then_some(period.mean_bytes),
        })
    };
    trace.sampling().periods().iter().map(entry).collect()
}

fn process(process: &Process) -> Value {
    let (origin, forked_from) = match process.origin {
        ProcessOrigin::Exec => ("exec", None),
        ProcessOrigin::Fork { parent } => ("fork", Some(parent.0)),
    };
    let (exit_code, signal) = match process.exit_status.map(end_of) {
        None => (None, None),
        Some(End::Exited(code)) => (Some(code), None),
        Some(End::Killed(signal)) => (None, Some(signal)),
    };
    json!({
        "pid": process.pid,
        "parent_pid": process.parent_pid,
        "origin": origin,
        "forked_from": forked_from,
        "start_ns": process.start_ns,
        "end_ns": process.end_ns,
        "name": process.name(),
        "executable": process.executable,
        "command_line": process.command_line,
        "exit_code": exit_code,
        "signal": signal,
    })
}

fn threads(trace: &Trace) -> Vec<Value> {
    let thread = |thread: &heapr_trace::Thread| {
        json!({
            "process": thread.process.0,
            "tid": thread.tid,
            "name": thread.name,
            "start_ns": thread.start_ns,
            "end_ns": thread.end_ns,
        })
    };
    trace.threads().iter().map(thread).collect()
}

fn modules(trace: &Trace) -> Vec<Value> {
    let modules = trace.modules().iter();
    modules.map(|module| json!({"path": module.path, "build_id": hexadecimal(&module.build_id)})).collect()
}

fn mappings(trace: &Trace) -> Vec<Value> {
    let mapping = |mapping: &heapr_trace::Mapping| {
        json!({
            "process": mapping.process.0,
            "module": mapping.module.0,
            "start_avma": mapping.start_avma,
            "end_avma": mapping.end_avma,
            "bias_avma": mapping.bias_avma,
            "loaded_ns": mapping.loaded_ns,
            "unloaded_ns": (mapping.unloaded_ns != u64::MAX).then_some(mapping.unloaded_ns),
        })
    };
    trace.mappings().iter().map(mapping).collect()
}

fn markers(trace: &Trace) -> Vec<Value> {
    trace.markers().iter().map(|marker| json!({"time_ns": marker.time_ns, "text": marker.text})).collect()
}

fn rss(trace: &Trace) -> Vec<Value> {
    let samples = trace.rss_samples().iter();
    let sample = |sample: &heapr_trace::RssSample| json!({"time_ns": sample.time_ns, "process": sample.process.0, "rss_bytes": sample.rss_bytes});
    samples.map(sample).collect()
}

fn resident(trace: &Trace) -> Vec<Value> {
    let sample = |sample: &heapr_trace::ResidentSample| {
        json!({
            "time_ns": sample.time_ns,
            "process": sample.process.0,
            "anonymous_bytes": sample.anonymous_bytes,
            "file_bytes": sample.file_bytes,
            "shared_memory_bytes": sample.shared_memory_bytes,
            "swapped_bytes": sample.swapped_bytes,
            "page_table_bytes": sample.page_table_bytes,
            "most_rss_bytes": sample.most_rss_bytes,
        })
    };
    trace.resident_samples().iter().map(sample).collect()
}

fn own_memory(trace: &Trace) -> Vec<Value> {
    let intervals = OwnMemoryIntervals::of(trace);
    let account = |account: &heapr_trace::MemoryAccount| {
        let part = |part: &heapr_trace::MemoryPart| {
            let mut value = json!({
                "what": part.kind.to_string(),
                "bytes": part.bytes,
                "stack": part.stack.0,
                "is_unseen": part.is_unseen,
            });
            if let plus_minus @ 1.. = intervals.plus_minus(account, part) {
                value["bytes_plus_minus"] = plus_minus.into();
            }
            value
        };
        json!({
            "time_ns": account.time_ns,
            "process": account.process.0,
            "anonymous_bytes": account.anonymous_bytes,
            "agent_bytes": account.agent_bytes,
            "explained_bytes": account.explained_bytes(),
            "unseen_bytes": account.unseen_bytes(),
            "parts": account.parts.iter().map(part).collect::<Vec<_>>(),
        })
    };
    trace.memory_accounts().iter().map(account).collect()
}

fn heap_name(name: &heapr_trace::HeapName) -> Value {
    json!({
        "process": name.process.0,
        "heap": name.heap.0,
        "name": name.name,
        "first_ns": name.first_ns,
    })
}

fn chunks(trace: &Trace) -> Vec<Value> {
    let chunk = |chunk: &heapr_trace::ChunkInfo| {
        json!({
            "offset": chunk.offset,
            "kind": kind_name(chunk.kind),
            "stored_bytes": chunk.stored_bytes,
            "raw_bytes": chunk.raw_bytes,
            "item_count": chunk.item_count,
            "first_ns": chunk.first_ns,
            "last_ns": chunk.last_ns,
        })
    };
    trace.chunks().iter().map(chunk).collect()
}

fn loss(loss: &Loss) -> Value {
    json!({
        "events_lost": loss.missing_events(),
        "stacks_lost": loss.stacks_lost,
        "events_late": loss.events_late,
        "records_invalid": loss.records_invalid,
        "processes_refused": loss.processes_refused,
    })
}

fn notices(trace: &Trace) -> Vec<Value> {
    let entry = |notice: &heapr_trace::Notice| json!({"process": notice.process.0, "time_ns": notice.time_ns, "text": notice.text});
    trace.notices().iter().map(entry).collect()
}

fn losses(trace: &Trace) -> Vec<Value> {
    let entry = |entry: &heapr_trace::LossEntry| {
        json!({
            "process": entry.process.map(|index| index.0),
            "thread": entry.thread.map(|index| index.0),
            "loss": loss(&entry.loss),
        })
    };
    trace.losses().iter().map(entry).collect()
}

fn statistics(trace: &Trace) -> Map<String, Value> {
    let statistics = trace.statistics().iter();
    statistics.map(|statistic| (statistic.name.clone(), Value::from(statistic.value))).collect()
}

fn damage(damaged: &[Damage]) -> Vec<Value> {
    damaged
        .iter()
        .map(|damage| json!({"offset": damage.offset, "bytes": damage.bytes, "what": damage.what}))
        .collect()
}
