//! A strip of pages: the address space in order, cell by cell, each in the colour of what is
//! resident most in it.

use std::collections::BTreeMap;
use std::io::{self, Write};

use heapr_resident::{Account, Class};
use heapr_table::quantity::bytes;

use super::class_hue::class_hue;
use crate::explain::markup::escaped;

const COLUMNS: usize = 120;
const ROWS: usize = 16;
const CELL: usize = 8;
const PAGE_BYTES: u64 = 4096;

/// Neighbouring addresses.
#[derive(Debug, Default, Clone)]
struct Cell {
    start_avma: u64,
    length: u64,
    classes: BTreeMap<Class, u64>,
}

/// The cells of all mapped addresses; between mappings is nothing.
fn cells(account: &Account, most: usize) -> Vec<Cell> {
    let mut pieces: Vec<_> = account.pieces.iter().filter(|piece| !piece.range_avma.is_empty()).collect();
    pieces.sort_by_key(|piece| piece.range_avma.start);
    let mut end_avma = 0;
    let mut all = 0_u64;
    for piece in &pieces {
        // Pieces of a heap that was divided have one range.
        all += piece.range_avma.end.saturating_sub(piece.range_avma.start.max(end_avma));
        end_avma = end_avma.max(piece.range_avma.end);
    }
    let cell_bytes = all.div_ceil(most as u64).next_multiple_of(PAGE_BYTES).max(PAGE_BYTES);
    let mut found: Vec<Cell> = Vec::new();
    for piece in pieces {
        let range = &piece.range_avma;
        let length = range.end - range.start;
        let mut start_avma = range.start;
        while start_avma < range.end {
            let last = found.last().map(|cell| (cell.start_avma, cell.length));
            let is_in_last = last.is_some_and(|(own_avma, own)| start_avma < own_avma + own);
            if !is_in_last {
                found.push(Cell { start_avma, length: cell_bytes, classes: BTreeMap::new() });
            }
            let Some(cell) = found.last_mut() else { break };
            let place_end_avma = range.end.min(cell.start_avma + cell.length);
            // A piece's pages are told by their number: here they lie evenly.
            let share = u128::from(piece.pages.rss_bytes) * u128::from(place_end_avma - start_avma);
            *cell.classes.entry(piece.class).or_default() += (share / u128::from(length)) as u64;
            start_avma = place_end_avma;
        }
    }
    found
}

/// The strip as a picture.
pub(super) fn write(account: &Account, out: &mut dyn Write) -> io::Result<()> {
    let cells = cells(account, COLUMNS * ROWS / 2);
    let Some(first) = cells.first() else { return Ok(()) };
    let rows = cells.len().div_ceil(COLUMNS);
    writeln!(
        out,
        "<h2>Pages by address</h2>\n<p>Each cell is {} of addresses; the stronger, the more of it is resident.</p>",
        bytes(first.length)
    )?;
    writeln!(
        out,
        "<svg class=\"strip\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"pages by address\">",
        COLUMNS * CELL,
        rows * CELL
    )?;
    for (at, cell) in cells.iter().enumerate() {
        let resident: u64 = cell.classes.values().sum();
        let most = cell.classes.iter().max_by_key(|(_, bytes)| **bytes);
        let (colour, what) = match most.filter(|_| resident > 0) {
            Some((class, _)) => {
                let share = resident.min(cell.length) as f64 / cell.length as f64;
                let light = 92.0 - 42.0 * share.sqrt();
                let colour = format!("hsl({} 55% {light:.0}%)", class_hue(class.key()));
                (colour, format!("{}, resident {}", class.label(), bytes(resident)))
            }
            None => ("#eee".to_owned(), "nothing resident".to_owned()),
        };
        writeln!(
            out,
            "<rect x=\"{}\" y=\"{}\" width=\"{CELL}\" height=\"{CELL}\" fill=\"{colour}\"><title>{:#x}: {}</title></rect>",
            at % COLUMNS * CELL,
            at / COLUMNS * CELL,
            cell.start_avma,
            escaped(&what)
        )?;
    }
    writeln!(out, "</svg>")
}

#[cfg(test)]
mod tests {
    use heapr_resident::{Piece, ToldBy};

    use super::*;

    fn piece(range_avma: std::ops::Range<u64>, class: Class, rss_bytes: u64) -> Piece {
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
        assert!(cells(&Account::default(), 24).is_empty());
    }
}
