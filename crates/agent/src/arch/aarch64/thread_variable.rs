//! Finds a thread-local variable from the code of a function that only returns it, or that reads it
//! before anything else.
//!
//! No form of aarch64's code is known. So frames of CPython 3.15 and of Ruby 3.3 and later, whose
//! thread states lie in such variables, are not found there.

/// Number of bytes of code that are compared.
pub(crate) const CODE_BYTES: usize = 32;

/// Returns the address of the variable that the function at `code_avma` returns. `read` returns the
/// word at an address, if it is readable.
pub(crate) fn address(
    _code: &[u8; CODE_BYTES],
    _code_avma: usize,
    _thread_pointer: usize,
    _read: &mut dyn FnMut(usize) -> Option<usize>,
) -> Option<usize> {
    None
}

/// Returns the address of the variable that a function reads first; for the parameters see
/// [`address`].
pub(crate) fn address_read_first(
    code: &[u8; CODE_BYTES],
    code_avma: usize,
    thread_pointer: usize,
    read: &mut dyn FnMut(usize) -> Option<usize>,
) -> Option<usize> {
    address(code, code_avma, thread_pointer, read)
}
