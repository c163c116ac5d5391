//! First bytes of a trampoline area: its opening, by which it is recognised, and the code in which
//! calls wait at the closed gate.

use std::sync::OnceLock;

use heapr_proc::page_bytes;

use super::assembly::{
    Assembler, B, NOP, RET, SP, SVC, cbnz_w, cbz, ldp, ldp_after, ldr_w, mov_number, stp, stp_before, str_w,
    sub,
};
use super::prologue::target_of;
use super::{GATE_AROUND, GATE_CLOSED, GATE_WAIT_NS, GATE_WAITS_MAX, JumpBytes, OPENING_BYTES};

/// Register with the gate's value after the wait; veneers may change it before any function.
pub(super) const GATE_VALUE: u32 = 16;

/// Machine code at `wait`; see [`super::island`]. It does not depend on its address, and has one
/// size. Flags and all registers but x16, x17 and x30 stay as they are.
pub(super) fn waiting_code(gate_avma: u64) -> Result<Vec<u8>, &'static str> {
    const WAIT: u16 = (libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG) as u16;
    const { assert!(GATE_CLOSED == 1 && libc::SYS_futex < 1 << 16) };
    let mut a = Assembler::default();
    let (gate, time, give_up, out) = (a.label(), a.label(), a.label(), a.label());
    a.put(stp_before([0, 1], SP, -48));
    a.put(stp([2, 3], SP, 16));
    a.put(stp([8, 9], SP, 32));
    a.put(mov_number(9, GATE_WAITS_MAX as u16));
    let again = a.here();
    a.load(0, gate);
    a.put(ldr_w(GATE_VALUE, 0));
    a.put(sub(17, GATE_VALUE, GATE_CLOSED));
    a.branch_if(cbnz_w(17), out);
    a.put(sub(9, 9, 1));
    a.branch_if(cbz(9), give_up);
    a.put(mov_number(1, WAIT));
    a.put(mov_number(2, GATE_CLOSED as u16));
    a.address(3, time);
    a.put(mov_number(8, libc::SYS_futex as u16));
    a.put(SVC);
    a.branch(B, again);
    a.set(give_up);
    a.put(mov_number(GATE_VALUE, GATE_AROUND as u16));
    a.put(str_w(GATE_VALUE, 0, 0));
    a.set(out);
    a.put(ldp([8, 9], SP, 32));
    a.put(ldp([2, 3], SP, 16));
    a.put(ldp_after([0, 1], SP, 48));
    a.put(RET);
    a.put(NOP);
    a.quad(time, 0);
    let rest = a.label();
    a.quad(rest, GATE_WAIT_NS);
    a.quad(gate, gate_avma);
    a.finish()
}

/// Address range of the code in which threads wait, in the area at `island_avma`.
pub(crate) fn waiting_range(island_avma: u64) -> std::ops::Range<u64> {
    /// Size in bytes of the code.
    static BYTES: OnceLock<u64> = OnceLock::new();
    let bytes = *BYTES.get_or_init(|| waiting_code(0).map_or(0, |code| code.len() as u64));
    let wait_avma = island_avma + OPENING_BYTES as u64;
    wait_avma..wait_avma + bytes
}

/// Page address of the trampoline area that `code`, at `entry_avma`, jumps to; `None` if it is no
/// jump. The area's opening must be at that page.
pub(crate) fn island_of(entry_avma: u64, code: &[u8]) -> Option<u64> {
    let target = target_of(entry_avma, u32::from_le_bytes(*code.first_chunk()?))?;
    Some(target & !(page_bytes() - 1))
}

/// Target of a jump at `entry_avma`.
pub(crate) fn counting_at(entry_avma: u64, jump: JumpBytes) -> u64 {
    target_of(entry_avma, u32::from_le_bytes(jump)).unwrap_or(entry_avma)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_code_has_one_size_and_its_data_aligned() {
        let code = waiting_code(0x1122_3344_5566_7788).unwrap();
        assert_eq!(code.len(), waiting_code(0).unwrap().len());
        assert_eq!(code[code.len() - 8..], 0x1122_3344_5566_7788_u64.to_le_bytes());
        assert_eq!(code[code.len() - 16..code.len() - 8], GATE_WAIT_NS.to_le_bytes());
        assert_eq!(code.len() % 8, 0);
    }

    #[test]
    fn a_branch_leads_to_its_target() {
        assert_eq!(target_of(0x10_0000, 0x1400_0002), Some(0x10_0008));
        assert_eq!(target_of(0x10_0000, 0x17ff_fffe), Some(0xf_fff8));
        // bl
        assert_eq!(target_of(0x10_0000, 0x9400_0002), None);
        assert_eq!(island_of(0x10_0000, &[2, 0, 0, 0x14]), Some(0x10_0000));
        assert_eq!(island_of(0x10_0000, &[2, 0, 0]), None);
    }
}
