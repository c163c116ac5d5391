//! Replay of events into live blocks.

use std::collections::HashMap;

use heapr_trace::{Action, Block, Event, HeapId, ProcessIndex, ProcessOrigin, StackIndex, ThreadIndex};

use crate::block_table::{BlockTable, Hint};
use crate::family::{Family, Heir};

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
    /// Events of this stack come soon: what is kept of it may be read, to have it in the caches.
    /// The answer means nothing; it only makes sure that the reading is done.
    fn prefetch(&self, _stack: StackIndex) -> u64 {
        0
    }
    /// A block begins.
    fn born(&mut self, _block: &Block) {}
    /// A block ends.
    fn died(&mut self, _block: &Block, _death: &Death) {}
    /// The process of a block ends, which nobody has freed: it is live no more, and stays
    /// outstanding. `time_ns` is the time of the process's end, or of the event that frees the copy
    /// of a child that went on with it.
    fn left(&mut self, _block: &Block, _time_ns: u64) {}
    /// When a block was allocated; of who keeps something else in place of the time.
    fn alloc_ns(&self, block: &Block) -> u64 {
        block.alloc_ns
    }
    /// A call failed.
    fn failed(&mut self, _event: &Event, _process: ProcessIndex, _size_bytes: u64, _stack: StackIndex) {}
    /// A free of an address that was never seen allocated. `is_inherited`: in a forked child, where
    /// it will be a block of the parent's.
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
    family: Family,
    /// What processes have left stays until it is forgotten. (Apart from the blocks: whatever
    /// comes of the process after its end, that has ended.)
    keeps_left: bool,
    left: HashMap<ProcessIndex, Vec<Block>>,
    /// Of that what the cut under way has not shown.
    left_in_cut: Vec<Block>,
    /// Windows whose blocks are looked up together before it is tried again without, and those of
    /// them that are still to come.
    ahead: u32,
    ahead_left: u32,
}

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
        Self {
            blocks: BlockTable::new(),
            last_alloc: Vec::new(),
            family: Family::default(),
            keeps_left: false,
            left: HashMap::new(),
            left_in_cut: Vec::new(),
            ahead: 0,
            ahead_left: 0,
        }
    }

    /// Makes a process known: frees of unknown blocks in a forked one are inherited, not unmatched.
    pub fn add_process(&mut self, process: ProcessIndex, origin: ProcessOrigin, start_ns: u64) {
        if let ProcessOrigin::Fork { parent } = origin {
            self.family.add(process, parent, start_ns);
        }
    }

    /// A ledger that knows the same processes, without blocks, before any of them has ended.
    #[must_use]
    pub fn emptied(&self) -> Self {
        Self { family: self.family.at_start(), ..Self::new() }
    }

    /// Puts in blocks that are live already, as from a checkpoint; those of processes that have
    /// ended only if another goes on with them. Gives those that it has taken.
    pub fn load(&mut self, blocks: impl IntoIterator<Item = Block>) -> Vec<Block> {
        let mut taken: Vec<Block> = Vec::new();
        for block in blocks {
            let is_gone = self.family.has_ended(block.process)
                && self.family.heir(block.process).is_none_or(|heir| block.alloc_ns > heir.until_ns);
            if !is_gone {
                self.blocks.tidy_up();
                self.blocks.insert(&block, Hint::NONE);
                taken.push(block);
            }
        }
        taken
    }

    /// What processes have left when they end stays, for a cut to show it, until
    /// [`Ledger::forget_left`].
    pub fn keep_left(&mut self) {
        self.keeps_left = true;
    }

    /// A process ends, and with it what it has left and no child goes on with.
    pub fn end_process(&mut self, process: ProcessIndex, time_ns: u64, observer: &mut impl Observer) {
        for passed in self.family.end(process) {
            for block in self.blocks.blocks_of(passed.owner) {
                let was_live = passed.before.is_none_or(|before| self.goes_on(&block, before, observer));
                let is_live = passed.heir.is_some_and(|heir| self.goes_on(&block, heir, observer));
                if is_live || !was_live {
                    continue;
                }
                self.blocks.remove(block.process, block.heap, block.address_avma, Hint::NONE);
                observer.left(&block, time_ns);
                if self.keeps_left {
                    self.left.entry(block.process).or_default().push(block);
                }
            }
        }
        self.family.forget_freed_copies(process);
        self.blocks.tidy_up();
    }

    /// Whether the end of a process has come.
    #[must_use]
    pub fn has_ended(&self, process: ProcessIndex) -> bool {
        self.family.has_ended(process)
    }

    /// Forgets what a process has left that no other goes on with.
    pub fn forget_left(&mut self, process: ProcessIndex) {
        self.left.remove(&process);
    }

    /// Whether an heir has a copy of a block that it did not free.
    fn goes_on(&self, block: &Block, heir: Heir, observer: &impl Observer) -> bool {
        observer.alloc_ns(block) <= heir.until_ns
            && !self.family.has_freed_copy(heir.process, block.heap, block.address_avma)
    }

    /// A forked child has freed a block that it had from a parent: if the child goes on with what
    /// that one had, the block ends.
    fn end_copy(
        &mut self,
        event: &Event,
        process: ProcessIndex,
        address_avma: u64,
        observer: &mut impl Observer,
    ) {
        let owner =
            self.family.ancestors(process).find(|&owner| self.blocks.has(owner, event.heap, address_avma));
        let Some(owner) = owner else { return };
        if self.family.heir(owner).is_none_or(|heir| heir.process != process) {
            return self.family.note_freed_copy(process, event.heap, address_avma);
        }
        if let Some(block) = self.blocks.remove(owner, event.heap, address_avma, Hint::NONE) {
            observer.left(&block, event.time_ns);
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

    /// Makes a cut: [`Ledger::cut_slice`] shows the blocks that are live now, whatever happens
    /// until then. A cut that is under way is given up.
    pub fn begin_cut(&mut self) {
        self.left_in_cut = self.left.values().flatten().copied().collect();
        self.blocks.begin_cut();
    }

    /// Gives up a cut.
    pub fn abandon_cut(&mut self) {
        self.left_in_cut = Vec::new();
        self.blocks.abandon_cut();
    }

    /// Shows some more blocks of the cut: all that have changed since the last slice, and those of
    /// `group_count` more groups (of up to 32 blocks each). Tells whether that was all.
    pub fn cut_slice(&mut self, group_count: usize, mut visit: impl FnMut(&Block)) -> bool {
        self.left_in_cut.drain(..).for_each(|block| visit(&block));
        self.blocks.cut_slice(group_count, visit)
    }

    /// Whether blocks of the cut have changed since the last slice, and wait in memory.
    #[inline]
    #[must_use]
    pub fn has_put_aside(&self) -> bool {
        self.blocks.has_put_aside()
    }

    /// Forgets the blocks of a process that has ended, unless another goes on with them (they stay
    /// outstanding in what an observer has counted).
    pub fn drop_process(&mut self, process: ProcessIndex) {
        self.forget_left(process);
        if self.family.heir(process).is_none() {
            self.blocks.remove_process(process);
        }
    }

    /// Applies the next event.
    #[inline]
    pub fn apply(&mut self, event: &Event, process: ProcessIndex, observer: &mut impl Observer) {
        self.blocks.tidy_up();
        self.apply_hinted(event, process, Hint::NONE, (|| false, || None), observer);
    }

    /// `is_birth` tells of an allocation whether the table need not know of it, and `birth` of a
    /// free the block, if it does not.
    #[inline(always)]
    fn apply_hinted(
        &mut self,
        event: &Event,
        process: ProcessIndex,
        hint: Hint,
        (is_birth, birth): (impl FnOnce() -> bool, impl FnOnce() -> Option<Block>),
        observer: &mut impl Observer,
    ) {
        if let Action::Free { address_avma, stack, is_moved_realloc } = event.action {
            let cause = if is_moved_realloc { Cause::Realloc } else { Cause::Free };
            let known = birth().or_else(|| self.blocks.remove(process, event.heap, address_avma, hint));
            match known {
                Some(block) => self.died(event, &block, stack, cause, observer),
                None => self.unmatched(event, process, address_avma, (stack, cause), observer),
            }
        } else if let Action::Alloc { address_avma, size_bytes, stack, is_moved_realloc } = event.action {
            let block = block_of(event, process, address_avma, size_bytes, stack, is_moved_realloc);
            if !is_birth()
                && let Some(old) = self.blocks.insert(&block, hint)
            {
                implied(event, old, observer);
            }
            self.born(event, &block, observer);
        } else {
            self.apply_seldom(event, process, hint, observer);
        }
    }

    /// Applies what is neither an allocation nor a free: one of a hundred events, which would take
    /// half of the instructions if they stood among the others.
    #[cold]
    #[inline(never)]
    fn apply_seldom(
        &mut self,
        event: &Event,
        process: ProcessIndex,
        hint: Hint,
        observer: &mut impl Observer,
    ) {
        match event.action {
            Action::Realloc { old_address_avma, address_avma, size_bytes, stack } => {
                match self.blocks.remove(process, event.heap, old_address_avma, hint) {
                    Some(old) => self.died(event, &old, stack, Cause::Realloc, observer),
                    None => {
                        self.unmatched(event, process, old_address_avma, (stack, Cause::Realloc), observer);
                    }
                }
                // The hint is the old block's.
                let hint = if address_avma == old_address_avma { hint } else { Hint::NONE };
                let block = block_of(event, process, address_avma, size_bytes, stack, true);
                if let Some(old) = self.blocks.insert(&block, hint) {
                    implied(event, old, observer);
                }
                self.born(event, &block, observer);
            }
            Action::Failed { size_bytes, stack } => observer.failed(event, process, size_bytes, stack),
            Action::Alloc { .. } | Action::Free { .. } => {}
        }
    }

    #[inline(always)]
    fn last_alloc_of(&mut self, thread: ThreadIndex) -> &mut u64 {
        let number = thread.0 as usize;
        if number >= self.last_alloc.len() {
            self.add_thread(number);
        }
        &mut self.last_alloc[number]
    }

    #[cold]
    #[inline(never)]
    fn add_thread(&mut self, number: usize) {
        self.last_alloc.resize(number + 1, NONE);
    }

    /// What is to be noted of a block that is live now.
    #[inline(always)]
    fn born(&mut self, event: &Event, block: &Block, observer: &mut impl Observer) {
        if event.heap == HeapId::MALLOC {
            *self.last_alloc_of(event.thread) = block.address_avma;
        }
        observer.born(block);
    }

    /// Something was freed that was never seen allocated in this heap. A heap of the program's own
    /// gets its large blocks from malloc: what it had before its functions were hooked is known as
    /// malloc's, and its end is seen here alone, as calls within such a function are not recorded.
    #[cold]
    #[inline(never)]
    fn unmatched(
        &mut self,
        event: &Event,
        process: ProcessIndex,
        address_avma: u64,
        (stack, cause): (StackIndex, Cause),
        observer: &mut impl Observer,
    ) {
        let is_own_heap = !matches!(event.heap, HeapId::MALLOC | HeapId::MMAP | HeapId::RUNTIME);
        let below = is_own_heap
            .then(|| self.blocks.remove(process, HeapId::MALLOC, address_avma, Hint::NONE))
            .flatten();
        match below {
            Some(block) => self.died(event, &block, stack, cause, observer),
            None => {
                let is_forked = self.family.is_forked(process);
                if is_forked {
                    self.end_copy(event, process, address_avma, observer);
                }
                observer.unmatched_free(event, process, is_forked);
            }
        }
    }

    /// What is to be noted of a block that is no longer live.
    #[inline(always)]
    fn died(
        &mut self,
        event: &Event,
        block: &Block,
        stack: StackIndex,
        cause: Cause,
        observer: &mut impl Observer,
    ) {
        let last = self.last_alloc_of(event.thread);
        // A block that is resized goes on in another form: only a free makes it temporary. (Half of
        // the blocks of some programs are, in no pattern: no jump depends on it.)
        let is_temporary =
            (*last == block.address_avma) & (block.thread == event.thread) & (cause == Cause::Free);
        *last |= u64::from(is_temporary).wrapping_neg();
        let death = Death { time_ns: event.time_ns, thread: event.thread, stack, is_temporary, cause };
        observer.died(block, &death);
    }
}

/// A block has ended unseen before another began with this event.
#[cold]
#[inline(never)]
fn implied(event: &Event, old: Block, observer: &mut impl Observer) {
    let death = Death {
        time_ns: event.time_ns,
        thread: event.thread,
        stack: StackIndex::EMPTY,
        is_temporary: false,
        cause: Cause::Implied,
    };
    observer.died(&old, &death);
}

/// A block that begins with an event.
#[inline(always)]
fn block_of(
    event: &Event,
    process: ProcessIndex,
    address_avma: u64,
    size_bytes: u64,
    stack: StackIndex,
    is_realloc: bool,
) -> Block {
    Block {
        process,
        heap: event.heap,
        address_avma,
        size_bytes,
        stack,
        thread: event.thread,
        alloc_ns: event.time_ns,
        is_realloc,
    }
}

#[cfg(test)]
mod tests;
mod windows;
