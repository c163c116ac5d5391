//! Code in the record's page that a borrowed thread runs. It calls functions, closes descriptors on
//! their way to the agent, and removes the agent.
//!
//! ```text
//! CALL                  x21 = x30; call x19; [x20] = x0; x30 = x21
//! RETURN                ret
//! CLOSE                 for each of the three words: exchange it with -1, close the old value;
//!                       ret to x22
//! CALL_WITH_DESCRIPTOR  exchange the last word with -1, store the old value in [x0]; CALL
//! TAKE_AWAY             mark it begun; call x19 unless it is 0; unmap the x25 pairs at x24;
//!                       go to the system call at x26, which unmaps the mapping of the record at
//!                       x23 and returns to x22
//! ```
//! `x20` is the address of the scratch memory, `x22` that of the return by the frame at the stack
//! pointer. A word is exchanged in one step: however often and whenever this code runs, each
//! descriptor is closed, or handed on, once.
//!
//! The removal is one piece of code so that it is done once, and completely.

use super::assembly::{
    Assembler, B, LINK, NOT_ASSEMBLED, RET, SVC, add, blr, br, cbnz_w, cbz, ldp, ldp_after, mov,
    mov_minus_one, mov_number, str, str_w, sub,
};
use super::{BEGUN_OFFSET, RECEIVED_OFFSET, Registers, Removal};

/// Offset of the part RETURN; the following constants are those of the other parts.
pub(crate) const RETURN: u64 = 16;
pub(crate) const CLOSE: u64 = 20;
pub(crate) const CALL_WITH_DESCRIPTOR: u64 = 76;
pub(crate) const TAKE_AWAY: u64 = 104;

/// Number of words below the return frame that lead to CLOSE: the link register leads there.
pub(crate) const TIDYING_WORDS: usize = 0;
/// Number of words below the return frame that lead to a last system call: a register does.
pub(crate) const LAST_CALL_WORDS: usize = 0;

/// Number of the register with the scratch memory's address, and of that with the return's.
const SCRATCH: usize = 20;
const RETURNS: usize = 22;
const LINK_INDEX: usize = LINK as usize;

impl Registers {
    /// Lets the code that the thread is going to return to `link_avma`, and the parts of the stub
    /// that end there to `sigreturn_avma`.
    pub(crate) fn returning_to(mut self, link_avma: u64, sigreturn_avma: u64) -> Self {
        self.general.x[LINK_INDEX] = link_avma;
        self.general.x[RETURNS] = sigreturn_avma;
        self
    }

    /// Sets the arguments of CALL: the function, the address for its result, and its own arguments.
    pub(crate) fn set_function_call(&mut self, function_avma: u64, result_avma: u64, arguments: [u64; 3]) {
        self.general.x[..3].copy_from_slice(&arguments);
        self.general.x[19] = function_avma;
        self.general.x[SCRATCH] = result_avma;
        self.general.x[29] = 0;
    }

    /// Sets the argument of CLOSE: the address of the scratch memory.
    pub(crate) fn set_scratch(&mut self, scratch_avma: u64) {
        self.general.x[SCRATCH] = scratch_avma;
    }

    /// Sets the address of the system call that TAKE_AWAY ends with.
    pub(crate) fn set_last_call(&mut self, system_call_avma: u64) {
        self.general.x[26] = system_call_avma;
    }

    /// Sets the arguments of TAKE_AWAY.
    pub(crate) fn set_removal(&mut self, removal: &Removal) {
        let Removal { record_avma, scratch_avma, key_delete_avma, key, pairs_avma, pair_count } = *removal;
        self.general.x[0] = key;
        self.general.x[19] = key_delete_avma;
        self.general.x[SCRATCH] = scratch_avma;
        self.general.x[23..26].copy_from_slice(&[record_avma, pairs_avma, pair_count]);
    }
}

/// Largest size in bytes of the machine code.
pub(crate) const CODE_BYTES_MAX: usize = 192;

/// Machine code of all parts. It does not depend on its address.
///
/// # Errors
/// Returns a reason if the parts are not where the constants say.
pub(crate) fn code() -> Result<Vec<u8>, &'static str> {
    let mut a = Assembler::default();
    let call = a.here();
    a.put(mov(21, LINK));
    a.put(blr(19));
    a.put(str(0, 20, 0));
    a.put(mov(LINK, 21));
    let returning = a.here();
    a.put(RET);
    let close = a.here();
    write_close(&mut a);
    let call_with_descriptor = a.here();
    a.put(add(9, 20, RECEIVED_OFFSET as u32));
    write_exchange(&mut a);
    a.put(str_w(10, 0, 0));
    a.branch(B, call);
    let take_away = a.here();
    write_take_away(&mut a);
    let parts = [returning, close, call_with_descriptor, take_away].map(|part| a.offset(part));
    let is_as_said = parts == [RETURN, CLOSE, CALL_WITH_DESCRIPTOR, TAKE_AWAY].map(Some);
    let code = a.finish()?;
    if is_as_said && code.len() <= CODE_BYTES_MAX { Ok(code) } else { Err(NOT_ASSEMBLED) }
}

/// Exchanges the half word at x9 with -1; the old value comes to w10.
fn write_exchange(a: &mut Assembler) {
    /// `ldaxr w10, [x9]`
    const LOAD: u32 = 0x885f_fd2a;
    /// `stlxr w12, w11, [x9]`
    const STORE: u32 = 0x880c_fd2b;
    a.put(mov_minus_one(11));
    let again = a.here();
    a.put(LOAD);
    a.put(STORE);
    a.branch_if(cbnz_w(12), again);
}

fn write_close(a: &mut Assembler) {
    /// Number of descriptors.
    const COUNT: u16 = 3;
    a.put(add(9, 20, RECEIVED_OFFSET as u32));
    a.put(mov_number(13, COUNT));
    let next = a.here();
    write_exchange(a);
    a.put(mov(0, 10));
    a.put(mov_number(8, libc::SYS_close as u16));
    a.put(SVC);
    a.put(add(9, 9, 4));
    a.put(sub(13, 13, 1));
    let end = a.label();
    a.branch_if(cbz(13), end);
    a.branch(B, next);
    a.set(end);
    a.put(br(RETURNS as u32));
}

fn write_take_away(a: &mut Assembler) {
    let (next, end) = (a.label(), a.label());
    a.put(mov_number(9, 1));
    a.put(str_w(9, 20, BEGUN_OFFSET as u32));
    a.branch_if(cbz(19), next);
    a.put(blr(19));
    a.set(next);
    a.branch_if(cbz(25), end);
    a.put(sub(25, 25, 1));
    a.put(ldp_after([0, 1], 24, 16));
    a.put(mov_number(8, libc::SYS_munmap as u16));
    a.put(SVC);
    a.branch(B, next);
    a.set(end);
    a.put(ldp([0, 1], 23, 16));
    a.put(mov_number(8, libc::SYS_munmap as u16));
    a.put(mov(LINK, RETURNS as u32));
    a.put(br(26));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_parts_begin_where_they_are_said_to() {
        let code = code().unwrap();
        let at = |part: u64| u32::from_le_bytes(code[part as usize..][..4].try_into().unwrap());
        assert_eq!(at(RETURN), RET);
        assert_eq!(at(CLOSE - 4), RET);
        assert_eq!(at(CALL_WITH_DESCRIPTOR - 4), br(RETURNS as u32));
        assert_eq!(at(TAKE_AWAY), mov_number(9, 1));
        assert_eq!(code[code.len() - 4..], br(26).to_le_bytes());
    }

    #[test]
    fn registers_of_the_parts_do_not_overlap() {
        let mut registers = Registers::default().returning_to(1, 2);
        let removal = Removal {
            record_avma: 3,
            scratch_avma: 4,
            key_delete_avma: 5,
            key: 6,
            pairs_avma: 7,
            pair_count: 8,
        };
        registers.set_removal(&removal);
        registers.set_last_call(9);
        let x = registers.general.x;
        assert_eq!(
            [x[30], x[22], x[23], x[20], x[19], x[0], x[24], x[25], x[26]],
            [1, 2, 3, 4, 5, 6, 7, 8, 9]
        );
    }
}
