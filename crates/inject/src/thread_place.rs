//! Is a thread in the allocator, in bytes that will be overwritten, or in the agent?
//!
//! The answers are conservative: a word on the stack counts as a return address. Only the top of
//! the stack is looked at for the allocator, whose functions have small frames and call nothing but
//! the C library and the kernel; all of it (up to a bound) for code that goes away, where a mistake
//! would be a crash.

use std::os::unix::fs::FileTypeExt as _;

use crate::allocator_code::{AllocatorCode, is_in};
use crate::gate::Gate;
use crate::memory::{ProcessMemory, TargetMemory as _, Unreachable};
use crate::remote::Borrowed;
use crate::stop::StoppedThread;
use crate::x86_64::Prologue;
use heapr_proc::Mapping;
use heapr_proc::mappings;

/// Bytes above the stack pointer in which an allocator's return address must lie.
const ALLOCATOR_STACK_BYTES: u64 = 512;
/// Bytes of a stack that are looked at: a thread in deeper recursion is not seen to have been
/// interrupted in the few bytes that matter.
const STACK_BYTES_MAX: u64 = 1 << 20;

/// System calls that an allocator makes: mmap, mprotect, munmap, brk, sched_yield, mremap, madvise,
/// futex.
const ALLOCATOR_CALLS: [u64; 8] = [9, 10, 11, 12, 24, 25, 28, 202];
const PAGE: u64 = 4096;
const FUTEX: u64 = 202;
const READ: u64 = 0;

/// Words of a thread's stack from `sp` on; `None` if it cannot be read, so that nothing is known of
/// what the thread will come back to.
pub(crate) fn stack_words(
    memory: &ProcessMemory,
    mappings: &[Mapping],
    sp_avma: u64,
    bytes_max: u64,
) -> Option<Vec<u64>> {
    let start = sp_avma & !7;
    // The stack of a thread that was made since the list was read: as far as something is mapped.
    let end = mappings::find(mappings, start)
        .map_or(start.saturating_add(STACK_BYTES_MAX), |mapping| mapping.end_avma);
    let bytes = end.saturating_sub(start).min(bytes_max);
    let bytes = memory.read_vec(start, bytes as usize).or_else(|_| {
        // The list is not of this moment: what is still there of it, page by page.
        let mut read = memory.read_vec(start, (PAGE - start % PAGE).min(bytes) as usize)?;
        while (read.len() as u64) < bytes {
            let at = start + read.len() as u64;
            match memory.read_vec(at, PAGE.min(bytes - read.len() as u64) as usize) {
                Ok(page) => read.extend(page),
                Err(_) => break,
            }
        }
        Ok::<_, Unreachable>(read)
    });
    let words = |bytes: Vec<u8>| {
        bytes.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().unwrap_or_default())).collect()
    };
    bytes.ok().map(words)
}

/// Whether a word of a thread's stack is such a one; also if the stack cannot be read.
fn may_have_word(words: Option<Vec<u64>>, is_such: impl Fn(u64) -> bool) -> bool {
    words.is_none_or(|words| words.into_iter().any(is_such))
}

/// Whether a thread may be at allocating or freeing. Who waits at the gate is not.
pub(crate) fn is_in_allocator(
    code: &AllocatorCode,
    gate: &Gate,
    memory: &ProcessMemory,
    mappings: &[Mapping],
    thread: &StoppedThread,
) -> bool {
    let registers = &thread.registers;
    if is_in(&code.allocator_ranges, registers.rip) || gate.may_be_inside(registers.rip) {
        return true;
    }
    match registers.system_call() {
        Some(call) if !ALLOCATOR_CALLS.contains(&call) => return false,
        // Threads wait in futex for anything; the C library's own locks are waited for in one
        // function.
        Some(FUTEX) if is_futex_wait(thread) => {
            if let Some((start, end)) = code.private_lock_range
                && !(start..end).contains(&registers.rip)
                && is_in(&code.library_ranges[..code.library_ranges.len().min(1)], registers.rip)
            {
                return false;
            }
        }
        _ => {}
    }
    is_in(&code.library_ranges, registers.rip)
        && may_have_word(stack_words(memory, mappings, registers.rsp, ALLOCATOR_STACK_BYTES), |word| {
            is_in(&code.allocator_ranges, word)
        })
}

/// Whether a thread is, or will come back, in bytes that a jump overwrites: a signal may have
/// interrupted it there.
pub(crate) fn is_in_prologue(
    prologues: &[&Prologue],
    memory: &ProcessMemory,
    mappings: &[Mapping],
    thread: &StoppedThread,
) -> bool {
    let low = prologues.iter().map(|prologue| prologue.entry_avma).min().unwrap_or(u64::MAX);
    let high = prologues.iter().map(|prologue| prologue.rest_avma).max().unwrap_or(0);
    let is_inside = |address: u64| {
        (low..high).contains(&address) && prologues.iter().any(|prologue| prologue.is_inside(address))
    };
    is_inside(thread.registers.rip)
        || may_have_word(stack_words(memory, mappings, thread.registers.rsp, STACK_BYTES_MAX), is_inside)
}

/// Whether a thread is in `ranges`, or has a word on its stack that leads there; `left`: such words
/// of threads that are in there, which stay where they were when those have come out.
pub(crate) fn may_return_to(
    ranges: &[(u64, u64)],
    left: &[u64],
    memory: &ProcessMemory,
    mappings: &[Mapping],
    thread: &StoppedThread,
) -> bool {
    is_in(ranges, thread.registers.rip)
        || may_have_word(stack_words(memory, mappings, thread.registers.rsp, u64::MAX), |word| {
            is_in(ranges, word) && !left.contains(&word)
        })
}

/// Whether a thread is in the agent, or on the stack that borrowed threads have there, whatever is
/// known of its callers.
pub(crate) fn is_on_way_through(agent: (u64, u64), thread: &StoppedThread) -> bool {
    is_in(&[agent], thread.registers.rip) || is_in(&[agent], thread.registers.rsp)
}

/// Whether a thread may come back to the agent, which lies in `agent`.
///
/// What looks like a return address may be left from a call that is over. A thread that waits for
/// something that no allocator waits for has not come there from the agent, unless a signal handler
/// or a library's destructors are in between: those show on its stack. `others`: functions besides
/// the allocator's that the agent calls; `sigreturn_avma`: where handlers return to.
pub(crate) fn may_return_to_agent(
    agent: (u64, u64),
    code: &AllocatorCode,
    others: &[(u64, u64)],
    sigreturn_avma: u64,
    memory: &ProcessMemory,
    mappings: &[Mapping],
    thread: &StoppedThread,
) -> bool {
    if is_on_way_through(agent, thread) {
        return true;
    }
    let Some(mut words) = stack_words(memory, mappings, thread.registers.rsp, u64::MAX) else { return true };
    words.extend(interrupted_words(&words, sigreturn_avma, memory, mappings));
    if !words.iter().any(|&word| is_in(&[agent], word)) {
        return false;
    }
    let is_between = |&word: &u64| word == sigreturn_avma || is_in(others, word);
    !waits_for_others(code, thread) || words.iter().any(is_between)
}

/// Words of the stacks that signal handlers on stacks of their own have left, as far as their
/// frames among `words` tell. What cannot be read is no stack: the word was left from another call.
fn interrupted_words(
    words: &[u64],
    sigreturn_avma: u64,
    memory: &ProcessMemory,
    mappings: &[Mapping],
) -> Vec<u64> {
    /// From a frame's return address to the interrupted stack pointer: flags, link, stack (3), and
    /// 15 registers.
    const RSP_WORDS: usize = 21;
    const FRAMES_MAX: usize = 4;
    let frames = words.iter().enumerate().filter(|&(_, &word)| word == sigreturn_avma);
    let pointers = frames.filter_map(|(place, _)| words.get(place + RSP_WORDS).copied());
    let stacks = pointers.take(FRAMES_MAX).filter_map(|rsp| stack_words(memory, mappings, rsp, u64::MAX));
    stacks.flatten().collect()
}

/// Whether a thread is in a system call in which no allocator waits.
fn waits_for_others(code: &AllocatorCode, thread: &StoppedThread) -> bool {
    const NANOSLEEP: u64 = 35;
    const CLOCK_NANOSLEEP: u64 = 230;
    /// poll, select, accept, recvfrom, recvmsg, wait4, epoll_wait, pselect6, ppoll, epoll_pwait,
    /// accept4, epoll_pwait2.
    const WAITS: [u64; 12] = [7, 23, 43, 45, 47, 61, 232, 270, 271, 281, 288, 441];
    match thread.registers.system_call() {
        // glibc's malloc waits for its locks in one place; of other allocators that is not known.
        Some(FUTEX) if is_futex_wait(thread) => {
            !code.has_other
                && code
                    .private_lock_range
                    .is_some_and(|(start, end)| !(start..end).contains(&thread.registers.rip))
        }
        // As who waits for a spinlock.
        Some(NANOSLEEP | CLOCK_NANOSLEEP) => !code.has_other,
        Some(READ) => reads_from_others(thread),
        Some(call) => WAITS.contains(&call),
        None => false,
    }
}

/// Whether a thread that is in read waits for another program or for a person. (Allocators read
/// files: settings, and what the kernel tells of memory.)
fn reads_from_others(thread: &StoppedThread) -> bool {
    const TERMINALS: [&str; 3] = ["/dev/pts/", "/dev/tty", "/dev/console"];
    let place = format!("/proc/{}/fd/{}", thread.tid, thread.registers.rdi as u32);
    let is_stream = std::fs::metadata(&place).is_ok_and(|file| {
        let kind = file.file_type();
        kind.is_fifo() || kind.is_socket()
    });
    let is_terminal = || {
        let path = std::fs::read_link(&place).unwrap_or_default();
        TERMINALS.iter().any(|terminal| path.as_os_str().as_encoded_bytes().starts_with(terminal.as_bytes()))
    };
    is_stream || is_terminal()
}

/// Whether a thread that is in futex waits there. Who gives up a lock is in futex, too, to wake
/// others, and from an allocator's lock it goes back into the allocator.
fn is_futex_wait(thread: &StoppedThread) -> bool {
    const COMMAND_MASK: u64 = 0x7f;
    const FUTEX_WAIT: u64 = 0;
    const FUTEX_WAIT_BITSET: u64 = 9;
    // The second argument.
    matches!(thread.registers.rsi & COMMAND_MASK, FUTEX_WAIT | FUTEX_WAIT_BITSET)
}

/// A thread that can be borrowed: in no critical section that must restart when it is left, with
/// room below its stack.
pub(crate) fn choose_thread<'a>(
    memory: &ProcessMemory,
    mappings: &[Mapping],
    threads: &'a [StoppedThread],
) -> Option<&'a StoppedThread> {
    let has_room = |thread: &&StoppedThread| {
        let low = thread.registers.rsp.saturating_sub(Borrowed::STACK_BYTES) & !(PAGE - 1);
        thread.registers.is_64_bit()
            && mappings::find(mappings, low)
                .is_some_and(|mapping| mapping.contains(thread.registers.rsp) && mapping.is_writable)
            && memory.read_u64(low).is_ok()
    };
    // A thread in a system call is in no such section.
    let in_call = threads.iter().filter(|thread| thread.registers.system_call().is_some()).find(has_room);
    in_call.or_else(|| threads.iter().find(has_room))
}
