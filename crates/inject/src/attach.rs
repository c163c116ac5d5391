//! Attaching.
//!
//! ```text
//! the target runs   plan: modules, functions, prologues, the agent laid out
//! it stands still   nobody in the allocator or in bytes to be overwritten; else those run on for a moment
//!                   one thread is borrowed: map the agent, give it its imports, a thread key and the pool; start it
//!                   the record for the detach, then the jumps, one after the other
//! the target runs   and each call of its allocator is recorded
//! ```
//!
//! Up to the first jump nothing that the program sees has changed; each jump is one write and stands for itself. If we die
//! at whatever point, what is left is mapped memory without use, or an agent that finds out that its recorder is gone.

use std::path::Path;
use std::time::{Duration, Instant};

use heapr_wire::{
    AGENT_PATH_BYTES_MAX, ATTACH_DONE, ATTACH_REFUSED, AttachParameters, SESSION_VALUE_BYTES_MAX,
};

use crate::error::{Error, Result};
use crate::exec_stop::HeldExec;
use crate::maps::{self, Mapping};
use crate::memory::{ProcessMemory, TargetMemory as _};
use crate::plan::Plan;
use crate::record::{Patch, RECORD_BYTES, Record, STUB_OFFSET};
use crate::remote::Borrowed;
use crate::report::AttachReport;
use crate::stop::{Stopped, StoppedThread};
use crate::x86_64::{FRAME_BYTES_MAX, Island, Landing};
use crate::{detach, pass_descriptor, quiet, target};

/// What to attach, and how.
#[derive(Debug, Clone, Copy)]
pub struct AttachRequest<'a> {
    /// The target, as this process sees it.
    pub pid: u32,
    /// The agent's shared object.
    pub agent: &'a [u8],
    /// Descriptor, in this process, of the session's shared buffers.
    pub pool: i32,
    /// Value of the session variable for programs that the target starts; empty: they are not followed.
    pub session: &'a str,
    /// The agent's file for them, if the target can see it.
    pub agent_path: Option<&'a Path>,
    /// mmap, munmap and mremap too.
    pub hooks_mmap: bool,
    /// For tests: the number of the step that fails.
    pub fail_at: Option<u32>,
}

/// How long a good moment is waited for.
const LIMIT: Duration = Duration::from_secs(5);
/// After this long a thread in the allocator is no longer waited for.
const ALLOCATOR_LIMIT: Duration = Duration::from_millis(500);
/// How long the threads may take to stop, and how long those in the way may run on while the others stand still. Both
/// are parts of the target's pause.
const STOP_LIMIT: Duration = Duration::from_millis(50);
/// See [`STOP_LIMIT`].
const SETTLE_LIMIT: Duration = Duration::from_millis(30);
/// Between two tries.
const PAUSE_BETWEEN: Duration = Duration::from_millis(10);

/// Nearest multiple of 2 GiB that a jump reaches, with a margin for what lies between function and island.
const JUMP_DISTANCE: u64 = (1 << 31) - (64 << 20);
const PAGE: u64 = 4096;
const STACK_BYTES: u64 = 64 << 10;
const SCRATCH_BYTES: u64 = PAGE;

const SYS_MMAP: u64 = 9;
const SYS_MPROTECT: u64 = 10;
const PROT_READ_WRITE: u64 = 3;
const PROT_READ_EXECUTE: u64 = 5;
/// Private, anonymous, without reserved swap, and not in place of anything.
const MAP_FLAGS: u64 = 0x02 | 0x20 | 0x4000 | 0x10_0000;

/// The target while all of its threads stand still.
#[derive(Debug, Clone)]
pub struct Standstill {
    /// The target.
    pub pid: u32,
    /// Where its threads have their descriptors.
    pub thread_pointers: Vec<u64>,
    /// Whether it is certain that no thread is in the allocator.
    pub is_allocator_quiet: bool,
}

/// Attaches. `while_stopped` is called while all threads stand still, before anything is recorded: what it sees is what was
/// allocated before.
///
/// # Errors
/// See [`Error`]; the target runs on as it was.
pub fn attach(
    request: &AttachRequest<'_>,
    while_stopped: &mut dyn FnMut(&Standstill),
) -> Result<AttachReport> {
    attach_held(request, None, while_stopped)
}

/// As [`attach`], of a program that may stand still already.
///
/// # Errors
/// As [`attach`].
pub fn attach_held(
    request: &AttachRequest<'_>,
    mut held: Option<HeldExec>,
    while_stopped: &mut dyn FnMut(&Standstill),
) -> Result<AttachReport> {
    let pid = request.pid;
    target::check(pid, held.is_some())?;
    let memory = ProcessMemory::open(pid).map_err(|error| match error.kind() {
        std::io::ErrorKind::PermissionDenied => target::not_permitted(pid),
        _ => Error::NoSuchProcess { pid },
    })?;
    let begin = Instant::now();
    let mut report = AttachReport::default();
    let mut plan = None;
    let mut obstacle;
    loop {
        report.try_count += 1;
        let planned = match plan.take() {
            Some(planned) => planned,
            None => {
                // An agent whose recorder is gone is in the way of a new one.
                detach::clear_orphan(pid, &memory, request)?;
                Plan::make(pid, &memory, request.agent, request.hooks_mmap)?
            }
        };
        match try_once(request, &memory, planned, begin, held.take(), &mut report, while_stopped)? {
            Outcome::Done => return Ok(report),
            Outcome::Again { plan: same, reason } => {
                plan = same;
                obstacle = reason;
            }
        }
        if begin.elapsed() > LIMIT {
            return Err(Error::NoQuietMoment { pid, seconds: LIMIT.as_secs(), reason: obstacle.to_owned() });
        }
        std::thread::sleep(PAUSE_BETWEEN);
    }
}

#[expect(clippy::large_enum_variant, reason = "one value at a time")]
enum Outcome {
    Done,
    Again { plan: Option<Plan>, reason: &'static str },
}

fn try_once(
    request: &AttachRequest<'_>,
    memory: &ProcessMemory,
    plan: Plan,
    begin: Instant,
    held: Option<HeldExec>,
    report: &mut AttachReport,
    while_stopped: &mut dyn FnMut(&Standstill),
) -> Result<Outcome> {
    let pid = request.pid;
    let Some(mut stopped) = Stopped::stop(pid, held, STOP_LIMIT)? else {
        let reason = "a thread did not stop (it waits for a child made by vfork, or for a disk)";
        return Ok(Outcome::Again { plan: Some(plan), reason });
    };
    let mappings = memory.mappings().map_err(|_| Error::Ended { pid })?;
    let mut is_in_prologue = false;
    let is_quiet = stopped.settle(SETTLE_LIMIT, |thread| {
        let is_inside = quiet::is_in_prologue(&plan, memory, &mappings, thread);
        is_in_prologue |= is_inside;
        is_inside || quiet::is_in_allocator(&plan, memory, &mappings, thread)
    })?;
    let again = |stopped: Stopped, report: &mut AttachReport, plan, reason| {
        report.pause = report.pause.max(stopped.resume());
        Ok(Outcome::Again { plan, reason })
    };
    if !is_quiet {
        let is_certain =
            stopped.threads.iter().all(|thread| !quiet::is_in_prologue(&plan, memory, &mappings, thread));
        if !is_certain || begin.elapsed() < ALLOCATOR_LIMIT {
            return again(stopped, report, Some(plan), "a thread was in the allocator at each try");
        }
    }
    if !plan.modules.is_consistent(memory) {
        return again(stopped, report, None, "a thread was loading a library at each try");
    }
    if !plan.modules.is_unchanged(memory) {
        return again(stopped, report, None, "libraries were loaded all the time");
    }
    // What the settled threads did may have changed the mappings.
    let mappings = memory.mappings().map_err(|_| Error::Ended { pid })?;
    while_stopped(&Standstill {
        pid,
        thread_pointers: stopped.threads.iter().map(|thread| thread.registers.fs_base).collect(),
        is_allocator_quiet: is_quiet,
    });
    report.was_allocator_busy = !is_quiet;
    report.thread_count = stopped.threads.len();
    report.module_count = plan.modules.list.len();
    let Some(thread) = choose_thread(memory, &mappings, &stopped.threads) else {
        return again(stopped, report, Some(plan), "no thread has room on its stack");
    };
    let thread = *thread;
    let outcome = install(request, memory, &mappings, plan, &stopped, &thread, report);
    report.pause = report.pause.max(stopped.resume());
    outcome.map(|()| Outcome::Done)
}

/// A thread that can be borrowed: in no critical section that must restart when it is left, with room below its stack.
pub(crate) fn choose_thread<'a>(
    memory: &ProcessMemory,
    mappings: &[Mapping],
    threads: &'a [StoppedThread],
) -> Option<&'a StoppedThread> {
    let has_room = |thread: &&StoppedThread| {
        let low = thread.registers.rsp.saturating_sub(Borrowed::STACK_BYTES) & !(PAGE - 1);
        thread.registers.is_64_bit()
            && maps::find(mappings, low)
                .is_some_and(|mapping| mapping.contains(thread.registers.rsp) && mapping.is_writable)
            && memory.read_u64(low).is_ok()
    };
    // A thread in a system call is in no such section.
    let in_call = threads.iter().filter(|thread| thread.registers.system_call().is_some()).find(has_room);
    in_call.or_else(|| threads.iter().find(has_room))
}

/// What has been done in the target so far, for undoing it.
#[derive(Debug, Default)]
struct Done {
    record: Record,
    patches_written: usize,
}

fn install(
    request: &AttachRequest<'_>,
    memory: &ProcessMemory,
    mappings: &[Mapping],
    plan: Plan,
    stopped: &Stopped,
    thread: &StoppedThread,
    report: &mut AttachReport,
) -> Result<()> {
    let mut borrowed = Borrowed::new(request.pid, memory, plan.gadgets, thread)?;
    let own_frame_avma = borrowed.frame_avma();
    let mut done = Done::default();
    let mut install = Install { request, memory, mappings, plan, stopped, step: 0 };
    match install.run(&mut borrowed, &mut done, report) {
        Ok(()) => borrowed.bring_home(),
        Err(error) => {
            // The thread's own stack again: what we mapped goes away.
            let undone = borrowed.place_frame(own_frame_avma).and_then(|()| {
                detach::undo(
                    request.pid,
                    memory,
                    &mut borrowed,
                    &done.record,
                    done.patches_written,
                    &stopped.threads,
                )
            });
            drop(undone);
            drop(borrowed.bring_home());
            Err(error)
        }
    }
}

struct Install<'a> {
    request: &'a AttachRequest<'a>,
    memory: &'a ProcessMemory,
    mappings: &'a [Mapping],
    plan: Plan,
    stopped: &'a Stopped,
    step: u32,
}

impl Install<'_> {
    /// For tests: each step may be made to fail.
    fn step(&mut self) -> Result<()> {
        self.step += 1;
        match self.request.fail_at {
            Some(step) if step == self.step => Err(Error::MadeToFail { step }),
            _ => Ok(()),
        }
    }

    fn write(&self, address_avma: u64, bytes: &[u8]) -> Result<()> {
        let pid = self.request.pid;
        self.memory.write(address_avma, bytes).map_err(|source| Error::Memory { pid, source })
    }

    fn run(&mut self, thread: &mut Borrowed<'_>, done: &mut Done, report: &mut AttachReport) -> Result<()> {
        self.step()?;
        let image_bytes = (self.plan.image.bytes.len() as u64).next_multiple_of(PAGE);
        let bytes = RECORD_BYTES + image_bytes + SCRATCH_BYTES + STACK_BYTES;
        let start = self.map(thread, self.plan.hooks[0].prologue.entry_avma, bytes, u64::MAX)?;
        let record = &mut done.record;
        let image_avma = start + RECORD_BYTES;
        record.start_avma = start;
        record.bytes = bytes;
        record.stub_avma = start + STUB_OFFSET;
        record.scratch_avma = image_avma + image_bytes;
        record.stack_top_avma = (start + bytes - FRAME_BYTES_MAX) & !63;
        record.key_delete_avma = self.plan.key_delete_avma;
        self.step()?;
        thread.place_frame(record.stack_top_avma)?;
        // call r12; mov [r13], rax; ret
        self.write(record.stub_avma, &[0x41, 0xff, 0xd4, 0x49, 0x89, 0x45, 0x00, 0xc3])?;
        self.protect(thread, start, RECORD_BYTES, PROT_READ_EXECUTE)?;
        self.step()?;
        let imports = self.resolve_imports(thread, record)?;
        self.step()?;
        self.write_image(thread, image_avma, record, &imports, 0)?;
        self.step()?;
        self.make_key(thread, image_avma, record)?;
        self.step()?;
        let landings = self.make_islands(thread, image_avma, record, report)?;
        self.step()?;
        self.put_real_functions(&landings)?;
        self.write_image(thread, image_avma, record, &imports, record.tls_offset)?;
        self.step()?;
        // Threads may have anything in a slot whose key was just made.
        for stopped in &self.stopped.threads {
            self.write(stopped.registers.fs_base.wrapping_add(record.tls_offset), &[0; 8])?;
        }
        record.list_avma = self.plan.image.word(self.plan.injection + 64)?;
        record.list_count = self.plan.image.word(self.plan.injection + 72)?;
        self.start_agent(thread, record, report)?;
        self.step()?;
        self.write(start, &record.to_bytes())?;
        self.step()?;
        for patch in record.patches.clone() {
            self.write(patch.address_avma, &patch.new)?;
            done.patches_written += 1;
            self.step()?;
        }
        Ok(())
    }

    /// Maps memory near an address.
    fn map(&self, thread: &mut Borrowed<'_>, near_avma: u64, bytes: u64, distance: u64) -> Result<u64> {
        let pid = self.request.pid;
        let no_room = Error::Unsupported { pid, reason: "there is no free address range near its allocator" };
        // What was mapped since the list was read makes the kernel refuse; then the list is read again.
        let mut mappings = self.mappings.to_vec();
        for _ in 0..4 {
            let Some(hint) = maps::room_near(&mappings, near_avma, bytes, distance) else {
                return Err(no_room);
            };
            let arguments = [hint, bytes, PROT_READ_WRITE, MAP_FLAGS, u64::MAX, 0];
            match thread.system_call(SYS_MMAP, arguments)? {
                Ok(address) if address == hint => return Ok(address),
                Ok(address) => drop(thread.system_call(detach::SYS_MUNMAP, [address, bytes, 0, 0, 0, 0])?),
                Err(libc::EEXIST) => {}
                Err(errno) => return Err(Error::RemoteCall { pid, call: "mmap", errno }),
            }
            mappings = self.memory.mappings().map_err(|_| Error::Ended { pid })?;
        }
        Err(no_room)
    }

    fn protect(&self, thread: &mut Borrowed<'_>, start: u64, bytes: u64, protection: u64) -> Result<()> {
        thread.call_system("mprotect", SYS_MPROTECT, [start, bytes, protection, 0, 0, 0]).map(|_| ())
    }

    /// The functions of the C library that the agent calls. Some are chosen for the processor by a function.
    fn resolve_imports(&self, thread: &mut Borrowed<'_>, record: &Record) -> Result<Vec<(String, u64)>> {
        let mut resolved = Vec::new();
        for (name, symbol) in &self.plan.imports {
            let address = if symbol.is_indirect {
                thread.call_function(record.stub_avma, record.scratch_avma, symbol.address_avma, [0; 3])?
            } else {
                symbol.address_avma
            };
            resolved.push((name.clone(), address));
        }
        Ok(resolved)
    }

    /// Relocates the image and writes what is not zero of it; then code becomes executable.
    fn write_image(
        &mut self,
        thread: &mut Borrowed<'_>,
        image_avma: u64,
        record: &Record,
        imports: &[(String, u64)],
        tls_offset: u64,
    ) -> Result<()> {
        let is_first = record.end_key == 0 && record.tls_offset == 0;
        let import = |name: &str| imports.iter().find(|(import, _)| import == name).map(|&(_, avma)| avma);
        self.plan.image.relocate(image_avma, tls_offset.cast_signed(), import)?;
        let image = &self.plan.image;
        for segment in &image.segments {
            // The second time only data has changed.
            if !is_first && segment.is_executable {
                continue;
            }
            let part =
                image.part(segment.offset, segment.bytes.min(image.bytes.len() as u64 - segment.offset))?;
            for (number, page) in part.chunks(PAGE as usize).enumerate() {
                if page.iter().any(|&byte| byte != 0) {
                    self.write(image_avma + segment.offset + number as u64 * PAGE, page)?;
                }
            }
            if is_first && segment.is_executable {
                self.protect(thread, image_avma + segment.offset, segment.bytes, PROT_READ_EXECUTE)?;
            }
        }
        Ok(())
    }

    /// A key of the C library's threads gives the agent its word per thread (the place of the key's value in the thread's own
    /// descriptor) and tells it when a thread ends.
    fn make_key(&mut self, thread: &mut Borrowed<'_>, image_avma: u64, record: &mut Record) -> Result<()> {
        const MARK: u64 = 0x6865_6170_725f_6d6b;
        /// Keys below this have their value in the descriptor.
        const INLINE_KEYS: u64 = 32;
        /// Where glibc 2.2 to 2.41 keeps them, for a program without its thread library.
        const FIRST_VALUE_OFFSET: u64 = 0x310 + 8;
        const DESCRIPTOR_BYTES: usize = 0x900;
        let pid = self.request.pid;
        let (create, set) = (self.plan.key_create_avma, self.plan.set_specific_avma);
        let fs_base = thread.fs_base();
        if create == 0 || set == 0 {
            // glibc before 2.34 without libpthread: one thread, no keys.
            record.tls_offset = FIRST_VALUE_OFFSET + (INLINE_KEYS - 1) * 16;
            return Ok(());
        }
        let end_of_thread = self.plan.image.word(self.plan.injection + 24)?;
        debug_assert!(end_of_thread > image_avma);
        let key_avma = record.scratch_avma + 64;
        let status = thread.call_function(
            record.stub_avma,
            record.scratch_avma,
            create,
            [key_avma, end_of_thread, 0],
        )?;
        if status as u32 != 0 {
            return Err(Error::RemoteCall { pid, call: "pthread_key_create", errno: status as i32 });
        }
        let key = self.memory.read_u32(key_avma).map_err(|source| Error::Memory { pid, source })?;
        record.end_key = u64::from(key) + 1;
        if u64::from(key) >= INLINE_KEYS {
            return Err(Error::Unsupported { pid, reason: "it has more than 31 thread keys" });
        }
        thread.call_function(record.stub_avma, record.scratch_avma, set, [u64::from(key), MARK, 0])?;
        let descriptor = self
            .memory
            .read_vec(fs_base, DESCRIPTOR_BYTES)
            .map_err(|source| Error::Memory { pid, source })?;
        thread.call_function(record.stub_avma, record.scratch_avma, set, [u64::from(key), 0, 0])?;
        let place = descriptor.chunks_exact(8).position(|word| word == MARK.to_le_bytes());
        match place {
            Some(place) => record.tls_offset = place as u64 * 8,
            None => {
                return Err(Error::Unsupported {
                    pid,
                    reason: "its C library keeps thread values elsewhere",
                });
            }
        }
        Ok(())
    }

    fn make_islands(
        &mut self,
        thread: &mut Borrowed<'_>,
        image_avma: u64,
        record: &mut Record,
        report: &mut AttachReport,
    ) -> Result<Vec<Option<Landing>>> {
        let count = self.plan.hooks.len();
        let mut islands: Vec<Island> = Vec::new();
        let mut landings = Vec::new();
        for number in 0..count {
            let entry_avma = self.plan.hooks[number].prologue.entry_avma;
            let near =
                islands.iter().position(|island| island.start_avma.abs_diff(entry_avma) < JUMP_DISTANCE);
            let near = match near {
                Some(near) => near,
                None => {
                    let bytes = Island::bytes_for(count);
                    let start = self.map(thread, entry_avma, bytes, JUMP_DISTANCE)?;
                    record.islands.push((start, bytes));
                    islands.push(Island::new(start, record.start_avma));
                    islands.len() - 1
                }
            };
            let hook = &self.plan.hooks[number];
            let own = (image_avma, self.plan.image.bytes.len() as u64);
            let ranges: Vec<(u64, u64)> = hook.family.into_iter().chain([own]).collect();
            let island = &mut islands[near];
            let added = island
                .add(&hook.prologue, image_avma + hook.trampoline, &ranges)
                .and_then(|landing| Ok((landing, Island::jump_from(&hook.prologue, landing)?)));
            match added {
                Ok((landing, new)) => {
                    let pid = self.request.pid;
                    let mut original = [0; 5];
                    self.memory
                        .read(entry_avma, &mut original)
                        .map_err(|source| Error::Memory { pid, source })?;
                    record.patches.push(Patch { address_avma: entry_avma, original, new });
                    report.hooks.push(hook.name.clone());
                    landings.push(Some(landing));
                }
                Err(reason) => {
                    report.not_hooked.push((hook.name.clone(), reason.to_owned()));
                    landings.push(None);
                }
            }
        }
        report.not_hooked.extend(self.plan.not_hooked.iter().cloned());
        for (island, &(start, bytes)) in islands.iter().zip(&record.islands) {
            self.write(start, &island.bytes)?;
            self.protect(thread, start, bytes, PROT_READ_EXECUTE)?;
        }
        Ok(landings)
    }

    /// Tells the agent where the functions themselves are.
    fn put_real_functions(&mut self, landings: &[Option<Landing>]) -> Result<()> {
        let mut words = self.plan.plain.clone();
        for (hook, landing) in self.plan.hooks.iter().zip(landings) {
            let avma = landing.map_or(hook.prologue.entry_avma, |landing| landing.moved_avma);
            words.extend(hook.real.iter().map(|&place| (place, avma)));
        }
        for (place, avma) in words {
            self.plan.image.set_word(place, avma)?;
        }
        Ok(())
    }

    fn start_agent(
        &mut self,
        thread: &mut Borrowed<'_>,
        record: &mut Record,
        report: &mut AttachReport,
    ) -> Result<()> {
        let pid = self.request.pid;
        let memory_error = |source| Error::Memory { pid, source };
        let parameters_avma = record.scratch_avma + 512;
        let descriptor =
            pass_descriptor::pass(pid, self.memory, thread, record.scratch_avma, self.request.pool)?;
        let is_gone = self.step().err();
        let parameters = self.parameters(descriptor, record);
        self.write(parameters_avma, &parameters)?;
        if let Some(error) = is_gone {
            let _ = thread.system_call(3, [descriptor, 0, 0, 0, 0, 0])?;
            return Err(error);
        }
        let attach = self.plan.image.word(self.plan.injection + 16)?;
        thread.call_function(record.stub_avma, record.scratch_avma, attach, [parameters_avma, 0, 0])?;
        let answers = parameters_avma + std::mem::offset_of!(AttachParameters, outcome) as u64;
        let answer = |number: u64| self.memory.read_u32(answers + number * 4).map_err(memory_error);
        match answer(0)? {
            ATTACH_DONE => {}
            outcome => return Err(Error::AgentRefused { pid, reason: outcome.wrapping_sub(ATTACH_REFUSED) }),
        }
        report.process_slot = answer(1)?;
        report.process_generation = answer(2)?;
        report.inner_pid = answer(3)?;
        record.process_slot = u64::from(report.process_slot);
        record.process_generation = u64::from(report.process_generation);
        self.step()
    }

    fn parameters(&self, descriptor: u64, record: &Record) -> Vec<u8> {
        let mut bytes = vec![0; size_of::<AttachParameters>()];
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        put(0, &(descriptor as u32).to_le_bytes());
        put(4, &(record.end_key as u32).to_le_bytes());
        put(8, &self.plan.set_specific_avma.to_le_bytes());
        put(16, &self.plan.find_object_avma.to_le_bytes());
        put(24, &self.plan.stack_end_avma.to_le_bytes());
        let session = self.request.session.as_bytes();
        let path =
            self.request.agent_path.map(|path| path.as_os_str().as_encoded_bytes()).unwrap_or_default();
        if session.len() < SESSION_VALUE_BYTES_MAX && path.len() < AGENT_PATH_BYTES_MAX {
            put(std::mem::offset_of!(AttachParameters, session), session);
            put(std::mem::offset_of!(AttachParameters, session_bytes), &(session.len() as u64).to_le_bytes());
            put(std::mem::offset_of!(AttachParameters, agent_path), path);
        }
        bytes
    }
}
