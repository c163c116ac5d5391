//! Facts of a trace that are sent before any query.

use std::collections::BTreeSet;

use heapr_filters::ShownFrames;
use heapr_query::json::TotalsJson;
use heapr_trace::Trace;
use serde::Serialize;

use crate::host::Host;
use crate::native::NativeSnapshot;
use crate::trace_file::TraceFile;

/// A process of the trace.
#[derive(Debug, Serialize)]
struct TraceProcess {
    process: usize,
    pid: u32,
    name: String,
    /// Path of the program's file. Its name may differ from the process's name if it was started
    /// through a link.
    executable: String,
    command_line: Vec<String>,
    start_ns: u64,
    end_ns: Option<u64>,
    exit_code: Option<i32>,
    signal: Option<i32>,
}

/// A thread of the trace.
#[derive(Debug, Serialize)]
struct TraceThread {
    thread: usize,
    process: u32,
    tid: u32,
    name: String,
    start_ns: u64,
    end_ns: Option<u64>,
}

/// Numbers of lost records.
#[derive(Debug, Serialize)]
struct Loss {
    events_lost: u64,
    stacks_lost: u64,
    events_late: u64,
    records_invalid: u64,
    processes_refused: u64,
}

/// A part of the file that cannot be read.
#[derive(Debug, Serialize)]
struct Damage {
    offset: u64,
    bytes: u64,
    what: String,
}

/// The system that the trace was recorded on.
#[derive(Debug, Serialize)]
struct TraceSystem {
    kernel: String,
    machine: String,
    distribution: String,
    cpu_count: u32,
    memory_bytes: u64,
    page_bytes: u64,
}

/// A file that was mapped.
#[derive(Debug, Serialize)]
struct TraceModule {
    path: String,
    build_id: String,
}

/// A marker.
#[derive(Debug, Serialize)]
pub(super) struct Marker {
    pub(super) time_ns: u64,
    pub(super) text: String,
}

/// Facts of a trace that are sent before any query.
#[derive(Debug, Serialize)]
pub(super) struct TraceFacts {
    duration_ns: u64,
    start_unix_ns: u64,
    event_count: u64,
    is_complete: bool,
    session: String,
    heapr_version: String,
    command_line: Vec<String>,
    loss: Loss,
    damage: Vec<Damage>,
    system: TraceSystem,
    processes: Vec<TraceProcess>,
    threads: Vec<TraceThread>,
    modules: Vec<TraceModule>,
    markers: Vec<Marker>,
    /// Languages with frames in the stacks: the prefix of a frame's name, and the language's name.
    languages: Vec<[String; 2]>,
    /// Default for the frames shown in such stacks: `mixed`, `own` or `native`.
    lang_frames: &'static str,
    /// Statements on the explained parts of the largest process's own memory.
    own_memory: Vec<String>,
    /// Number of samples of resident memory.
    resident_samples: usize,
    /// Native snapshots in the file.
    snapshots: Vec<NativeSnapshot>,
    totals: Option<TotalsJson>,
}

fn processes(trace: &Trace) -> Vec<TraceProcess> {
    let process = |(number, process): (usize, &heapr_trace::Process)| {
        let status = process.exit_status;
        // Status of wait(2): the low seven bits are the signal.
        let signal = status.map(|status| status & 0x7f).filter(|&signal| signal != 0);
        TraceProcess {
            process: number,
            pid: process.pid,
            name: process.name().to_owned(),
            executable: process.executable.clone(),
            command_line: process.command_line.clone(),
            start_ns: process.start_ns,
            end_ns: process.end_ns,
            exit_code: status.filter(|_| signal.is_none()).map(|status| status >> 8 & 0xff),
            signal,
        }
    };
    trace.processes().iter().enumerate().map(process).collect()
}

fn threads(trace: &Trace) -> Vec<TraceThread> {
    let thread = |(number, thread): (usize, &heapr_trace::Thread)| TraceThread {
        thread: number,
        process: thread.process.0,
        tid: thread.tid,
        name: thread.name.clone(),
        start_ns: thread.start_ns,
        end_ns: thread.end_ns,
    };
    trace.threads().iter().enumerate().map(thread).collect()
}

fn modules(trace: &Trace) -> Vec<TraceModule> {
    let hexadecimal = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let module = |module: &heapr_trace::Module| TraceModule {
        path: module.path.clone(),
        build_id: hexadecimal(&module.build_id),
    };
    trace.modules().iter().map(module).collect()
}

fn languages(trace: &Trace) -> Vec<[String; 2]> {
    let languages: BTreeSet<heapr_trace::Language> =
        trace.functions().iter().map(|function| function.language).collect();
    languages.into_iter().map(|one| [one.short_name().to_owned(), one.name().to_owned()]).collect()
}

impl TraceFacts {
    pub(super) fn new(host: &dyn Host, file: &TraceFile) -> Self {
        let trace = file.trace();
        let (system, session, loss) = (trace.system(), trace.session(), trace.whole_loss());
        let damage = |damage: &heapr_trace::Damage| Damage {
            offset: damage.offset,
            bytes: damage.bytes,
            what: damage.what.to_owned(),
        };
        let marker =
            |marker: &heapr_trace::Marker| Marker { time_ns: marker.time_ns, text: marker.text.clone() };
        let snapshot = |snapshot: &heapr_trace::Snapshot| {
            NativeSnapshot::new(trace, snapshot, host.trigger(snapshot.trigger))
        };
        Self {
            duration_ns: trace.duration_ns(),
            start_unix_ns: session.start_unix_ns,
            event_count: trace.event_count(),
            is_complete: trace.is_complete(),
            session: session.name.clone(),
            heapr_version: session.heapr_version.clone(),
            command_line: session.command_line.clone(),
            loss: Loss {
                events_lost: loss.missing_events(),
                stacks_lost: loss.stacks_lost,
                events_late: loss.events_late,
                records_invalid: loss.records_invalid,
                processes_refused: loss.processes_refused,
            },
            damage: file.damage().iter().map(damage).collect(),
            system: TraceSystem {
                kernel: system.kernel.clone(),
                machine: system.machine.clone(),
                distribution: system.distribution.clone(),
                cpu_count: system.cpu_count,
                memory_bytes: system.memory_bytes,
                page_bytes: system.page_bytes,
            },
            processes: processes(trace),
            threads: threads(trace),
            modules: modules(trace),
            languages: languages(trace),
            lang_frames: ShownFrames::from(trace.language_frames()).word(),
            markers: trace.markers().iter().map(marker).collect(),
            // The page asks again as long as names are looked for.
            own_memory: file
                .named_tree()
                .map_or_else(Vec::new, |tree| heapr_export::own_memory_of_tree(trace, &file.own, tree)),
            resident_samples: trace.resident_samples().len(),
            snapshots: trace.snapshots().iter().map(snapshot).collect(),
            totals: heapr_query::written_summary(trace)
                .ok()
                .flatten()
                .map(|summary| TotalsJson::from(&summary.totals)),
        }
    }
}
