//! View of one snapshot.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use crate::analysis::{Naming, RetainingPaths, RootSteps, retaining_paths};
use crate::call_tree::allocation_stack;
use crate::devtools::{Heap, RetainersView};
use crate::objects::{NodeNumber, ObjectOrder, Objects, Page};
use crate::source_maps::SourceMaps;
use crate::view::listed_ids::ListedIds;
use crate::view::rows::{RowMaker, lines};
use crate::view::search::search;
use crate::view::sorted_rows::{page_of, sorted_page};
use crate::view::{FieldRow, Listed, ObjectQuery, ObjectRow};
use crate::{CallFunction, DomState, EdgeKind, Error, Result, StoredGraph, StoredSummary};

/// Open snapshot for queries, which are independent and can come from any thread.
///
/// Data is in memory, or read on demand from an index file (see [`crate::IndexStore`]). With a
/// damaged index file, queries fail with [`Error::DamagedIndex`].
#[derive(Clone)]
pub struct SnapshotView {
    objects: Arc<dyn Objects>,
    source: Source,
    summary: Arc<OnceLock<StoredSummary>>,
    /// Least number of UTF-16 units in names of concatenated strings; see
    /// [`SnapshotView::with_short_names`].
    name_units: usize,
    listed: Arc<ListedIds>,
    source_maps: Option<Arc<SourceMaps>>,
    /// Numbers of edges from the root. A page asks for paths of many objects; for those of one, a
    /// walk over the whole heap would be too dear.
    root_steps: Arc<OnceLock<RootSteps>>,
    has_paths: Arc<AtomicBool>,
}

/// Source of the objects.
#[derive(Clone)]
enum Source {
    Memory(Arc<Heap>),
    Index(Arc<StoredGraph>),
}

/// Order of the fields of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldOrder {
    /// Order of the fields in the object.
    Object,
    /// Most retained bytes first.
    Retained,
}

/// All facts about one object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectDetails {
    /// Line of the object in lists.
    pub row: ObjectRow,
    /// Immediate dominator; the root is its own.
    pub dominator: ObjectRow,
    /// Number of objects that it dominates, itself excluded.
    pub dominated_count: u32,
    /// Source location of the function or the object's constructor, `path:line:column`.
    pub place: Option<String>,
    /// State of a DOM node: attached to its document, detached or unknown.
    pub dom_state: DomState,
    /// Id of the allocation trace's node in which it was allocated; 0 if unknown.
    pub trace_node_id: u32,
    /// Functions in which it was allocated, innermost first; empty without an allocation timeline.
    pub allocated_by: Vec<CallFunction>,
}

impl std::fmt::Debug for SnapshotView {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SnapshotView").field("node_count", &self.objects.node_count()).finish_non_exhaustive()
    }
}

impl SnapshotView {
    /// Returns the view of a snapshot in memory.
    pub fn of_heap(heap: Arc<Heap>) -> Self {
        let objects: Arc<dyn Objects> = Arc::clone(&heap) as _;
        Self {
            objects,
            source: Source::Memory(heap),
            summary: Arc::default(),
            name_units: usize::MAX,
            listed: Arc::default(),
            source_maps: None,
            root_steps: Arc::default(),
            has_paths: Arc::default(),
        }
    }

    /// Returns the view of a snapshot in an index file.
    pub fn of_index(stored: Arc<StoredGraph>) -> Self {
        let objects: Arc<dyn Objects> = Arc::clone(&stored) as _;
        Self {
            objects,
            source: Source::Index(stored),
            summary: Arc::default(),
            name_units: usize::MAX,
            listed: Arc::default(),
            source_maps: None,
            root_steps: Arc::default(),
            has_paths: Arc::default(),
        }
    }

    /// Returns the view with shorter names: lists assemble at least `units` UTF-16 units of a
    /// concatenated string, if it has as many. A long string has hundreds of pieces.
    #[must_use]
    pub fn with_short_names(self, units: usize) -> Self {
        Self { name_units: units, ..self }
    }

    /// Returns the view with locations in the original sources where source maps cover them.
    #[must_use]
    pub fn with_source_maps(self, maps: Arc<SourceMaps>) -> Self {
        match &self.source {
            Source::Memory(heap) => heap.use_source_maps(Arc::clone(&maps)),
            Source::Index(stored) => stored.use_source_maps(Arc::clone(&maps)),
        }
        Self { source_maps: Some(maps), ..self }
    }

    /// Returns the original source location of a location in the summary
    /// ([`crate::StoredClass::place`]).
    pub fn original_place(&self, place: &str) -> String {
        self.source_maps.as_ref().map_or_else(|| place.to_owned(), |maps| maps.place(place))
    }

    fn maker(&self) -> RowMaker<'_> {
        RowMaker { objects: self.objects(), name_units: self.name_units }
    }

    /// Returns the whole heap, for analyses of the whole graph ([`crate::analysis`]). From an index
    /// it is loaded on each call. Loading takes some tenths of a second and as much memory as the
    /// snapshot file is long.
    pub fn heap(&self) -> Result<Arc<Heap>> {
        match &self.source {
            Source::Memory(heap) => Ok(Arc::clone(heap)),
            Source::Index(stored) => match Heap::load(Arc::clone(stored)) {
                Some(heap) => {
                    if let Some(maps) = &self.source_maps {
                        heap.use_source_maps(Arc::clone(maps));
                    }
                    Ok(Arc::new(heap))
                }
                None => {
                    let what = self.objects.damage().unwrap_or_else(|| "it is no graph".to_owned());
                    Err(Error::DamagedIndex { what })
                }
            },
        }
    }

    /// Access to single facts.
    pub fn objects(&self) -> &dyn Objects {
        &*self.objects
    }

    /// Summary: classes by descending retained size, statistics, counts, and defects of the file.
    pub fn summary(&self) -> Result<&StoredSummary> {
        let summary = self.summary.get_or_init(|| match &self.source {
            Source::Memory(heap) => StoredSummary::of(heap),
            Source::Index(stored) => stored.summary(),
        });
        self.unless_damaged(summary)
    }

    /// Root node.
    pub fn root(&self) -> u32 {
        self.objects.root()
    }

    /// Returns the node with that id. If several nodes have it, the most recently listed one, else
    /// the first.
    pub fn node_of_id(&self, id: u64) -> Result<Option<u32>> {
        let node = self.listed.node(id).or_else(|| self.objects.node_of_id(id));
        self.unless_damaged(node)
    }

    /// Returns the line of a node.
    pub fn row(&self, node: u32) -> Result<ObjectRow> {
        let row = self.maker().object(node);
        self.unless_damaged(row)
    }

    /// Returns the numbers of the classes with that name or key ([`crate::StoredClass::key`]).
    /// Several classes may share a name.
    pub fn classes_named(&self, name: &str) -> Result<Vec<u32>> {
        let classes = self.objects.class_list();
        let named = (0..)
            .zip(classes)
            .filter(|(_, class)| class.name_text() == name || class.key() == name)
            .map(|(number, _)| number)
            .collect();
        self.unless_damaged(named)
    }

    /// Returns the objects that match a query.
    pub fn search(
        &self,
        query: &ObjectQuery<'_>,
        order: ObjectOrder,
        page: Page,
    ) -> Result<Listed<ObjectRow>> {
        let (nodes, total_count) = search(self.objects(), query, order, page);
        self.rows(&nodes, total_count)
    }

    /// Returns the fields of an object.
    pub fn children(&self, node: u32, order: FieldOrder, page: Page) -> Result<Listed<FieldRow>> {
        let objects = self.objects();
        let all = objects.edges(node);
        let mut edges = Vec::with_capacity(all.len());
        let mut number = all.clone();
        objects.visit_edges(node..node.saturating_add(1), &mut |_, kind, _| {
            edges.extend(number.next().filter(|_| kind != EdgeKind::INVISIBLE));
        });
        let total_count = edges.len();
        let shown = match order {
            FieldOrder::Object => edges[page.range(total_count)].to_vec(),
            FieldOrder::Retained => {
                let all_targets = objects.targets(all.clone());
                let targets: Vec<u32> = edges
                    .iter()
                    .filter_map(|&edge| all_targets.get((edge - all.start) as usize).copied())
                    .collect();
                let retained = objects.numbers_of(NodeNumber::RetainedBytes, &targets);
                let keyed = retained.into_iter().map(|bytes| u64::MAX - bytes).zip(edges).collect();
                page_of(keyed, page.range(total_count))
            }
        };
        let maker = self.maker();
        let rows = lines(&shown, |edge| maker.field(edge));
        self.listed.add(rows.iter().map(|row| &row.object));
        self.unless_damaged(Listed { rows, total_count: total_count as u64 })
    }

    /// Returns the fields that refer to an object, in DevTools' order: nearest to a root first.
    pub fn retainers(&self, node: u32, page: Page) -> Result<Listed<FieldRow>> {
        self.retainers_ignoring(&RetainersView::whole(self.objects()), node, page)
    }

    /// Returns the fields that refer to an object in `view`, which may ignore some objects.
    pub fn retainers_ignoring<H: Objects + ?Sized>(
        &self,
        view: &RetainersView<'_, H>,
        node: u32,
        page: Page,
    ) -> Result<Listed<FieldRow>> {
        let (edges, total_count) = view.some_edges_into(node, page.first, page.count);
        let maker = self.maker();
        let mut rows = lines(&edges, |edge| maker.retainer(edge));
        for row in &mut rows {
            row.distance = view.edge_distance(row.edge);
        }
        self.listed.add(rows.iter().map(|row| &row.object));
        self.unless_damaged(Listed { rows, total_count: total_count as u64 })
    }

    /// Returns the `top` shortest paths from a root to an object that avoid the `ignored` nodes.
    pub fn retaining_paths(&self, node: u32, ignored: &HashSet<u32>, top: usize) -> Result<RetainingPaths> {
        let naming = Naming::of(self.objects());
        // An index is read object by object: a walk over all would read the whole of it.
        let is_asked_again = self.has_paths.swap(true, Ordering::Relaxed);
        let steps = (is_asked_again && matches!(self.source, Source::Memory(_)))
            .then(|| self.root_steps.get_or_init(|| RootSteps::of(self.objects())));
        let paths = retaining_paths(self.objects(), &naming, node, ignored, top, steps);
        self.unless_damaged(paths)
    }

    /// Returns the objects that a node immediately dominates, most bytes first.
    pub fn dominated(&self, node: u32, page: Page) -> Result<Listed<ObjectRow>> {
        let children = self.objects.dominated_by(node);
        let nodes = sorted_page(self.objects(), &children, page);
        self.rows(&nodes, children.len())
    }

    /// Returns the chain of dominators from a node up to the root, the node itself first.
    pub fn dominators(&self, node: u32) -> Result<Vec<ObjectRow>> {
        let mut chain = vec![self.maker().object(node)];
        let mut at = node;
        while at != self.objects.root() && chain.len() < self.objects.node_count() as usize {
            self.unless_damaged(())?;
            at = self.objects.dominator(at);
            chain.push(self.maker().object(at));
        }
        self.unless_damaged(chain)
    }

    /// Whether the view knows [`ObjectDetails::allocated_by`], which an index does not contain.
    #[must_use]
    pub fn has_allocation_stacks(&self) -> bool {
        matches!(self.source, Source::Memory(_))
    }

    /// Returns all facts about an object.
    pub fn details(&self, node: u32) -> Result<ObjectDetails> {
        let objects = self.objects();
        // Details show the whole text of a string.
        let maker = RowMaker { objects, name_units: usize::MAX };
        let location = objects.location(node);
        let details = ObjectDetails {
            row: maker.object(node),
            dominator: maker.object(objects.dominator(node)),
            dominated_count: objects.dominated_count(node).saturating_sub(1),
            place: location.map(|location| objects.script_paths().place(location)),
            dom_state: match objects.dom_state(node) {
                DomState::Detached if !objects.is_detached(node) => DomState::Unknown,
                state => state,
            },
            trace_node_id: objects.trace_node_id(node),
            allocated_by: match &self.source {
                Source::Memory(heap) => allocation_stack(heap, node),
                // An index does not contain the allocation trace.
                Source::Index(_) => Vec::new(),
            },
        };
        self.unless_damaged(details)
    }

    fn rows(&self, nodes: &[u32], total_count: usize) -> Result<Listed<ObjectRow>> {
        let maker = self.maker();
        let rows = lines(nodes, |node| maker.object(node));
        self.listed.add(&rows);
        self.unless_damaged(Listed { rows, total_count: total_count as u64 })
    }

    /// Returns an answer, unless the index turned out to be damaged.
    pub(crate) fn unless_damaged<T>(&self, answer: T) -> Result<T> {
        match self.objects.damage() {
            None => Ok(answer),
            Some(what) => Err(Error::DamagedIndex { what }),
        }
    }
}
