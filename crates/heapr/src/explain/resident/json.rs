//! The same for programs.

use heapr_resident::{Class, Line};
use serde_json::{Value, json};

use super::Resident;

/// `lines` add up to `rss_bytes`; `unknown_bytes` says again what the line `unknown` has.
pub(super) fn value(resident: &Resident) -> Value {
    let account = &resident.account;
    let pages = &account.pages;
    json!({
        "pid": resident.pid,
        "executable": resident.executable,
        "rss_bytes": pages.rss_bytes,
        "pss_bytes": pages.pss_bytes,
        "shared_bytes": pages.shared_bytes(),
        "lines": account.lines().iter().map(line).collect::<Vec<_>>(),
        "unknown_bytes": account.bytes(Class::Unknown),
        "arena_count": account.arena_count,
        "beside": {
            "swapped_bytes": resident.beside.swapped_bytes,
            "page_table_bytes": resident.beside.page_table_bytes,
            "kernel_stack_bytes": resident.beside.kernel_stack_bytes,
            "reserved_huge_bytes": resident.beside.reserved_huge_bytes,
            "threads": resident.beside.threads,
        },
        "not_told": resident.limits,
    })
}

fn line(line: &Line) -> Value {
    /// Libraries of a large program; more say nothing.
    const MOST_PARTS: usize = 32;
    let parts = line.parts.iter().take(MOST_PARTS);
    json!({
        "class": line.class,
        "label": line.class.label(),
        "bytes": line.pages.rss_bytes,
        "pss_bytes": line.pages.pss_bytes,
        "shared_bytes": line.pages.shared_bytes(),
        "huge_bytes": line.pages.anonymous_huge_bytes + line.pages.mapped_huge_bytes,
        "lazily_freed_bytes": line.pages.lazily_freed_bytes,
        "swapped_bytes": line.pages.swapped_bytes,
        "locked_bytes": line.pages.locked_bytes,
        "piece_count": line.piece_count,
        "told_by": line.told_by,
        "parts": parts.map(|(name, bytes)| json!({"name": name, "bytes": bytes})).collect::<Vec<_>>(),
    })
}
