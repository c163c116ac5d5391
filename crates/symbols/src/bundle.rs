//! Names of many modules as one sequence of bytes, for embedding in a trace.
//!
//! ```text
//! "HEAPRBDL" version:u32   count, { path, build-id, symbol table } * count
//! ```

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use crate::module_key::ModuleKey;
use crate::symbol_table::SymbolTable;
use crate::varint::{put, put_bytes, take, take_bytes};

const MAGIC: [u8; 12] = *b"HEAPRBDL\x01\0\0\0";

/// Encodes the names of some modules.
#[must_use]
pub fn encode_bundle<'a>(tables: impl IntoIterator<Item = (&'a ModuleKey, &'a SymbolTable)>) -> Vec<u8> {
    let tables: Vec<_> = tables.into_iter().collect();
    let mut bytes = MAGIC.to_vec();
    put(&mut bytes, tables.len() as u64);
    for (key, table) in tables {
        put_bytes(&mut bytes, key.path.as_os_str().as_bytes());
        put_bytes(&mut bytes, &key.build_id);
        table.encode(&mut bytes);
    }
    bytes
}

/// Decodes untrusted bytes; `None` if they are invalid.
#[must_use]
pub fn decode_bundle(bytes: &[u8]) -> Option<Vec<(ModuleKey, SymbolTable)>> {
    let mut rest = bytes.strip_prefix(&MAGIC)?;
    let count = take(&mut rest).filter(|&count| count <= rest.len() as u64)?;
    (0..count)
        .map(|_| {
            let path = PathBuf::from(OsStr::from_bytes(take_bytes(&mut rest)?));
            let build_id = take_bytes(&mut rest)?.to_vec();
            Some((ModuleKey { path, build_id }, SymbolTable::decode(&mut rest)?))
        })
        .collect()
}
