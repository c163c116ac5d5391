//! Pages with live blocks, and cells of equal size over them.

use serde::Serialize;

/// Largest number of cells.
const CELLS_MAX: usize = 2400;
/// Largest number of pages between two blocks that are in one run of cells.
const GAP_PAGES_MAX: u64 = 64;
/// Largest number of runs of cells: with more of them, wider gaps are in a run.
const RUNS_MAX: usize = 400;

/// Neighbouring cells.
#[derive(Clone, Serialize)]
pub(crate) struct PageRun {
    /// Index of the first cell.
    cell: usize,
    /// Address of the first cell, as hexadecimal text.
    start_avma: String,
}

/// A block: first byte, length, and the number of its function.
pub(crate) type Piece = (u64, u64, usize);

/// Page with live blocks, or neighbouring pages that one block fills.
#[derive(Default)]
pub(crate) struct Page {
    /// Number of the first page.
    number: u64,
    /// Number of pages; more than 1 only if they are full.
    pub(crate) count: u64,
    pub(crate) live_bytes: u64,
    /// Live bytes and number of blocks by function.
    pub(crate) by_owner: Vec<(usize, u64, u64)>,
}

impl Page {
    /// Pages without blocks: the first page, and the number of pages.
    pub(crate) fn empty((number, count): (u64, u64)) -> Self {
        Self { number, count, ..Self::default() }
    }

    /// Number of the last page.
    pub(crate) fn last(&self) -> u64 {
        self.number.saturating_add(self.count.saturating_sub(1))
    }

    /// Adds blocks of an owner: their bytes in these pages, as far as there is room, and their
    /// number.
    pub(crate) fn add(&mut self, (owner, bytes, count): (usize, u64, u64), page_bytes: u64) {
        let bytes = bytes.min(self.count.saturating_mul(page_bytes).saturating_sub(self.live_bytes));
        if bytes == 0 {
            return;
        }
        self.live_bytes += bytes;
        match self.by_owner.iter_mut().find(|(known, ..)| *known == owner) {
            Some((_, sum, known)) => (*sum, *known) = (*sum + bytes, *known + count),
            None => self.by_owner.push((owner, bytes, count)),
        }
    }
}

/// Parts of a block: the pages of each, as first page and number of pages, and its bytes in them.
/// Only the first and the last page of a block can have room for others: pages between are one
/// part.
pub(crate) fn parts_of(start: u64, length: u64, page_bytes: u64) -> impl Iterator<Item = ((u64, u64), u64)> {
    let end = start.saturating_add(length);
    let (first, last) = (start / page_bytes, end.saturating_sub(1) / page_bytes);
    let first_end = end.min((first + 1).saturating_mul(page_bytes));
    let begin = ((first, 1), first_end.saturating_sub(start));
    let between = (last > first + 1).then(|| {
        let count = last - first - 1;
        ((first + 1, count), count.saturating_mul(page_bytes))
    });
    let finish = (last > first).then(|| ((last, 1), end - last * page_bytes));
    std::iter::once(begin).chain(between).chain(finish)
}

/// Divides blocks among their pages, in the order of addresses.
pub(crate) fn pages_of(mut pieces: Vec<Piece>, page_bytes: u64) -> Vec<Page> {
    pieces.sort_unstable();
    let mut pages: Vec<Page> = Vec::new();
    for (start, length, owner) in pieces {
        for (part, bytes) in parts_of(start, length, page_bytes) {
            if pages.last().is_none_or(|page| page.last() < part.0) {
                pages.push(Page::empty(part));
            }
            // Overlapping blocks of a false file may lie before the last page.
            if let Some(page) = pages.last_mut().filter(|page| (page.number, page.count) == part) {
                page.add((owner, bytes, 1), page_bytes);
            }
        }
    }
    pages
}

/// Cells of equal size over runs of pages, the same for pages of several moments.
pub(crate) struct Layout {
    pub(crate) pages_each: u64,
    pub(crate) runs: Vec<PageRun>,
    /// Number of the first page of each run, ascending.
    starts: Vec<u64>,
    cell_count: usize,
}

impl Layout {
    /// Lays out cells over all these pages.
    pub(crate) fn of<'a>(pages: impl Iterator<Item = &'a Page>, page_bytes: u64) -> Self {
        let mut spans: Vec<(u64, u64)> = pages.map(|page| (page.number, page.last())).collect();
        spans.sort_unstable();
        spans.dedup();
        // Spans of different moments may overlap: the last page of all before counts.
        let mut last = 0;
        let mut gaps: Vec<u64> = Vec::with_capacity(spans.len());
        let mut inside = 0_u64;
        for (place, &(first, end)) in spans.iter().enumerate() {
            let covered = if place == 0 { first } else { last };
            gaps.push(first.saturating_sub(covered));
            inside = inside.saturating_add(end.max(covered).saturating_sub(first.max(covered)));
            last = end.max(covered);
        }
        let mut wide: Vec<u64> = gaps.iter().copied().filter(|&gap| gap > GAP_PAGES_MAX).collect();
        wide.sort_unstable();
        wide.reverse();
        let gap_max = wide.get(RUNS_MAX).copied().unwrap_or(GAP_PAGES_MAX);
        let breaks = wide.iter().filter(|&&gap| gap > gap_max).count() as u64;
        let narrow = gaps.iter().filter(|&&gap| gap <= gap_max).sum::<u64>();
        let all = inside.saturating_add(narrow).saturating_add(breaks + 1);
        let pages_each = all.div_ceil(CELLS_MAX as u64).max(1);
        let mut layout = Self { pages_each, runs: Vec::new(), starts: Vec::new(), cell_count: 0 };
        let mut last = 0;
        for (&(first, end), gap) in spans.iter().zip(gaps) {
            if layout.starts.is_empty() || gap > gap_max {
                layout.starts.push(first);
                let start_avma = format!("{:#x}", first.saturating_mul(page_bytes));
                layout.runs.push(PageRun { cell: layout.cell_count, start_avma });
                last = first;
            }
            last = end.max(last);
            layout.cell_count = layout.cell_of(last) + 1;
        }
        layout
    }

    /// Index of the cell of a page that the layout was made for.
    fn cell_of(&self, page: u64) -> usize {
        let run = self.starts.partition_point(|&start| start <= page).saturating_sub(1);
        let (Some(start), Some(of)) = (self.starts.get(run), self.runs.get(run)) else { return 0 };
        of.cell + (page.saturating_sub(*start) / self.pages_each) as usize
    }

    /// Live bytes of each cell, and the owner with most of them. The pages are in the order of
    /// addresses.
    pub(crate) fn cells(&self, pages: &[Page], page_bytes: u64) -> (Vec<u64>, Vec<Option<usize>>) {
        let mut live_bytes = vec![0; self.cell_count];
        let mut most = vec![None; self.cell_count];
        let mut of_cell = OwnerSums::default();
        let mut last = 0;
        for page in pages {
            let mut number = page.number;
            while number <= page.last() {
                let cell = self.cell_of(number);
                if cell != last {
                    most[last] = of_cell.take_most().or(most[last]);
                    last = cell;
                }
                // Pages of one entry are in one run: those up to the end of the cell.
                let run = self.starts.partition_point(|&start| start <= number).saturating_sub(1);
                let start = self.starts.get(run).copied().unwrap_or(number);
                let place = (number - start) / self.pages_each;
                let end = (start + (place + 1) * self.pages_each).min(page.last() + 1);
                let inside = |bytes: u64| {
                    if page.count > 1 { bytes.min((end - number) * page_bytes) } else { bytes }
                };
                live_bytes[cell] += inside(page.live_bytes);
                page.by_owner.iter().for_each(|&(owner, bytes, _)| of_cell.add(owner, inside(bytes)));
                number = end;
            }
        }
        if let Some(cell) = most.get_mut(last) {
            *cell = of_cell.take_most().or(*cell);
        }
        (live_bytes, most)
    }
}

/// Bytes by owner of one cell after the other.
#[derive(Default)]
struct OwnerSums {
    /// Bytes by the number of the owner.
    bytes: Vec<u64>,
    /// Owners with bytes.
    owners: Vec<usize>,
}

impl OwnerSums {
    fn add(&mut self, owner: usize, bytes: u64) {
        if owner >= self.bytes.len() {
            self.bytes.resize(owner + 1, 0);
        }
        if self.bytes[owner] == 0 {
            self.owners.push(owner);
        }
        self.bytes[owner] += bytes;
    }

    /// The owner with most bytes, the first of equal ones; all sums are zero after it.
    fn take_most(&mut self) -> Option<usize> {
        let most =
            self.owners.iter().copied().max_by_key(|&owner| (self.bytes[owner], std::cmp::Reverse(owner)));
        self.owners.drain(..).for_each(|owner| self.bytes[owner] = 0);
        most
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
        let layout = Layout::of(pages.iter(), PAGE);
        assert_eq!((layout.pages_each, layout.runs.len()), (1, 2));
        let (live_bytes, owners) = layout.cells(&pages, PAGE);
        assert_eq!(live_bytes, [PAGE - 100, 150, 16]);
        assert_eq!(owners, [Some(0), Some(0), Some(1)]);
    }

    #[test]
    fn pages_that_one_block_fills_are_one_entry_over_many_cells() {
        let pages = pages_of(vec![(PAGE, PAGE * 5000, 0)], PAGE);
        let told: Vec<_> = pages.iter().map(|page| (page.number, page.count)).collect();
        assert_eq!(told, [(1, 1), (2, 4998), (5000, 1)]);
        let layout = Layout::of(pages.iter(), PAGE);
        let (live_bytes, _) = layout.cells(&pages, PAGE);
        assert_eq!((layout.pages_each, live_bytes.len()), (3, 1667));
        assert_eq!(live_bytes.iter().sum::<u64>(), PAGE * 5000);
        assert!(live_bytes.iter().all(|&bytes| bytes <= PAGE * 3));
    }

    #[test]
    fn many_blocks_far_from_each_other_do_not_make_a_cell_each() {
        let pages = pages_of((1..10_000).map(|at| (PAGE * 1000 * at, 16, 0)).collect(), PAGE);
        let layout = Layout::of(pages.iter(), PAGE);
        let (live_bytes, _) = layout.cells(&pages, PAGE);
        assert!(layout.runs.len() <= RUNS_MAX + 1 && live_bytes.len() <= CELLS_MAX + RUNS_MAX + 1);
        assert_eq!(live_bytes.iter().sum::<u64>(), 16 * 9999);
    }

    #[test]
    fn blocks_of_a_false_file_neither_overflow_nor_fill_memory() {
        let pages =
            pages_of(vec![(u64::MAX - 5, 100, 0), (PAGE, 10, 0), (PAGE, 10, 1), (0, PAGE * 3, 2)], PAGE);
        assert!(pages.iter().all(|page| page.live_bytes <= PAGE));
        assert!(pages.is_sorted_by_key(|page| page.number));
        let cells = |pages: &[Page]| Layout::of(pages.iter(), PAGE).cells(pages, PAGE).0;
        assert!(!cells(&pages).is_empty() && cells(&[]).is_empty());
    }

    #[test]
    fn a_layout_of_several_moments_keeps_the_place_of_each_page() {
        let early = pages_of(vec![(PAGE, 10, 0), (PAGE * 3, PAGE * 4, 0)], PAGE);
        let late = pages_of(vec![(PAGE * 5, 10, 1), (PAGE * 900, 10, 1)], PAGE);
        let layout = Layout::of(early.iter().chain(&late), PAGE);
        assert_eq!(layout.runs.len(), 2);
        let (of_early, _) = layout.cells(&early, PAGE);
        let (of_late, owners) = layout.cells(&late, PAGE);
        assert_eq!(of_early, [10, 0, PAGE, PAGE, PAGE, PAGE, 0]);
        assert_eq!(of_late, [0, 0, 0, 0, 10, 0, 10]);
        assert_eq!(owners[4], Some(1));
    }
}
