//! A row of an unwind table: the location of the caller's registers.
//!
//! The rules are those of DWARF (version 5, section 6.4.1).

use super::byte_reader::Reader;
use crate::arch::columns::{CFA_ABOVE_ENTRY, COLUMNS, FRAME_POINTER, RETURN_ADDRESS, STACK_POINTER};

/// Number of columns of a row that is used only to make a [`crate::arch::Rule`]: frame
/// pointer, stack pointer and return address.
pub(crate) const STEP_COLUMNS: usize = 3;

/// Location of an expression: its number of bytes above [`Expression::ADDRESS_BITS`] bits of
/// address. One word, because rows full of expressions are copied on small stacks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Expression(u64);

impl Expression {
    /// Number of address bits: those of a process on any processor, unless it asks for more.
    const ADDRESS_BITS: u32 = 48;

    /// Reads the next expression of call frame instructions; `None` if it does not fit the packing.
    pub(super) fn parse(code: &mut Reader) -> Option<Self> {
        let bytes = code.uleb()? as usize;
        let body = code.take(bytes)?;
        let (address, count) = (body.position as u64, u16::try_from(bytes).ok()?);
        (address >> Self::ADDRESS_BITS == 0).then_some(Self(u64::from(count) << Self::ADDRESS_BITS | address))
    }

    /// Returns a reader of the expression's operations.
    pub(crate) fn code(self) -> Reader {
        let position = (self.0 & ((1 << Self::ADDRESS_BITS) - 1)) as usize;
        Reader { position, end: position.wrapping_add((self.0 >> Self::ADDRESS_BITS) as usize) }
    }
}

/// Location of a register of the caller.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Column {
    /// Not mentioned in the table: the register is unchanged.
    Same,
    /// Cannot be found. For the return address: there is no caller.
    Undefined,
    /// Saved at CFA + offset.
    Offset(i64),
    /// Equal to CFA + offset.
    ValueOffset(i64),
    /// In another register.
    Register(u8),
    /// Saved at the address that the expression gives.
    Expression(Expression),
    /// Equal to the value of the expression.
    ValueExpression(Expression),
}

/// Definition of the canonical frame address.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Cfa {
    /// Register plus offset.
    Register(u8, i64),
    /// The value of the expression.
    Expression(Expression),
}

/// A row of the unwind table, with all [`COLUMNS`], or only the [`STEP_COLUMNS`]. A row has 16
/// bytes and 16 for each column, and half a dozen of them are on the stack while instructions are
/// executed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row<const N: usize> {
    pub(crate) cfa: Cfa,
    columns: [Column; N],
}

impl<const N: usize> Row<N> {
    /// Row before any instruction.
    pub(super) const FIRST: Self =
        Self { cfa: Cfa::Register(STACK_POINTER as u8, CFA_ABOVE_ENTRY), columns: [Column::Same; N] };

    /// Returns the index of a register's column.
    #[inline(always)]
    fn place(register: u64) -> usize {
        match usize::try_from(register) {
            Ok(register) if N == COLUMNS => register,
            Ok(FRAME_POINTER) => 0,
            Ok(STACK_POINTER) => 1,
            Ok(RETURN_ADDRESS) => 2,
            _ => usize::MAX,
        }
    }

    /// Returns the column of a register; [`Column::Same`] for registers without one (vector
    /// registers and the like), which do not matter.
    #[inline(always)]
    pub(crate) fn column(&self, register: usize) -> Column {
        self.columns.get(Self::place(register as u64)).copied().unwrap_or(Column::Same)
    }

    #[inline(always)]
    pub(super) fn set(&mut self, register: u64, column: Column) {
        if let Some(place) = self.columns.get_mut(Self::place(register)) {
            *place = column;
        }
    }

    /// Resets a register to the state after the common instructions.
    pub(super) fn restore(&mut self, initial: &Self, register: u64) {
        let column = initial.columns.get(Self::place(register)).copied();
        self.set(register, column.unwrap_or(Column::Same));
    }
}
