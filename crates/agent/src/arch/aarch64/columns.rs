//! DWARF's numbers of the registers that unwinding uses, and the frame at a function's entry (DWARF
//! for the Arm 64-bit Architecture, 4.1).

/// Number of registers with a column: x0 to x30 and the stack pointer.
pub(crate) const COLUMNS: usize = 32;
/// Column of the frame pointer (x29).
pub(crate) const FRAME_POINTER: usize = 29;
/// Column of the stack pointer.
pub(crate) const STACK_POINTER: usize = 31;
/// Column of the return address (x30).
pub(crate) const RETURN_ADDRESS: usize = 30;
/// True if the return address's column is a register, whose value an unchanged column leaves as it
/// is. A call leaves the return address in x30.
pub(crate) const RETURN_ADDRESS_IS_REGISTER: bool = true;
/// Number of bytes of a word of the stack.
pub(crate) const WORD_BYTES: i64 = 8;
/// Distance in bytes from the stack pointer at a function's entry to its canonical frame address.
pub(crate) const CFA_ABOVE_ENTRY: i64 = 0;
