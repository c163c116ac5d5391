//! Filters of the summary on the command line.

use std::path::PathBuf;

use heapr_v8::devtools::{ContextOwner, Filter, Heap, NodeSet};

use crate::snapshot::v8::heap_file::{ObjectId, Wanted, open};

/// Which objects count.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct ObjectFilterArguments {
    /// Only objects of this kind
    #[arg(long, value_enum, value_name = "KIND")]
    filter: Vec<NamedFilter>,
    /// Only objects that were allocated after this snapshot was taken
    #[arg(long, value_name = "SNAPSHOT")]
    allocated_after: Option<PathBuf>,
    /// Only objects that were allocated before this snapshot was taken
    #[arg(long, value_name = "SNAPSHOT")]
    allocated_before: Option<PathBuf>,
    /// Only objects of this native context
    #[arg(long, value_name = "@ID")]
    native_context: Option<ObjectId>,
}

/// DevTools' filters by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum NamedFilter {
    /// Strings that are there more than once
    DuplicatedStrings,
    /// Objects that only detached DOM nodes keep alive
    DetachedNodes,
    /// Objects that only the variables of DevTools' console keep alive
    Console,
    /// Objects that only handlers of DOM events keep alive
    EventHandlers,
    /// Objects that only contexts of closures keep alive
    Contexts,
    /// Objects that several native contexts lead to
    SharedContext,
    /// Objects that no native context leads to
    NoContext,
}

impl ObjectFilterArguments {
    /// Whether no filter is set.
    pub(crate) fn is_empty(&self) -> bool {
        self.filter.is_empty()
            && self.allocated_after.is_none()
            && self.allocated_before.is_none()
            && self.native_context.is_none()
    }

    /// Returns a name of the filters for saved answers. `None` if they depend on other snapshots,
    /// too.
    pub(crate) fn name(&self) -> Option<String> {
        if self.allocated_after.is_some() || self.allocated_before.is_some() {
            return None;
        }
        let mut parts: Vec<String> = self.filter.iter().map(|filter| format!("{filter:?}")).collect();
        parts.extend(self.native_context.map(|context| format!("context {}", context.0)));
        Some(parts.join(" "))
    }

    /// Returns the objects that pass all filters; `None` if no filter is set.
    pub(crate) fn nodes(&self, heap: &Heap) -> anyhow::Result<Option<NodeSet>> {
        let mut filters: Vec<Filter> = self.filter.iter().map(|named| named.filter()).collect();
        if let Some(context) = self.native_context {
            filters.push(Filter::NativeContext(ContextOwner::One(context.node(heap)?)));
        }
        let max_id = |file: &Option<PathBuf>| -> anyhow::Result<Option<u64>> {
            Ok(file
                .as_deref()
                .map(|file| open(file, Wanted::Classes))
                .transpose()?
                .map(|heap| heap.max_js_id()))
        };
        let (after, before) = (max_id(&self.allocated_after)?, max_id(&self.allocated_before)?);
        if after.is_some() || before.is_some() {
            anyhow::ensure!(
                heap.snapshot().meta().dialect.is_none(),
                "only V8 numbers objects in the order of allocation: compare the files with heapr snapshot diff"
            );
            filters.push(Filter::AllocatedBetween(
                after.unwrap_or(0),
                before.unwrap_or_else(|| heap.max_js_id()),
            ));
        }
        let mut sets = filters.iter().map(|filter| filter.nodes(heap));
        let Some(first) = sets.next() else { return Ok(None) };
        let mut passing = first;
        for set in sets {
            let mut both = NodeSet::new(heap.snapshot().node_count());
            for node in passing.nodes().filter(|&node| set.contains(node)) {
                both.insert(node);
            }
            passing = both;
        }
        Ok(Some(passing))
    }
}

impl NamedFilter {
    fn filter(self) -> Filter {
        match self {
            Self::DuplicatedStrings => Filter::DuplicatedStrings,
            Self::DetachedNodes => Filter::RetainedByDetachedNodes,
            Self::Console => Filter::RetainedByConsole,
            Self::EventHandlers => Filter::RetainedByEventHandlers,
            Self::Contexts => Filter::RetainedByContexts,
            Self::SharedContext => Filter::NativeContext(ContextOwner::Shared),
            Self::NoContext => Filter::NativeContext(ContextOwner::None),
        }
    }
}
