//! The heap of a running Ruby, compared with what it dumps itself, and with its objects' names.
//! `HEAPR_RUBIES` names the interpreters, separated by colons; the default is the installed `ruby`.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use heapr_managed::{EdgeKind, Interpreter, ManagedHeap, RootKind};
use heapr_testkit::{Growing, not_run};
use heapr_v8::analysis::Confidence;
use serde_json::Value;

use crate::memory::ruby_heap_of;
use crate::victims::suspects_between;

/// Objects that the program makes to dump the others.
const MADE_MEANWHILE: usize = 40;

/// The interpreters under test.
pub(crate) fn rubies() -> Vec<PathBuf> {
    match std::env::var_os("HEAPR_RUBIES") {
        Some(named) => std::env::split_paths(&named).collect(),
        None => vec![PathBuf::from("/usr/bin/ruby")].into_iter().filter(|it| it.exists()).collect(),
    }
}

/// Program that waits for lines, from the folder of this file.
fn program(ruby: &Path, name: &str, argument: &Path) -> Growing {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it").join(name);
    let mut command = Command::new(ruby);
    command.arg(file).arg(argument).env_remove("RUBYOPT").stderr(Stdio::inherit());
    Growing::of(command).expect("the program is ready")
}

/// Heap of a program that stands still, and the objects that it dumps then, by address.
fn read_and_dumped(ruby: &Path) -> (ManagedHeap, HashMap<u64, Value>) {
    let folder = tempfile::tempdir().unwrap();
    let dump = folder.path().join("dump.json");
    let mut program = program(ruby, "ruby_oracle.rb", &dump);
    let heap = ruby_heap_of(program.pid()).unwrap_or_else(|error| panic!("{error}"));
    program.step();
    let text = std::fs::read(&dump).unwrap();
    let lines =
        text.split(|&byte| byte == b'\n').filter_map(|line| serde_json::from_slice::<Value>(line).ok());
    let objects = lines.filter_map(|line| Some((address(line.get("address")?)?, line)));
    (heap, objects.filter(|(_, line)| line["type"] != "SHAPE").collect())
}

fn address(value: &Value) -> Option<u64> {
    u64::from_str_radix(value.as_str()?.strip_prefix("0x")?, 16).ok()
}

#[test]
fn a_running_ruby_has_the_objects_references_and_sizes_that_it_dumps() {
    if rubies().is_empty() {
        not_run("no ruby is installed");
    }
    for ruby in rubies() {
        let label = ruby.display();
        let (heap, dumped) = read_and_dumped(&ruby);
        let nodes: HashMap<u64, u32> =
            (0..).zip(&heap.nodes).map(|(it, node)| (node.address_avma, it)).collect();
        let missing = dumped.keys().filter(|address| !nodes.contains_key(address)).count();
        assert!(dumped.len() > 20_000 && missing < MADE_MEANWHILE, "{label}: {missing} of {}", dumped.len());
        let (mut sized, mut unequal, mut referred, mut lost) = (0_usize, 0_usize, 0_usize, 0_usize);
        for (address_avma, object) in &dumped {
            let Some(&node) = nodes.get(address_avma) else { continue };
            // Others have parts that Ruby counts by rules of its own.
            if !["STRING", "ARRAY", "HASH", "OBJECT", "STRUCT", "BIGNUM"]
                .contains(&object["type"].as_str().unwrap())
            {
                continue;
            }
            sized += 1;
            unequal += usize::from(object["memsize"] != heap.own_bytes(node));
            let targets: HashSet<u64> = heap
                .edges_of(node)
                .iter()
                .map(|edge| heap.nodes[edge.target as usize].address_avma)
                .collect();
            for target in object["references"].as_array().into_iter().flatten().filter_map(address) {
                referred += 1;
                lost += usize::from(nodes.contains_key(&target) && !targets.contains(&target));
            }
        }
        println!(
            "{label}: {sized} sizes, {unequal} unequal; {referred} references, {lost} lost; {missing} missing"
        );
        assert!(unequal * 1_000 < sized, "{label}: {unequal} of {sized} sizes");
        assert!(lost * 1_000 < referred, "{label}: {lost} of {referred} references");
        check_names(&heap);
        check_roots(&heap);
    }
}

/// Whether a node of one name refers to one of another by a name.
fn has(heap: &ManagedHeap, from: &str, name: &str, to: &str) -> bool {
    let all = heap.nodes.iter().enumerate().filter(|(_, node)| heap.name_of(node) == from);
    all.into_iter().flat_map(|(node, _)| heap.edges_of(node as u32)).any(|edge| {
        edge.name.kind() != EdgeKind::Item
            && heap.strings.get(edge.name.number()) == name
            && heap.name_of(&heap.nodes[edge.target as usize]) == to
    })
}

fn check_names(heap: &ManagedHeap) {
    for (from, name, to) in [
        ("class Object", "Shop", "module Shop"),
        ("module Shop", "Store", "class Shop::Store"),
        ("class Shop::Store", "@@all", "Hash"),
        ("class Shop::Store", "CONFIG", "Hash"),
        ("class Shop::Store", "@registry", "Set"),
        ("Hash", "[:names]", "Array"),
        ("Shop::Cart", "@owner", "String"),
        ("Shop::Cart", "@by_number", "Hash"),
        ("Shop::Line", "cart", "Shop::Cart"),
        ("Shop::Wide", "f12", "String"),
        ("Late", "@v29", "String"),
        ("String", "@tag", "Object"),
        ("Array", "@tag", "Object"),
        ("variables of a block", "local", "Array"),
        ("Proc", "(variables)", "variables of a block"),
        ("Alone", "(class)", "class Alone"),
        ("Object", "(class)", "singleton class"),
    ] {
        assert!(has(heap, from, name, to), "{from} {name} {to}");
    }
}

fn check_roots(heap: &ManagedHeap) {
    let has_root = |name: &str, edge: &str| {
        let roots = heap.roots.iter().filter(|root| root.name.starts_with(name));
        roots.flat_map(|root| &root.edges).any(|it| heap.strings.get(it.name.number()) == edge)
    };
    assert!(has_root("(global variables)", "$sessions"));
    assert!(has_root("thread ", "[:context]"));
    assert!(has_root("frame <main> (ruby_oracle.rb:", "(variables)"));
    // What a fiber has on its stack is held by it.
    let garbage = heap.roots.iter().find(|root| root.kind == RootKind::Garbage);
    let garbage = garbage.map_or(0, |root| root.edges.len());
    // Without the blocks of the C library, handlers of code are not found.
    assert!(garbage < 60, "{garbage} pieces of garbage");
    let native = heap.roots.iter().find(|root| root.name == "(native memory)");
    let native = native.map_or(0, |root| root.edges.len());
    assert!(native < 1_500, "{native} objects that only native memory holds");
}

/// Checks that a victim's first suspect is this owner, which collects so many of a class.
fn leaks(name: &str, owner: &str, class: &str, count: i64) {
    if rubies().is_empty() {
        not_run("no ruby is installed");
    }
    for ruby in rubies() {
        let label = format!("{} {name}", ruby.display());
        let found = suspects_between(victim(&ruby, name), Interpreter::Ruby);
        let first = found.suspects.first().unwrap_or_else(|| panic!("{label}: no suspects"));
        assert_eq!(first.name, owner, "{label}: {:?}", first.reasons);
        assert_eq!(first.confidence, Confidence::High, "{label}: {:?}", first.reasons);
        let collected = first.collects.iter().find(|it| it.class == class);
        let collected = collected.unwrap_or_else(|| panic!("{label}: {:?}", first.collects));
        assert!((collected.count - count).abs() * 50 <= count, "{label}: {collected:?}");
    }
}

fn is_healthy(name: &str) {
    for ruby in rubies() {
        let found = suspects_between(victim(&ruby, name), Interpreter::Ruby);
        let sure = found.suspects.iter().find(|suspect| suspect.confidence > Confidence::Low);
        assert!(sure.is_none(), "{} {name}: {sure:?}", ruby.display());
    }
}

fn victim(ruby: &Path, name: &str) -> Growing {
    let file =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../victims/ruby/heaps").join(name).join("main.rb");
    let mut command = Command::new(ruby);
    command.arg(file).env_remove("RUBYOPT");
    Growing::of(command).expect("the program is ready")
}

#[test]
fn a_constant_of_a_module_that_holds_what_grows_is_named() {
    leaks("constant-cache", "module Rates: CACHE (Hash)", "Rates::Rate", 20_000);
}

#[test]
fn a_global_variable_that_holds_what_grows_is_named() {
    leaks("global-listeners", "$listeners (Array)", "Widget", 20_000);
}

#[test]
fn a_local_variable_that_holds_what_grows_is_named() {
    leaks("local-server", "frame <main> (main.rb:1): server.@history (Array)", "Request", 20_000);
}

#[test]
fn a_variable_of_a_thread_that_holds_what_grows_is_named() {
    leaks("thread-context", "thread 1: [:contexts] (Array)", "Context", 20_000);
}

#[test]
fn a_cache_of_a_fixed_size_and_circles_are_no_leaks() {
    if rubies().is_empty() {
        not_run("no ruby is installed");
    }
    is_healthy("healthy-lru");
    is_healthy("healthy-circles");
}
