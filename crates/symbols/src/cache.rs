//! Cache of resolved names on disk: one file for each module.
//!
//! ```text
//! "HEAPRSYM" version:u32 crc of the rest:u32   identity (length, bytes)   symbol table
//! ```
//! The identity names the files that the answers came from, with size and time. When debug
//! information is installed later, or the module is rebuilt, the old answers are discarded.
//!
//! A folder that another user may write is not used: the answers in it could be forged.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use heapr_files::{NewFile, OwnFolder};

use crate::debug_file::DebugFiles;
use crate::module_key::ModuleKey;
use crate::symbol_table::SymbolTable;
use crate::varint::{put_bytes, take_bytes};

const MAGIC: [u8; 8] = *b"HEAPRSYM";
const VERSION: u32 = 5;
const HEAD_BYTES: usize = 16;
/// Largest size in bytes of a cache file that is read.
const FILE_BYTES_MAX: u64 = 1 << 30;

/// Identity of the files that answers come from.
pub(crate) fn identity(files: &DebugFiles) -> Vec<u8> {
    let mut identity = Vec::new();
    for path in
        [files.module.as_deref(), Some(&files.debug), files.supplementary.as_deref()].into_iter().flatten()
    {
        let metadata = fs::metadata(path).ok();
        let facts = metadata.map(|metadata| (metadata.len(), metadata.mtime(), metadata.mtime_nsec()));
        identity.extend_from_slice(format!("{}\0{facts:?}\n", path.display()).as_bytes());
    }
    identity
}

fn name_for(key: &ModuleKey) -> PathBuf {
    let name = key.path.file_name().unwrap_or_default().to_string_lossy();
    let name: String =
        name.chars().filter(|c| c.is_ascii_alphanumeric() || "._-+".contains(*c)).take(64).collect();
    let mut hash = crc32fast::Hasher::new();
    hash.update(key.path.as_os_str().as_encoded_bytes());
    let id: String = if key.build_id.is_empty() {
        format!("{:08x}", hash.finalize())
    } else {
        key.build_id.iter().take(20).map(|byte| format!("{byte:02x}")).collect()
    };
    format!("{name}-{id}.sym").into()
}

/// Reads the cached table of a module, if it came from the same files.
pub(crate) fn load(directory: &Path, key: &ModuleKey, identity: &[u8]) -> Option<SymbolTable> {
    let mut bytes = Vec::new();
    let file = OwnFolder::open(directory).ok()?.regular(&name_for(key)).ok()?;
    file.take(FILE_BYTES_MAX).read_to_end(&mut bytes).ok()?;
    let (head, mut rest) = bytes.split_at_checked(HEAD_BYTES)?;
    let word = |at: usize| head.get(at..at + 4).and_then(|word| word.try_into().ok()).map(u32::from_le_bytes);
    if head[..8] != MAGIC || word(8)? != VERSION || word(12)? != crc32fast::hash(rest) {
        return None;
    }
    if take_bytes(&mut rest)? != identity {
        return None;
    }
    SymbolTable::decode(&mut rest)
}

/// Stores a table; failure to write is ignored.
pub(crate) fn store(directory: &Path, key: &ModuleKey, identity: &[u8], table: &SymbolTable) {
    let mut rest = Vec::new();
    put_bytes(&mut rest, identity);
    table.encode(&mut rest);
    let mut bytes = MAGIC.to_vec();
    bytes.extend_from_slice(&VERSION.to_le_bytes());
    bytes.extend_from_slice(&crc32fast::hash(&rest).to_le_bytes());
    bytes.extend_from_slice(&rest);
    let _ = OwnFolder::made(directory).and_then(|folder| {
        let mut file = NewFile::create_in(&folder, &name_for(key))?;
        file.write_all(&bytes)?;
        file.keep_unsynced()
    });
}
