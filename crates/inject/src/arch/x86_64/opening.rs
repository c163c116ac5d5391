//! First bytes of a trampoline area: its opening, by which it is recognised, and the code in which
//! calls wait at the closed gate.

use std::sync::OnceLock;

use heapr_proc::page_bytes;
use iced_x86::IcedError;
use iced_x86::code_asm::{
    CodeAssembler, CodeLabel, dword_ptr, eax, ebx, edx, esi, ptr, r8, r9, r10, r11, rbx, rcx, rdi, rdx, rsi,
};

use super::assembly::assembled;
use super::{GATE_AROUND, GATE_CLOSED, GATE_OPEN, GATE_WAIT_NS, GATE_WAITS_MAX, JumpBytes, OPENING_BYTES};

/// Largest size in bytes of the waiting code.
pub(super) const WAIT_BYTES_MAX: usize = 144;

/// Machine code at `wait`; see the module's documentation. It does not depend on its address, and
/// has one size.
pub(super) fn waiting_code(gate_avma: u64) -> Result<Vec<u8>, &'static str> {
    let (code, []) = assembled(0, |a| write_waiting(a, gate_avma))?;
    Ok(code)
}

fn write_waiting(a: &mut CodeAssembler, gate_avma: u64) -> Result<[CodeLabel; 0], IcedError> {
    const WAIT: i32 = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
    let saved = [rdi, rsi, rdx, rcx, r8, r9, r10, r11, rbx];
    let [mut again, mut give_up, mut out, mut time] = [(); 4].map(|()| a.create_label());
    saved.iter().try_for_each(|&register| a.push(register))?;
    a.mov(ebx, GATE_WAITS_MAX as i32)?;
    a.mov(rdi, gate_avma)?;
    a.set_label(&mut again)?;
    a.mov(eax, dword_ptr(rdi))?;
    a.cmp(eax, GATE_CLOSED)?;
    a.jne(out)?;
    a.dec(ebx)?;
    a.je(give_up)?;
    a.mov(eax, libc::SYS_futex as i32)?;
    a.mov(esi, WAIT)?;
    a.mov(edx, GATE_CLOSED)?;
    a.lea(r10, ptr(time))?;
    a.syscall()?;
    a.jmp(again)?;
    a.set_label(&mut give_up)?;
    a.mov(eax, GATE_AROUND)?;
    a.mov(dword_ptr(rdi), eax)?;
    a.set_label(&mut out)?;
    // Popping leaves the flags as they are.
    a.cmp(eax, GATE_OPEN)?;
    saved.iter().rev().try_for_each(|&register| a.pop(register))?;
    a.ret()?;
    a.set_label(&mut time)?;
    a.dq(&[0, GATE_WAIT_NS])?;
    Ok([])
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
    let (&[0xe9, a, b, c, d], _) = code.split_first_chunk::<5>()? else { return None };
    let target = entry_avma.wrapping_add(5).wrapping_add_signed(i64::from(i32::from_le_bytes([a, b, c, d])));
    Some(target & !(page_bytes() - 1))
}

/// Target of `jump`, which is at `entry_avma`: the entry of the counting code.
pub(crate) fn counting_at(entry_avma: u64, jump: JumpBytes) -> u64 {
    let [_, a, b, c, d] = jump;
    entry_avma.wrapping_add(5).wrapping_add_signed(i64::from(i32::from_le_bytes([a, b, c, d])))
}
