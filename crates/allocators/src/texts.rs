//! Recognition of allocators by the texts that they print: the only traces of them in a stripped
//! file.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use heapr_known::allocator_libraries::{LIBRARIES, OTHER_TEXTS};
use heapr_known::runtimes;
use heapr_symbols::constant_sections;
use memchr::memmem::Finder;

/// Size in bytes of the pieces in which a file is read; consecutive pieces overlap, because a text
/// may cross their boundary.
const PIECE_BYTES: usize = 1 << 20;
const OVERLAP_BYTES: usize = 32;
/// Largest part of a file that is searched, in bytes.
const FILE_BYTES_MAX: u64 = 256 << 20;

/// Names of the allocators whose texts a file contains. Constants are searched, or the whole file
/// if it lists no sections. `path` is the process's name for the file.
pub(crate) fn named_in(file: &Path, path: &Path) -> Vec<String> {
    let Ok(opened) = File::open(file) else { return Vec::new() };
    let file_name = path.file_name().unwrap_or_default().to_string_lossy();
    let is_such =
        |starts: &[&str]| starts.is_empty() || starts.iter().any(|start| file_name.starts_with(start));
    let of_libraries = LIBRARIES.iter().map(|library| (library.name, library.text));
    let others =
        OTHER_TEXTS.iter().filter(|other| is_such(other.files)).map(|other| (other.name, other.text));
    let of_runtime = runtimes::of_file(&file_name).map(|row| (row.allocator, row.allocator_text));
    let texts = of_libraries.chain(others).chain(of_runtime).filter(|(_, text)| !text.is_empty());
    let mut search = Search {
        file: opened,
        wanted: texts.map(|(name, text)| (name, Finder::new(text))).collect(),
        found: Vec::new(),
        piece: vec![0; PIECE_BYTES],
        bytes_left: FILE_BYTES_MAX,
    };
    for (offset, bytes) in constant_sections(file).unwrap_or_else(|| vec![(0, u64::MAX)]) {
        search.look_at(offset, bytes);
    }
    search.found
}

/// A search for texts in ranges of a file.
struct Search<'a> {
    file: File,
    /// Names of allocators with their texts that are not found yet.
    wanted: Vec<(&'a str, Finder<'a>)>,
    found: Vec<String>,
    piece: Vec<u8>,
    bytes_left: u64,
}

impl Search<'_> {
    fn look_at(&mut self, mut offset: u64, bytes: u64) {
        let end = offset.saturating_add(bytes);
        while offset < end && self.bytes_left > 0 {
            let most = (end - offset).min(PIECE_BYTES as u64) as usize;
            let count = match self.file.read_at(&mut self.piece[..most], offset) {
                Ok(count @ 1..) => count,
                _ => return,
            };
            let piece = &self.piece[..count];
            for (name, _) in self.wanted.extract_if(.., |(_, finder)| finder.find(piece).is_some()) {
                self.found.push(name.to_owned());
            }
            // The next piece begins with the end of this one, in which a text may have begun.
            let is_last = count <= OVERLAP_BYTES || offset.saturating_add(count as u64) >= end;
            let passed = if is_last { count } else { count - OVERLAP_BYTES };
            offset = offset.saturating_add(passed as u64);
            self.bytes_left = self.bytes_left.saturating_sub(passed as u64);
        }
    }
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
