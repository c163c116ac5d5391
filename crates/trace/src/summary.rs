//! Encoding of the summary: totals in one chunk, totals by stack in any number of column chunks.

use crate::amounts::COUNTERS;
use crate::bytes::{PutBytes, Take, unzigzag, zigzag};
use crate::error::Malformed;
use crate::tables::Entry;
use crate::{Amounts, HeapId, ProcessIndex, StackIndex, StackTotals, Summary, Totals};

/// Number of streams of a chunk of totals by stack: stacks, owners, and the eight counters.
pub(crate) const TOTALS_STREAMS: usize = 2 + COUNTERS;

/// Encodes the totals without those by stack.
pub(crate) fn put_summary(summary: &Summary, out: &mut Vec<u8>) {
    out.put_varint(summary.event_count);
    out.put_varint(summary.duration_ns);
    summary.totals.put(out);
    out.put_varint(summary.by_heap.len() as u64);
    for (process, heap, totals) in &summary.by_heap {
        out.put_varint(u64::from(process.0));
        out.push(heap.0);
        totals.put(out);
    }
    if summary.counts_living {
        out.push(1);
    }
}

/// Inverse of [`put_summary`].
pub(crate) fn take_summary(stream: &[u8], process_count: usize) -> Result<Summary, Malformed> {
    let mut take = Take::new(stream);
    let mut summary = Summary {
        event_count: take.varint()?,
        duration_ns: take.varint()?,
        totals: Totals::take(&mut take)?,
        ..Summary::default()
    };
    for _ in 0..take.count()? {
        let process = known_process(take.varint32()?, process_count)?;
        let heap = HeapId(take.u8()?);
        summary.by_heap.push((process, heap, Totals::take(&mut take)?));
    }
    summary.counts_living = !take.is_empty() && take.u8()? != 0;
    Ok(summary)
}

/// Encodes totals by stack as columns.
pub(crate) fn stack_total_columns(totals: &[StackTotals]) -> [Vec<u8>; TOTALS_STREAMS] {
    let mut streams = [const { Vec::new() }; TOTALS_STREAMS];
    let (mut stack, mut owner) = (0_u32, (ProcessIndex(0), HeapId(0)));
    for entry in totals {
        streams[0].put_varint(zigzag(i64::from(entry.stack.0) - i64::from(stack)));
        stack = entry.stack.0;
        if (entry.process, entry.heap) == owner {
            streams[1].push(0);
        } else {
            owner = (entry.process, entry.heap);
            streams[1].push(1);
            streams[1].put_varint(u64::from(entry.process.0));
            streams[1].push(entry.heap.0);
        }
        for (stream, counter) in streams[2..].iter_mut().zip({ entry.amounts }.counters_mut()) {
            stream.put_varint(*counter);
        }
    }
    streams
}

fn known_process(number: u32, process_count: usize) -> Result<ProcessIndex, Malformed> {
    match (number as usize) < process_count {
        true => Ok(ProcessIndex(number)),
        false => Err(Malformed("a process's number is out of range")),
    }
}

/// Passes the totals of untrusted columns to `visit`, one by one. A stack or process beyond the
/// file's counts is an error, because readers may have tables of them.
pub(crate) fn take_stack_totals(
    streams: &[Vec<u8>; TOTALS_STREAMS],
    count: usize,
    (stack_count, process_count): (usize, usize),
    mut visit: impl FnMut(StackTotals),
) -> Result<(), Malformed> {
    if count > streams[0].len() {
        return Err(Malformed("it claims more stacks than it has bytes"));
    }
    let mut takes = streams.each_ref().map(|stream| Take::new(stream));
    let (mut stack, mut owner) = (0_i64, (ProcessIndex(0), HeapId(0)));
    for _ in 0..count {
        let [stacks, owners, counters @ ..] = &mut takes;
        stack = stack.wrapping_add(unzigzag(stacks.varint()?));
        if owners.u8()? != 0 {
            owner = (known_process(owners.varint32()?, process_count)?, HeapId(owners.u8()?));
        }
        let mut amounts = Amounts::default();
        // (The columns hold no variances.)
        for (amount, stream) in amounts.counters_mut().into_iter().zip(counters) {
            *amount = stream.varint()?;
        }
        visit(StackTotals {
            stack: u32::try_from(stack)
                .ok()
                .filter(|&stack| (stack as usize) < stack_count)
                .map(StackIndex)
                .ok_or(Malformed("a stack's number is out of range"))?,
            process: owner.0,
            heap: owner.1,
            amounts,
        });
    }
    Ok(())
}
