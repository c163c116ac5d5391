//! Location of a thread: in the allocator, in bytes that will be overwritten, or in the agent?
//!
//! The answers are conservative: every word on the stack counts as a return address. For the
//! allocator only the top of the stack is examined. Its functions have small frames, and call only
//! the C library and the kernel. For code that will be removed all of the stack (up to a limit) is
//! examined, because a mistake would be a crash.

use std::os::unix::fs::FileTypeExt as _;

use crate::allocator_code::{AllocatorCode, is_in};
use crate::arch::{Prologue, Registers, code_address, interrupted_pointers, old_calls};
use crate::gate::Gate;
use crate::memory::{ProcessMemory, TargetMemory as _, Unreachable};
use crate::remote::Borrowed;
use crate::stop::StoppedThread;
use heapr_proc::Mapping;
use heapr_proc::mappings;
use heapr_proc::page_bytes;

/// Distance in bytes from the stack pointer within which an allocator's return address must lie.
const ALLOCATOR_STACK_BYTES: u64 = 512;
/// Largest part of a stack in bytes that is examined. A thread in deeper recursion may have been
/// interrupted unnoticed in the few critical bytes.
const STACK_BYTES_MAX: u64 = 1 << 20;

/// System calls that an allocator makes.
const ALLOCATOR_CALLS: [libc::c_long; 8] = [
    libc::SYS_mmap,
    libc::SYS_mprotect,
    libc::SYS_munmap,
    libc::SYS_brk,
    libc::SYS_sched_yield,
    libc::SYS_mremap,
    libc::SYS_madvise,
    libc::SYS_futex,
];

/// Words of a thread's stack from `sp_avma` on; `None` if it cannot be read, so that the thread's
/// return addresses are unknown.
pub(crate) fn stack_words(
    memory: &ProcessMemory,
    mappings: &[Mapping],
    sp_avma: u64,
    bytes_max: u64,
) -> Option<Vec<u64>> {
    let start = sp_avma & !7;
    // A stack created since the list of mappings was read is read as far as memory is mapped.
    let end = mappings::find(mappings, start)
        .map_or(start.saturating_add(STACK_BYTES_MAX), |mapping| mapping.end_avma);
    let bytes = end.saturating_sub(start).min(bytes_max);
    let bytes = memory.read_vec(start, bytes as usize).or_else(|_| {
        // The list is older than this moment: the part that still exists is read page by page.
        let mut read = memory.read_vec(start, (page_bytes() - start % page_bytes()).min(bytes) as usize)?;
        while (read.len() as u64) < bytes {
            let at = start + read.len() as u64;
            match memory.read_vec(at, page_bytes().min(bytes - read.len() as u64) as usize) {
                Ok(page) => read.extend(page),
                Err(_) => break,
            }
        }
        Ok::<_, Unreachable>(read)
    });
    let words = |bytes: Vec<u8>| {
        let words = bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word));
        words.map(code_address).collect()
    };
    bytes.ok().map(words)
}

/// Words that may be return addresses of a thread: of its stack, and the one that the last call has
/// left in a register.
fn return_words(
    memory: &ProcessMemory,
    mappings: &[Mapping],
    registers: &Registers,
    bytes_max: u64,
) -> Option<Vec<u64>> {
    let mut words = stack_words(memory, mappings, registers.sp(), bytes_max)?;
    words.extend(registers.link());
    Some(words)
}

/// True if a word of a thread's stack satisfies the condition, or the stack cannot be read.
fn may_have_word(words: Option<Vec<u64>>, is_such: impl Fn(u64) -> bool) -> bool {
    words.is_none_or(|words| words.into_iter().any(is_such))
}

/// True if a thread may be allocating or freeing. False for a thread that waits at the gate.
pub(crate) fn is_in_allocator(
    code: &AllocatorCode,
    gate: &Gate,
    memory: &ProcessMemory,
    mappings: &[Mapping],
    thread: &StoppedThread,
) -> bool {
    let registers = &thread.registers;
    if is_in(&code.allocator_ranges, registers.pc()) || gate.may_be_inside(registers.pc()) {
        return true;
    }
    match registers.system_call() {
        Some(call) if !ALLOCATOR_CALLS.contains(&call) => return false,
        // Threads wait in futex for many reasons; for the C library's internal locks only in one
        // function.
        Some(libc::SYS_futex) if is_futex_wait(thread) => {
            if let Some((start, end)) = code.private_lock_range
                && !(start..end).contains(&registers.pc())
                && is_in(&code.library_ranges[..code.library_ranges.len().min(1)], registers.pc())
            {
                return false;
            }
        }
        _ => {}
    }
    is_in(&code.library_ranges, registers.pc())
        && may_have_word(return_words(memory, mappings, registers, ALLOCATOR_STACK_BYTES), |word| {
            is_in(&code.allocator_ranges, word)
        })
}

/// True if a thread is in bytes that a jump overwrites, or will return there: a signal may have
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
    is_inside(thread.registers.pc())
        || may_have_word(return_words(memory, mappings, &thread.registers, STACK_BYTES_MAX), is_inside)
}

/// True if a thread is in `ranges`, or has a word on its stack that leads there. `left` are words
/// that threads inside leave on their stacks when they come out.
pub(crate) fn may_return_to(
    ranges: &[(u64, u64)],
    left: &[u64],
    memory: &ProcessMemory,
    mappings: &[Mapping],
    thread: &StoppedThread,
) -> bool {
    is_in(ranges, thread.registers.pc())
        || may_have_word(return_words(memory, mappings, &thread.registers, u64::MAX), |word| {
            is_in(ranges, word) && !left.contains(&word)
        })
}

/// True if a thread is in the agent, or on the stack that borrowed threads have there, whatever its
/// callers are.
pub(crate) fn is_on_way_through(agent: (u64, u64), thread: &StoppedThread) -> bool {
    is_in(&[agent], thread.registers.pc()) || is_in(&[agent], thread.registers.sp())
}

/// Place of an agent in memory, and the code from which threads return to it.
#[derive(Debug)]
pub(crate) struct AgentCalls<'a> {
    /// First byte and end.
    pub(crate) agent: (u64, u64),
    pub(crate) code: &'a AllocatorCode,
    /// Functions besides the allocator's that the agent calls.
    pub(crate) others: Vec<(u64, u64)>,
    /// Return address of signal handlers.
    pub(crate) sigreturn_avma: u64,
}

impl AgentCalls<'_> {
    /// True if a thread may return to the agent.
    ///
    /// A word that looks like a return address may be left from a finished call. A thread in a wait
    /// that no allocator makes was not called by the agent. The exceptions are signal handlers and
    /// a library's destructors in between, which show on its stack.
    pub(crate) fn may_return_to_agent(
        &self,
        memory: &ProcessMemory,
        mappings: &[Mapping],
        thread: &StoppedThread,
    ) -> bool {
        let &Self { agent, code, ref others, sigreturn_avma } = self;
        if is_on_way_through(agent, thread) {
            return true;
        }
        let Some(mut words) = return_words(memory, mappings, &thread.registers, u64::MAX) else {
            return true;
        };
        words.extend(interrupted_words(&words, sigreturn_avma, memory, mappings));
        if !words.iter().any(|&word| is_in(&[agent], word)) {
            return false;
        }
        let is_between = |&word: &u64| word == sigreturn_avma || is_in(others, word);
        !waits_for_others(code, thread) || words.iter().any(is_between)
    }
}

/// Words of the stacks that signal handlers on alternate stacks have interrupted, according to the
/// signal frames in `words`. A frame whose stack cannot be read is left from a finished call.
fn interrupted_words(
    words: &[u64],
    sigreturn_avma: u64,
    memory: &ProcessMemory,
    mappings: &[Mapping],
) -> Vec<u64> {
    const FRAMES_MAX: usize = 4;
    let pointers = interrupted_pointers(words, sigreturn_avma);
    let stacks = pointers.take(FRAMES_MAX).filter_map(|sp| stack_words(memory, mappings, sp, u64::MAX));
    stacks.flatten().collect()
}

/// True if a thread is in a system call in which no allocator waits.
fn waits_for_others(code: &AllocatorCode, thread: &StoppedThread) -> bool {
    const WAITS: [libc::c_long; 12] = [
        old_calls::POLL,
        old_calls::SELECT,
        old_calls::EPOLL_WAIT,
        libc::SYS_accept,
        libc::SYS_recvfrom,
        libc::SYS_recvmsg,
        libc::SYS_wait4,
        libc::SYS_pselect6,
        libc::SYS_ppoll,
        libc::SYS_epoll_pwait,
        libc::SYS_accept4,
        libc::SYS_epoll_pwait2,
    ];
    match thread.registers.system_call() {
        // glibc's malloc waits for its locks in one function; for other allocators that is unknown.
        Some(libc::SYS_futex) if is_futex_wait(thread) => {
            !code.has_other
                && code
                    .private_lock_range
                    .is_some_and(|(start, end)| !(start..end).contains(&thread.registers.pc()))
        }
        // A thread that waits for a spinlock may sleep like this.
        Some(libc::SYS_nanosleep | libc::SYS_clock_nanosleep) => !code.has_other,
        Some(libc::SYS_read) => reads_from_others(thread),
        Some(call) => WAITS.contains(&call),
        None => false,
    }
}

/// True if a thread in `read` waits for another program or a person. (Allocators read files:
/// settings, and the kernel's facts about memory.)
fn reads_from_others(thread: &StoppedThread) -> bool {
    const TERMINALS: [&str; 3] = ["/dev/pts/", "/dev/tty", "/dev/console"];
    let place = format!("/proc/{}/fd/{}", thread.tid, thread.registers.arguments()[0] as u32);
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

/// True if a thread in futex waits there. A thread that releases a lock is in futex too, to wake
/// others, and may return from there into the allocator.
fn is_futex_wait(thread: &StoppedThread) -> bool {
    const COMMAND_MASK: u64 = 0x7f;
    const FUTEX_WAIT: u64 = 0;
    const FUTEX_WAIT_BITSET: u64 = 9;
    // The command is the second argument.
    matches!(thread.registers.arguments()[1] & COMMAND_MASK, FUTEX_WAIT | FUTEX_WAIT_BITSET)
}

/// Finds a thread that can be borrowed: with room below its stack, and outside of restartable
/// sequences.
pub(crate) fn choose_thread<'a>(
    memory: &ProcessMemory,
    mappings: &[Mapping],
    threads: &'a [StoppedThread],
) -> Option<&'a StoppedThread> {
    let has_room = |thread: &&StoppedThread| {
        let low = thread.registers.sp().saturating_sub(Borrowed::STACK_BYTES) & !(page_bytes() - 1);
        thread.registers.is_64_bit()
            && mappings::find(mappings, low)
                .is_some_and(|mapping| mapping.contains(thread.registers.sp()) && mapping.is_writable)
            && memory.read_u64(low).is_ok()
    };
    // A thread in a system call is in no such sequence.
    let in_call = threads.iter().filter(|thread| thread.registers.system_call().is_some()).find(has_room);
    in_call.or_else(|| threads.iter().find(has_room))
}
