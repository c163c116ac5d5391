//! What allocators the modules of a process have inside.

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use heapr_allocators::{FoundAllocator, InsideOf, ModuleKind, Table};
use heapr_inject::{InsideFunction, LoadedModule};
use heapr_symbols::{GoProgram, SymbolOptions};

use crate::recorder::go::{GoSeen, GoTarget};

/// A module with what is inside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InsideModule {
    /// Path of its file, as the process has it.
    pub path: PathBuf,
    /// It is the program itself.
    pub is_main: bool,
    /// Only what it offers to others has names.
    pub is_stripped: bool,
    /// Allocators whose texts are in a stripped file: they are there, and their functions have no
    /// names.
    pub named_allocators: Vec<String>,
    /// The allocators that were found.
    pub allocators: Vec<FoundAllocator>,
    bias_avma: u64,
}

/// What is inside of a process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Inside {
    /// The modules that have something inside, or may have it.
    pub modules: Vec<InsideModule>,
    /// The module of Go, if there is one.
    pub(crate) go: Option<GoTarget>,
}

/// A file and which it is: device, number, bytes, time of the last change.
type FileIdentity = [u64; 4];

/// Looks into files, into each once.
#[derive(Debug)]
pub(crate) struct Finder {
    table: Table,
    options: SymbolOptions,
    known: HashMap<(FileIdentity, bool, bool), (InsideOf, Option<GoProgram>)>,
}

/// Files that are remembered.
const KNOWN_MAX: usize = 4096;

impl Finder {
    pub(crate) fn new(table: Table) -> Self {
        // (A server over the network is nothing to wait for while a program stands still.)
        let options = SymbolOptions { debuginfod: false, cache_dir: None, ..SymbolOptions::default() };
        Self { table, options, known: HashMap::new() }
    }

    /// What is inside of some modules of a process.
    pub(crate) fn look(&mut self, pid: u32, modules: &[LoadedModule]) -> Inside {
        let modules = modules.iter().filter(|module| !module.is_agent && !module.is_c_library);
        let mut inside = Inside::default();
        for module in modules {
            let Some((found, go)) = self.look_at(pid, module) else { continue };
            let target = |go| GoTarget::new(&found.path, found.bias_avma, go);
            inside.go = inside.go.take().or_else(|| go.map(target));
            inside.modules.push(found);
        }
        inside
    }

    fn look_at(&mut self, pid: u32, module: &LoadedModule) -> Option<(InsideModule, Option<GoProgram>)> {
        let process = heapr_proc::folder(pid);
        let (file, path) = if module.is_main {
            let path = heapr_proc::executable(pid).unwrap_or_default();
            (process.join("exe"), path)
        } else {
            let path = PathBuf::from(&module.name);
            let inside = path.strip_prefix("/").map(|path| process.join("root").join(path));
            (inside.unwrap_or_else(|_| process.join("cwd").join(&path)), path)
        };
        let kind = ModuleKind { is_main: module.is_main, exports_malloc: module.exports_malloc };
        let (inside, go) = self.inside_of(&file, &path, kind)?;
        let InsideOf { allocators, named_allocators, is_stripped } = inside;
        let found = InsideModule {
            path,
            is_main: module.is_main,
            is_stripped,
            named_allocators,
            allocators,
            bias_avma: module.bias_avma,
        };
        Some((found, go))
    }

    fn inside_of(
        &mut self,
        file: &Path,
        path: &Path,
        kind: ModuleKind,
    ) -> Option<(InsideOf, Option<GoProgram>)> {
        let facts = std::fs::metadata(file).ok()?;
        let identity = [facts.dev(), facts.ino(), facts.len(), facts.mtime().cast_unsigned()];
        let key = (identity, kind.is_main, kind.exports_malloc);
        if let Some(known) = self.known.get(&key) {
            return Some(known.clone());
        }
        let found = InsideOf::read(&self.table, file, path, &self.options, kind)?;
        let inside = (found, GoProgram::read(file));
        if self.known.len() < KNOWN_MAX {
            self.known.insert(key, inside.clone());
        }
        Some(inside)
    }
}

/// What is inside of a process that runs, by the table that comes with heapr.
///
/// # Errors
/// It has no loader, may not be read, or is gone.
pub fn look_inside(pid: u32) -> Result<Inside, heapr_inject::Error> {
    match heapr_inject::loaded_modules(pid) {
        Ok(modules) => Ok(Finder::new(Table::default()).look(pid, &modules)),
        Err(error) => {
            let go = GoTarget::of_program(pid).ok_or(error)?;
            Ok(Inside { modules: Vec::new(), go: Some(go) })
        }
    }
}

impl Inside {
    /// What is seen of Go's own heap in the process, where Go is in it: the file, the version, and
    /// how it is seen.
    #[must_use]
    pub fn go(&self, pid: u32) -> Option<(&Path, &str, GoSeen)> {
        let go = self.go.as_ref()?;
        Some((&go.path, &go.version, go.seen(pid)))
    }
}

/// The functions to be hooked of what was found.
pub(crate) fn functions_of(inside: &Inside) -> Vec<InsideFunction> {
    let of_module = |module: &InsideModule| {
        let bias_avma = module.bias_avma;
        let file = module.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let of_allocator = move |allocator: &FoundAllocator| {
            let function = |function: &heapr_allocators::FoundFunction| InsideFunction {
                name: format!("{} in {file}", function.name),
                address_avma: bias_avma.wrapping_add(function.svma),
                size_bytes: function.size_bytes,
                signature: function.signature,
                heap: allocator.heap.clone(),
                instead_avma: function.instead_svma.map(|svma| bias_avma.wrapping_add(svma)),
            };
            allocator.functions.iter().map(function).collect::<Vec<_>>()
        };
        module.allocators.iter().flat_map(of_allocator).collect::<Vec<_>>()
    };
    inside.modules.iter().flat_map(of_module).collect()
}
