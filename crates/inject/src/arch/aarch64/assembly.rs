//! Assembler of the few instructions that trampoline areas and the record's page need. Numbers of
//! registers are 0 to 30; 31 is the stack pointer, or zero.

/// Number of the stack pointer in addresses.
pub(super) const SP: u32 = 31;
/// Number of the link register.
pub(super) const LINK: u32 = 30;

/// Reason of code that cannot be assembled.
pub(super) const NOT_ASSEMBLED: &str = "its code cannot be assembled";

pub(super) const NOP: u32 = 0xd503_201f;
pub(super) const RET: u32 = 0xd65f_03c0;
pub(super) const SVC: u32 = 0xd400_0001;
pub(super) const B: u32 = 0x1400_0000;
pub(super) const BL: u32 = 0x9400_0000;
/// Branch if lower, by the last comparison.
pub(super) const B_LO: u32 = 0x5400_0003;

/// A place in code that may be set later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Label(usize);

/// Field of an instruction for a distance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    /// 26 bits, of words.
    Branch,
    /// 19 bits at bit 5, of words.
    Conditional,
    /// 21 bits in two parts, of bytes.
    Address,
}

/// Code under construction.
#[derive(Debug, Default)]
pub(super) struct Assembler {
    words: Vec<u32>,
    places: Vec<Option<usize>>,
    open: Vec<(usize, Label, Field)>,
}

impl Assembler {
    pub(super) fn label(&mut self) -> Label {
        self.places.push(None);
        Label(self.places.len() - 1)
    }

    /// Sets a label at this place.
    pub(super) fn set(&mut self, label: Label) {
        self.places[label.0] = Some(self.words.len());
    }

    /// Sets a new label at this place.
    pub(super) fn here(&mut self) -> Label {
        let label = self.label();
        self.set(label);
        label
    }

    /// Offset in bytes of a label that is set.
    pub(super) fn offset(&self, label: Label) -> Option<u64> {
        self.places[label.0].map(|place| 4 * place as u64)
    }

    pub(super) fn put(&mut self, instruction: u32) {
        self.words.push(instruction);
    }

    /// Puts a number of 8 bytes at its alignment, with a label.
    pub(super) fn quad(&mut self, label: Label, value: u64) {
        if !self.words.len().is_multiple_of(2) {
            self.put(NOP);
        }
        self.set(label);
        self.put(value as u32);
        self.put((value >> 32) as u32);
    }

    /// `b` or `bl` to a label.
    pub(super) fn branch(&mut self, instruction: u32, label: Label) {
        self.open.push((self.words.len(), label, Field::Branch));
        self.put(instruction);
    }

    /// `b.cond`, `cbz` or `cbnz` to a label.
    pub(super) fn branch_if(&mut self, instruction: u32, label: Label) {
        self.open.push((self.words.len(), label, Field::Conditional));
        self.put(instruction);
    }

    /// `ldr x, label`.
    pub(super) fn load(&mut self, register: u32, label: Label) {
        self.branch_if(0x5800_0000 | register, label);
    }

    /// `adr x, label`.
    pub(super) fn address(&mut self, register: u32, label: Label) {
        self.open.push((self.words.len(), label, Field::Address));
        self.put(0x1000_0000 | register);
    }

    /// Bytes of the code.
    ///
    /// # Errors
    /// Returns a reason if a label was not set, or is out of reach.
    pub(super) fn finish(self) -> Result<Vec<u8>, &'static str> {
        let Self { mut words, places, open } = self;
        for (at, label, field) in open {
            let place = places.get(label.0).copied().flatten().ok_or(NOT_ASSEMBLED)?;
            let distance = 4 * (place as i64 - at as i64);
            let bits = match field {
                Field::Branch => distance_bits(distance, 26)?,
                Field::Conditional => distance_bits(distance, 19)? << 5,
                Field::Address => {
                    let bits = (distance as u32) & 0x1f_ffff;
                    (bits & 3) << 29 | (bits >> 2) << 5
                }
            };
            words[at] |= bits;
        }
        Ok(words.into_iter().flat_map(u32::to_le_bytes).collect())
    }
}

/// A distance in bytes as a field of so many bits, which counts words.
pub(super) fn distance_bits(distance: i64, bits: u32) -> Result<u32, &'static str> {
    let half = 1_i64 << (bits + 1);
    if distance % 4 != 0 || !(-half..half).contains(&distance) {
        return Err("the island is too far away");
    }
    Ok((distance >> 2) as u32 & ((1 << bits) - 1))
}

/// `b` from one address to another.
pub(super) fn branch_between(from_avma: u64, to_avma: u64) -> Result<u32, &'static str> {
    Ok(B | distance_bits(to_avma.wrapping_sub(from_avma).cast_signed(), 26)?)
}

/// `br x`.
pub(super) fn br(register: u32) -> u32 {
    0xd61f_0000 | register << 5
}

/// `blr x`.
pub(super) fn blr(register: u32) -> u32 {
    0xd63f_0000 | register << 5
}

/// `cbz x`.
pub(super) fn cbz(register: u32) -> u32 {
    0xb400_0000 | register
}

/// `cbnz w`.
pub(super) fn cbnz_w(register: u32) -> u32 {
    0x3500_0000 | register
}

/// `mov x, x`.
pub(super) fn mov(to: u32, from: u32) -> u32 {
    0xaa00_03e0 | from << 16 | to
}

/// `mov x, number`.
pub(super) fn mov_number(to: u32, number: u16) -> u32 {
    0xd280_0000 | u32::from(number) << 5 | to
}

/// `mov w, -1`.
pub(super) fn mov_minus_one(to: u32) -> u32 {
    0x1280_0000 | to
}

/// `sub x, x, number`.
pub(super) fn sub(to: u32, from: u32, number: u32) -> u32 {
    0xd100_0000 | number << 10 | from << 5 | to
}

/// `add x, x, number`.
pub(super) fn add(to: u32, from: u32, number: u32) -> u32 {
    0x9100_0000 | number << 10 | from << 5 | to
}

/// `cmp x, x`.
pub(super) fn cmp(first: u32, second: u32) -> u32 {
    0xeb00_001f | second << 16 | first << 5
}

/// `ldr x, [x, offset]`, with an offset of whole words.
pub(super) fn ldr(to: u32, base: u32, offset: u32) -> u32 {
    0xf940_0000 | (offset / 8) << 10 | base << 5 | to
}

/// `str x, [x, offset]`, with an offset of whole words.
pub(super) fn str(from: u32, base: u32, offset: u32) -> u32 {
    0xf900_0000 | (offset / 8) << 10 | base << 5 | from
}

/// `ldr w, [x]`.
pub(super) fn ldr_w(to: u32, base: u32) -> u32 {
    0xb940_0000 | base << 5 | to
}

/// `str w, [x, offset]`, with an offset of whole half words.
pub(super) fn str_w(from: u32, base: u32, offset: u32) -> u32 {
    0xb900_0000 | (offset / 4) << 10 | base << 5 | from
}

fn pair(instruction: u32, [first, second]: [u32; 2], base: u32, offset: i32) -> u32 {
    instruction | ((offset / 8) as u32 & 0x7f) << 15 | second << 10 | base << 5 | first
}

/// `stp x, x, [x, offset]`.
pub(super) fn stp(registers: [u32; 2], base: u32, offset: i32) -> u32 {
    pair(0xa900_0000, registers, base, offset)
}

/// `stp x, x, [x, offset]!`.
pub(super) fn stp_before(registers: [u32; 2], base: u32, offset: i32) -> u32 {
    pair(0xa980_0000, registers, base, offset)
}

/// `ldp x, x, [x, offset]`.
pub(super) fn ldp(registers: [u32; 2], base: u32, offset: i32) -> u32 {
    pair(0xa940_0000, registers, base, offset)
}

/// `ldp x, x, [x], offset`.
pub(super) fn ldp_after(registers: [u32; 2], base: u32, offset: i32) -> u32 {
    pair(0xa8c0_0000, registers, base, offset)
}

/// `mrs x, nzcv`.
pub(super) fn read_flags(to: u32) -> u32 {
    0xd53b_4200 | to
}

/// `msr nzcv, x`.
pub(super) fn write_flags(from: u32) -> u32 {
    0xd51b_4200 | from
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_are_those_of_the_assembler() {
        // As GNU's assembler encodes them.
        assert_eq!(br(16), 0xd61f_0200);
        assert_eq!(blr(19), 0xd63f_0260);
        assert_eq!(cbz(25), 0xb400_0019);
        assert_eq!(mov(21, LINK), 0xaa1e_03f5);
        assert_eq!(mov_number(8, 215), 0xd280_1ae8);
        assert_eq!(sub(25, 25, 1), 0xd100_0739);
        assert_eq!(cmp(LINK, 16), 0xeb10_03df);
        assert_eq!(ldr(0, 23, 16), 0xf940_0ae0);
        assert_eq!(str(0, 20, 0), 0xf900_0280);
        assert_eq!(stp_before([0, 1], SP, -48), 0xa9bd_07e0);
        assert_eq!(ldp_after([0, 1], SP, 48), 0xa8c3_07e0);
        assert_eq!(ldp([2, 3], SP, 16), 0xa941_0fe2);
        assert_eq!(read_flags(17), 0xd53b_4211);
        assert_eq!(branch_between(0x1000, 0x1008), Ok(0x1400_0002));
        assert_eq!(branch_between(0x1008, 0x1000), Ok(0x17ff_fffe));
        assert!(branch_between(0, 128 << 20).is_err());
        assert!(branch_between(0, (128 << 20) - 4).is_ok());
    }

    #[test]
    fn labels_are_reached_in_both_directions() {
        let mut a = Assembler::default();
        let (data, end) = (a.label(), a.label());
        let begin = a.here();
        a.load(16, data);
        a.branch_if(cbz(16), end);
        a.branch(B, begin);
        a.set(end);
        a.address(3, data);
        a.quad(data, 0x1122_3344_5566_7788);
        assert_eq!(a.offset(data), Some(16));
        let code = a.finish().unwrap();
        let words: Vec<u32> =
            code.chunks(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect();
        assert_eq!(words, [0x5800_0090, 0xb400_0050, 0x17ff_fffe, 0x1000_0023, 0x5566_7788, 0x1122_3344]);
        let mut a = Assembler::default();
        let never = a.label();
        a.branch(B, never);
        assert!(a.finish().is_err());
    }
}
