//! Modules of the target and their symbols, read from its loader's data in memory; for a program
//! without a loader from its file. Untrusted: every count is bounded.

use std::collections::HashMap;
use std::fs;
use std::mem::offset_of;
use std::sync::{Arc, OnceLock};

use heapr_proc::page_bytes;
use heapr_wire::{BUILD_ID, INJECTION_MAGIC, INJECTION_SYMBOL, Injection, REDIRECTED_MAX};
use object::LittleEndian as LE;
use object::elf::{self, Sym64};
use object::pod;
use object::read::elf::{ProgramHeader as _, Sym as _};

use crate::arch::ProgramHeaders;
use crate::elf_in_memory::{find_dynamic, program_headers_at};
use crate::error::{Error, Result};
use crate::memory::{TargetMemory, Unreachable};
use crate::static_symbols::StaticSymbols;
use crate::symbol_hashes::{SymbolHashes, hash_of};

/// A function or variable that a module defines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Symbol {
    pub(crate) address_avma: u64,
    pub(crate) size_bytes: u64,
    /// Whether the address is that of a resolver function, which returns the real address.
    pub(crate) is_indirect: bool,
}

/// A loaded module.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Module {
    pub(crate) name: String,
    pub(crate) is_main: bool,
    pub(crate) bias: u64,
    symbols_avma: u64,
    strings_avma: u64,
    gnu_hash_avma: u64,
    /// Read when a symbol is looked for; `None`: there is no such table.
    hashes: OnceLock<Option<Arc<SymbolHashes>>>,
    /// Symbols whose values an agent has changed: where they lie, and what they were.
    redirected: Arc<HashMap<u64, u64>>,
    /// Contents of a statically linked program's file.
    statics: Option<Arc<StaticProgram>>,
}

/// A program without a loader.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct StaticProgram {
    symbols: StaticSymbols,
    pub(crate) headers: ProgramHeaders,
    /// Alignment of the thread-local variables.
    pub(crate) tls_align: u64,
}

/// Source of the list of modules.
enum Source {
    /// Address of the loader's `struct r_debug`.
    Loader(u64),
    /// The program's headers and the alignment of its thread-local variables: it has no loader, and
    /// is the only module.
    File(ProgramHeaders, u64),
}

/// Modules of a process, and the state of the loader's lists.
#[derive(Debug)]
pub(crate) struct Modules {
    /// Modules, those of other linker namespaces (dlmopen) after all of the program's own.
    pub(crate) list: Vec<Module>,
    /// Address of each namespace's state word, which says whether the loader is changing the list.
    pub(crate) state_avmas: Vec<u64>,
    /// Address and content of each entry of the loader's lists.
    pub(crate) links: Vec<(u64, [u8; LINK_BYTES])>,
}

/// Size in bytes of struct link_map: bias, name, dynamic section, next, previous.
const LINK_BYTES: usize = 40;
/// Largest number of modules that are read.
const MODULES_MAX: usize = 20_000;
const NAME_BYTES_MAX: usize = 4096;
const SYMBOL_BYTES: u64 = size_of::<Sym64<LE>>() as u64;
/// Largest number of namespaces in glibc.
const NAMESPACES_MAX: usize = 16;

const AT_PHDR: u64 = 3;
const AT_PHNUM: u64 = 5;

impl Modules {
    /// Reads the list.
    pub(crate) fn read(pid: u32, memory: &impl TargetMemory) -> Result<Self> {
        let memory_error = |source: Unreachable| Error::Memory { pid, source };
        let mut debug_avma = match find_source(pid, memory)? {
            Source::Loader(debug_avma) => debug_avma,
            Source::File(headers, tls_align) => {
                let list = vec![Module::of_static(pid, headers, tls_align)];
                return Ok(Self { list, state_avmas: Vec::new(), links: Vec::new() });
            }
        };
        let (mut links, mut list, mut state_avmas) = (Vec::new(), Vec::new(), Vec::new());
        while debug_avma != 0 && state_avmas.len() < NAMESPACES_MAX {
            // struct r_debug: version, first link, breakpoint, state, loader; since glibc 2.35 also
            // the next namespace's.
            let mut head = [0; 48];
            memory.read(debug_avma, &mut head[..40]).map_err(memory_error)?;
            let version = u32::from_le_bytes([head[0], head[1], head[2], head[3]]);
            if version > 1 {
                memory.read(debug_avma, &mut head).map_err(memory_error)?;
            }
            let word = |at: usize| u64::from_le_bytes(head[at..at + 8].try_into().unwrap_or_default());
            let mut link_avma = word(8);
            while link_avma != 0 && links.len() < MODULES_MAX {
                let mut link = [0; LINK_BYTES];
                memory.read(link_avma, &mut link).map_err(memory_error)?;
                links.push((link_avma, link));
                let word = |at: usize| u64::from_le_bytes(link[at..at + 8].try_into().unwrap_or_default());
                let name = memory.read_string(word(8), NAME_BYTES_MAX).unwrap_or_default();
                let name = String::from_utf8_lossy(&name).into_owned();
                let is_main = list.is_empty();
                if !name.starts_with("linux-vdso")
                    && let Some(module) = read_module(memory, name, is_main, word(0), word(16))
                {
                    list.push(module);
                }
                link_avma = word(24);
            }
            state_avmas.push(debug_avma + 24);
            debug_avma = word(40);
        }
        let redirected = Arc::new(redirected_by_agents(memory, &list));
        for module in &mut list {
            module.redirected = Arc::clone(&redirected);
        }
        Ok(Self { list, state_avmas, links })
    }

    /// True if the loader is not changing the list.
    pub(crate) fn is_consistent(&self, memory: &impl TargetMemory) -> bool {
        self.state_avmas.iter().all(|&state_avma| memory.read_u32(state_avma) == Ok(0))
    }

    /// True if the list is unchanged since it was read.
    pub(crate) fn is_unchanged(&self, memory: &impl TargetMemory) -> bool {
        let mut now = vec![[0; LINK_BYTES]; self.links.len()];
        let mut pieces: Vec<(u64, &mut [u8])> =
            self.links.iter().zip(&mut now).map(|(&(avma, _), link)| (avma, &mut link[..])).collect();
        // Each entry names the next, so that an appended one changes the last entry.
        memory.read_batch(&mut pieces).is_ok()
            && self.links.iter().zip(&now).all(|((_, link), now)| link == now)
    }

    /// The first module, in the loader's order, that defines a name.
    pub(crate) fn find(&self, memory: &impl TargetMemory, name: &str) -> Option<(&Module, Symbol)> {
        self.list.iter().find_map(|module| Some((module, module.symbol(memory, name)?)))
    }
}

/// Symbols that agents of heapr, loaded by the loader, have changed.
fn redirected_by_agents(memory: &impl TargetMemory, list: &[Module]) -> HashMap<u64, u64> {
    let mut redirected = HashMap::new();
    for injection in list.iter().filter_map(|module| module.symbol(memory, INJECTION_SYMBOL)) {
        let word = |field: usize| memory.read_u64(injection.address_avma.wrapping_add(field as u64));
        let is_ours = word(offset_of!(Injection, magic)) == Ok(INJECTION_MAGIC)
            && word(offset_of!(Injection, build_id)) == Ok(BUILD_ID);
        let Ok(first) = word(offset_of!(Injection, redirected)) else { continue };
        for number in 0..REDIRECTED_MAX as u64 {
            let at = first.wrapping_add(number * 16);
            match (is_ours, memory.read_u64(at), memory.read_u64(at.wrapping_add(8))) {
                (true, Ok(place @ 1..), Ok(value)) => redirected.insert(place, value),
                _ => break,
            };
        }
    }
    redirected
}

fn read_module(
    memory: &impl TargetMemory,
    name: String,
    is_main: bool,
    bias: u64,
    dynamic_avma: u64,
) -> Option<Module> {
    let mut module = Module { name, is_main, bias, ..Module::default() };
    let absolute = |value: u64| if value < bias { bias.wrapping_add(value) } else { value };
    find_dynamic::<()>(memory, dynamic_avma, |tag, value| {
        match tag {
            elf::DT_STRTAB => module.strings_avma = absolute(value),
            elf::DT_SYMTAB => module.symbols_avma = absolute(value),
            elf::DT_GNU_HASH => module.gnu_hash_avma = absolute(value),
            _ => {}
        }
        None
    })
    .ok()?;
    Some(module)
}

/// Finds the loader's `struct r_debug`, whose address the loader stores in the program's dynamic
/// section. For a program started as an argument of the loader, the kernel knows only the loader,
/// which exports the structure under a name.
fn find_source(pid: u32, memory: &impl TargetMemory) -> Result<Source> {
    let memory_error = |source: Unreachable| Error::Memory { pid, source };
    let auxiliary = auxiliary(pid)?;
    let entry = |tag: u64| auxiliary.get(&tag).copied();
    let (Some(headers_avma), Some(count)) = (entry(AT_PHDR), entry(AT_PHNUM)) else {
        return Err(Error::Unsupported { pid, reason: "the kernel does not tell where its program lies" });
    };
    // Without their own entry, the headers follow the file's header, at the begin of the module.
    let (mut bias, mut dynamic_svma) = (headers_avma & !(page_bytes() - 1), None);
    let mut tls_align = 1;
    let (mut has_own_entry, mut is_at_its_address, mut has_loader) = (false, true, false);
    for header in program_headers_at(memory, headers_avma, count).map_err(memory_error)? {
        match header.p_type(LE) {
            elf::PT_PHDR => {
                has_own_entry = true;
                bias = headers_avma.wrapping_sub(header.p_vaddr(LE));
            }
            elf::PT_INTERP => has_loader = true,
            elf::PT_TLS => tls_align = header.p_align(LE),
            elf::PT_DYNAMIC => dynamic_svma = Some(header.p_vaddr(LE)),
            elf::PT_LOAD if header.p_offset(LE) == 0 => is_at_its_address = header.p_vaddr(LE) != 0,
            _ => {}
        }
    }
    if is_at_its_address && !has_own_entry || dynamic_svma.is_none() {
        bias = 0;
    }
    let of_file = Source::File(ProgramHeaders { bias, headers_avma, count }, tls_align);
    let Some(dynamic_svma) = dynamic_svma else { return Ok(of_file) };
    let dynamic_avma = bias.wrapping_add(dynamic_svma);
    // A static position-independent program has this entry too, but it stays empty.
    let wanted = |tag, value| (tag == elf::DT_DEBUG && has_loader).then_some(value);
    match find_dynamic(memory, dynamic_avma, wanted).map_err(memory_error)? {
        Some(0) => {
            return Err(Error::Unsupported { pid, reason: "its loader has not started it yet, or hides" });
        }
        Some(debug_avma) => return Ok(Source::Loader(debug_avma)),
        None => {}
    }
    let loader = read_module(memory, String::new(), false, bias, dynamic_avma);
    let debug = loader.and_then(|loader| loader.symbol(memory, "_r_debug"));
    Ok(debug.map_or(of_file, |symbol| Source::Loader(symbol.address_avma)))
}

/// Reads the auxiliary vector of a process.
pub(crate) fn auxiliary(pid: u32) -> Result<HashMap<u64, u64>> {
    let bytes = fs::read(format!("/proc/{}/auxv", heapr_proc::telling_thread(pid))).map_err(|error| {
        match error.kind() {
            std::io::ErrorKind::PermissionDenied => crate::target::not_permitted(pid),
            _ => Error::NoSuchProcess { pid },
        }
    })?;
    let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap_or_default());
    Ok(bytes.chunks_exact(16).map(|entry| (word(&entry[..8]), word(&entry[8..]))).collect())
}

impl Module {
    /// The only module of a process whose program is linked statically.
    fn of_static(pid: u32, headers: ProgramHeaders, tls_align: u64) -> Self {
        let program = StaticProgram { symbols: StaticSymbols::of_process(pid), headers, tls_align };
        Self { is_main: true, bias: headers.bias, statics: Some(Arc::new(program)), ..Self::default() }
    }

    /// Contents of the file, for a program without a loader.
    pub(crate) fn statics(&self) -> Option<&Arc<StaticProgram>> {
        self.statics.as_ref()
    }

    /// Symbol that the module defines under a name. Versions are ignored: the first one found
    /// counts.
    pub(crate) fn symbol(&self, memory: &impl TargetMemory, name: &str) -> Option<Symbol> {
        if let Some(statics) = &self.statics {
            return statics.symbols.get(name).map(|symbol| Symbol {
                address_avma: self.bias.wrapping_add(symbol.svma),
                size_bytes: symbol.size_bytes,
                is_indirect: symbol.is_indirect,
            });
        }
        if self.gnu_hash_avma == 0 || self.symbols_avma == 0 || self.strings_avma == 0 {
            return None;
        }
        let read = || SymbolHashes::read(memory, self.gnu_hash_avma).map(Arc::new);
        let hashes = self.hashes.get_or_init(read).as_ref()?;
        hashes.find(memory, hash_of(name), |index| {
            let symbol_avma = self.symbols_avma.checked_add(u64::from(index) * SYMBOL_BYTES)?;
            let bytes = memory.read_vec(symbol_avma, SYMBOL_BYTES as usize).ok()?;
            let (symbol, _) = pod::from_bytes::<Sym64<LE>>(&bytes).ok()?;
            let value = symbol.st_value(LE);
            let value = self.redirected.get(&(symbol_avma + 8)).copied().unwrap_or(value);
            if symbol.is_undefined(LE) || value == 0 || symbol.st_type() == elf::STT_TLS {
                return None;
            }
            let name_avma = self.strings_avma.checked_add(u64::from(symbol.st_name(LE)))?;
            let found = memory.read_vec(name_avma, name.len() + 1).ok()?;
            let is_it = found.strip_suffix(&[0]) == Some(name.as_bytes());
            is_it.then_some(Symbol {
                address_avma: self.bias.wrapping_add(value),
                size_bytes: symbol.st_size(LE),
                is_indirect: symbol.st_type() == elf::STT_GNU_IFUNC,
            })
        })
    }

    /// End of the nearest function before `address_avma` in the module's symbol table.
    pub(crate) fn end_of_function_before(
        &self,
        memory: &impl TargetMemory,
        address_avma: u64,
    ) -> Option<u64> {
        const SYMBOLS_MAX: usize = 1 << 20;
        let count = (self.strings_avma.checked_sub(self.symbols_avma)? / SYMBOL_BYTES) as usize;
        if count == 0 || count > SYMBOLS_MAX {
            return None;
        }
        let table = memory.read_vec(self.symbols_avma, count * SYMBOL_BYTES as usize).ok()?;
        let (symbols, _) = pod::slice_from_bytes::<Sym64<LE>>(&table, count).ok()?;
        let ends = symbols.iter().filter_map(|symbol| {
            let is_function = matches!(symbol.st_type(), elf::STT_FUNC | elf::STT_GNU_IFUNC);
            let end = self.bias.wrapping_add(symbol.st_value(LE)).wrapping_add(symbol.st_size(LE));
            (is_function && !symbol.is_undefined(LE) && end <= address_avma).then_some(end)
        });
        ends.max()
    }
}
