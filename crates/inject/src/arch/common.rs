//! Values that all folders share: what their machine code is told, and where its parts are.

/// Value of the gate: calls go to the agent.
pub(crate) const GATE_OPEN: u32 = 0;
/// Value of the gate: calls wait.
pub(crate) const GATE_CLOSED: u32 = 1;
/// Value of the gate: calls go to the functions themselves.
pub(crate) const GATE_AROUND: u32 = 2;

/// Largest number of waits of a call at the closed gate, and the length of each: half a second
/// together. The process that was to open it is then gone.
pub(super) const GATE_WAITS_MAX: u32 = 50;
pub(super) const GATE_WAIT_NS: u64 = 10_000_000;

/// First word of a trampoline area.
pub(super) const ISLAND_MAGIC: u64 = u64::from_le_bytes(*b"heaprisl");
/// Size in bytes of the opening before the first code: the magic number, and the address of the
/// injection record.
pub(crate) const OPENING_BYTES: usize = 16;

/// Address of the injection record in the first bytes of an area.
pub(crate) fn record_of(opening: &[u8; OPENING_BYTES]) -> Option<u64> {
    let (magic, record) = opening.split_at(8);
    (u64::from_le_bytes(magic.try_into().ok()?) == ISLAND_MAGIC)
        .then_some(u64::from_le_bytes(record.try_into().ok()?))
}

/// Distance in bytes from a function's `target` to its `gate`.
pub(crate) const GATE_OFFSET: u64 = 8;

/// Locations of a function's code in a trampoline area.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Landing {
    pub(crate) entry_avma: u64,
    pub(crate) moved_avma: u64,
    /// Address of the word that gets the trampoline's address when the gate opens.
    pub(crate) target_avma: u64,
    pub(crate) trampoline_avma: u64,
    /// Whether calls are counted at its entry.
    pub(crate) counts: bool,
    /// Address at which the page marks' address is written later.
    pub(crate) marks_avma: Option<u64>,
}

impl Landing {
    /// Number of bytes of the marks' address that a jump of `jump_bytes` covers: their copy lies
    /// before the code.
    pub(crate) fn covered_marks_bytes(&self, jump_bytes: usize) -> usize {
        let offset = self.marks_avma.map_or(0, |marks_avma| (marks_avma - self.entry_avma) as usize);
        jump_bytes.saturating_sub(offset)
    }
}

/// A trampoline area under construction.
#[derive(Debug)]
pub(crate) struct Island {
    pub(crate) start_avma: u64,
    pub(crate) bytes: Vec<u8>,
}

/// Offset in the scratch memory of the mark that the removal has begun.
pub(crate) const BEGUN_OFFSET: u64 = 8;

/// Offset in the scratch memory of the received descriptor. The pair of sockets that it came
/// through follows.
pub(crate) const RECEIVED_OFFSET: u64 = 176;
pub(crate) const PAIR_OFFSET: u64 = RECEIVED_OFFSET + 4;

/// Arguments of TAKE_AWAY.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Removal {
    /// Address of the injection record.
    pub(crate) record_avma: u64,
    pub(crate) scratch_avma: u64,
    /// Function that deletes `key`; 0: there is no key.
    pub(crate) key_delete_avma: u64,
    pub(crate) key: u64,
    /// Ranges to be unmapped: address and number of the pairs of start and size in bytes.
    pub(crate) pairs_avma: u64,
    pub(crate) pair_count: u64,
}

/// Headers of a program without a loader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ProgramHeaders {
    pub(crate) bias: u64,
    pub(crate) headers_avma: u64,
    pub(crate) count: u64,
}

/// Names of the functions that the agent normally calls in a C library, in their order in memory.
pub(super) const BASIC_NAMES: [&str; 5] = ["memcpy", "memset", "strlen", "bcmp", "dl_iterate_phdr"];

/// Size in bytes of the structure that `dl_iterate_phdr` reports.
pub(super) const INFO_BYTES: usize = 64;

/// Bytes of the `struct dl_phdr_info` of a program, for an address. The program's name is empty:
/// the last word is 0. One module was loaded, no module unloaded.
pub(super) fn program_info(program: ProgramHeaders, info_avma: u64) -> Vec<u8> {
    let name_avma = info_avma + (INFO_BYTES - 8) as u64;
    let words = [program.bias, name_avma, program.headers_avma, program.count, 1, 0, 0, 0];
    words.into_iter().flat_map(u64::to_le_bytes).collect()
}

/// Code with its data, and the functions in it, each with its address.
pub(crate) type PlacedCode = (Vec<u8>, Vec<(String, u64)>);
