//! Trampoline areas, the jumps to them, and the new addresses of the functions themselves.

use std::mem::offset_of;

use heapr_wire::Injection;

use crate::arch::{COUNTING_BYTES, Countdown, Island, JUMP_DISTANCE, JumpBytes, Landing, Way};
use crate::error::{Error, Result};
use crate::mapping_flags::PROT_READ_EXECUTE;
use crate::memory::TargetMemory as _;
use crate::record::{Patch, Record};
use crate::remote::Borrowed;
use crate::report::AttachReport;

impl super::Install<'_> {
    pub(super) fn make_islands(
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
                    self.keep(record)?;
                    let island = Island::new(start, record.start_avma, record.gate_avma());
                    islands.push(island.map_err(|reason| self.unsupported(reason))?);
                    islands.len() - 1
                }
            };
            let hook = &self.plan.hooks[number];
            let own = (image_avma, self.plan.image.bytes.len() as u64);
            let way = match hook.way.clone() {
                Way::Convention { trampoline_avma, mut ranges, keeps_inner, .. } => {
                    ranges.push(own);
                    let trampoline_avma = image_avma + trampoline_avma;
                    let counted = hook.counted.filter(|_| !self.plan.calls_nest());
                    let counted = counted.zip(self.countdown(record)?);
                    Way::Convention { trampoline_avma, ranges, keeps_inner, counted }
                }
                Way::Kept { entry_avma, function_avma, counted } => Way::Kept {
                    entry_avma: image_avma + entry_avma,
                    function_avma: image_avma + function_avma,
                    counted: counted
                        .zip(self.countdown(record)?)
                        .map(|(counted, countdown)| counted.in_state(countdown)),
                },
            };
            let island = &mut islands[near];
            let added = island
                .add(&hook.prologue, &way)
                .and_then(|landing| Ok((landing, Island::jump_from(&hook.prologue, landing)?)));
            match added {
                Ok((landing, new)) => {
                    let pid = self.request.pid;
                    let mut original = JumpBytes::default();
                    self.memory
                        .read(entry_avma, &mut original)
                        .map_err(|source| Error::Memory { pid, source })?;
                    let target_avma = landing.target_avma;
                    record.patches.push(Patch {
                        address_avma: entry_avma,
                        original,
                        new,
                        target_avma,
                        counts: landing.counts,
                    });
                    report.hooks.push(hook.name.clone());
                    landings.push(Some(landing));
                }
                Err(reason) => {
                    report.not_hooked.push((hook.name.clone(), reason.to_owned()));
                    landings.push(None);
                }
            }
        }
        record.code = self.plan.code.clone();
        report.not_hooked.extend(self.plan.not_hooked.iter().cloned());
        for (island, &(start, bytes)) in islands.iter().zip(&record.islands) {
            self.write(start, &island.bytes)?;
            self.protect(thread, start, bytes, PROT_READ_EXECUTE)?;
        }
        Ok(landings)
    }

    /// Location of the threads' countdowns; `None`: calls are not counted.
    fn countdown(&self, record: &Record) -> Result<Option<Countdown>> {
        let place = self.plan.injection + offset_of!(Injection, countdown_offset) as u64;
        let left_offset = i32::try_from(self.plan.image.word(place)?).ok();
        let slot_offset = i32::try_from(record.tls_offset).ok().filter(|_| self.request.is_sampled);
        Ok(slot_offset
            .zip(left_offset)
            .map(|(slot_offset, left_offset)| Countdown { slot_offset, left_offset }))
    }

    /// Writes the address of the page marks into the counting code; the agent has created the marks
    /// by this time.
    pub(super) fn put_marks(&self, landings: &[Option<Landing>]) -> Result<()> {
        let marked = landings.iter().flatten().filter_map(|landing| landing.marks_avma.zip(Some(landing)));
        let mut marked = marked.peekable();
        if marked.peek().is_none() {
            return Ok(());
        }
        let pid = self.request.pid;
        let word_avma = self.plan.image.word(self.plan.injection + offset_of!(Injection, marks) as u64)?;
        let marks_avma = self.memory.read_u64(word_avma).map_err(|source| Error::Memory { pid, source })?;
        let bytes = marks_avma.to_le_bytes();
        for (place, landing) in marked {
            // Bytes under the switching jump are saved before it. The jump stays, for threads that
            // leave the allocator before the gate opens.
            let (covered, others) = bytes.split_at(landing.covered_marks_bytes());
            self.write(place + covered.len() as u64, others)?;
            self.write(place - COUNTING_BYTES as u64, covered)?;
        }
        Ok(())
    }

    /// Writes the addresses of the functions themselves into the agent.
    pub(super) fn put_real_functions(&mut self, image_avma: u64, landings: &[Option<Landing>]) -> Result<()> {
        let mut words = self.plan.plain.clone();
        // Calls from these ranges are not the program's.
        let place = self.plan.image.word(self.plan.injection + offset_of!(Injection, own_calls) as u64)?;
        let place = place - image_avma;
        let own = (image_avma, image_avma + self.plan.image.bytes.len() as u64);
        let places = (place..).step_by(16);
        for (place, (start, end)) in places.zip([own].into_iter().chain(self.plan.counted_family)) {
            words.extend([(place, start), (place + 8, end - start)]);
        }
        for (hook, landing) in self.plan.hooks.iter().zip(landings) {
            let avma = landing.map_or(hook.prologue.entry_avma, |landing| landing.moved_avma);
            words.extend(hook.real.iter().map(|&place| (place, avma)));
        }
        for (place, avma) in words {
            self.plan.image.set_word(place, avma)?;
        }
        Ok(())
    }
}
