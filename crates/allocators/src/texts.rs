//! Allocators by the texts that they would print: what is left of them in a stripped file.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use memchr::memmem::Finder;

/// An allocator's name, and a text of its own.
const TEXTS: [(&str, &str); 7] = [
    ("jemalloc", "<jemalloc>: "),
    ("mimalloc", "mimalloc: "),
    ("tcmalloc", "tcmalloc: "),
    ("snmalloc", "snmalloc"),
    ("PartitionAlloc", "partition_alloc"),
    ("GHC's heap", "GHCRTS"),
    ("OCaml's heap", "OCAMLRUNPARAM"),
];
/// Those of runtimes, which are looked for only where a file's name begins so.
const OF_RUNTIMES: [(&str, &str, [&str; 2]); 3] = [
    ("Python's object allocator", "# arenas allocated total", ["python", "libpython"]),
    ("LuaJIT's allocator", "LuaJIT 2.", ["luajit", "libluajit"]),
    ("PostgreSQL's memory contexts", "TopMemoryContext", ["postgres", "postmaster"]),
];
/// What is read at once; a text may lie across two pieces.
const PIECE_BYTES: usize = 1 << 20;
const OVERLAP_BYTES: usize = 32;
/// A larger file is looked at up to here.
const FILE_BYTES_MAX: usize = 256 << 20;

/// The allocators whose texts a file holds.
/// `path`: as the process names it.
pub(crate) fn named_in(file: &Path, path: &Path) -> Vec<String> {
    let Ok(mut file) = File::open(file) else { return Vec::new() };
    let file_name = path.file_name().unwrap_or_default().to_string_lossy();
    let is_such = |starts: &[&str]| starts.iter().any(|start| file_name.starts_with(start));
    let of_runtimes = OF_RUNTIMES.iter().filter(|(.., starts)| is_such(starts));
    let texts = TEXTS.into_iter().chain(of_runtimes.map(|&(name, text, _)| (name, text)));
    let finders: Vec<(&str, Finder<'_>)> = texts.map(|(name, text)| (name, Finder::new(text))).collect();
    let mut found = Vec::new();
    let mut piece = vec![0; OVERLAP_BYTES + PIECE_BYTES];
    let mut begin = OVERLAP_BYTES;
    for _ in 0..FILE_BYTES_MAX / PIECE_BYTES {
        let count = match file.read(&mut piece[OVERLAP_BYTES..]) {
            Ok(count @ 1..) => count,
            _ => break,
        };
        let now = &piece[begin..OVERLAP_BYTES + count];
        let names = finders
            .iter()
            .filter(|(name, finder)| !found.contains(&(*name).to_owned()) && finder.find(now).is_some());
        let names: Vec<String> = names.map(|(name, _)| (*name).to_owned()).collect();
        found.extend(names);
        let kept = count.min(OVERLAP_BYTES);
        piece.copy_within(OVERLAP_BYTES + count - kept..OVERLAP_BYTES + count, OVERLAP_BYTES - kept);
        begin = OVERLAP_BYTES - kept;
    }
    found
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn a_text_across_two_pieces_is_found() {
        let path = std::env::temp_dir().join(format!("heapr-texts-{}", std::process::id()));
        let mut file = File::create(&path).unwrap();
        file.write_all(&vec![b'.'; PIECE_BYTES - 5]).unwrap();
        file.write_all(b"<jemalloc>: Error LuaJIT 2.1 # arenas allocated total").unwrap();
        let found = named_in(&path, Path::new("/usr/bin/luajit"));
        std::fs::remove_file(&path).unwrap();
        assert_eq!(found, ["jemalloc", "LuaJIT's allocator"]);
    }
}
