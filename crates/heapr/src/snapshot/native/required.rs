//! Blocks of a native graph whose stacks have given functions.

use std::collections::HashSet;
use std::path::Path;

use anyhow::Context as _;
use heapr_query::{CullList, Filter, FramePattern, GroupBy, StackGroups};

use super::graph_file::{GraphArguments, GraphFile};
use crate::report::names::TraceNames;

/// Returns the addresses of the blocks, which are the ids of their objects.
///
/// # Errors
/// A pattern cannot be parsed, or the file has no graph.
pub(crate) fn blocks_of_frames(path: &Path, patterns: &[String]) -> anyhow::Result<HashSet<u64>> {
    let asked = GraphArguments::default();
    let file = GraphFile::open(path, &asked)?;
    let parsed: heapr_query::Result<Vec<FramePattern>> =
        patterns.iter().map(|text| FramePattern::parse(text)).collect();
    let filter = Filter { required_frames: parsed.context("--require-frames")?, ..Filter::default() };
    let mut names = TraceNames::new(&file.trace, &asked.names);
    let stacks: HashSet<_> = file.blocks.iter().map(|block| block.stack).collect();
    let cull = CullList::empty();
    let groups = StackGroups::new(&file.trace, stacks, GroupBy::Stacks, &cull, &filter, &mut names);
    let chosen = file.blocks.iter().filter(|block| groups.group_of(block.stack).is_some());
    Ok(chosen.map(|block| block.address_avma).collect())
}
