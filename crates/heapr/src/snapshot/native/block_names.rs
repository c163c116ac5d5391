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
        let made = made_types(file, names);
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

/// What blocks are by the functions that allocated them, by stack: also the library's, which a
/// report leaves out.
fn made_types(file: &GraphFile, names: &mut TraceNames) -> HashMap<StackIndex, String> {
    let stacks: HashSet<StackIndex> = file.blocks.iter().map(|block| block.stack).collect();
    let all = stacks.iter().copied();
    let groups = StackGroups::new(&file.trace, all, GroupBy::Stacks, &CullList::empty(), &[], names);
    let told = stacks.into_iter().filter_map(|stack| {
        let frames = groups.frames(groups.group_of(stack)?);
        let made = made_type(frames.iter().map_while(|frame| frame.symbol))?;
        Some((stack, format!("{made} (by its allocation)")))
    });
    told.collect()
}
