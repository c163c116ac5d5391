//! Path from a root to an object, as text and as JSON.

use heapr_v8::analysis::PathStep;

use crate::plain_text::one_line;

/// Formats a line for each object, with the reference from the one before; backing stores of
/// collections are left out.
pub(super) fn path_lines(path: &[PathStep]) -> Vec<String> {
    let mut lines = Vec::new();
    let mut is_in_storage = false;
    for (depth, step) in path.iter().enumerate() {
        if step.is_storage && depth + 1 < path.len() {
            is_in_storage = true;
            continue;
        }
        let place = step.place.as_ref().map(|place| format!("  {place}")).unwrap_or_default();
        let held = match (depth, std::mem::take(&mut is_in_storage)) {
            (0, _) => String::new(),
            (_, true) if !step.is_told => "[…] -> ".to_owned(),
            _ => format!("{} -> ", one_line(&step.held_as)),
        };
        lines.push(format!("{held}{} @{}{}", one_line(&step.name), step.id, one_line(&place)));
    }
    lines
}
