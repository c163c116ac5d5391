//! Pages with live blocks, and cells of equal size over them.

use std::collections::HashMap;

use serde::Serialize;

/// Largest number of cells.
const CELLS_MAX: usize = 2400;
/// Largest number of pages between two blocks that are in one run of cells.
const GAP_PAGES_MAX: u64 = 64;
/// Largest number of runs of cells: with more of them, wider gaps are in a run.
const RUNS_MAX: usize = 400;

/// Neighbouring cells.
#[derive(Serialize)]
pub(super) struct PageRun {
    /// Index of the first cell.
    cell: usize,
    /// Address of the first cell, as hexadecimal text.
    start_avma: String,
}

/// A block: first byte, length, and the number of its function.
pub(super) type Piece = (u64, u64, usize);

/// Page with live blocks, or neighbouring pages that one block fills.
#[derive(Default)]
pub(super) struct Page {
    /// Number of the first page.
    number: u64,
    /// Number of pages; more than 1 only if they are full.
    pub(super) count: u64,
    pub(super) live_bytes: u64,
    /// Live bytes and number of blocks by function.
    pub(super) by_owner: Vec<(usize, u64, u64)>,
}

impl Page {
    fn last(&self) -> u64 {
        self.number.saturating_add(self.count.saturating_sub(1))
    }
}

/// Divides blocks among their pages, in the order of addresses. Only the first and the last page of
/// a block can have room for others: pages between are one entry.
pub(super) fn pages_of(mut pieces: Vec<Piece>, page_bytes: u64) -> Vec<Page> {
    pieces.sort_unstable();
    let mut pages: Vec<Page> = Vec::new();
    for (start, length, owner) in pieces {
        let end = start.saturating_add(length);
        let (first, last) = (start / page_bytes, end.saturating_sub(1) / page_bytes);
        let first_end = end.min((first + 1).saturating_mul(page_bytes));
        add_part(&mut pages, (first, 1), first_end.saturating_sub(start), (owner, page_bytes));
        if last > first + 1 {
            let count = last - first - 1;
            add_part(&mut pages, (first + 1, count), count.saturating_mul(page_bytes), (owner, page_bytes));
        }
        if last > first {
            add_part(&mut pages, (last, 1), end - last * page_bytes, (owner, page_bytes));
        }
    }
    pages
}

/// Adds the part of a block that lies in a page, or that fills several.
fn add_part(
    pages: &mut Vec<Page>,
    (number, count): (u64, u64),
    bytes: u64,
    (owner, page_bytes): (usize, u64),
) {
    if pages.last().is_none_or(|page| page.last() < number) {
        pages.push(Page { number, count, ..Page::default() });
    }
    // Overlapping blocks of a false file may lie before the last page.
    let Some(page) = pages.last_mut().filter(|page| (page.number, page.count) == (number, count)) else {
        return;
    };
    let bytes = bytes.min(count.saturating_mul(page_bytes).saturating_sub(page.live_bytes));
    if bytes == 0 {
        return;
    }
    page.live_bytes += bytes;
    match page.by_owner.iter_mut().find(|(known, ..)| *known == owner) {
        Some((_, sum, count)) => (*sum, *count) = (*sum + bytes, *count + 1),
        None => page.by_owner.push((owner, bytes, 1)),
    }
}

/// Cells of equal size over runs of pages.
#[derive(Default)]
pub(super) struct Cells {
    pub(super) pages_each: u64,
    pub(super) runs: Vec<PageRun>,
    pub(super) owner: Vec<Option<usize>>,
    pub(super) live_bytes: Vec<u64>,
}

impl Cells {
    pub(super) fn of(pages: &[Page], page_bytes: u64, places: &HashMap<usize, usize>) -> Self {
        let gap = |two: &[Page]| two[1].number - two[0].last();
        let mut wide: Vec<u64> = pages.windows(2).map(gap).filter(|&gap| gap > GAP_PAGES_MAX).collect();
        wide.sort_unstable();
        wide.reverse();
        let gap_max = wide.get(RUNS_MAX).copied().unwrap_or(GAP_PAGES_MAX);
        let breaks = wide.iter().filter(|&&gap| gap > gap_max).count() as u64;
        let narrow = pages.windows(2).map(gap).filter(|&gap| gap <= gap_max).sum::<u64>();
        let inside = pages.iter().map(|page| page.count.saturating_sub(1)).sum::<u64>();
        let all = inside.saturating_add(narrow).saturating_add(breaks + 1);
        let mut cells = Self { pages_each: all.div_ceil(CELLS_MAX as u64).max(1), ..Self::default() };
        let mut start = 0;
        let mut sums: Vec<HashMap<usize, u64>> = Vec::new();
        let mut before: Option<u64> = None;
        for page in pages {
            if before.is_none_or(|before| page.number - before > gap_max) {
                start = page.number;
                let start_avma = format!("{:#x}", start.saturating_mul(page_bytes));
                cells.runs.push(PageRun { cell: cells.live_bytes.len(), start_avma });
            }
            before = Some(page.last());
            cells.add(&mut sums, page, (start, page_bytes));
        }
        cells.owner = sums
            .iter()
            .map(|sums| {
                let most = sums.iter().max_by_key(|&(&owner, &bytes)| (bytes, std::cmp::Reverse(owner)));
                most.and_then(|(owner, _)| places.get(owner).copied())
            })
            .collect();
        cells
    }

    /// Adds a page, or the pages that one block fills, to the cells of the run that begins with the
    /// page `start`.
    fn add(&mut self, sums: &mut Vec<HashMap<usize, u64>>, page: &Page, (start, page_bytes): (u64, u64)) {
        let first = self.runs.last().map_or(0, |run| run.cell);
        let mut number = page.number;
        while number <= page.last() {
            let place = (number - start) / self.pages_each;
            let end = (start + (place + 1) * self.pages_each).min(page.last() + 1);
            let bytes_of =
                |bytes: u64| if page.count > 1 { bytes.min((end - number) * page_bytes) } else { bytes };
            let cell = first + place as usize;
            self.live_bytes.resize((cell + 1).max(self.live_bytes.len()), 0);
            sums.resize_with(self.live_bytes.len(), HashMap::new);
            self.live_bytes[cell] += bytes_of(page.live_bytes);
            for &(owner, bytes, _) in &page.by_owner {
                *sums[cell].entry(owner).or_default() += bytes_of(bytes);
            }
            number = end;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: u64 = 4096;

    #[test]
    fn a_block_over_pages_is_divided_and_runs_end_at_wide_gaps() {
        let pages =
            pages_of(vec![(PAGE * 1000, 16, 1), (PAGE + 100, PAGE, 0), (PAGE * 2 + 500, 50, 1)], PAGE);
        let told: Vec<_> = pages.iter().map(|page| (page.number, page.live_bytes)).collect();
        assert_eq!(told, [(1, PAGE - 100), (2, 150), (1000, 16)]);
        let cells = Cells::of(&pages, PAGE, &HashMap::from([(0, 0)]));
        assert_eq!((cells.pages_each, cells.runs.len()), (1, 2));
        assert_eq!(cells.live_bytes, [PAGE - 100, 150, 16]);
        assert_eq!(cells.owner, [Some(0), Some(0), None]);
    }

    #[test]
    fn pages_that_one_block_fills_are_one_entry_over_many_cells() {
        let pages = pages_of(vec![(PAGE, PAGE * 5000, 0)], PAGE);
        let told: Vec<_> = pages.iter().map(|page| (page.number, page.count)).collect();
        assert_eq!(told, [(1, 1), (2, 4998), (5000, 1)]);
        let cells = Cells::of(&pages, PAGE, &HashMap::from([(0, 0)]));
        assert_eq!((cells.pages_each, cells.live_bytes.len()), (3, 1667));
        assert_eq!(cells.live_bytes.iter().sum::<u64>(), PAGE * 5000);
        assert!(cells.live_bytes.iter().all(|&bytes| bytes <= PAGE * 3));
    }

    #[test]
    fn many_blocks_far_from_each_other_do_not_make_a_cell_each() {
        let pages = pages_of((1..10_000).map(|at| (PAGE * 1000 * at, 16, 0)).collect(), PAGE);
        let cells = Cells::of(&pages, PAGE, &HashMap::new());
        assert!(cells.runs.len() <= RUNS_MAX + 1 && cells.live_bytes.len() <= CELLS_MAX + RUNS_MAX + 1);
        assert_eq!(cells.live_bytes.iter().sum::<u64>(), 16 * 9999);
    }

    #[test]
    fn blocks_of_a_false_file_neither_overflow_nor_fill_memory() {
        let pages =
            pages_of(vec![(u64::MAX - 5, 100, 0), (PAGE, 10, 0), (PAGE, 10, 1), (0, PAGE * 3, 2)], PAGE);
        assert!(pages.iter().all(|page| page.live_bytes <= PAGE));
        assert!(pages.is_sorted_by_key(|page| page.number));
        assert!(!Cells::of(&pages, PAGE, &HashMap::new()).live_bytes.is_empty());
        assert!(Cells::of(&[], PAGE, &HashMap::new()).live_bytes.is_empty());
    }
}
