//! V8's sampling profiles (`.heapprofile`): live memory by JavaScript stack.

use heapr_trace::{Amounts, Untold};
use heapr_v8::CallTree;

use crate::builder::TraceBuilder;
use crate::error::{Error, Result};
use crate::input::Input;
use crate::locations::Frame;

/// Name of the tool.
pub const TOOL: &str = "V8";

/// True for JSON whose first member is one of a profile.
pub(crate) fn tells(start: &[u8]) -> bool {
    let start = start.trim_ascii_start().strip_prefix(b"{").unwrap_or_default().trim_ascii_start();
    [&b"\"head\""[..], b"\"startTime\"", b"\"endTime\""].iter().any(|known| start.starts_with(known))
}

/// Reads a file into the builder.
pub(crate) fn read(input: &mut Input<'_>, builder: &mut TraceBuilder) -> Result<()> {
    let Some(path) = &input.path else { return Err(Error::unknown(input.start())) };
    let tree = CallTree::read_profile(path)?;
    let mut calls = Vec::with_capacity(tree.functions.len());
    for function in &tree.functions {
        let frame = Frame { name: function.name.clone(), file: function.script.clone(), line: function.line };
        calls.push(builder.named(&function.script, &[], vec![frame])?);
    }
    let mut stacks = Vec::with_capacity(tree.nodes.len());
    for (place, node) in tree.nodes.iter().enumerate() {
        let call = calls.get(node.function as usize).copied();
        // The root calls all other functions, and is not part of the program.
        let stack = match (call, stacks.get(node.parent as usize)) {
            (Some(call), Some(&caller)) if (node.parent as usize) < place => builder.stack(caller, call)?,
            _ => heapr_trace::StackIndex::EMPTY,
        };
        stacks.push(stack);
        if node.own != heapr_v8::Allocations::default() {
            let amounts = Amounts {
                outstanding_bytes: node.own.live_bytes,
                outstanding_count: node.own.live_count,
                total_bytes: node.own.allocated_bytes,
                total_count: node.own.allocated_count,
                ..Amounts::default()
            };
            builder.add(stack, &amounts);
        }
    }
    builder.untold =
        Untold { totals: true, peak: true, reallocs: true, temporary: true, ..Untold::default() };
    builder.note(
        "V8's sampling profile tells what is live, estimated of samples; blocks are samples, totals and peak are unknown"
            .to_owned(),
    );
    Ok(())
}
