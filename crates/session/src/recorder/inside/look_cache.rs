//! Cache of searched files on disk, one record per module. A new process of a build maps the same
//! large libraries as the last one. Reading their symbol tables takes longer than the process runs.
//!
//! ```text
//! hash of the rest, 16 digits   newline   a [`Record`] in JSON
//! ```
//! A record is valid only for the very file that was read (device, inode, size, times of the last
//! changes). The table of allocators must be the same, too. The build id is not enough: a file
//! states it about itself. Addresses to be hooked must not come from a file that merely claims to
//! be another one.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{Read as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use heapr_allocators::{FoundAllocator, FoundFunction, InsideOf, ModuleKind, Sought};
use heapr_files::{NewFile, OwnFolder};
use heapr_symbols::{GoPlaces, GoProgram, SymbolOptions, has_separate_debug_file};
use heapr_wire::Signature;
use serde::{Deserialize, Serialize};

use crate::content_hash::content_hash;

/// Version of the record: increases with each change of the record or of what a search finds.
const VERSION: u32 = 2;
/// Least size of a file that has a record. A smaller one is read as fast as its record.
const FILE_BYTES_LEAST: u64 = 64 << 10;
/// Largest number of records in the folder: many times what a machine's builds map.
const RECORDS_MAX: usize = 4096;
/// Largest size of a record that this cache writes.
const RECORD_BYTES_MAX: u64 = 1 << 20;

/// Identity of a file: device, inode, bytes, times of the last changes of content and metadata in
/// ns.
pub(super) type FileIdentity = [i128; 5];

/// Returns the identity of a file.
pub(super) fn identity_of(file: &Path) -> Option<FileIdentity> {
    let facts = std::fs::metadata(file).ok()?;
    let ns = |seconds: i64, ns: i64| i128::from(seconds) * 1_000_000_000 + i128::from(ns);
    Some([
        facts.dev().into(),
        facts.ino().into(),
        facts.len().into(),
        ns(facts.mtime(), facts.mtime_nsec()),
        ns(facts.ctime(), facts.ctime_nsec()),
    ])
}

/// Result of a search in one file.
pub(super) type Found = (InsideOf, Option<GoProgram>);

/// Folder of records.
#[derive(Debug)]
pub(super) struct LookCache {
    folder: PathBuf,
    table_hash: u64,
}

/// File of a module.
#[derive(Debug, Clone, Copy)]
pub(super) struct ModuleFile<'a> {
    /// Path by which the recorder opens the file.
    pub(super) file: &'a Path,
    /// Path of the file as the process names it.
    pub(super) path: &'a Path,
    pub(super) kind: ModuleKind,
    pub(super) identity: FileIdentity,
}

#[derive(Serialize, Deserialize)]
struct Record {
    version: u32,
    table_hash: u64,
    identity: Vec<String>,
    named_allocators: Vec<String>,
    is_stripped: bool,
    build_id: Vec<u8>,
    allocators: Vec<AllocatorRecord>,
    go: Option<(String, Option<[u64; 4]>)>,
}

#[derive(Serialize, Deserialize)]
struct AllocatorRecord {
    name: String,
    heap: String,
    is_whole: bool,
    functions: Vec<FunctionRecord>,
}

#[derive(Serialize, Deserialize)]
struct FunctionRecord {
    name: String,
    svma: u64,
    size_bytes: u64,
    signature_word: u64,
    instead_svma: Option<u64>,
    may_throw: bool,
    keeps_convention: bool,
}

impl LookCache {
    /// Cache of the user; `None` without a cache folder.
    pub(super) fn of_user(sought: &Sought) -> Option<Self> {
        let folder = SymbolOptions::default().cache_dir?.parent()?.join("inside");
        Some(Self::new(folder, sought))
    }

    fn new(folder: PathBuf, sought: &Sought) -> Self {
        let mut hash = DefaultHasher::new();
        sought.hash(&mut hash);
        Self { folder, table_hash: hash.finish() }
    }

    /// Loads the result for this very file.
    pub(super) fn load(&self, module: &ModuleFile<'_>, options: &SymbolOptions) -> Option<Found> {
        if !is_worth_it(module) {
            return None;
        }
        let mut text = String::new();
        let file = OwnFolder::open(&self.folder).ok()?.regular(&name_of(module)).ok()?;
        file.take(RECORD_BYTES_MAX).read_to_string(&mut text).ok()?;
        let (hash, rest) = text.split_once('\n')?;
        if hash != shown_hash(rest) {
            return None;
        }
        let record: Record = serde_json::from_str(rest).ok()?;
        if record.version != VERSION
            || record.table_hash != self.table_hash
            || record.identity != shown(&module.identity)
        {
            return None;
        }
        // A debug file may have been installed since.
        if record.is_stripped && has_separate_debug_file(module.file, module.path, &record.build_id, options)
        {
            return None;
        }
        record.found()
    }

    /// Saves a result; failure to write the cache is ignored.
    pub(super) fn store(&self, module: &ModuleFile<'_>, found: &Found) {
        if !is_worth_it(module) {
            return;
        }
        let record = Record::of(found, module, self.table_hash);
        let Ok(text) = serde_json::to_string(&record) else { return };
        let _ = OwnFolder::made(&self.folder).and_then(|folder| {
            let mut file = NewFile::create_in(&folder, &name_of(module))?;
            writeln!(file, "{}", shown_hash(&text))?;
            file.write_all(text.as_bytes())?;
            file.keep_unsynced()?;
            bound(folder.path(), RECORDS_MAX)
        });
    }
}

/// Removes the records that were written first where there are too many: a quarter of them, so that
/// not each new one does. (Files that are gone, builds of every day, have records, too.)
fn bound(folder: &Path, records_max: usize) -> std::io::Result<()> {
    let is_record = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "look");
    let paths: Vec<PathBuf> =
        std::fs::read_dir(folder)?.filter_map(|entry| Some(entry.ok()?.path())).filter(is_record).collect();
    if paths.len() <= records_max {
        return Ok(());
    }
    let age = |path: PathBuf| Some((std::fs::symlink_metadata(&path).ok()?.modified().ok()?, path));
    let mut by_age: Vec<_> = paths.into_iter().filter_map(age).collect();
    by_age.sort_unstable();
    let too_many = by_age.len().saturating_sub(records_max - records_max / 4);
    for (_, path) in by_age.into_iter().take(too_many) {
        // Another recorder may be at the same.
        let _ = std::fs::remove_file(path);
    }
    Ok(())
}

fn is_worth_it(module: &ModuleFile<'_>) -> bool {
    let [_, _, bytes, ..] = module.identity;
    bytes >= i128::from(FILE_BYTES_LEAST)
}

/// File name of the record for a path: a rebuilt file's record replaces the old one.
fn name_of(module: &ModuleFile<'_>) -> PathBuf {
    let name = module.path.file_name().unwrap_or_default().to_string_lossy();
    let name: String =
        name.chars().filter(|c| c.is_ascii_alphanumeric() || "._-+".contains(*c)).take(64).collect();
    let hash = content_hash(module.path.as_os_str().as_bytes());
    let ModuleKind { is_main, exports_malloc } = module.kind;
    format!("{name}-{hash:016x}-{}{}.look", u8::from(is_main), u8::from(exports_malloc)).into()
}

fn shown(identity: &FileIdentity) -> Vec<String> {
    identity.iter().map(i128::to_string).collect()
}

fn shown_hash(text: &str) -> String {
    format!("{:016x}", content_hash(text.as_bytes()))
}

impl Record {
    fn of((inside, go): &Found, module: &ModuleFile<'_>, table_hash: u64) -> Self {
        let function = |function: &FoundFunction| {
            let FoundFunction {
                name,
                svma,
                size_bytes,
                signature,
                instead_svma,
                may_throw,
                keeps_convention,
            } = function;
            FunctionRecord {
                name: name.clone(),
                svma: *svma,
                size_bytes: *size_bytes,
                signature_word: signature.word(),
                instead_svma: *instead_svma,
                may_throw: *may_throw,
                keeps_convention: *keeps_convention,
            }
        };
        let allocator = |found: &FoundAllocator| {
            let FoundAllocator { name, heap, functions, is_whole } = found;
            let functions = functions.iter().map(function).collect();
            AllocatorRecord { name: name.clone(), heap: heap.clone(), is_whole: *is_whole, functions }
        };
        let places = |places: GoPlaces| {
            [places.buckets_svma, places.rate_svma, places.cycle_svma, places.unwanted_svma]
        };
        let InsideOf { allocators, named_allocators, is_stripped, build_id } = inside;
        Self {
            version: VERSION,
            table_hash,
            identity: shown(&module.identity),
            named_allocators: named_allocators.clone(),
            is_stripped: *is_stripped,
            build_id: build_id.clone(),
            allocators: allocators.iter().map(allocator).collect(),
            go: go.as_ref().map(|go| (go.version.clone(), go.places.map(places))),
        }
    }

    fn found(self) -> Option<Found> {
        let function = |record: FunctionRecord| {
            Some(FoundFunction {
                name: record.name,
                svma: record.svma,
                size_bytes: record.size_bytes,
                signature: Signature::of_word_untrusted(record.signature_word)?,
                instead_svma: record.instead_svma,
                may_throw: record.may_throw,
                keeps_convention: record.keeps_convention,
            })
        };
        let allocator = |record: AllocatorRecord| {
            let functions = record.functions.into_iter().map(function).collect::<Option<_>>()?;
            let AllocatorRecord { name, heap, is_whole, .. } = record;
            Some(FoundAllocator { name, heap, functions, is_whole })
        };
        let inside = InsideOf {
            allocators: self.allocators.into_iter().map(allocator).collect::<Option<_>>()?,
            named_allocators: self.named_allocators,
            is_stripped: self.is_stripped,
            build_id: self.build_id,
        };
        let places = |[buckets_svma, rate_svma, cycle_svma, unwanted_svma]: [u64; 4]| GoPlaces {
            buckets_svma,
            rate_svma,
            cycle_svma,
            unwanted_svma,
        };
        let go = self.go.map(|(version, found)| GoProgram { version, places: found.map(places) });
        Some((inside, go))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some_found() -> Found {
        let signature = heapr_allocators::Table::default().allocators[0].functions[0].signature;
        let function = FoundFunction {
            name: "je_malloc".into(),
            svma: 0x1000,
            size_bytes: 7,
            signature,
            instead_svma: Some(0x2000),
            may_throw: true,
            keeps_convention: true,
        };
        let allocator = FoundAllocator {
            name: "jemalloc".into(),
            heap: "own".into(),
            functions: vec![function],
            is_whole: true,
        };
        let inside = InsideOf {
            allocators: vec![allocator],
            named_allocators: vec!["mimalloc".into()],
            is_stripped: true,
            build_id: vec![1, 0xab],
        };
        let places = GoPlaces { buckets_svma: 1, rate_svma: 2, cycle_svma: 3, unwanted_svma: 0 };
        (inside, Some(GoProgram { version: "go1.22".into(), places: Some(places) }))
    }

    #[test]
    fn records_that_were_written_first_go_where_there_are_too_many() {
        let folder = tempfile::tempdir().unwrap();
        let begin = std::time::SystemTime::UNIX_EPOCH;
        for number in 0..9_u64 {
            let file = std::fs::File::create(folder.path().join(format!("{number}.look"))).unwrap();
            file.set_modified(begin + std::time::Duration::from_secs(number * 60)).unwrap();
        }
        std::fs::write(folder.path().join("other"), "").unwrap();
        let left = || {
            let entries = std::fs::read_dir(folder.path()).unwrap();
            let mut names: Vec<String> =
                entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
            names.sort_unstable();
            names
        };
        bound(folder.path(), 9).unwrap();
        assert_eq!(left().len(), 10);
        bound(folder.path(), 8).unwrap();
        assert_eq!(left(), ["3.look", "4.look", "5.look", "6.look", "7.look", "8.look", "other"]);
    }

    #[test]
    fn a_record_is_of_one_file_and_one_table_and_damage_is_seen() {
        let base = tempfile::tempdir().unwrap();
        let (file, found) = (base.path().join("library.so"), some_found());
        std::fs::write(&file, vec![0; FILE_BYTES_LEAST as usize]).unwrap();
        let kind = ModuleKind { is_main: false, exports_malloc: false };
        let of_file = || ModuleFile { file: &file, path: &file, kind, identity: identity_of(&file).unwrap() };
        let options = SymbolOptions { cache_dir: None, ..SymbolOptions::default() };
        let cache = LookCache::new(base.path().join("cache"), &Sought::default());
        assert_eq!(cache.load(&of_file(), &options), None);
        cache.store(&of_file(), &found);
        assert_eq!(cache.load(&of_file(), &options), Some(found));

        let as_main = ModuleFile { kind: ModuleKind { is_main: true, ..kind }, ..of_file() };
        assert_eq!(cache.load(&as_main, &options), None);
        let sought = Sought::new(&["allocator mine\nmine_take(size)\n".to_owned()]);
        assert_eq!(LookCache::new(base.path().join("cache"), &sought).load(&of_file(), &options), None);

        let record = base.path().join("cache").join(name_of(&of_file()));
        let mut text = std::fs::read(&record).unwrap();
        let at = text.len() - 30;
        text[at] ^= 1;
        std::fs::write(&record, &text).unwrap();
        assert_eq!(cache.load(&of_file(), &options), None);
        text[at] ^= 1;
        std::fs::write(&record, &text).unwrap();
        assert!(cache.load(&of_file(), &options).is_some());
        std::fs::write(&file, vec![1; FILE_BYTES_LEAST as usize]).unwrap();
        assert_eq!(cache.load(&of_file(), &options), None);
    }
}
