//! The stack tree of a file.

use std::collections::HashMap;

use crate::bytes::{PutBytes, Take, unzigzag, zigzag};
use crate::error::Malformed;
use crate::node_times::NodeTimes;
use crate::{ProcessIndex, StackIndex, StackNode};

/// Number of streams of a stack chunk: parents, processes, addresses, times.
pub(crate) const STACK_STREAMS: usize = 4;
/// Bits of a process number in `StackTable::addresses`.
const PROCESS_BITS: u32 = 16;

/// Stands in `StackTable::addresses` for a node that does not fit there.
const WIDE: u64 = u64::MAX;

/// All nodes of a file: 16 bytes each.
#[derive(Debug, Default, Clone)]
pub struct StackTable {
    parents: Vec<u32>,
    /// Process in the upper 16 bits, address in the others.
    addresses: Vec<u64>,
    /// Process and address, by index, of the few nodes that do not fit 16 and 48 bits. Examples are
    /// the 65,536th process of a long build, and an address that a damaged target made up.
    wide: HashMap<u32, (u32, u64)>,
    /// Exact times: a library may be unloaded within microseconds, and another one take its
    /// addresses.
    times: NodeTimes,
}

impl StackTable {
    /// Number of nodes, the empty stack included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.parents.len() + 1
    }

    /// Whether the empty stack is the only one.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.parents.is_empty()
    }

    /// The caller's node. Returns the empty stack for itself and for numbers that the file does not
    /// have.
    #[inline]
    #[must_use]
    pub fn parent(&self, stack: StackIndex) -> StackIndex {
        let place = (stack.0 as usize).wrapping_sub(1);
        StackIndex(self.parents.get(place).copied().unwrap_or(0))
    }

    /// The node; `None` for the empty stack and for numbers that the file does not have.
    #[must_use]
    pub fn node(&self, stack: StackIndex) -> Option<StackNode> {
        let place = (stack.0 as usize).checked_sub(1)?;
        let packed = *self.addresses.get(place)?;
        let (process, return_address_avma) = match packed {
            WIDE => *self.wide.get(&(place as u32))?,
            packed => ((packed >> (64 - PROCESS_BITS)) as u32, packed & (u64::MAX >> PROCESS_BITS)),
        };
        Some(StackNode {
            parent: StackIndex(*self.parents.get(place)?),
            process: ProcessIndex(process),
            return_address_avma,
            first_seen_ns: self.times.get(place)?,
        })
    }

    /// The process of a node; `None` for the empty stack and for numbers that the file does not
    /// have.
    #[must_use]
    pub fn process(&self, stack: StackIndex) -> Option<ProcessIndex> {
        let place = (stack.0 as usize).checked_sub(1)?;
        match *self.addresses.get(place)? {
            WIDE => self.wide.get(&(place as u32)).map(|&(process, _)| ProcessIndex(process)),
            packed => Some(ProcessIndex((packed >> (64 - PROCESS_BITS)) as u32)),
        }
    }

    fn push(&mut self, node: StackNode) {
        let (process, address) = (node.process.0, node.return_address_avma);
        let packed = u64::from(process) << (64 - PROCESS_BITS) | address;
        let fits = process >> PROCESS_BITS == 0 && address >> (64 - PROCESS_BITS) == 0 && packed != WIDE;
        if !fits {
            self.wide.insert(self.parents.len() as u32, (process, address));
        }
        self.parents.push(node.parent.0);
        self.addresses.push(if fits { packed } else { WIDE });
        self.times.push(node.first_seen_ns);
    }

    /// Appends outermost frames of unknown address as substitutes for lost nodes.
    pub(crate) fn push_unknown(&mut self, count: usize) {
        let count = count.min(u32::MAX as usize - self.len());
        self.parents.resize(self.parents.len() + count, 0);
        self.addresses.resize(self.addresses.len() + count, 0);
        (0..count).for_each(|_| self.times.push(0));
    }

    /// Number of the last process that has a node, plus one.
    pub(crate) fn process_count(&self) -> usize {
        let packed = self.addresses.iter().filter(|&&packed| packed != WIDE);
        let most = packed.map(|packed| (packed >> (64 - PROCESS_BITS)) as usize).max();
        most.into_iter()
            .chain(self.wide.values().map(|&(process, _)| process as usize))
            .max()
            .map_or(0, |most| most + 1)
    }

    fn truncate(&mut self, count: usize) {
        self.parents.truncate(count);
        self.addresses.truncate(count);
        self.times.truncate(count);
    }

    /// Appends the nodes of an untrusted chunk; if one makes no sense, appends no node.
    pub(crate) fn decode(
        &mut self,
        streams: &[Vec<u8>; STACK_STREAMS],
        count: usize,
        process_limit: usize,
    ) -> Result<(), Malformed> {
        let before = self.parents.len();
        let decoded = self.decode_all(streams, count, process_limit);
        if decoded.is_err() {
            self.truncate(before);
        }
        decoded
    }

    fn decode_all(
        &mut self,
        streams: &[Vec<u8>; STACK_STREAMS],
        count: usize,
        process_limit: usize,
    ) -> Result<(), Malformed> {
        let [mut parents, mut processes, mut addresses, mut times] = streams.each_ref().map(|s| Take::new(s));
        let (mut process, mut address, mut time_ns) = (0, 0_u64, 0_u64);
        if count > streams[0].len() {
            return Err(Malformed("it claims more nodes than it has bytes"));
        }
        if count > u32::MAX as usize - self.len() {
            return Err(Malformed("the file has more nodes than can be numbered"));
        }
        self.parents.reserve(count);
        self.addresses.reserve(count);
        self.times.reserve(count);
        for _ in 0..count {
            let number = self.len() as u64;
            // The difference 0 stands for an outermost frame.
            let back = parents.varint()?;
            let parent = match back {
                0 => 0,
                back => number.checked_sub(back).ok_or(Malformed("a stack's caller is not before it"))?,
            };
            if processes.u8()? != 0 {
                process = processes.varint32()?;
                if process as usize >= process_limit {
                    return Err(Malformed("a stack is of a process that the file does not have"));
                }
            }
            address = address.wrapping_add_signed(unzigzag(addresses.varint()?));
            time_ns = time_ns.wrapping_add_signed(unzigzag(times.varint()?));
            self.push(StackNode {
                parent: StackIndex(parent as u32),
                process: ProcessIndex(process),
                return_address_avma: address,
                first_seen_ns: time_ns,
            });
        }
        Ok(())
    }
}

/// Collects the nodes of a stack chunk.
#[derive(Debug, Default)]
pub(crate) struct StackColumns {
    pub(crate) count: usize,
    /// Number of the last node of the file.
    pub(crate) last_index: u32,
    process: u32,
    address: u64,
    time_ns: u64,
    streams: [Vec<u8>; STACK_STREAMS],
}

impl StackColumns {
    pub(crate) fn push(&mut self, node: StackNode) -> StackIndex {
        self.last_index += 1;
        self.count += 1;
        let [parents, processes, addresses, times] = &mut self.streams;
        let back =
            if node.parent == StackIndex::EMPTY { 0 } else { self.last_index.saturating_sub(node.parent.0) };
        parents.put_varint(u64::from(back));
        if node.process.0 == self.process {
            processes.push(0);
        } else {
            processes.push(1);
            processes.put_varint(u64::from(node.process.0));
            self.process = node.process.0;
        }
        addresses.put_varint(zigzag(node.return_address_avma.wrapping_sub(self.address).cast_signed()));
        self.address = node.return_address_avma;
        times.put_varint(zigzag(node.first_seen_ns.wrapping_sub(self.time_ns).cast_signed()));
        self.time_ns = node.first_seen_ns;
        StackIndex(self.last_index)
    }

    pub(crate) fn streams(&self) -> [&[u8]; STACK_STREAMS] {
        self.streams.each_ref().map(Vec::as_slice)
    }

    /// Begins the next chunk.
    pub(crate) fn clear(&mut self) {
        self.count = 0;
        self.process = 0;
        self.address = 0;
        self.time_ns = 0;
        self.streams.iter_mut().for_each(Vec::clear);
    }
}
