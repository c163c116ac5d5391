//! Work of an attach in the stopped target: maps and starts the agent, and writes the hooks.
//!
//! ```text
//! one mapping        record (for the detach, with the stub that calls functions) | agent | scratch
//!                    | stack for the calls
//! trampoline areas   near the hooked functions: the targets of their jumps
//! ```

mod agent_start;
mod hooks;
mod thread_key;

use crate::arch::{BASIC_BYTES, FRAME_BYTES_MAX, basic_functions, stub};
use crate::areas::Ground;
use crate::attach_request::AttachRequest;
use crate::error::{Error, Result};
use crate::gate::Gate;
use crate::mapping_flags::PROT_READ_EXECUTE;
use crate::memory::ProcessMemory;
use crate::plan::Plan;
use crate::record::{BASIC_OFFSET, RECORD_BYTES, Record, SCRATCH_BYTES, STUB_OFFSET};
use crate::remote::Borrowed;
use crate::report::AttachReport;
use crate::stop::{Stopped, StoppedThread};
use crate::take_away;
use heapr_proc::Mapping;
use heapr_proc::page_bytes;

const STACK_BYTES: u64 = 64 << 10;

const _: () = assert!(STUB_OFFSET + stub::CODE_BYTES_MAX as u64 <= BASIC_OFFSET);
const _: () = assert!(BASIC_OFFSET + BASIC_BYTES as u64 <= RECORD_BYTES);

/// Work done in the target so far, for undoing it.
#[derive(Debug, Default)]
struct Done {
    record: Record,
    patches_written: usize,
}

/// Everything that an attach has installed in the target. All calls of the hooked functions wait at
/// the gate, which is closed.
#[derive(Debug)]
pub(crate) struct Installed {
    pub(crate) gate: Gate,
    pub(crate) record: Record,
    /// Targets of the calls once the gate is open.
    pub(crate) trampolines: Vec<u64>,
}

/// Stopped process that gets an agent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StoppedTarget<'a> {
    pub(crate) memory: &'a ProcessMemory,
    pub(crate) mappings: &'a [Mapping],
    pub(crate) stopped: &'a Stopped,
}

/// Installs agent and hooks with the help of one thread; undoes everything if a step fails.
pub(crate) fn install(
    request: &AttachRequest<'_>,
    target: StoppedTarget<'_>,
    plan: &mut Plan,
    thread: &StoppedThread,
    report: &mut AttachReport,
) -> Result<Installed> {
    let StoppedTarget { memory, mappings, stopped } = target;
    let mut borrowed = Borrowed::new(request.pid, memory, plan.gadgets, thread)?;
    let own_frame_avma = borrowed.frame_avma();
    let mut done = Done::default();
    let mut install = Install { request, memory, mappings, plan, stopped, step: 0 };
    match install.run(&mut borrowed, &mut done, report) {
        Ok((gate, trampolines)) => {
            borrowed.bring_home()?;
            Ok(Installed { gate, record: done.record, trampolines })
        }
        Err(error) => {
            // Back on the thread's own stack: the mapping with the agent's stack is removed.
            let undone = borrowed.place_frame(own_frame_avma).and_then(|()| {
                take_away::undo(
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
    plan: &'a mut Plan,
    stopped: &'a Stopped,
    step: u32,
}

impl Install<'_> {
    /// Counts a step, which a test may make fail.
    fn step(&mut self) -> Result<()> {
        self.step += 1;
        match self.request.fail_at {
            Some(step) if step == self.step => Err(Error::MadeToFail { step }),
            _ => Ok(()),
        }
    }

    /// Error for a process that can never be attached to.
    fn unsupported(&self, reason: &'static str) -> Error {
        Error::Unsupported { pid: self.request.pid, reason }
    }

    fn write(&self, address_avma: u64, bytes: &[u8]) -> Result<()> {
        let pid = self.request.pid;
        self.memory.write(address_avma, bytes).map_err(|source| Error::Memory { pid, source })
    }

    fn run(
        &mut self,
        thread: &mut Borrowed<'_>,
        done: &mut Done,
        report: &mut AttachReport,
    ) -> Result<(Gate, Vec<u64>)> {
        self.step()?;
        let image_bytes = (self.plan.image.bytes.len() as u64).next_multiple_of(page_bytes());
        // The record is followed by a page with other rights.
        let record_bytes = RECORD_BYTES.next_multiple_of(page_bytes());
        let bytes = (record_bytes + image_bytes + SCRATCH_BYTES + STACK_BYTES).next_multiple_of(page_bytes());
        let near_avma = self.plan.hooks[0].prologue.entry_avma;
        let start = self.ground().map_near(thread, near_avma, bytes, u64::MAX)?;
        let record = &mut done.record;
        let image_avma = start + record_bytes;
        record.start_avma = start;
        record.bytes = bytes;
        record.stub_avma = start + STUB_OFFSET;
        record.scratch_avma = image_avma + image_bytes;
        record.stack_top_avma = (start + bytes - FRAME_BYTES_MAX) & !63;
        record.key_delete_avma = self.plan.key_delete_avma;
        self.keep(record)?;
        self.step()?;
        thread.place_frame(record.stack_top_avma)?;
        self.write(record.stub_avma, &stub::code().map_err(|reason| self.unsupported(reason))?)?;
        self.protect(thread, start, record_bytes, PROT_READ_EXECUTE)?;
        self.step()?;
        let imports = self.resolve_imports(thread, record)?;
        self.step()?;
        self.write_image(thread, image_avma, record, &imports, 0)?;
        self.step()?;
        self.make_key(thread, image_avma, record)?;
        self.step()?;
        let landings = self.make_islands(thread, image_avma, record, report)?;
        self.step()?;
        self.put_real_functions(image_avma, &landings)?;
        self.write_image(thread, image_avma, record, &imports, record.tls_offset)?;
        self.step()?;
        // A slot may hold any value in threads that were running before its key was created.
        for stopped in &self.stopped.threads {
            self.write(stopped.registers.thread_pointer().wrapping_add(record.tls_offset), &[0; 8])?;
        }
        record.injection_avma = image_avma + self.plan.injection;
        record.list_avma = self.plan.image.word(self.plan.injection + 64)?;
        record.list_count = self.plan.image.word(self.plan.injection + 72)?;
        record.clock_avma = self.plan.image.word(self.plan.injection + 80)?;
        self.keep(record)?;
        self.start_agent(thread, record, report)?;
        self.step()?;
        self.put_marks(&landings)?;
        self.keep(record)?;
        self.step()?;
        let gate = Gate::of(record);
        let trampolines = landings.iter().flatten().map(|landing| landing.trampoline_avma).collect();
        gate.close(self.memory).map_err(|source| Error::Memory { pid: self.request.pid, source })?;
        for patch in record.patches.clone() {
            self.write(patch.address_avma, &patch.new)?;
            done.patches_written += 1;
            self.step()?;
        }
        Ok((gate, trampolines))
    }

    /// Writes the record in its present state: if this process is killed, the next attach finds by
    /// it what must be removed.
    fn keep(&self, record: &Record) -> Result<()> {
        self.write(record.start_avma, &record.to_bytes())
    }

    /// The process, for mapping memory in it.
    fn ground(&self) -> Ground<'_> {
        Ground { pid: self.request.pid, memory: self.memory, mappings: self.mappings }
    }

    fn protect(&self, thread: &mut Borrowed<'_>, start: u64, bytes: u64, protection: u64) -> Result<()> {
        thread.call_system("mprotect", libc::SYS_mprotect, [start, bytes, protection, 0, 0, 0]).map(|_| ())
    }

    /// Addresses of the C library's functions that the agent calls. Some are chosen for the
    /// processor by a resolver function.
    fn resolve_imports(&self, thread: &mut Borrowed<'_>, record: &Record) -> Result<Vec<(String, u64)>> {
        let mut resolved = Vec::new();
        if let Some(program) = &self.plan.statics {
            let start_avma = record.start_avma + BASIC_OFFSET;
            let (bytes, functions) =
                basic_functions(start_avma, program.headers).map_err(|reason| self.unsupported(reason))?;
            self.write(start_avma, &bytes)?;
            resolved.extend(functions);
        }
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

    /// Relocates the image and writes its pages that are not zero; then makes code executable.
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
            for (number, page) in part.chunks(page_bytes() as usize).enumerate() {
                if page.iter().any(|&byte| byte != 0) {
                    self.write(image_avma + segment.offset + number as u64 * page_bytes(), page)?;
                }
            }
            if is_first && segment.is_executable {
                self.protect(thread, image_avma + segment.offset, segment.bytes, PROT_READ_EXECUTE)?;
            }
        }
        Ok(())
    }
}
