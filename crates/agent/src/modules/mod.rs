//! The loaded modules: each is found at the first unwind through it, announced to the recorder, and
//! forgotten at dlclose.
//!
//! With glibc 2.35 and later a module is found by `_dl_find_object`, which takes no lock and may be
//! called in a signal handler. Before that (and with musl) it is found in the loader's list.

pub(crate) mod dynamic_section;
mod file_tables;
pub(crate) mod interpreters;
pub(crate) mod java_code;
pub(crate) mod java_layout;
mod java_tables;
pub(crate) mod link_map;
pub(crate) mod mapped_path;
pub(crate) mod memory_map;
pub(crate) mod program_break;
pub(crate) mod registered_frames;
pub(crate) mod rules;
mod run_time_code;

use core::ffi::{CStr, c_char, c_int, c_void};
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering::*};

use heapr_ring::sys;
use heapr_wire::arch::PAGE_BYTES_MIN;
use heapr_wire::{MODULE_MAIN, MODULE_UNLOADED, ModuleRecord};

use crate::arch::Rule;
use crate::modules::dynamic_section::Dynamic;
use crate::modules::file_tables::FileTables;
use crate::modules::link_map::{PF_R, PF_X, PT_DYNAMIC, PT_GNU_EH_FRAME, PT_LOAD, PT_NOTE, ProgramHeader};
use crate::state::AGENT;
use crate::state::callback::Callback;
use crate::unwind::{SEGMENTS_MAX, UnwindTables, rule_for as read_rule};

/// Largest number of modules of one process image over its life. Each takes at least one mapping,
/// and that is as many mappings as the kernel gives a process (`vm.max_map_count` by default). An
/// entry has about a hundred bytes, in memory that is touched as it is used.
const MODULES_MAX: usize = 1 << 16;
const ELF_HEADER_BYTES: usize = 64;
/// Number of entries of [`RECENT`], the fast lookup of modules by their first address.
const RECENT_MAX: usize = 1 << 12;

/// Receiver of module records for the recorder.
pub(crate) trait ModuleSink {
    /// Writes one record into the event stream.
    fn module(&mut self, module: &Module, flags: u64);
}

const ANNOUNCING: u32 = 1;
const LOADED: u32 = 2;
const UNLOADED: u32 = 3;

/// Largest number of modules that are marked as unloaded under one acquisition of the loader's
/// lock.
const GONE_AT_ONCE: usize = 16;

/// One module. All fields are written by the thread that found it, before `state` says so.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Module {
    state: AtomicU32,
    header_count: AtomicU32,
    pub(crate) bias: AtomicUsize,
    pub(crate) start: AtomicUsize,
    pub(crate) end: AtomicUsize,
    link: AtomicUsize,
    eh_frame_hdr: AtomicUsize,
    headers: AtomicUsize,
    /// Hash of path and build-id, which differs if another module took over the addresses.
    identity: AtomicU64,
    build_id: AtomicUsize,
    build_id_bytes: AtomicUsize,
    name: AtomicUsize,
    /// Unwind tables of the module's file: address of a [`FileTables`], [`NO_TABLES`], or 0 if the
    /// file was not read yet.
    file_tables: AtomicUsize,
}

/// Value of [`Module::file_tables`] for a file without such tables.
const NO_TABLES: usize = 1;

/// `struct dl_find_object` of <dlfcn.h>.
#[repr(C)]
struct DlFindObject {
    flags: usize,
    map_start: usize,
    map_end: usize,
    link_map: *const LinkMap,
    eh_frame: usize,
    reserved: [usize; 7],
}

/// The public head of glibc's `struct link_map`.
#[repr(C)]
struct LinkMap {
    bias: usize,
    name: *const c_char,
}

type FindObject = unsafe extern "C" fn(*mut c_void, *mut DlFindObject) -> c_int;

static FIND_OBJECT: AtomicUsize = AtomicUsize::new(0);
static MODULES: AtomicPtr<Module> = AtomicPtr::new(core::ptr::null_mut());
static MODULE_COUNT: AtomicU32 = AtomicU32::new(0);
/// Indexes of modules, by the hash of their first address.
static RECENT: [AtomicU32; RECENT_MAX] = [const { AtomicU32::new(0) }; RECENT_MAX];
/// Called when a new module was found.
pub(crate) static ON_NEW: Callback = Callback::none();
/// Distinguishes stack nodes of different modules that had the same addresses one after the other.
static SALT: AtomicU64 = AtomicU64::new(0);

/// Finds the loader's function and maps the table of modules.
pub(crate) fn start() {
    start_with(link_map::find_anywhere(b"_dl_find_object"));
}

/// Starts like [`start`], with the address of the loader's function; 0 if the loader has no such
/// function.
pub(crate) fn start_with(find_object_avma: usize) {
    FIND_OBJECT.store(find_object_avma, Relaxed);
    if let Ok(table) = sys::map_anonymous(MODULES_MAX.wrapping_mul(size_of::<Module>()), false) {
        MODULES.store(table.cast(), Release);
    }
}

/// Returns the part of the stack tree's key that distinguishes modules at the same addresses.
#[inline(always)]
pub(crate) fn salt() -> u64 {
    SALT.load(Relaxed)
}

fn all() -> &'static [Module] {
    let table = MODULES.load(Acquire);
    if table.is_null() {
        return &[];
    }
    // SAFETY: mapped in `start` for MODULES_MAX zeroed modules, never unmapped; atomics are valid
    // for any bits.
    unsafe { core::slice::from_raw_parts(table, (MODULE_COUNT.load(Acquire) as usize).min(MODULES_MAX)) }
}

/// Returns the rule for the frame that returns to `return_address`; finds and announces its module
/// if it is new. Returns `None` if there is no code at the address.
pub(crate) fn rule_for(return_address: u64, sink: &mut dyn ModuleSink) -> Option<Rule> {
    let lookup_avma = return_address.wrapping_sub(1) as usize;
    let found = find(lookup_avma);
    if !is_code_of(found.as_ref(), lookup_avma) {
        return None;
    }
    if let Some(found) = &found
        && found.known().is_none()
    {
        announce(found, sink);
    }
    // Code of a run-time compiler that registers no tables can be unwound by frame pointers only.
    let tables = tables_of(found.as_ref(), lookup_avma);
    Some(match tables {
        Some(tables) => read_rule(&tables, lookup_avma),
        None => rule_of_made_code(return_address as usize).unwrap_or(Rule::FRAME_POINTER),
    })
}

/// Returns the rule for the frame that returns to JIT code outside of all modules, if the code's
/// maker describes its frames.
pub(crate) fn rule_of_made_code(return_address: usize) -> Option<Rule> {
    let of_java = java_code::find(return_address).and_then(|code| code.rule());
    of_java.or_else(|| interpreters::trampoline_frame_bytes(return_address).map(Rule::plain))
}

/// True if an address lies in a loaded module.
pub(crate) fn holds(address_avma: usize) -> bool {
    find(address_avma).is_some()
}

/// True if there is code at an address: otherwise no function returns to it.
pub(crate) fn is_code(address_avma: usize) -> bool {
    is_code_of(find(address_avma).as_ref(), address_avma)
}

fn is_code_of(found: Option<&Found>, address_avma: usize) -> bool {
    match found {
        Some(found) => found.is_executable(address_avma),
        None => registered_frames::tables(address_avma).is_some() || run_time_code::is_at(address_avma),
    }
}

/// Returns the unwind tables that describe an address, or at least those of the module that holds
/// it.
pub(crate) fn unwind_tables(address_avma: usize) -> Option<UnwindTables> {
    tables_of(find(address_avma).as_ref(), address_avma)
}

fn tables_of(found: Option<&Found>, address_avma: usize) -> Option<UnwindTables> {
    let Some(found) = found else { return registered_frames::tables(address_avma) };
    let mapped = found.unwind_tables();
    if mapped.is_some_and(|tables| tables.describes(address_avma)) {
        return mapped;
    }
    let of_file = found.known().and_then(|module| module.file_tables(found));
    of_file.and_then(|tables| tables.describing(found, address_avma)).or(mapped)
}

/// The loader's description of the module that holds an address.
struct Found {
    start: usize,
    end: usize,
    bias: usize,
    link: usize,
    name: *const c_char,
    eh_frame_hdr: usize,
    headers: *const ProgramHeader,
    header_count: usize,
}

impl Found {
    fn program_headers(&self) -> &[ProgramHeader] {
        if self.headers.is_null() {
            return &[];
        }
        // SAFETY: mapped program headers of a loaded module and their number, from its ELF header
        // or the loader.
        unsafe { core::slice::from_raw_parts(self.headers, self.header_count) }
    }

    /// Reads the location of the program headers from the ELF header at the module's start, if they
    /// are in the module's first page.
    fn take_headers(&mut self, header: &[u8; ELF_HEADER_BYTES]) {
        let offset = header.get(32..40).and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_le_bytes);
        let count = header.get(56..58).and_then(|bytes| bytes.try_into().ok()).map_or(0, u16::from_le_bytes);
        let table_end = offset.saturating_add(u64::from(count).wrapping_mul(56));
        if header.starts_with(b"\x7fELF") && offset >= 64 && table_end <= PAGE_BYTES_MIN as u64 {
            self.headers = self.start.wrapping_add(offset as usize) as *const ProgramHeader;
            self.header_count = usize::from(count);
        }
    }

    /// Returns the module's entry, if it has been announced.
    fn known(&self) -> Option<&'static Module> {
        let is_it = |module: &&Module| {
            module.state.load(Acquire) == LOADED
                && module.start.load(Relaxed) == self.start
                && module.end.load(Relaxed) == self.end
                && module.link.load(Relaxed) == self.link
        };
        let recent = RECENT.get(rules::hash(self.start as u64) % RECENT_MAX)?;
        let all = all();
        if let Some(module) = all.get(recent.load(Relaxed) as usize).filter(is_it) {
            return Some(module);
        }
        let number = all.iter().position(|module| is_it(&module))?;
        recent.store(number as u32, Relaxed);
        all.get(number)
    }

    fn segments_with(&self, permission: u32) -> impl Iterator<Item = (usize, usize)> {
        let headers = self.program_headers().iter();
        let loaded = headers.filter(move |header| header.kind == PT_LOAD && header.flags & permission != 0);
        loaded.map(|header| {
            let start = self.bias.wrapping_add(header.address_svma);
            (start, start.wrapping_add(header.memory_bytes))
        })
    }

    fn readable_segments(&self) -> impl Iterator<Item = (usize, usize)> {
        self.segments_with(PF_R)
    }

    fn is_executable(&self, address_avma: usize) -> bool {
        self.segments_with(PF_X).any(|(start, end)| address_avma >= start && address_avma < end)
    }

    fn dynamic(&self) -> Option<Dynamic> {
        let header = self.program_headers().iter().find(|header| header.kind == PT_DYNAMIC)?;
        let entries = self.bias.wrapping_add(header.address_svma) as *const [usize; 2];
        // SAFETY: the dynamic section of a module that the loader has loaded, and read itself.
        unsafe { Dynamic::read(self.bias, entries) }
    }

    fn unwind_tables(&self) -> Option<UnwindTables> {
        if self.eh_frame_hdr == 0 {
            return None;
        }
        let mut segments = [(0, 0); SEGMENTS_MAX];
        for (place, segment) in segments.iter_mut().zip(self.readable_segments()) {
            *place = segment;
        }
        Some(UnwindTables::new(self.eh_frame_hdr, &segments))
    }

    /// Returns the path with its zero byte.
    fn path_with_end(&self) -> &[u8] {
        if self.name.is_null() {
            return &[];
        }
        // SAFETY: a zero-terminated string of the loader, which lives as long as the module.
        unsafe { CStr::from_ptr(self.name) }.to_bytes_with_nul()
    }

    fn path(&self) -> &[u8] {
        self.path_with_end().strip_suffix(&[0]).unwrap_or_default()
    }

    /// Returns a hash that distinguishes the module from others that have its addresses before or
    /// after it. The hash is of path and build-id; without a build-id, of path and unwind header.
    fn identity(&self) -> u64 {
        const BYTES_MAX: usize = 4096;
        let build_id = self.build_id();
        let looks = self.program_headers().iter().filter(|_| build_id.is_empty());
        let looks = looks.filter(|header| header.kind == PT_GNU_EH_FRAME).flat_map(|header| {
            let start = self.bias.wrapping_add(header.address_svma);
            let is_inside = start >= self.start && start.wrapping_add(header.memory_bytes) <= self.end;
            let bytes = if is_inside { header.memory_bytes.min(BYTES_MAX) } else { 0 };
            // SAFETY: a segment inside the module's mapped range, which the loader keeps readable.
            unsafe { core::slice::from_raw_parts(start as *const u8, bytes) }
        });
        self.path().iter().chain(build_id).chain(looks).fold(0xcbf2_9ce4_8422_2325_u64, |hash, &byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        })
    }

    /// Returns the build-id in the mapped notes.
    fn build_id(&self) -> &[u8] {
        for header in self.program_headers().iter().filter(|header| header.kind == PT_NOTE) {
            let start = self.bias.wrapping_add(header.address_svma);
            if start < self.start || start.wrapping_add(header.memory_bytes) > self.end {
                continue;
            }
            // SAFETY: a note segment inside the module's mapped range, which the loader keeps
            // readable.
            let notes = unsafe { core::slice::from_raw_parts(start as *const u8, header.memory_bytes) };
            if let Some(build_id) = gnu_build_id(notes) {
                return build_id;
            }
        }
        &[]
    }
}

fn gnu_build_id(mut notes: &[u8]) -> Option<&[u8]> {
    const NT_GNU_BUILD_ID: u32 = 3;
    let word = |bytes: &[u8], offset: usize| -> Option<u32> {
        Some(u32::from_le_bytes(bytes.get(offset..offset.wrapping_add(4))?.try_into().ok()?))
    };
    loop {
        let name_bytes = word(notes, 0)? as usize;
        let value_bytes = word(notes, 4)? as usize;
        let kind = word(notes, 8)?;
        let value_at = 12_usize.checked_add(name_bytes)?.checked_add(3)? & !3;
        let value = notes.get(value_at..value_at.checked_add(value_bytes)?)?;
        if kind == NT_GNU_BUILD_ID && notes.get(12..16) == Some(b"GNU\0") {
            return value.get(..value_bytes.min(ModuleRecord::BUILD_ID_BYTES_MAX));
        }
        notes = notes.get(value_at.checked_add(value_bytes)?.checked_add(3)? & !3..)?;
    }
}

unsafe extern "C" {
    /// The agent's own ELF header; the linker defines its location.
    #[link_name = "__ehdr_start"]
    static OWN_HEADER: [u8; ELF_HEADER_BYTES];
}

/// Describes the agent itself, if an address lies in it and the injector has mapped it, so that the
/// loader does not know it.
fn find_own(address_avma: usize) -> Option<Found> {
    let start = (&raw const OWN_HEADER).addr();
    if AGENT.is_injected.load(Relaxed) == 0 || address_avma < start {
        return None;
    }
    let mut found = Found {
        start,
        end: start,
        // The agent is linked to address 0.
        bias: start,
        link: 0,
        name: core::ptr::null(),
        eh_frame_hdr: 0,
        headers: core::ptr::null(),
        header_count: 0,
    };
    // SAFETY: the mapped header.
    found.take_headers(unsafe { &OWN_HEADER });
    let unwind = found.program_headers().iter().find(|header| header.kind == PT_GNU_EH_FRAME);
    found.eh_frame_hdr = unwind.map_or(0, |header| start.wrapping_add(header.address_svma));
    found.end = found.segments_with(PF_R).map(|(_, end)| end).max()?;
    (address_avma < found.end).then_some(found)
}

fn find(address_avma: usize) -> Option<Found> {
    let own = find_own(address_avma);
    if own.is_some() {
        return own;
    }
    let function = FIND_OBJECT.load(Relaxed);
    if function == 0 {
        return find_in_list(address_avma);
    }
    let mut object = DlFindObject {
        flags: 0,
        map_start: 0,
        map_end: 0,
        link_map: core::ptr::null(),
        eh_frame: 0,
        reserved: [0; 7],
    };
    // SAFETY: glibc's function of this signature; it fills the structure and takes no lock.
    let status = unsafe {
        let find_object: FindObject = core::mem::transmute(function);
        find_object(address_avma as *mut c_void, &raw mut object)
    };
    if status != 0 || object.link_map.is_null() {
        return None;
    }
    // SAFETY: the loader's entry for a loaded module.
    let link = unsafe { &*object.link_map };
    let mut found = Found {
        start: object.map_start,
        end: object.map_end,
        bias: link.bias,
        link: object.link_map as usize,
        name: link.name,
        eh_frame_hdr: object.eh_frame,
        headers: core::ptr::null(),
        header_count: 0,
    };
    // SAFETY: the first page of a loaded module is mapped readable.
    found.take_headers(unsafe { &*(object.map_start as *const [u8; ELF_HEADER_BYTES]) });
    if found.header_count != 0 {
        return Some(found);
    }
    // The module's first segment does not hold its headers: the loader's list has them.
    find_in_list(address_avma)
}

fn find_in_list(address_avma: usize) -> Option<Found> {
    let mut found = None;
    link_map::for_each_module(&mut |info| {
        if !info.contains(address_avma) {
            return false;
        }
        let (start, end) = info.range().unwrap_or_default();
        let unwind = info.headers().iter().find(|header| header.kind == PT_GNU_EH_FRAME);
        found = Some(Found {
            start,
            end,
            bias: info.bias,
            link: info.headers as usize,
            name: info.name,
            eh_frame_hdr: unwind.map_or(0, |header| info.bias.wrapping_add(header.address_svma)),
            headers: info.headers,
            header_count: usize::from(info.header_count),
        });
        true
    });
    found
}

/// Enters a module in the table and announces it to the recorder. Two threads that find it at once
/// both do so, which the recorder accepts.
fn announce(found: &Found, sink: &mut dyn ModuleSink) {
    let table = MODULES.load(Acquire);
    if table.is_null() {
        return;
    }
    let path = found.path();
    let build_id = found.build_id();
    let identity = found.identity();
    let overlaps =
        |module: &&Module| module.start.load(Relaxed) < found.end && found.start < module.end.load(Relaxed);
    let is_other = all()
        .iter()
        .filter(|module| module.state.load(Acquire) >= LOADED)
        .filter(overlaps)
        .any(|module| module.identity.load(Relaxed) != identity);
    if is_other {
        SALT.fetch_add(1, Relaxed);
        forget_code();
    }
    for module in all().iter().filter(|module| module.state.load(Acquire) == LOADED).filter(overlaps) {
        module.state.store(UNLOADED, Release);
    }
    let Some(module) = place_for(table, identity, found.start) else { return };
    module.header_count.store(found.header_count as u32, Relaxed);
    module.bias.store(found.bias, Relaxed);
    module.start.store(found.start, Relaxed);
    module.end.store(found.end, Relaxed);
    module.link.store(found.link, Relaxed);
    module.eh_frame_hdr.store(found.eh_frame_hdr, Relaxed);
    module.headers.store(found.headers as usize, Relaxed);
    module.identity.store(identity, Relaxed);
    module.build_id.store(build_id.as_ptr() as usize, Relaxed);
    module.build_id_bytes.store(build_id.len(), Relaxed);
    module.name.store(found.name as usize, Relaxed);
    module.file_tables.store(0, Relaxed);
    // Until the record is written the state is neither loaded nor unloaded, so that other threads
    // announce the module themselves.
    module.state.store(ANNOUNCING, Release);
    sink.module(module, if path.is_empty() { MODULE_MAIN } else { 0 });
    // Release: pairs with the Acquire in `Found::known`; only from here on other threads skip
    // announcing the module.
    module.state.store(LOADED, Release);
    if let Some(dynamic) = found.dynamic() {
        interpreters::note(&dynamic);
        program_break::note(&dynamic);
    }
    ON_NEW.call();
}

/// Returns the entry that this module had before it was unloaded, or a new one. A program that
/// loads and unloads the same library all the time must not fill the table.
fn place_for(table: *mut Module, identity: u64, start: usize) -> Option<&'static Module> {
    let old = all().iter().find(|module| {
        module.state.load(Acquire) == UNLOADED
            && module.identity.load(Relaxed) == identity
            && module.start.load(Relaxed) == start
    });
    if old.is_some() {
        return old;
    }
    let number = MODULE_COUNT.fetch_add(1, AcqRel) as usize;
    if number >= MODULES_MAX {
        MODULE_COUNT.fetch_sub(1, AcqRel);
        return all().iter().find(|module| module.state.load(Acquire) == UNLOADED);
    }
    // SAFETY: the table has MODULES_MAX entries; atomics only.
    Some(unsafe { &*table.add(number) })
}

/// Announces all modules to the recorder of a forked child.
pub(crate) fn announce_all(sink: &mut dyn ModuleSink) {
    for module in all().iter().filter(|module| module.state.load(Acquire) == LOADED) {
        let flags = if module.path().is_empty() { MODULE_MAIN } else { 0 };
        sink.module(module, flags);
    }
}

/// Finds the modules that have been unloaded, and reports them to the recorder. Called in the
/// loader itself, where its entry is hooked, so that no other module is loaded before; otherwise
/// after `dlclose`.
pub(crate) fn forget_unloaded(sink: &mut dyn ModuleSink) {
    loop {
        let (gone, is_all) = mark_gone();
        gone.into_iter().flatten().for_each(|module| sink.module(module, MODULE_UNLOADED));
        if is_all {
            break;
        }
    }
}

/// Marks unloaded modules and returns as many as fit, and whether these are all.
///
/// Runs under the lock of the loader's list: another thread may unload a module while its headers
/// are read, or load another at its address. No record is written under the lock, as that may wait.
fn mark_gone() -> ([Option<&'static Module>; GONE_AT_ONCE], bool) {
    let mut gone = [None; GONE_AT_ONCE];
    let mut is_all = true;
    link_map::for_each_module(&mut |_first| {
        let mut places = gone.iter_mut();
        for module in all().iter().filter(|module| module.state.load(Acquire) == LOADED && !module.is_there())
        {
            let Some(place) = places.next() else {
                is_all = false;
                break;
            };
            if module.state.compare_exchange(LOADED, UNLOADED, AcqRel, Relaxed).is_ok() {
                *place = Some(module);
            }
        }
        // Before another thread can load a module at the same addresses.
        if gone.iter().any(Option::is_some) {
            forget_code();
        }
        true
    });
    (gone, is_all)
}

/// Notes that code addresses may have changed their meaning: cached stacks and rules are void.
pub(crate) fn forget_code() {
    rules::forget_all();
    run_time_code::forget();
    // 0 is not a valid epoch: see `Kept::proof_epoch`.
    let next = |epoch: u32| Some(epoch.wrapping_add(1).max(1));
    let _ = AGENT.code_epoch.fetch_update(Relaxed, Relaxed, next);
}

impl Module {
    /// True if the module's range still holds the same module. The lock of the loader's list must
    /// be held.
    fn is_there(&self) -> bool {
        let start = self.start.load(Relaxed);
        // The loader may have put another module there, with its entry at the same address.
        find(start).is_some_and(|found| {
            found.start == start
                && found.link == self.link.load(Relaxed)
                && found.identity() == self.identity.load(Relaxed)
        })
    }

    /// Returns the unwind tables of the module's file. Two threads that come here at once both read
    /// the file, and one result is discarded.
    fn file_tables(&self, found: &Found) -> Option<&'static FileTables> {
        let mut known = self.file_tables.load(Acquire);
        if known == 0 {
            known = FileTables::read(found).map_or(NO_TABLES, |tables| core::ptr::from_ref(tables) as usize);
            let raced = self.file_tables.compare_exchange(0, known, AcqRel, Acquire);
            known = raced.err().unwrap_or(known);
        }
        // SAFETY: tables of `FileTables::read`, which are never unmapped.
        (known != NO_TABLES).then(|| unsafe { &*(known as *const FileTables) })
    }

    /// Path according to the loader. Empty for the main program, and for an unloaded module, whose
    /// strings are freed.
    pub(crate) fn path(&self) -> &[u8] {
        let name = self.name.load(Relaxed) as *const c_char;
        if name.is_null() || self.state.load(Acquire) == UNLOADED {
            return &[];
        }
        // SAFETY: a zero-terminated string of the loader, which lives as long as the module is
        // loaded.
        unsafe { CStr::from_ptr(name) }.to_bytes()
    }

    /// GNU build-id; empty if the module has no build-id or is unloaded.
    pub(crate) fn build_id(&self) -> &[u8] {
        let start = self.build_id.load(Relaxed) as *const u8;
        if start.is_null() || self.state.load(Acquire) == UNLOADED {
            return &[];
        }
        // SAFETY: bytes of the module's mapped notes, checked against its range when it was
        // entered.
        unsafe { core::slice::from_raw_parts(start, self.build_id_bytes.load(Relaxed)) }
    }
}
