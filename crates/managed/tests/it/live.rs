//! The heap of a running CPython, compared with what the program says of itself. `HEAPR_PYTHONS`
//! names the interpreters, separated by colons; the default is the installed `python3`.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use heapr_managed::{EdgeKind, ManagedHeap, RootKind};
use heapr_testkit::not_run;

use crate::memory::{heap_of, interpreters};

/// Objects that the forked child makes while it tells, and those of the parent since the fork.
const MADE_MEANWHILE: usize = 40;

/// A program that stands still, and what it has written.
struct Told {
    child: Child,
    sizes: HashMap<u64, (i64, String)>,
    edges: Vec<(u64, u64)>,
}

impl Drop for Told {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Told {
    fn of(python: &Path, folder: &Path) -> Self {
        let told = folder.join("told");
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/oracle.py");
        let mut child = Command::new(python)
            .args(["-I", "-X", "utf8"])
            .args([&program, &told])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "READY\n");
        let mut all = Self { child, sizes: HashMap::new(), edges: Vec::new() };
        for line in BufReader::new(File::open(told).unwrap()).lines().map(Result::unwrap) {
            let words: Vec<&str> = line.splitn(4, ' ').collect();
            let number = |at: usize| words[at].parse::<i64>().unwrap();
            match words[0] {
                "O" => drop(all.sizes.insert(number(1) as u64, (number(2), words[3].to_owned()))),
                _ => all.edges.push((number(1) as u64, number(2) as u64)),
            }
        }
        all
    }

    fn read(&self) -> ManagedHeap {
        heap_of(self.child.id()).unwrap_or_else(|error| panic!("{error}"))
    }
}

#[test]
fn a_running_program_has_the_objects_references_and_sizes_that_it_says_itself() {
    let all = interpreters();
    if all.is_empty() {
        not_run("no python3 is installed");
    }
    for python in all {
        let folder = tempfile::tempdir().unwrap();
        let told = Told::of(&python, folder.path());
        let heap = told.read();
        compare(&python.display().to_string(), &told, &heap);
        check_names(&python.display().to_string(), &heap);
    }
}

fn compare(label: &str, told: &Told, heap: &ManagedHeap) {
    let nodes: HashMap<u64, u32> =
        heap.nodes.iter().enumerate().map(|(number, node)| (node.address_avma, number as u32)).collect();
    let missing: Vec<_> = told.sizes.iter().filter(|(address, _)| !nodes.contains_key(address)).collect();
    let mut other_sizes: HashMap<&str, (usize, i64)> = HashMap::new();
    let mut alike = 0;
    for (address, (size, class)) in &told.sizes {
        let Some(&node) = nodes.get(address) else { continue };
        let own = heap.own_bytes(node) as i64;
        if own == *size {
            alike += 1;
        } else {
            let of_class = other_sizes.entry(class).or_default();
            of_class.0 += 1;
            of_class.1 += own - size;
        }
    }
    let mut edges: HashSet<(u64, u64)> = HashSet::new();
    for node in 0..heap.nodes.len() as u32 {
        let from = heap.nodes[node as usize].address_avma;
        for edge in heap.edges_of(node) {
            edges.insert((from, heap.nodes[edge.target as usize].address_avma));
        }
    }
    // Entries of a dict that is shown as its owner's attributes are references of the owner, and
    // references to the dict lead to the owner.
    let mut owners: HashMap<u64, u64> = HashMap::new();
    for node in 0..heap.nodes.len() as u32 {
        for edge in heap.edges_of(node) {
            if edge.name.kind() == EdgeKind::Internal && heap.strings.get(edge.name.number()) == "__dict__" {
                owners.insert(
                    heap.nodes[edge.target as usize].address_avma,
                    heap.nodes[node as usize].address_avma,
                );
            }
        }
    }
    let owner = |at: &u64| owners.get(at).copied().unwrap_or(*at);
    let is_there = |&&(from, to): &&(u64, u64)| {
        edges.contains(&(from, to))
            || edges.contains(&(owner(&from), to))
            || edges.contains(&(from, owner(&to)))
            || edges.contains(&(owner(&from), owner(&to)))
            || owner(&from) == owner(&to)
    };
    let known = |&&(from, to): &&(u64, u64)| told.sizes.contains_key(&from) && nodes.contains_key(&to);
    let lost: Vec<_> = told.edges.iter().filter(known).filter(|edge| !is_there(edge)).collect();
    let mut lost_by_class: HashMap<(&str, &str), usize> = HashMap::new();
    for (from, to) in &lost {
        let class = |at: &u64| told.sizes.get(at).map_or("?", |(_, class)| class.as_str());
        *lost_by_class.entry((class(from), class(to))).or_default() += 1;
    }
    println!(
        "{label}: {} {} of {} objects, {} besides; sizes of {alike}; {} of {} references not found",
        heap.runtime,
        told.sizes.len() - missing.len(),
        told.sizes.len(),
        nodes.len() as i64 - (told.sizes.len() - missing.len()) as i64,
        lost.len(),
        told.edges.len(),
    );
    let (lost_count, edge_count) = (lost.len(), told.edges.len());
    println!("  missing: {:?}", missing.iter().take(10).collect::<Vec<_>>());
    let mut other: Vec<_> = other_sizes.into_iter().collect();
    other.sort_by_key(|(_, (count, _))| std::cmp::Reverse(*count));
    println!("  sizes: {:?}", &other[..other.len().min(12)]);
    let mut lost: Vec<_> = lost_by_class.into_iter().collect();
    lost.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    println!("  references: {:?}", &lost[..lost.len().min(20)]);
    for root in &heap.roots {
        println!("  root {} {:?}: {}", root.name, root.kind, root.edges.len());
    }
    assert!(missing.len() <= MADE_MEANWHILE, "{label}: {} objects not found", missing.len());
    assert!(lost_count * 100 <= edge_count, "{label}: {lost_count} of {edge_count} references not found");
    let found = told.sizes.len() - missing.len();
    assert!(alike * 100 >= found * 85, "{label}: sizes of {alike} of {found} objects are alike");
}

fn check_names(label: &str, heap: &ManagedHeap) {
    let named = |name: &str| heap.nodes.iter().position(|node| heap.name_of(node) == name);
    let main = named("module __main__").unwrap_or_else(|| panic!("{label}: no module __main__")) as u32;
    let attribute = |node: u32, wanted: &str| {
        heap.edges_of(node)
            .iter()
            .find(|edge| edge.name.kind() != EdgeKind::Item && heap.strings.get(edge.name.number()) == wanted)
            .map(|edge| edge.target)
            .unwrap_or_else(|| panic!("{label}: no {wanted}"))
    };
    let class = |node: u32| heap.name_of(&heap.nodes[node as usize]).to_owned();
    assert_eq!(class(attribute(main, "QUOTES")), "dict", "{label}");
    let late = attribute(main, "LATE");
    let quote = heap.edges_of(late)[0].target;
    assert_eq!(class(quote), "__main__.Quote", "{label}");
    assert_eq!(class(attribute(quote, "parts")), "list", "{label}");
    let slotted = heap.edges_of(attribute(main, "SLOTTED"))[0].target;
    assert_eq!(class(attribute(slotted, "right")), "str", "{label}");
    let default = attribute(main, "DEFAULT");
    assert_eq!(class(attribute(default, "['resize']")), "list", "{label}");
    for held in ["SECRETS", "OPEN", "DATA"].map(|name| attribute(main, name)) {
        let lists = heap.edges_of(held).iter().filter(|edge| class(edge.target) == "list");
        assert_eq!(lists.count(), 1, "{label}");
    }
    let told: Vec<_> = heap.strings.all().iter().filter(|text| text.contains("alice@")).collect();
    assert!(told.is_empty(), "{label}: {told:?}");
    let error = heap.edges_of(attribute(main, "ERRORS"))[0].target;
    let frame = attribute(attribute(error, "__traceback__"), "tb_next");
    let frame = attribute(frame, "tb_frame");
    assert!(class(frame).starts_with("frame fail (oracle.py:"), "{label}: {}", class(frame));
    assert_eq!(class(attribute(frame, "rows")), "list", "{label}");
    let generator = heap.edges_of(attribute(main, "GENERATORS"))[0].target;
    // Up to 3.10 the frame of a generator is an object of its own.
    let frame = heap.edges_of(generator).iter().map(|edge| edge.target);
    let frame = frame.into_iter().find(|&target| class(target).starts_with("frame ")).unwrap_or(generator);
    assert_eq!(class(attribute(frame, "held")), "list", "{label}");
    let place = heap.places[heap.label_of(&heap.nodes[quote as usize]).place as usize - 1];
    assert!(heap.strings.get(place.file).ends_with("oracle.py"), "{label}");
    let garbage = heap.roots.iter().find(|root| root.kind == RootKind::Garbage);
    let garbage = garbage.map_or(0, |root| root.edges.len());
    assert!((450..=550).contains(&garbage), "{label}: {garbage} circles");
}
