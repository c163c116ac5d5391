//! Heaps larger than the memory that is free: their columns lie in files without names, in the
//! cache folder or the folder of temporary files. The kernel writes out what is not in use.

use std::fs::File;
use std::path::{Path, PathBuf};

use heapr_files::OwnFolder;
use heapr_filters::quantity::parse_bytes;
use heapr_proc::{Fields, memory_limits};
use heapr_table::quantity::bytes;

use crate::snapshot::kept_folder::cache_folder;

/// Memory of an analysis for each 2 bytes of a dump: measured, with small objects and an index.
const FACTOR_HALVES: u64 = 3;
/// Bytes of a dump for each byte of a packed one, where that is not known.
const UNPACKED: u64 = 8;
/// Environment variable with the memory that counts as free, as in `4G`.
const MEMORY_VARIABLE: &str = "HEAPR_MEMORY";
/// File systems whose files are memory: tmpfs and ramfs.
const IN_MEMORY: [u64; 2] = [0x0102_1994, 0x8584_58f6];

/// Prepares for a dump whose columns may not fit in memory. Without a folder that has room it is
/// read all the same: the estimate may be too high.
pub(super) fn prepare(file: &Path, is_packed: bool) {
    let Ok(facts) = std::fs::metadata(file) else { return };
    let dump_bytes = facts.len().saturating_mul(if is_packed { UNPACKED } else { 1 });
    let needed_bytes = dump_bytes.saturating_mul(FACTOR_HALVES) / 2;
    let Some(free_bytes) = free_memory().filter(|&free| free < needed_bytes) else { return };
    let told = format!("it may need {} of memory, and {} are free", bytes(needed_bytes), bytes(free_bytes));
    for folder in folders() {
        match use_folder(&folder, needed_bytes) {
            Ok(()) => {
                tell!("heapr: {}: {told}: parts of it lie in files in {}", file.display(), folder.display());
                return;
            }
            Err(Unfit::Quietly) => {}
            Err(Unfit::Because(reason)) => warn!("{}: {reason}", folder.display()),
        }
    }
    warn!("{}: {told}, and no folder takes parts of it (TMPDIR names another one)", file.display());
}

/// Memory that heapr may still use: of the machine, and below the limits of its control groups.
fn free_memory() -> Option<u64> {
    if let Ok(size) = std::env::var(MEMORY_VARIABLE) {
        match parse_bytes(&size) {
            Ok(told) => return Some(told),
            Err(error) => warn!("{MEMORY_VARIABLE} is not used: {error:#}"),
        }
    }
    let of_groups = memory_limits(std::process::id()).into_iter().map(|limit| limit.free_bytes);
    of_groups.chain(Fields::of_machine().bytes("MemAvailable")).min()
}

fn folders() -> impl Iterator<Item = PathBuf> {
    let saved = cache_folder().map(|cache| cache.join("heapr/snapshots"));
    let own = saved.filter(|folder| OwnFolder::made(folder).is_ok());
    own.into_iter().chain([std::env::temp_dir()])
}

/// Why a folder is not used.
enum Unfit {
    /// Files in it are memory, or it cannot be opened.
    Quietly,
    Because(String),
}

fn use_folder(folder: &Path, needed_bytes: u64) -> Result<(), Unfit> {
    let held = File::open(folder).map_err(|_| Unfit::Quietly)?;
    let kind = rustix::fs::fstatfs(&held).map_err(|_| Unfit::Quietly)?.f_type as u64;
    if IN_MEMORY.contains(&kind) {
        return Err(Unfit::Quietly);
    }
    let disk = rustix::fs::fstatvfs(&held).map_err(|_| Unfit::Quietly)?;
    let room_bytes = disk.f_bavail.saturating_mul(disk.f_frsize);
    if room_bytes < needed_bytes {
        return Err(Unfit::Because(format!(
            "{} are free on its disk, and files of a dump's columns may need {}",
            bytes(room_bytes),
            bytes(needed_bytes)
        )));
    }
    heapr_inject::keep_large_blocks_in(&held)
        .map_err(|error| Unfit::Because(format!("files of a dump's columns cannot be made: {error}")))
}
