//! Branches in code of aarch64 (Arm Architecture Reference Manual, C4.1.66 and C4.1.94).

use crate::branch::Branch;

/// Number of the processor in a file's header.
pub(crate) const MACHINE: u16 = 183;

/// Size in bytes of an instruction, and of the pages that ADRP counts.
const INSTRUCTION_BYTES: u64 = 4;
const PAGE_BYTES: u64 = 4096;

/// Branches of code that begins at `start_svma`, in its order. A branch by a register leads by a
/// word if a page's address and a load have set that register before.
pub(crate) fn branches(start_svma: u64, code: &[u8]) -> Vec<Branch> {
    let mut found = Vec::new();
    let (mut pages, mut words) = ([None; 32], [None; 32]);
    let (instructions, _) = code.as_chunks::<4>();
    for (place, bytes) in instructions.iter().enumerate() {
        let pc_svma = start_svma.wrapping_add(place as u64 * INSTRUCTION_BYTES);
        match Instruction::of(u32::from_le_bytes(*bytes)) {
            Instruction::Branch { instructions } => {
                found.push(Branch::To(pc_svma.wrapping_add_signed(instructions * 4)));
            }
            Instruction::ByRegister { register } => found.push(Branch::ByWord(words[register])),
            Instruction::PageOf { register, pages: count } => {
                let page_svma = pc_svma & !(PAGE_BYTES - 1);
                pages[register] = Some(page_svma.wrapping_add_signed(count * PAGE_BYTES.cast_signed()));
                words[register] = None;
            }
            Instruction::Load { register, base, offset } => {
                words[register] = pages[base].map(|page: u64| page.wrapping_add(offset));
                pages[register] = None;
            }
            Instruction::Other => {}
        }
    }
    found
}

/// Instruction, as far as branches need it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Instruction {
    /// B, BL, B.cond, CBZ, CBNZ, TBZ, TBNZ: distance in instructions.
    Branch {
        instructions: i64,
    },
    /// BR, BLR, and their forms that check a signature.
    ByRegister {
        register: usize,
    },
    /// ADRP: distance in pages.
    PageOf {
        register: usize,
        pages: i64,
    },
    /// LDR of 64 bits: offset in bytes.
    Load {
        register: usize,
        base: usize,
        offset: u64,
    },
    Other,
}

impl Instruction {
    fn of(word: u32) -> Self {
        let register = |at: u32| (word >> at & 31) as usize;
        let signed =
            |at: u32, bits: u32| i64::from(((word >> at) << (32 - bits)).cast_signed() >> (32 - bits));
        let is_of = |mask: u32, value: u32| word & mask == value;
        if is_of(0x7c00_0000, 0x1400_0000) {
            Self::Branch { instructions: signed(0, 26) }
        } else if is_of(0xff00_0000, 0x5400_0000) || is_of(0x7e00_0000, 0x3400_0000) {
            Self::Branch { instructions: signed(5, 19) }
        } else if is_of(0x7e00_0000, 0x3600_0000) {
            Self::Branch { instructions: signed(5, 14) }
        } else if is_of(0xfedf_0000, 0xd61f_0000) {
            Self::ByRegister { register: register(5) }
        } else if is_of(0x9f00_0000, 0x9000_0000) {
            let pages = signed(5, 19) << 2 | i64::from(word >> 29 & 3);
            Self::PageOf { register: register(0), pages }
        } else if is_of(0xffc0_0000, 0xf940_0000) {
            Self::Load { register: register(0), base: register(5), offset: u64::from(word >> 10 & 0xfff) * 8 }
        } else {
            Self::Other
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn branches_lead_where_the_assembler_says() {
        // bl .+0x100; b .-8; b.ne .+8; cbz x0, .-4; tbnz w1, #3, .+12; ret
        let words = [0x9400_0040, 0x17ff_fffe, 0x5400_0041, 0xb4ff_ffe0, 0x3718_0061, 0xd65f_03c0];
        let to = [0x1100, 0x0ffc, 0x1010, 0x1008, 0x101c].map(Branch::To);
        assert_eq!(branches(0x1000, &code(&words)), to);
    }

    #[test]
    fn a_loaders_stub_leads_by_its_word() {
        // adrp x16, .+0x1f000; ldr x17, [x16, #0xf90]; add x16, x16, #0xf90; br x17; blr x3
        let words = [0xf000_00f0, 0xf947_ca11, 0x913e_4210, 0xd61f_0220, 0xd63f_0060];
        let by = [Branch::ByWord(Some(0x1f000 + 0xf90)), Branch::ByWord(None)];
        assert_eq!(branches(0x350, &code(&words)), by);
    }

    #[test]
    fn calls_with_a_signature_are_calls() {
        // braa x1, x2; blraa x1, x2; blraaz x3; retaa; eret
        for (word, is_one) in [
            (0xd71f_0822, true),
            (0xd73f_0822, true),
            (0xd63f_087f, true),
            (0xd65f_0bff, false),
            (0xd69f_03e0, false),
        ] {
            assert_eq!(!branches(0, &code(&[word])).is_empty(), is_one, "{word:x}");
        }
    }
}
