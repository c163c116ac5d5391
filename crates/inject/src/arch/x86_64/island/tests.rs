//! Tests of the code in a trampoline area.

use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic};

use super::*;
use crate::arch::x86_64::countdown::{Countdown, Counted, MARKS_OFFSET};
use crate::arch::x86_64::opening::counting_at;
use crate::arch::{GATE_AROUND, GATE_OPEN};

#[test]
fn the_jumps_of_the_waiting_lead_where_they_should() {
    const START: u64 = 0x10_0000;
    let code = waiting_code(0x7000_1234_5678).unwrap();
    assert!(code.len() <= WAIT_BYTES_MAX);
    let text = &code[..code.len() - 16];
    let instructions: Vec<Instruction> =
        Decoder::with_ip(64, text, START, DecoderOptions::NONE).into_iter().collect();
    assert!(instructions.iter().all(|instruction| !instruction.is_invalid()));
    let at = |avma: u64| instructions.iter().find(|instruction| instruction.ip() == avma).unwrap();
    let of = |mnemonic| instructions.iter().filter(move |found| found.mnemonic() == mnemonic);
    let targets = |mnemonic| of(mnemonic).map(|jump| at(jump.near_branch_target())).collect::<Vec<_>>();
    // Out to the last comparison.
    let [out] = targets(Mnemonic::Jne)[..] else { panic!() };
    assert_eq!((out.mnemonic(), out.immediate32()), (Mnemonic::Cmp, GATE_OPEN));
    assert_eq!(instructions.last().unwrap().mnemonic(), Mnemonic::Ret);
    assert_eq!(targets(Mnemonic::Je)[0].immediate32(), GATE_AROUND);
    // Back to the load of the gate.
    let again = at(of(Mnemonic::Jmp).next().unwrap().near_branch_target());
    assert_eq!((again.mnemonic(), again.ip() - START), (Mnemonic::Mov, 28));
    let time = of(Mnemonic::Lea).next().unwrap();
    assert_eq!(time.memory_displacement64(), START + text.len() as u64);
    assert_eq!(of(Mnemonic::Push).count(), of(Mnemonic::Pop).count());
}

fn prologue() -> Prologue {
    let body = [0x41, 0x54, 0x41, 0x55, 0x55, 0x53, 0x48, 0x83, 0xec, 0x10, 0x90, 0x90, 0xc3];
    Prologue::plan(0x20_0000, &body, &[]).unwrap()
}

/// An area with one function, and its instructions from an address on.
fn island(way: &Way) -> (Landing, impl Fn(u64) -> Vec<Instruction>) {
    let mut island = Island::new(0x10_0000, 0x1234_5000, 0x1234_6000).unwrap();
    let landing = island.add(&prologue(), way).unwrap();
    assert!(island.bytes.len() <= OPENING_BYTES + WAIT_BYTES_MAX + FUNCTION_BYTES_MAX);
    let code_at = move |avma: u64| {
        let code = island.bytes[(avma - island.start_avma) as usize..].to_vec();
        let mut decoder = Decoder::with_ip(64, &code, avma, DecoderOptions::NONE);
        decoder.iter().take(16).collect::<Vec<_>>()
    };
    (landing, code_at)
}

fn mnemonics(code: &[Instruction]) -> Vec<Mnemonic> {
    code.iter().map(Instruction::mnemonic).collect()
}

#[test]
fn who_comes_to_a_closed_gate_waits_and_goes_to_the_target_or_around_it() {
    let ranges = vec![(0x20_0000, 0x100), (0x30_0000, 0x100)];
    for keeps_inner in [false, true] {
        let way = Way::Convention {
            trampoline_avma: 0xabcd_0000,
            ranges: ranges.clone(),
            keeps_inner,
            counted: None,
        };
        let (landing, code_at) = island(&way);
        let gate = code_at(landing.target_avma + GATE_OFFSET);
        assert_eq!(gate[2].near_branch_target(), 0x10_0000 + OPENING_BYTES as u64);
        assert_eq!(gate[2].next_ip(), landing.target_avma + WAITED_OFFSET);
        let around = gate[3].near_branch_target();
        let to_target = gate.iter().find(|found| found.mnemonic() == Mnemonic::Jmp).unwrap();
        assert_eq!(to_target.memory_displacement64(), landing.target_avma);
        assert_eq!(mnemonics(&code_at(around)[..2]), [Mnemonic::Pop, Mnemonic::Popfq]);
        let behind = &code_at(around)[2];
        let leads_to = if keeps_inner { behind.near_branch_target() } else { behind.ip() };
        assert_eq!(leads_to, landing.moved_avma);
    }
}

#[test]
fn a_call_from_inside_goes_on_with_all_that_it_had() {
    let way = Way::Convention {
        trampoline_avma: 1,
        ranges: vec![(0x20_0000, 0x100)],
        keeps_inner: true,
        counted: None,
    };
    let (landing, code_at) = island(&way);
    let entry = code_at(landing.entry_avma);
    assert_eq!(mnemonics(&entry[..3]), [Mnemonic::Push, Mnemonic::Push, Mnemonic::Pushfq]);
    let inner = entry.iter().find(|found| found.mnemonic() == Mnemonic::Jb).unwrap();
    let inner = code_at(inner.near_branch_target());
    assert_eq!(mnemonics(&inner[..3]), [Mnemonic::Popfq, Mnemonic::Pop, Mnemonic::Pop]);
    assert_eq!(inner[3].ip(), landing.moved_avma);
}

#[test]
fn what_counts_goes_on_in_the_function_and_out_of_it_to_the_target() {
    let countdown = Countdown { slot_offset: 0x318, left_offset: 64 };
    let way = Way::Convention {
        trampoline_avma: 1,
        ranges: vec![(0x20_0000, 0x100), (0x30_0000, 0x100)],
        keeps_inner: false,
        counted: Some((Counted::Resized, countdown)),
    };
    let mut island = Island::new(0x10_0000, 0x1234_5000, 0x1234_6000).unwrap();
    let landing = island.add(&prologue(), &way).unwrap();
    assert!(island.bytes.len() <= OPENING_BYTES + WAIT_BYTES_MAX + FUNCTION_BYTES_MAX);
    let at = (landing.entry_avma - island.start_avma) as usize;
    // While closed, the entry leads to the tests.
    let questions = counting_at(landing.entry_avma, island.bytes[at..at + 5].try_into().unwrap());
    let code_at = |island: &Island, avma: u64| {
        let code = island.bytes[(avma - island.start_avma) as usize..].to_vec();
        Decoder::with_ip(64, &code, avma, DecoderOptions::NONE).iter().take(24).collect::<Vec<_>>()
    };
    let asked = code_at(&island, questions);
    let inner: Vec<u64> = asked
        .iter()
        .filter(|found| found.mnemonic() == Mnemonic::Jb)
        .map(Instruction::near_branch_target)
        .collect();
    assert_eq!(inner, [landing.moved_avma; 2]);
    let open: JumpBytes = island.bytes[at - COUNTING_BYTES..at - COUNTING_BYTES + 5].try_into().unwrap();
    assert_eq!(island.bytes[at - 8..at - 3], island.bytes[at..at + 5]);
    island.bytes[at..at + 5].copy_from_slice(&open);
    assert_eq!(landing.marks_avma, Some(landing.entry_avma + MARKS_OFFSET));
    let counting = code_at(&island, landing.entry_avma);
    let out = counting.iter().find(|found| found.mnemonic() == Mnemonic::Js).unwrap();
    let out = &code_at(&island, out.near_branch_target())[0];
    assert_eq!((out.mnemonic(), out.memory_displacement64()), (Mnemonic::Jmp, landing.target_avma));
    let behind = counting.iter().position(|found| found.mnemonic() == Mnemonic::Js).unwrap() + 1;
    assert_eq!(counting[behind].ip(), landing.moved_avma);
    // A waiting thread that is led around continues there too.
    let gate = code_at(&island, landing.target_avma + GATE_OFFSET);
    let around = code_at(&island, gate[3].near_branch_target());
    assert_eq!(around[2].near_branch_target(), landing.moved_avma);
}

#[test]
fn where_all_is_kept_nothing_is_changed_on_the_way() {
    let (landing, code_at) = island(&Way::Kept { entry_avma: 0x7000, function_avma: 0x8000, counted: None });
    let entry = &code_at(landing.entry_avma)[0];
    assert_eq!((entry.mnemonic(), entry.memory_displacement64()), (Mnemonic::Jmp, landing.target_avma));
    let kept = code_at(landing.trampoline_avma);
    assert_eq!(mnemonics(&kept[..4]), [Mnemonic::Push, Mnemonic::Mov, Mnemonic::Push, Mnemonic::Jmp]);
    // Two words behind the code.
    assert_eq!(kept[2].memory_displacement64(), kept[3].next_ip());
    assert_eq!(kept[3].memory_displacement64(), kept[3].next_ip() + 8);
}
