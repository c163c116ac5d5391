//! The way from a root to an object, for people and for programs.

use heapr_v8::analysis::PathStep;

use crate::snapshot::heap_file::one_line;

/// A line for each object, with how the one before holds it.
pub(super) fn path_lines(path: &[PathStep]) -> Vec<String> {
    path.iter()
        .enumerate()
        .map(|(depth, step)| {
            let place = step.place.as_ref().map(|place| format!("  {place}")).unwrap_or_default();
            let held = match (depth, step.held_as.is_empty()) {
                (0, _) => String::new(),
                (_, true) => "-> ".to_owned(),
                (_, false) => format!("{} -> ", one_line(&step.held_as)),
            };
            format!("{held}{} @{}{}", one_line(&step.name), step.id, one_line(&place))
        })
        .collect()
}
