//! A row of an unwind table: how the caller's registers are found.
//!
//! The rules are those of DWARF (version 5, section 6.4.1).

use super::byte_reader::Reader;

/// Registers with a column: the 16 general ones in DWARF's order, and the return address.
pub(crate) const COLUMNS: usize = 17;
/// Columns of a row that is only looked at for what a [`super::Rule`] holds: rbp, rsp and the
/// return address.
pub(crate) const STEP_COLUMNS: usize = 3;
/// DWARF number of rbp.
pub(crate) const RBP: usize = 6;
/// DWARF number of rsp.
pub(crate) const RSP: usize = 7;
/// DWARF number of the return address column.
pub(crate) const RETURN_ADDRESS: usize = 16;

/// Where an expression lies: its bytes' number above [`Expression::ADDRESS_BITS`] bits of address.
/// One word, because rows full of these are copied on small stacks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Expression(u64);

impl Expression {
    /// Addresses of a process are below 2^47.
    const ADDRESS_BITS: u32 = 48;

    /// The next expression of call frame instructions; `None` if it does not fit the packing.
    pub(super) fn parse(code: &mut Reader) -> Option<Self> {
        let bytes = code.uleb()? as usize;
        let body = code.take(bytes)?;
        let (address, count) = (body.position as u64, u16::try_from(bytes).ok()?);
        (address >> Self::ADDRESS_BITS == 0).then_some(Self(u64::from(count) << Self::ADDRESS_BITS | address))
    }

    /// Its operations.
    pub(crate) fn code(self) -> Reader {
        let position = (self.0 & ((1 << Self::ADDRESS_BITS) - 1)) as usize;
        Reader { position, end: position.wrapping_add((self.0 >> Self::ADDRESS_BITS) as usize) }
    }
}

/// How a register of the caller is found.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Column {
    /// Not mentioned: unchanged.
    Same,
    /// Cannot be found; for the return address: there is no caller.
    Undefined,
    /// Saved at CFA + offset.
    Offset(i64),
    /// Is CFA + offset.
    ValueOffset(i64),
    /// Is in another register.
    Register(u8),
    /// Saved at the address that the expression gives.
    Expression(Expression),
    /// Is what the expression gives.
    ValueExpression(Expression),
}

/// How the canonical frame address is found.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Cfa {
    /// Register plus offset.
    Register(u8, i64),
    /// What the expression gives.
    Expression(Expression),
}

/// A row of the unwind table, with all [`COLUMNS`], or only the [`STEP_COLUMNS`]: a row is 16 bytes
/// and 16 for each column, and there are half a dozen of them on the stack while instructions run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row<const N: usize> {
    pub(crate) cfa: Cfa,
    columns: [Column; N],
}

impl<const N: usize> Row<N> {
    /// Before any instruction.
    pub(super) const FIRST: Self = Self { cfa: Cfa::Register(RSP as u8, 8), columns: [Column::Same; N] };

    /// Where a register's column is.
    #[inline(always)]
    fn place(register: u64) -> usize {
        match usize::try_from(register) {
            Ok(register) if N == COLUMNS => register,
            Ok(RBP) => 0,
            Ok(RSP) => 1,
            Ok(RETURN_ADDRESS) => 2,
            _ => usize::MAX,
        }
    }

    /// How a register is found. Those without a column (vector registers and the like) do not
    /// matter.
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

    /// Back to what the common instructions have set.
    pub(super) fn restore(&mut self, initial: &Self, register: u64) {
        let column = initial.columns.get(Self::place(register)).copied();
        self.set(register, column.unwrap_or(Column::Same));
    }
}
