//! Names of a graph's blocks: their type where that is known, what the functions make that
//! allocated them, else the function.

use std::collections::{HashMap, HashSet};

use heapr_export::frame_text::frame_name;
use heapr_native::made_type;
use heapr_query::{CullList, GroupBy, StackGroups};
use heapr_symbols::type_name;
use heapr_trace::StackIndex;

use super::graph_file::GraphFile;
use crate::report::names::TraceNames;

/// See the module.
pub(super) struct BlockNames {
    texts: Vec<String>,
    /// By block.
    numbers: Vec<u32>,
}

impl BlockNames {
    /// `groups`: the stacks of all blocks, without the allocator's own frames.
    pub(super) fn of(file: &GraphFile, groups: &StackGroups<'_>, names: &mut TraceNames) -> Self {
        let sites: Vec<String> = (0..groups.len() as u32)
            .map(|group| {
                let frames = groups.frames(group);
                frames.first().map_or_else(String::new, |frame| format!("block of {}", frame_name(frame)))
            })
            .collect();
        let stacks = file.blocks.iter().map(|block| block.stack).collect();
        let made = made_types(file, names, &stacks).into_iter().map(|(stack, (name, source))| match source {
            TypeSource::DebugInformation => (stack, format!("{name} (by debug information)")),
            TypeSource::Allocation => (stack, format!("{name} (by its allocation)")),
        });
        let made: HashMap<StackIndex, String> = made.collect();
        let types: Vec<String> = file.graph.type_names.iter().map(|name| type_name(name)).collect();
        let mut known: HashMap<&str, u32> = HashMap::new();
        let mut texts: Vec<String> = Vec::new();
        let numbers = file.blocks.iter().enumerate().map(|(node, block)| {
            let kind =
                file.graph.types.get(node).and_then(|&kind| types.get((kind as usize).checked_sub(1)?));
            let made = || made.get(&block.stack);
            let site = || groups.group_of(block.stack).and_then(|group| sites.get(group as usize));
            let name = kind.or_else(made).or_else(site).map_or("block", String::as_str);
            let name = if name.is_empty() { "block" } else { name };
            *known.entry(name).or_insert_with(|| {
                texts.push(name.to_owned());
                texts.len() as u32 - 1
            })
        });
        let numbers = numbers.collect();
        Self { texts, numbers }
    }

    /// Blocks of the same number have the same name.
    pub(super) fn number(&self, node: u32) -> u32 {
        self.numbers[node as usize]
    }

    /// The name of a number.
    pub(super) fn text(&self, number: u32) -> &str {
        &self.texts[number as usize]
    }

    /// Of a block.
    pub(super) fn name(&self, node: u32) -> &str {
        self.text(self.number(node))
    }
}

/// What tells a block's type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TypeSource {
    /// The compiler wrote it beside the call that allocated the block.
    DebugInformation,
    /// The functions that allocated it.
    Allocation,
}

impl TypeSource {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::DebugInformation => "debug information",
            Self::Allocation => "allocation",
        }
    }
}

/// What blocks are by where they were allocated, by stack: also by the library's functions, which a
/// report leaves out.
pub(super) fn made_types(
    file: &GraphFile,
    names: &mut TraceNames,
    stacks: &HashSet<StackIndex>,
) -> HashMap<StackIndex, (String, TypeSource)> {
    /// The call of an allocator is not further out.
    const CALLS_MAX: usize = 4;
    let all = stacks.iter().copied();
    let groups = StackGroups::new(&file.trace, all, GroupBy::Stacks, &CullList::empty(), &[], names);
    let frames_of = |stack| groups.group_of(stack).map(|group| groups.frames(group)).unwrap_or_default();
    let calls_of = |stack| {
        let frames = frames_of(stack).into_iter().filter(|frame| !frame.is_inlined).take(CALLS_MAX);
        let calls = frames.filter_map(|frame| Some((frame.module?.to_owned(), frame.offset.wrapping_add(1))));
        calls.collect::<Vec<_>>()
    };
    let calls: HashSet<(String, u64)> = stacks.iter().flat_map(|&stack| calls_of(stack)).collect();
    let written = names.allocation_types(calls);
    let told = stacks.iter().filter_map(|&stack| {
        let written = calls_of(stack).into_iter().find_map(|call| written.get(&call).cloned());
        let made = || made_type(frames_of(stack).iter().map_while(|frame| frame.symbol));
        let written = written.map(|name| (name, TypeSource::DebugInformation));
        Some((stack, written.or_else(|| Some((made()?, TypeSource::Allocation)))?))
    });
    told.collect()
}
