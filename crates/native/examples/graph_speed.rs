//! Measures time and memory of the analysis of a native heap: a synthetic heap of blocks (`--blocks
//! N`, default 10 million) with three references each.
//!
//! Most references lead to blocks nearby, as in programs; a few to anywhere.

use std::time::Instant;

use heapr_graph::{Dominators, Graph, retained_bytes};
use heapr_native::{
    BlockMap, KnownBlock, Leaks, Memory, ProcessFacts, Regions, Scanned, Texts, Verdicts, root_areas, scan,
};
use heapr_proc::Mapping;
use heapr_trace::HeapGraph;

const BASE_AVMA: u64 = 0x5555_0000_0000;
const DATA_AVMA: u64 = 0x5544_0000_0000;
const STRIDE_BYTES: u64 = 48;
const SIZE_BYTES: u64 = 40;

/// Start by the wall clock and by processor time; on a busy machine only the latter is reliable.
struct Lap(Instant, u64);

impl Lap {
    fn start() -> Self {
        Self(Instant::now(), processor_ns())
    }

    fn end(&self) -> String {
        let processor_s = (processor_ns() - self.1) as f64 / 1e9;
        format!("{:>7.3} s, {processor_s:>7.3} s of a processor", self.0.elapsed().as_secs_f64())
    }
}

fn processor_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    text.split_ascii_whitespace().next().and_then(|word| word.parse().ok()).unwrap_or(0)
}

struct Made {
    heap: Vec<u64>,
    data: Vec<u64>,
}

impl Memory for Made {
    fn read(&self, address_avma: u64, into: &mut [u8]) -> usize {
        let (words, start_avma) =
            if address_avma >= BASE_AVMA { (&self.heap, BASE_AVMA) } else { (&self.data, DATA_AVMA) };
        let first = ((address_avma - start_avma) / 8) as usize;
        let rest = words.get(first..).unwrap_or_default();
        for (bytes, word) in into.as_chunks_mut::<8>().0.iter_mut().zip(rest) {
            *bytes = word.to_le_bytes();
        }
        into.len().min(rest.len() * 8)
    }
}

fn main() {
    let option = |name: &str| std::env::args().skip_while(|arg| arg != name).nth(1);
    let count: u64 = option("--blocks").map_or(10_000_000, |count| count.parse().expect("a number"));
    let memory = made(count);
    let blocks = (0..count).map(|number| KnownBlock {
        address_avma: BASE_AVMA + number * STRIDE_BYTES,
        size_bytes: SIZE_BYTES,
        usable_bytes: SIZE_BYTES,
    });
    let before = peak_bytes();
    let all = Lap::start();
    let started = Lap::start();
    let map = BlockMap::new(blocks.collect());
    let facts = ProcessFacts {
        mappings: vec![data_mapping(memory.data.len() as u64 * 8)],
        ..ProcessFacts::default()
    };
    let areas = root_areas(&facts, &map, &memory);
    let regions = Regions::of(&facts.mappings);
    println!("map         {}", started.end());
    let started = Lap::start();
    // Types are for names only.
    let Scanned { first_edge, targets, slots, grades, roots, .. } =
        scan(&memory, &map, &areas, &regions, Texts::LeftOut, &|| true).expect("it fits");
    println!("scan        {}", started.end());
    drop((map, areas));
    let graph = HeapGraph { first_edge, targets, slots, grades, roots, ..HeapGraph::default() };
    let edges = graph.targets.len() as u64;
    let started = Lap::start();
    let verdicts = Verdicts::of(&graph, |_| false);
    println!("reach       {}", started.end());
    let started = Lap::start();
    let leaks = Leaks::of(&graph, &verdicts, |_| SIZE_BYTES, u64::from);
    println!("leaks       {}  {} of {count} blocks", started.end(), leaks.leaks.len());
    let started = Lap::start();
    let rooted = rooted(&graph);
    let dominators = Dominators::of(&rooted, 0, |_, _, _| true);
    let retained = retained_bytes(&dominators, |node| if node == 0 { 0 } else { SIZE_BYTES });
    println!("dominators  {}  {} bytes are held", started.end(), retained[0]);
    let used = peak_bytes() - before;
    let allowed = 64 * count + 8 * edges;
    println!("in all      {}  {edges} edges, {used} bytes, of {allowed} allowed", all.end());
}

/// The graph below one artificial root.
fn rooted(graph: &HeapGraph) -> Graph {
    let roots: Vec<u32> = graph.roots.iter().map(|root| root.target + 1).collect();
    let first = graph.first_edge.iter().map(|edge| edge + roots.len() as u32);
    let first_edge = std::iter::once(0).chain(first).collect();
    let targets = roots.iter().copied().chain(graph.targets.iter().map(|target| target + 1)).collect();
    Graph::new(first_edge, targets).expect("the scan gives a graph")
}

fn made(count: u64) -> Made {
    let mut seed = 88_172_645_463_325_252_u64;
    let mut random = move || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed
    };
    let address = |number: u64| BASE_AVMA + number % count * STRIDE_BYTES;
    let mut heap = Vec::with_capacity((count * STRIDE_BYTES / 8) as usize);
    for number in 0..count {
        let far = if random() % 16 == 0 { random() } else { number + random() % 1000 };
        heap.extend([
            address(number + 1),
            7,
            address(number + random() % 64),
            address(far),
            random() % 5000,
            0,
        ]);
    }
    let data = (0..1000).map(|_| address(random())).collect();
    Made { heap, data }
}

fn data_mapping(bytes: u64) -> Mapping {
    Mapping {
        start_avma: DATA_AVMA,
        end_avma: DATA_AVMA + bytes,
        is_readable: true,
        is_writable: true,
        is_executable: false,
        is_shared: false,
        file_off: 0,
        inode: 1,
        name: "/made".to_owned(),
    }
}

fn peak_bytes() -> u64 {
    heapr_proc::Fields::of_self().bytes("VmHWM").unwrap_or(0)
}
