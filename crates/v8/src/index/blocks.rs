//! Access to columns by position: reads and checks only the needed blocks, and caches the last
//! ones.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::FileExt as _;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use rustix::fs::{Advice, fadvise};

use crate::index::layout::{
    BLOCK_BYTES, COLUMN_COUNT, Column, ColumnEntry, Directory, HEADER_BYTES, MAGIC, MOST_DIRECTORY_BYTES,
    VERSION,
};

/// Number of cached blocks: 128 MiB.
const KEPT_BLOCKS: usize = 8192;

type Block = Arc<Vec<u8>>;

/// Open index file.
///
/// Reading returns zeros for data that cannot be read or fails its checksum; [`Self::damage`] then
/// tells what is wrong.
pub(crate) struct Blocks {
    file: File,
    /// Second descriptor for single, scattered blocks, without read-ahead. The system would
    /// otherwise read up to megabytes after each (49 MiB for a page of 200 concatenated strings,
    /// instead of 6).
    scattered: File,
    checksums: Vec<u32>,
    columns: [Option<ColumnEntry>; COLUMN_COUNT],
    /// Cache with one slot for each block number modulo its size.
    kept: Vec<Mutex<Option<(u64, Block)>>>,
    damage: OnceLock<String>,
}

impl std::fmt::Debug for Blocks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Blocks").field("block_count", &self.checksums.len()).finish_non_exhaustive()
    }
}

impl Blocks {
    /// Reads header and directory. Returns `None` if the file is not a complete index of this
    /// version.
    pub(crate) fn open(file: File) -> io::Result<Option<(Self, Directory)>> {
        let mut header = [0; HEADER_BYTES];
        let length = file.metadata()?.len();
        if length < BLOCK_BYTES as u64 {
            return Ok(None);
        }
        file.read_exact_at(&mut header, 0)?;
        let u32_at = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|byte| header[at + byte]));
        let u64_at = |at: usize| u64::from(u32_at(at)) | u64::from(u32_at(at + 4)) << 32;
        let (checksum, offset, directory_bytes) = (u32_at(12), u64_at(16), u64_at(24));
        let block_count = offset / BLOCK_BYTES as u64;
        let is_whole = header[..8] == MAGIC
            && u32_at(8) == VERSION
            && offset.is_multiple_of(BLOCK_BYTES as u64)
            && directory_bytes <= MOST_DIRECTORY_BYTES
            && offset.checked_add(directory_bytes) == Some(length)
            && block_count.saturating_mul(4) <= directory_bytes;
        if !is_whole {
            return Ok(None);
        }
        let mut text = vec![0; directory_bytes as usize];
        file.read_exact_at(&mut text, offset)?;
        if crc32fast::hash(&text) != checksum && !cfg!(fuzzing) {
            return Ok(None);
        }
        let (checksums, json) = text.split_at(block_count as usize * 4);
        let Ok(directory) = serde_json::from_slice::<Directory>(json) else { return Ok(None) };
        let mut columns = [None; COLUMN_COUNT];
        for &entry in &directory.columns {
            let blocks = entry
                .count
                .checked_mul(entry.column.element_bytes())
                .map(|bytes| bytes.div_ceil(BLOCK_BYTES as u64))
                .and_then(|blocks| blocks.checked_add(entry.first_block));
            if blocks.is_none_or(|end| end > block_count) {
                return Ok(None);
            }
            columns[entry.column as usize] = Some(entry);
        }
        let blocks = Self {
            scattered: without_read_ahead(&file)?,
            file,
            checksums: checksums.as_chunks::<4>().0.iter().map(|&bytes| u32::from_le_bytes(bytes)).collect(),
            columns,
            kept: (0..KEPT_BLOCKS).map(|_| Mutex::default()).collect(),
            damage: OnceLock::new(),
        };
        Ok(Some((blocks, directory)))
    }

    /// Description of the first failure.
    pub(crate) fn damage(&self) -> Option<String> {
        self.damage.get().cloned()
    }

    pub(crate) fn report(&self, what: impl FnOnce() -> String) {
        self.damage.get_or_init(what);
    }

    /// Number of values in a column.
    pub(crate) fn count(&self, column: Column) -> u64 {
        self.columns[column as usize].map_or(0, |entry| entry.count)
    }

    /// Returns one number of a column of numbers.
    #[inline]
    pub(crate) fn number(&self, column: Column, index: u64) -> u32 {
        let Some(first_block) = self.first_block(column, index) else { return 0 };
        let at = index * 4;
        let Some(block) = self.block(first_block + at / BLOCK_BYTES as u64) else { return 0 };
        let at = (at % BLOCK_BYTES as u64) as usize;
        block.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_le_bytes)
    }

    /// Returns one byte of a column of bytes.
    #[inline]
    pub(crate) fn byte(&self, column: Column, index: u64) -> u8 {
        let Some(first_block) = self.first_block(column, index) else { return 0 };
        let Some(block) = self.block(first_block + index / BLOCK_BYTES as u64) else { return 0 };
        block.get((index % BLOCK_BYTES as u64) as usize).copied().unwrap_or(0)
    }

    #[inline]
    fn first_block(&self, column: Column, index: u64) -> Option<u64> {
        match self.columns[column as usize] {
            Some(entry) if index < entry.count => Some(entry.first_block),
            _ => {
                self.report(|| format!("{column:?} has no number {index}"));
                None
            }
        }
    }

    /// Returns some numbers of a column.
    pub(crate) fn numbers(&self, column: Column, range: Range<u64>) -> Vec<u32> {
        let mut numbers = Vec::new();
        self.read_numbers(column, range, &mut numbers);
        numbers
    }

    /// Reads some numbers of a column into `numbers`.
    pub(crate) fn read_numbers(&self, column: Column, range: Range<u64>, numbers: &mut Vec<u32>) {
        numbers.clear();
        if range.end.saturating_sub(range.start) <= 64 {
            numbers.extend(range.map(|index| self.number(column, index)));
            return;
        }
        if range.end <= self.count(column) {
            numbers.reserve_exact((range.end - range.start) as usize);
        }
        self.pieces(column, range.start * 4..range.end.saturating_mul(4), |bytes| {
            numbers.extend(bytes.as_chunks::<4>().0.iter().map(|&bytes| u32::from_le_bytes(bytes)));
        });
    }

    /// Returns some bytes of a column.
    pub(crate) fn bytes(&self, column: Column, range: Range<u64>) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.read_bytes(column, range, &mut bytes);
        bytes
    }

    /// Reads some bytes of a column into `bytes`.
    pub(crate) fn read_bytes(&self, column: Column, range: Range<u64>, bytes: &mut Vec<u8>) {
        bytes.clear();
        let (begin, end) = (range.start, range.end);
        if begin < end && end - begin <= 4096 && end <= self.count(column) {
            // A short text lies in one or two blocks, which the next text may need as well.
            if let Some(first_block) = self.first_block(column, begin) {
                for number in begin / BLOCK_BYTES as u64..=(end - 1) / BLOCK_BYTES as u64 {
                    let Some(block) = self.block(first_block + number) else { return };
                    let block_begin = number * BLOCK_BYTES as u64;
                    let from = begin.saturating_sub(block_begin) as usize;
                    let to = (end - block_begin).min(BLOCK_BYTES as u64) as usize;
                    bytes.extend_from_slice(block.get(from..to).unwrap_or_default());
                }
            }
            return;
        }
        if begin < end && end <= self.count(column) {
            bytes.reserve_exact((end - begin) as usize);
        }
        self.pieces(column, range, |piece| bytes.extend_from_slice(piece));
    }

    /// Returns a whole column of bytes.
    pub(crate) fn all_bytes(&self, column: Column) -> Vec<u8> {
        self.bytes(column, 0..self.count(column))
    }

    /// Returns a whole column of numbers.
    pub(crate) fn all_numbers(&self, column: Column) -> Vec<u32> {
        self.numbers(column, 0..self.count(column))
    }

    /// Visits bytes of a column in pieces of many blocks, bypassing the cache.
    fn pieces(&self, column: Column, range: Range<u64>, mut visit: impl FnMut(&[u8])) {
        const PIECE_BLOCKS: u64 = 16;
        if range.is_empty() {
            return;
        }
        let Some(entry) = self.columns[column as usize]
            .filter(|entry| range.end <= entry.count.saturating_mul(column.element_bytes()))
        else {
            self.report(|| format!("{column:?} has no bytes {range:?}"));
            return;
        };
        let mut piece = vec![0; PIECE_BLOCKS as usize * BLOCK_BYTES];
        let (mut block, end_block) =
            (range.start / BLOCK_BYTES as u64, range.end.div_ceil(BLOCK_BYTES as u64));
        while block < end_block {
            let count = PIECE_BLOCKS.min(end_block - block);
            let bytes = &mut piece[..count as usize * BLOCK_BYTES];
            if !self.read_blocks(&self.file, entry.first_block + block, bytes) {
                return;
            }
            let begin = block * BLOCK_BYTES as u64;
            let from = range.start.saturating_sub(begin) as usize;
            let to = (range.end - begin).min(bytes.len() as u64) as usize;
            visit(&bytes[from..to]);
            block += count;
        }
    }

    fn block(&self, number: u64) -> Option<Block> {
        let place = &self.kept[number as usize % KEPT_BLOCKS];
        let mut kept = place.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((kept_number, block)) = &*kept
            && *kept_number == number
        {
            return Some(Arc::clone(block));
        }
        let mut bytes = vec![0; BLOCK_BYTES];
        if !self.read_blocks(&self.scattered, number, &mut bytes) {
            return None;
        }
        let block = Arc::new(bytes);
        *kept = Some((number, Arc::clone(&block)));
        Some(block)
    }

    /// Reads whole blocks. Returns whether they were read and their checksums match.
    fn read_blocks(&self, file: &File, first: u64, bytes: &mut [u8]) -> bool {
        if let Err(error) = file.read_exact_at(bytes, first * BLOCK_BYTES as u64) {
            self.report(|| format!("block {first}: {error}"));
            return false;
        }
        for (number, block) in (first..).zip(bytes.chunks_exact(BLOCK_BYTES)) {
            let expected = self.checksums.get(number as usize);
            if expected != Some(&crc32fast::hash(block)) && !cfg!(fuzzing) {
                self.report(|| format!("block {number} at offset {}", number * BLOCK_BYTES as u64));
                return false;
            }
        }
        true
    }
}

/// Opens the file again without read-ahead. A duplicate of the descriptor would share that setting.
fn without_read_ahead(file: &File) -> io::Result<File> {
    let Ok(again) = File::open(format!("/proc/self/fd/{}", file.as_raw_fd())) else {
        return file.try_clone();
    };
    // The setting is only advice: without it reading is slower.
    let _ = fadvise(&again, 0, None, Advice::Random);
    Ok(again)
}
