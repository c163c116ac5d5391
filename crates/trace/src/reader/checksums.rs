//! Check of a whole file: verifies the checksums of all chunks, including those read on demand.

use std::collections::HashSet;

use super::Trace;
use super::opening::damage_of;
use crate::chunk::{CHUNK_HEADER_BYTES, ChunkInfo};
use crate::error::{Damage, Error, Result};
use crate::source::read_up_to;

/// Number of bytes of a payload that are in memory at a time.
const PIECE_BYTES: usize = 1 << 18;

impl Trace {
    /// All damage of the file in order of offset: [`Trace::damage`], and every other chunk whose
    /// checksum is wrong. Reads the whole file once, in little memory.
    #[must_use]
    pub fn check(&self) -> Vec<Damage> {
        let mut damage = self.damage().to_vec();
        let known: HashSet<u64> = damage.iter().map(|damage| damage.offset).collect();
        let mut piece = vec![0; PIECE_BYTES];
        for info in self.chunks.iter().filter(|info| !known.contains(&info.offset)) {
            if let Err(error) = self.check_payload(info, &mut piece) {
                damage.push(damage_of(info, &error));
            }
        }
        damage.sort_by_key(|damage| damage.offset);
        damage
    }

    fn check_payload(&self, info: &ChunkInfo, piece: &mut [u8]) -> Result<()> {
        let header = self.header_of(info)?;
        let mut crc = crc32fast::Hasher::new();
        let mut at = info.offset + CHUNK_HEADER_BYTES as u64;
        let mut left = header.stored_bytes as usize;
        while left > 0 {
            let wanted = left.min(piece.len());
            let piece = &mut piece[..wanted];
            if read_up_to(&*self.source, piece, at)? < wanted {
                return Err(Error::Damaged { offset: info.offset, what: "the file ends within this chunk" });
            }
            crc.update(piece);
            at += wanted as u64;
            left -= wanted;
        }
        if !cfg!(fuzzing) && crc.finalize() != header.payload_crc {
            return Err(Error::Damaged { offset: info.offset, what: "the chunk's checksum is wrong" });
        }
        Ok(())
    }
}
