//! Text that is written into a buffer of known size.

/// A buffer and the number of bytes written.
#[derive(Debug)]
pub(crate) struct Text<'a> {
    pub(crate) out: &'a mut [u8],
    pub(crate) bytes: usize,
}

impl Text<'_> {
    pub(crate) fn push(&mut self, character: char) {
        let Some(place) = self.out.get_mut(self.bytes..self.bytes.wrapping_add(character.len_utf8())) else {
            return;
        };
        self.bytes = self.bytes.wrapping_add(character.encode_utf8(place).len());
    }

    pub(crate) fn push_all(&mut self, text: &str) {
        text.chars().for_each(|character| self.push(character));
    }

    /// Appends bytes unchanged; as many as there is room for.
    pub(crate) fn push_bytes(&mut self, bytes: &[u8]) {
        let room = self.out.get_mut(self.bytes..).unwrap_or_default();
        let written = room.len().min(bytes.len());
        for (place, &byte) in room.iter_mut().zip(bytes) {
            *place = byte;
        }
        self.bytes = self.bytes.wrapping_add(written);
    }
}
