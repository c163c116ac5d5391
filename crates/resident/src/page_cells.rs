//! Pages by address: the mapped address space in order, cell by cell, with the class that has most
//! resident bytes in each.

use std::collections::BTreeMap;
use std::ops::Range;

use heapr_proc::page_bytes;

use serde::{Deserialize, Serialize};

use crate::account::Account;
use crate::class::Class;

/// Cells of one size over all mapped addresses.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageCells {
    /// Bytes of addresses in a cell.
    pub cell_bytes: u64,
    /// Runs of neighbouring cells.
    pub runs: Vec<CellRun>,
    /// Keys of the classes that occur.
    pub classes: Vec<String>,
    /// Class with the most resident bytes of each cell, as an index in `classes`; `None`: the cell
    /// has no resident bytes.
    pub class: Vec<Option<usize>>,
    /// Resident bytes of each cell.
    pub resident_bytes: Vec<u64>,
}

/// Neighbouring cells.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CellRun {
    /// Index of the first cell.
    pub cell: usize,
    /// Address of the first cell, as hexadecimal text: JavaScript's numbers cannot hold all
    /// addresses.
    pub start_avma: String,
}

/// Neighbouring addresses.
#[derive(Debug, Default, Clone)]
struct Cell {
    start_avma: u64,
    length: u64,
    classes: BTreeMap<Class, u64>,
}

impl Account {
    /// Pages by address, in at most `most` cells. The resident pages of a piece count as spread
    /// evenly over it.
    pub fn page_cells(&self, most: usize) -> PageCells {
        let mut all = PageCells::default();
        let mut end_avma = None;
        for cell in cells(self, most) {
            all.cell_bytes = cell.length;
            if end_avma != Some(cell.start_avma) {
                let start_avma = format!("{:#x}", cell.start_avma);
                all.runs.push(CellRun { cell: all.class.len(), start_avma });
            }
            end_avma = cell.start_avma.checked_add(cell.length);
            let resident_bytes: u64 = cell.classes.values().sum();
            let most = cell.classes.iter().max_by_key(|(_, bytes)| **bytes);
            let most = most.filter(|_| resident_bytes > 0).map(|(class, _)| class.key());
            let place = most.map(|key| {
                all.classes.iter().position(|own| own == key).unwrap_or_else(|| {
                    all.classes.push(key.to_owned());
                    all.classes.len() - 1
                })
            });
            all.class.push(place);
            all.resident_bytes.push(resident_bytes);
        }
        all
    }
}

/// Cells of all mapped addresses, at most `most`. Gaps between mappings are skipped: a cell
/// continues behind a gap.
fn cells(account: &Account, most: usize) -> Vec<Cell> {
    let mut pieces: Vec<_> = account.pieces.iter().filter(|piece| !piece.range_avma.is_empty()).collect();
    pieces.sort_by_key(|piece| piece.range_avma.start);
    // Runs of mapped addresses, with the bytes below each. Pieces of a divided heap overlap.
    let mut mapped: Vec<(Range<u64>, u64)> = Vec::new();
    let mut all = 0_u64;
    for Range { start, end } in pieces.iter().map(|piece| piece.range_avma.clone()) {
        match mapped.last_mut() {
            Some((last, _)) if start <= last.end => {
                all += end.saturating_sub(last.end);
                last.end = last.end.max(end);
            }
            _ => {
                mapped.push((start..end, all));
                all += end - start;
            }
        }
    }
    let cell_bytes = all.div_ceil(most.max(1) as u64).next_multiple_of(page_bytes()).max(page_bytes());
    let mut found: Vec<Cell> = Vec::new();
    for (range, below) in &mapped {
        for number in below.div_ceil(cell_bytes)..(below + (range.end - range.start)).div_ceil(cell_bytes) {
            let start_avma = range.start + (number * cell_bytes - below);
            found.push(Cell { start_avma, length: cell_bytes, classes: BTreeMap::new() });
        }
    }
    for piece in pieces {
        let range = &piece.range_avma;
        let length = range.end - range.start;
        let place = mapped.partition_point(|(mapped, _)| mapped.start <= range.start);
        let Some((first, below)) = place.checked_sub(1).and_then(|place| mapped.get(place)) else { continue };
        let start = below + (range.start - first.start);
        let mut at = start;
        while at < start + length {
            let cell = at / cell_bytes;
            let end = ((cell + 1) * cell_bytes).min(start + length);
            // Only the number of a piece's resident pages is known: they count as spread evenly.
            let share = u128::from(piece.pages.rss_bytes) * u128::from(end - at) / u128::from(length);
            if let Some(cell) = found.get_mut(cell as usize) {
                *cell.classes.entry(piece.class).or_default() += share as u64;
            }
            at = end;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::Piece;
    use crate::class::ToldBy;

    fn piece(range_avma: Range<u64>, class: Class, rss_bytes: u64) -> Piece {
        let pages = heapr_proc::smaps::PageAmounts { rss_bytes, ..Default::default() };
        Piece { range_avma, class, part: String::new(), told_by: ToldBy::Name, pages }
    }

    #[test]
    fn cells_hold_all_that_is_resident_and_leave_out_what_is_not_mapped() {
        let pieces = vec![
            piece(0x10_0000..0x14_0000, Class::LiveBlocks, 0x3_0000),
            piece(0x10_0000..0x14_0000, Class::FreePinned, 0x1_0000),
            piece(0x7f00_0000_0000..0x7f00_0008_0000, Class::Code, 0x4_0000),
        ];
        let account = Account { pieces, ..Account::default() };
        let found = cells(&account, 24);
        assert_eq!(found.len(), 24);
        let sum: u64 = found.iter().flat_map(|cell| cell.classes.values()).sum();
        assert_eq!(sum, 0x8_0000);
        assert_eq!(found[8].start_avma, 0x7f00_0000_0000);
        let told = account.page_cells(24);
        assert_eq!((told.class.len(), told.cell_bytes), (24, found[0].length));
        assert_eq!(told.classes, ["live_blocks", "code"]);
        assert_eq!(found[0].classes[&Class::FreePinned], found[0].length / 4);
        assert_eq!((told.runs.len(), told.runs[1].cell), (2, 8));
        assert_eq!(told.runs[1].start_avma, "0x7f0000000000");
        assert!(Account::default().page_cells(24).class.is_empty());
    }
}
