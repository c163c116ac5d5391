//! Measures the time for dominators, retained sizes, retainers, distances and the dominator tree.
//! The heap is generated (`--nodes N`, default 13.3 million), or read from a file (`--file F`). The
//! file contains a u32 node count, a u32 edge count, first edges and targets. One byte per edge
//! follows, which is 6 for a weak edge.
//!
//! The generated heap has the shape of a heap of many small objects. A few roots lead to tables of
//! objects. Objects have two or three fields in nearby memory, and a type object that their whole
//! class shares.

use std::time::Instant;

use heapr_graph::{DominatorTree, Dominators, Graph, Retainers, distances, retained_bytes};

fn main() {
    let option = |name: &str| std::env::args().skip_while(|arg| arg != name).nth(1);
    let node_count: u32 =
        option("--nodes").map_or(13_300_000, |count| count.parse().expect("a number of nodes"));
    let (graph, kinds) = match option("--file") {
        Some(file) => read(&std::fs::read(file).expect("the file can be read")),
        None => {
            let graph = generate(node_count);
            let kinds = (0..graph.edge_count()).map(|edge| if edge & 63 == 63 { 6 } else { 0 }).collect();
            (graph, kinds)
        }
    };
    println!("{} nodes, {} edges, {} MB", graph.node_count(), graph.edge_count(), peak_megabytes());
    let started = Instant::now();
    let dominators = Dominators::of(&graph, 0, |edge, _, _| kinds[edge as usize] != 6);
    println!("dominators  {:>8.3?}  peak {} MB", started.elapsed(), peak_megabytes());
    let started = Instant::now();
    let retained = retained_bytes(&dominators, |node| u64::from(node & 63));
    println!("retained    {:>8.3?}  root {}", started.elapsed(), retained[0]);
    drop(retained);
    let started = Instant::now();
    let retainers = Retainers::of(&graph);
    println!("retainers   {:>8.3?}  of the root {}", started.elapsed(), retainers.edges_into(0).len());
    let started = Instant::now();
    let distance = distances(&graph, [[(0, 0)].as_slice()], |_, _, _| true);
    println!("distances   {:>8.3?}  greatest {:?}", started.elapsed(), distance.iter().max());
    let started = Instant::now();
    let tree = DominatorTree::of(&dominators);
    println!("tree        {:>8.3?}  of the root {}", started.elapsed(), tree.children(0).len());
}

fn read(file: &[u8]) -> (Graph, Vec<u8>) {
    let word = |at: usize| u32::from_le_bytes(file[at * 4..at * 4 + 4].try_into().expect("four bytes"));
    let (nodes, edges) = (word(0) as usize, word(1) as usize);
    let first_edge = (2..nodes + 3).map(word).collect();
    let targets = (nodes + 3..nodes + 3 + edges).map(word).collect();
    let kinds = file[(nodes + 3 + edges) * 4..].to_vec();
    (Graph::new(first_edge, targets).expect("the file holds a graph"), kinds)
}

fn generate(node_count: u32) -> Graph {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut random = move |below: u32| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (((state >> 32) * u64::from(below)) >> 32) as u32
    };
    let class_count = 1000.min(node_count / 10).max(1);
    let mut first_edge = Vec::with_capacity(node_count as usize + 1);
    let mut targets = Vec::new();
    first_edge.push(0);
    for node in 0..node_count {
        if node < 40 {
            // Roots: some classes and a table each.
            targets.extend((0..50).map(|_| 40 + random(class_count)));
            targets.extend((0..50).map(|_| random(node_count)));
            targets.push(node + 1);
        } else {
            targets.push(40 + random(class_count));
            let near = 1 + random(16);
            targets.push((node + 1) % node_count);
            targets.push((node + near) % node_count);
            if random(8) == 0 {
                targets.push(random(node_count));
            }
        }
        first_edge.push(targets.len() as u32);
    }
    Graph::new(first_edge, targets).expect("the generated arrays are a graph")
}

fn peak_megabytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or("0");
    line.trim().trim_end_matches(" kB").parse().unwrap_or(0) / 1024
}
