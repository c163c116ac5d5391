//! The system calls that agent and recorder make directly. The C library's wrappers set errno, may
//! be interposed by the target, and some allocate.

use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

pub use crate::arch::{ticks_ordered, ticks_unordered};
use heapr_wire::arch::call_numbers as number;

use crate::forbidden_calls::permitted_syscall;
use crate::mappings;
use crate::pages::page_bytes;

/// Result of a system call: a value, or the error number.
pub type SysResult = Result<usize, i32>;

fn answer(raw: isize) -> SysResult {
    if (-4095..0).contains(&raw) { Err(raw.wrapping_neg() as i32) } else { Ok(raw.cast_unsigned()) }
}

/// `EINTR`.
pub const EINTR: i32 = 4;
/// `EAGAIN`.
pub const EAGAIN: i32 = 11;
/// `ESRCH`.
pub const ESRCH: i32 = 3;

/// A descriptor that is closed when dropped.
#[derive(Debug)]
pub struct Descriptor(i32);

impl Descriptor {
    /// Number of the descriptor.
    #[must_use]
    pub fn number(&self) -> i32 {
        self.0
    }

    /// Takes ownership of a descriptor that was opened for this value alone.
    #[must_use]
    pub fn from_number(number: i32) -> Self {
        Self(number)
    }
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        // SAFETY: the descriptor is owned by this value and not used after it.
        let _ = unsafe { permitted_syscall(number::CLOSE, [self.0 as usize, 0, 0, 0, 0, 0]) };
    }
}

/// Address of the list of the mappings that this crate made.
pub fn own_mappings_avma() -> u64 {
    (&raw const mappings::MAPPINGS) as u64
}

/// Maps anonymous private memory, zeroed. `wipe_on_fork`: the memory reads as zero in a forked
/// child (`MADV_WIPEONFORK`, Linux 4.14).
///
/// # Errors
/// The kernel's error number, mostly ENOMEM.
pub fn map_anonymous(bytes: usize, wipe_on_fork: bool) -> Result<*mut u8, i32> {
    const MAP_PRIVATE_ANONYMOUS_NORESERVE: usize = 0x02 | 0x20 | 0x4000;
    const MADV_WIPEONFORK: usize = 18;
    const MADV_DONTDUMP: usize = 16;
    let memory = map(bytes, MAP_PRIVATE_ANONYMOUS_NORESERVE, usize::MAX)?;
    let address = memory as usize;
    if wipe_on_fork {
        // SAFETY: advice on the mapping just made.
        answer(unsafe { permitted_syscall(number::MADVISE, [address, bytes, MADV_WIPEONFORK, 0, 0, 0]) })?;
    }
    // SAFETY: as above. Core dumps of the target stay as small as without the agent; failure is
    // harmless.
    let _ = unsafe { permitted_syscall(number::MADVISE, [address, bytes, MADV_DONTDUMP, 0, 0, 0]) };
    Ok(memory)
}

/// Unmaps memory from [`map_anonymous`] or [`map_shared`].
///
/// # Safety
/// 1. `address..address + bytes` is a whole mapping of this crate's, and no references to it
///    remain.
pub unsafe fn unmap(address: *mut u8, bytes: usize) {
    mappings::forget(address as usize);
    // SAFETY: (1).
    let _ = unsafe { permitted_syscall(number::MUNMAP, [address as usize, bytes, 0, 0, 0, 0]) };
}

/// Returns pages to the kernel: they read as zero afterwards. If the kernel refuses, they stay.
///
/// # Safety
/// 1. `address..address + bytes` is whole pages of a mapping from [`map_anonymous`]. All accesses
///    to it are atomic, and its readers take zeros for the absence of content.
pub unsafe fn give_back(address: *mut u8, bytes: usize) {
    const MADV_DONTNEED: usize = 4;
    // SAFETY: (1).
    let _ = unsafe { permitted_syscall(number::MADVISE, [address as usize, bytes, MADV_DONTNEED, 0, 0, 0]) };
}

/// Drops pages of a shared mapping from this process's resident memory; the content stays in the
/// file.
pub(crate) fn take_out_of_sight(address: usize, bytes: usize) {
    const MADV_DONTNEED: usize = 4;
    // SAFETY: for a shared mapping the call drops only the page table entries; the content stays.
    let _ = unsafe { permitted_syscall(number::MADVISE, [address, bytes, MADV_DONTNEED, 0, 0, 0]) };
}

/// Maps `bytes` of a descriptor, shared, readable and writable.
///
/// # Errors
/// The kernel's error number.
pub(crate) fn map_shared(descriptor: &Descriptor, bytes: usize) -> Result<*mut u8, i32> {
    // SAFETY: a new mapping at an address of the kernel's choice touches no existing memory.
    let address =
        answer(unsafe { permitted_syscall(number::MMAP, [0, bytes, 3, 1, descriptor.0 as usize, 0]) })?;
    mappings::note(address, bytes);
    Ok(address as *mut u8)
}

/// 1: the program has requested that future mappings be locked (`MCL_FUTURE`).
static LOCKS_MAPPINGS: AtomicU32 = AtomicU32::new(0);

/// Makes later mappings of this crate unlocked before they get memory, because the limit on locked
/// memory is the program's.
pub fn note_locking() {
    LOCKS_MAPPINGS.store(1, Relaxed);
}

/// Maps `bytes` of a descriptor like [`map_shared`], for a file of which only parts have memory.
/// The rest gets none, even if the program locks its mappings.
///
/// # Errors
/// The kernel's error number: EAGAIN and ENOMEM if there is no room.
pub(crate) fn map_shared_unlocked(descriptor: &Descriptor, bytes: usize) -> Result<*mut u8, i32> {
    map(bytes, MAP_SHARED, descriptor.0 as usize)
}

const PROT_READ_WRITE: usize = 3;
const MAP_SHARED: usize = 1;

/// Maps unlocked memory, readable and writable.
fn map(bytes: usize, flags: usize, descriptor: usize) -> Result<*mut u8, i32> {
    // The kernel fills a locked mapping at once, unless its protection forbids access.
    let is_locked = LOCKS_MAPPINGS.load(Relaxed) != 0;
    let protection = if is_locked { 0 } else { PROT_READ_WRITE };
    // SAFETY: a new mapping at an address of the kernel's choice touches no existing memory.
    let address =
        answer(unsafe { permitted_syscall(number::MMAP, [0, bytes, protection, flags, descriptor, 0]) })?;
    if is_locked {
        // SAFETY: the mapping just made.
        let _ = unsafe { permitted_syscall(number::MUNLOCK, [address, bytes, 0, 0, 0, 0]) };
        // SAFETY: the same mapping, which is not in use yet.
        if let Err(errno) = unsafe { protect(address, bytes, PROT_READ_WRITE) } {
            // SAFETY: as above.
            let _ = unsafe { permitted_syscall(number::MUNMAP, [address, bytes, 0, 0, 0, 0]) };
            return Err(errno);
        }
    }
    mappings::note(address, bytes);
    Ok(address as *mut u8)
}

/// Changes the protection of whole pages.
///
/// # Errors
/// The kernel's error number.
///
/// # Safety
/// 1. The pages are mapped and the new protection breaks no use that is made of them.
pub unsafe fn protect(address: usize, bytes: usize, protection: usize) -> Result<(), i32> {
    // SAFETY: (1).
    answer(unsafe { permitted_syscall(number::MPROTECT, [address, bytes, protection, 0, 0, 0]) }).map(|_| ())
}

/// Signals that a thread has blocked, one bit each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub struct SignalMask(u64);

/// Blocks all signals of the calling thread, and returns the mask before.
///
/// # Errors
/// The kernel's error number, if the program is not permitted to make the call.
pub fn block_signals() -> Result<SignalMask, i32> {
    change_signals(SignalMask(u64::MAX))
}

/// Sets the calling thread's blocked signals to exactly these.
pub fn set_signals(mask: SignalMask) {
    let _ = change_signals(mask);
}

fn change_signals(mask: SignalMask) -> Result<SignalMask, i32> {
    const SIG_SETMASK: usize = 2;
    let (mut before, new) = (SignalMask(0), mask);
    let [new_avma, before_avma] = [(&raw const new) as usize, (&raw mut before) as usize];
    // SAFETY: the kernel reads one mask of 8 bytes and writes the other.
    let raw = unsafe {
        permitted_syscall(
            number::RT_SIGPROCMASK,
            [SIG_SETMASK, new_avma, before_avma, size_of::<SignalMask>(), 0, 0],
        )
    };
    answer(raw).map(|_| before)
}

/// Opens a file. `path` must end with a zero byte.
///
/// # Errors
/// The kernel's error number; EINVAL if `path` has no zero byte.
pub fn open(path: &[u8], is_writable: bool) -> Result<Descriptor, i32> {
    const AT_FDCWD: usize = -100_isize as usize;
    const O_CLOEXEC: usize = 0o2_000_000;
    const O_RDWR: usize = 2;
    const EINVAL: i32 = 22;
    if !path.contains(&0) {
        return Err(EINVAL);
    }
    let flags = O_CLOEXEC | if is_writable { O_RDWR } else { 0 };
    // SAFETY: the path is zero-terminated, checked above.
    let raw =
        unsafe { permitted_syscall(number::OPENAT, [AT_FDCWD, path.as_ptr() as usize, flags, 0, 0, 0]) };
    answer(raw).map(|number| Descriptor(number as i32))
}

/// Reads a symbolic link's target into `buffer`, cut if the buffer is too small. `path` must end
/// with a zero byte.
///
/// # Errors
/// The kernel's error number; EINVAL if `path` has no zero byte.
pub fn read_link<'a>(path: &[u8], buffer: &'a mut [u8]) -> Result<&'a [u8], i32> {
    const AT_FDCWD: usize = -100_isize as usize;
    const EINVAL: i32 = 22;
    if !path.contains(&0) {
        return Err(EINVAL);
    }
    // SAFETY: the path is zero-terminated, checked above; the kernel writes at most the buffer's
    // length.
    let raw = unsafe {
        permitted_syscall(
            number::READLINKAT,
            [AT_FDCWD, path.as_ptr() as usize, buffer.as_mut_ptr() as usize, buffer.len(), 0, 0],
        )
    };
    let count = answer(raw)?;
    Ok(buffer.get(..count).unwrap_or_default())
}

/// Reads into `buffer`; 0 at the end of the file.
///
/// # Errors
/// The kernel's error number.
pub fn read(descriptor: &Descriptor, buffer: &mut [u8]) -> SysResult {
    // SAFETY: the kernel writes at most the buffer's length into it.
    answer(unsafe {
        permitted_syscall(
            number::READ,
            [descriptor.0 as usize, buffer.as_mut_ptr() as usize, buffer.len(), 0, 0, 0],
        )
    })
}

/// Reads into `buffer` at an offset in the file; 0 behind its end.
///
/// # Errors
/// The kernel's error number.
pub fn read_at(descriptor: &Descriptor, buffer: &mut [u8], offset: usize) -> SysResult {
    // SAFETY: the kernel writes at most the buffer's length into it.
    answer(unsafe {
        permitted_syscall(
            number::PREAD64,
            [descriptor.0 as usize, buffer.as_mut_ptr() as usize, buffer.len(), offset, 0, 0],
        )
    })
}

/// Creates a memfd of `bytes` bytes, sealed against changes of its size (which would make accesses
/// fault).
///
/// # Errors
/// The kernel's error number.
pub(crate) fn memfd_sealed(bytes: usize) -> Result<Descriptor, i32> {
    const MFD_CLOEXEC_ALLOW_SEALING: usize = 1 | 2;
    const F_ADD_SEALS: usize = 1033;
    const SEAL_SEAL_SHRINK_GROW: usize = 1 | 2 | 4;
    let name = b"heapr-pool\0";
    // SAFETY: the name is zero-terminated.
    let raw = unsafe {
        permitted_syscall(
            number::MEMFD_CREATE,
            [name.as_ptr() as usize, MFD_CLOEXEC_ALLOW_SEALING, 0, 0, 0, 0],
        )
    };
    let descriptor = Descriptor(answer(raw)? as i32);
    // SAFETY: calls on a descriptor that this function owns.
    answer(unsafe { permitted_syscall(number::FTRUNCATE, [descriptor.0 as usize, bytes, 0, 0, 0, 0]) })?;
    // SAFETY: as above.
    answer(unsafe {
        permitted_syscall(number::FCNTL, [descriptor.0 as usize, F_ADD_SEALS, SEAL_SEAL_SHRINK_GROW, 0, 0, 0])
    })?;
    Ok(descriptor)
}

/// Allocates memory for a part of a file at once, instead of at its first write.
///
/// # Errors
/// The kernel's error number: `ENOMEM` or `ENOSPC` if memory is short.
pub fn allocate(descriptor: &Descriptor, offset: usize, bytes: usize) -> Result<(), i32> {
    if bytes == 0 {
        return Ok(());
    }
    // SAFETY: a call on a descriptor of this crate's.
    answer(unsafe { permitted_syscall(number::FALLOCATE, [descriptor.0 as usize, 0, offset, bytes, 0, 0]) })
        .map(|_| ())
}

/// The seals of a descriptor (`F_GET_SEALS`).
///
/// # Errors
/// The kernel's error number: EINVAL for a file that cannot be sealed.
pub fn seals(descriptor: &Descriptor) -> SysResult {
    const F_GET_SEALS: usize = 1034;
    // SAFETY: a call on a descriptor of this crate's.
    answer(unsafe { permitted_syscall(number::FCNTL, [descriptor.0 as usize, F_GET_SEALS, 0, 0, 0, 0]) })
}

/// Waits until `*word != expected`, a wake, or `timeout_ns`. Spurious returns are possible.
pub fn futex_wait(word: &AtomicU32, expected: u32, timeout_ns: u64) {
    const FUTEX_WAIT: usize = 0;
    let timeout = [(timeout_ns / 1_000_000_000).cast_signed(), (timeout_ns % 1_000_000_000).cast_signed()];
    // SAFETY: the word is valid for as long as the reference; the time-out is a timespec of two
    // i64.
    let _ = unsafe {
        permitted_syscall(
            number::FUTEX,
            [word.as_ptr() as usize, FUTEX_WAIT, expected as usize, timeout.as_ptr() as usize, 0, 0],
        )
    };
}

/// Wakes up to `count` waiters on `word`, in any process.
pub fn futex_wake(word: &AtomicU32, count: u32) {
    const FUTEX_WAKE: usize = 1;
    // SAFETY: the kernel only uses the word's address as a key.
    let _ = unsafe {
        permitted_syscall(number::FUTEX, [word.as_ptr() as usize, FUTEX_WAKE, count as usize, 0, 0, 0])
    };
}

/// Result of comparing four bytes of this process with a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Held {
    /// The bytes equal the value.
    Equal,
    /// The bytes differ from the value.
    Differs,
    /// No memory is mapped at the address.
    Nothing,
    /// The kernel gave no answer.
    Unknown,
}

/// Compares the four bytes at an address of this process, which may be unmapped, with `value`. The
/// kernel reads them, so that no access faults.
#[must_use]
pub fn held_at(address: usize, value: u32) -> Held {
    const EFAULT: i32 = 14;
    const FUTEX_WAIT_PRIVATE: usize = 128;
    const NO_TIME: [i64; 2] = [0; 2];
    const ETIMEDOUT: i32 = 110;
    let arguments = [address, FUTEX_WAIT_PRIVATE, value as usize, NO_TIME.as_ptr() as usize, 0, 0];
    // SAFETY: the kernel compares the word and, if it is equal, waits for zero time.
    match answer(unsafe { permitted_syscall(number::FUTEX, arguments) }) {
        Ok(_) | Err(ETIMEDOUT | EINTR) => Held::Equal,
        Err(EAGAIN) => Held::Differs,
        Err(EFAULT) => Held::Nothing,
        Err(_) => Held::Unknown,
    }
}

/// Sets the four bytes at an address of this process to 0, and returns whether it succeeded. The
/// kernel writes them, so that an unmapped address does not fault.
///
/// # Safety
/// 1. If memory is mapped there, it is a word that may be set to 0.
pub unsafe fn clear(address: usize) -> bool {
    const FUTEX_WAKE_OP_PRIVATE: usize = 5 | 128;
    /// Operation that sets the word to 0. It also wakes one waiter if the word was -1; there are no
    /// waiters.
    const SET_TO_0: usize = 0xfff;
    static NOBODYS: AtomicU32 = AtomicU32::new(0);
    let arguments = [NOBODYS.as_ptr() as usize, FUTEX_WAKE_OP_PRIVATE, 0, 0, address, SET_TO_0];
    // SAFETY: (1).
    answer(unsafe { permitted_syscall(number::FUTEX, arguments) }).is_ok()
}

/// `CLOCK_MONOTONIC` in nanoseconds, by a real system call; 0 if the program may not make it.
#[must_use]
#[cold]
#[inline(never)]
pub fn monotonic_ns() -> u64 {
    let mut time = [0_i64; 2];
    // SAFETY: the kernel writes one timespec of two i64.
    let _ = unsafe { permitted_syscall(number::CLOCK_GETTIME, [1, time.as_mut_ptr() as usize, 0, 0, 0, 0]) };
    let [seconds, nanoseconds] = time;
    seconds.cast_unsigned().wrapping_mul(1_000_000_000).wrapping_add(nanoseconds.cast_unsigned())
}

/// Process id, in the process's own namespace; 0 if the program may not ask.
#[must_use]
pub fn process_id() -> u32 {
    // SAFETY: no arguments.
    answer(unsafe { permitted_syscall(number::GETPID, [0; 6]) }).map_or(0, |id| id as u32)
}

/// The parent's process id; 0 if the program may not ask.
#[must_use]
pub fn parent_process_id() -> u32 {
    // SAFETY: no arguments.
    answer(unsafe { permitted_syscall(number::GETPPID, [0; 6]) }).map_or(0, |id| id as u32)
}

/// Id of the calling thread; 0 if the program may not ask.
#[must_use]
pub fn thread_id() -> u32 {
    // SAFETY: no arguments.
    answer(unsafe { permitted_syscall(number::GETTID, [0; 6]) }).map_or(0, |id| id as u32)
}

/// True if a process exists, as far as this process can see.
#[must_use]
pub fn process_exists(process_id: u32) -> bool {
    // SAFETY: signal 0 only checks.
    let raw = unsafe { permitted_syscall(number::KILL, [process_id as usize, 0, 0, 0, 0, 0]) };
    answer(raw) != Err(ESRCH)
}

/// Scheduling policy of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precedence {
    /// Ordinary policy (`SCHED_OTHER`).
    Ordinary = 0,
    /// Runs only while a processor would be idle (`SCHED_IDLE`).
    Last = 5,
}

/// Sets the scheduling policy of a thread of this process; 0 is the calling thread. Returning from
/// [`Precedence::Last`] to [`Precedence::Ordinary`] needs the permission to raise priorities.
///
/// # Errors
/// The kernel's error number. EPERM: no permission, or a thread with a real-time policy in some
/// containers. ESRCH: the thread has ended.
pub fn set_precedence(thread_id: u32, precedence: Precedence) -> Result<(), i32> {
    let parameters = [0_i32; 1];
    let arguments = [thread_id as usize, precedence as usize, parameters.as_ptr() as usize, 0, 0, 0];
    // SAFETY: the kernel reads one sched_param of one int.
    answer(unsafe { permitted_syscall(number::SCHED_SETSCHEDULER, arguments) }).map(|_| ())
}

/// The calling thread's name (16 bytes, zero padded).
#[must_use]
pub fn thread_name() -> [u8; 16] {
    const PR_GET_NAME: usize = 16;
    let mut name = [0; 16];
    // SAFETY: the kernel writes 16 bytes.
    let _ =
        unsafe { permitted_syscall(number::PRCTL, [PR_GET_NAME, name.as_mut_ptr() as usize, 0, 0, 0, 0]) };
    name
}

/// Permission of a mapping, for [`query_mapping`]: read.
pub const MAPPING_READABLE: u64 = 1;
/// Permission of a mapping: write.
pub const MAPPING_WRITABLE: u64 = 2;
/// Permission of a mapping: execute.
pub const MAPPING_EXECUTABLE: u64 = 4;

/// Returns start and end of the mapping that holds `address` and has all `wanted` permissions
/// (`PROCMAP_QUERY` on an open /proc/self/maps, Linux 6.11).
///
/// # Errors
/// ENOTTY on older kernels; ENOENT if no such mapping exists.
pub fn query_mapping(maps: &Descriptor, address: usize, wanted: u64) -> Result<(usize, usize), i32> {
    // struct procmap_query is 13 words: size, flags, address; start, end and flags of the vma; page
    // size, offset, inode. The last four words are pairs of u32 or addresses: device, sizes of name
    // and build-id, their addresses.
    const PROCMAP_QUERY: usize = 0xC068_6611;
    let mut query = [0_u64; 13];
    query[0] = 104;
    query[1] = wanted;
    query[2] = address as u64;
    // SAFETY: the kernel reads and writes 104 bytes, the size of the array.
    answer(unsafe {
        permitted_syscall(
            number::IOCTL,
            [maps.0 as usize, PROCMAP_QUERY, query.as_mut_ptr() as usize, 0, 0, 0],
        )
    })?;
    Ok((query[3] as usize, query[4] as usize))
}

/// True if the eight bytes at an address can be read; needs no descriptor. The kernel copies a
/// signal set from the address before it refuses the invalid operation. `None`: unknown.
#[must_use]
pub fn is_readable(address: usize) -> Option<bool> {
    const NO_SUCH_CHANGE: usize = u32::MAX as usize;
    const EFAULT: i32 = 14;
    const EINVAL: i32 = 22;
    // SAFETY: the operation is invalid, so that the kernel changes nothing.
    match answer(unsafe { permitted_syscall(number::RT_SIGPROCMASK, [NO_SUCH_CHANGE, address, 0, 8, 0, 0]) })
    {
        Err(EFAULT) => Some(false),
        Err(EINVAL) => Some(true),
        _ => None,
    }
}

/// True if a range of whole pages is fully mapped. Also false if the program may not make the call
/// (`msync` with `MS_ASYNC`, which has no other effect).
#[must_use]
pub fn is_all_mapped(address: usize, bytes: usize) -> bool {
    const MS_ASYNC: usize = 1;
    // SAFETY: the call changes nothing.
    answer(unsafe { permitted_syscall(number::MSYNC, [address, bytes, MS_ASYNC, 0, 0, 0]) }).is_ok()
}

/// Copies memory of this process that may be unmapped: that is an error instead of a fault.
///
/// # Errors
/// The kernel's error number: EFAULT if not all of it can be read.
pub fn copy_own(address: usize, into: &mut [u8]) -> Result<(), i32> {
    const EFAULT: i32 = 14;
    let local = [into.as_mut_ptr() as usize, into.len()];
    let remote = [address, into.len()];
    let arguments = [process_id() as usize, local.as_ptr() as usize, 1, remote.as_ptr() as usize, 1, 0];
    // SAFETY: the kernel writes at most the buffer's length into it.
    let copied = answer(unsafe { permitted_syscall(number::PROCESS_VM_READV, arguments) })?;
    if copied == into.len() { Ok(()) } else { Err(EFAULT) }
}

/// Soft limit of the stack's size in bytes (`RLIMIT_STACK`); `usize::MAX` if unlimited.
#[must_use]
pub fn stack_limit_bytes() -> usize {
    const RLIMIT_STACK: usize = 3;
    soft_limit(RLIMIT_STACK).unwrap_or(8 << 20)
}

/// Soft limit of locked memory in bytes (`RLIMIT_MEMLOCK`); `usize::MAX` if unlimited.
#[must_use]
pub fn lock_limit_bytes() -> usize {
    const RLIMIT_MEMLOCK: usize = 8;
    soft_limit(RLIMIT_MEMLOCK).unwrap_or(usize::MAX)
}

/// Bytes left below the limit of the address space (`RLIMIT_AS`); `None` without a limit.
#[must_use]
pub(crate) fn address_room_bytes() -> Option<usize> {
    const RLIMIT_AS: usize = 9;
    let limit = soft_limit(RLIMIT_AS).filter(|&limit| limit != usize::MAX)?;
    let file = open(b"/proc/self/statm\0", false).ok()?;
    let mut text = [0; 64];
    let count = read(&file, &mut text).ok()?;
    // The first number is the count of mapped pages.
    let digits = text.get(..count)?.iter().take_while(|byte| byte.is_ascii_digit());
    let pages =
        digits.fold(0_usize, |number, &digit| number.wrapping_mul(10).wrapping_add((digit & 15) as usize));
    Some(limit.saturating_sub(pages.wrapping_mul(page_bytes())))
}

fn soft_limit(resource: usize) -> Option<usize> {
    let mut limit = [0_u64; 2];
    // SAFETY: the kernel writes one rlimit of two words.
    let raw =
        unsafe { permitted_syscall(number::PRLIMIT64, [0, resource, 0, limit.as_mut_ptr() as usize, 0, 0]) };
    (raw == 0).then_some(limit[0] as usize)
}

/// Locks mapped pages; with `on_fault` each page only when it becomes resident. Pages that cannot
/// be locked stay as they are.
pub fn lock(address: usize, bytes: usize, on_fault: bool) {
    // SAFETY: the call changes no contents.
    let _ = unsafe { permitted_syscall(number::MLOCK2, [address, bytes, usize::from(on_fault), 0, 0, 0]) };
}

/// Lowest address and size of the calling thread's alternate signal stack, if one is set.
#[must_use]
pub fn alternate_stack() -> Option<(usize, usize)> {
    const SS_DISABLE: usize = 2;
    let mut stack = [0_usize; 3];
    // SAFETY: the kernel writes one stack_t: pointer, int (padded), size.
    let raw = unsafe { permitted_syscall(number::SIGALTSTACK, [0, stack.as_mut_ptr() as usize, 0, 0, 0, 0]) };
    let [address, flags, bytes] = stack;
    (raw == 0 && flags & SS_DISABLE == 0 && bytes != 0).then_some((address, bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_asked_of_the_kernel() {
        let pages = map_anonymous(8192, false).unwrap();
        let address = pages as usize;
        // SAFETY: a fresh mapping.
        unsafe { pages.cast::<u32>().write(7) };
        assert_eq!((held_at(address, 7), held_at(address, 8)), (Held::Equal, Held::Differs));
        // SAFETY: as above.
        assert!(unsafe { clear(address) });
        assert_eq!(held_at(address, 0), Held::Equal);
        // SAFETY: the test owns the mapping.
        unsafe { unmap(pages, 8192) };
        assert_eq!(held_at(address, 0), Held::Nothing);
        // SAFETY: nothing is mapped there.
        assert!(!unsafe { clear(address) });
        assert_eq!(held_at(address + 1, 0), Held::Unknown);
    }
}
