//! Simulated traced process.

use std::sync::Mutex;
use std::sync::atomic::Ordering::{Relaxed, Release};

use heapr_ring::writer::{self, BufferUse, ProcessClaim, SlotClaim};
use heapr_ring::{Pool, sys};
use heapr_session::Session;
use heapr_wire::{
    FLAG_CLOCK_TSC, NO_RECORD_BEFORE, NO_SLOT, ORIGIN_EXEC, ORIGIN_FORK, PUBLISHED_BUSY, RecordKind,
    SHORT_ALLOC, STACK_BITS, THREAD_ENDED, address_word, short_word0, word0,
};

/// Returns the id of a thread that lives as long as the test and does nothing, because the recorder
/// checks whether threads exist.
pub(crate) fn live_tid(number: usize) -> u32 {
    static TIDS: Mutex<Vec<u32>> = Mutex::new(Vec::new());
    let mut tids = TIDS.lock().expect("nobody panics with it");
    while tids.len() <= number {
        let (sender, receiver) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            sender.send(sys::thread_id()).expect("it is waited for");
            loop {
                std::thread::park();
            }
        });
        tids.push(receiver.recv().expect("the thread says its id"));
    }
    tids[number]
}

/// Opens the session's pool as an agent does.
pub(crate) fn join(session: &Session) -> Pool {
    let environment = session.environment_for_target();
    let (_, value) =
        environment.iter().find(|(name, _)| name == "HEAPR_SESSION").expect("the session's variable");
    let value = value.to_str().expect("ASCII");
    let mut parts = value.split(':');
    let (pid, descriptor) = (parts.next().expect("a pid"), parts.next().expect("a descriptor"));
    let path = format!("/proc/{pid}/fd/{descriptor}\0");
    Pool::open(&sys::open(path.as_bytes(), true).expect("the descriptor opens")).expect("it is a pool")
}

/// Registered process image.
#[derive(Debug)]
pub(crate) struct Producer<'a> {
    pub(crate) pool: &'a Pool,
    pub(crate) claim: SlotClaim,
    node_count: u32,
    node_blocks: Vec<u32>,
}

impl<'a> Producer<'a> {
    /// Registers an image by exec. It has the pid of this test, which lives, unless `pid` is given.
    pub(crate) fn exec(pool: &'a Pool, pid: Option<u32>) -> Self {
        Self::register(pool, pid, ORIGIN_EXEC, NO_SLOT)
    }

    /// Registers a forked child.
    pub(crate) fn fork(&self, pid: u32) -> Self {
        Self::register(self.pool, Some(pid), ORIGIN_FORK, self.claim.index)
    }

    fn register(pool: &'a Pool, pid: Option<u32>, origin: u32, parent_slot: u32) -> Self {
        let claim = ProcessClaim {
            process_id: 0,
            parent_id: 0,
            origin,
            parent_slot,
            start_ticks: ticks(pool),
            has_own_malloc: false,
            executable: b"/usr/bin/producer",
        };
        let claim = writer::claim_process(pool, claim).expect("a free process slot");
        if let Some(pid) = pid {
            pool.process_slot(claim.index).expect("the slot").pid.store(pid, Relaxed);
        }
        Self { pool, claim, node_count: 1, node_blocks: Vec::new() }
    }

    /// Registers a thread of the process.
    pub(crate) fn thread(&self, tid: u32) -> ProducerThread<'a> {
        let claim = writer::claim_thread(self.pool, self.claim, tid, 0).expect("a free thread slot");
        let last_ticks = NO_RECORD_BEFORE;
        ProducerThread { pool: self.pool, claim, sequence: 0, buffer: None, cursor: 0, last_ticks }
    }

    /// Writes a stack node and returns its number.
    pub(crate) fn node(&mut self, parent: u32, return_address: u64) -> u32 {
        let number = self.take_node_number();
        self.write_node(number, parent, return_address);
        number
    }

    /// Reserves the number of a node that is not written yet.
    pub(crate) fn take_node_number(&mut self) -> u32 {
        self.node_count += 1;
        self.node_count - 1
    }

    /// Writes the node of a number.
    pub(crate) fn write_node(&mut self, number: u32, parent: u32, return_address: u64) {
        let per_block = self.pool.nodes_per_block() as u32;
        let block = number / per_block;
        if block as usize == self.node_blocks.len() {
            let purpose = BufferUse::Nodes { process: self.claim, block };
            self.node_blocks
                .push(writer::claim_buffer(self.pool, purpose, ticks(self.pool)).expect("a free buffer"));
        }
        let nodes = self.pool.buffer_nodes(self.node_blocks[block as usize]).expect("the block");
        let node = &nodes[(number % per_block) as usize];
        node.parent.store(parent, Relaxed);
        node.return_address.store(return_address, Release);
    }
}

/// Returns the ticks since the session's start.
pub(crate) fn ticks(pool: &Pool) -> u64 {
    let control = pool.control();
    let now = if control.flags.load(Relaxed) & FLAG_CLOCK_TSC != 0 {
        sys::ticks_ordered()
    } else {
        sys::monotonic_ns()
    };
    now.saturating_sub(control.start_ticks.load(Relaxed))
}

/// Thread of a simulated process.
#[derive(Debug)]
pub(crate) struct ProducerThread<'a> {
    pub(crate) pool: &'a Pool,
    pub(crate) claim: SlotClaim,
    sequence: u64,
    pub(crate) buffer: Option<u32>,
    cursor: usize,
    /// Time of the last record in the buffer.
    last_ticks: u64,
}

impl ProducerThread<'_> {
    /// Writes a record at the present time. Returns `false` if no buffer was free.
    pub(crate) fn write(&mut self, kind: RecordKind, rest: &[u64]) -> bool {
        self.begin(rest.len() + 1) && {
            self.end(kind, ticks(self.pool), rest);
            true
        }
    }

    /// Makes room and marks an event as under way.
    pub(crate) fn begin(&mut self, words: usize) -> bool {
        let limit = self.pool.buffer_bytes() / 8;
        if self.buffer.is_none() || self.cursor + words > limit {
            self.close_buffer();
            let purpose = BufferUse::Events { thread: self.claim, sequence: self.sequence };
            self.buffer = writer::claim_buffer(self.pool, purpose, ticks(self.pool));
            if self.buffer.is_none() {
                return false;
            }
            self.sequence += 1;
            self.cursor = 0;
            self.last_ticks = NO_RECORD_BEFORE;
        }
        let header = self.pool.buffer_header(self.buffer.expect("claimed above")).expect("its header");
        header.published.store((self.cursor as u32 * 8) | PUBLISHED_BUSY, Relaxed);
        true
    }

    /// Writes and publishes the record that was begun.
    pub(crate) fn end(&mut self, kind: RecordKind, ticks: u64, rest: &[u64]) {
        self.put(word0(kind, ticks), ticks, rest);
    }

    fn put(&mut self, word0: u64, ticks: u64, rest: &[u64]) {
        let buffer = self.buffer.expect("begun");
        let words = self.pool.buffer_words(buffer).expect("its words");
        words[self.cursor].store(word0, Relaxed);
        for (place, &word) in words[self.cursor + 1..].iter().zip(rest) {
            place.store(word, Relaxed);
        }
        self.cursor += rest.len() + 1;
        self.last_ticks = ticks;
        let header = self.pool.buffer_header(buffer).expect("its header");
        header.published.store(self.cursor as u32 * 8, Release);
    }

    /// Writes and publishes an allocation (with size and node) or free of the main heap that was
    /// begun. Like an agent, it writes a short record if possible.
    pub(crate) fn end_plain(&mut self, kind: RecordKind, ticks: u64, address: u64, packed: &[u64]) {
        let alloc_bit = if kind == RecordKind::Alloc { SHORT_ALLOC } else { 0 };
        if let Some(word0) = short_word0(alloc_bit, address, ticks, self.last_ticks) {
            return self.put(word0, ticks, packed);
        }
        let rest: Vec<u64> = [&[address_word(0, address)], packed].concat();
        self.end(kind, ticks, &rest);
    }

    fn plain(&mut self, kind: RecordKind, address: u64, packed: &[u64]) -> bool {
        self.begin(packed.len() + 2) && {
            self.end_plain(kind, ticks(self.pool), address, packed);
            true
        }
    }

    pub(crate) fn alloc(&mut self, address: u64, size: u32, node: u32) -> bool {
        let packed = u64::from(size) << STACK_BITS | u64::from(node);
        self.plain(RecordKind::Alloc, address, &[packed])
    }

    pub(crate) fn free(&mut self, address: u64) -> bool {
        self.plain(RecordKind::Free, address, &[])
    }

    pub(crate) fn prepare(&mut self, address: u64) -> bool {
        self.write(RecordKind::ReallocPrepare, &[address_word(0, address)])
    }

    pub(crate) fn commit(&mut self, address: u64, size: u64) -> bool {
        self.write(RecordKind::ReallocCommit, &[address_word(0, address), size, 0])
    }

    pub(crate) fn abort(&mut self, address: u64, size: u64) -> bool {
        self.write(RecordKind::ReallocAbort, &[address_word(0, address), size])
    }

    fn close_buffer(&mut self) {
        if let Some(header) = self.buffer.take().and_then(|buffer| self.pool.buffer_header(buffer)) {
            header.closed.store(1, Release);
        }
    }

    /// Ends the thread in good order.
    pub(crate) fn finish(mut self) {
        self.close_buffer();
        self.pool.thread_slot(self.claim.index).expect("its slot").state.store(THREAD_ENDED, Release);
    }
}
