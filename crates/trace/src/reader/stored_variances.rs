//! Variances of a recording of samples: those in the file, or estimates from the sums where a chunk
//! of them is missing or damaged.

use super::Trace;
use crate::chunk::{ChunkInfo, ChunkKind};
use crate::equal_blocks::EqualBlocks;
use crate::error::{Error, Malformed, Result};
use crate::summary::{TOTALS_STREAMS, take_stack_totals};
use crate::variance_chunks::{
    STACK_VARIANCE_STREAMS, StackVariances, VARIANCE_STREAMS, take_course_variances, take_totals_variances,
};
use crate::{Course, StackTotals, Summary, Variances};

impl Trace {
    /// Sets the variances of a summary's totals.
    pub(super) fn add_totals_variances(&self, summary: &mut Summary) -> Result<()> {
        let stored = self.stored_variances()?;
        let outcome = stored.map(|[totals, _]| take_totals_variances(&totals, summary));
        if !matches!(outcome, Some(Ok(()))) {
            let of_heaps = summary.by_heap.iter_mut().map(|(.., totals)| totals);
            std::iter::once(&mut summary.totals)
                .chain(of_heaps)
                .for_each(|totals| totals.variances = Variances::default());
            EqualBlocks::of(&self.sampling).estimate_summary(summary);
        }
        let untold = self.sampling.untold();
        untold.mark(&mut summary.totals.variances);
        summary.by_heap.iter_mut().for_each(|(.., totals)| untold.mark(&mut totals.variances));
        Ok(())
    }

    /// Sets the variances of a course.
    pub(super) fn add_course_variances(&self, course: &mut Course) -> Result<()> {
        let stored = self.stored_variances()?;
        let outcome = stored.map(|[_, of_course]| take_course_variances(&of_course, course));
        if !matches!(outcome, Some(Ok(()))) {
            EqualBlocks::of(&self.sampling).estimate_course(course);
        }
        Ok(())
    }

    /// Streams of the variances of totals and course; `None` if the recording has no estimates, or
    /// if the chunk is missing or damaged.
    fn stored_variances(&self) -> Result<Option<[Vec<u8>; VARIANCE_STREAMS]>> {
        if EqualBlocks::of(&self.sampling) == EqualBlocks::default() {
            return Ok(None);
        }
        match self.of_kind(ChunkKind::Variances).next_back() {
            Some(info) => self.undamaged(info),
            None => Ok(None),
        }
    }

    /// Streams of a chunk; `None` if it is damaged.
    fn undamaged<const N: usize>(&self, info: &ChunkInfo) -> Result<Option<[Vec<u8>; N]>> {
        match self.streams::<N>(info) {
            Ok(streams) => Ok(Some(streams)),
            Err(Error::Damaged { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Chunks of variances by chunk of totals; empty if the recording has no estimates. Empty, too,
    /// if the numbers of chunks differ: which one is missing is unknown.
    fn chunks_of_stack_variances(&self, has_estimates: bool) -> Vec<&ChunkInfo> {
        if !has_estimates {
            return Vec::new();
        }
        let chunks: Vec<&ChunkInfo> = self.of_kind(ChunkKind::StackVariances).collect();
        match chunks.len() == self.of_kind(ChunkKind::StackTotals).count() {
            true => chunks,
            false => Vec::new(),
        }
    }

    /// Passes the summary's totals by stack to `visit`, with their variances.
    pub(super) fn decode_stack_totals(&self, mut visit: impl FnMut(StackTotals)) -> Result<()> {
        let known = (self.stacks().len(), self.processes.len());
        let equal = EqualBlocks::of(&self.sampling);
        let untold = self.sampling.untold();
        let has_estimates = equal != EqualBlocks::default();
        let beside = self.chunks_of_stack_variances(has_estimates);
        for (place, info) in self.of_kind(ChunkKind::StackTotals).enumerate() {
            let streams = self.streams::<TOTALS_STREAMS>(info)?;
            let beside = beside.get(place).filter(|beside| beside.item_count == info.item_count);
            let stored = match beside {
                Some(beside) => self.undamaged::<STACK_VARIANCE_STREAMS>(beside)?,
                None => None,
            };
            let mut stored = stored.as_ref().map(StackVariances::of);
            let visit = |mut totals: StackTotals| {
                if !has_estimates {
                    return visit(totals);
                }
                match stored.as_mut().and_then(|stored| stored.next().ok()) {
                    Some(variances) => totals.amounts.variances = variances,
                    None => {
                        // Columns that end early have no further entries.
                        stored = None;
                        equal.estimate(totals.heap, &mut totals.amounts);
                    }
                }
                untold.mark(&mut totals.amounts.variances);
                visit(totals);
            };
            take_stack_totals(&streams, info.item_count as usize, known, visit)
                .map_err(|Malformed(what)| Error::Damaged { offset: info.offset, what })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chunk::CHUNK_HEADER_BYTES;
    use crate::reader::known_processes::UNKNOWN;
    use crate::{
        Amounts, CourseMoment, HeapId, LiveVariances, ProcessIndex, SamplingPeriod, StackIndex, StackNode,
        Totals, TraceWriter,
    };

    const STORED: u64 = 77;

    /// File of samples whose variances are all `variance`.
    fn file(variance: u64) -> Vec<u8> {
        let mut file = Vec::new();
        let mut writer = TraceWriter::new_sampled(&mut file).unwrap();
        writer.add_process(UNKNOWN).unwrap();
        writer
            .sampling(SamplingPeriod {
                process: SamplingPeriod::EVERY_PROCESS,
                from_ns: 0,
                mean_bytes: 1 << 20,
            })
            .unwrap();
        let node = StackNode {
            parent: StackIndex::EMPTY,
            process: ProcessIndex(0),
            return_address_avma: 1,
            first_seen_ns: 0,
        };
        let stack = writer.add_stack(node).unwrap();
        let variances = Variances { outstanding_bytes: variance, ..Variances::default() };
        let totals =
            Totals { outstanding_bytes: 100 << 20, outstanding_count: 1000, variances, ..Totals::default() };
        let amounts = Amounts {
            outstanding_bytes: 100 << 20,
            outstanding_count: 1000,
            variances,
            ..Amounts::default()
        };
        let moment = CourseMoment {
            live_bytes: 100 << 20,
            live_count: 1000,
            variances: LiveVariances { bytes_kib2: variance, count: 0 },
            ..CourseMoment::default()
        };
        let summary = Summary {
            totals,
            by_heap: vec![(ProcessIndex(0), HeapId::MALLOC, totals)],
            by_stack: vec![StackTotals { stack, amounts, ..StackTotals::default() }],
            course: Course { moments: vec![moment] },
            event_count: 1000,
            ..Summary::default()
        };
        writer.finish(&summary).unwrap();
        drop(writer);
        file
    }

    /// Variances of live bytes of the totals, of a heap's, of the course and of a stack.
    fn read(file: Vec<u8>) -> [u64; 4] {
        let trace = Trace::from_source(Box::new(file)).unwrap();
        let summary = trace.summary().unwrap().unwrap();
        let course = trace.course().unwrap().unwrap();
        [
            summary.totals.variances.outstanding_bytes,
            summary.by_heap[0].2.variances.outstanding_bytes,
            course.moments[0].variances.bytes_kib2,
            summary.by_stack[0].amounts.variances.outstanding_bytes,
        ]
    }

    #[test]
    fn variances_of_samples_that_are_all_0_are_not_estimated() {
        assert_eq!(read(file(0)), [0; 4]);
    }

    #[test]
    fn a_damaged_chunk_of_variances_is_estimated_from_the_sums() {
        assert_eq!(read(file(STORED)), [STORED; 4]);
        let damaged = |kinds: &[ChunkKind]| {
            let mut file = file(STORED);
            let trace = Trace::from_source(Box::new(file.clone())).unwrap();
            let of_them = |chunk: &&ChunkInfo| chunk.kind.is_some_and(|kind| kinds.contains(&kind));
            let chunks: Vec<u64> = trace.chunks().iter().filter(of_them).map(|chunk| chunk.offset).collect();
            assert_eq!(chunks.len(), kinds.len());
            for offset in chunks {
                file[offset as usize + CHUNK_HEADER_BYTES] ^= 1;
            }
            read(file)
        };
        let estimate = damaged(&[ChunkKind::Variances, ChunkKind::StackVariances])[0];
        assert!(estimate > STORED);
        assert_eq!(damaged(&[ChunkKind::Variances]), [estimate, estimate, estimate, STORED]);
        assert_eq!(damaged(&[ChunkKind::StackVariances]), [STORED, STORED, STORED, estimate]);
    }
}
