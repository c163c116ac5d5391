//! `heapr doctor PID`: which allocators are in a process, and which of them can be recorded.

use anyhow::Context as _;

use crate::doctor::check::Check;

/// A line for each module that has an allocator inside, or may have one that cannot be told.
pub(super) fn checks(pid: u32) -> anyhow::Result<Vec<Check>> {
    let inside =
        heapr_session::look_inside(pid).with_context(|| format!("cannot look into process {pid}"))?;
    let mut checks = vec![Check::ok("C library", "malloc and its kin are recorded")];
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
            let found = format!("{name} in {file}, which is stripped: its functions have no names");
            checks.push(Check::limited("inside", found, "install the debug symbols of its build-id"));
        }
        if module.is_main && module.is_stripped && module.named_allocators.is_empty() {
            let found = format!("{file} is stripped: an allocator inside could not be found");
            checks.push(Check::limited("inside", found, "install the debug symbols of its build-id"));
        }
    }
    Ok(checks)
}
