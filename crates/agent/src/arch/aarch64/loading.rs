//! Files of this processor, as loaders treat them.

use heapr_ring::sys;

/// Number of the processor in a file's header (`EM_AARCH64`).
pub(crate) const ELF_MACHINE: u16 = 183;

/// True if a relocation of this kind, without an addend, stores a symbol's address in a word.
pub(crate) fn is_address_of_symbol(relocation_kind: u32) -> bool {
    const R_AARCH64_ABS64: u32 = 257;
    const R_AARCH64_GLOB_DAT: u32 = 1025;
    const R_AARCH64_JUMP_SLOT: u32 = 1026;
    matches!(relocation_kind, R_AARCH64_ABS64 | R_AARCH64_GLOB_DAT | R_AARCH64_JUMP_SLOT)
}

/// Types of the auxiliary vector's entries that a resolver is told of.
const AT_HWCAP: usize = 16;
const AT_HWCAP2: usize = 26;
/// Mark in the first argument of a resolver: the second one is a structure (`_IFUNC_ARG_HWCAP`).
const HAS_STRUCTURE: u64 = 1 << 62;

/// Second argument of a resolver (`__ifunc_arg_t` of glibc's sys/ifunc.h).
#[repr(C)]
struct Capabilities {
    structure_bytes: u64,
    hwcap: u64,
    hwcap2: u64,
}

/// Returns the address that an ifunc symbol's resolver chooses. The loader passes the processor's
/// capabilities.
///
/// # Safety
/// 1. `resolver_avma` is the address of a resolver of a module that the loader has bound.
pub(crate) unsafe fn resolved(resolver_avma: usize) -> usize {
    // SAFETY: (1): the type of resolvers.
    let resolver: unsafe extern "C" fn(u64, *const Capabilities) -> usize =
        unsafe { core::mem::transmute(resolver_avma) };
    let capabilities = Capabilities {
        structure_bytes: size_of::<Capabilities>() as u64,
        hwcap: auxiliary(AT_HWCAP),
        hwcap2: auxiliary(AT_HWCAP2),
    };
    // SAFETY: (1): the loader calls it in the same manner.
    unsafe { resolver(capabilities.hwcap | HAS_STRUCTURE, &raw const capabilities) }
}

/// Largest number of entries of the vector that are read; Linux passes some twenty.
const AUXILIARY_ENTRIES_MAX: usize = 64;

/// Returns the value of this type in the process's auxiliary vector; 0 without an entry of it.
fn auxiliary(kind: usize) -> u64 {
    let mut bytes = [0_u8; AUXILIARY_ENTRIES_MAX * 16];
    let Ok(vector) = sys::open(b"/proc/self/auxv\0", false) else { return 0 };
    let Ok(count) = sys::read(&vector, &mut bytes) else { return 0 };
    let (words, _) = bytes.get(..count).unwrap_or_default().as_chunks::<8>();
    let (pairs, _) = words.as_chunks::<2>();
    let found = pairs.iter().find(|[pair_kind, _]| u64::from_le_bytes(*pair_kind) == kind as u64);
    found.map_or(0, |[_, value]| u64::from_le_bytes(*value))
}
