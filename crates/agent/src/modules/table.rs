//! The table of the modules that were found, which the recorder knows from their announcements.

use core::ffi::{CStr, c_char};
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering::*};

use heapr_ring::sys;
use heapr_wire::{MODULE_MAIN, MODULE_UNLOADED};

use super::file_tables::FileTables;
use super::found::{Found, find};
use super::{ModuleSink, interpreters, link_map, program_break, rules, run_time_code};
use crate::state::AGENT;
use crate::state::callback::Callback;

/// Largest number of modules of one process image over its life. Each takes at least one mapping,
/// and that is as many mappings as the kernel gives a process (`vm.max_map_count` by default). An
/// entry has about a hundred bytes, in memory that is touched as it is used.
const MODULES_MAX: usize = 1 << 16;
/// Number of entries of [`RECENT`], the fast lookup of modules by their first address.
const RECENT_MAX: usize = 1 << 12;

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

static MODULES: AtomicPtr<Module> = AtomicPtr::new(core::ptr::null_mut());
static MODULE_COUNT: AtomicU32 = AtomicU32::new(0);
/// Indexes of modules, by the hash of their first address.
static RECENT: [AtomicU32; RECENT_MAX] = [const { AtomicU32::new(0) }; RECENT_MAX];
/// Called when a new module was found.
pub(crate) static ON_NEW: Callback = Callback::none();
/// Distinguishes stack nodes of different modules that had the same addresses one after the other.
static SALT: AtomicU64 = AtomicU64::new(0);

/// Maps the table.
pub(super) fn start() {
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

/// Returns a module's entry, if it has been announced.
pub(super) fn known(found: &Found) -> Option<&'static Module> {
    let is_it = |module: &&Module| {
        module.state.load(Acquire) == LOADED
            && module.start.load(Relaxed) == found.start
            && module.end.load(Relaxed) == found.end
            && module.link.load(Relaxed) == found.link
    };
    let recent = RECENT.get(rules::hash(found.start as u64) % RECENT_MAX)?;
    let all = all();
    if let Some(module) = all.get(recent.load(Relaxed) as usize).filter(is_it) {
        return Some(module);
    }
    let number = all.iter().position(|module| is_it(&module))?;
    recent.store(number as u32, Relaxed);
    all.get(number)
}

/// Enters a module in the table and announces it to the recorder. Two threads that find it at once
/// both do so, which the recorder accepts.
pub(super) fn announce(found: &Found, sink: &mut dyn ModuleSink) {
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
    // Release: pairs with the Acquire in [`known`]; only from here on other threads skip
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
    pub(super) fn file_tables(&self, found: &Found) -> Option<&'static FileTables> {
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
