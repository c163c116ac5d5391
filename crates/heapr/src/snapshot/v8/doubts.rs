//! Warnings on a comparison of V8 snapshots.

use std::path::Path;

use heapr_v8::analysis::MatchedBy;
use heapr_v8::devtools::{CaptureMode, Population};

/// Returns sentences on what makes a comparison doubtful.
pub(crate) fn doubts(
    (before, old): (&Path, &Population),
    (after, new): (&Path, &Population),
    matched_by: MatchedBy,
) -> Vec<String> {
    let mut doubts = Vec::new();
    let names = format!("{} and {}", before.display(), after.display());
    if old.mode() != new.mode() {
        let exposed = if old.mode() == CaptureMode::ExposeInternals { before } else { after };
        doubts.push(format!(
            "{names} were taken in different ways: {} exposes V8's internal objects, so sizes differ without any change",
            exposed.display()
        ));
    }
    match matched_by {
        MatchedBy::Place => doubts.push(format!(
            "{names} number their objects differently (V8 does so anew after each connection of an inspector, and for each \
             thread and process): objects were matched by their places instead, so that in a list or a Map another \
             object than the new one may count as new; snapshot take --again takes both in one connection"
        )),
        // Addresses say nothing about the order.
        MatchedBy::Id if old.is_numbered() && old.max_js_id() > new.max_js_id() => {
            doubts.push(format!("{names}: the second one is the older one: they are given in the wrong order"));
        }
        MatchedBy::Id | MatchedBy::Address => {}
    }
    doubts
}
