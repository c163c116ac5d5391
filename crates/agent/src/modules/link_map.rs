//! Finds functions in the loaded modules without dlsym, which may allocate and takes the loader's
//! lock.
//!
//! The modules are read from the loader's own list (`dl_iterate_phdr`, in search order), and the
//! symbols from their hash tables. Data that the loader has mapped and relocated is trusted: the
//! loader runs in this process already.

use core::ffi::{c_char, c_int, c_void};

use heapr_wire::arch::PAGE_BYTES_MIN;

use crate::arch::weak_symbols;
use crate::arch::wide_registers::call_keeping;
use crate::modules::dynamic_section::Dynamic;

/// One loaded module, as `dl_iterate_phdr` describes it (`struct dl_phdr_info`, the fields that
/// every C library has).
#[repr(C)]
pub(crate) struct DlPhdrInfo {
    /// Load bias.
    pub(crate) bias: usize,
    /// Path; empty for the main program.
    pub(crate) name: *const c_char,
    /// Program headers.
    pub(crate) headers: *const ProgramHeader,
    /// Number of program headers.
    pub(crate) header_count: u16,
    /// Numbers of modules that have been loaded and unloaded so far, in all namespaces.
    pub(crate) load_counts: [u64; 2],
    /// Index among the modules with thread-local variables; 0: the module has no such variables.
    pub(crate) tls_module: usize,
}

/// `Elf64_Phdr`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct ProgramHeader {
    pub(crate) kind: u32,
    pub(crate) flags: u32,
    pub(crate) file_off: u64,
    pub(crate) address_svma: usize,
    pub(crate) physical: u64,
    pub(crate) file_bytes: u64,
    pub(crate) memory_bytes: usize,
    pub(crate) alignment: u64,
}

pub(crate) const PT_LOAD: u32 = 1;
pub(crate) const PT_DYNAMIC: u32 = 2;
pub(crate) const PT_NOTE: u32 = 4;
pub(crate) const PT_GNU_EH_FRAME: u32 = 0x6474_e550;

pub(crate) const PF_X: u32 = 1;
pub(crate) const PF_R: u32 = 4;

unsafe extern "C" {
    fn dl_iterate_phdr(
        callback: unsafe extern "C" fn(*const DlPhdrInfo, usize, *mut c_void) -> c_int,
        data: *mut c_void,
    ) -> c_int;
}

impl DlPhdrInfo {
    /// Returns the program headers.
    pub(crate) fn headers(&self) -> &[ProgramHeader] {
        if self.headers.is_null() {
            return &[];
        }
        // SAFETY: the loader gives the mapped headers and their number.
        unsafe { core::slice::from_raw_parts(self.headers, self.header_count as usize) }
    }

    /// True if an address lies in a loaded segment.
    pub(crate) fn contains(&self, address_avma: usize) -> bool {
        self.headers().iter().any(|header| {
            header.kind == PT_LOAD
                && address_avma.wrapping_sub(self.bias.wrapping_add(header.address_svma))
                    < header.memory_bytes
        })
    }

    /// Returns the protection of the segment that holds an address, in mprotect's bits.
    pub(crate) fn protection_of(&self, address_avma: usize) -> Option<usize> {
        let offset =
            |header: &ProgramHeader| address_avma.wrapping_sub(self.bias.wrapping_add(header.address_svma));
        let mut loads = self.headers().iter().filter(|header| header.kind == PT_LOAD);
        let flags = loads.find(|header| offset(header) < header.memory_bytes)?.flags as usize;
        // Readable, writable and executable in the opposite order.
        Some((flags >> 2 & 1) | (flags & 2) | ((flags & 1) << 2))
    }

    /// True if the module is not the program itself.
    pub(crate) fn is_library(&self) -> bool {
        // SAFETY: the loader's name of the module ends with a zero; the program's own is empty.
        !self.name.is_null() && unsafe { *self.name } != 0
    }

    /// Returns the range from the first loaded byte to the end of the last one.
    pub(crate) fn range(&self) -> Option<(usize, usize)> {
        let loads = || self.headers().iter().filter(|header| header.kind == PT_LOAD);
        let start = loads().map(|header| header.address_svma).min()?;
        let end = loads().map(|header| header.address_svma.wrapping_add(header.memory_bytes)).max()?;
        Some((self.bias.wrapping_add(start), self.bias.wrapping_add(end)))
    }

    /// Decodes the module's dynamic section.
    pub(crate) fn dynamic(&self) -> Option<Dynamic> {
        let header = self.headers().iter().find(|header| header.kind == PT_DYNAMIC)?;
        // SAFETY: the loader has mapped and read this section itself; it ends with a zero tag.
        unsafe { Dynamic::read(self.bias, self.bias.wrapping_add(header.address_svma) as *const [usize; 2]) }
    }
}

/// Returns the index, among modules with thread-local variables, of the module that holds an
/// address; 0 if it has no such variables.
pub(crate) fn tls_module_of(address_avma: usize) -> usize {
    let mut found = 0;
    for_each_module(&mut |info| {
        let is_it = info.contains(address_avma);
        if is_it {
            found = info.tls_module;
        }
        is_it
    });
    found
}

/// Calls `visit` for each loaded module in the loader's order until it returns `true`.
///
/// Takes the loader's list lock (recursive, held by the loader only for moments): not for the
/// common path.
pub(crate) fn for_each_module(visit: &mut dyn FnMut(&DlPhdrInfo) -> bool) {
    unsafe extern "C" fn callback(info: *const DlPhdrInfo, _bytes: usize, data: *mut c_void) -> c_int {
        // SAFETY: `data` is the address of the reference below, which outlives the iteration;
        // `info` is the loader's.
        unsafe {
            let visit = &mut *data.cast::<&mut dyn FnMut(&DlPhdrInfo) -> bool>();
            c_int::from(visit(&*info))
        }
    }
    let mut visit = visit;
    // SAFETY: the callback gets back the address of `visit`, which lives until the call returns.
    unsafe {
        let function = dl_iterate_phdr as *const () as usize;
        call_keeping(callback as *const () as usize, (&raw mut visit) as usize, function);
    }
}

/// True if `info` is the kernel's vdso, whose symbols are not functions of a library.
fn is_vdso(info: &DlPhdrInfo) -> bool {
    const NAME: &[u8] = b"linux-vdso";
    if info.name.is_null() {
        return false;
    }
    // (`CStr` would measure the name's length for each symbol looked up in each module.)
    let name = info.name.cast::<u8>();
    NAME.iter().enumerate().all(|(place, &byte)| {
        // SAFETY: a zero-terminated string of the loader, which was equal so far.
        byte == unsafe { name.add(place).read() }
    })
}

/// Returns the address of `name` in the first module after the agent, in search order, that defines
/// it; 0 if no module does.
pub(crate) fn find_after_agent(name: &[u8]) -> usize {
    let agent = find_after_agent as *const () as usize;
    let mut is_behind = false;
    let mut found = 0;
    for_each_module(&mut |info| {
        if info.contains(agent) {
            is_behind = true;
        } else if is_behind && !is_vdso(info) {
            found = info.dynamic().map_or(0, |dynamic| dynamic.find(name));
        }
        found != 0
    });
    found
}

/// Returns the dynamic section of the agent itself.
pub(crate) fn agent() -> Option<Dynamic> {
    let own = agent as *const () as usize;
    let mut found = None;
    for_each_module(&mut |info| {
        let is_agent = info.contains(own);
        if is_agent {
            found = info.dynamic();
        }
        is_agent
    });
    found
}

/// `struct link_map`, the fields that debuggers read.
#[repr(C)]
struct LoadedModule {
    bias: usize,
    name: *const c_char,
    dynamic: *const [usize; 2],
    next: *const LoadedModule,
}

/// Beginning of `struct r_debug`.
#[repr(C)]
struct LoaderDebug {
    version: c_int,
    modules: *const LoadedModule,
}

/// `struct r_debug_extended` of glibc 2.35.
#[repr(C)]
struct NamespaceDebug {
    first: LoaderDebug,
    rest: [usize; 3],
    next: *const NamespaceDebug,
}

/// Calls `visit` for each module outside the program's own namespace. Must be called with the
/// loader's lock held: while this thread is in dlopen.
pub(crate) fn for_each_in_namespaces(visit: &mut dyn FnMut(&DlPhdrInfo)) {
    const NAMESPACES_MAX: usize = 64;
    const MODULES_MAX: usize = 65_536;
    let mut debug = 0;
    for_each_module(&mut |info| {
        debug = info.dynamic().map_or(0, |dynamic| dynamic.debug);
        true
    });
    let debug = debug as *const NamespaceDebug;
    // SAFETY: null, or the loader's structure for debuggers; from this version on there is a
    // `next`.
    if debug.is_null() || unsafe { (*debug).first.version } < 2 {
        return;
    }
    // SAFETY: as above.
    let mut next = unsafe { (*debug).next };
    for _ in 0..NAMESPACES_MAX {
        if next.is_null() {
            return;
        }
        // SAFETY: a namespace in the loader's list, which is never unmapped.
        let mut module = unsafe { (*next).first.modules };
        for _ in 0..MODULES_MAX {
            if module.is_null() {
                break;
            }
            // SAFETY: a module of the loader's list, which cannot change while its lock is held.
            let loaded = unsafe { &*module };
            if let Some(info) = loaded.info() {
                visit(&info);
            }
            module = loaded.next;
        }
        // SAFETY: as above.
        next = unsafe { (*next).next };
    }
}

impl LoadedModule {
    /// Returns the module's description as `dl_iterate_phdr` gives it for the program's namespace;
    /// `None` if its headers are not at its first bytes.
    fn info(&self) -> Option<DlPhdrInfo> {
        if self.bias == 0 || self.dynamic.is_null() {
            return None;
        }
        // SAFETY: libraries that are loaded at an address of the loader's choice begin at their
        // bias, with at least a page.
        let header = unsafe { core::slice::from_raw_parts(self.bias as *const u8, 64) };
        let offset = usize::from_le_bytes(header.get(32..40)?.try_into().ok()?);
        let header_count = u16::from_le_bytes(header.get(56..58)?.try_into().ok()?);
        let end = usize::from(header_count).checked_mul(size_of::<ProgramHeader>())?.checked_add(offset)?;
        let is_plain = header.starts_with(b"\x7fELF") && end <= PAGE_BYTES_MIN;
        let headers = self.bias.wrapping_add(offset) as *const ProgramHeader;
        is_plain.then_some(DlPhdrInfo {
            bias: self.bias,
            name: self.name,
            headers,
            header_count,
            load_counts: [0; 2],
            tls_module: 0,
        })
    }
}

unsafe extern "C" {
    /// The agent's own dynamic section; the linker defines it.
    #[link_name = "_DYNAMIC"]
    static OWN_DYNAMIC: [usize; 2];
}

/// Finds the same address as [`find_after_agent`], without calling any function. For a program in
/// which `dl_iterate_phdr`, `strlen` and `memcmp` belong to a library that is not initialised yet.
/// Only for use while the program has one thread, as it takes no lock.
pub(crate) fn find_after_agent_uncalled(name: &[u8]) -> usize {
    let debug = weak_symbols::loader_debug() as *const LoaderDebug;
    if debug.is_null() {
        return 0;
    }
    let mut is_behind = false;
    // SAFETY: glibc's variable, which its loader has set up before any other code ran.
    let mut module = unsafe { (*debug).modules };
    while !module.is_null() {
        // SAFETY: a module of the loader's list, which only another thread could change.
        let LoadedModule { bias, dynamic, next, .. } = unsafe { module.read() };
        if dynamic == &raw const OWN_DYNAMIC {
            is_behind = true;
        } else if is_behind && !dynamic.is_null() {
            // SAFETY: the loader's own pointer to the section of that module.
            let found = unsafe { Dynamic::read(bias, dynamic) }.map_or(0, |dynamic| dynamic.find(name));
            if found != 0 {
                return found;
            }
        }
        module = next;
    }
    0
}

/// True if a module before the agent defines `name`: then calls go to that module, not to the
/// agent.
pub(crate) fn is_defined_before_agent(name: &[u8]) -> bool {
    let own = is_defined_before_agent as *const () as usize;
    let mut is_before = false;
    for_each_module(&mut |info| {
        let is_agent = info.contains(own);
        is_before =
            !is_agent && !is_vdso(info) && info.dynamic().is_some_and(|dynamic| dynamic.find(name) != 0);
        is_before || is_agent
    });
    is_before
}

/// Returns the address of `name` in the first module that defines it; 0 if no module does.
pub(crate) fn find_anywhere(name: &[u8]) -> usize {
    let mut found = 0;
    for_each_module(&mut |info| {
        if !is_vdso(info) {
            found = info.dynamic().map_or(0, |dynamic| dynamic.find(name));
        }
        found != 0
    });
    found
}
