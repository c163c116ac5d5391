//! What an allocation timeline adds: functions, the tree of their calls, and samples of the time.

use crate::format::scanner::Scanner;
use crate::{Error, Result};

/// A function of the allocation trace. Positions count from 1; 0 means that there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TraceFunction {
    /// Its number for V8.
    pub function_id: u64,
    /// String number of its name.
    pub name: u32,
    /// String number of the script's name.
    pub script_name: u32,
    /// The script.
    pub script_id: u64,
    /// Line of the function.
    pub line: u32,
    /// Column of the function.
    pub column: u32,
}

/// A node of the tree of calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TraceNode {
    /// What nodes of the heap refer to.
    pub id: u64,
    /// The number of the function.
    pub function_index: u32,
    /// Objects allocated here.
    pub allocation_count: u64,
    /// Their bytes.
    pub allocated_bytes: u64,
    /// The caller, as a position in the list of trace nodes; the root's is itself.
    pub parent: u32,
}

/// Which ids had been given out at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TimeSample {
    /// Microseconds.
    pub timestamp_us: u64,
    /// The largest id until then.
    pub last_assigned_id: u64,
}

/// All of an allocation trace.
#[derive(Debug, Clone, Default)]
pub struct AllocationTrace {
    /// The functions.
    pub functions: Vec<TraceFunction>,
    /// The tree; callers before callees.
    pub nodes: Vec<TraceNode>,
    /// In order of time.
    pub samples: Vec<TimeSample>,
}

/// Reads the tree, which nests as deep as the calls did: `[id,function,count,size,[children]]`.
///
/// `children` is the position of the list of children in a row of `fields.len()` fields. `false` if
/// the text ends inside the tree.
pub(crate) fn read_trace_tree(
    scanner: &mut Scanner,
    fields: &[String],
    nodes: &mut Vec<TraceNode>,
) -> Result<bool> {
    let position = |name: &str| fields.iter().position(|field| field == name);
    let places = [position("id"), position("function_info_index"), position("count"), position("size")];
    let children = position("children");
    // One entry for each open list of rows: the parent, and how far the current row has come.
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
