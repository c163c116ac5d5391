//! The table of languages in `docs/languages.md`, with the versions of the agent's own tables.

use std::path::Path;

use super::python::{debug_offsets, layout as python};
use super::v8::layout as v8;
use super::walked::{lua, perl, php, ruby};
use crate::modules::java_layout as java;

/// Versions of Node, and of the V8 in each.
const NODES: [(u32, u32); 6] =
    [(18, 0x0a02), (20, 0x0b03), (22, 0x0c04), (24, 0x0d06), (25, 0x0e01), (26, 0x0e06)];

fn dotted(version: u32) -> String {
    format!("{}.{}", version >> 8, version & 0xff)
}

/// Joins names as a sentence does: `a, b and c`.
fn listed(names: &[String]) -> String {
    match names {
        [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        _ => names.concat(),
    }
}

fn dotted_list(versions: impl IntoIterator<Item = u32>) -> String {
    listed(&versions.into_iter().map(dotted).collect::<Vec<_>>())
}

fn java_versions() -> String {
    let (first, last) = (*java::VERSIONS.start(), *java::VERSIONS.end());
    let mut runs: Vec<[u32; 2]> = Vec::new();
    for version in (first..=last).filter(|version| !java::LACKING.contains(version)) {
        match runs.last_mut() {
            Some([_, end]) if *end + 1 == version => *end = version,
            _ => runs.push([version, version]),
        }
    }
    let shown = |&[start, end]: &[u32; 2]| {
        if start == end { start.to_string() } else { format!("{start} to {end}") }
    };
    listed(&runs.iter().map(shown).collect::<Vec<_>>())
}

fn rows() -> Vec<(String, &'static str)> {
    let tabled: Vec<u32> = python::tabled_versions().collect();
    let (first, last) = (dotted(tabled[0]), dotted(tabled[tabled.len() - 1]));
    let stated = dotted(debug_offsets::FIRST_VERSION);
    let nodes = listed(&NODES.map(|(node, _)| node.to_string()));
    let engines = NODES.map(|(_, engine)| dotted(engine)).join(", ");
    let lua_versions =
        |(minor, (first, last)): (usize, (usize, usize))| format!("5.{minor}.{first} to 5.{minor}.{last}");
    let lua = lua::layout::versions().map(lua_versions).collect::<Vec<_>>().join(", ");
    vec![
        (
            format!(
                "CPython {first} to {last} by tables, and from {stated} on as the interpreter states (\
                 release builds; tried: to 3.15)"
            ),
            "function (qualified from 3.11 on), file, line",
        ),
        (
            format!(
                "CPython without the interpreter's lock from {stated} on (tried: 3.13.15 and 3.14.7, built \
                 from Debian's source)"
            ),
            "function, file, line",
        ),
        ("debug builds of CPython to 3.14".to_owned(), "no language frames: their structures are others"),
        (
            format!("JavaScript: Node {nodes} (V8 {engines}), with its workers"),
            "function, script, line: interpreted, by the baseline compiler, by Maglev and by Turbofan, with \
             inlined functions",
        ),
        (
            format!("Java: HotSpot of JDK {} (tried: 11, 17, 21, 25)", java_versions()),
            "class and method, file, line: interpreted, by C1 and C2, with inlined methods; at start and at attach",
        ),
        (
            format!(
                "Ruby {} (tried: 3.1.2, 3.2.3, 3.3.8, 3.4.11 as Debian and Ubuntu build them, at start and \
                 at attach)",
                dotted_list(ruby::versions())
            ),
            "method or block, file, line",
        ),
        (
            format!("PHP {} without threads", listed(&php::VERSIONS.map(str::to_owned))),
            "function with its class, file, line",
        ),
        (
            format!("Perl {} with threads", dotted_list(perl::VERSIONS)),
            "subroutine with its package, file, line of the statement",
        ),
        (
            format!("Lua {lua}, and LuaJIT 2.1"),
            "function by how it was called (LuaJIT: by its first line), file, line; coroutines, and their resumers",
        ),
        ("other versions".to_owned(), "no language frames; the file has a notice that says so"),
        (
            "V8 in a program that does not export V8's version (Deno, Electron)".to_owned(),
            "with V8's own map, if the program writes one (below): function, script and its first line; with V8's \
             jitdump also lines of compiled code. Otherwise no language frames: if the program has Node's \
             interface for addons (`napi_…`), the file has a notice with the remedy",
        ),
    ]
}

#[test]
fn the_documentation_has_the_versions() {
    let mut engines: Vec<u32> = v8::versions().collect();
    engines.sort_unstable();
    assert_eq!(engines, NODES.map(|(_, engine)| engine));
    let mut text = "| language | frames |\n|---|---|\n".to_owned();
    for (versions, frames) in rows() {
        text += &format!("| {versions} | {frames} |\n");
    }
    let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/languages.md");
    heapr_testkit::check_part(&document, "versions", &text);
}
