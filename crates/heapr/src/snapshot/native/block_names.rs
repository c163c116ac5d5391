//! Names of a graph's blocks. A name comes from a known type, from what the allocating functions
//! make, or from the block's shape; else from the function, and the holder.

use std::collections::{HashMap, HashSet};

use heapr_export::frame_text::frame_name;
use heapr_native::{ToldBy, made_type, told_type};
use heapr_query::{CullList, GroupBy, StackGroups};
use heapr_session::EARLIER_BLOCKS_MODULE;
use heapr_symbols::type_name;
use heapr_trace::{StackIndex, Trace};

use super::graph_file::GraphFile;
use crate::report::names::TraceNames;

/// Names of a graph's blocks, with their evidence.
pub(super) struct BlockNames {
    /// Names with their evidence; `None` if only the allocating function is known.
    texts: Vec<(String, Option<TypeSource>)>,
    /// Index in `texts` for each block.
    numbers: Vec<u32>,
}

impl BlockNames {
    /// Names all blocks. `groups`: the stacks of all blocks, without the allocator's own frames.
    pub(super) fn of(file: &GraphFile, groups: &StackGroups<'_>, names: &mut TraceNames) -> Self {
        let sites: Vec<String> = (0..groups.len() as u32)
            .map(|group| {
                let frames = groups.frames(group);
                frames.first().map_or_else(String::new, |frame| block_of(&frame_name(frame)))
            })
            .collect();
        let stacks = file.blocks.iter().map(|block| block.stack).collect();
        let made = made_types(&file.trace, names, &stacks);
        let text = |name: &str, source: TypeSource| match source {
            TypeSource::VirtualFunctions => name.to_owned(),
            source => format!("{name} ({})", source.in_words()),
        };
        let text = |(name, source): &(String, TypeSource)| (text(name, *source), *source);
        let made: HashMap<StackIndex, (String, TypeSource)> =
            made.iter().map(|(stack, told)| (*stack, text(told))).collect();
        let types: Vec<(String, TypeSource)> =
            file.graph.type_names.iter().map(|name| type_of(name)).collect();
        let type_of = |node: usize| {
            let kind = file.graph.types.get(node).copied().unwrap_or(0);
            types.get((kind as usize).checked_sub(1)?)
        };
        let type_texts: Vec<(String, TypeSource)> = types.iter().map(text).collect();
        // The allocating functions say more than a shape does.
        let told = |node: usize| {
            let kind = file.graph.types.get(node).copied().unwrap_or(0) as usize;
            let own = kind.checked_sub(1).and_then(|kind| type_texts.get(kind));
            let is_shape = type_of(node).is_some_and(|(_, source)| *source == TypeSource::Shape);
            let made = made.get(&file.blocks[node].stack);
            if is_shape { made.or(own) } else { own.or(made) }
        };
        let mut known: HashMap<&str, u32> = HashMap::new();
        let mut texts: Vec<(String, Option<TypeSource>)> = Vec::new();
        let mut numbers = vec![UNTOLD; file.blocks.len()];
        for (node, number) in numbers.iter_mut().enumerate() {
            let Some((name, source)) = told(node).filter(|told| !told.0.is_empty()) else { continue };
            *number = *known.entry(name).or_insert_with(|| {
                texts.push((name.clone(), Some(*source)));
                texts.len() as u32 - 1
            });
        }
        let held = told_by_holders(file, &numbers);
        let mut by_place: HashMap<(u32, u32, Option<u32>), u32> = HashMap::new();
        for (node, block) in file.blocks.iter().enumerate() {
            if numbers[node] != UNTOLD {
                continue;
            }
            let group = groups.group_of(block.stack);
            let site = group.and_then(|group| sites.get(group as usize)).filter(|site| !site.is_empty());
            let site = site.map_or("block", String::as_str);
            let place = held.get(&(node as u32)).copied().unwrap_or((UNTOLD, 0));
            by_place.entry((place.0, place.1, group)).or_insert_with(|| {
                texts.push(match texts.get(place.0 as usize) {
                    Some((holder, _)) => {
                        let name = format!("{site} at +{:#x} of {holder}", u64::from(place.1) * 8);
                        (text(&(name, TypeSource::Holder)).0, Some(TypeSource::Holder))
                    }
                    None => (site.to_owned(), None),
                });
                texts.len() as u32 - 1
            });
            numbers[node] = by_place[&(place.0, place.1, group)];
        }
        Self { texts, numbers }
    }

    /// Returns the number of a block's name; blocks with the same number have the same name.
    pub(super) fn number(&self, node: u32) -> u32 {
        self.numbers[node as usize]
    }

    /// Returns the name with this number.
    pub(super) fn text(&self, number: u32) -> &str {
        &self.texts[number as usize].0
    }

    /// Returns the evidence for a block's name; `None` if only the allocating function is known.
    pub(super) fn source(&self, node: u32) -> Option<TypeSource> {
        self.texts[self.number(node) as usize].1
    }

    /// Returns the name of a block.
    pub(super) fn name(&self, node: u32) -> &str {
        self.text(self.number(node))
    }
}

/// Number of a block without evidence.
const UNTOLD: u32 = u32::MAX;

/// Finds blocks without evidence to which a single block refers that has some. Values are the
/// number of the holder's name, and the index of the word with the reference.
fn told_by_holders(file: &GraphFile, numbers: &[u32]) -> HashMap<u32, (u32, u32)> {
    let graph = &file.graph;
    let mut held: HashMap<u32, Option<(u32, u32)>> = HashMap::new();
    for (node, &number) in numbers.iter().enumerate() {
        for edge in graph.edges(node as u32) {
            let target = graph.targets[edge];
            if numbers[target as usize] == UNTOLD && graph.grades[edge].is_strong() {
                let place = Some((number, graph.slots[edge])).filter(|_| number != UNTOLD);
                held.entry(target).and_modify(|known| *known = None).or_insert(place);
            }
        }
    }
    // A block to which a variable refers needs no name by its holder.
    for root in graph.roots.iter().filter(|root| root.grade.is_strong()) {
        held.remove(&root.target);
    }
    held.into_iter().filter_map(|(target, place)| Some((target, place?))).collect()
}

/// Names a block by the function that allocated it.
fn block_of(function: &str) -> String {
    // This module is not a function.
    let joint = if function == EARLIER_BLOCKS_MODULE { "" } else { "of " };
    format!("block {joint}{function}")
}

/// Evidence for a block's type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TypeSource {
    /// Virtual functions in the object itself.
    VirtualFunctions,
    /// CPython's type in the object itself.
    Python,
    /// Debug information of the call that allocated the block.
    DebugInformation,
    /// Functions that allocated the block.
    Allocation,
    /// References to the block, and their form.
    Shape,
    /// Single block of a known type that refers to the block.
    Holder,
}

impl TypeSource {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::VirtualFunctions => "virtual functions",
            Self::Python => "CPython",
            Self::DebugInformation => "debug information",
            Self::Allocation => "allocation",
            Self::Shape => "shape",
            Self::Holder => "holder",
        }
    }

    fn in_words(self) -> &'static str {
        match self {
            Self::VirtualFunctions => "by its virtual functions",
            Self::Python => "of CPython",
            Self::DebugInformation => "by debug information",
            Self::Allocation => "by its allocation",
            Self::Shape => "by its shape",
            Self::Holder => "by its holder",
        }
    }
}

/// Parses a type that the recorder read from the program's memory, as a graph stores it.
pub(super) fn type_of(kept: &str) -> (String, TypeSource) {
    match told_type(kept) {
        (name, ToldBy::VirtualFunctions) => (type_name(name), TypeSource::VirtualFunctions),
        (name, ToldBy::Python) => (name.to_owned(), TypeSource::Python),
        (name, ToldBy::Shape) => (name.to_owned(), TypeSource::Shape),
    }
}

/// Returns types by the functions of allocating stacks. Library functions count too, which a report
/// leaves out.
pub(super) fn made_types(
    trace: &Trace,
    names: &mut TraceNames,
    stacks: &HashSet<StackIndex>,
) -> HashMap<StackIndex, (String, TypeSource)> {
    /// Most frames searched, innermost first, for the call of an allocator.
    const CALLS_MAX: usize = 4;
    let all = stacks.iter().copied();
    let groups = StackGroups::of_all(trace, all, GroupBy::Stacks, &CullList::empty(), names);
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
