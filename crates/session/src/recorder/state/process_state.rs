//! State of the recorder for one traced process image: stack nodes, modules, reallocations under
//! way.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use heapr_ring::Pool;
use heapr_ring::reader::{self, Content, RawNode};
use heapr_trace::{MemoryAccount, ProcessIndex, StackIndex, ThreadIndex};
use heapr_wire::NODE_BITS;

use crate::recorder::facts::idle_looks::IdleLooks;
use crate::recorder::facts::look_times::LookTimes;
use crate::recorder::facts::memory_look::MemoryLook;
use crate::recorder::facts::process_life::ProcessLife;
use crate::recorder::go::GoHeap;
use crate::recorder::inside::InsideModule;
use crate::recorder::state::called_stacks::{CalledStacks, NO_STACK};
use crate::recorder::state::own_heaps::OwnHeaps;
use crate::snapshots::native_snapshot::SnapshotScope;

/// Largest number of stack nodes per process: 65,536 blocks of at most 65,536 nodes. The limit
/// keeps a hostile number from making the recorder allocate without end.
const NODES_MAX: usize = 1 << NODE_BITS;

/// State of one process image.
#[derive(Debug)]
pub(crate) struct ProcessState {
    /// Index of the process in the file.
    pub(crate) index: ProcessIndex,
    /// Slot of the process in the pool; the generation tells successive users of a slot apart.
    pub(crate) slot: u32,
    pub(crate) generation: u32,
    /// Process id in our `/proc`; 0 if the process is not visible there.
    pub(crate) pid: u32,
    /// Process id in the namespace of the process's starter. Differs from `pid` where `/proc`
    /// belongs to another process namespace than ours.
    pub(crate) child_pid: u32,
    /// True if the process is in another process namespace, and sees itself and its threads under
    /// other ids.
    pub(crate) is_elsewhere: bool,
    /// True if the process had execed or ended before the recorder first read it: `/proc` does not
    /// describe the image.
    pub(crate) has_gone_on: bool,
    /// True if the agent was loaded while the process ran.
    pub(crate) was_attached: bool,
    /// Identity of the image, from [`crate::recorder::facts::process_facts::image`]; only for
    /// attached processes.
    pub(crate) image: Option<[u64; 2]>,
    /// Identity of the image that registered; see [`crate::recorder::processes::unseen_exec`].
    pub(crate) first_image: Option<[u64; 2]>,
    /// Time at which the process was first seen to run another image; the file of that image
    /// follows.
    pub(crate) other_image_ns: Option<u64>,
    pub(crate) other_image_name: String,
    /// True if the process was recorded before, was let go, and is recorded again under its old
    /// entries in the file.
    pub(crate) is_resumed: bool,
    /// True if the process was let go and a later state records it again; that state reports its
    /// end.
    pub(crate) is_superseded: bool,
    /// Blocks that the process held when it was attached to.
    pub(crate) before: BlocksBefore,
    /// Kernel's handle on the process; `has_ended` is what it said last.
    pub(crate) life: ProcessLife,
    pub(crate) has_ended: bool,
    /// Time at which the process was last seen alive; 0: never.
    pub(crate) alive_ns: u64,
    /// True if the process execed, which ended this image.
    pub(crate) is_replaced: bool,
    /// True if the process was let go; it may still be running.
    pub(crate) is_let_go: bool,
    /// True if the time of the end is known; the blocks that the process left end at that time.
    pub(crate) is_end_counted: bool,
    /// True if the process had ended when the last scan began: after that round none of its events
    /// is unread.
    pub(crate) had_ended_at_scan: bool,
    /// True if the process has waited at its exit and its object graph was requested.
    pub(crate) is_exit_seen: bool,
    /// True if the file says that the recording of the process ended before the process did.
    pub(crate) is_end_noted: bool,
    /// Remarks written so far about programs that the process started and that are not recorded.
    pub(crate) untraced: HashSet<String>,
    /// True if the file says that the program brings its own malloc.
    pub(crate) is_own_malloc_noted: bool,
    /// Times of the readings of the process's memory.
    pub(crate) look_times: LookTimes,
    /// Times at which its size is read in a session that samples.
    pub(crate) idle_looks: IdleLooks,
    /// Readings of the process's memory, with their times, that precede events not yet merged.
    pub(crate) looks: Vec<(u64, MemoryLook)>,
    /// Account of the process's memory at the reading with the most bytes.
    pub(crate) account: Option<MemoryAccount>,
    /// Go's heap, if the process contains Go's runtime.
    pub(crate) go: Option<Box<GoHeap>>,
    /// Modules with embedded allocators, as found so far.
    pub(crate) inside: Vec<InsideModule>,
    /// True once the slot was given back and everything that the process wrote was processed.
    pub(crate) is_done: bool,
    /// True if the process's blocks are not carried over to the next file.
    pub(crate) is_forgotten: bool,
    raw_nodes: Vec<RawNode>,
    stacks: Vec<StackIndex>,
    /// Stacks that events name, with the function that was called.
    pub(crate) called: CalledStacks,
    /// Blocks of nodes by buffer, each with the number of nodes read so far.
    pub(crate) node_blocks: HashMap<u32, NodeBlock>,
    /// Number of node blocks seen so far.
    block_count: usize,
    /// Current mappings: start -> (end, number in the file).
    pub(crate) mappings: BTreeMap<u64, (u64, u32)>,
    /// Reallocations that have begun and not returned: at most one per thread, so few that a linear
    /// search is fastest.
    pub(crate) reallocs: Vec<InMotion>,
    /// Entry of the process in the file, written again at its end.
    pub(crate) entry: Option<heapr_trace::Process>,
    /// Path of the executable.
    pub(crate) executable: String,
    /// Regions of the mmap heap: start -> (bytes, stack).
    pub(crate) regions: BTreeMap<u64, Region>,
    /// Regions that were unmapped; a reading of the memory may still have seen them.
    pub(crate) former_regions: BTreeMap<u64, Region>,
    /// Heaps that the program itself creates.
    pub(crate) own_heaps: OwnHeaps,
    /// Mean period in bytes by which allocations are sampled; 0: all are recorded.
    pub(crate) sample_mean_bytes: u64,
    /// True if calls are counted before they reach the agent; meaningful for attached processes.
    pub(crate) is_counted: bool,
    /// Page marks to be removed, which wait for room in the process's slot.
    pub(crate) unmarked: VecDeque<u32>,
}

/// Blocks that a process held when it was attached to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct BlocksBefore {
    pub(crate) count: u64,
    pub(crate) bytes: u64,
    /// Reason for which the blocks could not be read, if so.
    pub(crate) unread: Option<String>,
}

/// Block whose realloc has begun and not returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct InMotion {
    pub(crate) thread: ThreadIndex,
    pub(crate) heap: u8,
    pub(crate) address_avma: u64,
    /// True if another call was given the block's address: the block has moved, and its end is
    /// already written.
    pub(crate) is_displaced: bool,
}

/// Block of nodes that is being filled.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NodeBlock {
    pub(crate) first_node: u32,
    pub(crate) read_count: usize,
}

/// Mapping of the mmap heap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Region {
    pub(crate) size_bytes: u64,
    pub(crate) stack: StackIndex,
    /// True if only address space is reserved; the region becomes live when it is made usable.
    pub(crate) is_reserved: bool,
}

impl ProcessState {
    pub(crate) fn new(index: ProcessIndex, slot: u32, generation: u32, pid: u32) -> Self {
        Self {
            index,
            slot,
            generation,
            pid,
            child_pid: pid,
            is_elsewhere: false,
            has_gone_on: false,
            first_image: None,
            other_image_ns: None,
            other_image_name: String::new(),
            was_attached: false,
            image: None,
            is_resumed: false,
            is_superseded: false,
            before: BlocksBefore::default(),
            life: ProcessLife::of(pid),
            has_ended: false,
            alive_ns: 0,
            is_replaced: false,
            is_let_go: false,
            is_end_counted: false,
            had_ended_at_scan: false,
            is_exit_seen: false,
            is_end_noted: false,
            untraced: HashSet::new(),
            is_own_malloc_noted: false,
            look_times: LookTimes::default(),
            idle_looks: IdleLooks::default(),
            looks: Vec::new(),
            former_regions: BTreeMap::new(),
            account: None,
            go: None,
            inside: Vec::new(),
            is_done: false,
            is_forgotten: false,
            raw_nodes: Vec::new(),
            stacks: vec![StackIndex::EMPTY],
            called: CalledStacks::default(),
            node_blocks: HashMap::new(),
            block_count: 0,
            mappings: BTreeMap::new(),
            reallocs: Vec::new(),
            entry: None,
            executable: String::new(),
            regions: BTreeMap::new(),
            own_heaps: OwnHeaps::default(),
            sample_mean_bytes: 0,
            unmarked: VecDeque::new(),
            is_counted: true,
        }
    }

    /// Checks whether the process has ended and records its exit status, before its parent can reap
    /// it and before it is written as done. Returns whether the process has ended.
    pub(crate) fn look_at_life(&mut self) -> bool {
        self.has_ended = self.life.has_ended();
        if self.has_ended
            && !self.is_replaced
            && let Some(entry) = self.entry.as_mut().filter(|entry| entry.exit_status.is_none())
        {
            entry.exit_status = heapr_proc::wait_status_of_zombie(self.pid);
        }
        self.has_ended
    }

    /// Whether the process belongs to a snapshot of `scope`.
    pub(crate) fn is_of(&self, scope: &SnapshotScope) -> bool {
        match scope {
            SnapshotScope::Live => !self.is_done,
            SnapshotScope::Pids(pids) => !self.is_done && pids.contains(&self.pid),
            SnapshotScope::Image(image) => self.index == *image,
        }
    }

    /// Registers a node block that the scan found. Returns `false` if the block's number is
    /// implausible, so that no memory is allocated for nodes that were never written. One scan may
    /// find as many new blocks as there are buffers, in any order.
    pub(crate) fn note_block(&mut self, buffer: u32, first_node: u32, pool: &Pool) -> bool {
        let (nodes_per_block, buffer_count) = (pool.nodes_per_block(), pool.buffer_count());
        if self.node_blocks.get(&buffer).is_some_and(|known| known.first_node == first_node) {
            return true;
        }
        let first = first_node as usize;
        let is_sane = first.is_multiple_of(nodes_per_block)
            && first / nodes_per_block <= self.block_count.saturating_add(buffer_count);
        if is_sane {
            self.block_count += 1;
            self.node_blocks.insert(buffer, NodeBlock { first_node, read_count: 0 });
        }
        is_sane
    }

    /// Reads the nodes that were written since the last round, up to the first unwritten one.
    pub(crate) fn read_nodes(&mut self, pool: &Pool) {
        let mut blocks = std::mem::take(&mut self.node_blocks);
        let mut fresh = Vec::new();
        blocks.retain(|&buffer, block| {
            // Node 0 of the first block is the root and never written.
            let first = if block.first_node == 0 { block.read_count.max(1) } else { block.read_count };
            fresh.clear();
            fresh.extend((first..).map_while(|place| reader::node(pool, buffer, place)));
            let is_still_ours = self.owns_block(buffer, block.first_node, pool);
            if is_still_ours {
                for (place, &node) in (first..).zip(&fresh) {
                    self.keep_node(block.first_node as usize + place, node);
                }
                block.read_count = first + fresh.len();
            }
            is_still_ours
        });
        self.node_blocks = blocks;
    }

    /// Frees the node blocks whose nodes were all read. Returns their number.
    pub(crate) fn free_read_blocks(&mut self, pool: &Pool) -> u32 {
        let before = self.node_blocks.len();
        self.node_blocks.retain(|&buffer, block| {
            let is_read = block.read_count >= pool.nodes_per_block();
            if is_read {
                reader::free_held_buffer(pool, buffer);
            }
            !is_read
        });
        (before - self.node_blocks.len()) as u32
    }

    /// Frees all node blocks of a process that has ended. Returns their number.
    pub(crate) fn free_all_blocks(&mut self, pool: &Pool) -> u32 {
        for &buffer in self.node_blocks.keys() {
            reader::free_held_buffer(pool, buffer);
        }
        let freed_count = self.node_blocks.len() as u32;
        self.node_blocks.clear();
        freed_count
    }

    /// Frees the memory that only a live process needs.
    pub(crate) fn forget(&mut self) {
        self.raw_nodes = Vec::new();
        self.stacks = vec![StackIndex::EMPTY];
        self.called.forget();
        self.mappings.clear();
        self.regions.clear();
        self.former_regions.clear();
        self.reallocs.clear();
        self.go = None;
    }

    /// Stores a node that an agent wrote. A parent that is not older than its child is replaced by
    /// the root.
    pub(crate) fn keep_node(&mut self, number: usize, mut node: RawNode) {
        if number >= NODES_MAX {
            return;
        }
        if number >= self.raw_nodes.len() {
            self.raw_nodes.resize(number + 1, RawNode::default());
            self.stacks.resize(number + 1, NO_STACK);
        }
        if node.parent as usize >= number {
            node.parent = 0;
        }
        self.raw_nodes[number] = node;
    }

    /// Returns the return addresses of a stack of the file, innermost first. Searches linearly, so
    /// only rare callers should use it.
    pub(crate) fn return_addresses(&self, stack: StackIndex) -> Vec<u64> {
        let node = self.called.node_of(stack).or_else(|| {
            let place = self.stacks.iter().position(|known| *known == stack)?;
            u32::try_from(place).ok()
        });
        let mut addresses = Vec::new();
        // A parent is older than its child, so this ends.
        let mut at = node.unwrap_or(0);
        while let Some(raw) = self.kept_node(at) {
            addresses.push(raw.return_address);
            at = raw.parent;
        }
        addresses
    }

    fn kept_node(&self, number: u32) -> Option<RawNode> {
        self.raw_nodes.get(number as usize).copied().filter(|node| node.return_address != 0)
    }

    /// Reads a node that an event names and that was not read in order. A thread with a smaller
    /// node number may not have written its node yet: it waits for a processor, or has ended.
    fn read_node(&mut self, number: u32, pool: &Pool) -> Option<RawNode> {
        let nodes_per_block = u32::try_from(pool.nodes_per_block()).ok()?;
        let place = number.checked_rem(nodes_per_block)?;
        let first_node = number - place;
        // Two threads may have claimed a buffer for the same block; one of them gives its buffer
        // back.
        let of_block = self.node_blocks.iter().filter(|(_, block)| block.first_node == first_node);
        let node = of_block
            .filter_map(|(&buffer, _)| Some((buffer, reader::node(pool, buffer, place as usize)?)))
            .find_map(|(buffer, node)| self.owns_block(buffer, first_node, pool).then_some(node))?;
        self.keep_node(number as usize, node);
        self.kept_node(number)
    }

    /// Whether a buffer holds a block of nodes of this process. Checked after reading, because an
    /// agent may have given the buffer back unused, and another thread may have filled it.
    fn owns_block(&self, buffer: u32, first_node: u32, pool: &Pool) -> bool {
        reader::claimed_buffer(pool, buffer).is_some_and(|now| {
            now.content == Content::Nodes { first_node }
                && now.slot == self.slot
                && now.generation == self.generation
        })
    }

    /// Returns the file's stack for an agent's node. Nodes without a stack get one from `add`,
    /// callers first. `Err`: number of a node that was not read.
    #[inline(always)]
    pub(crate) fn stack<E>(
        &mut self,
        node: u32,
        pool: &Pool,
        add: impl FnMut(StackIndex, u64) -> Result<StackIndex, E>,
    ) -> Result<Option<StackIndex>, E> {
        match self.stacks.get(node as usize) {
            Some(&stack) if stack != NO_STACK => Ok(Some(stack)),
            _ => self.new_stack(node, pool, add),
        }
    }

    #[cold]
    fn new_stack<E>(
        &mut self,
        node: u32,
        pool: &Pool,
        mut add: impl FnMut(StackIndex, u64) -> Result<StackIndex, E>,
    ) -> Result<Option<StackIndex>, E> {
        if node == 0 {
            return Ok(Some(StackIndex::EMPTY));
        }
        let mut path = Vec::new();
        let mut at = node;
        let mut stack = StackIndex::EMPTY;
        while at != 0 {
            match self.stacks.get(at as usize) {
                Some(&known) if known != NO_STACK => {
                    stack = known;
                    break;
                }
                _ => {}
            }
            let Some(raw) = self.kept_node(at).or_else(|| self.read_node(at, pool)) else { return Ok(None) };
            path.push(at);
            at = raw.parent;
        }
        for &number in path.iter().rev() {
            stack = add(stack, self.raw_nodes[number as usize].return_address)?;
            self.stacks[number as usize] = stack;
        }
        Ok(Some(stack))
    }
}
