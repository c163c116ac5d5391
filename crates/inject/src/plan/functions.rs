//! Choice of the functions that are hooked: the C library's names, the names of other allocators,
//! and the functions that map memory and load modules.

use std::mem::offset_of;

use heapr_known::allocator_libraries::{PROBES, is_separate_library};
use heapr_proc::Mapping;
use heapr_wire::{
    HOOK_ALLOCATOR, HOOK_EXEC, HOOK_FOREIGN, HOOK_LOADER, HOOK_MAPPING, HOOK_OPERATOR, InjectedHook,
    Injection, MORE_ALLOCATORS,
};

use super::c_library::{code_around, malloc_object};
use super::{Hook, Plan};
use crate::arch::{Counted, Prologue, Way, calls_one_of};
use crate::error::Result;
use crate::memory::{ProcessMemory, TargetMemory as _};
use crate::modules::{Module, Symbol};

/// An entry of the agent's tables.
struct Entry {
    name: String,
    trampoline: u64,
    real: u64,
    group: u64,
    kept: u64,
}

/// Sources for the search of functions.
pub(super) struct Places<'a> {
    pub(super) memory: &'a ProcessMemory,
    pub(super) mappings: &'a [Mapping],
    pub(super) libc: &'a Module,
    pub(super) libc_code: (u64, u64),
    pub(super) list: Vec<&'a Module>,
}

/// End of the name of an operator that returns null instead of throwing.
const NOTHROW: &str = "RKSt9nothrow_t";

impl Plan {
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

    pub(super) fn choose_hooks(&mut self, places: &Places<'_>, hooks_mmap: bool) -> Result<()> {
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
    pub(super) fn choose_more(&mut self, places: &Places<'_>) -> Result<()> {
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

    /// Functions whose calls are recorded.
    pub(super) fn seen_functions(&self) -> Vec<u64> {
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

/// True if a name is another one of a function that is hooked by its first instructions.
fn is_second_name(name: &str) -> bool {
    name.starts_with("__libc_")
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}
