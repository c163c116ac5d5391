//! What there is once for the machine.

use std::fs;

/// Whether the kernel promises no more memory than there is.
pub fn is_memory_promised_strictly() -> bool {
    fs::read_to_string("/proc/sys/vm/overcommit_memory").is_ok_and(|mode| mode.trim() == "2")
}

/// Whether the processor's time stamp counter runs at one rate in all power states.
pub fn has_invariant_counter() -> bool {
    let processor = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let flags = processor.lines().find(|line| line.starts_with("flags")).unwrap_or_default();
    let has = |flag: &str| flags.split_ascii_whitespace().any(|word| word == flag);
    has("constant_tsc") && has("nonstop_tsc")
}

/// The clock by which the kernel keeps time; empty where it does not tell.
pub fn kernel_clock() -> String {
    let source = fs::read_to_string("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    source.unwrap_or_default().trim().to_owned()
}

/// Out-of-memory kills since the machine was started; 0 where the kernel does not tell.
pub fn oom_kills() -> u64 {
    let counters = fs::read_to_string("/proc/vmstat").unwrap_or_default();
    let count = counters.lines().find_map(|line| line.strip_prefix("oom_kill "));
    count.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
}

/// Who may trace whom (`kernel.yama.ptrace_scope`); empty where the kernel has no such module.
pub fn ptrace_scope() -> String {
    fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").unwrap_or_default().trim().to_owned()
}
