//! The loader's description of the module that holds an address, and how it is obtained.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use heapr_wire::ModuleRecord;
use heapr_wire::arch::PAGE_BYTES_MIN;

use super::dynamic_section::Dynamic;
use super::link_map::{self, PF_R, PF_X, PT_DYNAMIC, PT_GNU_EH_FRAME, PT_LOAD, PT_NOTE, ProgramHeader};
use crate::state::AGENT;
use crate::unwind::{SEGMENTS_MAX, UnwindTables};

const ELF_HEADER_BYTES: usize = 64;

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

/// Address of the loader's `_dl_find_object`; 0 if it has no such function.
static FIND_OBJECT: AtomicUsize = AtomicUsize::new(0);

/// Uses this function of the loader; 0: the loader's list is searched instead.
pub(super) fn find_by(find_object_avma: usize) {
    FIND_OBJECT.store(find_object_avma, Relaxed);
}

/// The loader's description of the module that holds an address.
pub(super) struct Found {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) bias: usize,
    pub(super) link: usize,
    pub(super) name: *const c_char,
    pub(super) eh_frame_hdr: usize,
    pub(super) headers: *const ProgramHeader,
    pub(super) header_count: usize,
}

impl Found {
    pub(super) fn program_headers(&self) -> &[ProgramHeader] {
        if self.headers.is_null() {
            return &[];
        }
        // SAFETY: mapped program headers of a loaded module and their number, from its ELF header
        // or the loader.
        unsafe { core::slice::from_raw_parts(self.headers, self.header_count) }
    }

    /// Reads the location of the program headers from the ELF header at the module's start, if they
    /// are in the module's first page.
    pub(super) fn take_headers(&mut self, header: &[u8; ELF_HEADER_BYTES]) {
        let offset = header.get(32..40).and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_le_bytes);
        let count = header.get(56..58).and_then(|bytes| bytes.try_into().ok()).map_or(0, u16::from_le_bytes);
        let table_end = offset.saturating_add(u64::from(count).wrapping_mul(56));
        if header.starts_with(b"\x7fELF") && offset >= 64 && table_end <= PAGE_BYTES_MIN as u64 {
            self.headers = self.start.wrapping_add(offset as usize) as *const ProgramHeader;
            self.header_count = usize::from(count);
        }
    }

    pub(super) fn segments_with(&self, permission: u32) -> impl Iterator<Item = (usize, usize)> {
        let headers = self.program_headers().iter();
        let loaded = headers.filter(move |header| header.kind == PT_LOAD && header.flags & permission != 0);
        loaded.map(|header| {
            let start = self.bias.wrapping_add(header.address_svma);
            (start, start.wrapping_add(header.memory_bytes))
        })
    }

    pub(super) fn readable_segments(&self) -> impl Iterator<Item = (usize, usize)> {
        self.segments_with(PF_R)
    }

    pub(super) fn is_executable(&self, address_avma: usize) -> bool {
        self.segments_with(PF_X).any(|(start, end)| address_avma >= start && address_avma < end)
    }

    pub(super) fn dynamic(&self) -> Option<Dynamic> {
        let header = self.program_headers().iter().find(|header| header.kind == PT_DYNAMIC)?;
        let entries = self.bias.wrapping_add(header.address_svma) as *const [usize; 2];
        // SAFETY: the dynamic section of a module that the loader has loaded, and read itself.
        unsafe { Dynamic::read(self.bias, entries) }
    }

    pub(super) fn unwind_tables(&self) -> Option<UnwindTables> {
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
    pub(super) fn path_with_end(&self) -> &[u8] {
        if self.name.is_null() {
            return &[];
        }
        // SAFETY: a zero-terminated string of the loader, which lives as long as the module.
        unsafe { CStr::from_ptr(self.name) }.to_bytes_with_nul()
    }

    pub(super) fn path(&self) -> &[u8] {
        self.path_with_end().strip_suffix(&[0]).unwrap_or_default()
    }

    /// Returns a hash that distinguishes the module from others that have its addresses before or
    /// after it. The hash is of path and build-id; without a build-id, of path and unwind header.
    pub(super) fn identity(&self) -> u64 {
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
    pub(super) fn build_id(&self) -> &[u8] {
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

/// Returns the module that holds an address.
pub(super) fn find(address_avma: usize) -> Option<Found> {
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
