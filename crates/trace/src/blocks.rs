//! The live blocks of a checkpoint, as columns.
//!
//! A checkpoint is a run of chunks of kind `Checkpoint` with the same first_ns (its time). The
//! first stream of each chunk holds its index in the run, and whether it is the last. So a reader
//! notices an incomplete run.

use crate::bytes::{PutBytes, Take, unzigzag, zigzag};
use crate::error::Malformed;
use crate::{Block, HeapId, ProcessIndex, StackIndex, ThreadIndex};

/// Number of streams of a checkpoint chunk.
pub(crate) const BLOCK_STREAMS: usize = 7;

/// Encodes one part of a checkpoint as columns. `is_last`: the checkpoint ends with this part.
pub(crate) fn block_columns(
    blocks: &[Block],
    part: u32,
    is_last: bool,
    time_ns: u64,
) -> [Vec<u8>; BLOCK_STREAMS] {
    let mut streams = [const { Vec::new() }; BLOCK_STREAMS];
    let [place, owners, addresses, sizes, stacks, threads, ages] = &mut streams;
    place.put_varint(u64::from(part));
    place.push(u8::from(is_last));
    let (mut owner, mut address, mut stack) = ((ProcessIndex(0), HeapId(0), false), 0_u64, 0_u32);
    for block in blocks {
        let now = (block.process, block.heap, block.is_realloc);
        if now == owner {
            owners.push(0);
        } else {
            owner = now;
            owners.push(1);
            owners.put_varint(u64::from(block.process.0));
            owners.push(block.heap.0);
            owners.push(u8::from(block.is_realloc));
        }
        addresses.put_varint(zigzag(block.address_avma.wrapping_sub(address).cast_signed()));
        address = block.address_avma;
        sizes.put_varint(block.size_bytes);
        stacks.put_varint(zigzag(i64::from(block.stack.0) - i64::from(stack)));
        stack = block.stack.0;
        threads.put_varint(u64::from(block.thread.0));
        ages.put_varint(time_ns.saturating_sub(block.alloc_ns));
    }
    streams
}

/// Appends the blocks of untrusted columns to `out`. Numbers of stacks and processes must lie below
/// the given counts. Returns (part, is last).
pub(crate) fn take_blocks(
    streams: &[Vec<u8>; BLOCK_STREAMS],
    count: usize,
    time_ns: u64,
    (stack_count, process_count): (usize, usize),
    out: &mut Vec<Block>,
) -> Result<(u32, bool), Malformed> {
    let [mut place, mut owners, mut addresses, mut sizes, mut stacks, mut threads, mut ages] =
        streams.each_ref().map(|stream| Take::new(stream));
    let part = (place.varint32()?, place.u8()? != 0);
    if count > streams[1].len() {
        return Err(Malformed("it claims more blocks than it has bytes"));
    }
    let (mut owner, mut address, mut stack) = ((ProcessIndex(0), HeapId(0), false), 0_u64, 0_i64);
    out.reserve(count);
    for _ in 0..count {
        if owners.u8()? != 0 {
            owner = (ProcessIndex(owners.varint32()?), HeapId(owners.u8()?), owners.u8()? != 0);
            if owner.0.0 as usize >= process_count {
                return Err(Malformed("a process's number is out of range"));
            }
        }
        address = address.wrapping_add_signed(unzigzag(addresses.varint()?));
        stack = stack.wrapping_add(unzigzag(stacks.varint()?));
        out.push(Block {
            process: owner.0,
            heap: owner.1,
            address_avma: address,
            size_bytes: sizes.varint()?,
            stack: StackIndex(
                u32::try_from(stack)
                    .ok()
                    .filter(|&stack| (stack as usize) < stack_count)
                    .ok_or(Malformed("a stack's number is out of range"))?,
            ),
            thread: ThreadIndex(threads.varint32()?),
            alloc_ns: time_ns.saturating_sub(ages.varint()?),
            is_realloc: owner.2,
        });
    }
    Ok(part)
}
