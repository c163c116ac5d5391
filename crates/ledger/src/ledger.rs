//! Replay of events into live blocks.

use std::collections::HashMap;

use heapr_trace::{Action, Block, Event, HeapId, ProcessIndex, ProcessOrigin, StackIndex, ThreadIndex};

use crate::block_table::{BlockTable, Hint};
use crate::family::{Family, Heir};

/// Reason why a block ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// A free call of the program.
    Free,
    /// The freeing half of a realloc.
    Realloc,
    /// The address was handed out again without an observed free.
    Implied,
}

/// The end of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Death {
    /// Time of the end.
    pub time_ns: u64,
    /// Thread of the call.
    pub thread: ThreadIndex,
    /// Stack of the call, if frees carry stacks.
    pub stack: StackIndex,
    /// True if the allocating thread freed the block before its next allocation.
    pub is_temporary: bool,
    /// Reason for the end.
    pub cause: Cause,
}

/// Receives the births and deaths of a replay. All methods have empty defaults.
pub trait Observer {
    /// Announces events of a stack, so that the observer can load its data into the caches. The
    /// result has no meaning; it only prevents the reads from being optimised away.
    fn prefetch(&self, _stack: StackIndex) -> u64 {
        0
    }
    /// Receives a block's birth.
    fn born(&mut self, _block: &Block) {}
    /// Receives a block's end.
    fn died(&mut self, _block: &Block, _death: &Death) {}
    /// Receives a block whose process ends without having freed it. The block is no longer live,
    /// and stays outstanding. `time_ns` is the time of the process's end. If a child inherited the
    /// block, it is the time at which the child freed its copy.
    fn left(&mut self, _block: &Block, _time_ns: u64) {}
    /// Time of a block's allocation, for observers that store other data in the block's time.
    fn alloc_ns(&self, block: &Block) -> u64 {
        block.alloc_ns
    }
    /// Receives a failed call.
    fn failed(&mut self, _event: &Event, _process: ProcessIndex, _size_bytes: u64, _stack: StackIndex) {}
    /// Receives a free of an address that was never seen allocated. `is_inherited`: the call came
    /// from a forked child, so that the block is probably the parent's.
    fn unmatched_free(&mut self, _event: &Event, _process: ProcessIndex, _is_inherited: bool) {}
}

/// An observer that ignores everything.
impl Observer for () {}

/// The state of all heaps at a point of the event stream.
#[derive(Debug)]
pub struct Ledger {
    blocks: BlockTable,
    /// Address of the last block that each thread allocated, unless it has freed that block.
    last_alloc: Vec<u64>,
    family: Family,
    /// True if unfreed blocks of ended processes are stored until they are forgotten. (They are
    /// separate from the live blocks: later events of the process do not change them.)
    keeps_left: bool,
    left: HashMap<ProcessIndex, Vec<Block>>,
    /// Unfreed blocks of ended processes that the current cut has not shown.
    left_in_cut: Vec<Block>,
    /// Number of windows that are looked up ahead before the other method is tried again, and
    /// number of these windows that are left.
    ahead: u32,
    ahead_left: u32,
}

/// Stands for no address.
const NONE: u64 = u64::MAX;

impl Default for Ledger {
    fn default() -> Self {
        Self::new()
    }
}

impl Ledger {
    /// A ledger without blocks.
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

    /// Adds a process. Frees of unknown blocks in a forked process are inherited, not unmatched.
    pub fn add_process(&mut self, process: ProcessIndex, origin: ProcessOrigin, start_ns: u64) {
        if let ProcessOrigin::Fork { parent } = origin {
            self.family.add(process, parent, start_ns);
        }
    }

    /// A ledger without blocks that knows the same processes, as if none had ended.
    #[must_use]
    pub fn emptied(&self) -> Self {
        Self { family: self.family.at_start(), ..Self::new() }
    }

    /// Inserts blocks that are already live, such as those of a checkpoint. Blocks of an ended
    /// process are inserted only if another process inherits them. Returns the inserted blocks.
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

    /// Makes the ledger store the unfreed blocks of processes that end, to show them in a cut,
    /// until [`Ledger::forget_left`].
    pub fn keep_left(&mut self) {
        self.keeps_left = true;
    }

    /// Ends a process, and those of its blocks that no child inherits.
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

    /// Whether a process has ended.
    #[must_use]
    pub fn has_ended(&self, process: ProcessIndex) -> bool {
        self.family.has_ended(process)
    }

    /// Forgets the stored unfreed blocks of an ended process.
    pub fn forget_left(&mut self, process: ProcessIndex) {
        self.left.remove(&process);
    }

    /// Whether an heir has a copy of a block and has not freed it.
    fn goes_on(&self, block: &Block, heir: Heir, observer: &impl Observer) -> bool {
        observer.alloc_ns(block) <= heir.until_ns
            && !self.family.has_freed_copy(heir.process, block.heap, block.address_avma)
    }

    /// Handles a forked child's free of a parent's block. If the child has inherited the block, the
    /// block ends.
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

    /// The live blocks, unordered.
    pub fn live_blocks(&self) -> impl Iterator<Item = Block> + '_ {
        self.blocks.iter()
    }

    /// The live blocks in order of process, heap and address.
    pub fn sorted_blocks(&self) -> impl Iterator<Item = Block> + '_ {
        self.blocks.sorted()
    }

    /// Begins a cut: [`Ledger::cut_slice`] then shows the blocks that are live at this moment,
    /// whatever happens in between. A cut that is under way is abandoned.
    pub fn begin_cut(&mut self) {
        self.left_in_cut = self.left.values().flatten().copied().collect();
        self.blocks.begin_cut();
    }

    /// Abandons the cut.
    pub fn abandon_cut(&mut self) {
        self.left_in_cut = Vec::new();
        self.blocks.abandon_cut();
    }

    /// Passes further blocks of the cut to `visit`. These are all that have changed since the last
    /// slice, and those of `group_count` more groups (of up to 32 blocks each). Returns whether the
    /// cut is complete.
    pub fn cut_slice(&mut self, group_count: usize, mut visit: impl FnMut(&Block)) -> bool {
        self.left_in_cut.drain(..).for_each(|block| visit(&block));
        self.blocks.cut_slice(group_count, visit)
    }

    /// Whether blocks of the cut have changed since the last slice and wait in memory.
    #[inline]
    #[must_use]
    pub fn has_put_aside(&self) -> bool {
        self.blocks.has_put_aside()
    }

    /// Forgets the blocks of an ended process, unless another process inherits them. They stay
    /// outstanding in an observer's totals.
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

    /// Applies an event with a hint. `is_birth` returns true for an allocation that the table may
    /// skip. `birth` returns the block of a free whose allocation the table has skipped.
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

    /// Applies events other than allocations and frees: about one of a hundred. Their code is
    /// separate because inlined it would take half of the instructions.
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
                // The hint belongs to the old block.
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

    /// Records and reports a block's birth.
    #[inline(always)]
    fn born(&mut self, event: &Event, block: &Block, observer: &mut impl Observer) {
        if event.heap == HeapId::MALLOC {
            *self.last_alloc_of(event.thread) = block.address_avma;
        }
        observer.born(block);
    }

    /// Handles a free of an unknown address.
    ///
    /// A heap that the program registers itself gets its large blocks from malloc. Blocks from
    /// before its functions were hooked are known as malloc's. Their end is seen only here, because
    /// calls within such a function are not recorded.
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

    /// Records and reports a block's end.
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
        // A resized block continues in another form: only a free makes it temporary. (In some
        // programs half of the blocks are temporary, in no pattern: no branch depends on it.)
        let is_temporary =
            (*last == block.address_avma) & (block.thread == event.thread) & (cause == Cause::Free);
        *last |= u64::from(is_temporary).wrapping_neg();
        let death = Death { time_ns: event.time_ns, thread: event.thread, stack, is_temporary, cause };
        observer.died(block, &death);
    }
}

/// Reports that a block had ended unseen before another one began with this event.
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

/// The block that begins with an event.
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
