//! The dynamic section of a loaded module: symbols, found by its hash tables, and relocations.
//!
//! The rules are those of the System V ABI (chapter 5). For the GNU hash table they are in
//! binutils' sources.

use core::ffi::{CStr, c_char};

use crate::arch::loading::resolved;

const DT_PLTRELSZ: usize = 2;
const DT_HASH: usize = 4;
const DT_STRTAB: usize = 5;
const DT_SYMTAB: usize = 6;
const DT_RELA: usize = 7;
const DT_RELASZ: usize = 8;
const DT_DEBUG: usize = 21;
const DT_JMPREL: usize = 23;
const DT_GNU_HASH: usize = 0x6fff_fef5;

/// The parts of a module's dynamic section that the agent uses; addresses are avma.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Dynamic {
    bias: usize,
    symbols: usize,
    strings: usize,
    gnu_hash: usize,
    hash: usize,
    /// Address of the loader's structure for debuggers; not 0 for the main program only.
    pub(super) debug: usize,
    /// Relocation tables (`Elf64_Rela`): address and bytes.
    pub(crate) relocations: [(usize, usize); 2],
}

/// `Elf64_Sym`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Symbol {
    name: u32,
    pub(crate) info: u8,
    other: u8,
    pub(crate) section: u16,
    pub(crate) value: usize,
    size: u64,
}

/// `Elf64_Rela`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Relocation {
    /// Address to be relocated.
    pub(crate) offset_svma: usize,
    /// Type (low 32 bits) and symbol (high).
    pub(crate) info: u64,
    /// Addend.
    pub(crate) addend: i64,
}

impl Dynamic {
    /// # Safety
    /// 1. `entries` is the dynamic section of a module that the loader has loaded at `bias`.
    pub(crate) unsafe fn read(bias: usize, mut entries: *const [usize; 2]) -> Option<Self> {
        let mut dynamic =
            Self { bias, symbols: 0, strings: 0, gnu_hash: 0, hash: 0, debug: 0, relocations: [(0, 0); 2] };
        let [mut rela, mut rela_bytes, mut jmprel, mut jmprel_bytes] = [0; 4];
        // glibc relocates these pointers in place, musl and the vdso do not: a value below the bias
        // is an offset.
        let absolute = |value: usize| if value < bias { bias.wrapping_add(value) } else { value };
        loop {
            // SAFETY: (1): the section is mapped up to its zero tag.
            let [tag, value] = unsafe { *entries };
            match tag {
                0 => break,
                DT_SYMTAB => dynamic.symbols = absolute(value),
                DT_STRTAB => dynamic.strings = absolute(value),
                DT_GNU_HASH => dynamic.gnu_hash = absolute(value),
                DT_HASH => dynamic.hash = absolute(value),
                DT_DEBUG => dynamic.debug = value,
                DT_RELA => rela = absolute(value),
                DT_RELASZ => rela_bytes = value,
                DT_JMPREL => jmprel = absolute(value),
                DT_PLTRELSZ => jmprel_bytes = value,
                _ => {}
            }
            // SAFETY: not at the zero tag yet.
            entries = unsafe { entries.add(1) };
        }
        dynamic.relocations = [(rela, rela_bytes), (jmprel, jmprel_bytes)];
        (dynamic.symbols != 0 && dynamic.strings != 0).then_some(dynamic)
    }

    /// Returns the address of the function or object that the module defines under this name; 0 if
    /// the module does not define it.
    pub(crate) fn find(&self, name: &[u8]) -> usize {
        // SAFETY: an entry of the module's table of symbols.
        self.find_entry(name).map_or(0, |entry| self.address_of(unsafe { entry.read() }))
    }

    /// Returns address and bytes of the object or function that the module defines under this name.
    /// The symbol must not be one whose address the loader gets by calling a resolver.
    pub(crate) fn find_object(&self, name: &[u8]) -> Option<(usize, usize)> {
        // SAFETY: an entry of the module's table of symbols.
        let symbol = unsafe { self.find_entry(name)?.read() };
        Some((self.bias.wrapping_add(symbol.value), symbol.size as usize))
    }

    /// Returns the offset of an address in the module, as its file states it (svma).
    pub(crate) fn offset_of(&self, address_avma: usize) -> usize {
        address_avma.wrapping_sub(self.bias)
    }

    /// Returns the entry of the symbol table that defines this name.
    pub(crate) fn find_entry(&self, name: &[u8]) -> Option<*const Symbol> {
        let index = if self.gnu_hash != 0 {
            // SAFETY: the loader has resolved symbols through this table itself.
            unsafe { self.find_gnu(name) }
        } else if self.hash != 0 {
            // SAFETY: as above.
            unsafe { self.find_sysv(name) }
        } else {
            None
        };
        index.map(|index| (self.symbols as *const Symbol).wrapping_add(index as usize))
    }

    fn address_of(&self, symbol: Symbol) -> usize {
        const STT_GNU_IFUNC: u8 = 10;
        let address = self.bias.wrapping_add(symbol.value);
        if symbol.info & 15 == STT_GNU_IFUNC {
            // SAFETY: an ifunc symbol's value is its resolver.
            return unsafe { resolved(address) };
        }
        address
    }

    /// # Safety
    /// 1. `index` is below the number of the module's dynamic symbols.
    unsafe fn symbol(&self, index: u32) -> Symbol {
        // SAFETY: (1).
        unsafe { *(self.symbols as *const Symbol).add(index as usize) }
    }

    /// Returns the name of a symbol.
    ///
    /// # Safety
    /// 1. `index` is below the number of the module's dynamic symbols.
    pub(crate) unsafe fn symbol_name(&self, index: u32) -> &[u8] {
        // SAFETY: (1); names are zero-terminated strings in the module's string table.
        unsafe {
            let symbol = self.symbol(index);
            CStr::from_ptr((self.strings as *const c_char).add(symbol.name as usize)).to_bytes()
        }
    }

    /// # Safety
    /// 1. As for [`Self::symbol`].
    unsafe fn defines(&self, index: u32, name: &[u8]) -> bool {
        // SAFETY: (1).
        let symbol = unsafe { self.symbol(index) };
        // SAFETY: (1).
        symbol.section != 0 && symbol.value != 0 && unsafe { self.is_named(symbol, name) }
    }

    /// Compares a symbol's name without the C library's functions: see
    /// [`find_after_agent_uncalled`].
    ///
    /// # Safety
    /// 1. The symbol is one of the module's.
    unsafe fn is_named(&self, symbol: Symbol, name: &[u8]) -> bool {
        let start = (self.strings as *const u8).wrapping_add(symbol.name as usize);
        for (number, &byte) in name.iter().enumerate() {
            // SAFETY: (1): a zero-terminated string, of which no byte is read after the first
            // difference.
            if unsafe { *start.wrapping_add(number) } != byte {
                return false;
            }
        }
        // SAFETY: as above: `name` has no zero, so the string does not end before this byte.
        unsafe { *start.wrapping_add(name.len()) == 0 }
    }

    /// # Safety
    /// 1. `gnu_hash` is the module's DT_GNU_HASH table.
    unsafe fn find_gnu(&self, name: &[u8]) -> Option<u32> {
        let hash =
            name.iter().fold(5381_u32, |hash, &byte| hash.wrapping_mul(33).wrapping_add(u32::from(byte)));
        let table = self.gnu_hash as *const u32;
        // SAFETY: (1): four words of header, then bloom words, buckets and chains as they say.
        unsafe {
            let [bucket_count, first_symbol, bloom_count] = [*table, *table.add(1), *table.add(2)];
            if bucket_count == 0 {
                return None;
            }
            let buckets = table.add(4 + bloom_count as usize * 2);
            let mut index = *buckets.add((hash % bucket_count) as usize);
            if index < first_symbol {
                return None;
            }
            let chains = buckets.add(bucket_count as usize);
            loop {
                let chain = *chains.add((index - first_symbol) as usize);
                if chain | 1 == hash | 1 && self.defines(index, name) {
                    return Some(index);
                }
                if chain & 1 != 0 {
                    return None;
                }
                index = index.wrapping_add(1);
            }
        }
    }

    /// # Safety
    /// 1. `hash` is the module's DT_HASH table.
    unsafe fn find_sysv(&self, name: &[u8]) -> Option<u32> {
        let hash = name.iter().fold(0_u32, |hash, &byte| {
            let hash = (hash << 4).wrapping_add(u32::from(byte));
            let high = hash & 0xf000_0000;
            (hash ^ (high >> 24)) & !high
        });
        let table = self.hash as *const u32;
        // SAFETY: (1): bucket count, chain count, buckets, chains.
        unsafe {
            let [bucket_count, chain_count] = [*table, *table.add(1)];
            if bucket_count == 0 {
                return None;
            }
            let mut index = *table.add(2 + (hash % bucket_count) as usize);
            while index != 0 && index < chain_count {
                if self.defines(index, name) {
                    return Some(index);
                }
                index = *table.add(2 + bucket_count as usize + index as usize);
            }
        }
        None
    }
}
