//! The contents of a chunk: a few byte streams (columns), each packed on its own so that like stands with like.
//!
//! ```text
//! payload = count:u8 { raw_bytes:u32 stored_bytes:u32 } * count  stream * count
//! ```
//! A stream whose two sizes are equal is stored as it is; otherwise it is one zstd frame.

use std::cell::RefCell;

use zstd::zstd_safe::{CParameter, ParamSwitch};

use crate::bytes::Take;
use crate::chunk::CHUNK_BYTES_MAX;
use crate::error::Malformed;

/// zstd level of streams that repeat themselves. Level 3 saves 4 to 8 % on real traces and takes twice the time.
const LEVEL: i32 = 1;
/// zstd level of the others: it hardly looks for repetitions, and codes bytes by their frequency.
const LEVEL_WITHOUT_SEARCH: i32 = -1000;
/// Streams shorter than this are stored as they are: zstd's frame would eat the gain.
const PACK_BYTES_MIN: usize = 48;
/// So much from the middle of a stream is packed both ways to see whether a search pays.
const SAMPLE_BYTES: usize = 4096;
/// It pays if what it leaves is less than this part of what is left without it. The search takes most of the packing time, and times in ns
/// (nearly all the bytes that a search cannot find) fall by a third by their frequencies alone. Nanoseconds and bytes an event with the search
/// everywhere, and chosen: stress 19.0 and 3.10, 10.8 and 3.20; jq 11.5 and 1.17, 7.0 and 1.29; Python 7.5 and 0.98, 4.3 and 1.05; redis 7.4 and 1.24, 6.1
/// and 1.34; Node 9.6 and 2.78, 7.9 and 2.96; clang++ 2.83 and 2.93 bytes in the same time. (Samples of 2,048 and 8,192, and 0.8 and 0.9 here, differ by 1 ns
/// and 3 %.)
const SEARCH_PAYS: (usize, usize) = (85, 100);

/// Packs and unpacks streams.
pub(crate) struct Packer {
    with_search: Option<Compressor>,
    without_search: Option<Compressor>,
    scratch: Vec<u8>,
}

type Compressor = zstd::bulk::Compressor<'static>;

impl std::fmt::Debug for Packer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Packer").finish_non_exhaustive()
    }
}

/// A compressor that codes bytes by their frequency at once.
fn without_search() -> std::io::Result<Compressor> {
    let mut compressor = Compressor::new(LEVEL_WITHOUT_SEARCH)?;
    // At levels below 0 zstd leaves this out.
    compressor.set_parameter(CParameter::LiteralCompressionMode(ParamSwitch::Enable))?;
    Ok(compressor)
}

/// The packed size of `stream` in `scratch`; `None` if it is not smaller.
fn packed(compressor: &mut Compressor, stream: &[u8], scratch: &mut Vec<u8>) -> Option<usize> {
    let bound = zstd::zstd_safe::compress_bound(stream.len());
    if scratch.len() < bound {
        scratch.resize(bound, 0);
    }
    let bytes = compressor.compress_to_buffer(stream, &mut scratch[..]).ok()?;
    (bytes < stream.len()).then_some(bytes)
}

impl Packer {
    /// A packer. Where zstd has no memory, streams are stored as they are.
    pub(crate) fn new() -> Self {
        Self {
            with_search: Compressor::new(LEVEL).ok(),
            without_search: without_search().ok(),
            scratch: Vec::new(),
        }
    }

    /// The payload of `streams`, and its unpacked size.
    pub(crate) fn pack(&mut self, streams: &[&[u8]]) -> (Vec<u8>, u32) {
        let mut payload = vec![streams.len() as u8];
        payload.resize(1 + streams.len() * 8, 0);
        let mut raw_bytes = payload.len();
        for (number, stream) in streams.iter().enumerate() {
            let stored = match self.packed(stream) {
                Some(bytes) => &self.scratch[..bytes],
                None => stream,
            };
            payload.extend_from_slice(stored);
            let at = 1 + number * 8;
            payload[at..at + 4].copy_from_slice(&(stream.len() as u32).to_le_bytes());
            payload[at + 4..at + 8].copy_from_slice(&(stored.len() as u32).to_le_bytes());
            raw_bytes += stream.len();
        }
        (payload, raw_bytes as u32)
    }

    fn packed(&mut self, stream: &[u8]) -> Option<usize> {
        if stream.len() < PACK_BYTES_MIN {
            return None;
        }
        let pays = self.search_pays(stream).unwrap_or(true);
        let compressor = if pays { &mut self.with_search } else { &mut self.without_search };
        packed(compressor.as_mut()?, stream, &mut self.scratch)
    }

    /// Whether a search for repetitions makes a stream much smaller; `None` for a short one, which takes no time.
    fn search_pays(&mut self, stream: &[u8]) -> Option<bool> {
        if stream.len() < 2 * SAMPLE_BYTES {
            return None;
        }
        let sample = stream.get((stream.len() - SAMPLE_BYTES) / 2..)?.get(..SAMPLE_BYTES)?;
        let mut left = |compressor: &mut Option<Compressor>| {
            Some(packed(compressor.as_mut()?, sample, &mut self.scratch).unwrap_or(SAMPLE_BYTES))
        };
        let (with, without) = (left(&mut self.with_search)?, left(&mut self.without_search)?);
        Some(with * SEARCH_PAYS.1 < without * SEARCH_PAYS.0)
    }
}

thread_local! {
    /// Kept: to make one for each stream took a third of the unpacking time, in page faults.
    static DECOMPRESSOR: RefCell<Option<zstd::bulk::Decompressor<'static>>> = const { RefCell::new(None) };
}

/// A stream that unpacks to at most `raw_bytes`.
fn unpacked(stored: &[u8], raw_bytes: usize) -> Option<Vec<u8>> {
    DECOMPRESSOR.with_borrow_mut(|kept| {
        let mut decompressor = kept.take().or_else(|| zstd::bulk::Decompressor::new().ok())?;
        let unpacked = decompressor.decompress(stored, raw_bytes).ok();
        *kept = Some(decompressor);
        unpacked
    })
}

/// The streams of an untrusted payload that claims to unpack to `raw_bytes`.
pub(crate) fn unpack<const N: usize>(payload: &[u8], raw_bytes: u32) -> Result<[Vec<u8>; N], Malformed> {
    let mut take = Take::new(payload);
    if usize::from(take.u8()?) != N {
        return Err(Malformed("it has another number of streams than its kind"));
    }
    let mut sizes = [(0_u32, 0_u32); N];
    for size in &mut sizes {
        *size = (take.u32()?, take.u32()?);
    }
    let sum: u64 = sizes.iter().map(|&(raw, _)| u64::from(raw)).sum();
    if sum + 1 + 8 * N as u64 != u64::from(raw_bytes) || raw_bytes > CHUNK_BYTES_MAX {
        return Err(Malformed("its streams do not add up to its size"));
    }
    let mut streams = [const { Vec::new() }; N];
    for (stream, (raw, stored)) in streams.iter_mut().zip(sizes) {
        let bytes = take.bytes(stored as usize)?;
        *stream = if raw == stored {
            bytes.to_vec()
        } else {
            unpacked(bytes, raw as usize).ok_or(Malformed("a stream cannot be unpacked"))?
        };
        if stream.len() != raw as usize {
            return Err(Malformed("a stream has another size than it says"));
        }
    }
    Ok(streams)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes without any order, of which small ones are more frequent.
    fn noise(count: usize) -> Vec<u8> {
        let mut state = 1_u64;
        let bytes = std::iter::repeat_with(|| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((state >> 33) % 16 * ((state >> 48) % 16)) as u8
        });
        bytes.take(count).collect()
    }

    fn phrase(noise: &[u8], number: u8) -> impl Iterator<Item = u8> {
        noise.iter().skip(usize::from(number % 20) * 40).take(40).copied()
    }

    #[test]
    fn what_repeats_itself_is_searched_and_what_does_not_is_coded_by_frequency() {
        let mut packer = Packer::new();
        let noise = noise(60_000);
        // Twenty phrases in no order.
        let repeated: Vec<u8> = noise.iter().flat_map(|&next| phrase(&noise, next)).take(60_000).collect();
        assert_eq!(packer.search_pays(&noise), Some(false));
        assert_eq!(packer.search_pays(&repeated), Some(true));
        assert_eq!(packer.search_pays(&noise[..5000]), None);
        let (payload, raw_bytes) = packer.pack(&[&noise, &repeated, &[], &noise[..47], &noise[..5000]]);
        // Noise of 118 values, small ones more often, is left by three quarters to nine tenths.
        let stored_bytes = |number: usize| {
            u32::from_le_bytes(payload[5 + number * 8..9 + number * 8].try_into().unwrap()) as usize
        };
        assert!((30_000..54_000).contains(&stored_bytes(0)), "{}", stored_bytes(0));
        assert!(stored_bytes(1) < 12_000, "{}", stored_bytes(1));
        let streams = unpack::<5>(&payload, raw_bytes).unwrap();
        assert_eq!(streams[0], noise);
        assert_eq!(streams[1], repeated);
        assert_eq!((streams[2].len(), &streams[3][..], &streams[4][..]), (0, &noise[..47], &noise[..5000]));
    }
}
