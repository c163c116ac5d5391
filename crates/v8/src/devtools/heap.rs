//! Snapshot with all results that are derived from it.

use std::sync::{Arc, OnceLock};

use heapr_graph::{DominatorTree, Dominators, Retainers, retained_bytes};

use crate::devtools::absent_names::name_absent;
use crate::devtools::classes::Classes;
use crate::devtools::computed_columns::ComputedColumns;
use crate::devtools::distances::distances;
use crate::devtools::dom_states::spread_dom_states;
use crate::devtools::essential_edges::EssentialEdges;
use crate::devtools::page_objects::{contexts_held_by_roots, has_user_roots, led_to, page_objects};
use crate::devtools::shallow_sizes::{MovedBytes, move_to_owners, owners};
use crate::devtools::subtrees::SubtreeCounts;
use crate::devtools::weak_map_edges::WeakMapEdges;
use crate::node_set::NodeSet;
use crate::objects::CaptureMode;
use crate::source_maps::SourceMaps;
use crate::{Result, Snapshot};

/// Snapshot as DevTools shows it. Expensive results are computed on first use.
#[derive(Debug)]
pub struct Heap {
    snapshot: Snapshot,
    mode: CaptureMode,
    pub(crate) weak_maps: WeakMapEdges,
    page_objects: OnceLock<NodeSet>,
    distances: OnceLock<Vec<i32>>,
    classes: OnceLock<Classes>,
    dominators: OnceLock<Dominators>,
    owner_dominators: OnceLock<Dominators>,
    retained: OnceLock<Vec<u64>>,
    moved: OnceLock<Vec<MovedBytes>>,
    subtree_counts: OnceLock<SubtreeCounts>,
    dominator_tree: OnceLock<DominatorTree>,
    retainers: OnceLock<Retainers>,
    /// Results of an earlier computation, which are read instead of computed.
    stored: Option<Arc<dyn ComputedColumns>>,
    source_maps: OnceLock<Arc<SourceMaps>>,
}

impl Heap {
    /// Prepares a snapshot: spreads states of DOM nodes, and adds sizes of internal objects to
    /// their owners.
    pub fn new(snapshot: Snapshot) -> Result<Self> {
        let mut heap = Self::begin(snapshot)?;
        if let Some(owners) = owners(&heap.snapshot) {
            heap.moved = OnceLock::from(move_to_owners(&mut heap.snapshot, &owners));
        }
        Ok(heap)
    }

    /// Prepares a snapshot as [`Self::new`] does. Computes distances, classes, dominators and
    /// retained sizes on two threads.
    pub fn with_summary(snapshot: Snapshot) -> Result<Self> {
        let mut heap = Self::begin(snapshot)?;
        let owners = std::thread::scope(|scope| {
            let shared = &heap;
            let rest = scope.spawn(|| {
                let owners = owners(&shared.snapshot);
                shared.distances();
                shared.classes();
                owners
            });
            shared.dominators();
            rest.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        if let Some(owners) = owners {
            heap.moved = OnceLock::from(move_to_owners(&mut heap.snapshot, &owners));
        }
        std::thread::scope(|scope| {
            let shared = &heap;
            scope.spawn(|| shared.subtree_counts());
            shared.retained();
        });
        Ok(heap)
    }

    /// Prepares a snapshot as [`Self::new`] does. Computes distances, dominators and retained
    /// sizes, which analyses of several snapshots need.
    pub fn with_dominators(snapshot: Snapshot) -> Result<Self> {
        let mut heap = Self::begin(snapshot)?;
        let owners = std::thread::scope(|scope| {
            let shared = &heap;
            let rest = scope.spawn(|| {
                let owners = owners(&shared.snapshot);
                shared.distances();
                owners
            });
            shared.dominators();
            rest.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        if let Some(owners) = owners {
            heap.moved = OnceLock::from(move_to_owners(&mut heap.snapshot, &owners));
        }
        heap.page_objects.take();
        heap.retained();
        Ok(heap)
    }

    fn begin(mut snapshot: Snapshot) -> Result<Self> {
        name_absent(&mut snapshot)?;
        spread_dom_states(&mut snapshot)?;
        Ok(Self::bare(snapshot, None))
    }

    /// Builds a heap from a snapshot that was prepared before it was stored.
    pub(crate) fn from_index(snapshot: Snapshot, stored: Arc<dyn ComputedColumns>) -> Self {
        Self::bare(snapshot, Some(stored))
    }

    fn bare(snapshot: Snapshot, stored: Option<Arc<dyn ComputedColumns>>) -> Self {
        let mode =
            if has_user_roots(&snapshot) { CaptureMode::Default } else { CaptureMode::ExposeInternals };
        let weak_maps = WeakMapEdges::of(&snapshot.strings);
        Self {
            snapshot,
            mode,
            weak_maps,
            page_objects: OnceLock::new(),
            distances: OnceLock::new(),
            classes: OnceLock::new(),
            dominators: OnceLock::new(),
            owner_dominators: OnceLock::new(),
            retained: OnceLock::new(),
            moved: OnceLock::new(),
            subtree_counts: OnceLock::new(),
            dominator_tree: OnceLock::new(),
            retainers: OnceLock::new(),
            stored,
            source_maps: OnceLock::new(),
        }
    }

    /// Uses source maps for source locations from this call on. Only the first call has an effect.
    pub fn use_source_maps(&self, maps: Arc<SourceMaps>) {
        self.source_maps.get_or_init(|| maps);
    }

    /// Source maps in use.
    pub(crate) fn source_maps(&self) -> Option<Arc<SourceMaps>> {
        self.source_maps.get().cloned()
    }

    /// Prepared snapshot: internal objects' sizes count for their owners, and detached nodes' names
    /// say so.
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// Capture mode of the snapshot.
    pub fn mode(&self) -> CaptureMode {
        self.mode
    }

    /// Objects that belong to the page or the program.
    pub fn page_objects(&self) -> &NodeSet {
        self.page_objects.get_or_init(|| page_objects(&self.snapshot))
    }

    /// Distance of each node. Values from [`crate::devtools::BASE_SYSTEM_DISTANCE`] on count from
    /// the root; -5 marks an unreachable node.
    pub fn distances(&self) -> &[i32] {
        self.distances.get_or_init(|| {
            let stored = self.stored.as_ref().and_then(|stored| stored.distances());
            stored.unwrap_or_else(|| distances(&self.snapshot, &self.weak_maps, |_| false))
        })
    }

    /// Classes of the heap.
    pub fn classes(&self) -> &Classes {
        self.classes.get_or_init(|| {
            let stored = self.stored.as_ref().and_then(|stored| stored.classes());
            stored.unwrap_or_else(|| Classes::of(&self.snapshot, None))
        })
    }

    /// Immediate dominators.
    pub fn dominators(&self) -> &Dominators {
        self.dominators.get_or_init(|| {
            if let Some(dominators) = self.stored.as_ref().and_then(|stored| stored.dominators()) {
                return dominators;
            }
            let essential = EssentialEdges::new(&self.snapshot, &self.weak_maps, self.page_objects());
            Dominators::of(&self.snapshot.graph, self.snapshot.root, |edge, from, to| {
                essential.contains(edge, from, to)
            })
        })
    }

    /// Immediate dominators by which the program owns its objects, in either capture mode.
    /// References from the engine or the embedder do not count. With exposed internals, DevTools
    /// makes no such distinction.
    pub(crate) fn owner_dominators(&self) -> &Dominators {
        if self.mode == CaptureMode::Default {
            return self.dominators();
        }
        self.owner_dominators.get_or_init(|| {
            let contexts = contexts_held_by_roots(&self.snapshot);
            let program = led_to(&self.snapshot, contexts.nodes());
            let rule =
                EssentialEdges::new(&self.snapshot, &self.weak_maps, &program).held_by_roots(&contexts);
            Dominators::of(&self.snapshot.graph, self.snapshot.root, |edge, from, to| {
                rule.contains(edge, from, to)
            })
        })
    }

    /// Bytes that would be freed with each node.
    pub fn retained(&self) -> &[u64] {
        self.retained.get_or_init(|| {
            let stored = self.stored.as_ref().and_then(|stored| stored.retained());
            stored.unwrap_or_else(|| retained_bytes(self.dominators(), |node| self.snapshot.self_bytes(node)))
        })
    }

    /// Bytes of V8's internal objects that count for their owners.
    pub(crate) fn moved_bytes(&self) -> &[MovedBytes] {
        self.moved.get_or_init(|| {
            let stored = self.stored.as_ref().and_then(|stored| stored.moved_bytes());
            stored.unwrap_or_default()
        })
    }

    /// Number of nodes that each node dominates.
    pub(crate) fn subtree_counts(&self) -> &SubtreeCounts {
        self.subtree_counts.get_or_init(|| SubtreeCounts::of(self.dominators()))
    }

    /// Dominator tree from the top down.
    pub fn dominator_tree(&self) -> &DominatorTree {
        self.dominator_tree.get_or_init(|| DominatorTree::of(self.dominators()))
    }

    /// Edges by target.
    pub fn retainers(&self) -> &Retainers {
        self.retainers.get_or_init(|| {
            let stored = self.stored.as_ref().and_then(|stored| stored.retainers(&self.snapshot.graph));
            stored.unwrap_or_else(|| Retainers::of(&self.snapshot.graph))
        })
    }

    /// Edges by target, if these were computed before.
    pub(crate) fn computed_retainers(&self) -> Option<&Retainers> {
        self.retainers.get()
    }

    /// Greatest id of a JavaScript object; objects that are created later have greater ids.
    pub fn max_js_id(&self) -> u64 {
        (0..self.snapshot.node_count())
            .map(|node| self.snapshot.id(node))
            .filter(|id| id % 2 == 1)
            .max()
            .unwrap_or(0)
    }
}
