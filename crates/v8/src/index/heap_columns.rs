//! Writer of an index: all results of a heap, in columns.

use std::fs::File;
use std::io;

use heapr_graph::{DominatorTree, Retainers};

use crate::analysis::StoredAnswers;
use crate::devtools::{Heap, NodesByClass, PlainObjects};
use crate::fingerprint::Fingerprint;
use crate::index::class_ends::class_ends;
use crate::index::layout::{Column, Directory, EDGE_SAMPLE};
use crate::index::retainer_orders::RetainerOrders;
use crate::index::stored_graph::has_mapped_names;
use crate::index::writer::ColumnWriter;
use crate::objects::{CaptureMode, ScriptPaths};
use crate::stored_summary::StoredSummary;

/// Writes the index of `heap` to an empty file. Missing results are computed meanwhile, on a second
/// thread.
pub(super) fn write(
    file: File,
    heap: &Heap,
    summary: &StoredSummary,
    fingerprint: Fingerprint,
) -> io::Result<File> {
    let mut writer = ColumnWriter::new(file)?;
    let snapshot = heap.snapshot();
    // One thread computes while the other writes. Written data is dropped before the next is
    // computed.
    std::thread::scope(|scope| {
        let retainers = scope.spawn(|| {
            let made = heap.computed_retainers().is_none().then(|| Retainers::of(snapshot.graph()));
            let orders = made.as_ref().or(heap.computed_retainers()).map(|all| RetainerOrders::of(heap, all));
            (made, orders.unwrap_or_default())
        });
        write_nodes(&mut writer, heap)?;
        let (retainers, orders) = joined(retainers);
        if let Some(retainers) = retainers.as_ref().or(heap.computed_retainers()) {
            writer.numbers(Column::FirstRetainers, retainers.first_edges_into().iter().copied())?;
            writer.numbers(Column::Retainers, retainers.all_edges().iter().copied())?;
        }
        drop(retainers);
        writer.numbers(Column::RetainerOrderRows, orders.rows)?;
        writer.numbers(Column::RetainerOrders, orders.edges)?;
        let derived = scope.spawn(|| (DominatorTree::rows(heap.dominators()), PlainObjects::of(snapshot)));
        write_edges(&mut writer, heap)?;
        write_names(&mut writer, heap)?;
        writer.bytes(Column::Summary, &serde_json::to_vec(summary)?)?;
        let (tree, plain) = joined(derived);
        let by_class = scope.spawn(|| nodes_by_class(heap));
        write_tree(&mut writer, heap, tree)?;
        write_shapes(&mut writer, &plain)?;
        let by_class = joined(by_class);
        std::thread::scope(|scope| {
            let class_ends = scope.spawn(|| class_ends(heap, &by_class, plain));
            writer.numbers(Column::ClassBorders, by_class.borders.iter().copied())?;
            writer.numbers(Column::ClassNodes, by_class.nodes.iter().copied())?;
            writer.numbers(Column::ClassEnds, joined(class_ends))
        })
    })?;
    // Names from source maps may change, and the snapshot not.
    let is_mapped = heap
        .source_maps()
        .is_some_and(|maps| has_mapped_names(snapshot.meta(), &maps, || ScriptPaths::of(snapshot)));
    let answers = (!is_mapped).then(|| StoredAnswers::of(heap));
    writer.bytes(Column::Answers, &serde_json::to_vec(&answers)?)?;
    writer.finish(Directory {
        fingerprint,
        node_count: snapshot.node_count(),
        edge_count: snapshot.edge_count(),
        root: snapshot.root(),
        exposes_internals: heap.mode() == CaptureMode::ExposeInternals,
        columns: Vec::new(),
    })
}

fn nodes_by_class(heap: &Heap) -> NodesByClass {
    let (classes, snapshot) = (heap.classes(), heap.snapshot());
    NodesByClass::of(classes.of_nodes(), classes.count(), |node| snapshot.self_bytes(node), heap.retained())
}

fn write_nodes(writer: &mut ColumnWriter, heap: &Heap) -> io::Result<()> {
    let nodes = &heap.snapshot().nodes;
    let (ids, self_bytes) = nodes.narrow();
    writer.numbers(Column::Names, nodes.names.iter().copied())?;
    writer.numbers(Column::Ids, ids.iter().copied())?;
    writer.numbers(Column::SelfBytes, self_bytes.iter().copied())?;
    writer.bytes(Column::Kinds, &nodes.kinds)?;
    writer.numbers(Column::Classes, heap.classes().of_nodes().iter().copied())?;
    writer.numbers(Column::Distances, heap.distances().iter().map(|&distance| distance as u32))?;
    writer.numbers(Column::Dominators, heap.dominators().idoms().iter().copied())?;
    let retained = heap.retained();
    let narrow = |bytes: u64| u32::try_from(bytes).unwrap_or(u32::MAX);
    writer.numbers(Column::Retained, retained.iter().map(|&bytes| narrow(bytes)))?;
    if !nodes.trace_node_ids.is_empty() {
        writer.numbers(Column::TraceNodes, nodes.trace_node_ids.iter().copied())?;
    }
    let wide_retained = (0..)
        .zip(retained)
        .filter(|&(_, &bytes)| narrow(bytes) == u32::MAX)
        .map(|(node, &bytes)| (node, bytes));
    write_wide(writer, Column::WideRetained, wide_retained)?;
    write_wide(writer, Column::WideIds, nodes.wide_ids().iter().map(|(&node, &id)| (node, id)))?;
    write_wide(
        writer,
        Column::WideSelfBytes,
        nodes.wide_sizes().iter().map(|(&node, &bytes)| (node, bytes)),
    )?;
    let moved = heap.moved_bytes().iter();
    writer.numbers(
        Column::MovedBytes,
        moved.flat_map(|it| [it.node, it.owner, it.bytes as u32, (it.bytes >> 32) as u32]),
    )?;
    let locations = heap.snapshot().locations().all().iter();
    writer.numbers(
        Column::Locations,
        locations.flat_map(|location| [location.node, location.script_id, location.line, location.column]),
    )
}

fn write_wide(
    writer: &mut ColumnWriter,
    column: Column,
    numbers: impl Iterator<Item = (u32, u64)>,
) -> io::Result<()> {
    writer.numbers(column, numbers.flat_map(|(node, number)| [node, number as u32, (number >> 32) as u32]))
}

fn write_edges(writer: &mut ColumnWriter, heap: &Heap) -> io::Result<()> {
    let (graph, names) = (heap.snapshot().graph(), &heap.snapshot().edge_names);
    writer.numbers(Column::FirstEdges, graph.first_edges().iter().copied())?;
    writer.numbers(Column::EdgeSamples, graph.first_edges().iter().copied().step_by(EDGE_SAMPLE))?;
    writer.numbers(Column::Targets, graph.targets())?;
    writer.numbers(Column::EdgeNames, names.all())?;
    writer.byte_values(Column::EdgeKinds, graph.tags().map(|kind| kind as u8))
}

fn write_names(writer: &mut ColumnWriter, heap: &Heap) -> io::Result<()> {
    let snapshot = heap.snapshot();
    let (text, ends, wraps) = snapshot.strings().parts();
    writer.numbers(Column::StringEnds, ends.iter().copied())?;
    writer.numbers(Column::StringWraps, wraps.iter().copied())?;
    writer.bytes(Column::StringText, text)?;
    let classes = heap.classes();
    writer.numbers(
        Column::ClassPlaces,
        classes.all().iter().flat_map(|class| match class.location {
            Some((script_id, line, column)) => [1, script_id, line, column],
            None => [0; 4],
        }),
    )?;
    let mut names = Vec::new();
    let mut ends = Vec::new();
    for class in classes.all() {
        names.extend_from_slice(&class.name);
        ends.push(u32::try_from(names.len()).map_err(|_| io::Error::other("names of classes of 4 GiB"))?);
    }
    writer.numbers(Column::ClassNameEnds, ends)?;
    writer.bytes(Column::ClassNames, &names)?;
    writer.bytes(Column::Interfaces, &serde_json::to_vec(classes.interfaces())?)?;
    writer.bytes(Column::Meta, snapshot.meta().text())?;
    writer.bytes(Column::ScriptPaths, &serde_json::to_vec(ScriptPaths::of(snapshot).all())?)
}

fn joined<T>(thread: std::thread::ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn write_tree(
    writer: &mut ColumnWriter,
    heap: &Heap,
    (first, dominated): (Vec<u32>, Vec<u32>),
) -> io::Result<()> {
    writer.numbers(Column::FirstDominated, first)?;
    writer.numbers(Column::Dominated, dominated)?;
    writer.numbers(Column::DominatedCounts, heap.subtree_counts().all().iter().copied())
}

fn write_shapes(writer: &mut ColumnWriter, plain: &PlainObjects) -> io::Result<()> {
    writer.numbers(Column::Shapes, plain.shape_of.iter().flat_map(|&(node, shape)| [node, shape]))?;
    let mut end = 0u32;
    let ends = plain.shapes.iter().map(|shape| {
        end = end.saturating_add(shape.len() as u32);
        end
    });
    writer.numbers(Column::ShapeEnds, ends)?;
    writer.numbers(Column::ShapeProperties, plain.shapes.iter().flat_map(|shape| shape.iter().copied()))
}

/// Approximate length of a heap's index file.
pub(super) fn estimated_bytes(heap: &Heap) -> u64 {
    let snapshot = heap.snapshot();
    let text_bytes = snapshot.strings().parts().0.len() as u64;
    let fixed_bytes = 1 << 20;
    u64::from(snapshot.node_count()) * 54
        // Each edge takes 13 bytes, and 4 more if many edges lead to the same node.
        + u64::from(snapshot.edge_count()) * 17
        + u64::from(snapshot.strings().count()) * 4
        + snapshot.locations().all().len() as u64 * 16
        + heap.moved_bytes().len() as u64 * 16
        + text_bytes
        + fixed_bytes
}
