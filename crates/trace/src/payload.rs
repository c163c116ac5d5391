//! The contents of a chunk: a few byte streams (columns), each packed on its own so that similar
//! data is compressed together.
//!
//! ```text
//! payload = count:u8 { raw_bytes:u32 stored_bytes:u32 } * count  stream * count
//! ```
//! A stream whose two sizes are equal is stored unpacked; otherwise it is one zstd frame.

mod search;

use std::cell::RefCell;
use std::io::Cursor;

use zstd::zstd_safe::{CParameter, ParamSwitch};

use self::search::Sample;
pub(crate) use self::search::Search;
use crate::bytes::Take;
use crate::chunk::CHUNK_BYTES_MAX;
use crate::error::Malformed;

/// zstd level of streams that are searched for repetitions. Level 3 saves 4 to 8 % on real traces
/// and takes twice the time.
const LEVEL: i32 = 1;
/// zstd level of the other streams. This level hardly looks for repetitions, and codes bytes by
/// their frequency.
const LEVEL_WITHOUT_SEARCH: i32 = -1000;
/// Smallest size in bytes of a stream that is packed: zstd's frame would cost more than it saves.
const PACK_BYTES_MIN: usize = 48;
/// Minimum match length and hash table bits (log2) for streams with long repetitions. The level's
/// own values are 6 and 13 for most streams. Tokens and sites of events take a tenth less time, and
/// up to a tenth fewer bytes. Times and addresses would take 3 to 10 % more bytes.
const LONG_SEARCH: (u32, u32) = (7, 13);
/// Largest buffer in bytes that is reused: half as much again as a chunk of events needs.
const ROOM_BYTES_MAX: usize = 1 << 20;
/// Stands for the level's own values, for all other streams and for samples. These are too short
/// for long repetitions.
const LEVELS_SEARCH: (u32, u32) = (0, 0);

/// Packs and unpacks streams.
pub(crate) struct Packer {
    with_search: Option<Compressor>,
    without_search: Option<Compressor>,
    /// Buffer for the next payload.
    room: Vec<u8>,
}

type Compressor = zstd::bulk::Compressor<'static>;

impl std::fmt::Debug for Packer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Packer").finish_non_exhaustive()
    }
}

/// A compressor that codes bytes by their frequency, without a search.
fn without_search() -> std::io::Result<Compressor> {
    let mut compressor = Compressor::new(LEVEL_WITHOUT_SEARCH)?;
    // At levels below 0 zstd does not compress literals by default.
    compressor.set_parameter(CParameter::LiteralCompressionMode(ParamSwitch::Enable))?;
    Ok(compressor)
}

/// Appends `stream` to `payload` in packed form, if that is smaller. Returns the packed size.
fn packed(compressor: &mut Compressor, stream: &[u8], payload: &mut Vec<u8>) -> Option<usize> {
    let end = payload.len();
    payload.reserve(zstd::zstd_safe::compress_bound(stream.len()));
    let mut room = Cursor::new(payload);
    room.set_position(end as u64);
    let outcome = compressor.compress_to_buffer(stream, &mut room);
    let payload = room.into_inner();
    let bytes = payload.len().saturating_sub(end);
    if outcome.is_ok() && bytes < stream.len() {
        return Some(bytes);
    }
    payload.truncate(end);
    None
}

impl Packer {
    /// A packer. If zstd cannot allocate memory, streams are stored unpacked.
    pub(crate) fn new() -> Self {
        Self {
            with_search: Compressor::new(LEVEL).ok(),
            without_search: without_search().ok(),
            room: Vec::new(),
        }
    }

    /// Takes back the buffer of a written payload. A fresh buffer would cost page faults.
    pub(crate) fn give_back(&mut self, payload: Vec<u8>) {
        if payload.capacity() <= ROOM_BYTES_MAX {
            self.room = payload;
        }
    }

    /// A copy of the payload of exact size, for payloads that are held for a while.
    pub(crate) fn without_room(&mut self, payload: Vec<u8>) -> Vec<u8> {
        let exact = payload.as_slice().to_vec();
        self.give_back(payload);
        exact
    }

    /// Packs `streams`. Returns the payload, with spare capacity, and its unpacked size.
    pub(crate) fn pack(&mut self, streams: &[&[u8]]) -> (Vec<u8>, u32) {
        self.pack_each(streams.iter().map(|&stream| (stream, Search::Sampled)))
    }

    /// Packs the columns of events. Returns the payload and its unpacked size.
    pub(crate) fn pack_events<const N: usize>(
        &mut self,
        streams: [&[u8]; N],
        searches: [Search; N],
    ) -> (Vec<u8>, u32) {
        self.pack_each(streams.into_iter().zip(searches))
    }

    fn pack_each<'a>(
        &mut self,
        streams: impl ExactSizeIterator<Item = (&'a [u8], Search)> + Clone,
    ) -> (Vec<u8>, u32) {
        let (count, directory_bytes) = (streams.len(), 1 + streams.len() * 8);
        let raw_bytes = directory_bytes + streams.clone().map(|(stream, _)| stream.len()).sum::<usize>();
        let mut payload = std::mem::take(&mut self.room);
        payload.clear();
        // Enough for all streams, except the last bytes of a stream that does not shrink.
        payload.reserve(zstd::zstd_safe::compress_bound(raw_bytes));
        payload.push(count as u8);
        payload.resize(directory_bytes, 0);
        for (number, (stream, search)) in streams.enumerate() {
            let stored_bytes = self.packed(stream, search, &mut payload).unwrap_or_else(|| {
                payload.extend_from_slice(stream);
                stream.len()
            });
            let at = 1 + number * 8;
            payload[at..at + 4].copy_from_slice(&(stream.len() as u32).to_le_bytes());
            payload[at + 4..at + 8].copy_from_slice(&(stored_bytes as u32).to_le_bytes());
        }
        (payload, raw_bytes as u32)
    }

    fn packed(&mut self, stream: &[u8], search: Search, payload: &mut Vec<u8>) -> Option<usize> {
        if stream.len() < PACK_BYTES_MIN {
            return None;
        }
        let pays = match search.sample(stream) {
            Ok(pays) => pays,
            Err(sample) => self.sample_pays(&sample, payload).unwrap_or(true),
        };
        let compressor = if pays { &mut self.with_search } else { &mut self.without_search };
        let compressor = compressor.as_mut()?;
        if pays {
            set_search(compressor, if search == Search::Sampled { LEVELS_SEARCH } else { LONG_SEARCH })?;
        }
        packed(compressor, stream, payload)
    }

    /// Whether a search for repetitions makes a sample much smaller. Uses the spare capacity of
    /// `payload`.
    fn sample_pays(&mut self, sample: &Sample<'_>, payload: &mut Vec<u8>) -> Option<bool> {
        let compressor = self.with_search.as_mut()?;
        set_search(compressor, LEVELS_SEARCH)?;
        let end = payload.len();
        let left_bytes = packed(compressor, sample.bytes, payload).unwrap_or(sample.bytes.len());
        payload.truncate(end);
        Some(sample.pays(left_bytes))
    }

    /// Result of the sampling; `None` for a stream that is not sampled.
    #[cfg(test)]
    fn search_pays(&mut self, stream: &[u8]) -> Option<bool> {
        let sample = Search::Sampled.sample(stream).err()?;
        self.sample_pays(&sample, &mut Vec::new())
    }
}

fn set_search(compressor: &mut Compressor, (repetition_bytes, place_bits): (u32, u32)) -> Option<()> {
    compressor.set_parameter(CParameter::MinMatch(repetition_bytes)).ok()?;
    compressor.set_parameter(CParameter::HashLog(place_bits)).ok()
}

thread_local! {
    /// Reused decompressor: one per stream took a third of the unpacking time, in page faults.
    static DECOMPRESSOR: RefCell<Option<zstd::bulk::Decompressor<'static>>> = const { RefCell::new(None) };
}

/// Unpacks a stream to at most `raw_bytes`.
fn unpacked(stored: &[u8], raw_bytes: usize) -> Option<Vec<u8>> {
    DECOMPRESSOR.with_borrow_mut(|kept| {
        let mut decompressor = kept.take().or_else(|| zstd::bulk::Decompressor::new().ok())?;
        let unpacked = decompressor.decompress(stored, raw_bytes).ok();
        *kept = Some(decompressor);
        unpacked
    })
}

/// Unpacks the streams of an untrusted payload that claims to unpack to `raw_bytes`.
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

    /// Random bytes of which small ones are more frequent.
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
        // Twenty phrases in random order.
        let repeated: Vec<u8> = noise.iter().flat_map(|&next| phrase(&noise, next)).take(60_000).collect();
        assert_eq!(packer.search_pays(&noise), Some(false));
        assert_eq!(packer.search_pays(&repeated), Some(true));
        assert_eq!(packer.search_pays(&noise[..5000]), None);
        let (payload, raw_bytes) = packer.pack(&[&noise, &repeated, &[], &noise[..47], &noise[..5000]]);
        // Noise of 118 values, small ones more often, shrinks to between half and nine tenths.
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
