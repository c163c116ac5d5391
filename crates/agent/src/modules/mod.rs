//! Which modules are loaded: found at the first unwind through each, told to the recorder, forgotten at dlclose.
//!
//! With glibc 2.35 and later a module is found by `_dl_find_object`, which takes no lock and may be called in a signal
//! handler; before that (and with musl) by the loader's list.

pub(crate) mod link_map;

use core::ffi::{CStr, c_char, c_int, c_void};
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering::*};

use heapr_ring::sys;
use heapr_wire::{MODULE_MAIN, MODULE_UNLOADED, ModuleRecord};

use crate::hooks::foreign;
use crate::modules::link_map::{PT_GNU_EH_FRAME, PT_LOAD, PT_NOTE, ProgramHeader};
use crate::process::AGENT;
use crate::stack::rules;
use crate::x86_64::{EhFrameHdr, Rule, SEGMENTS_MAX, rule_for as read_rule};

/// Modules that one process image can have over its life; beyond it their frames are unwound by frame pointers and shown
/// as addresses. 512 bytes each, in memory that is touched as it is used.
const MODULES_MAX: usize = 4096;

/// Takes module records for the recorder.
pub(crate) trait ModuleSink {
    /// Writes one record into the event stream.
    fn module(&mut self, module: &Module, flags: u64);
}

const ANNOUNCING: u32 = 1;
const LOADED: u32 = 2;
const UNLOADED: u32 = 3;

/// One module. Written by the thread that found it, before `state` says so.
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
    /// Hash of path and build-id: tells whether another module took over the addresses.
    identity: AtomicU64,
    build_id: AtomicUsize,
    build_id_bytes: AtomicUsize,
    name: AtomicUsize,
}

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
/// Distinguishes stack nodes of different modules that had the same addresses one after the other.
static SALT: AtomicU64 = AtomicU64::new(0);

/// Finds the loader's function and maps the table.
pub(crate) fn start() {
    start_with(link_map::find_anywhere(b"_dl_find_object"));
}

/// As [`start`], with the address of the loader's function; 0 if it has none.
pub(crate) fn start_with(find_object_avma: usize) {
    FIND_OBJECT.store(find_object_avma, Relaxed);
    if let Ok(table) = sys::map_anonymous(MODULES_MAX.wrapping_mul(size_of::<Module>()), false) {
        MODULES.store(table.cast(), Release);
    }
}

/// Part of the stack tree's key.
#[inline(always)]
pub(crate) fn salt() -> u64 {
    SALT.load(Relaxed)
}

fn all() -> &'static [Module] {
    let table = MODULES.load(Acquire);
    if table.is_null() {
        return &[];
    }
    // SAFETY: mapped in `start` for MODULES_MAX zeroed modules, never unmapped; atomics are valid for any bits.
    unsafe { core::slice::from_raw_parts(table, (MODULE_COUNT.load(Acquire) as usize).min(MODULES_MAX)) }
}

/// The rule for the frame that returns to `return_address`; finds and announces its module if it is new.
pub(crate) fn rule_for(return_address: u64, sink: &mut dyn ModuleSink) -> Rule {
    let lookup_avma = return_address.wrapping_sub(1) as usize;
    let Some(found) = find(lookup_avma) else {
        // Code of a compiler at run time: frame pointers are all there is.
        return Rule::FRAME_POINTER;
    };
    let known = all().iter().find(|module| {
        module.state.load(Acquire) == LOADED
            && module.start.load(Relaxed) == found.start
            && module.end.load(Relaxed) == found.end
            && module.link.load(Relaxed) == found.link
    });
    if known.is_none() {
        announce(&found, sink);
    }
    match found.unwind_tables() {
        Some(hdr) => read_rule(&hdr, lookup_avma),
        None => Rule::FRAME_POINTER,
    }
}

/// The unwind tables of the module that holds an address.
pub(crate) fn unwind_tables(address_avma: usize) -> Option<EhFrameHdr> {
    find(address_avma)?.unwind_tables()
}

/// What the loader says about an address.
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
        // SAFETY: mapped program headers of a loaded module and their number, from its ELF header or the loader.
        unsafe { core::slice::from_raw_parts(self.headers, self.header_count) }
    }

    fn unwind_tables(&self) -> Option<EhFrameHdr> {
        if self.eh_frame_hdr == 0 {
            return None;
        }
        let mut segments = [(0, 0); SEGMENTS_MAX];
        let loaded =
            self.program_headers().iter().filter(|header| header.kind == PT_LOAD && header.flags & 4 != 0);
        for (place, header) in segments.iter_mut().zip(loaded) {
            let start = self.bias.wrapping_add(header.address_svma);
            *place = (start, start.wrapping_add(header.memory_bytes));
        }
        Some(EhFrameHdr::new(self.eh_frame_hdr, &segments))
    }

    fn path(&self) -> &[u8] {
        if self.name.is_null() {
            return &[];
        }
        // SAFETY: a zero-terminated string of the loader, which lives as long as the module.
        unsafe { CStr::from_ptr(self.name) }.to_bytes()
    }

    /// The build-id in the mapped notes.
    fn build_id(&self) -> &[u8] {
        for header in self.program_headers().iter().filter(|header| header.kind == PT_NOTE) {
            let start = self.bias.wrapping_add(header.address_svma);
            if start < self.start || start.wrapping_add(header.memory_bytes) > self.end {
                continue;
            }
            // SAFETY: a note segment inside the module's mapped range, which the loader keeps readable.
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

fn find(address_avma: usize) -> Option<Found> {
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
    // SAFETY: the first page of a loaded module is mapped readable; 64 bytes are looked at.
    let header = unsafe { core::slice::from_raw_parts(object.map_start as *const u8, 64) };
    let offset = header.get(32..40).and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_le_bytes);
    let count = header.get(56..58).and_then(|bytes| bytes.try_into().ok()).map_or(0, u16::from_le_bytes);
    let table_end = offset.saturating_add(u64::from(count).wrapping_mul(56));
    if header.starts_with(b"\x7fELF") && offset >= 64 && table_end <= 4096 {
        found.headers = object.map_start.wrapping_add(offset as usize) as *const ProgramHeader;
        found.header_count = usize::from(count);
        return Some(found);
    }
    // A module whose first segment does not hold its headers: the loader's list has them.
    find_in_list(address_avma)
}

fn find_in_list(address_avma: usize) -> Option<Found> {
    let mut found = None;
    link_map::for_each_module(&mut |info| {
        if !info.contains(address_avma) {
            return false;
        }
        let loads = || info.headers().iter().filter(|header| header.kind == PT_LOAD);
        let start = loads().map(|header| header.address_svma).min().unwrap_or(0);
        let end =
            loads().map(|header| header.address_svma.wrapping_add(header.memory_bytes)).max().unwrap_or(0);
        let unwind = info.headers().iter().find(|header| header.kind == PT_GNU_EH_FRAME);
        found = Some(Found {
            start: info.bias.wrapping_add(start),
            end: info.bias.wrapping_add(end),
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

/// Enters a module in the table and tells the recorder. Two threads that find it at once both do so; the recorder does
/// not mind.
fn announce(found: &Found, sink: &mut dyn ModuleSink) {
    let table = MODULES.load(Acquire);
    if table.is_null() {
        return;
    }
    let path = found.path();
    let build_id = found.build_id();
    let identity = path.iter().chain(build_id).fold(0xcbf2_9ce4_8422_2325_u64, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
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
    // Until the record is written the state is neither, so that other threads announce the module themselves.
    module.state.store(ANNOUNCING, Release);
    sink.module(module, if path.is_empty() { MODULE_MAIN } else { 0 });
    // Release: pairs with the Acquire of whoever looks the module up; only then do other threads skip announcing it.
    module.state.store(LOADED, Release);
    foreign::start();
}

/// The entry that this module had before it was unloaded, or a new one: a program that loads and unloads the same library all
/// the time must not fill the table.
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

/// Tells the recorder of a forked child all modules anew.
pub(crate) fn announce_all(sink: &mut dyn ModuleSink) {
    for module in all().iter().filter(|module| module.state.load(Acquire) == LOADED) {
        let flags = if module.path().is_empty() { MODULE_MAIN } else { 0 };
        sink.module(module, flags);
    }
}

/// After a dlclose: which modules are gone?
pub(crate) fn forget_unloaded(sink: &mut dyn ModuleSink) {
    let mut is_any_gone = false;
    for module in all().iter().filter(|module| module.state.load(Acquire) == LOADED) {
        let start = module.start.load(Relaxed);
        let is_there =
            find(start).is_some_and(|found| found.start == start && found.link == module.link.load(Relaxed));
        if !is_there {
            module.state.store(UNLOADED, Release);
            is_any_gone = true;
            sink.module(module, MODULE_UNLOADED);
        }
    }
    if is_any_gone {
        forget_code();
    }
}

/// Code addresses may have changed their meaning: kept stacks and rules are void.
fn forget_code() {
    rules::forget_all();
    // 0 is no epoch: see `Kept::proof_epoch`.
    let next = |epoch: u32| Some(epoch.wrapping_add(1).max(1));
    let _ = AGENT.code_epoch.fetch_update(Relaxed, Relaxed, next);
}

impl Module {
    /// Path as the loader has it. Empty for the main program, and for an unloaded module, whose strings are gone.
    pub(crate) fn path(&self) -> &[u8] {
        let name = self.name.load(Relaxed) as *const c_char;
        if name.is_null() || self.state.load(Acquire) == UNLOADED {
            return &[];
        }
        // SAFETY: a zero-terminated string of the loader, which lives as long as the module is loaded.
        unsafe { CStr::from_ptr(name) }.to_bytes()
    }

    /// GNU build-id; empty if there is none or the module is gone.
    pub(crate) fn build_id(&self) -> &[u8] {
        let start = self.build_id.load(Relaxed) as *const u8;
        if start.is_null() || self.state.load(Acquire) == UNLOADED {
            return &[];
        }
        // SAFETY: bytes of the module's mapped notes, checked against its range when it was entered.
        unsafe { core::slice::from_raw_parts(start, self.build_id_bytes.load(Relaxed)) }
    }
}
