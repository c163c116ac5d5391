//! Notes on memory that a graph does not cover.

use heapr_proc::ServedMemory;
use heapr_trace::{RootArea, RootClass};

/// Note about memory that a program provides only when it is touched.
pub(super) fn of_served(served: &ServedMemory) -> Option<String> {
    let bytes = |ranges: &[(u64, u64)]| ranges.iter().map(|(start, end)| end - start).sum::<u64>();
    let registered = bytes(&served.registered);
    let absent = registered.saturating_sub(served.registered_there_bytes);
    let mut parts = Vec::new();
    if absent > 0 {
        parts.push(format!(
            "{registered} bytes are registered with userfaultfd, {absent} of them not in memory"
        ));
    }
    if !served.files.is_empty() {
        parts
            .push(format!("{} bytes are mapped files that it may serve itself (FUSE)", bytes(&served.files)));
    }
    (!parts.is_empty()).then(|| {
        format!(
            "a program brings part of its memory when that is touched ({}): what was not there was not looked at, and what only it \
             refers to may seem leaked",
            parts.join("; ")
        )
    })
}

/// Smallest size of mappings that are noted.
const MAPPED_MIN_BYTES: u64 = 256 << 10;

/// Notes mappings outside of malloc's heap: allocations from them are no blocks of the graph.
pub(super) fn of_mappings(areas: &[RootArea]) -> Option<String> {
    let mapped = areas.iter().filter(|area| area.class == RootClass::Mapping);
    let bytes = mapped.map(|area| area.end_avma - area.start_avma).fold(0, u64::saturating_add);
    (bytes >= MAPPED_MIN_BYTES).then(|| {
        format!(
            "{bytes} bytes are mapped beside malloc's heap, as for arenas of CPython or V8's heap: they were looked through for \
             references, but what a runtime or another allocator gives out of them is no block here and not judged"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn area(class: RootClass, bytes: u64) -> RootArea {
        RootArea {
            class,
            start_avma: 0x7000_0000,
            end_avma: 0x7000_0000 + bytes,
            tid: 0,
            name: String::new(),
        }
    }

    #[test]
    fn mappings_whose_objects_are_not_judged_are_told_with_their_size() {
        let arenas = [area(RootClass::Mapping, 1 << 20), area(RootClass::Mapping, 256 << 10)];
        assert!(of_mappings(&arenas).unwrap().starts_with("1310720 bytes are mapped beside malloc's heap"));
        let small = [
            area(RootClass::Mapping, 4096),
            area(RootClass::Stack, 8 << 20),
            area(RootClass::Global, 1 << 20),
        ];
        assert_eq!(of_mappings(&small), None);
    }
}
