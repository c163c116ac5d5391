//! Scans every word of blocks and roots once, in order of address. Words that lead into a block
//! become references.

use std::collections::HashMap;

use heapr_proc::page_bytes;
use heapr_trace::{EdgeGrade, RootEdge};

use crate::areas::{Area, Regions};
use crate::block_map::{BlockMap, Hit};
use crate::heuristics::{Inside, Inspector};
use crate::memory::Memory;
use crate::python_types::PythonTypes;
use crate::references::{may_be_explained, reference, unaligned};
use crate::scanned::Scanned;
use crate::shape_nodes::Links;
use crate::shapes::{Around, Chain, Seen, Shape};
use crate::slices::{Holder, SliceSearch};
use crate::text::{Beginning, LOOKED_AT_BYTES, text_of};
use crate::type_names::{ToldBy, kept_name};

/// Largest number of bytes per read.
const WINDOW_BYTES: u64 = 1 << 20;
/// Largest gap between two blocks that are read together.
const GAP_BYTES: u64 = 16 << 10;
/// Largest weak count that is believed of a shared block (`Arc`, `Rc`).
const SHARED_WEAKLY_MAX: u64 = 64;
/// Size up to which blocks are searched for unaligned pointers.
const PACKED_BYTES_MAX: u64 = 4096;

/// Reason why a scan ended early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// The caller stopped the scan.
    Ended,
    /// The number of references exceeds the edge numbers.
    TooManyEdges,
}

/// Whether text at the start of blocks is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Texts {
    /// The blocks' contents are not stored.
    #[default]
    LeftOut,
    /// The first bytes of text are stored.
    Kept,
}

/// Scans all blocks and areas. `goes_on` is called at each read and ends the scan by `false`.
///
/// # Errors
/// Returns a [`Cut`] if the scan was stopped or found too many references.
pub fn scan(
    memory: &impl Memory,
    map: &BlockMap,
    areas: &[Area],
    regions: &Regions,
    texts: Texts,
    goes_on: &dyn Fn() -> bool,
) -> Result<Scanned, Cut> {
    let mut scan = Scan {
        memory,
        map,
        goes_on,
        window: Window { start_avma: 0, bytes: Vec::new() },
        heads: vec![0; map.len()],
        inside: Vec::new(),
        told: Told { shapes: vec![Shape::None; map.len()], chains: Vec::new(), of_python: Vec::new() },
        python: PythonTypes::of(regions),
        texts,
        names: Names::default(),
        slices: SliceSearch::default(),
        found: Scanned::default(),
    };
    for (number, area) in areas.iter().enumerate() {
        scan.area(number as u32, area)?;
    }
    let mut of_areas: Vec<u32> = areas.iter().filter_map(|area| area.block).collect();
    of_areas.sort_unstable();
    scan.blocks(&of_areas)?;
    scan.judge(regions);
    Ok(scan.found)
}

/// Memory that was read last.
struct Window {
    start_avma: u64,
    bytes: Vec<u8>,
}

struct Scan<'a, M> {
    memory: &'a M,
    map: &'a BlockMap,
    goes_on: &'a dyn Fn() -> bool,
    window: Window,
    /// First word of each block.
    heads: Vec<u64>,
    /// References to the inside of blocks; the blocks' contents may prove them later.
    inside: Vec<(Place, Inside)>,
    told: Told,
    python: Option<PythonTypes<'a>>,
    texts: Texts,
    names: Names,
    slices: SliceSearch,
    found: Scanned,
}

/// Evidence of the types of blocks, gathered by the scan.
struct Told {
    /// Shape of each block.
    shapes: Vec<Shape>,
    chains: Vec<Chain>,
    /// Objects of CPython: block, and number of its type's name plus one.
    of_python: Vec<(u32, u32)>,
}

impl Told {
    #[inline(always)]
    fn note(&mut self, block: u32, seen: Seen) {
        self.shapes[block as usize] = seen.shape;
        self.chains.extend(seen.chain);
    }
}

/// Names of types, each once.
#[derive(Default)]
struct Names {
    numbers: HashMap<String, u32>,
    texts: Vec<String>,
}

impl Names {
    /// Number of a name plus one; new names are added.
    fn number(&mut self, told_by: ToldBy, name: &str) -> u32 {
        let kept = kept_name(told_by, name);
        let next = self.texts.len() as u32 + 1;
        let texts = &mut self.texts;
        *self.numbers.entry(kept).or_insert_with_key(|kept| {
            texts.push(kept.clone());
            next
        })
    }
}

/// Index of a reference's grade.
#[derive(Debug, Clone, Copy)]
enum Place {
    Edge(u32),
    Root(usize),
}

impl<M: Memory> Scan<'_, M> {
    /// Scans the blocks except `of_areas`: blocks that are scanned as areas, in order.
    fn blocks(&mut self, mut of_areas: &[u32]) -> Result<(), Cut> {
        for block in 0..self.map.len() {
            self.found.first_edge.push(self.found.targets.len() as u32);
            if of_areas.first() == Some(&(block as u32)) {
                let count = of_areas.iter().take_while(|&&other| other as usize == block).count();
                of_areas = &of_areas[count..];
                continue;
            }
            self.block(block)?;
        }
        self.found.first_edge.push(self.found.targets.len() as u32);
        Ok(())
    }

    // Long: the words are borrowed from the window while the other fields change.
    fn block(&mut self, block: usize) -> Result<(), Cut> {
        let start_avma = self.map.start_avma(block);
        let (size_bytes, end_avma) = (self.map.size_bytes(block), self.map.end_avma(block));
        let strong_end_avma = start_avma + size_bytes;
        let mut at_avma = start_avma.next_multiple_of(8);
        while at_avma + 8 <= end_avma {
            let limit_avma =
                if self.window.has(at_avma) { end_avma } else { self.end_of_run(block, at_avma) };
            let read_avma = self.fill(at_avma, limit_avma)?;
            if read_avma <= at_avma {
                at_avma = self.skip_unread(at_avma, end_avma);
                continue;
            }
            let until_avma = read_avma.min(end_avma);
            let from = (at_avma - self.window.start_avma) as usize;
            let bytes = &self.window.bytes[from..from + (until_avma - at_avma) as usize];
            let words = bytes.as_chunks::<8>().0;
            if at_avma == start_avma
                && let Some(first) = words.first()
            {
                self.heads[block] = u64::from_le_bytes(*first);
                if self.texts == Texts::Kept {
                    let start = &bytes[..bytes.len().min(size_bytes as usize).min(LOOKED_AT_BYTES)];
                    let is_cut = start.len() < size_bytes as usize;
                    let beginning = match reference(self.map, self.heads[block]) {
                        Some(_) => Beginning::Header,
                        None => Beginning::Unknown,
                    };
                    if let Some(text) = text_of(start, is_cut, beginning) {
                        self.found.texts.push(block as u32, text);
                    }
                }
                let of_python = self.python.as_mut().and_then(|types| types.name_of(self.memory, words));
                if let Some(name) = of_python {
                    let number = self.names.number(ToldBy::Python, name);
                    self.told.of_python.push((block as u32, number));
                }
            }
            let count = words.len() as u64;
            for (number, word) in words.iter().enumerate() {
                let word = u64::from_le_bytes(*word);
                let Some((hit, mut grade)) = reference(self.map, word) else { continue };
                if hit.block as usize == block {
                    self.slices.note_own(self.map, hit.block);
                    continue;
                }
                let word_avma = at_avma + number as u64 * 8;
                if word_avma + 8 > strong_end_avma {
                    grade = EdgeGrade::DeadMemory;
                } else if let Some(seen) = Around::of(words, number).shape(self.map, hit, grade) {
                    self.told.note(hit.block, seen);
                    grade = seen.grade(grade);
                }
                let edge = self.found.targets.len() as u32;
                if edge == u32::MAX {
                    return Err(Cut::TooManyEdges);
                }
                let slot = (word_avma - start_avma) / 8;
                let place = (Holder::Block(block as u32, slot), edge as usize);
                self.slices.note(self.map, place, (hit, grade), Some((words, number)));
                self.found.targets.push(hit.block);
                self.found.slots.push(slot as u32);
                self.found.grades.push(grade);
                if may_be_explained(grade) {
                    self.inside.push((Place::Edge(edge), Inside::of(hit)));
                }
            }
            if size_bytes <= PACKED_BYTES_MAX {
                let start = (at_avma - start_avma) / 8;
                unaligned(self.map, words, |number, target| {
                    if target as usize != block {
                        let place = Holder::Block(block as u32, start + number as u64);
                        let place = (place, self.found.targets.len());
                        let hit = Hit { block: target, offset_bytes: 0 };
                        self.slices.note(self.map, place, (hit, EdgeGrade::Unaligned), None);
                        self.found.targets.push(target);
                        self.found.slots.push((start + number as u64) as u32);
                        self.found.grades.push(EdgeGrade::Unaligned);
                    }
                });
            }
            self.found.read_bytes += count * 8;
            at_avma += (count * 8).max(8);
        }
        Ok(())
    }

    /// End of the run of blocks, from `at_avma` in `block` on, that has no larger gap than
    /// [`GAP_BYTES`].
    fn end_of_run(&self, block: usize, at_avma: u64) -> u64 {
        let mut end_avma = self.map.end_avma(block);
        for next in block + 1..self.map.len() {
            if end_avma - at_avma >= WINDOW_BYTES || self.map.start_avma(next) - end_avma > GAP_BYTES {
                break;
            }
            end_avma = self.map.end_avma(next);
        }
        end_avma
    }

    fn area(&mut self, number: u32, area: &Area) -> Result<(), Cut> {
        let start_avma = area.root.start_avma;
        for (place, &word) in area.words.iter().enumerate() {
            self.root_word(number, area, place as u64 * 8, word, None);
        }
        for &(piece_avma, piece_end_avma) in &area.pieces {
            let mut at_avma = piece_avma.next_multiple_of(8);
            while at_avma + 8 <= piece_end_avma {
                // Blocks are scanned on their own.
                if area.block.is_none()
                    && let Some(end_avma) = self.block_over(at_avma)
                {
                    at_avma = end_avma.next_multiple_of(8);
                    continue;
                }
                let next_avma = match area.block {
                    None => self.next_block(at_avma).min(piece_end_avma),
                    Some(_) => piece_end_avma,
                };
                let read_avma = self.fill(at_avma, next_avma.min(at_avma + WINDOW_BYTES))?;
                if read_avma <= at_avma {
                    at_avma = self.skip_unread(at_avma, next_avma);
                    continue;
                }
                let until_avma = read_avma.min(next_avma);
                let from = (at_avma - self.window.start_avma) as usize;
                let range = from..from + (until_avma - at_avma) as usize;
                let bytes = std::mem::take(&mut self.window.bytes);
                let words = bytes[range].as_chunks::<8>().0;
                for (place, word) in words.iter().enumerate() {
                    let offset_bytes = at_avma + place as u64 * 8 - start_avma;
                    let around = Around::of(words, place);
                    self.root_word(number, area, offset_bytes, u64::from_le_bytes(*word), Some(around));
                }
                let offset_bytes = at_avma - start_avma;
                unaligned(self.map, words, |place, target| {
                    let offset_bytes = offset_bytes + place as u64 * 8;
                    let grade = EdgeGrade::Unaligned;
                    let place = (Holder::Area(number, offset_bytes / 8), self.found.roots.len());
                    let hit = Hit { block: target, offset_bytes: 0 };
                    self.slices.note(self.map, place, (hit, grade), None);
                    self.found.roots.push(RootEdge { area: number, offset_bytes, target, grade });
                });
                let count = words.len() as u64;
                self.window.bytes = bytes;
                self.found.read_bytes += count * 8;
                at_avma += (count * 8).max(8);
            }
        }
        Ok(())
    }

    fn root_word(
        &mut self,
        area_number: u32,
        area: &Area,
        offset_bytes: u64,
        word: u64,
        around: Option<Around<'_>>,
    ) {
        let Some((hit, mut grade)) = reference(self.map, word) else { return };
        if area.is_doubtful {
            grade = EdgeGrade::DeadMemory;
        } else if let Some(seen) = around.and_then(|around| around.shape(self.map, hit, grade)) {
            self.told.note(hit.block, seen);
            grade = seen.grade(grade);
        }
        let place = self.found.roots.len();
        let holder = (Holder::Area(area_number, offset_bytes / 8), place);
        self.slices.note(self.map, holder, (hit, grade), around.map(|around| around.words()));
        self.found.roots.push(RootEdge { area: area_number, offset_bytes, target: hit.block, grade });
        if may_be_explained(grade) {
            self.inside.push((Place::Root(place), Inside::of(hit)));
        }
    }

    /// End of the block that an address lies in.
    fn block_over(&self, at_avma: u64) -> Option<u64> {
        let block = self.map.find(at_avma)?.block as usize;
        Some(self.map.end_avma(block)).filter(|&end_avma| end_avma > at_avma)
    }

    /// Start of the next block.
    fn next_block(&self, at_avma: u64) -> u64 {
        self.map.next_start(at_avma)
    }

    /// Reads memory from `at_avma` on into the window, up to `limit_avma` or the largest read.
    /// Returns the exclusive end of the whole words there.
    fn fill(&mut self, at_avma: u64, limit_avma: u64) -> Result<u64, Cut> {
        if !self.window.has(at_avma) {
            if !(self.goes_on)() {
                return Err(Cut::Ended);
            }
            // The page behind an unreadable one is often unreadable, too: a single page is tried
            // first, to save the cost of a whole window.
            let most_bytes = if self.window.bytes.is_empty() { page_bytes() } else { WINDOW_BYTES };
            let bytes = limit_avma.saturating_sub(at_avma).clamp(8, most_bytes);
            self.window.bytes.resize(bytes as usize, 0);
            let count = self.memory.read(at_avma, &mut self.window.bytes).min(bytes as usize);
            self.window.bytes.truncate(count);
            self.window.start_avma = at_avma;
        }
        // Whole words only.
        Ok(self.window.start_avma + self.window.bytes.len() as u64 / 8 * 8)
    }

    /// Skips to the end of an unreadable page.
    fn skip_unread(&mut self, at_avma: u64, end_avma: u64) -> u64 {
        let next_avma = ((at_avma / page_bytes() + 1) * page_bytes()).min(end_avma.next_multiple_of(8));
        self.found.unread_bytes += next_avma - at_avma;
        next_avma
    }

    /// Judges the references to the inside of blocks, and assembles types, texts and names.
    fn judge(&mut self, regions: &Regions) {
        let mut inspector = Inspector::new(self.memory, self.map, regions, &self.heads);
        let mut numbers: HashMap<u64, u32> = HashMap::new();
        let mut types = vec![0_u32; self.heads.len()];
        for &(block, number) in &self.told.of_python {
            types[block as usize] = number;
        }
        for (block, &head) in self.heads.iter().enumerate() {
            if !regions.is_data_of_module(head) {
                continue;
            }
            let names = &mut self.names;
            let number = *numbers.entry(head).or_insert_with(|| {
                let name = inspector.type_name(block);
                name.map_or(0, |name| names.number(ToldBy::VirtualFunctions, &name))
            });
            if number != 0 {
                types[block] = number;
            }
        }
        for &(place, inside) in &self.inside {
            let Some(grade) = inspector.explain(inside) else { continue };
            match place {
                Place::Edge(edge) => self.found.grades[edge as usize] = grade,
                Place::Root(root) => self.found.roots[root].grade = grade,
            }
        }
        // A block that begins with the address of a table of virtual functions holds no text there.
        let texts = std::mem::take(&mut self.found.texts);
        self.found.texts = texts.without(|block, text| {
            let head = self.heads[block as usize];
            text.as_bytes().first() == head.to_le_bytes().first() && regions.is_data_of_module(head)
        });
        self.found.sliced = std::mem::take(&mut self.slices).sliced(self.map, &self.found);
        self.tell_shapes(&mut types);
        self.found.types = types;
        self.found.type_names = std::mem::take(&mut self.names.texts);
    }

    /// Classifies by shape the blocks for which no type name was found.
    fn tell_shapes(&mut self, types: &mut [u32]) {
        let Told { shapes, chains, .. } = &mut self.told;
        let links = Links { found: &self.found, heads: &self.heads };
        links.tell(shapes, chains, |node| types[node as usize] == 0);
        let is_open = |shapes: &[Shape], node: u32| shapes[node as usize] == Shape::None;
        for node in links.counted(|node| types[node as usize] == 0 && is_open(shapes, node)) {
            let weak = self.memory.word(self.map.address_avma(node) + 8);
            if weak.is_some_and(|weak| (1..=SHARED_WEAKLY_MAX).contains(&weak)) {
                shapes[node as usize] = Shape::Shared;
            }
        }
        for (kind, shape) in types.iter_mut().zip(shapes) {
            if let Some(name) = shape.name().filter(|_| *kind == 0) {
                *kind = self.names.number(ToldBy::Shape, name);
            }
        }
    }
}

impl Window {
    fn has(&self, at_avma: u64) -> bool {
        at_avma.checked_sub(self.start_avma).is_some_and(|offset| offset + 8 <= self.bytes.len() as u64)
    }
}
