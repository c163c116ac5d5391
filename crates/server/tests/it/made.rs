//! A small trace, a host with few names, and a client.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use heapr_ledger::{Ledger, SummaryBuilder};
use heapr_query::{FrameSink, SourceFrame, SymbolSource};
use heapr_server::{Files, Host, Limits, Server, ServerOptions};
use heapr_trace::{
    Action, Event, HeapId, Mapping, Module, ModuleIndex, Process, ProcessOrigin, SamplingPeriod, Snapshot,
    SnapshotColumns, SnapshotTrigger, StackIndex, StackNode, Thread, Trace, TraceWriter,
};
use heapr_v8::IndexStore;
use serde_json::{Value, json};

/// A symbol that a careless page would run as markup.
pub(crate) const MARKUP: &str = "<img src=x onerror=alert(1)>";

/// Host that names functions `f0`, `f1` and so on, and one with markup.
#[derive(Debug)]
pub(crate) struct PlainHost;

impl Host for PlainHost {
    fn names(&self, _trace: &Trace) -> Box<dyn SymbolSource + Send> {
        Box::new(Numbered)
    }

    fn snapshot_indexes(&self, _path: &Path) -> Option<IndexStore> {
        None
    }

    fn trigger(&self, trigger: heapr_trace::SnapshotTrigger) -> String {
        format!("{trigger:?}")
    }

    fn version(&self) -> &str {
        "0"
    }
}

struct Numbered;

impl SymbolSource for Numbered {
    fn resolve(&mut self, _module: ModuleIndex, svmas: &[u64], sink: &mut FrameSink<'_>) {
        for (number, &svma) in svmas.iter().enumerate() {
            let name = if svma / 16 == 2 { MARKUP.to_owned() } else { format!("f{}", svma / 16) };
            sink(number, &[SourceFrame { symbol: Some(&name), file: None, line: None, is_inlined: false }]);
        }
    }
}

/// Writes a trace of `count` allocations of 100 bytes, one each 10 ns, every second one freed 5 ns
/// later. Stacks alternate between `f0 > f1` and `f0 > MARKUP`.
pub(crate) fn write_trace(path: &Path, count: u64) {
    write(path, count, Written::default());
}

/// Writes the trace with a snapshot of its end. `mean_bytes`: mean period of samples, if the trace
/// is sampled.
pub(crate) fn write_live(path: &Path, count: u64, mean_bytes: Option<u64>) {
    write(path, count, Written { mean_bytes, has_snapshot: true, ..Written::default() });
}

/// Writes the trace without events.
pub(crate) fn write_totals(path: &Path, count: u64) {
    write(path, count, Written { is_without_events: true, ..Written::default() });
}

#[derive(Default)]
struct Written {
    is_without_events: bool,
    mean_bytes: Option<u64>,
    has_snapshot: bool,
}

fn write(path: &Path, count: u64, written: Written) {
    let has_events = !written.is_without_events;
    let file = std::fs::File::create(path).unwrap();
    let mut writer = match written.mean_bytes {
        Some(_) => TraceWriter::new_sampled(file),
        None => TraceWriter::new(file),
    }
    .unwrap();
    let process = writer
        .add_process(Process {
            pid: 7,
            parent_pid: 1,
            origin: ProcessOrigin::Exec,
            start_ns: 0,
            end_ns: None,
            executable: "/opt/app".to_owned(),
            command_line: vec!["app".to_owned()],
            exit_status: None,
        })
        .unwrap();
    let thread = Thread { process, tid: 7, name: "main".to_owned(), start_ns: 0, end_ns: None };
    let thread = writer.add_thread(thread).unwrap();
    let module = writer.add_module(Module { path: "/opt/app".to_owned(), build_id: vec![1] }).unwrap();
    let mapping = Mapping {
        process,
        module,
        start_avma: 0,
        end_avma: 0x1000,
        bias_avma: 0,
        loaded_ns: 0,
        unloaded_ns: u64::MAX,
    };
    writer.add_mapping(mapping).unwrap();
    let mut node = |parent: StackIndex, function: u64| {
        let node = StackNode { parent, process, return_address_avma: function * 16 + 2, first_seen_ns: 0 };
        writer.add_stack(node).unwrap()
    };
    let root = node(StackIndex::EMPTY, 0);
    let stacks = [node(root, 1), node(root, 2)];
    let event = |time_ns, action| Event { time_ns, thread, heap: HeapId::MALLOC, action };
    let (mut ledger, mut summary) = (Ledger::new(), SummaryBuilder::new());
    if let Some(mean_bytes) = written.mean_bytes {
        let period = SamplingPeriod { process: SamplingPeriod::EVERY_PROCESS, from_ns: 0, mean_bytes };
        writer.sampling(period).unwrap();
        summary.add_sampling(period);
    }
    let mut write = |event: Event| {
        if has_events {
            writer.event(&event).unwrap();
        }
        ledger.apply(&event, process, &mut summary);
    };
    for number in 0..count {
        let (time_ns, address_avma) = (10 * number + 10, 0x1000 + 0x100 * number);
        let stack = stacks[(number % 2) as usize];
        let alloc = Action::Alloc { address_avma, size_bytes: 100, stack, is_moved_realloc: false };
        write(event(time_ns, alloc));
        if number % 2 == 1 {
            let free = Action::Free { address_avma, stack: StackIndex::EMPTY, is_moved_realloc: false };
            write(event(time_ns + 5, free));
        }
    }
    if written.has_snapshot {
        let live: Vec<_> = ledger.live_blocks().collect();
        let sampling = summary.sampling().cloned().unwrap_or_default();
        let weights: Vec<_> = live.iter().map(|block| sampling.weight(block)).collect();
        let mut columns = SnapshotColumns::new();
        live.iter().for_each(|block| columns.push(block));
        let snapshot = Snapshot {
            number: 1,
            time_ns: 10 * count + 9,
            event_index: count + count / 2,
            name: "end".to_owned(),
            trigger: SnapshotTrigger::Request,
            block_count: weights.iter().map(|weight| weight.count).sum(),
            block_bytes: weights.iter().map(|weight| weight.bytes).sum(),
            part_count: 1,
            export_ns: 0,
            processes: Vec::new(),
            notes: Vec::new(),
        };
        writer.snapshot_part(1, 0, snapshot.time_ns, &mut columns).unwrap();
        writer.snapshot(&snapshot).unwrap();
    }
    let mut summary = summary.finish();
    summary.event_count = if has_events { count + count / 2 } else { 0 };
    summary.duration_ns = 10 * count + 10;
    writer.finish(&summary).unwrap();
}

/// A server on its own port; it ends with the test's process.
pub(crate) struct Running {
    pub(crate) port: u16,
    pub(crate) token: String,
}

/// A reply of the server.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

impl Running {
    pub(crate) fn start(paths: &[std::path::PathBuf]) -> Self {
        let files = Files::open(paths, Arc::new(PlainHost), Limits::default());
        let server = Server::bind(files, ServerOptions { port: 0 }).unwrap();
        let (port, token) = (server.address().port(), server.token().as_str().to_owned());
        std::thread::spawn(move || server.run(std::future::pending()));
        Self { port, token }
    }

    /// Sends bytes and reads until the server closes.
    pub(crate) fn send(&self, request: &[u8]) -> Reply {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        // A server that refuses early may close before all is sent.
        let _ = stream.write_all(request);
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        let end = bytes.windows(4).position(|window| window == b"\r\n\r\n").unwrap_or(bytes.len());
        let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        Reply { status, head: head.to_lowercase(), body: bytes.get(end + 4..).unwrap_or_default().to_vec() }
    }

    /// Sends a request with the given headers.
    pub(crate) fn request(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Reply {
        let mut text =
            format!("{method} {path} HTTP/1.1\r\nConnection: close\r\nContent-Length: {}\r\n", body.len());
        if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
            text += &format!("Host: 127.0.0.1:{}\r\n", self.port);
        }
        for (name, value) in headers {
            text += &format!("{name}: {value}\r\n");
        }
        self.send(format!("{text}\r\n{body}").as_bytes())
    }

    /// Sends a request with the token.
    pub(crate) fn ask(&self, name: &str, body: &str) -> Reply {
        let bearer = format!("Bearer {}", self.token);
        let headers = [("Authorization", bearer.as_str()), ("Content-Type", "application/json")];
        self.request("POST", &format!("/api/{name}"), &headers, body)
    }

    /// State of the first file.
    pub(crate) fn file(&self) -> Value {
        let bearer = format!("Bearer {}", self.token);
        self.request("GET", "/api/files", &[("Authorization", &bearer)], "").json()["files"][0].clone()
    }
}

/// Writes a root that holds `count` objects of class `Order`, with the ids 3, 5, 7 and so on.
pub(crate) fn write_snapshot(path: &Path, count: usize) {
    let kinds =
        ["hidden", "array", "string", "object", "code", "closure", "regexp", "number", "native", "synthetic"];
    let mut nodes = vec![9, 0, 1, 0, count, 0, 0];
    let mut edges = Vec::new();
    for number in 0..count {
        nodes.extend([3, 1, 2 * number + 3, 16, 0, 0, 0]);
        edges.extend([1, number, 7 * (number + 1)]);
    }
    let meta = json!({
        "node_fields": ["type", "name", "id", "self_size", "edge_count", "trace_node_id", "detachedness"],
        "node_types": [kinds, "string"],
        "edge_fields": ["type", "name_or_index", "to_node"],
        "edge_types": [["context", "element", "property", "internal", "hidden", "shortcut", "weak"], "string_or_number", "node"],
        "location_fields": ["object_index", "script_id", "line", "column"],
    });
    let head = json!({"meta": meta, "node_count": count + 1, "edge_count": count, "trace_function_count": 0});
    // In the order that V8 writes; serde_json would sort the keys.
    let text = format!(
        "{{\"snapshot\":{head},\"nodes\":{},\"edges\":{},\"trace_function_infos\":[],\"trace_tree\":[],\"samples\":[],\
         \"locations\":[],\"strings\":[\"\",\"Order\"]}}",
        json!(nodes),
        json!(edges)
    );
    std::fs::write(path, text).unwrap();
}
