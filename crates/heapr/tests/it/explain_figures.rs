//! Figures of allocators and V8 themselves, compared with what `heapr explain` reads from outside.

use std::process::Command;

use serde_json::Value;

use crate::explained::{Waiting, assert_adds_up, bytes, explain};
use crate::header::Header;
use crate::victim_build::sources;
use crate::victims::is_there;

/// Fails unless two figures agree within a hundredth, or within what printing the figures
/// allocates.
#[track_caller]
fn assert_agrees(found: u64, said: u64, what: &str) {
    const PRINTING_BYTES: u64 = 16 << 10;
    let most = (said / 100).max(PRINTING_BYTES);
    assert!(found.abs_diff(said) <= most, "{what}: {found} is read, {said} is said");
}

fn can_be_built(victim: &str) -> bool {
    let header = Header::read(&sources().join(victim));
    let missing = header.needs.iter().find(|need| !is_there(need));
    if let Some(missing) = missing {
        heapr_testkit::not_run(format_args!("{victim} needs {missing}"));
    }
    missing.is_none()
}

#[test]
fn what_is_read_of_an_allocators_heap_is_what_it_says_of_itself() {
    /// Name of a figure, and the class as which heapr reads it.
    type Figure = (&'static str, &'static str);
    const TCMALLOC: &[Figure] = &[
        ("allocated", "allocated_bytes"),
        ("page_heap_free", "page_heap_free_bytes"),
        ("caches", "thread_cache_bytes"),
        ("transfer", "transfer_cache_bytes"),
        ("central", "central_cache_bytes"),
    ];
    let cases: [(&str, &str, &[Figure]); 4] = [
        ("jemalloc", "", &[("allocated", "allocated_bytes"), ("active", "active_bytes")]),
        ("tcmalloc", "", TCMALLOC),
        // Allocator in the program's own file.
        ("tcmalloc", "_linked", TCMALLOC),
        ("mimalloc", "", &[("allocated", "allocated_bytes")]),
    ];
    for (allocator, how, figures) in cases {
        let source = format!("resident/figures_{allocator}{how}.c");
        if !can_be_built(&source) {
            continue;
        }
        let victim = Waiting::start(&source, &[]);
        victim.stop();
        let answer = explain(victim.pid(), &[]);
        assert_adds_up(&answer, victim.pid());
        let resident = &answer["resident"];
        let own = &resident["allocators"][0];
        assert_eq!(own["allocator"], allocator, "{resident}");
        for (said, read) in figures {
            let found = own["figures"][read].as_u64().unwrap();
            assert_agrees(found, victim.said[*said], &format!("{allocator} {read}"));
        }
        // Half of the large blocks was never written.
        let live = bytes(resident, "allocator_live", "bytes");
        assert!(live > 20 << 20 && live < victim.said["allocated"], "{live}: {resident}");
        let slack = bytes(resident, "allocator_slack", "bytes");
        assert!(slack > 20 << 20, "{slack}: {resident}");
        assert_eq!(bytes(resident, "unknown", "bytes") + bytes(resident, "other_allocator", "bytes"), 0);
    }
}

#[test]
fn what_is_read_of_glibcs_heap_is_what_it_says_of_itself() {
    let victim = Waiting::start("resident/figures_glibc.c", &[]);
    victim.stop();
    let answer = explain(victim.pid(), &["--deep"]);
    assert_adds_up(&answer, victim.pid());
    let figures = &answer["resident"]["malloc_figures"];
    for name in ["arena_bytes", "used_bytes", "free_bytes", "top_bytes", "mapped_bytes"] {
        assert_agrees(figures[name].as_u64().unwrap(), victim.said[name], name);
    }
    assert_eq!(
        answer["resident"]["malloc"]["mapped_blocks"].as_u64(),
        victim.said.get("mapped_blocks").copied()
    );
}

#[test]
fn v8_tells_what_its_heap_holds_and_its_port_is_closed_again() {
    if Command::new("node").arg("--version").output().is_err() {
        heapr_testkit::not_run("there is no node");
        return;
    }
    let mut node = Command::new("node");
    // Other tests may use the default port.
    node.arg("--inspect-port=0").arg(sources().join("resident/v8_heap.js"));
    let mut victim = Waiting::begin(node);
    const NAMES: [&str; 5] =
        ["used_bytes", "total_bytes", "external_bytes", "array_buffer_bytes", "old_space"];
    let before = NAMES.map(|name| victim.ask(name).1);
    let answer = explain(victim.pid(), &["--v8"]);
    let v8 = &answer["resident"]["v8"];
    let told = v8["told_by"].as_str().unwrap_or_else(|| panic!("{}", answer["resident"]["not_told"]));
    assert!(told.contains("opened by a signal") && !told.contains("STILL OPEN"), "{told}");
    let spaces = v8["spaces"].as_array().unwrap();
    let old = spaces.iter().find(|space: &&Value| space["name"] == "old_space").unwrap();
    for (name, before) in NAMES.into_iter().zip(before) {
        let (_, after) = victim.ask(name);
        let found = if name == "old_space" { &old["used_bytes"] } else { &v8[name] }.as_u64().unwrap();
        // A collection may run before or after.
        let said = if found.abs_diff(before) < found.abs_diff(after) { before } else { after };
        assert_agrees(found, said, name);
    }
}
