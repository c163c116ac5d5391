//! Captures the graph of a process that is never stopped: it is read twice while it runs.
//!
//! A reference that moves during a reading can make its block look unreached. A leaked block does
//! not change any more. So a block is definitely leaked only if it was unreached in both readings,
//! some time apart, and its content is unchanged.
//!
//! ```text
//! unreached in the second reading, and in the first
//!     unreached too, content unchanged   definite
//!     unreached too, content changed     held: in use
//!     reached, or not allocated          possible
//! ```

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hasher as _};
use std::time::Duration;

use heapr_native::{BlockMap, Memory, Reach, Verdicts};
use heapr_trace::{EdgeGrade, HeapGraph, RootArea, RootClass, RootEdge};

/// Time between the two readings: a younger block may not have reached its holder yet.
pub(super) const BETWEEN: Duration = Duration::from_secs(5);

/// Allocation times of blocks, by address.
#[derive(Debug, Default)]
pub(crate) struct Births(Vec<(u64, u64)>);

impl Births {
    /// Creates the list from addresses and times.
    pub(crate) fn of(mut blocks: Vec<(u64, u64)>) -> Self {
        blocks.sort_unstable();
        Self(blocks)
    }

    fn at(&self, address_avma: u64) -> Option<u64> {
        let place = self.0.binary_search_by_key(&address_avma, |&(address_avma, _)| address_avma);
        Some(self.0[place.ok()?].1)
    }
}

/// Unreached blocks by address: allocation time, and hash of the content.
#[derive(Debug)]
pub(super) struct Unreached(HashMap<u64, (u64, u64)>);

/// Returns the unreached blocks of a reading.
pub(super) fn unreached(
    graph: &HeapGraph,
    map: &BlockMap,
    memory: &impl Memory,
    births: &Births,
) -> Unreached {
    let verdicts = Verdicts::of(graph, |_| false);
    let nodes = (0..graph.node_count()).filter(|&node| verdicts.reach(node) == Reach::Unreached);
    let known = nodes.filter_map(|node| {
        let born_ns = births.at(map.address_avma(node))?;
        Some((map.address_avma(node), (born_ns, content(map, memory, node)?)))
    });
    Unreached(known.collect())
}

/// Adds holders to unreached blocks that the first reading does not confirm.
pub(super) fn confirm(
    graph: &mut HeapGraph,
    map: &BlockMap,
    memory: &impl Memory,
    births: &Births,
    before: &Unreached,
) {
    let verdicts = Verdicts::of(graph, |_| false);
    let (mut changed, mut doubtful) = (Vec::new(), Vec::new());
    for node in (0..graph.node_count()).filter(|&node| verdicts.reach(node) == Reach::Unreached) {
        let address_avma = map.address_avma(node);
        match before.0.get(&address_avma) {
            Some(&(born_ns, held)) if births.at(address_avma) == Some(born_ns) => {
                if content(map, memory, node) != Some(held) {
                    changed.push(node);
                }
            }
            _ => doubtful.push(node),
        }
    }
    hold(graph, &changed, EdgeGrade::Start, "written to while it was read");
    hold(graph, &doubtful, EdgeGrade::DeadMemory, "read while it ran");
    graph.notes.push(format!(
        "it ran while it was read, twice: registers and what belongs to which thread are not known; {} blocks that nothing was \
         seen to lead to were written to and count as held, {} were not there or held a moment before and count as possibly \
         leaked",
        changed.len(),
        doubtful.len()
    ));
}

/// Adds an area that refers to these blocks.
fn hold(graph: &mut HeapGraph, nodes: &[u32], grade: EdgeGrade, name: &str) {
    if nodes.is_empty() {
        return;
    }
    let area = graph.areas.len() as u32;
    let (class, name) = (RootClass::Unknown, name.to_owned());
    graph.areas.push(RootArea { class, start_avma: 0, end_avma: 0, tid: 0, name });
    let edges = nodes.iter().map(|&target| RootEdge { area, offset_bytes: 0, target, grade });
    graph.roots.extend(edges);
}

/// Hash of a block's content; `None` if it cannot be read.
fn content(map: &BlockMap, memory: &impl Memory, node: u32) -> Option<u64> {
    const PIECE_BYTES: u64 = 1 << 16;
    let mut hasher = DefaultHasher::new();
    let (mut at_avma, mut left_bytes) = (map.address_avma(node), map.asked_bytes(node));
    let mut bytes = vec![0; left_bytes.min(PIECE_BYTES) as usize];
    while left_bytes > 0 {
        let piece = &mut bytes[..left_bytes.min(PIECE_BYTES) as usize];
        if memory.read(at_avma, piece) != piece.len() {
            return None;
        }
        hasher.write(piece);
        at_avma += piece.len() as u64;
        left_bytes -= piece.len() as u64;
    }
    Some(hasher.finish())
}

#[cfg(test)]
mod tests {
    use heapr_native::KnownBlock;

    use super::*;

    /// Memory whose bytes are all the same.
    struct Same(u8);

    impl Memory for Same {
        fn read(&self, _: u64, into: &mut [u8]) -> usize {
            into.fill(self.0);
            into.len()
        }
    }

    fn map() -> BlockMap {
        let block = |number: u64| KnownBlock {
            address_avma: 0x1000 * (number + 1),
            size_bytes: 100_000 * (number % 2) + 64,
            usable_bytes: 64,
        };
        // The sizes reach beyond the next blocks; the map ends each block before the next one.
        BlockMap::new((0..4).map(block).collect())
    }

    /// Graph of four blocks, of which the last is held.
    fn graph() -> HeapGraph {
        let mut graph = HeapGraph { first_edge: vec![0; 5], ..HeapGraph::default() };
        hold(&mut graph, &[3], EdgeGrade::Start, "");
        graph
    }

    fn births(of_first: Option<u64>, of_second: u64) -> Births {
        let first = of_first.map(|born_ns| (0x1000, born_ns));
        Births::of([(0x2000, of_second), (0x3000, 0), (0x4000, 0)].into_iter().chain(first).collect())
    }

    fn reach_after(before: &Births, then: &Births, changed: bool) -> Vec<Reach> {
        let map = map();
        let first = unreached(&graph(), &map, &Same(7), before);
        let mut second = graph();
        confirm(&mut second, &map, &Same(if changed { 8 } else { 7 }), then, &first);
        let verdicts = Verdicts::of(&second, |_| false);
        (0..4).map(|node| verdicts.reach(node)).collect()
    }

    #[test]
    fn what_is_there_both_times_and_unchanged_is_leaked() {
        use Reach::{Possible, Reachable, Unreached};
        // The first block is new, the second was replaced by another.
        let found = reach_after(&births(None, 1), &births(Some(7), 8), false);
        assert_eq!(found, [Possible, Possible, Unreached, Reachable]);
        let found = reach_after(&births(Some(5), 1), &births(Some(5), 1), false);
        assert_eq!(found, [Unreached, Unreached, Unreached, Reachable]);
    }

    #[test]
    fn what_was_written_to_is_held() {
        let found = reach_after(&births(Some(5), 1), &births(Some(5), 1), true);
        assert_eq!(found, [Reach::Reachable; 4]);
    }
}
