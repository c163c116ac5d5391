//! Descriptors of threads in glibc (`struct pthread`), found by words that tell their own address.
//!
//! ```text
//! at it     | stack | thread-local variables | descriptor      |
//! below it  | stack | descriptor | head | thread-local variables |
//!                                ^ thread pointer; above it is the descriptor's begin
//! ```

/// Layout of a descriptor on a processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadDescriptor {
    /// Bytes below the thread pointer in which it begins; 0 if it begins at the thread pointer.
    pub begins_below: u64,
    /// Alignment of its begin in bytes.
    pub alignment: u64,
    /// Words by which it is recognised, in all threads and also after a thread's end.
    pub signature: &'static [SignatureWord],
    /// Offset of the thread's id (`tid`).
    pub id_at: u64,
    /// Offset from the thread pointer of the address of the list with the thread's blocks of
    /// thread-local variables (`dtv`).
    pub variables_list_at: u64,
    /// Largest distance from the thread pointer to the end of the stack's block.
    pub stack_end_above: u64,
}

/// A word of a descriptor that has one value only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SignatureWord {
    /// Offset of the word.
    pub at: usize,
    /// The word's value.
    pub value: OwnValue,
}

/// Value of such a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnValue {
    /// Address of the descriptor's byte with this offset.
    AddressOf(u64),
    /// Word that is equal in all descriptors.
    Constant(u64),
}

impl ThreadDescriptor {
    /// Addresses of descriptors in bytes of a process that begin at `start_avma`, upwards.
    pub fn all_in<'bytes>(
        &'bytes self,
        start_avma: u64,
        bytes: &'bytes [u8],
    ) -> impl DoubleEndedIterator<Item = u64> + 'bytes {
        let first = start_avma.checked_next_multiple_of(self.alignment).unwrap_or(u64::MAX);
        let skipped = usize::try_from(first - start_avma).unwrap_or(usize::MAX);
        let bytes = bytes.get(skipped..).unwrap_or_default();
        let alignment = usize::try_from(self.alignment).unwrap_or(usize::MAX);
        (0..bytes.len() / alignment.max(1)).filter_map(move |number| {
            let avma = first + (number * alignment) as u64;
            self.is_at(avma, &bytes[number * alignment..]).then_some(avma)
        })
    }

    /// True if bytes that begin at an address begin with a descriptor.
    #[must_use]
    pub fn is_at(&self, avma: u64, bytes: &[u8]) -> bool {
        self.signature.iter().all(|word| {
            let told = match word.value {
                OwnValue::AddressOf(offset) => avma.wrapping_add(offset),
                OwnValue::Constant(value) => value,
            };
            bytes.get(word.at..).is_some_and(|bytes| bytes.starts_with(&told.to_le_bytes()))
        })
    }

    /// True if a word at this offset is one of those that tell the descriptor.
    #[must_use]
    pub fn is_of_signature(&self, at: usize) -> bool {
        self.signature.iter().any(|word| word.at == at)
    }
}

#[cfg(test)]
mod tests {
    use crate::machine::of_elf;

    use super::*;

    fn descriptor(elf_number: u16) -> ThreadDescriptor {
        of_elf(elf_number).unwrap().descriptor
    }

    #[test]
    fn a_descriptor_is_found_by_its_own_address_at_its_alignment() {
        let start_avma = 0x7000_0008;
        let mut bytes = [0; 512];
        let mut put = |avma: u64, value: u64| {
            let at = (avma - start_avma) as usize;
            bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
        };
        // An address in the middle of the alignment is no descriptor.
        put(0x7000_0050, 0x7000_0050);
        put(0x7000_0060, 0x7000_0050);
        put(0x7000_0080, 0x7000_0080);
        put(0x7000_0100, 0x7000_0100);
        put(0x7000_0110, 0x7000_0100);
        let known = descriptor(62);
        assert!(known.all_in(start_avma, &bytes).eq([0x7000_0100]));
        assert_eq!(known.all_in(start_avma, &bytes[..0x100]).count(), 0);
        assert_eq!(known.all_in(start_avma, &[]).count(), 0);
        assert_eq!(known.all_in(u64::MAX, &[0; 64]).count(), 0);
    }

    #[test]
    fn a_descriptor_below_the_thread_pointer_is_told_by_two_words() {
        let mut bytes = [0_u8; 0x400];
        let mut put = |at: usize, value: u64| bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
        put(0x30 + 0x310, 0x8030 + 0x110);
        let known = descriptor(183);
        assert_eq!(known.all_in(0x8000, &bytes).count(), 0);
        let at = 0x30 + 0xe8;
        bytes[at..at + 8].copy_from_slice(&(-32_i64).to_le_bytes());
        assert!(known.all_in(0x8000, &bytes).eq([0x8030]));
    }
}
