//! Replay of events into live blocks.

use std::collections::HashSet;

use heapr_trace::{Action, Block, Event, HeapId, ProcessIndex, ProcessOrigin, StackIndex, ThreadIndex};

use crate::block_table::{BlockTable, Hint};

/// Why a block ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// A free of the program.
    Free,
    /// The freeing half of a realloc.
    Realloc,
    /// Its address was handed out again without a free having been seen.
    Implied,
}

/// The end of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Death {
    /// When.
    pub time_ns: u64,
    /// By which thread.
    pub thread: ThreadIndex,
    /// Where, if frees carry stacks.
    pub stack: StackIndex,
    /// Freed by the thread that allocated it, before that thread allocated again.
    pub is_temporary: bool,
    /// Why.
    pub cause: Cause,
}

/// Is told what the replay sees. All methods have empty defaults.
pub trait Observer {
    /// Events of this stack come soon: what is kept of it may be read, to have it in the caches. The answer means nothing; it
    /// only makes sure that the reading is done.
    fn soon(&self, _stack: StackIndex) -> u64 {
        0
    }
    /// A block begins.
    fn born(&mut self, _block: &Block) {}
    /// A block ends.
    fn died(&mut self, _block: &Block, _death: &Death) {}
    /// A call failed.
    fn failed(&mut self, _event: &Event, _process: ProcessIndex, _size_bytes: u64, _stack: StackIndex) {}
    /// A free of an address that was never seen allocated. `is_inherited`: in a forked child, where it will be a block of the
    /// parent's.
    fn unmatched_free(&mut self, _event: &Event, _process: ProcessIndex, _is_inherited: bool) {}
}

/// Nobody is told.
impl Observer for () {}

/// The state of all heaps at a point of the event stream.
#[derive(Debug)]
pub struct Ledger {
    blocks: BlockTable,
    /// By thread: the block that it allocated last, if it has not allocated or freed it since.
    last_alloc: Vec<u64>,
    forked: HashSet<ProcessIndex>,
}

/// Events whose blocks are looked up together: some ten loads are on their way at once, so more gains nothing.
const LOOKED_UP: usize = 64;

/// No address.
const NONE: u64 = u64::MAX;

impl Default for Ledger {
    fn default() -> Self {
        Self::new()
    }
}

impl Ledger {
    /// Empty heaps.
    #[must_use]
    pub fn new() -> Self {
        Self { blocks: BlockTable::new(), last_alloc: Vec::new(), forked: HashSet::new() }
    }

    /// Makes a process known: frees of unknown blocks in a forked one are inherited, not unmatched.
    pub fn add_process(&mut self, process: ProcessIndex, origin: ProcessOrigin) {
        if let ProcessOrigin::Fork { .. } = origin {
            self.forked.insert(process);
        }
    }

    /// A ledger that knows the same processes, without blocks.
    #[must_use]
    pub fn emptied(&self) -> Self {
        Self { forked: self.forked.clone(), ..Self::new() }
    }

    /// Puts in blocks that are live already, as from a checkpoint.
    pub fn load(&mut self, blocks: impl IntoIterator<Item = Block>) {
        for block in blocks {
            self.blocks.tidy_up();
            self.blocks.insert(&block, Hint::NONE);
        }
    }

    /// Number of live blocks.
    #[must_use]
    pub fn live_count(&self) -> usize {
        self.blocks.len()
    }

    /// The live blocks, in no order.
    pub fn live_blocks(&self) -> impl Iterator<Item = Block> + '_ {
        self.blocks.iter()
    }

    /// The live blocks by process, heap and address.
    pub fn sorted_blocks(&self) -> impl Iterator<Item = Block> + '_ {
        self.blocks.sorted()
    }

    /// Makes a cut: [`Ledger::cut_slice`] shows the blocks that are live now, whatever happens until then. A cut that is under
    /// way is given up.
    pub fn begin_cut(&mut self) {
        self.blocks.begin_cut();
    }

    /// Gives up a cut.
    pub fn abandon_cut(&mut self) {
        self.blocks.abandon_cut();
    }

    /// Shows some more blocks of the cut: all that have changed since the last slice, and those of `group_count` more groups
    /// (of up to 32 blocks each). Tells whether that was all.
    pub fn cut_slice(&mut self, group_count: usize, visit: impl FnMut(&Block)) -> bool {
        self.blocks.cut_slice(group_count, visit)
    }

    /// Whether blocks of the cut have changed since the last slice, and wait in memory.
    #[inline]
    #[must_use]
    pub fn has_put_aside(&self) -> bool {
        self.blocks.has_put_aside()
    }

    /// Forgets the blocks of a process that has ended (they stay outstanding in what an observer has counted).
    pub fn drop_process(&mut self, process: ProcessIndex) {
        self.blocks.remove_process(process);
    }

    /// Applies the next event.
    #[inline]
    pub fn apply(&mut self, event: &Event, process: ProcessIndex, observer: &mut impl Observer) {
        self.blocks.tidy_up();
        self.apply_hinted(event, process, Hint::NONE, observer);
    }

    /// Applies the next events: what [`Ledger::apply`] does for each, faster.
    #[inline]
    pub fn apply_all(&mut self, events: &[(Event, ProcessIndex)], observer: &mut impl Observer) {
        let mut hints = [Hint::NONE; LOOKED_UP];
        let mut numbers = [0; LOOKED_UP];
        for events in events.chunks(LOOKED_UP) {
            self.blocks.tidy_up();
            if self.blocks.is_small() {
                let stacks = events.iter().map(|(event, _)| observer.soon(own_stack(event)));
                std::hint::black_box(stacks.fold(0, |touched, stack| touched ^ stack));
                for (event, process) in events {
                    self.apply_hinted(event, *process, Hint::NONE, observer);
                }
                continue;
            }
            // One short loop for each level of the table: the fewer instructions lie between two loads that do not wait for
            // each other, the more of them are on their way at once.
            for ((event, process), place) in events.iter().zip(&mut numbers) {
                *place = self.blocks.place(*process, event.heap, first_address(event));
            }
            for (((event, _), &place), hint) in events.iter().zip(&numbers).zip(&mut hints) {
                *hint = self.blocks.hint_in(place, first_address(event));
            }
            let groups =
                hints[..events.len()].iter().fold(0, |touched, &hint| touched ^ self.blocks.touch(hint));
            std::hint::black_box(groups);
            for (((event, _), &hint), number) in events.iter().zip(&hints).zip(&mut numbers) {
                *number = self.blocks.soon(hint, first_address(event));
            }
            let mut touched = 0;
            for ((event, _), &number) in events.iter().zip(&numbers) {
                touched ^= observer.soon(own_stack(event)) ^ observer.soon(self.blocks.stack_of(number));
            }
            // The loads must happen; what they load is of no interest yet.
            std::hint::black_box(touched);
            for ((event, process), &hint) in events.iter().zip(&hints) {
                self.apply_hinted(event, *process, hint, observer);
            }
        }
    }

    #[inline(always)]
    fn apply_hinted(
        &mut self,
        event: &Event,
        process: ProcessIndex,
        hint: Hint,
        observer: &mut impl Observer,
    ) {
        match event.action {
            Action::Alloc { address_avma, size_bytes, stack, is_moved_realloc } => {
                let place = (address_avma, hint);
                self.begin(event, process, place, size_bytes, stack, is_moved_realloc, observer);
            }
            Action::Free { address_avma, stack, is_moved_realloc } => {
                let cause = if is_moved_realloc { Cause::Realloc } else { Cause::Free };
                self.end(event, process, (address_avma, hint), stack, cause, observer);
            }
            Action::Realloc { old_address_avma, address_avma, size_bytes, stack } => {
                self.end(event, process, (old_address_avma, hint), stack, Cause::Realloc, observer);
                // The hint is the old block's.
                let hint = if address_avma == old_address_avma { hint } else { Hint::NONE };
                self.begin(event, process, (address_avma, hint), size_bytes, stack, true, observer);
            }
            Action::Failed { size_bytes, stack } => observer.failed(event, process, size_bytes, stack),
        }
    }

    #[inline(always)]
    fn last_alloc_of(&mut self, thread: ThreadIndex) -> &mut u64 {
        let number = thread.0 as usize;
        if number >= self.last_alloc.len() {
            self.last_alloc.resize(number + 1, NONE);
        }
        &mut self.last_alloc[number]
    }

    #[allow(clippy::too_many_arguments, reason = "the parts of one event, on the hot path")]
    #[inline(always)]
    fn begin(
        &mut self,
        event: &Event,
        process: ProcessIndex,
        (address_avma, hint): (u64, Hint),
        size_bytes: u64,
        stack: StackIndex,
        is_realloc: bool,
        observer: &mut impl Observer,
    ) {
        let block = Block {
            process,
            heap: event.heap,
            address_avma,
            size_bytes,
            stack,
            thread: event.thread,
            alloc_ns: event.time_ns,
            is_realloc,
        };
        if let Some(old) = self.blocks.insert(&block, hint) {
            let death = Death {
                time_ns: event.time_ns,
                thread: event.thread,
                stack: StackIndex::EMPTY,
                is_temporary: false,
                cause: Cause::Implied,
            };
            observer.died(&old, &death);
        }
        if event.heap == HeapId::MALLOC {
            *self.last_alloc_of(event.thread) = address_avma;
        }
        observer.born(&block);
    }

    #[inline(always)]
    fn end(
        &mut self,
        event: &Event,
        process: ProcessIndex,
        (address_avma, hint): (u64, Hint),
        stack: StackIndex,
        cause: Cause,
        observer: &mut impl Observer,
    ) {
        let Some(block) = self.blocks.remove(process, event.heap, address_avma, hint) else {
            observer.unmatched_free(event, process, self.forked.contains(&process));
            return;
        };
        let last = self.last_alloc_of(event.thread);
        // A block that is resized goes on in another form: only a free makes it temporary.
        let is_temporary = *last == address_avma && block.thread == event.thread && cause == Cause::Free;
        if is_temporary {
            *last = NONE;
        }
        let death = Death { time_ns: event.time_ns, thread: event.thread, stack, is_temporary, cause };
        observer.died(&block, &death);
    }
}

/// The stack that a block will begin with.
#[inline(always)]
fn own_stack(event: &Event) -> StackIndex {
    match event.action {
        Action::Alloc { stack, .. } | Action::Realloc { stack, .. } => stack,
        Action::Free { .. } | Action::Failed { .. } => StackIndex::EMPTY,
    }
}

/// The address that an event looks at first; 0 for a failed call, which has none.
#[inline(always)]
fn first_address(event: &Event) -> u64 {
    match event.action {
        Action::Alloc { address_avma, .. } | Action::Free { address_avma, .. } => address_avma,
        Action::Realloc { old_address_avma, .. } => old_address_avma,
        Action::Failed { .. } => 0,
    }
}
