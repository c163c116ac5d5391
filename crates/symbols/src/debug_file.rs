//! Finding a module's file and its separate debug file.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::debuginfod;
use crate::elf_facts::{ElfFacts, open_regular};
use crate::module_key::ModuleKey;
use crate::options::{DebugServers, SymbolOptions};

/// Reason why a module has no names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unresolved {
    /// The module's file does not exist.
    #[error("the file is not there")]
    NoFile,
    /// The file there is another build than the one recorded.
    #[error("the file there is another build than the one recorded")]
    BuildIdMismatch,
}

/// Files that a module's names come from.
#[derive(Debug)]
pub(crate) struct DebugFiles {
    /// Path of the module itself.
    pub(crate) module: Option<PathBuf>,
    /// Path of the file with the debug information; may be the module.
    pub(crate) debug: PathBuf,
    /// Path of the supplementary file that several debug files share (dwz).
    pub(crate) supplementary: Option<PathBuf>,
    /// Whether the file with the debug information has any.
    pub(crate) has_debug_info: bool,
}

/// Finds the files for a module.
pub(crate) fn find(key: &ModuleKey, options: &SymbolOptions) -> Result<DebugFiles, Unresolved> {
    let mut mismatch = false;
    let mut module = None;
    for candidate in module_candidates(key, options) {
        let Some(found) = ElfFacts::read(&candidate) else { continue };
        if !key.build_id.is_empty() && found.build_id != key.build_id {
            mismatch = true;
            continue;
        }
        module = Some((candidate, found));
        break;
    }
    let build_id = match &module {
        Some((_, found)) if key.build_id.is_empty() => found.build_id.clone(),
        _ => key.build_id.clone(),
    };
    if let Some((path, found)) = &module
        && found.has_debug_info
    {
        let supplementary = alternate(path, found, options);
        return Ok(DebugFiles {
            module: Some(path.clone()),
            debug: path.clone(),
            supplementary,
            has_debug_info: true,
        });
    }
    // The order is by cost: a link's file is read whole for its checksum; a server is asked over
    // the network.
    let separate = by_build_id(&build_id, options)
        .or_else(|| {
            let (path, found) = module.as_ref()?;
            let path = if options.files.contains_key(key) { &key.path } else { path };
            by_debug_link(path, found, options)
        })
        .or_else(|| by_debuginfod(&build_id, options));
    if let Some(debug) = separate {
        let found = ElfFacts::read(&debug);
        let supplementary = found.as_ref().and_then(|found| alternate(&debug, found, options));
        let has_debug_info = found.is_some_and(|found| found.has_debug_info);
        let module = module.map(|(path, _)| path);
        return Ok(DebugFiles { module, debug, supplementary, has_debug_info });
    }
    match module {
        Some((path, _)) => Ok(DebugFiles {
            module: Some(path.clone()),
            debug: path,
            supplementary: None,
            has_debug_info: false,
        }),
        None if mismatch => Err(Unresolved::BuildIdMismatch),
        None => Err(Unresolved::NoFile),
    }
}

fn module_candidates(key: &ModuleKey, options: &SymbolOptions) -> Vec<PathBuf> {
    if let Some(file) = options.files.get(key) {
        return vec![file.clone()];
    }
    let mut candidates = Vec::new();
    if let Some(name) = key.path.file_name() {
        candidates.extend(options.symbol_paths.iter().map(|directory| directory.join(name)));
    }
    match &options.sysroot {
        Some(sysroot) => candidates.push(sysroot.join(key.path.strip_prefix("/").unwrap_or(&key.path))),
        None => candidates.push(key.path.clone()),
    }
    candidates
}

/// Directories that hold separate debug files.
fn debug_roots(options: &SymbolOptions) -> Vec<PathBuf> {
    let mut roots = options.symbol_paths.clone();
    let system = Path::new("usr/lib/debug");
    roots.push(options.sysroot.as_deref().unwrap_or(Path::new("/")).join(system));
    roots
}

fn by_build_id(build_id: &[u8], options: &SymbolOptions) -> Option<PathBuf> {
    let (first, rest) = build_id.split_first().filter(|(_, rest)| !rest.is_empty())?;
    let hex: String = rest.iter().map(|byte| format!("{byte:02x}")).collect();
    let below = format!(".build-id/{first:02x}/{hex}.debug");
    debug_roots(options)
        .into_iter()
        .map(|root| root.join(&below))
        .find(|path| ElfFacts::read(path).is_some_and(|found| found.build_id == build_id))
}

fn by_debug_link(module: &Path, found: &ElfFacts, options: &SymbolOptions) -> Option<PathBuf> {
    let (name, crc) = found.debug_link.as_ref()?;
    let name = Path::new(std::str::from_utf8(name).ok()?);
    // A name with directories in it could point anywhere.
    if name.components().count() != 1 {
        return None;
    }
    let directory = module.parent()?;
    let mut candidates = vec![directory.join(name), directory.join(".debug").join(name)];
    // The tree of debug files repeats the paths of the machine that the sysroot was copied from.
    let below = options.sysroot.as_ref().and_then(|sysroot| directory.strip_prefix(sysroot).ok());
    let below = below.or_else(|| directory.strip_prefix("/").ok()).unwrap_or(directory);
    for root in debug_roots(options) {
        candidates.push(root.join(below).join(name));
        candidates.push(root.join(name));
    }
    candidates.into_iter().find(|path| path != module && checksum(path) == Some(*crc))
}

/// CRC-32 of a file, as .gnu_debuglink holds it.
fn checksum(path: &Path) -> Option<u32> {
    let mut file = open_regular(path)?;
    let mut crc = crc32fast::Hasher::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        match file.read(&mut buffer).ok()? {
            0 => return Some(crc.finalize()),
            count => crc.update(&buffer[..count]),
        }
    }
}

fn alternate(path: &Path, found: &ElfFacts, options: &SymbolOptions) -> Option<PathBuf> {
    let (name, build_id) = found.alternate.as_ref()?;
    let name = Path::new(std::str::from_utf8(name).ok()?);
    let relative = path.parent()?.join(name);
    let below_sysroot =
        options.sysroot.as_ref().map(|sysroot| sysroot.join(name.strip_prefix("/").unwrap_or(name)));
    [Some(relative), below_sysroot, name.is_absolute().then(|| name.to_owned())]
        .into_iter()
        .flatten()
        .find(|path| ElfFacts::read(path).is_some_and(|found| found.build_id == *build_id))
}

/// Debug file of a build from debuginfod, as far as the options allow.
fn by_debuginfod(build_id: &[u8], options: &SymbolOptions) -> Option<PathBuf> {
    /// Longest time for a download; debug files are large.
    const LIMIT: Duration = Duration::from_secs(90);
    match options.debug_servers {
        DebugServers::Unused => None,
        DebugServers::Kept => debuginfod::kept(build_id),
        DebugServers::Asked => debuginfod::fetch(build_id, LIMIT).ok(),
    }
}
