//! Objects and native blocks in one graph: what leads inside of a block, and what a block holds.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use heapr_managed::{EdgeKind, ManagedHeap, NativeBlock};
use heapr_testkit::not_run;

use crate::memory::{heap_with_blocks, interpreters};

struct Waiting(Child);

impl Drop for Waiting {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts the program; returns it and its blocks in the order in which it made them. `None` if it
/// ends before it is ready, as without `ctypes`.
fn start(python: &Path) -> Option<(Waiting, Vec<NativeBlock>)> {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/native.py");
    let mut command = Command::new(python);
    let mut child =
        command.arg("-I").arg(program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    let program = Waiting(child);
    let mut blocks = Vec::new();
    for line in output.lines().map(Result::unwrap) {
        if line == "READY" {
            return Some((program, blocks));
        }
        let numbers: Vec<u64> = line.split(' ').map(|number| number.parse().unwrap()).collect();
        blocks.push(NativeBlock { address_avma: numbers[0], usable_bytes: numbers[1] });
    }
    None
}

/// Kind and name of each reference of one node to another.
fn references(heap: &ManagedHeap, from: u32, to: u32) -> Vec<(EdgeKind, String)> {
    let edges = heap.edges_of(from).iter().filter(|edge| edge.target == to);
    edges.map(|edge| (edge.name.kind(), heap.strings.get(edge.name.number()).to_owned())).collect()
}

fn check(label: &str, heap: &ManagedHeap, blocks: &[NativeBlock]) {
    let node = |is_it: &dyn Fn(&str, u64) -> bool, what: &str| {
        let found = heap.nodes.iter().position(|node| is_it(heap.name_of(node), node.address_avma));
        found.unwrap_or_else(|| panic!("{label}: no {what}")) as u32
    };
    let block = |number: usize| node(&|_, avma| avma == blocks[number].address_avma, "block");
    let (outer, inner, lone) = (block(0), block(1), block(2));
    let view = node(&|name, _| name.ends_with("c_char_Array_900"), "view");
    let held = references(heap, view, outer);
    assert!(held.iter().any(|(_, name)| name.ends_with("(inside)")), "{label}: {held:?}");
    assert_eq!(references(heap, outer, inner), [(EdgeKind::Internal, "+0x8 (inside)".to_owned())], "{label}");
    let counted = node(&|name, _| name == "__main__.Counted", "Counted");
    assert_eq!(references(heap, outer, counted), [(EdgeKind::Internal, "(native)".to_owned())], "{label}");
    let stale = node(&|name, _| name == "__main__.Stale", "Stale");
    assert_eq!(references(heap, outer, stale), [(EdgeKind::Weak, "(native)".to_owned())], "{label}");
    let roots = |to: u32| {
        let to_it = heap.roots.iter().filter(|root| root.edges.iter().any(|edge| edge.target == to));
        to_it.map(|root| root.name.as_str()).collect::<Vec<_>>()
    };
    assert_eq!(roots(lone), ["(native memory)"], "{label}");
    for held in [outer, inner, counted] {
        assert_eq!(roots(held), [""; 0], "{label}");
    }
}

#[test]
fn words_inside_of_blocks_and_words_of_blocks_are_references() {
    let mut is_checked = false;
    for python in interpreters() {
        let Some((program, blocks)) = start(&python) else { continue };
        let mut by_address = blocks.clone();
        by_address.sort_by_key(|block| block.address_avma);
        let heap = heap_with_blocks(program.0.id(), &by_address).unwrap();
        check(&python.display().to_string(), &heap, &blocks);
        is_checked = true;
    }
    if !is_checked {
        not_run("no python3 with ctypes is installed");
    }
}
