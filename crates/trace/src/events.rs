//! The columns of an event chunk.
//!
//! ```text
//! tokens     one byte per event: kind:3 | new thread:1 | heap not 0:1 | address known:1 | site new:1 | in place:1
//! times      ns since the previous event, varint (the first: since the chunk's first_ns)
//! threads    thread (and heap, if the token says so), varint, only where the token says so
//! addresses  addresses that no model predicts: zigzag difference to the last such address
//! refs       freed block: number of allocations of this chunk since its own
//! sites      index in the table of (stack, size) pairs, two bytes
//! new sites  stack as zigzag difference to the last new one, size
//! ```
//! Each chunk stands alone: the writer and the reader begin it with empty models and update them in
//! step.
//!
//! **Models.** A freed block is nearly always one that was allocated a short while ago: it is named
//! by the number of allocations since. An allocator usually hands out the most recently freed block
//! of a size class first. A stack of freed addresses for each class therefore predicts the address
//! of most small allocations, and a predicted address takes no bytes. Pairs of stack and size
//! recur: they are stored in a table.

mod block_names;
mod encoder;
mod numbers;
#[cfg(test)]
mod tests;

pub(crate) use self::encoder::EventColumns;
use crate::bytes::{Take, unzigzag};
use crate::error::Malformed;
use crate::payload::Search;
use crate::{Action, Event, HeapId, StackIndex, ThreadIndex};

/// Largest number of events per chunk. Large enough for the models and the compressor to learn,
/// small enough that a chunk is read in a millisecond.
pub(crate) const EVENTS_PER_CHUNK: usize = 1 << 16;
/// Limit of thread numbers in a file. Readers allocate tables by thread, which a hostile number
/// must not make huge.
pub(crate) const THREADS_MAX: u32 = 1 << 24;
/// Thread before the first event of a chunk.
const NO_THREAD: ThreadIndex = ThreadIndex(u32::MAX);
/// Number of streams of an event chunk.
pub(crate) const EVENT_STREAMS: usize = 7;
/// Method, by stream, to decide whether the compressor searches for repetitions. Sites recur in the
/// same order in every program.
pub(crate) const EVENT_SEARCHES: [Search; EVENT_STREAMS] = [
    Search::SampledIfMixed,
    Search::Sampled,
    Search::Sampled,
    Search::Sampled,
    Search::Sampled,
    Search::Always,
    Search::Sampled,
];

const ALLOC: u8 = 0;
const FREE: u8 = 1;
const REALLOC: u8 = 2;
const FAILED: u8 = 3;
const FREE_WITH_STACK: u8 = 4;
const ALLOC_MOVED: u8 = 5;
const FREE_MOVED: u8 = 6;

const NEW_THREAD: u8 = 1 << 3;
const WITH_HEAP: u8 = 1 << 4;
const ADDRESS_KNOWN: u8 = 1 << 5;
const NEW_SITE: u8 = 1 << 6;
const IN_PLACE: u8 = 1 << 7;

/// Number of entries of the site table.
const SITES: usize = 1 << 12;
/// Number of size classes with a stack of freed addresses. These are chunks of up to 1 KiB in steps
/// of 16, like those of glibc's thread cache.
const CLASSES: usize = 66;
/// Number of freed addresses remembered per class.
const CLASS_DEPTH: usize = 32;

const fn mix(value: u64) -> usize {
    (value.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as usize
}

/// The size class of a block; `CLASSES` for a larger block, which is in no class.
#[inline(always)]
fn class(size_bytes: u64) -> usize {
    /// First size beyond the classes.
    const SIZE_END: usize = 16 * CLASSES - 23;
    // The class of all sizes up to 24 is 2; from `SIZE_END` on it is `CLASSES`.
    (size_bytes.clamp(9, SIZE_END as u64) as usize + 23) / 16
}

/// Index of a pair in the table of sites.
#[inline(always)]
const fn site_place(stack: u32, size_bytes: u64) -> usize {
    mix((stack as u64) << 32 ^ size_bytes.wrapping_mul(0xff51_afd7_ed55_8ccd)) % SITES
}

/// State that the reader derives from the chunk so far. The writer holds equal state in other
/// structures, which are faster for encoding: see [`encoder`].
#[derive(Debug)]
struct Models {
    thread: ThreadIndex,
    last_address: u64,
    last_stack: u32,
    /// Address and size of each allocation of the chunk.
    allocs: Vec<(u64, u64)>,
    freed: Vec<[u64; CLASS_DEPTH]>,
    freed_top: [u8; CLASSES],
    freed_count: [u8; CLASSES],
    sites: Vec<(u32, u64)>,
}

impl Models {
    fn new() -> Self {
        Self {
            thread: NO_THREAD,
            last_address: 0,
            last_stack: 0,
            allocs: Vec::with_capacity(EVENTS_PER_CHUNK),
            freed: vec![[0; CLASS_DEPTH]; CLASSES],
            freed_top: [0; CLASSES],
            freed_count: [0; CLASSES],
            sites: vec![(u32::MAX, 0); SITES],
        }
    }

    fn reset(&mut self) {
        self.thread = NO_THREAD;
        self.last_address = 0;
        self.last_stack = 0;
        self.allocs.clear();
        self.freed_count = [0; CLASSES];
        self.sites.fill((u32::MAX, 0));
    }

    /// Predicts the address of the next allocation of a size: the last one freed in its class.
    #[inline(always)]
    fn predicted(&self, size_bytes: u64) -> Option<u64> {
        let class = class(size_bytes);
        if class == CLASSES || self.freed_count[class] == 0 {
            return None;
        }
        Some(self.freed[class][usize::from(self.freed_top[class]) % CLASS_DEPTH])
    }

    #[inline(always)]
    fn allocated(&mut self, address: u64, size_bytes: u64, was_predicted: bool) {
        let class = class(size_bytes);
        if was_predicted && class < CLASSES {
            self.freed_count[class] -= 1;
            self.freed_top[class] = self.freed_top[class].wrapping_sub(1);
        }
        self.allocs.push((address, size_bytes));
    }

    #[inline(always)]
    fn freed(&mut self, address: u64, size_bytes: u64) {
        let class = class(size_bytes);
        if class < CLASSES {
            let top = self.freed_top[class].wrapping_add(1);
            self.freed_top[class] = top;
            self.freed[class][usize::from(top) % CLASS_DEPTH] = address;
            self.freed_count[class] = (self.freed_count[class] + 1).min(CLASS_DEPTH as u8);
        }
    }
}

/// Decodes the events of a chunk from its columns.
#[derive(Debug)]
pub(crate) struct EventDecoder {
    models: Models,
    stack_count: u32,
}

struct Columns<'a> {
    tokens: Take<'a>,
    times: Take<'a>,
    threads: Take<'a>,
    addresses: Take<'a>,
    refs: Take<'a>,
    sites: Take<'a>,
    new_sites: Take<'a>,
}

impl EventDecoder {
    pub(crate) fn new() -> Self {
        Self { models: Models::new(), stack_count: 0 }
    }

    /// Appends the events of untrusted columns to `events`. Events decoded before an error stay. A
    /// stack beyond the file's `stack_count` becomes the empty one (lost), because readers may have
    /// tables by stack.
    pub(crate) fn decode(
        &mut self,
        streams: &[Vec<u8>; EVENT_STREAMS],
        first_ns: u64,
        count: usize,
        stack_count: usize,
        events: &mut Vec<Event>,
    ) -> Result<(), Malformed> {
        self.models.reset();
        self.stack_count = u32::try_from(stack_count).unwrap_or(u32::MAX);
        if count > EVENTS_PER_CHUNK || streams[0].len() != count {
            return Err(Malformed("it has another number of events than it says"));
        }
        events.reserve(count);
        let [tokens, times, threads, addresses, refs, sites, new_sites] =
            streams.each_ref().map(|s| Take::new(s));
        let mut columns = Columns { tokens, times, threads, addresses, refs, sites, new_sites };
        let mut time_ns = first_ns;
        for _ in 0..count {
            let token = columns.tokens.u8()?;
            time_ns =
                time_ns.checked_add(columns.times.varint()?).ok_or(Malformed("a time is beyond 64 bits"))?;
            if token & NEW_THREAD != 0 {
                let thread = columns.threads.varint32()?;
                if thread >= THREADS_MAX {
                    return Err(Malformed("a thread's number is out of range"));
                }
                self.models.thread = ThreadIndex(thread);
            } else if self.models.thread == NO_THREAD {
                return Err(Malformed("the first event names no thread"));
            }
            let heap = if token & WITH_HEAP != 0 { HeapId(columns.threads.u8()?) } else { HeapId::MALLOC };
            let action = self.action(token, &mut columns)?;
            events.push(Event { time_ns, thread: self.models.thread, heap, action });
        }
        Ok(())
    }

    #[inline(always)]
    fn action(&mut self, token: u8, columns: &mut Columns<'_>) -> Result<Action, Malformed> {
        Ok(match token & 7 {
            kind @ (ALLOC | ALLOC_MOVED) => {
                let (stack, size_bytes) = self.site(token, columns)?;
                let is_known = token & ADDRESS_KNOWN != 0;
                let address_avma = if is_known {
                    self.models
                        .predicted(size_bytes)
                        .ok_or(Malformed("an address was to be known and is not"))?
                } else {
                    self.address(columns)?
                };
                self.models.allocated(address_avma, size_bytes, is_known);
                Action::Alloc { address_avma, size_bytes, stack, is_moved_realloc: kind == ALLOC_MOVED }
            }
            kind @ (FREE | FREE_MOVED) => {
                let address_avma = self.freed(token, columns)?;
                Action::Free { address_avma, stack: StackIndex::EMPTY, is_moved_realloc: kind == FREE_MOVED }
            }
            FREE_WITH_STACK => {
                let address_avma = self.freed(token, columns)?;
                let (stack, is_moved) = self.site(token, columns)?;
                Action::Free { address_avma, stack, is_moved_realloc: is_moved != 0 }
            }
            REALLOC => {
                let old_address_avma = self.freed(token, columns)?;
                let (stack, size_bytes) = self.site(token, columns)?;
                let address_avma =
                    if token & IN_PLACE != 0 { old_address_avma } else { self.address(columns)? };
                self.models.allocated(address_avma, size_bytes, false);
                Action::Realloc { old_address_avma, address_avma, size_bytes, stack }
            }
            FAILED => {
                let (stack, size_bytes) = self.site(token, columns)?;
                Action::Failed { size_bytes, stack }
            }
            _ => return Err(Malformed("an event is of no known kind")),
        })
    }

    #[inline(always)]
    fn address(&mut self, columns: &mut Columns<'_>) -> Result<u64, Malformed> {
        let address = self.models.last_address.wrapping_add_signed(unzigzag(columns.addresses.varint()?));
        self.models.last_address = address;
        Ok(address)
    }

    #[inline(always)]
    fn freed(&mut self, token: u8, columns: &mut Columns<'_>) -> Result<u64, Malformed> {
        if token & ADDRESS_KNOWN == 0 {
            return self.address(columns);
        }
        let back = columns.refs.varint()?;
        let number =
            (self.models.allocs.len() as u64).checked_sub(back).and_then(|number| number.checked_sub(1));
        let &(address, size_bytes) = number
            .and_then(|number| self.models.allocs.get(number as usize))
            .ok_or(Malformed("a free refers to an allocation before the chunk"))?;
        self.models.freed(address, size_bytes);
        Ok(address)
    }

    #[inline(always)]
    fn site(&mut self, token: u8, columns: &mut Columns<'_>) -> Result<(StackIndex, u64), Malformed> {
        if token & NEW_SITE == 0 {
            let place = usize::from(u16::from_le_bytes([columns.sites.u8()?, columns.sites.u8()?]));
            let &(stack, size_bytes) =
                self.models.sites.get(place).ok_or(Malformed("a site is outside of its table"))?;
            return Ok((self.known_stack(stack), size_bytes));
        }
        let difference = unzigzag(columns.new_sites.varint()?);
        let stack = i64::from(self.models.last_stack)
            .checked_add(difference)
            .and_then(|stack| u32::try_from(stack).ok())
            .ok_or(Malformed("a stack's number is beyond 32 bits"))?;
        let size_bytes = columns.new_sites.varint()?;
        self.models.last_stack = stack;
        self.models.sites[site_place(stack, size_bytes)] = (stack, size_bytes);
        Ok((self.known_stack(stack), size_bytes))
    }

    #[inline(always)]
    fn known_stack(&self, stack: u32) -> StackIndex {
        if stack < self.stack_count { StackIndex(stack) } else { StackIndex::EMPTY }
    }
}
