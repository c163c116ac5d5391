//! Snapshots of live blocks: any number in one file, each a run of column chunks that ends with an
//! entry of the table.
//!
//! ```text
//!  chunk SnapshotBlocks   number 3, part 0    65,536 blocks     +
//!  chunk Events           …                                     |  written in slices, while recording continues
//!  chunk SnapshotBlocks   number 3, part 1    65,536 blocks     |
//!  chunk SnapshotBlocks   number 3, part 2     1,024 blocks     +
//!  chunk Snapshots        number 3: moment, name, trigger, 3 parts, 132,096 blocks, …
//! ```
//! The entry comes last: a snapshot that is cut off by the file's end is absent, rather than partly
//! there. The chunks carry the snapshot's moment in their headers, so that a reader unpacks only
//! those of one snapshot. Each part stands alone, so that damage to one loses only that part.

use crate::bytes::{PutBytes, Take, unzigzag, zigzag};
use crate::error::Malformed;
use crate::tables::Entry;
use crate::{Block, HeapId, ProcessIndex, StackIndex, ThreadIndex};

/// Number of streams of a chunk of blocks: place, owners, addresses, sizes, stacks, threads, times.
pub(crate) const SNAPSHOT_STREAMS: usize = 7;

/// Limit of thread numbers, as in events.
const THREAD_COUNT_MAX: u32 = 1 << 24;

/// Reason for a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SnapshotTrigger {
    /// A request of the user.
    Request,
    /// A timer.
    Interval {
        /// Time between two snapshots in milliseconds.
        interval_ms: u64,
    },
    /// The resident set of a process passed a size.
    Rss {
        /// The threshold.
        threshold_bytes: u64,
    },
    /// The live bytes have grown by a percentage since the last snapshot.
    Growth {
        /// Growth in percent of the live bytes at the last snapshot.
        percent: u64,
    },
    /// A signal to the recorder.
    Signal {
        /// Number of the signal.
        signal: u64,
    },
    /// A process ended by itself; its blocks are those that it had not freed.
    Exit,
    /// A process was killed by a signal; its blocks are those that it held.
    Killed {
        /// Number of the signal.
        signal: u64,
    },
    /// A process was killed, and the kernel had counted an out-of-memory kill meanwhile.
    OutOfMemory,
    /// A reason of a later version.
    Other {
        /// Number of the reason in the file.
        number: u8,
    },
}

impl SnapshotTrigger {
    /// Number of the reason in the file, and the value that belongs to it.
    fn to_numbers(self) -> (u8, u64) {
        match self {
            Self::Request => (0, 0),
            Self::Interval { interval_ms } => (1, interval_ms),
            Self::Rss { threshold_bytes } => (2, threshold_bytes),
            Self::Growth { percent } => (3, percent),
            Self::Signal { signal } => (4, signal),
            Self::Exit => (5, 0),
            Self::Killed { signal } => (6, signal),
            Self::OutOfMemory => (7, 0),
            Self::Other { number } => (number, 0),
        }
    }

    fn from_numbers(number: u8, value: u64) -> Self {
        match number {
            0 => Self::Request,
            1 => Self::Interval { interval_ms: value },
            2 => Self::Rss { threshold_bytes: value },
            3 => Self::Growth { percent: value },
            4 => Self::Signal { signal: value },
            5 => Self::Exit,
            6 => Self::Killed { signal: value },
            7 => Self::OutOfMemory,
            _ => Self::Other { number },
        }
    }
}

/// Contents of a snapshot for one process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SnapshotProcess {
    /// The process.
    pub process: ProcessIndex,
    /// Resident set size at that moment; `None` if the process had ended.
    pub rss_bytes: Option<u64>,
    /// Number of live blocks.
    pub block_count: u64,
    /// Requested bytes of these blocks.
    pub block_bytes: u64,
}

/// A snapshot, without its blocks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// Number from 1, in the order in which snapshots were begun.
    pub number: u32,
    /// Moment of the snapshot: the state after all events up to and including this time.
    pub time_ns: u64,
    /// Number of events of the session up to the moment, written to the file or not.
    pub event_index: u64,
    /// Name given with the request; may be empty or not unique.
    pub name: String,
    /// Reason for the snapshot.
    pub trigger: SnapshotTrigger,
    /// Number of live blocks.
    pub block_count: u64,
    /// Requested bytes of these blocks.
    pub block_bytes: u64,
    /// Number of chunks of blocks.
    pub part_count: u32,
    /// Time from the moment until the last block was written.
    pub export_ns: u64,
    /// The processes in the snapshot.
    pub processes: Vec<SnapshotProcess>,
    /// Sentences about memory that the snapshot could not see.
    pub notes: Vec<String>,
}

impl Entry for SnapshotProcess {
    fn put(&self, out: &mut Vec<u8>) {
        out.put_varint(u64::from(self.process.0));
        out.put_varint(self.rss_bytes.map_or(0, |bytes| bytes.saturating_add(1)));
        out.put_varint(self.block_count);
        out.put_varint(self.block_bytes);
    }

    fn take(take: &mut Take<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            process: ProcessIndex(take.varint32()?),
            rss_bytes: take.varint()?.checked_sub(1),
            block_count: take.varint()?,
            block_bytes: take.varint()?,
        })
    }
}

/// The fields stand in a byte string of their own: later versions may add some at its end, which
/// earlier readers skip.
impl Entry for Snapshot {
    fn put(&self, out: &mut Vec<u8>) {
        let mut fields = Vec::new();
        let (trigger, value) = self.trigger.to_numbers();
        for number in [u64::from(self.number), self.time_ns, self.event_index] {
            fields.put_varint(number);
        }
        fields.put_text(&self.name);
        fields.push(trigger);
        for number in [value, self.block_count, self.block_bytes, u64::from(self.part_count), self.export_ns]
        {
            fields.put_varint(number);
        }
        fields.put_varint(self.processes.len() as u64);
        self.processes.iter().for_each(|process| process.put(&mut fields));
        fields.put_varint(self.notes.len() as u64);
        self.notes.iter().for_each(|note| fields.put_text(note));
        out.put_bytes(&fields);
    }

    fn take(take: &mut Take<'_>) -> Result<Self, Malformed> {
        let fields = take.byte_string()?;
        let mut take = Take::new(&fields);
        let (number, time_ns, event_index) = (take.varint32()?, take.varint()?, take.varint()?);
        let name = take.text()?;
        let (trigger, value) = (take.u8()?, take.varint()?);
        let (block_count, block_bytes) = (take.varint()?, take.varint()?);
        let (part_count, export_ns) = (take.varint32()?, take.varint()?);
        let process_count = take.count()?;
        let processes =
            (0..process_count).map(|_| SnapshotProcess::take(&mut take)).collect::<Result<_, _>>()?;
        let note_count = take.count()?;
        let notes = (0..note_count).map(|_| take.text()).collect::<Result<_, _>>()?;
        Ok(Self {
            number,
            time_ns,
            event_index,
            name,
            trigger: SnapshotTrigger::from_numbers(trigger, value),
            block_count,
            block_bytes,
            part_count,
            export_ns,
            processes,
            notes,
        })
    }
}

/// Columns of the blocks of a chunk that is being built.
#[derive(Debug, Default)]
pub struct SnapshotColumns {
    streams: [Vec<u8>; SNAPSHOT_STREAMS],
    count: u32,
    owner: (ProcessIndex, HeapId, bool),
    address: u64,
    stack: u32,
    thread: u32,
    alloc_ns: u64,
}

impl SnapshotColumns {
    /// Number of blocks that fill a chunk.
    pub const BLOCKS_PER_PART: u32 = 1 << 16;

    /// Empty columns.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Number of blocks.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Whether the blocks fill a chunk and should be written.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.count >= Self::BLOCKS_PER_PART
    }

    /// Adds a block. Blocks that are close in memory, stack and time take the least space.
    #[inline]
    pub fn push(&mut self, block: &Block) {
        let [_, owners, addresses, sizes, stacks, threads, times] = &mut self.streams;
        let owner = (block.process, block.heap, block.is_realloc);
        if owner == self.owner {
            owners.push(0);
        } else {
            self.owner = owner;
            owners.push(1 | u8::from(block.is_realloc) << 1);
            owners.put_varint(u64::from(block.process.0));
            owners.push(block.heap.0);
        }
        addresses.put_varint(zigzag(block.address_avma.wrapping_sub(self.address).cast_signed()));
        self.address = block.address_avma;
        sizes.put_varint(block.size_bytes);
        stacks.put_varint(zigzag(i64::from(block.stack.0) - i64::from(self.stack)));
        self.stack = block.stack.0;
        threads.put_varint(zigzag(i64::from(block.thread.0) - i64::from(self.thread)));
        self.thread = block.thread.0;
        times.put_varint(zigzag(block.alloc_ns.wrapping_sub(self.alloc_ns).cast_signed()));
        self.alloc_ns = block.alloc_ns;
        self.count += 1;
    }

    /// The streams of part `part` of snapshot `number`.
    pub(crate) fn streams(&mut self, number: u32, part: u32) -> [&[u8]; SNAPSHOT_STREAMS] {
        let place = &mut self.streams[0];
        place.clear();
        place.put_varint(u64::from(number));
        place.put_varint(u64::from(part));
        self.streams.each_ref().map(Vec::as_slice)
    }

    /// Removes the blocks, but not the memory.
    pub(crate) fn clear(&mut self) {
        let mut streams = std::mem::take(&mut self.streams);
        streams.iter_mut().for_each(Vec::clear);
        *self = Self { streams, ..Self::default() };
    }
}

/// Decodes the snapshot and part numbers of untrusted columns.
pub(crate) fn part_of(streams: &[Vec<u8>; SNAPSHOT_STREAMS]) -> Result<(u32, u32), Malformed> {
    let mut place = Take::new(&streams[0]);
    Ok((place.varint32()?, place.varint32()?))
}

/// Passes the blocks of untrusted columns to `visit`. A stack that is not in the file becomes the
/// empty one.
pub(crate) fn take_snapshot_blocks(
    streams: &[Vec<u8>; SNAPSHOT_STREAMS],
    count: usize,
    (stack_count, process_count): (usize, usize),
    mut visit: impl FnMut(&Block),
) -> Result<(), Malformed> {
    let [_, mut owners, mut addresses, mut sizes, mut stacks, mut threads, mut times] =
        streams.each_ref().map(|stream| Take::new(stream));
    let (mut owner, mut address) = ((ProcessIndex(0), HeapId(0), false), 0_u64);
    let (mut stack, mut thread, mut alloc_ns) = (0_i64, 0_i64, 0_u64);
    for _ in 0..count {
        let mark = owners.u8()?;
        if mark != 0 {
            owner = (ProcessIndex(owners.varint32()?), HeapId(owners.u8()?), mark & 2 != 0);
            if owner.0.0 as usize >= process_count {
                return Err(Malformed("a process's number is out of range"));
            }
        }
        address = address.wrapping_add_signed(unzigzag(addresses.varint()?));
        stack = stack.wrapping_add(unzigzag(stacks.varint()?));
        thread = thread.wrapping_add(unzigzag(threads.varint()?));
        alloc_ns = alloc_ns.wrapping_add_signed(unzigzag(times.varint()?));
        let known = u32::try_from(stack).ok().filter(|&stack| (stack as usize) < stack_count);
        visit(&Block {
            process: owner.0,
            heap: owner.1,
            address_avma: address,
            size_bytes: sizes.varint()?,
            stack: StackIndex(known.unwrap_or(0)),
            thread: u32::try_from(thread)
                .ok()
                .filter(|&thread| thread < THREAD_COUNT_MAX)
                .map(ThreadIndex)
                .ok_or(Malformed("a thread's number is out of range"))?,
            alloc_ns,
            is_realloc: owner.2,
        });
    }
    Ok(())
}
