//! Files of this processor, as loaders treat them.

/// Number of the processor in a file's header (`EM_X86_64`).
pub(crate) const ELF_MACHINE: u16 = 62;

/// True if a relocation of this kind, without an addend, stores a symbol's address in a word.
pub(crate) fn is_address_of_symbol(relocation_kind: u32) -> bool {
    const R_X86_64_64: u32 = 1;
    const R_X86_64_GLOB_DAT: u32 = 6;
    const R_X86_64_JUMP_SLOT: u32 = 7;
    matches!(relocation_kind, R_X86_64_64 | R_X86_64_GLOB_DAT | R_X86_64_JUMP_SLOT)
}

/// Returns the address that an ifunc symbol's resolver chooses. The loader passes no arguments.
///
/// # Safety
/// 1. `resolver_avma` is the address of a resolver of a module that the loader has bound.
pub(crate) unsafe fn resolved(resolver_avma: usize) -> usize {
    // SAFETY: (1): the type of resolvers.
    let resolver: unsafe extern "C" fn() -> usize = unsafe { core::mem::transmute(resolver_avma) };
    // SAFETY: (1): the loader calls it in the same manner.
    unsafe { resolver() }
}
