//! Offsets and addresses of a HotSpot virtual machine's data, from its own tables: JDK 11 to 22,
//! and 25. If any of them is missing, no Java frame is read.

use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering::*};

use heapr_ring::sys;

use crate::modules::interpreters::JAVA;
use crate::modules::java_tables::Tables;

/// Locations of a compiled method's tables: an address, or a distance from the beginning of its
/// tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tabled {
    /// To JDK 22: distances from the method's own beginning; the location of the scope descriptions
    /// is an address.
    InBlob { scopes: usize, pcs: usize, metadata: usize, deopt: [usize; 2], code: usize },
    /// From JDK 25 on: the tables lie in separate memory.
    Apart {
        immutable: usize,
        scopes: usize,
        pcs: usize,
        mutable: usize,
        relocations_bytes: usize,
        deopt: [usize; 2],
        code: usize,
    },
}

/// Offsets in bytes, sizes, and addresses of static fields (`_at`).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layout {
    version_at: usize,
    // The code cache.
    pub(crate) low_at: usize,
    pub(crate) high_at: usize,
    pub(crate) heaps_at: usize,
    pub(crate) array_length: usize,
    pub(crate) array_data: usize,
    pub(crate) memory: usize,
    pub(crate) segment_map: usize,
    pub(crate) segment_bytes_log2: usize,
    pub(crate) space_low: usize,
    pub(crate) space_high: usize,
    pub(crate) block_bytes: usize,
    pub(crate) block_used: usize,
    pub(crate) blob_bytes: usize,
    pub(crate) blob_name: usize,
    pub(crate) frame_words: usize,
    // The interpreter's code.
    pub(crate) interpreter_at: usize,
    pub(crate) stubs: usize,
    pub(crate) stubs_bytes: usize,
    // Compiled methods.
    pub(crate) method_of_code: usize,
    pub(crate) compile_number: usize,
    pub(crate) original_pc: usize,
    pub(crate) tabled: Tabled,
    pub(crate) compiled_bytes: usize,
    // Methods, classes, names.
    pub(crate) constant_method: usize,
    pub(crate) constants: usize,
    pub(crate) flags: usize,
    pub(crate) has_lines: u32,
    pub(crate) code_bytes: usize,
    pub(crate) name_index: usize,
    pub(crate) constant_method_bytes: usize,
    pub(crate) pool_bytes: usize,
    pub(crate) pool_length: usize,
    pub(crate) holder: usize,
    /// Offset of the source file's name index in the constant pool. To JDK 14 it is in the class
    /// instead.
    pub(crate) file_in_pool: Option<usize>,
    pub(crate) file_in_class: usize,
    pub(crate) class_name: usize,
    pub(crate) name_bytes: usize,
    pub(crate) name_text: usize,
}

/// Versions whose frames and packed numbers have the form that the agent reads.
pub(crate) const VERSIONS: core::ops::RangeInclusive<u32> = 11..=25;

/// Versions among them whose tables lack a needed entry.
#[cfg(test)]
pub(crate) const LACKING: [u32; 2] = [23, 24];

static LAYOUT: AtomicPtr<Layout> = AtomicPtr::new(core::ptr::null_mut());
/// Address of the tables from which the layout was made, or in which something was missing.
static TRIED: AtomicUsize = AtomicUsize::new(0);
static MAKING: AtomicU32 = AtomicU32::new(0);
/// Number of calls that could have made the layout. One in [`ASKED_EVERY`] checks whether the
/// virtual machine runs already.
static ASKED: AtomicU32 = AtomicU32::new(0);
const ASKED_EVERY: u32 = 32;

impl Layout {
    /// Returns the layout of the process's virtual machine.
    #[inline(always)]
    pub(crate) fn known() -> Option<&'static Self> {
        // SAFETY: null, or a layout published below, which is never unmapped.
        match unsafe { LAYOUT.load(Acquire).as_ref() } {
            None if JAVA.structs.load(Relaxed) != TRIED.load(Relaxed) => make(),
            known => known,
        }
    }

    /// True if the process has a virtual machine whose layout is not known.
    pub(crate) fn is_unknown() -> bool {
        let structs = JAVA.structs.load(Relaxed);
        structs != 0 && TRIED.load(Acquire) == structs && LAYOUT.load(Acquire).is_null()
    }

    /// Returns the virtual machine's version.
    pub(crate) fn version(&self) -> u32 {
        // SAFETY: a static variable of the virtual machine.
        unsafe { (self.version_at as *const u32).read_volatile() }
    }

    /// Makes the layout; `None` for an untested version, or if a needed entry is missing.
    fn read(tables: Tables) -> Option<Self> {
        let field = |type_name, name| tables.offset(type_name, name);
        let either = |names: [(_, _); 2]| names.into_iter().find_map(|(first, second)| field(first, second));
        let tabled = tabled(&tables)?;
        if !VERSIONS.contains(&version_of_process()) {
            return None;
        }
        Some(Self {
            version_at: tables.address(c"Abstract_VM_Version", c"_vm_major_version")?,
            low_at: tables.address(c"CodeCache", c"_low_bound")?,
            high_at: tables.address(c"CodeCache", c"_high_bound")?,
            heaps_at: tables.address(c"CodeCache", c"_heaps")?,
            array_length: either([(c"GrowableArrayBase", c"_len"), (c"GenericGrowableArray", c"_len")])?,
            array_data: field(c"GrowableArray<int>", c"_data")?,
            memory: field(c"CodeHeap", c"_memory")?,
            segment_map: field(c"CodeHeap", c"_segmap")?,
            segment_bytes_log2: field(c"CodeHeap", c"_log2_segment_size")?,
            space_low: field(c"VirtualSpace", c"_low")?,
            space_high: field(c"VirtualSpace", c"_high")?,
            block_bytes: tables.bytes(c"HeapBlock")?,
            block_used: field(c"HeapBlock::Header", c"_used")?,
            blob_bytes: tables.bytes(c"CodeBlob")?,
            blob_name: field(c"CodeBlob", c"_name")?,
            frame_words: field(c"CodeBlob", c"_frame_size")?,
            interpreter_at: tables.address(c"AbstractInterpreter", c"_code")?,
            stubs: field(c"StubQueue", c"_stub_buffer")?,
            stubs_bytes: field(c"StubQueue", c"_buffer_limit")?,
            method_of_code: either([(c"nmethod", c"_method"), (c"CompiledMethod", c"_method")])?,
            compile_number: field(c"nmethod", c"_compile_id")?,
            original_pc: field(c"nmethod", c"_orig_pc_offset")?,
            tabled,
            compiled_bytes: tables.bytes(c"nmethod")?,
            constant_method: field(c"Method", c"_constMethod")?,
            constants: field(c"ConstMethod", c"_constants")?,
            flags: either([(c"ConstMethod", c"_flags._flags"), (c"ConstMethod", c"_flags")])?,
            has_lines: tables
                .constant(c"ConstMethod::_has_linenumber_table")
                .or_else(|| tables.constant(c"ConstMethodFlags::_misc_has_linenumber_table"))?
                .cast_unsigned(),
            code_bytes: field(c"ConstMethod", c"_code_size")?,
            name_index: field(c"ConstMethod", c"_name_index")?,
            constant_method_bytes: tables.bytes(c"ConstMethod")?,
            pool_bytes: tables.bytes(c"ConstantPool")?,
            pool_length: field(c"ConstantPool", c"_length")?,
            holder: field(c"ConstantPool", c"_pool_holder")?,
            file_in_pool: field(c"ConstantPool", c"_source_file_name_index"),
            file_in_class: field(c"ConstantPool", c"_source_file_name_index")
                .or_else(|| field(c"InstanceKlass", c"_source_file_name_index"))?,
            class_name: field(c"Klass", c"_name")?,
            name_bytes: field(c"Symbol", c"_length")?,
            name_text: field(c"Symbol", c"_body")?,
        })
    }
}

/// Returns the version of the process's virtual machine; 0 if there is no such machine, or it does
/// not state its version.
pub(crate) fn version_of_process() -> u32 {
    let version = |tables: Tables| tables.address(c"Abstract_VM_Version", c"_vm_major_version");
    // SAFETY: a static variable of the virtual machine.
    Tables::of_process().and_then(version).map_or(0, |at| unsafe { (at as *const u32).read_volatile() })
}

fn tabled(tables: &Tables) -> Option<Tabled> {
    let blob = |name| tables.offset(c"CodeBlob", name);
    let method = |name| tables.offset(c"nmethod", name);
    let compiled = |name| tables.offset(c"CompiledMethod", name);
    let in_blob = || {
        Some(Tabled::InBlob {
            scopes: compiled(c"_scopes_data_begin")?,
            pcs: method(c"_scopes_pcs_offset")?,
            metadata: method(c"_metadata_offset")?,
            deopt: [compiled(c"_deopt_handler_begin")?, compiled(c"_deopt_mh_handler_begin")?],
            code: blob(c"_code_begin")?,
        })
    };
    let apart = || {
        Some(Tabled::Apart {
            immutable: method(c"_immutable_data")?,
            scopes: method(c"_scopes_data_offset")?,
            pcs: method(c"_scopes_pcs_offset")?,
            mutable: blob(c"_mutable_data")?,
            relocations_bytes: blob(c"_relocation_size")?,
            deopt: [method(c"_deopt_handler_offset")?, method(c"_deopt_mh_handler_offset")?],
            code: blob(c"_code_offset")?,
        })
    };
    in_blob().or_else(apart)
}

#[cold]
#[inline(never)]
fn make() -> Option<&'static Layout> {
    let structs = JAVA.structs.load(Acquire);
    if structs == 0 || !ASKED.fetch_add(1, Relaxed).is_multiple_of(ASKED_EVERY) {
        return None;
    }
    // Before the virtual machine has made its interpreter its tables may not be filled.
    let interpreter = Tables::of_process()?.address(c"AbstractInterpreter", c"_code")?;
    // SAFETY: a static variable of the virtual machine.
    if unsafe { (interpreter as *const usize).read_volatile() } == 0 {
        return None;
    }
    // The thread that makes the layout may be interrupted by a signal whose handler comes here.
    if MAKING.swap(1, Acquire) != 0 {
        return None;
    }
    if let Some(layout) = Tables::of_process().and_then(Layout::read)
        && let Ok(room) = sys::map_anonymous(size_of::<Layout>(), false)
    {
        let room = room.cast::<Layout>();
        // SAFETY: a fresh mapping with room for a layout, never unmapped.
        unsafe { room.write(layout) };
        LAYOUT.store(room, Release);
    }
    TRIED.store(structs, Release);
    MAKING.store(0, Release);
    // SAFETY: as in `known`.
    unsafe { LAYOUT.load(Acquire).as_ref() }
}
