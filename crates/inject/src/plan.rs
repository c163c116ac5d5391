//! Plan of an attach: functions to hook, their addresses, and obstacles. Made while the target
//! runs.

use std::collections::BTreeSet;
use std::mem::offset_of;
use std::sync::Arc;

use memchr::memmem;

use heapr_known::allocator_libraries::{PROBES, is_separate_library};
use heapr_wire::{
    BUILD_ID, HOOK_ALLOCATOR, HOOK_EXEC, HOOK_FOREIGN, HOOK_LOADER, HOOK_MAPPING, HOOK_OPERATOR,
    INJECTION_MAGIC, INJECTION_SYMBOL, INNER_FUNCTIONS, InjectedHook, Injection, InnerFunction,
    MORE_ALLOCATORS,
};

use crate::allocator_code::AllocatorCode;
use crate::arch::{Counted, Prologue, SIGRETURN_CODE, SYSTEM_CALL_CODE, Sampling, Way, calls_one_of};
use crate::attach_request::AttachRequest;
use crate::error::{Error, Result};
use crate::image::Image;
use crate::inside_function::{InsideFunction, InsideHeaps, NOT_ALL, THROWS, broken_groups};
use crate::memory::{ProcessMemory, TargetMemory as _};
use crate::modules::{Module, Modules, StaticProgram, Symbol, auxiliary};
use crate::remote::Gadgets;
use heapr_proc::Mapping;
use heapr_proc::mappings;

/// A function to be hooked.
#[derive(Debug)]
pub(crate) struct Hook {
    pub(crate) name: String,
    /// Type of the hook; its addresses are offsets in the image.
    pub(crate) way: Way,
    /// Offsets in the image of the words that get the address of the moved instructions.
    pub(crate) real: Vec<u64>,
    pub(crate) prologue: Prologue,
    /// Calls of the function that can be counted before they reach the agent.
    pub(crate) counted: Option<Counted>,
}

/// The whole plan.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) image: Image,
    pub(crate) modules: Modules,
    pub(crate) gadgets: Gadgets,
    pub(crate) hooks: Vec<Hook>,
    /// Functions that are not hooked: offsets in the image of the words that get their addresses.
    pub(crate) plain: Vec<(u64, u64)>,
    pub(crate) not_hooked: Vec<(String, String)>,
    /// Functions that are recorded through the hooked functions that they call.
    seen_through: Vec<u64>,
    /// Whether an allocator has its own interface besides the C library's names.
    has_other_interface: bool,
    /// Whether some of the hooked allocator functions are the C library's.
    has_libc_functions: bool,
    has_other_functions: bool,
    /// Code of the functions whose calls can be counted.
    pub(crate) counted_family: Option<(u64, u64)>,
    pub(crate) code: AllocatorCode,
    /// Functions of the C library that the agent calls.
    pub(crate) imports: Vec<(String, Symbol)>,
    /// Contents of a statically linked program's file; the injector then brings the functions that
    /// the agent calls.
    pub(crate) statics: Option<Arc<StaticProgram>>,
    pub(crate) key_create_avma: u64,
    pub(crate) key_delete_avma: u64,
    pub(crate) set_specific_avma: u64,
    /// Address of the values of the first thread's keys, for musl linked into a program. The next
    /// field is the range of its descriptor.
    pub(crate) first_values_avma: u64,
    pub(crate) first_descriptor: Option<(u64, u64)>,
    pub(crate) find_object_avma: u64,
    pub(crate) stack_end_avma: u64,
    /// Offset of the table in the image.
    pub(crate) injection: u64,
}

/// An entry of the agent's tables.
struct Entry {
    name: String,
    trampoline: u64,
    real: u64,
    group: u64,
    kept: u64,
}

/// Sources for the search of functions.
struct Places<'a> {
    memory: &'a ProcessMemory,
    mappings: &'a [Mapping],
    libc: &'a Module,
    libc_code: (u64, u64),
    list: Vec<&'a Module>,
}

/// End of the name of an operator that returns null instead of throwing.
const NOTHROW: &str = "RKSt9nothrow_t";

/// Largest number of hooks, below the capacity of an attach's record: functions that are loaded
/// later follow.
const HOOKS_MAX: usize = 300;

impl Plan {
    /// Makes the plan. `is_at_start`: the program's entry has been passed, and none of its own code
    /// has run.
    pub(crate) fn make(
        request: &AttachRequest<'_>,
        memory: &ProcessMemory,
        is_at_start: bool,
    ) -> Result<Self> {
        let &AttachRequest { pid, hooks_mmap, .. } = request;
        let (image, injection) = image_of(request)?;
        let modules = Modules::read(pid, memory)?;
        let mappings = memory.mappings().map_err(|_| Error::NoSuchProcess { pid })?;
        let (libc, name) = c_library(pid, memory, &modules)?;
        let libc_code = code_of(&mappings, libc, memory, name);
        let gadgets = match find_gadgets(pid, memory, libc_code) {
            Err(_) if is_at_start && libc.statics().is_some() => make_gadgets(pid, memory)?,
            found => found?,
        };
        let address = |name: &str| modules.find(memory, name).map_or(0, |(_, symbol)| symbol.address_avma);
        let key = |name: &str| match address(name) {
            0 => address(&format!("__{name}")),
            found => found,
        };
        let statics = libc.statics().cloned();
        if statics.is_some() && key("pthread_setspecific") == 0 && address("pthread_create") != 0 {
            let reason = "it makes threads, and there is no function in it by which one tells its end (pthread_setspecific)";
            return Err(Error::Unsupported { pid, reason });
        }
        let imports = match statics {
            Some(_) => Vec::new(),
            None => imports_of(&image, pid, memory, &modules, libc)?,
        };
        let private_lock_range = libc
            .symbol(memory, "__lll_lock_wait_private")
            .map(|symbol| (symbol.address_avma, symbol.address_avma + symbol.size_bytes.max(64)));
        let is_static = statics.is_some();
        let mut plan = Self {
            gadgets,
            hooks: Vec::new(),
            plain: Vec::new(),
            not_hooked: Vec::new(),
            seen_through: Vec::new(),
            has_other_interface: false,
            has_libc_functions: false,
            has_other_functions: false,
            counted_family: None,
            code: AllocatorCode {
                allocator_ranges: Vec::new(),
                library_ranges: vec![libc_code],
                private_lock_range,
                has_other: false,
            },
            imports,
            statics,
            key_create_avma: key("pthread_key_create"),
            key_delete_avma: key("pthread_key_delete"),
            set_specific_avma: key("pthread_setspecific"),
            first_values_avma: address("__pthread_tsd_main"),
            first_descriptor: libc
                .symbol(memory, "builtin_tls")
                .filter(|_| libc.statics().is_some())
                .map(|symbol| (symbol.address_avma, symbol.address_avma + symbol.size_bytes)),
            // In a statically linked program it is not ready when the first blocks are allocated.
            find_object_avma: if is_static { 0 } else { address("_dl_find_object") },
            stack_end_avma: address("__libc_stack_end"),
            injection,
            image,
            modules: Modules { list: Vec::new(), state_avmas: Vec::new(), links: Vec::new() },
        };
        let list = modules_of(&modules.list, memory);
        let places = Places { memory, mappings: &mappings, libc, libc_code, list };
        plan.choose_hooks(&places, hooks_mmap)?;
        if !plan.hooks.iter().any(|hook| hook.name == "malloc") {
            return Err(Error::Unsupported { pid, reason: "its malloc cannot be hooked" });
        }
        plan.choose_more(&places)?;
        plan.choose_inside(memory, request.inside)?;
        plan.choose_after_load(memory, &modules)?;
        plan.modules = modules;
        Ok(plan)
    }

    /// True if a hooked function may be called by another one. That is so if an allocator has its
    /// own interface besides the C library's names, or the program's malloc calls the C library's
    /// functions.
    pub(crate) fn calls_nest(&self) -> bool {
        self.has_other_interface || self.has_other_functions && self.has_libc_functions
    }

    /// True if the program is linked statically with musl.
    pub(crate) fn is_musl(&self) -> bool {
        self.first_descriptor.is_some()
    }

    /// Reads a table of the agent, given the field that holds its address.
    fn entries(&self, table: usize) -> Result<Vec<Entry>> {
        let table = self.injection + table as u64;
        let (first, count) = (self.image.word(table)?, self.image.word(table + 8)?);
        let mut entries = Vec::new();
        for number in 0..count.min(1000) {
            let at = first + number * size_of::<InjectedHook>() as u64;
            let name = self.image.part(self.image.word(at)?, self.image.word(at + 8)?)?;
            entries.push(Entry {
                name: String::from_utf8_lossy(name).into_owned(),
                trampoline: self.image.word(at + 16)?,
                real: self.image.word(at + 24)?,
                group: self.image.word(at + 32)?,
                kept: self.image.word(at + 40)?,
            });
        }
        Ok(entries)
    }

    fn choose_hooks(&mut self, places: &Places<'_>, hooks_mmap: bool) -> Result<()> {
        let &Places { memory, libc, ref list, .. } = places;
        let has_malloc = |module: &Module| module.symbol(memory, "malloc").is_some();
        let has_interface = |module: &Module| PROBES.iter().any(|name| module.symbol(memory, name).is_some());
        // Providers as in the preloaded agent: modules with their own interface, or with operators
        // besides a malloc.
        let providers: Vec<(&Module, bool)> = list
            .iter()
            .filter_map(|module| {
                let has_malloc = has_malloc(module);
                let is_provider =
                    has_interface(module) || has_malloc && module.symbol(memory, "_Znwm").is_some();
                is_provider.then_some((*module, has_malloc))
            })
            .collect();
        let tables = [offset_of!(Injection, hooks), offset_of!(Injection, foreign)];
        let entries = tables.map(|table| self.entries(table));
        for entry in entries.into_iter().collect::<Result<Vec<_>>>()?.into_iter().flatten() {
            let candidates: Vec<&Module> = match entry.group {
                HOOK_ALLOCATOR => list.clone(),
                // Other modules' functions of this name call the C library's in the end.
                HOOK_MAPPING | HOOK_LOADER | HOOK_EXEC => [&[libc], list.as_slice()].concat(),
                HOOK_FOREIGN => providers.iter().map(|&(module, _)| module).collect(),
                HOOK_OPERATOR => providers
                    .iter()
                    .filter(|&&(_, has_malloc)| has_malloc)
                    .map(|&(module, _)| module)
                    .collect(),
                _ => Vec::new(),
            };
            let found =
                candidates.into_iter().find_map(|module| Some((module, module.symbol(memory, &entry.name)?)));
            let Some((module, symbol)) = found else { continue };
            if entry.group == HOOK_ALLOCATOR && is_second_name(&entry.name) {
                continue;
            }
            // Calls that map memory are hooked even if mappings are not recorded as a heap, to note
            // the caller. (In a static program the allocator's own calls cannot be distinguished.)
            let is_noted = entry.name != "mprotect" && self.statics.is_none();
            if entry.group == HOOK_MAPPING && !hooks_mmap && !is_noted {
                self.plain.push((entry.real, symbol.address_avma));
                continue;
            }
            self.choose(places, entry, module, symbol)?;
        }
        Ok(())
    }

    /// Plans the hooks of further allocators: another C library (dlmopen), or one that a library
    /// calls although the program has another (RTLD_DEEPBIND).
    fn choose_more(&mut self, places: &Places<'_>) -> Result<()> {
        let &Places { memory, ref list, .. } = places;
        let mut entries = self.entries(offset_of!(Injection, more))?.into_iter();
        let function_count = entries.len() / MORE_ALLOCATORS;
        for module in list {
            let Some(malloc) = module.symbol(memory, "malloc") else { continue };
            let is_loader = module.symbol(memory, "_rtld_global").is_some();
            if is_loader || self.is_hooked(malloc.address_avma) {
                continue;
            }
            let own: Vec<Entry> = entries.by_ref().take(function_count).collect();
            if own.is_empty() {
                let reason = format!("the process has more than {} allocators", MORE_ALLOCATORS + 1);
                self.not_hooked.push((format!("malloc in {}", module.name), reason));
            }
            for mut entry in own.into_iter().filter(|entry| !is_second_name(&entry.name)) {
                let Some(symbol) = module.symbol(memory, &entry.name) else { continue };
                entry.name = format!("{} in {}", entry.name, module.name);
                self.choose(places, entry, module, symbol)?;
            }
        }
        Ok(())
    }

    /// Plans the hooks of embedded allocators: their entries in the agent's table.
    fn choose_inside(&mut self, memory: &ProcessMemory, functions: &[InsideFunction]) -> Result<()> {
        let word = |image: &Image, at: usize| image.word(self.injection + at as u64);
        let kept_avma = word(&self.image, offset_of!(Injection, all_registers_entry))?;
        let light_avma = word(&self.image, offset_of!(Injection, light_entry))?;
        let first = word(&self.image, offset_of!(Injection, inner))?;
        let first_kept = word(&self.image, offset_of!(Injection, inner_kept))?;
        let kept_bytes = word(&self.image, offset_of!(Injection, inner_kept_bytes))?;
        let names = word(&self.image, offset_of!(Injection, inner_heap_names))?;
        let mut heaps = InsideHeaps::default();
        let mut number = 0;
        let broken = broken_groups(memory, functions, true);
        for function in functions {
            if number >= INNER_FUNCTIONS as u64 || self.hooks.len() >= HOOKS_MAX {
                self.not_hooked.push((function.name.clone(), "there are too many".to_owned()));
                continue;
            }
            if function.may_throw {
                self.not_hooked.push((function.name.clone(), THROWS.to_owned()));
                continue;
            }
            let prologue = match function.prologue(memory, &self.seen_functions()) {
                Ok(Some(prologue)) => prologue,
                Ok(None) => continue,
                Err(reason) => {
                    self.not_hooked.push((function.name.clone(), reason.to_owned()));
                    continue;
                }
            };
            if function.whole_of.is_some_and(|group| broken.contains(&group)) {
                self.not_hooked.push((function.name.clone(), NOT_ALL.to_owned()));
                continue;
            }
            if self.hooks.iter().any(|hook| hook.prologue.entry_avma == prologue.entry_avma) {
                continue;
            }
            let at = first + number * size_of::<InnerFunction>() as u64;
            let place = |field: usize| at + field as u64;
            let heap = heaps.number_of(function);
            self.plain.push((place(offset_of!(InnerFunction, signature)), function.signature.word()));
            self.plain.push((place(offset_of!(InnerFunction, heap)), heap));
            let (real, own) = (place(offset_of!(InnerFunction, real)), place(offset_of!(InnerFunction, own)));
            // If a substitute is called, its address goes into `real`, and that of the function
            // itself into `own`.
            let real = match function.instead_avma {
                Some(instead_avma) => {
                    self.plain.push((real, instead_avma));
                    own
                }
                None => real,
            };
            let counted = function.counted(memory, &prologue, Sampling::LATER, &|avma| {
                let is_hooked =
                    |hook: &Hook| [hook.prologue.function_avma, hook.prologue.entry_avma].contains(&avma);
                functions.iter().any(|function| function.begins_at(avma)) || self.hooks.iter().any(is_hooked)
            });
            self.plain.extend(function.code_words(at));
            let entry_avma = if function.keeps_convention { light_avma } else { kept_avma };
            let way = Way::Kept { entry_avma, function_avma: first_kept + number * kept_bytes, counted };
            self.hooks.push(Hook {
                name: function.name.clone(),
                way,
                real: vec![real],
                prologue,
                counted: None,
            });
            self.code.has_other = true;
            number += 1;
        }
        for (place, name) in heaps.words() {
            self.plain.push((names + place, name));
        }
        Ok(())
    }

    /// Plans the hook of the function that the loader calls after loading modules, which may
    /// contain an allocator.
    fn choose_after_load(&mut self, memory: &ProcessMemory, modules: &Modules) -> Result<()> {
        let word = |at: usize| self.image.word(self.injection + at as u64);
        let way = Way::Kept {
            entry_avma: word(offset_of!(Injection, all_registers_entry))?,
            function_avma: word(offset_of!(Injection, after_load))?,
            counted: None,
        };
        if let Some(function) = InsideFunction::after_load(memory, modules)
            && let Ok(Some(prologue)) = function.prologue(memory, &[])
        {
            self.hooks.push(Hook { name: function.name, way, real: Vec::new(), prologue, counted: None });
        }
        Ok(())
    }

    /// Functions whose calls are recorded.
    fn seen_functions(&self) -> Vec<u64> {
        let hooked = self.hooks.iter().map(|hook| hook.prologue.function_avma);
        hooked.chain(self.seen_through.iter().copied()).collect()
    }

    /// True if a function is hooked, at its entry or behind its landing pad.
    fn is_hooked(&self, function_avma: u64) -> bool {
        let is_at = |hook: &Hook| hook.prologue.function_avma == function_avma;
        self.hooks.iter().any(is_at)
    }

    /// Notes the code of an allocator, and which kinds of allocators there are.
    fn note_kind(
        &mut self,
        places: &Places<'_>,
        entry: &Entry,
        module: &Module,
        address_avma: u64,
    ) -> FunctionKind {
        let &Places { memory, mappings, libc, libc_code, .. } = places;
        let code = code_around(mappings, address_avma);
        let is_of_libc = std::ptr::eq(module, libc) && !module.is_main;
        let is_allocators = matches!(entry.group, HOOK_ALLOCATOR | HOOK_FOREIGN | HOOK_OPERATOR);
        let family = match entry.group {
            HOOK_ALLOCATOR if is_of_libc && code.is_some() => Some(malloc_object(memory, module, libc_code)),
            HOOK_LOADER | HOOK_EXEC => None,
            _ if module.is_main => None,
            _ => code,
        };
        if entry.group == HOOK_ALLOCATOR
            && let (Some(range), Some(code)) = (family, code)
        {
            for (ranges, range) in
                [(&mut self.code.allocator_ranges, range), (&mut self.code.library_ranges, code)]
            {
                if !ranges.contains(&range) {
                    ranges.push(range);
                }
            }
        }
        self.has_other_interface |= matches!(entry.group, HOOK_FOREIGN | HOOK_OPERATOR);
        let counted = match entry.group {
            HOOK_ALLOCATOR if is_of_libc && family.is_some() => Counted::of(&entry.name),
            _ => None,
        };
        if counted.is_some() {
            self.counted_family = family;
        }
        let is_others = is_allocators && !is_of_libc;
        self.code.has_other |= is_others;
        self.has_libc_functions |= is_allocators && is_of_libc;
        self.has_other_functions |= is_others;
        FunctionKind { family, is_others, counted }
    }

    /// Returns the path from a function to the agent.
    fn way(&self, entry: &Entry, module: &Module, kind: &FunctionKind) -> Result<Way> {
        // Callers of a separate library are in other modules.
        let is_library = !module.is_main && is_separate_library(file_name(&module.name));
        Ok(if kind.is_others && !is_library {
            Way::Kept {
                entry_avma: self
                    .image
                    .word(self.injection + offset_of!(Injection, all_registers_entry) as u64)?,
                function_avma: entry.kept,
                counted: None,
            }
        } else {
            Way::Convention {
                trampoline_avma: entry.trampoline,
                ranges: kind.family.map(|(start, end)| (start, end - start)).into_iter().collect(),
                keeps_inner: is_library,
                counted: None,
            }
        })
    }

    /// Plans one function.
    fn choose(&mut self, places: &Places<'_>, entry: Entry, module: &Module, symbol: Symbol) -> Result<()> {
        let memory = places.memory;
        let address_avma = symbol.address_avma;
        let kind = self.note_kind(places, &entry, module, address_avma);
        self.plain.push((entry.real, address_avma));
        if symbol.is_indirect {
            self.not_hooked.push((entry.name, "it is chosen by the loader (ifunc)".to_owned()));
            return Ok(());
        }
        let way = self.way(&entry, module, &kind)?;
        // Two names of one function need one hook.
        const BEHIND_BYTES: usize = 16;
        let bytes = if symbol.size_bytes == 0 { 64 } else { symbol.size_bytes.min(16 << 10) } as usize;
        let code = memory.read_vec(address_avma, bytes + BEHIND_BYTES);
        // There may be no mapped memory behind the function.
        let code = code.or_else(|_| memory.read_vec(address_avma, bytes)).unwrap_or_default();
        let (body, behind) = code.split_at(bytes.min(code.len()));
        // Exceptions cannot pass through the agent. The calls that such a function makes are
        // recorded, with the function in their stacks.
        let is_throwing = entry.group == HOOK_OPERATOR
            && entry.name.starts_with("_Zn")
            && !entry.name.ends_with(NOTHROW)
            && module.symbol(memory, &format!("{}{NOTHROW}", entry.name)).is_none();
        if is_throwing && calls_one_of(address_avma, body, &self.seen_functions()) {
            self.seen_through.push(address_avma);
            return Ok(());
        }
        let behind = if symbol.size_bytes == bytes as u64 { behind } else { &[] };
        match Prologue::plan(address_avma, body, behind) {
            Ok(prologue) => {
                let same = |hook: &&mut Hook| hook.prologue.entry_avma == prologue.entry_avma;
                self.plain.pop();
                match self.hooks.iter_mut().find(same) {
                    Some(hook) => hook.real.push(entry.real),
                    None => {
                        let real = vec![entry.real];
                        self.hooks.push(Hook {
                            name: entry.name,
                            way,
                            real,
                            prologue,
                            counted: kind.counted,
                        });
                    }
                }
            }
            Err(_) if calls_one_of(address_avma, body, &self.seen_functions()) => {
                self.seen_through.push(address_avma);
            }
            Err(reason) => self.not_hooked.push((entry.name, reason.to_owned())),
        }
        Ok(())
    }
}

/// Allocator that a function belongs to.
struct FunctionKind {
    /// Code whose calls of the function are embedded ones.
    family: Option<(u64, u64)>,
    /// The allocator is not the C library's.
    is_others: bool,
    counted: Option<Counted>,
}

/// Loads the agent's image. Returns the offset of its table too.
fn image_of(request: &AttachRequest<'_>) -> Result<(Image, u64)> {
    let mut image = Image::load(request.agent)?;
    // Relocated to 0, pointers in the agent's table are offsets.
    image.relocate(0, 0, |_| Some(0))?;
    let injection =
        image.export(INJECTION_SYMBOL).ok_or(Error::BadAgent { what: "it cannot be injected" })?;
    if image.word(injection)? != INJECTION_MAGIC || image.word(injection + 8)? != BUILD_ID {
        return Err(Error::BadAgent { what: "it is of another build" });
    }
    Ok((image, injection))
}

/// Finds the functions that the agent calls, first in the C library.
fn imports_of(
    image: &Image,
    pid: u32,
    memory: &ProcessMemory,
    modules: &Modules,
    libc: &Module,
) -> Result<Vec<(String, Symbol)>> {
    let symbol_of = |name: String| {
        let found =
            libc.symbol(memory, &name).or_else(|| modules.find(memory, &name).map(|(_, symbol)| symbol));
        let symbol =
            found.ok_or(Error::Unsupported { pid, reason: "its C library lacks a basic function" })?;
        Ok((name, symbol))
    };
    image.imports().into_iter().map(symbol_of).collect()
}

/// True if a name is another one of a function that is hooked by its first instructions.
fn is_second_name(name: &str) -> bool {
    name.starts_with("__libc_")
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Modules other than a preloaded agent, whose functions are not the allocator's.
pub(crate) fn modules_of<'a>(list: &'a [Module], memory: &ProcessMemory) -> Vec<&'a Module> {
    list.iter().filter(|module| module.symbol(memory, INJECTION_SYMBOL).is_none()).collect()
}

/// Start and end of the executable mapping that contains a function of a module.
fn code_of(mappings: &[Mapping], module: &Module, memory: &ProcessMemory, name: &str) -> (u64, u64) {
    let symbol = module.symbol(memory, name);
    symbol.and_then(|symbol| code_around(mappings, symbol.address_avma)).unwrap_or_default()
}

fn code_around(mappings: &[Mapping], address_avma: u64) -> Option<(u64, u64)> {
    let mapping = mappings::find(mappings, address_avma).filter(|mapping| mapping.is_executable)?;
    // A page that was written to, or made writable for a while, is a separate mapping. The same
    // file may be mapped elsewhere too.
    let same = |other: &&Mapping| other.inode == mapping.inode && other.is_executable && mapping.inode != 0;
    let (mut start, mut end) = (mapping.start_avma, mapping.end_avma);
    for other in mappings.iter().filter(same) {
        if other.start_avma == end {
            end = other.end_avma;
        }
    }
    for other in mappings.iter().rev().filter(same) {
        if other.end_avma == start {
            start = other.start_avma;
        }
    }
    Some((start, end))
}

/// Code of glibc's malloc.o, whose functions call each other; such calls are not the program's. The
/// functions of one object file are contiguous, static ones among the named ones.
fn malloc_object(memory: &ProcessMemory, libc: &Module, (code_start, code_end): (u64, u64)) -> (u64, u64) {
    const NAMES: [&str; 14] = [
        "malloc",
        "free",
        "calloc",
        "realloc",
        "memalign",
        "aligned_alloc",
        "posix_memalign",
        "valloc",
        "pvalloc",
        "malloc_trim",
        "malloc_usable_size",
        "mallinfo",
        "malloc_info",
        "reallocarray",
    ];
    let symbols: BTreeSet<(u64, u64)> = NAMES
        .iter()
        .filter_map(|name| libc.symbol(memory, name))
        .map(|symbol| (symbol.address_avma, symbol.address_avma.saturating_add(symbol.size_bytes)))
        .collect();
    let first = symbols.iter().map(|&(start, _)| start).min().unwrap_or(code_start);
    let end = symbols.iter().map(|&(_, end)| end).max().unwrap_or(code_end);
    let start = libc.end_of_function_before(memory, first).unwrap_or(first);
    (start.clamp(code_start, code_end), end.clamp(code_start, code_end))
}

/// Module that is or contains the C library, and the name of a function of it.
pub(crate) fn c_library<'a>(
    pid: u32,
    memory: &ProcessMemory,
    modules: &'a Modules,
) -> Result<(&'a Module, &'static str)> {
    const VERSION: &str = "gnu_get_libc_version";
    const ALLOCATOR: &str = "malloc";
    if let [program] = modules.list.as_slice()
        && program.statics().is_some()
    {
        return match program.symbol(memory, ALLOCATOR) {
            Some(_) => Ok((program, ALLOCATOR)),
            None => Err(Error::Unsupported {
                pid,
                reason: "it is linked statically, and its file names no malloc (it is stripped, or of Go)",
            }),
        };
    }
    let (libc, _) = modules
        .find(memory, VERSION)
        .ok_or(Error::Unsupported { pid, reason: "its C library is not glibc" })?;
    Ok((libc, VERSION))
}

/// Finds the instructions of the target's C library that a borrowed thread needs.
pub(crate) fn gadgets(pid: u32, memory: &ProcessMemory) -> Result<Gadgets> {
    gadgets_among(pid, memory, &Modules::read(pid, memory)?)
}

/// Variant of [`gadgets`] for a target whose modules are known.
pub(crate) fn gadgets_among(pid: u32, memory: &ProcessMemory, modules: &Modules) -> Result<Gadgets> {
    let mappings = memory.mappings().map_err(|_| Error::NoSuchProcess { pid })?;
    let (libc, name) = c_library(pid, memory, modules)?;
    find_gadgets(pid, memory, code_of(&mappings, libc, memory, name))
}

/// Writes the instructions at the program's entry, which is never executed again. (The function
/// called from there returns behind them.)
fn make_gadgets(pid: u32, memory: &ProcessMemory) -> Result<Gadgets> {
    const AT_ENTRY: u64 = 9;
    let entry_avma = auxiliary(pid)?.get(&AT_ENTRY).copied().unwrap_or(0);
    let bytes = [SYSTEM_CALL_CODE, SIGRETURN_CODE].concat();
    memory.write(entry_avma, &bytes).map_err(|source| Error::Memory { pid, source })?;
    let sigreturn_avma = entry_avma + SYSTEM_CALL_CODE.len() as u64;
    Ok(Gadgets { system_call_avma: entry_avma, sigreturn_avma })
}

fn find_gadgets(pid: u32, memory: &ProcessMemory, (start, end): (u64, u64)) -> Result<Gadgets> {
    const CODE_BYTES_MAX: u64 = 64 << 20;
    const SLICE_BYTES: u64 = 64 << 10;
    let end = end.min(start.saturating_add(CODE_BYTES_MAX));
    // Both are in the first functions of a C library, so that most of it need not be read.
    let (mut system_call, mut sigreturn) = (None, None);
    let finders = [SYSTEM_CALL_CODE, SIGRETURN_CODE].map(memmem::Finder::new);
    let mut room = vec![0; SLICE_BYTES as usize + SIGRETURN_CODE.len()];
    let mut slice = start;
    while slice < end && (system_call.is_none() || sigreturn.is_none()) {
        // Slices overlap, so that no match is cut in two.
        let bytes = (SLICE_BYTES + SIGRETURN_CODE.len() as u64).min(end - slice) as usize;
        let code = &mut room[..bytes];
        memory.read(slice, code).map_err(|source| Error::Memory { pid, source })?;
        let find = |finder: &memmem::Finder<'_>| finder.find(code).map(|at| slice + at as u64);
        system_call = system_call.or_else(|| find(&finders[0]));
        sigreturn = sigreturn.or_else(|| find(&finders[1]));
        slice += SLICE_BYTES;
    }
    match (system_call, sigreturn) {
        (Some(system_call_avma), Some(sigreturn_avma)) => Ok(Gadgets { system_call_avma, sigreturn_avma }),
        _ => Err(Error::Unsupported {
            pid,
            reason: "its C library is not as expected (no system call found in it)",
        }),
    }
}
