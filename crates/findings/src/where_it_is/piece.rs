//! Pieces of the breakdown of a recording's memory at a moment.

use heapr_query::json::FrameJson;
use serde::Serialize;

/// Kind of a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PieceKind {
    /// Live blocks of a function: the innermost of user code on their stacks.
    Function,
    /// Live blocks of a function with all that it calls, without the blocks of other pieces.
    Inclusive,
    /// Live blocks of code that a function loads, by an `import` or the like.
    Loading,
    /// Live blocks of functions that are too small for pieces of their own.
    Small,
    /// Live blocks without a stack.
    NoStack,
    /// Memory of the C library's heap in no live block: freed and kept, headers. It is the least.
    Kept,
    /// Memory of a language runtime, or of an allocator whose blocks are not recorded.
    Runtime,
    /// Resident pages of files.
    Files,
    /// Resident shared memory.
    SharedMemory,
    /// Stacks of threads.
    ThreadStacks,
    /// Written data of programs and libraries.
    WrittenData,
    /// Memory of heapr itself in the processes.
    Recorder,
    /// Resident memory with an unknown owner.
    Unknown,
}

/// A piece: a part of all memory that belongs to no other piece.
#[derive(Debug, Serialize)]
pub struct Piece {
    /// Kind of the piece.
    pub kind: PieceKind,
    /// Name of the piece in texts.
    pub label: String,
    /// Remark on the amount; empty without one.
    pub note: String,
    /// Function of the piece, with its place if all blocks are of one stack.
    pub frame: Option<FrameJson>,
    /// True if the function is user code.
    pub is_own: bool,
    /// Size of the piece.
    pub bytes: u64,
    /// Half of the 95 % interval of the size; 0: counted exactly.
    #[serde(skip_serializing_if = "is_counted")]
    pub bytes_plus_minus: u64,
    /// Number of live blocks; null for memory that is in no recorded block.
    pub block_count: Option<u64>,
    /// Half of the 95 % interval of the number; 0: counted exactly.
    #[serde(skip_serializing_if = "is_counted")]
    pub block_count_plus_minus: u64,
    /// Number of stacks with these blocks.
    pub stack_count: u64,
}

impl Piece {
    /// Piece of memory that is in no recorded block.
    pub(super) fn resident(kind: PieceKind, label: &str, bytes: u64) -> Self {
        Self {
            kind,
            label: label.to_owned(),
            note: String::new(),
            frame: None,
            is_own: false,
            bytes,
            bytes_plus_minus: 0,
            block_count: None,
            block_count_plus_minus: 0,
            stack_count: 0,
        }
    }

    /// Adds a remark.
    pub(super) fn noting(self, note: impl Into<String>) -> Self {
        Self { note: note.into(), ..self }
    }
}

/// Breakdown of a recording's memory at a moment. The pieces add up to `whole_bytes`.
#[derive(Debug, Serialize)]
pub struct WhereItIs {
    /// Time of the live blocks, from the recording's start.
    pub time_ns: u64,
    /// Resident bytes; null if the file has no reading of them.
    pub rss_bytes: Option<u64>,
    /// Time of the reading of resident memory that is farthest from the moment.
    pub rss_time_ns: Option<u64>,
    /// Bytes of all live blocks.
    pub live_bytes: u64,
    /// Half of the 95 % interval of the bytes; 0: counted exactly.
    #[serde(skip_serializing_if = "is_counted")]
    pub live_bytes_plus_minus: u64,
    /// Number of all live blocks.
    pub live_count: u64,
    /// Half of the 95 % interval of the number; 0: counted exactly.
    #[serde(skip_serializing_if = "is_counted")]
    pub live_count_plus_minus: u64,
    /// Live bytes beyond the resident memory without a file: blocks that were never written, that
    /// are swapped out, or that were made since the reading.
    pub beyond_bytes: u64,
    /// Sum of the pieces: resident bytes, and those beyond.
    pub whole_bytes: u64,
    /// Pieces: live blocks first, then other memory; in each part the largest first.
    pub pieces: Vec<Piece>,
    /// Facts that could not be determined.
    pub not_told: Vec<String>,
}

fn is_counted(plus_minus: &u64) -> bool {
    *plus_minus == 0
}
