//! Pages of live blocks, kept up while blocks come and go: a look at them costs as much as there
//! are pages, not blocks.

use hashbrown::HashMap;

use super::page_cells::{Page, parts_of};

/// Bytes of a page for each stack that is told apart in it, and the largest number of these stacks.
/// The smallest blocks of malloc have 16 bytes; more stacks come from blocks in blocks, or from a
/// false file.
const BYTES_OF_STACK: u64 = 8;
const OF_PAGE_MAX: u64 = 2048;

/// Live bytes and blocks of a stack in a page.
#[derive(Clone, Copy)]
struct OfStack {
    stack: usize,
    bytes: u64,
    count: u64,
}

/// Pages with live blocks. Its blocks are told by the caller.
pub(crate) struct LivePages {
    page_bytes: u64,
    /// Largest number of stacks that are told apart in a page.
    of_page_max: usize,
    /// Contents by the first page and the number of pages, which is more than 1 only for those that
    /// one block fills.
    parts: HashMap<(u64, u64), Vec<OfStack>>,
}

impl LivePages {
    pub(crate) fn new(page_bytes: u64) -> Self {
        let of_page_max = (page_bytes / BYTES_OF_STACK).min(OF_PAGE_MAX) as usize;
        Self { page_bytes, of_page_max, parts: HashMap::new() }
    }

    /// Adds a block.
    pub(crate) fn add(&mut self, start: u64, length: u64, stack: usize) {
        for (pages, bytes) in parts_of(start, length, self.page_bytes) {
            let of_page = self.parts.entry(pages).or_default();
            match of_page.iter().position(|known| known.stack == stack) {
                Some(place) => {
                    let known = &mut of_page[place];
                    known.bytes = known.bytes.saturating_add(bytes);
                    known.count += 1;
                }
                None if of_page.len() < self.of_page_max => of_page.push(OfStack { stack, bytes, count: 1 }),
                None => {}
            }
        }
    }

    /// Removes a block that was added.
    pub(crate) fn remove(&mut self, start: u64, length: u64, stack: usize) {
        for (pages, bytes) in parts_of(start, length, self.page_bytes) {
            let Some(of_page) = self.parts.get_mut(&pages) else { continue };
            let Some(place) = of_page.iter().position(|known| known.stack == stack) else { continue };
            let known = &mut of_page[place];
            known.bytes = known.bytes.saturating_sub(bytes);
            known.count -= 1;
            if known.count == 0 {
                // In the order of their first blocks: an outer block comes before those inside.
                of_page.remove(place);
            }
            if of_page.is_empty() {
                self.parts.remove(&pages);
            }
        }
    }

    /// The pages in the order of addresses. `owner_of`: number of a stack's function.
    pub(crate) fn pages(&self, mut owner_of: impl FnMut(usize) -> usize) -> Vec<Page> {
        let mut numbers: Vec<(u64, u64)> = self.parts.keys().copied().collect();
        numbers.sort_unstable_by_key(|&(number, count)| (number, std::cmp::Reverse(count)));
        let mut pages: Vec<Page> = Vec::with_capacity(numbers.len());
        for at in numbers {
            // Blocks inside of one that fills whole pages have no room of their own.
            if pages.last().is_some_and(|page| page.last() >= at.0) {
                continue;
            }
            let mut page = Page::empty(at);
            for of_stack in self.parts.get(&at).into_iter().flatten() {
                page.add((owner_of(of_stack.stack), of_stack.bytes, of_stack.count), self.page_bytes);
            }
            pages.push(page);
        }
        pages
    }
}

#[cfg(test)]
mod tests {
    use super::super::page_cells::pages_of;
    use super::*;

    const PAGE: u64 = 4096;

    fn told(pages: &[Page]) -> Vec<String> {
        let of_page = |page: &Page| {
            let mut by_owner = page.by_owner.clone();
            by_owner.sort_unstable();
            format!("{}: {by_owner:?}", page.live_bytes)
        };
        pages.iter().map(of_page).collect()
    }

    #[test]
    fn pages_of_blocks_that_come_and_go_are_those_of_the_blocks_that_are_left() {
        let mut live = LivePages::new(PAGE);
        let mut left = Vec::new();
        let mut random = 7_u64;
        let mut start = PAGE * 16;
        for number in 0..3000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let length = 1 + (random >> 33) % if number % 50 == 0 { 40_000 } else { 300 };
            let stack = (random >> 20) as usize % 6;
            live.add(start, length, stack);
            if number % 3 == 0 {
                live.remove(start, length, stack);
            } else {
                left.push((start, length, stack % 2));
            }
            start += length + (random >> 40) % 64;
        }
        assert_eq!(told(&live.pages(|stack| stack % 2)), told(&pages_of(left, PAGE)));
    }

    #[test]
    fn blocks_inside_of_a_block_are_not_counted_twice() {
        let mut live = LivePages::new(PAGE);
        live.add(PAGE, PAGE * 6, 0);
        live.add(PAGE + 16, 100, 1);
        live.add(PAGE * 3 + 16, 100, 1);
        let pages = live.pages(|stack| stack);
        assert_eq!(pages.iter().map(|page| page.live_bytes).sum::<u64>(), PAGE * 6);
        assert!(pages.iter().all(|page| page.by_owner.iter().all(|(owner, ..)| *owner == 0)));
        live.remove(PAGE, PAGE * 6, 0);
        live.remove(PAGE + 16, 100, 1);
        live.remove(PAGE * 3 + 16, 100, 1);
        assert!(live.pages(|stack| stack).is_empty());
        live.remove(5, 5, 5);
    }
}
