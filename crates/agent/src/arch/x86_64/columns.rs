//! DWARF's numbers of the registers that unwinding uses, and the frame at a function's entry.

/// Number of registers with a column: the 16 general ones in DWARF's order, and the return address.
pub(crate) const COLUMNS: usize = 17;
/// Column of the frame pointer (rbp).
pub(crate) const FRAME_POINTER: usize = 6;
/// Column of the stack pointer (rsp).
pub(crate) const STACK_POINTER: usize = 7;
/// Column of the return address.
pub(crate) const RETURN_ADDRESS: usize = 16;
/// True if the return address's column is a register, whose value an unchanged column leaves as it
/// is. The call has pushed the return address, so that it is a word of the stack.
pub(crate) const RETURN_ADDRESS_IS_REGISTER: bool = false;
/// Number of bytes of a word of the stack.
pub(crate) const WORD_BYTES: i64 = 8;
/// Distance in bytes from the stack pointer at a function's entry to its canonical frame address.
pub(crate) const CFA_ABOVE_ENTRY: i64 = 8;
