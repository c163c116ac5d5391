//! Trampoline areas, the jumps to them, and the new addresses of the functions themselves.

use std::mem::offset_of;

use heapr_wire::Injection;

use crate::arch::{COUNTING_BYTES, Countdown, Island, JUMP_BYTES, JumpBytes, Landing, Way};
use crate::areas::{Areas, Ground};
use crate::error::{Error, Result};
use crate::memory::TargetMemory as _;
use crate::plan::Hook;
use crate::record::{Patch, Record};
use crate::remote::Borrowed;
use crate::report::AttachReport;

impl super::Install<'_> {
    pub(super) fn make_islands(
        &self,
        thread: &mut Borrowed<'_>,
        image_avma: u64,
        record: &mut Record,
        report: &mut AttachReport,
    ) -> Result<Vec<Option<Landing>>> {
        let ground @ Ground { pid, memory, .. } = self.ground();
        let mut areas = Areas::new(ground, self.plan.hooks.len());
        let mut landings = Vec::new();
        for hook in &self.plan.hooks {
            let entry_avma = hook.prologue.entry_avma;
            let way = self.way(image_avma, hook, record)?;
            let near = areas.near(thread, entry_avma, Some(&mut *record))?;
            let added = near.and_then(|island| {
                let landing = island.add(&hook.prologue, &way)?;
                Ok((landing, Island::jump_from(&hook.prologue, landing)?))
            });
            match added {
                Ok((landing, new)) => {
                    let mut original = JumpBytes::default();
                    memory.read(entry_avma, &mut original).map_err(|source| Error::Memory { pid, source })?;
                    let Landing { target_avma, counts, .. } = landing;
                    record.patches.push(Patch {
                        address_avma: entry_avma,
                        original,
                        new,
                        target_avma,
                        counts,
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
        areas.write(thread)?;
        Ok(landings)
    }

    /// Path of a function's calls to the agent's image at `image_avma`.
    fn way(&self, image_avma: u64, hook: &Hook, record: &Record) -> Result<Way> {
        let own = (image_avma, self.plan.image.bytes.len() as u64);
        Ok(match hook.way.clone() {
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
        })
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
            let (covered, others) = bytes.split_at(landing.covered_marks_bytes(JUMP_BYTES));
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
