//! `heapr doctor PID`: which allocators are in a process, and which of them can be recorded.

use anyhow::Context as _;
use heapr_known::runtimes::{self, ShownBy};
use heapr_session::{BlocksThere, GoSeen, Inside, OwnPart};
use heapr_table::quantity::bytes;

use crate::doctor::check::Check;

/// Advice for a stripped file whose functions need names.
const DEBUG_SYMBOLS: &str = "install its debug symbols (a -dbgsym package), or set DEBUGINFOD_URLS";

/// Returns a check for each module that has an embedded allocator, or may have one.
pub(super) fn checks(pid: u32) -> anyhow::Result<Vec<Check>> {
    let inside =
        heapr_session::look_inside(pid).with_context(|| format!("cannot look into process {pid}"))?;
    let mut checks = Vec::new();
    if !inside.modules.is_empty() {
        checks.push(Check::ok("C library", "malloc and its kin are recorded"));
    }
    for module in &inside.modules {
        let file = module.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        for allocator in &module.allocators {
            let heap = match allocator.heap.as_str() {
                "" => String::new(),
                heap => format!(", as a heap of their own ({heap})"),
            };
            let count = allocator.functions.len();
            let found = format!("{} in {file}: {count} functions can be recorded{heap}", allocator.name);
            checks.push(Check::ok("inside", found));
        }
        for name in &module.named_allocators {
            let advice = match runtimes::of_heap(name).map(|row| row.shown_by) {
                Some(ShownBy::WordsOrMappings(shows)) => format!("{shows} shows it"),
                _ => DEBUG_SYMBOLS.to_owned(),
            };
            let found = if module.is_stripped {
                format!("{name} in {file}, which is stripped: its functions have no names")
            } else {
                format!("{name} in {file}: what it maps is recorded by its name, not block by block")
            };
            checks.push(Check::limited("inside", found, advice));
        }
        if module.is_main && module.is_stripped && module.named_allocators.is_empty() {
            let found = format!("{file} is stripped: an allocator inside could not be found");
            checks.push(Check::limited("inside", found, DEBUG_SYMBOLS));
        }
    }
    checks.extend(protection(pid));
    checks.extend(go(pid, &inside));
    checks.extend(own_memory(pid, &inside));
    Ok(checks)
}

/// Returns a check on the protections by which the kernel prevents attaching.
fn protection(pid: u32) -> Option<Check> {
    const TOPIC: &str = "protection";
    match heapr_inject::denies_write_execute(pid) {
        Ok(false) => None,
        Ok(true) => Some(Check::no(
            TOPIC,
            "it may not make memory executable (MemoryDenyWriteExecute= of systemd, PR_SET_MDWE): nothing can be attached to it",
            "start it with heapr run, which needs no such memory, or without that protection",
        )),
        // The kernel shows the setting only to the process itself.
        Err(error) => Some(Check::limited(
            TOPIC,
            format!("whether it may make memory executable (MemoryDenyWriteExecute=) is unknown: {error}"),
            "heapr explain needs no such memory; heapr run does not either",
        )),
    }
}

/// Returns a check on Go's own heap, if the process has Go.
fn go(pid: u32, inside: &Inside) -> Option<Check> {
    let (path, version, seen) = inside.go(pid)?;
    let file = path.file_name().unwrap_or_default().to_string_lossy();
    let version = if version.is_empty() { "of a version that it does not tell" } else { version };
    Some(match seen {
        GoSeen::Every(mean_bytes) => Check::ok(
            "inside",
            format!(
                "Go's heap in {file} ({version}): sampled by its runtime every {}, as a heap of its own (Go)",
                bytes(mean_bytes)
            ),
        ),
        GoSeen::SwitchedOff => Check::limited(
            "inside",
            format!("Go's heap in {file} ({version}): its runtime samples nothing, as nobody asks for it"),
            "start it with heapr run, which switches it on, or import runtime/pprof",
        ),
        GoSeen::Unreadable(why) => Check::limited(
            "inside",
            format!("Go's heap in {file} ({version}) is not seen: {why}"),
            "its own net/http/pprof shows it",
        ),
    })
}

/// Returns a check on the memory that the process holds, and the share of it where blocks are
/// recorded.
fn own_memory(pid: u32, inside: &Inside) -> Option<Check> {
    let parts = heapr_session::own_memory_of(pid, inside)?;
    let sum = |parts: &mut dyn Iterator<Item = &OwnPart>| {
        parts.fold(0, |sum: u64, part| sum.saturating_add(part.bytes))
    };
    let all = sum(&mut parts.iter());
    let unseen = sum(&mut parts.iter().filter(|part| part.blocks == BlocksThere::Unseen));
    let share = |part: u64| u128::from(part) * 100 / u128::from(all.max(1));
    let named: Vec<String> = parts
        .iter()
        .map(|part| format!("{} {} ({} %)", bytes(part.bytes), part.name, share(part.bytes)))
        .collect();
    let found = format!("{} of its own: {}", bytes(all), named.join(", "));
    // Least bytes of which a recording would warn.
    const LEAST_BYTES: u64 = 3 << 20;
    Some(if unseen >= LEAST_BYTES.max(all / 10) {
        let text = format!("{found}; {} % lie where no block is recorded", share(unseen));
        Check::limited(
            "memory",
            text,
            "heapr explain PID tells page by page; --mmap records mappings with their stacks",
        )
    } else {
        Check::ok("memory", found)
    })
}
