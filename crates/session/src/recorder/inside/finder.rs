//! Finds the allocators embedded in the modules of a process.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use heapr_allocators::{FoundAllocator, InsideOf, ModuleKind, Sought};
use heapr_inject::{InsideFunction, LoadedModule};
use heapr_symbols::{DebugServers, GoProgram, SymbolOptions, debuginfod};

use crate::recorder::go::{GoSeen, GoTarget};
use crate::recorder::inside::look_cache::{FileIdentity, Found, LookCache, ModuleFile, identity_of};

/// Module of a process, with the allocators embedded in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InsideModule {
    /// Path of the module's file as the process sees it.
    pub path: PathBuf,
    /// True if the module is the program itself.
    pub is_main: bool,
    /// True if only the dynamic symbols have names.
    pub is_stripped: bool,
    /// Allocators recognised by their texts in a stripped file, whose functions have no names.
    pub named_allocators: Vec<String>,
    /// The allocators that were found.
    pub allocators: Vec<FoundAllocator>,
    /// Build id by which a separate debug file is looked up.
    build_id: Vec<u8>,
    bias_avma: u64,
}

/// Debug file that would name the functions of an allocator embedded in a module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WantedFile {
    file_name: String,
    build_id: Vec<u8>,
}

impl WantedFile {
    /// Longest time that a fetch may take, because a program waits for it.
    const LIMIT: Duration = Duration::from_secs(30);

    /// Fetches the files from the user's debuginfod servers. Returns a remark for each file.
    pub(crate) fn fetch_all(wanted: &[Self]) -> Vec<String> {
        let begin = Instant::now();
        let fetched = |wanted: &Self| {
            let WantedFile { file_name, build_id } = wanted;
            match debuginfod::fetch(build_id, Self::LIMIT.saturating_sub(begin.elapsed())) {
                Ok(_) => format!(
                    "the debug file of {file_name} was fetched (debuginfod), which took {:.1} s",
                    begin.elapsed().as_secs_f64()
                ),
                Err(error) => {
                    let id: String = build_id.iter().map(|byte| format!("{byte:02x}")).collect();
                    format!("the debug file of {file_name} (build-id {id}) could not be fetched: {error}")
                }
            }
        };
        wanted.iter().map(fetched).collect()
    }
}

/// Allocators and Go's runtime found in a process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Inside {
    /// Modules that contain an allocator, or may contain one.
    pub modules: Vec<InsideModule>,
    /// Remarks about debug files.
    pub(crate) remarks: Vec<String>,
    /// Module that contains Go's runtime, if any.
    pub(crate) go: Option<GoTarget>,
}

/// Searches files for embedded allocators, each file once.
#[derive(Debug)]
pub(crate) struct Finder {
    sought: Sought,
    options: SymbolOptions,
    known: HashMap<(FileIdentity, bool, bool), Found>,
    cache: Option<LookCache>,
    /// Build ids whose debug files were wanted before.
    asked: HashSet<Vec<u8>>,
}

/// Largest number of files whose result is remembered.
const KNOWN_MAX: usize = 4096;

impl Finder {
    pub(crate) fn new(sought: Sought) -> Self {
        // Only debug files that are already there: the caller fetches others where waiting is
        // allowed.
        let debug_servers = DebugServers::Kept;
        let options = SymbolOptions { debug_servers, cache_dir: None, ..SymbolOptions::default() };
        let cache = LookCache::of_user(&sought);
        Self { sought, options, known: HashMap::new(), cache, asked: HashSet::new() }
    }

    /// Returns the debug files that would name more of what was found, each once.
    pub(crate) fn wanted(&mut self, inside: &Inside) -> Vec<WantedFile> {
        if !debuginfod::has_servers() {
            return Vec::new();
        }
        let lacking = inside.modules.iter().filter(|module| {
            let is_known =
                |name: &String| self.sought.table().allocators.iter().any(|known| known.name == *name);
            module.is_stripped && module.named_allocators.iter().any(is_known) && !module.build_id.is_empty()
        });
        let new = lacking.filter(|module| self.asked.insert(module.build_id.clone()));
        let wanted: Vec<WantedFile> = new
            .map(|module| WantedFile {
                file_name: module.path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
                build_id: module.build_id.clone(),
            })
            .collect();
        if !wanted.is_empty() {
            // Read these modules again once their debug files have come.
            self.known.retain(|_, (inside, _)| !inside.is_stripped);
        }
        wanted
    }

    /// Finds the allocators embedded in some modules of a process.
    pub(crate) fn look(&mut self, pid: u32, modules: &[LoadedModule]) -> Inside {
        let modules = modules.iter().filter(|module| !module.is_agent && !module.is_c_library);
        let mut inside = Inside::default();
        let process = heapr_proc::folder(pid);
        for module in modules {
            let Some((found, go)) = self.look_at(&process, pid, module) else { continue };
            let target = |go| GoTarget::new(&found.path, found.bias_avma, go);
            inside.go = inside.go.take().or_else(|| go.map(target));
            inside.modules.push(found);
        }
        inside
    }

    /// Finds what is embedded in one module. `process`: the process's folder in `/proc`.
    fn look_at(
        &mut self,
        process: &Path,
        pid: u32,
        module: &LoadedModule,
    ) -> Option<(InsideModule, Option<GoProgram>)> {
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
        let InsideOf { allocators, named_allocators, is_stripped, build_id } = inside;
        let found = InsideModule {
            path,
            is_main: module.is_main,
            is_stripped,
            named_allocators,
            allocators,
            build_id,
            bias_avma: module.bias_avma,
        };
        Some((found, go))
    }

    fn inside_of(&mut self, file: &Path, path: &Path, kind: ModuleKind) -> Option<Found> {
        let module = ModuleFile { file, path, kind, identity: identity_of(file)? };
        let key = (module.identity, kind.is_main, kind.exports_malloc);
        if let Some(known) = self.known.get(&key) {
            return Some(known.clone());
        }
        let cached = self.cache.as_ref().and_then(|cache| cache.load(&module, &self.options));
        let found = match cached {
            Some(found) => found,
            None => {
                let inside = InsideOf::read(&self.sought, file, path, &self.options, kind)?;
                let found = (inside, GoProgram::read(file));
                if let Some(cache) = &self.cache {
                    cache.store(&module, &found);
                }
                found
            }
        };
        if self.known.len() < KNOWN_MAX {
            self.known.insert(key, found.clone());
        }
        Some(found)
    }
}

/// Finds what is embedded in a running process, by the table that comes with heapr.
///
/// # Errors
/// The process has no loader, cannot be read, or has ended.
pub fn look_inside(pid: u32) -> Result<Inside, heapr_inject::Error> {
    match heapr_inject::loaded_modules(pid) {
        Ok(modules) => Ok(Finder::new(Sought::default()).look(pid, &modules)),
        Err(error) => {
            let go = GoTarget::of_program(pid).ok_or(error)?;
            Ok(Inside { go: Some(go), ..Inside::default() })
        }
    }
}

impl Inside {
    /// Returns the file with Go's runtime, its version, and how its heap is seen; `None` without
    /// Go.
    #[must_use]
    pub fn go(&self, pid: u32) -> Option<(&Path, &str, GoSeen)> {
        let go = self.go.as_ref()?;
        Some((&go.path, &go.version, go.seen(pid)))
    }
}

/// Name of a function in reports of hooks.
fn name_of(function: &heapr_allocators::FoundFunction, module: &InsideModule) -> String {
    let file = module.path.file_name().unwrap_or_default().to_string_lossy();
    format!("{} in {file}", function.name)
}

/// Whether the program's own `malloc` is among hooked functions.
pub(crate) fn has_malloc(inside: &Inside, hooked: &[String]) -> bool {
    let is_hooked = |module: &InsideModule| {
        let functions = module.allocators.iter().flat_map(|allocator| &allocator.functions);
        let mut malloc = functions.filter(|function| function.name == "malloc");
        malloc.any(|function| hooked.contains(&name_of(function, module)))
    };
    inside.modules.iter().any(is_hooked)
}

/// Functions to be hooked among those that were found.
pub(crate) fn functions_of(inside: &Inside) -> Vec<InsideFunction> {
    let of_module = |module: &InsideModule| {
        let bias_avma = module.bias_avma;
        let of_allocator = move |allocator: &FoundAllocator| {
            let function = |function: &heapr_allocators::FoundFunction| InsideFunction {
                name: name_of(function, module),
                address_avma: bias_avma.wrapping_add(function.svma),
                size_bytes: function.size_bytes,
                signature: function.signature,
                heap: allocator.heap.clone(),
                instead_avma: function.instead_svma.map(|svma| bias_avma.wrapping_add(svma)),
                may_throw: function.may_throw,
                keeps_convention: function.keeps_convention,
                whole_of: allocator.is_whole.then_some(bias_avma),
            };
            allocator.functions.iter().map(function).collect::<Vec<_>>()
        };
        module.allocators.iter().flat_map(of_allocator).collect::<Vec<_>>()
    };
    inside.modules.iter().flat_map(of_module).collect()
}
