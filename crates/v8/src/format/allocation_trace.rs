//! Additional data of an allocation timeline: functions, their call tree, and samples over time.

use crate::format::scanner::Scanner;
use crate::{Error, Result};

/// Function of the allocation trace. Lines and columns count from 1; 0 stands for none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TraceFunction {
    /// Number that V8 gave the function.
    pub function_id: u64,
    /// String number of the function's name.
    pub name: u32,
    /// String number of the script's name.
    pub script_name: u32,
    /// Number of the script.
    pub script_id: u64,
    /// Line of the function.
    pub line: u32,
    /// Column of the function.
    pub column: u32,
}

/// Node of the call tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TraceNode {
    /// Id by which nodes of the heap refer to this node.
    pub id: u64,
    /// Index into the functions.
    pub function_index: u32,
    /// Number of objects allocated at this node.
    pub allocation_count: u64,
    /// Bytes of those objects.
    pub allocated_bytes: u64,
    /// Index of the caller's node; the root is its own parent.
    pub parent: u32,
}

/// Largest object id in use at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TimeSample {
    /// Time of the sample, in microseconds.
    pub timestamp_us: u64,
    /// Largest id in use at that time.
    pub last_assigned_id: u64,
}

/// Functions, call tree and samples of an allocation trace.
#[derive(Debug, Clone, Default)]
pub struct AllocationTrace {
    /// Functions of the trace.
    pub functions: Vec<TraceFunction>,
    /// Nodes of the call tree, callers before callees.
    pub nodes: Vec<TraceNode>,
    /// Samples in order of time.
    pub samples: Vec<TimeSample>,
}

/// Reads the call tree, which nests as deep as the calls: `[id,function,count,size,[children]]`.
///
/// `fields` names the fields of a row; one of them is `children`. Returns false if the text ends
/// inside the tree.
pub(crate) fn read_trace_tree(
    scanner: &mut Scanner,
    fields: &[String],
    nodes: &mut Vec<TraceNode>,
) -> Result<bool> {
    let position = |name: &str| fields.iter().position(|field| field == name);
    let places = [position("id"), position("function_info_index"), position("count"), position("size")];
    let children = position("children");
    // One entry per open list of rows: the parent, and the progress in the current row.
    struct Open {
        parent: u32,
        row: Option<u32>,
        field: usize,
    }
    scanner.expect(b'[', "a list")?;
    let mut open = vec![Open { parent: 0, row: None, field: 0 }];
    while let Some(top) = open.last_mut() {
        let Some(byte) = scanner.peek()? else { return Ok(false) };
        match byte {
            b',' => scanner.skip_byte(),
            b']' => {
                scanner.skip_byte();
                open.pop();
                if let Some(above) = open.last_mut() {
                    above.field += 1;
                }
            }
            b'[' if Some(top.field % fields.len().max(1)) == children && top.row.is_some() => {
                scanner.skip_byte();
                let parent = top.row.unwrap_or(0);
                open.push(Open { parent, row: None, field: 0 });
            }
            _ => {
                let value = scanner.number()?;
                let field = top.field % fields.len().max(1);
                if field == 0 {
                    let row = u32::try_from(nodes.len())
                        .map_err(|_| Error::TooMany { what: "trace nodes", count: nodes.len() as u64 })?;
                    let parent = if nodes.is_empty() { 0 } else { top.parent };
                    nodes.push(TraceNode { parent, ..TraceNode::default() });
                    top.row = Some(row);
                }
                if let Some(node) = top.row.and_then(|row| nodes.get_mut(row as usize)) {
                    match places.iter().position(|&place| place == Some(field)) {
                        Some(0) => node.id = value,
                        Some(1) => node.function_index = u32::try_from(value).unwrap_or(u32::MAX),
                        Some(2) => node.allocation_count = value,
                        Some(3) => node.allocated_bytes = value,
                        _ => {}
                    }
                }
                top.field += 1;
            }
        }
    }
    Ok(true)
}
