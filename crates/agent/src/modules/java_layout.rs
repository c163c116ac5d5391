//! Where a HotSpot virtual machine keeps what is read of it, by its own tables: JDK 11 to 22, and
//! 25. Of one that lacks any of it nothing is read.

use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering::*};

use heapr_ring::sys;

use crate::modules::interpreters::JAVA;
use crate::modules::java_tables::Tables;

/// A field of a compiled method that is an address, or a distance from where its tables begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tabled {
    /// To JDK 22: distances from the method's own beginning; the descriptions' an address.
    InBlob { scopes: usize, pcs: usize, metadata: usize, deopt: [usize; 2], code: usize },
    /// From JDK 25 on: in memory of their own.
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
    /// In the pool of constants; to JDK 14 in the class.
    pub(crate) file_in_pool: Option<usize>,
    pub(crate) file_in_class: usize,
    pub(crate) class_name: usize,
    pub(crate) name_bytes: usize,
    pub(crate) name_text: usize,
}

/// In which frames and packed numbers are as they are read here.
const VERSIONS: core::ops::RangeInclusive<u32> = 11..=25;

static LAYOUT: AtomicPtr<Layout> = AtomicPtr::new(core::ptr::null_mut());
/// Of which tables it was made, or was found to lack something.
static TRIED: AtomicUsize = AtomicUsize::new(0);
static MAKING: AtomicU32 = AtomicU32::new(0);
/// How often it was looked whether the machine runs already: at each so many calls.
static ASKED: AtomicU32 = AtomicU32::new(0);
const ASKED_EVERY: u32 = 32;

impl Layout {
    /// That of the process's machine.
    #[inline(always)]
    pub(crate) fn known() -> Option<&'static Self> {
        // SAFETY: null, or a layout published below, which is never unmapped.
        match unsafe { LAYOUT.load(Acquire).as_ref() } {
            None if JAVA.structs.load(Relaxed) != TRIED.load(Relaxed) => make(),
            known => known,
        }
    }

    /// Whether the machine's is found not to be known.
    pub(crate) fn is_unknown() -> bool {
        let structs = JAVA.structs.load(Relaxed);
        structs != 0 && TRIED.load(Acquire) == structs && LAYOUT.load(Acquire).is_null()
    }

    /// The machine's version.
    pub(crate) fn version(&self) -> u32 {
        // SAFETY: a static variable of the machine's.
        unsafe { (self.version_at as *const u32).read_volatile() }
    }

    /// `None`: of a version that nobody has tried, or without something that is needed.
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

/// The version of the process's machine; 0: there is none, or it does not say.
pub(crate) fn version_of_process() -> u32 {
    let version = |tables: Tables| tables.address(c"Abstract_VM_Version", c"_vm_major_version");
    // SAFETY: a static variable of the machine's.
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
    // Until the machine has made its interpreter its tables may not be filled.
    let interpreter = Tables::of_process()?.address(c"AbstractInterpreter", c"_code")?;
    // SAFETY: a static variable of the machine's.
    if unsafe { (interpreter as *const usize).read_volatile() } == 0 {
        return None;
    }
    // The one that makes it may be interrupted by a signal whose handler comes here.
    if MAKING.swap(1, Acquire) != 0 {
        return None;
    }
    if let Some(layout) = Tables::of_process().and_then(Layout::read)
        && let Ok(room) = sys::map_anonymous(size_of::<Layout>(), false)
    {
        let room = room.cast::<Layout>();
        // SAFETY: a fresh mapping with room for one, never unmapped.
        unsafe { room.write(layout) };
        LAYOUT.store(room, Release);
    }
    TRIED.store(structs, Release);
    MAKING.store(0, Release);
    // SAFETY: as in `known`.
    unsafe { LAYOUT.load(Acquire).as_ref() }
}
