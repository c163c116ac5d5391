//! Native context (a page's frame, a vm context, the program) that each object belongs to.

use crate::devtools::Heap;
use crate::devtools::name_set::NameSet;
use crate::node_set::NodeSet;
use crate::{EdgeKind, Snapshot};

/// Context that an object belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContextOwner {
    /// No context leads to the object.
    None,
    /// Several contexts lead to the object.
    Shared,
    /// Only the context at this node leads to the object.
    One(u32),
}

/// Contexts of a heap and their objects.
#[derive(Debug)]
pub struct NativeContexts {
    contexts: Vec<u32>,
    owners: Vec<u32>,
}

/// Bytes by context.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NativeContextSizes {
    /// Node of each context and the bytes of its objects.
    pub contexts: Vec<(u32, u64)>,
    /// Bytes that belong to several contexts.
    pub shared_bytes: u64,
    /// Bytes that belong to no context.
    pub unowned_bytes: u64,
}

const NO_OWNER: u32 = u32::MAX;
const SHARED: u32 = u32::MAX - 1;

impl NativeContexts {
    /// Finds the contexts and assigns objects to them.
    pub fn of(heap: &Heap) -> Self {
        let snapshot = heap.snapshot();
        let graph = snapshot.graph();
        let names = NameSet::of(snapshot.strings(), is_context_name);
        let is_context = |node: u32| names.contains(snapshot.name_number(node));
        let links = Links::of(snapshot, is_context);
        let mut owners = vec![NO_OWNER; graph.node_count() as usize];
        let mut is_fixed = NodeSet::new(graph.node_count());
        let mut contexts = Vec::new();
        let mut queue = Vec::new();
        for node in 0..graph.node_count() {
            let owner = if is_context(node) {
                contexts.push(node);
                node
            } else {
                links.context_of(node)
            };
            if owner != NO_OWNER {
                owners[node as usize] = owner;
                is_fixed.insert(node);
                queue.push(node);
            }
        }
        let mut head = 0;
        while head < queue.len() {
            let node = queue[head];
            head += 1;
            let owner = owners[node as usize];
            for edge in graph.edges(node) {
                let target = graph.target(edge);
                if matches!(snapshot.edge_kind(edge), EdgeKind::SHORTCUT | EdgeKind::WEAK)
                    || target == node
                    || is_fixed.contains(target)
                {
                    continue;
                }
                let slot = &mut owners[target as usize];
                let merged = if *slot == NO_OWNER || *slot == owner { owner } else { SHARED };
                if *slot != merged {
                    *slot = merged;
                    queue.push(target);
                }
            }
        }
        Self { contexts, owners }
    }

    /// Nodes of the contexts.
    pub fn contexts(&self) -> &[u32] {
        &self.contexts
    }

    /// Context that `node` belongs to.
    pub fn owner(&self, node: u32) -> ContextOwner {
        match self.owners[node as usize] {
            NO_OWNER => ContextOwner::None,
            SHARED => ContextOwner::Shared,
            context => ContextOwner::One(context),
        }
    }

    /// Bytes by context.
    pub fn sizes(&self, heap: &Heap) -> NativeContextSizes {
        let mut sizes = NativeContextSizes {
            contexts: self.contexts.iter().map(|&context| (context, 0)).collect(),
            shared_bytes: 0,
            unowned_bytes: 0,
        };
        for node in 0..heap.snapshot().node_count() {
            let sum = match self.owner(node) {
                ContextOwner::None => &mut sizes.unowned_bytes,
                ContextOwner::Shared => &mut sizes.shared_bytes,
                ContextOwner::One(context) => {
                    // The contexts are in ascending order.
                    match self.contexts.binary_search(&context) {
                        Ok(at) => &mut sizes.contexts[at].1,
                        Err(_) => continue,
                    }
                }
            };
            *sum = sum.saturating_add(heap.snapshot().self_bytes(node));
        }
        sizes
    }
}

fn is_context_name(name: &[u8]) -> bool {
    let name = name.strip_prefix(b"Detached ").unwrap_or(name);
    name.strip_prefix(b"system / NativeContext")
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(b" / "))
}

/// Links by which V8 itself finds an object's context: from object to map, and from the map's map
/// to the context.
struct Links {
    map: Vec<u32>,
    context: Vec<u32>,
}

impl Links {
    fn of(snapshot: &Snapshot, is_context: impl Fn(u32) -> bool) -> Self {
        let graph = snapshot.graph();
        let (map_name, context_name) =
            (snapshot.strings().find(b"map"), snapshot.strings().find(b"native_context"));
        let mut map = vec![NO_OWNER; graph.node_count() as usize];
        let mut context = map.clone();
        for node in 0..graph.node_count() {
            for edge in graph.edges(node) {
                if snapshot.edge_kind(edge) != EdgeKind::INTERNAL {
                    continue;
                }
                let name = Some(snapshot.edge_name_number(edge));
                let target = graph.target(edge);
                if name == context_name && context[node as usize] == NO_OWNER && is_context(target) {
                    context[node as usize] = target;
                } else if name == map_name && map[node as usize] == NO_OWNER {
                    map[node as usize] = target;
                }
            }
        }
        Self { map, context }
    }

    fn context_of(&self, node: u32) -> u32 {
        let map = self.map[node as usize];
        let meta_map = self.map.get(map as usize).copied().unwrap_or(NO_OWNER);
        self.context.get(meta_map as usize).copied().unwrap_or(NO_OWNER)
    }
}
