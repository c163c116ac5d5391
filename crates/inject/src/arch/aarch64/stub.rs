//! Code in the record's page that a borrowed thread would run. No record is made on this processor.

use super::{NOT_CHANGED, Registers};

/// Offset of the part RETURN; the following constants are those of the other parts.
pub(crate) const RETURN: u64 = 0;
pub(crate) const CLOSE: u64 = 0;
pub(crate) const CALL_WITH_DESCRIPTOR: u64 = 0;
pub(crate) const TAKE_AWAY: u64 = 0;

/// Offset in the scratch memory of the mark that the removal has begun.
pub(crate) const BEGUN_OFFSET: u64 = 8;

/// Offset in the scratch memory of the received descriptor. The pair of sockets that it came
/// through follows.
pub(crate) const RECEIVED_OFFSET: u64 = 176;
pub(crate) const PAIR_OFFSET: u64 = RECEIVED_OFFSET + 4;

/// Arguments of TAKE_AWAY.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Removal {
    /// Address of the injection record.
    pub(crate) record_avma: u64,
    pub(crate) scratch_avma: u64,
    /// Function that deletes `key`; 0: there is no key.
    pub(crate) key_delete_avma: u64,
    pub(crate) key: u64,
    /// Ranges to be unmapped: address and number of the pairs of start and size in bytes.
    pub(crate) pairs_avma: u64,
    pub(crate) pair_count: u64,
}

impl Registers {
    /// Sets the arguments of CALL: the function, the address for its result, and its own arguments.
    pub(crate) fn set_function_call(&mut self, function_avma: u64, result_avma: u64, arguments: [u64; 3]) {
        self.general.x[..3].copy_from_slice(&arguments);
        (self.general.x[19], self.general.x[20]) = (function_avma, result_avma);
    }

    /// Sets the argument of CLOSE: the address of the scratch memory.
    pub(crate) fn set_scratch(&mut self, scratch_avma: u64) {
        self.general.x[20] = scratch_avma;
    }

    /// Sets the arguments of TAKE_AWAY.
    pub(crate) fn set_removal(&mut self, removal: &Removal) {
        let Removal { record_avma, scratch_avma, key_delete_avma, key, pairs_avma, pair_count } = *removal;
        self.general.x[0] = key;
        self.general.x[19..24].copy_from_slice(&[
            key_delete_avma,
            scratch_avma,
            record_avma,
            pairs_avma,
            pair_count,
        ]);
    }
}

/// Largest size in bytes of the machine code.
pub(crate) const CODE_BYTES_MAX: usize = 128;

/// Machine code of all parts.
///
/// # Errors
/// Always: the code is missing for this processor.
pub(crate) fn code() -> Result<Vec<u8>, &'static str> {
    Err(NOT_CHANGED)
}
