//! Facts about the machine.

use heapr_known::machine::HERE;

use crate::whole_file;

/// True if the kernel commits no more memory than it has (strict overcommit).
pub fn is_memory_promised_strictly() -> bool {
    whole_file::text("/proc/sys/vm/overcommit_memory").is_ok_and(|mode| mode.trim() == "2")
}

/// True if the processor's time stamp counter has one rate in all power states.
pub fn has_invariant_counter() -> bool {
    let processor = whole_file::text("/proc/cpuinfo").unwrap_or_default();
    let flags = processor.lines().find(|line| line.starts_with("flags")).unwrap_or_default();
    let has = |flag: &&str| flags.split_ascii_whitespace().any(|word| word == *flag);
    HERE.steady_counter_flags.iter().all(has)
}

/// Name of the kernel's clock source; empty if unknown.
pub fn kernel_clock() -> String {
    let source = whole_file::text("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    source.unwrap_or_default().trim().to_owned()
}

/// True if the kernel itself keeps the time by the processor's counter.
pub fn is_kept_by_counter() -> bool {
    kernel_clock() == HERE.counter_clock
}

/// Number of out-of-memory kills since boot; 0 if unknown.
pub fn oom_kills() -> u64 {
    let counters = whole_file::text("/proc/vmstat").unwrap_or_default();
    let count = counters.lines().find_map(|line| line.strip_prefix("oom_kill "));
    count.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
}

/// Restriction of ptrace (`kernel.yama.ptrace_scope`); empty if the kernel has no such module.
pub fn ptrace_scope() -> String {
    whole_file::text("/proc/sys/kernel/yama/ptrace_scope").unwrap_or_default().trim().to_owned()
}
