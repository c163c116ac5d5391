//! Reading of a long list of numbers on several threads.
//!
//! ```text
//!            one at a time                          all at once
//!  +-----------------------------------+   +------------------------------+
//!  | read a block, count its commas,   |-->| decode the numbers,          |
//!  | cut it after a row, split off as  |   | store them in the columns    |
//!  | many rows of the columns          |   |                              |
//!  +-----------------------------------+   +------------------------------+
//! ```
//!
//! The first part takes a tenth of the second's time, so a few cores stay busy. The text is read
//! once, in order, and may come from a pipe.

use std::sync::{Mutex, PoisonError};

use crate::format::digits::{BadDigits, Block, Numbers};
use crate::format::row_text::{Ends, RowText};
use crate::format::scanner::Scanner;
use crate::{Error, Result};

/// Mutable columns of some rows.
pub(crate) trait Rows: Send + Sized {
    /// Number of rows.
    fn row_count(&self) -> usize;
    /// Splits off the first `count` rows.
    fn split_at(self, count: usize) -> (Self, Self);
    /// Distributes the numbers of a block over the columns, if all of them are common ones. `ends`
    /// are their positions, whole rows of `stride`.
    fn store_common(&mut self, text: &RowText<'_>, ends: &[u32], stride: usize) -> bool;
    /// Distributes `numbers` over the columns. `first_row` is the number of the first row in the
    /// whole section.
    fn store(self, numbers: &Numbers, stride: usize, first_row: usize) -> Result<()>;
}

/// Result of reading a section.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SectionEnd {
    /// Number of stored rows.
    pub(crate) row_count: usize,
    /// Number of rows without room in the columns.
    pub(crate) surplus_count: usize,
    /// Whether the text ended before the list.
    pub(crate) is_truncated: bool,
}

struct Shared<'a, R> {
    scanner: &'a mut Scanner,
    rest: Option<R>,
    end: SectionEnd,
    is_done: bool,
    failure: Option<Error>,
}

/// Reads the rest of the list that `scanner` is in, after its `[`.
pub(crate) fn read_rows<R: Rows>(
    scanner: &mut Scanner,
    section: &'static str,
    stride: usize,
    columns: R,
    thread_count: usize,
    progress: &(dyn Fn(u64, Option<u64>) + Sync),
) -> Result<SectionEnd> {
    let end = SectionEnd { row_count: 0, surplus_count: 0, is_truncated: false };
    let shared = Mutex::new(Shared { scanner, rest: Some(columns), end, is_done: false, failure: None });
    let work = || {
        let mut decoder = Decoder::default();
        loop {
            let mut guard = shared.lock().unwrap_or_else(PoisonError::into_inner);
            let state = &mut *guard;
            if state.is_done {
                return;
            }
            let taken = state.take(section, stride, &mut decoder.block);
            let (part, first_row, number_count) = match taken {
                Ok(taken) => taken,
                Err(error) => {
                    state.is_done = true;
                    state.failure = Some(error);
                    return;
                }
            };
            let (done, all) = state.scanner.input().progress();
            drop(guard);
            progress(done, all);
            if let Err(error) = decoder.decode_into(part, number_count, stride, first_row) {
                let mut guard = shared.lock().unwrap_or_else(PoisonError::into_inner);
                guard.is_done = true;
                // The first error that a thread reports is the result.
                guard.failure.get_or_insert(error);
                return;
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..thread_count {
            scope.spawn(work);
        }
        work();
    });
    let shared = shared.into_inner().unwrap_or_else(PoisonError::into_inner);
    shared.failure.map_or(Ok(shared.end), Err)
}

impl<R: Rows> Shared<'_, R> {
    /// Returns the columns that the next block fills, the number of their first row, and the number
    /// of numbers in the block.
    fn take(&mut self, section: &'static str, stride: usize, block: &mut Block) -> Result<(R, usize, usize)> {
        let taken = self.scanner.rows(stride, block)?;
        self.is_done = taken.is_last;
        self.end.is_truncated = taken.is_truncated;
        if !taken.number_count.is_multiple_of(stride) {
            let number_count = (self.end.row_count * stride + taken.number_count) as u64;
            return Err(Error::RaggedRows { section, number_count, stride });
        }
        let rest = self.rest.take().ok_or(Error::NoMember { name: section })?;
        let row_count = taken.number_count / stride;
        let fitting = row_count.min(rest.row_count());
        let (part, rest) = rest.split_at(fitting);
        self.rest = Some(rest);
        let first_row = self.end.row_count;
        self.end.row_count += fitting;
        self.end.surplus_count += row_count - fitting;
        Ok((part, first_row, taken.number_count))
    }
}

/// Block of a thread, and what it is decoded into.
#[derive(Default)]
struct Decoder {
    block: Block,
    ends: Ends,
    numbers: Numbers,
}

impl Decoder {
    fn decode_into<R: Rows>(
        &mut self,
        mut part: R,
        number_count: usize,
        stride: usize,
        first_row: usize,
    ) -> Result<()> {
        let text_bytes = self.block.text().len();
        self.block.finish();
        let is_common = self.ends.find(&self.block) && self.ends.positions().len() == number_count;
        if is_common && part.store_common(&RowText::of(&self.block), self.ends.positions(), stride) {
            return Ok(());
        }
        self.block.unfinish(text_bytes);
        decode_exactly(&mut self.block, &mut self.numbers, number_count)?;
        part.store(&self.numbers, stride, first_row)
    }
}

/// Decodes a block whose commas imply `number_count` numbers.
pub(crate) fn decode_exactly(block: &mut Block, numbers: &mut Numbers, number_count: usize) -> Result<()> {
    let text_bytes = block.text().len();
    block.finish();
    numbers.decode(block).map_err(|bad| match bad {
        BadDigits::Byte { at, byte } => Error::BadByte { offset: block.offset + at as u64, byte },
        BadDigits::TooLong { at } => Error::NumberTooLong { offset: block.offset + at as u64 },
    })?;
    if numbers.values().len() != number_count {
        return Err(Error::NumbersMissing {
            begin: block.offset,
            end: block.offset + text_bytes as u64,
            expected: number_count,
            found: numbers.values().len(),
        });
    }
    Ok(())
}
