//! Facts about snapshots as this crate computes them, in the form that `oracle/numbers.mjs` prints.

use std::path::Path;

use heapr_v8::analysis::compare_as_devtools;
use heapr_v8::devtools::{
    Aggregate, ContextOwner, DuplicateStrings, Filter, Heap, NativeContexts, RetainersView,
};
use heapr_v8::{CallFunction, CallTree, EdgeKind, ReadOptions, Snapshot};

/// Step between sampled nodes, equal to that in `numbers.mjs`.
const SAMPLE: usize = 97;

pub(crate) fn open(path: &Path) -> Heap {
    Heap::with_summary(Snapshot::open(path, &ReadOptions::default()).unwrap()).unwrap()
}

/// Returns all facts about `before`, then the comparison with `after`.
pub(crate) fn lines(before: &Heap, after: Option<&Heap>) -> Vec<String> {
    let mut lines = Lines { heap: before, lines: Vec::new() };
    lines.summary();
    lines.contexts();
    lines.strings();
    lines.allocations();
    lines.nodes();
    lines.without_ignored();
    let mut all = lines.lines;
    if let Some(after) = after {
        let mut lines = Lines { heap: after, lines: Vec::new() };
        lines.comparison(before);
        all.extend(lines.lines);
    }
    all
}

struct Lines<'a> {
    heap: &'a Heap,
    lines: Vec<String>,
}

impl Lines<'_> {
    fn put(&mut self, values: &[&dyn std::fmt::Display]) {
        let values: Vec<String> =
            values.iter().map(|value| value.to_string().replace(['\t', '\n', '\r'], " ")).collect();
        self.lines.push(values.join("\t"));
    }

    fn classes(&mut self, kind: &str, aggregates: &[Aggregate]) {
        let heap = self.heap;
        for line in aggregates {
            let class = heap.classes().get(line.class);
            self.put(&[
                &kind,
                &class.key(),
                &class.name_text(),
                &line.object_count,
                &line.distance,
                &line.self_bytes,
                &line.retained_bytes,
            ]);
        }
    }

    fn filtered(&mut self, kind: &str, filter: &Filter) {
        let aggregates = self.heap.aggregates(Some(filter));
        self.classes(kind, &aggregates);
    }

    fn summary(&mut self) {
        let heap = self.heap;
        let found = heap.statistics();
        self.put(&[
            &"statistics",
            &found.total_bytes,
            &found.native_bytes,
            &found.typed_array_bytes,
            &found.v8_heap_bytes,
            &found.code_bytes,
            &found.string_bytes,
            &found.js_array_bytes,
            &found.system_bytes,
        ]);
        self.put(&[&"maxJsId", &heap.max_js_id()]);
        self.classes("class", &heap.aggregates(None));
        for (kind, filter) in [
            ("objectsRetainedByContexts", Filter::RetainedByContexts),
            ("objectsRetainedByDetachedDomNodes", Filter::RetainedByDetachedNodes),
            ("objectsRetainedByConsole", Filter::RetainedByConsole),
            ("duplicatedStrings", Filter::DuplicatedStrings),
            ("objectsRetainedByEventHandlers", Filter::RetainedByEventHandlers),
            ("sharedNativeContext", Filter::NativeContext(ContextOwner::Shared)),
            ("noNativeContext", Filter::NativeContext(ContextOwner::None)),
        ] {
            self.filtered(kind, &filter);
        }
        for interface in heap.classes().interfaces() {
            let name = String::from_utf8_lossy(&interface.name);
            let properties = String::from_utf8_lossy(&interface.properties.join(&b' ')).into_owned();
            self.put(&[&"interface", &name, &properties]);
        }
    }

    fn contexts(&mut self) {
        let heap = self.heap;
        let sizes = NativeContexts::of(heap).sizes(heap);
        for &(context, bytes) in &sizes.contexts {
            let id = heap.snapshot().id(context);
            self.put(&[&"nativeContext", &id, &bytes]);
            self.filtered(
                &format!("nativeContext @{id}"),
                &Filter::NativeContext(ContextOwner::One(context)),
            );
        }
        self.put(&[&"nativeContext", &"shared", &sizes.shared_bytes]);
        self.put(&[&"nativeContext", &"none", &sizes.unowned_bytes]);
    }

    fn strings(&mut self) {
        let heap = self.heap;
        for group in DuplicateStrings::of(heap).groups {
            let self_bytes: u64 = group.iter().map(|&node| heap.snapshot().self_bytes(node)).sum();
            let retained: u64 = group.iter().map(|&node| heap.retained()[node as usize]).sum();
            self.put(&[&"duplicate", &heap.display_text(group[0]), &group.len(), &self_bytes, &retained]);
        }
    }

    fn allocations(&mut self) {
        let heap = self.heap;
        let Some(tree) = CallTree::of_timeline(heap) else { return };
        for line in tree.by_function() {
            let CallFunction { name, script, line: at, column } = &tree.functions[line.function as usize];
            let own = line.own;
            if own.allocated_count > 0 {
                self.put(&[
                    &"allocation",
                    name,
                    script,
                    at,
                    column,
                    &own.allocated_count,
                    &own.allocated_bytes,
                    &own.live_count,
                    &own.live_bytes,
                ]);
            }
        }
    }

    fn nodes(&mut self) {
        let heap = self.heap;
        let snapshot = heap.snapshot();
        let view = RetainersView::new(heap, &[]);
        for node in 0..snapshot.node_count() {
            self.put(&[
                &"node",
                &snapshot.id(node),
                &snapshot.self_bytes(node),
                &heap.retained()[node as usize],
                &heap.distances()[node as usize],
                &snapshot.id(heap.dominators().idom(node)),
                &(snapshot.dom_state(node) as u8),
                &heap.classes().get(heap.classes().of_node(node)).name_text(),
                &heap.display_text(node),
            ]);
            if (node as usize).is_multiple_of(SAMPLE) {
                let edges = snapshot
                    .graph()
                    .edges(node)
                    .filter(|&edge| snapshot.edge_kind(edge) != EdgeKind::INVISIBLE);
                for edge in edges.filter(|&edge| snapshot.edge_name(edge) != "__proto__").take(50) {
                    let target = snapshot.graph().target(edge);
                    self.edge("edge", node, edge, target, heap.distances()[target as usize]);
                }
                self.retainers("retainer", &view, node);
            }
        }
    }

    fn retainers(&mut self, kind: &str, view: &RetainersView<'_>, node: u32) {
        let snapshot = self.heap.snapshot();
        let edges = view.edges_into(node).into_iter().filter(|&edge| snapshot.edge_name(edge) != "__proto__");
        for edge in edges.take(50) {
            let source = snapshot.graph().source(edge);
            self.edge(kind, node, edge, source, view.edge_distance(edge));
        }
    }

    fn edge(&mut self, kind: &str, node: u32, edge: u32, other: u32, distance: i32) {
        let snapshot = self.heap.snapshot();
        let edge_kind = snapshot.meta().edge_kind_name(snapshot.edge_kind(edge));
        self.put(&[
            &kind,
            &snapshot.id(node),
            &snapshot.edge_name(edge),
            &edge_kind,
            &snapshot.id(other),
            &distance,
        ]);
    }

    fn without_ignored(&mut self) {
        let node_count = self.heap.snapshot().node_count();
        let ignored: Vec<u32> = (1000..node_count).step_by(1009).take(40).collect();
        let view = RetainersView::new(self.heap, &ignored);
        for node in (0..node_count).step_by(SAMPLE) {
            self.retainers("retainerWithoutIgnored", &view, node);
        }
    }

    fn comparison(&mut self, before: &Heap) {
        let heap = self.heap;
        for class in compare_as_devtools(before, heap).classes {
            self.put(&[
                &"diff",
                &class.class.key(),
                &class.class.name_text(),
                &class.new_count,
                &class.deleted_count,
                &class.new_bytes,
                &class.deleted_bytes,
                &class.count_delta(),
                &class.bytes_delta(),
            ]);
        }
        self.filtered("allocatedBetween", &Filter::AllocatedBetween(before.max_js_id(), heap.max_js_id()));
    }
}
