//! Functions, or their lines, with inclusive and own amounts: allocations while the function was on
//! the stack, and those by its own frame.

use heapr_trace::{Amounts, StackIndex};

use crate::culled_rows::Culled;
use crate::error::Result;
use crate::frames::FrameId;
use crate::metrics::Metric;
use crate::symbol_tree::NamedStack;

/// A function, or a line of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FunctionAmounts {
    /// The function, or one of its lines.
    pub frame: FrameId,
    /// Amounts of all stacks with the function; a stack that holds it several times counts once.
    pub inclusive: Amounts,
    /// Amounts of the stacks whose innermost frame is this function, after culling.
    pub own: Amounts,
    /// Stack that adds most to the sort metric.
    pub representative: StackIndex,
    most: u64,
}

/// Functions, the greatest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Functions {
    /// The functions; at most `top`.
    pub functions: Vec<FunctionAmounts>,
    /// Number of all functions.
    pub function_count: usize,
}

/// Sums all functions of the rows, or each of their lines with `by_line`, and ranks them by an
/// inclusive amount.
pub(crate) fn functions(
    culled: &Culled<'_, '_>,
    by_line: bool,
    sort: Metric,
    top: usize,
) -> Result<Functions> {
    let tree = culled.tree();
    let frame_count = tree.frames.count();
    // Index + 1 in `found` of each frame.
    let mut places = vec![0_u32; frame_count];
    // Number of the last row that each frame was seen in.
    let mut seen = vec![0_u32; frame_count];
    let mut found: Vec<FunctionAmounts> = Vec::new();
    let mut row_number = 0_u32;
    culled.for_each(|row, stack: NamedStack| {
        row_number = row_number.wrapping_add(1).max(1);
        for (depth, frame) in tree.frames_of(stack).enumerate() {
            let frame = if by_line { frame } else { tree.frames.function(frame) };
            let number = frame.0 as usize;
            if places[number] == 0 {
                found.push(FunctionAmounts {
                    frame,
                    inclusive: Amounts::default(),
                    own: Amounts::default(),
                    representative: row.stack,
                    most: 0,
                });
                places[number] = found.len() as u32;
            }
            let function = &mut found[places[number] as usize - 1];
            if depth == 0 {
                function.own += &row.amounts;
            }
            if seen[number] == row_number {
                continue;
            }
            seen[number] = row_number;
            function.inclusive += &row.amounts;
            let amount = sort.of(&row.amounts);
            if amount > function.most {
                (function.most, function.representative) = (amount, row.stack);
            }
        }
    })?;
    found.sort_by_key(|function| {
        std::cmp::Reverse((
            sort.of(&function.inclusive),
            sort.of(&function.own),
            function.inclusive.total_bytes,
        ))
    });
    let function_count = found.len();
    found.truncate(top);
    Ok(Functions { functions: found, function_count })
}
