//! Finds second lists of names that `crates/known` has: files of runtimes, allocator libraries, and
//! the texts by which they are recognised.

use std::path::Path;

use anyhow::Context as _;
use heapr_known::allocator_libraries::{FUNCTIONS, LIBRARIES, MUSL_LOADER, OTHER_TEXTS, PROBES};
use heapr_known::runtimes::RUNTIMES;

use crate::sources::rust_files;

/// Number of lines in which different programs' names make a list, and the number of names.
const LIST_LINES: usize = 6;
const LIST_NAMES: usize = 3;
/// Files that name a library for another reason, and the reason.
const ALLOWED: &[(&str, &str)] =
    &[("crates/session/src/flags/watched_filesystems.rs", "the C libraries' loaders")];

/// Returns the places of such names in the sources of all crates, without their tests.
pub(crate) fn breaches(root: &Path) -> anyhow::Result<Vec<String>> {
    let mut found = Vec::new();
    for path in rust_files(&root.join("crates"))? {
        let shown = path.strip_prefix(root).unwrap_or(&path).display().to_string();
        let is_other =
            shown.starts_with("crates/known/") || !shown.contains("/src/") || shown.contains("/tests");
        if is_other || ALLOWED.iter().any(|(allowed, _)| *allowed == shown) {
            continue;
        }
        let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        found.extend(in_source(&text).into_iter().map(|(line, what)| format!("{shown}:{line}: {what}")));
    }
    Ok(found)
}

/// Returns the breaches of a source, each with its line.
fn in_source(source: &str) -> Vec<(usize, String)> {
    let code = source.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    let mut found = Vec::new();
    let mut programs: Vec<(usize, &str)> = Vec::new();
    let mut functions: Vec<(usize, &str)> = Vec::new();
    let lines = code.lines().enumerate().filter(|(_, line)| !line.trim_start().starts_with("//"));
    for (number, line) in lines {
        for literal in line.split('"').skip(1).step_by(2) {
            if let Some(name) = library_in(literal) {
                found.push((number + 1, format!("\"{literal}\": {name} stands in crates/known")));
            }
            if RUNTIMES.iter().any(|row| row.files.contains(&literal)) {
                programs.push((number + 1, literal));
            }
            if FUNCTIONS.contains(&literal) || PROBES.contains(&literal) {
                functions.push((number + 1, literal));
            }
        }
    }
    found.extend(
        list_in(&programs).map(|line| (line, "a list of runtimes' files: see crates/known".to_owned())),
    );
    let of_functions = "a list of allocators' functions: see crates/known".to_owned();
    found.extend(list_in(&functions).map(|line| (line, of_functions)));
    found
}

/// Returns the library or the text in a literal.
fn library_in(literal: &str) -> Option<&'static str> {
    let files = RUNTIMES.iter().flat_map(|row| row.files.iter().copied());
    let libraries = files.filter(|file| file.starts_with("lib"));
    let libraries = libraries.chain(LIBRARIES.iter().map(|library| library.file)).chain([MUSL_LOADER]);
    let mut libraries = libraries.filter(|file| !file.is_empty());
    let texts =
        LIBRARIES.iter().map(|library| library.text).chain(OTHER_TEXTS.iter().map(|other| other.text));
    let texts = texts.chain(RUNTIMES.iter().map(|row| row.allocator_text)).filter(|text| !text.is_empty());
    let name = literal.rsplit('/').next().unwrap_or_default();
    // Words of a sentence are no file's name.
    let is_file = |file: &&str| {
        name.strip_prefix(*file)
            .is_some_and(|rest| !rest.contains(' ') && !rest.starts_with(char::is_alphabetic))
    };
    libraries.find(is_file).or_else(|| texts.into_iter().find(|text| literal == *text))
}

/// Returns the line of the first of [`LIST_NAMES`] different names within [`LIST_LINES`] lines.
fn list_in(names: &[(usize, &str)]) -> Option<usize> {
    names.iter().enumerate().find_map(|(first, &(line, _))| {
        let near = names[first..].iter().take_while(|(other, _)| other - line < LIST_LINES);
        let mut near: Vec<&str> = near.map(|(_, name)| *name).collect();
        near.sort_unstable();
        near.dedup();
        (near.len() >= LIST_NAMES).then_some(line)
    })
}

#[cfg(test)]
mod tests {
    use super::in_source;

    #[test]
    fn a_second_list_is_found() {
        let lists = [
            "const A: &[&str] = &[\"libjemalloc\"];",
            "let is_node = maps(b\"/libnode.so\");",
            "[\"node\",\n\"deno\",\n\"bun\"]",
            "(\"jemalloc\", \"<jemalloc>: \")",
            "[\"mallocx\", \"mi_malloc\", \"tc_malloc\"]",
            "starts_with(\"ld-musl\")",
        ];
        for source in lists {
            assert_eq!(in_source(source).len(), 1, "{source}");
        }
        let others = [
            "// \"libjemalloc\"",
            "\"node\"\n\"nodes\"",
            "\"libnoded\"",
            "\"heapr run: libjemalloc is loaded\"",
            "f();\n#[cfg(test)]\nmod tests { \"libjemalloc\" }",
        ];
        for source in others {
            assert_eq!(in_source(source), [], "{source}");
        }
    }
}
