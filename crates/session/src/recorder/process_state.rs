//! What the recorder knows of one traced process image: its stack nodes, its modules, reallocations
//! under way.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use heapr_ring::Pool;
use heapr_ring::reader::{self, Content, RawNode};
use heapr_trace::{MemoryAccount, ProcessIndex, StackIndex, ThreadIndex};
use heapr_wire::NODE_BITS;

use crate::recorder::called_stacks::{CalledStacks, NO_STACK};
use crate::recorder::go::GoHeap;
use crate::recorder::inside::InsideModule;
use crate::recorder::memory_look::MemoryLook;
use crate::recorder::own_heaps::OwnHeaps;
use crate::recorder::process_life::ProcessLife;
use crate::snapshots::native_snapshot::SnapshotScope;

/// Node numbers that one process can use: blocks of at most 65,536 nodes, 65,536 of them, but never
/// more than this, so that a hostile number cannot make the recorder take memory.
const NODES_MAX: usize = 1 << NODE_BITS;

/// State of one process image.
#[derive(Debug)]
pub(crate) struct ProcessState {
    /// Its index in the file.
    pub(crate) index: ProcessIndex,
    /// Slot and generation in the pool.
    pub(crate) slot: u32,
    pub(crate) generation: u32,
    /// Process id, as /proc names it; 0: it did not show it.
    pub(crate) pid: u32,
    /// Process id, as who has started it knows it: another where /proc is that of another process
    /// namespace than ours.
    pub(crate) child_pid: u32,
    /// It sees itself and its threads under other ids: it is in another process namespace.
    pub(crate) is_elsewhere: bool,
    /// It ran another program, or nothing, when it was looked at for the first time: /proc does not
    /// tell of it.
    pub(crate) has_gone_on: bool,
    /// The agent was loaded while it ran.
    pub(crate) was_attached: bool,
    /// See [`super::process_facts::image`]; of one that was attached to.
    pub(crate) image: Option<[u64; 2]>,
    /// The image that has registered; see [`super::unseen_exec`].
    pub(crate) first_image: Option<[u64; 2]>,
    /// When it was first seen to run another one, and the file of that.
    pub(crate) other_image_ns: Option<u64>,
    pub(crate) other_image_name: String,
    /// It was recorded before, was let go, and is recorded again: the entries in the file are the
    /// same.
    pub(crate) is_resumed: bool,
    /// It was let go, and is recorded again by another state: nothing is to be said of its end
    /// here.
    pub(crate) is_superseded: bool,
    /// What it held then.
    pub(crate) before: BlocksBefore,
    /// Told dead by the kernel.
    pub(crate) life: ProcessLife,
    pub(crate) has_ended: bool,
    /// When it was seen alive last; 0: never.
    pub(crate) alive_ns: u64,
    /// It went on to another program.
    pub(crate) is_replaced: bool,
    /// It was let go: it may live on.
    pub(crate) is_let_go: bool,
    /// When it ended is known, and what it has left ends then.
    pub(crate) is_end_counted: bool,
    /// It had ended when the last scan began: nothing of it is unread after that round.
    pub(crate) had_ended_at_scan: bool,
    /// It has waited at its end, and its graph was asked for.
    pub(crate) is_exit_seen: bool,
    /// The file says that its recording ended before it did.
    pub(crate) is_end_noted: bool,
    /// What was said of programs that it started and that are not recorded.
    pub(crate) untraced: HashSet<String>,
    /// The file says that it has an allocator of its own.
    pub(crate) is_own_malloc_noted: bool,
    /// Its anonymous memory when it was looked at last.
    pub(crate) looked_at_bytes: u64,
    /// Looks at its memory, of which not all events before them were taken.
    pub(crate) looks: Vec<(u64, MemoryLook)>,
    /// What it held when that was most.
    pub(crate) account: Option<MemoryAccount>,
    /// Go's heap, if Go is in it.
    pub(crate) go: Option<Box<GoHeap>>,
    /// What was found when it was looked into.
    pub(crate) inside: Vec<InsideModule>,
    /// Its slot was given back and everything it wrote is processed.
    pub(crate) is_done: bool,
    /// Its blocks are not taken on to the next file.
    pub(crate) is_forgotten: bool,
    raw_nodes: Vec<RawNode>,
    stacks: Vec<StackIndex>,
    /// The stacks that events name.
    pub(crate) called: CalledStacks,
    /// Nodes read so far of each block, by buffer.
    pub(crate) node_blocks: HashMap<u32, NodeBlock>,
    /// Node blocks seen so far.
    block_count: usize,
    /// Mappings in force: start -> (end, number in the file).
    pub(crate) mappings: BTreeMap<u64, (u64, u32)>,
    /// Reallocations that have not come back: at most one a thread, so few that a list is searched
    /// fastest.
    pub(crate) reallocs: Vec<InMotion>,
    /// Its entry in the file, written again at its end.
    pub(crate) entry: Option<heapr_trace::Process>,
    /// Path of the executable.
    pub(crate) executable: String,
    /// Regions of the mmap heap: start -> (bytes, stack).
    pub(crate) regions: BTreeMap<u64, Region>,
    /// Mappings that are none any more: a look may have seen them.
    pub(crate) former_regions: BTreeMap<u64, Region>,
    /// Heaps that the program has of its own.
    pub(crate) own_heaps: OwnHeaps,
    /// By which mean its allocations are drawn; 0: all are recorded.
    pub(crate) sample_mean_bytes: u64,
    /// Its calls are counted before they come to the agent, if it was attached to.
    pub(crate) is_counted: bool,
    /// Marks of pages that are to be taken off, and wait for room in its slot.
    pub(crate) unmarked: VecDeque<u32>,
}

/// What a process held when it was attached to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct BlocksBefore {
    pub(crate) count: u64,
    pub(crate) bytes: u64,
    /// Why it is not known, if so.
    pub(crate) unread: Option<String>,
}

/// A block whose realloc has begun and not come back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct InMotion {
    pub(crate) thread: ThreadIndex,
    pub(crate) heap: u8,
    pub(crate) address_avma: u64,
    /// Its address was given to another call: it has moved, and its end is written already.
    pub(crate) is_displaced: bool,
}

/// A block of nodes being filled.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NodeBlock {
    pub(crate) first_node: u32,
    pub(crate) read_count: usize,
}

/// A mapping of the mmap heap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Region {
    pub(crate) size_bytes: u64,
    pub(crate) stack: StackIndex,
    /// Address space only: not live until it is made usable.
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
            looked_at_bytes: 0,
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

    /// Looks whether the process has ended, and how: it may be written as done before its parent
    /// waits for it. Returns whether it has.
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

    /// Whether a snapshot of `scope` shows it.
    pub(crate) fn is_of(&self, scope: &SnapshotScope) -> bool {
        match scope {
            SnapshotScope::Live => !self.is_done,
            SnapshotScope::Pids(pids) => !self.is_done && pids.contains(&self.pid),
            SnapshotScope::Image(image) => self.index == *image,
        }
    }

    /// Takes note of a node block that the scan found. `false`: its number makes no sense, and
    /// believing it would take memory for nodes that nobody wrote. A scan may meet as many new
    /// blocks as there are buffers, in any order.
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

    /// Reads the nodes that were written since the last round, up to the first that is not written
    /// yet.
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

    /// Frees the node blocks of which every node was read. Returns how many.
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

    /// Frees all node blocks: the process has ended. Returns how many there were.
    pub(crate) fn free_all_blocks(&mut self, pool: &Pool) -> u32 {
        for &buffer in self.node_blocks.keys() {
            reader::free_held_buffer(pool, buffer);
        }
        let freed_count = self.node_blocks.len() as u32;
        self.node_blocks.clear();
        freed_count
    }

    /// Gives back the memory that only a live process needs.
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

    /// Keeps a node that an agent has written. A parent that is not older than its child is none.
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

    /// The return addresses of a stack of the file, innermost first. (It is looked for: this is for
    /// what is seldom asked.)
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

    /// A node that an event names and that was not read in its turn: a thread that took a smaller
    /// number has not written its own yet, and may not for long (it waits for a processor, or
    /// has ended).
    fn read_node(&mut self, number: u32, pool: &Pool) -> Option<RawNode> {
        let nodes_per_block = u32::try_from(pool.nodes_per_block()).ok()?;
        let place = number.checked_rem(nodes_per_block)?;
        let first_node = number - place;
        // Two threads may have claimed a buffer for the same block, one of which goes back.
        let of_block = self.node_blocks.iter().filter(|(_, block)| block.first_node == first_node);
        let node = of_block
            .filter_map(|(&buffer, _)| Some((buffer, reader::node(pool, buffer, place as usize)?)))
            .find_map(|(buffer, node)| self.owns_block(buffer, first_node, pool).then_some(node))?;
        self.keep_node(number as usize, node);
        self.kept_node(number)
    }

    /// Whether a buffer holds a block of nodes of this process. Looked at after reading: an agent
    /// may have given the buffer back unused, and somebody else has filled it.
    fn owns_block(&self, buffer: u32, first_node: u32, pool: &Pool) -> bool {
        reader::claimed_buffer(pool, buffer).is_some_and(|now| {
            now.content == Content::Nodes { first_node }
                && now.slot == self.slot
                && now.generation == self.generation
        })
    }

    /// The file's stack for an agent's node; nodes that have none yet are given one by `add`,
    /// callers first. `Err`: the number of a node that has not been kept.
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
