//! Decides whether a search for repetitions in a stream pays.
//!
//! The search takes most of the packing time, and finds nothing in some streams: these shrink as
//! much by the frequencies of their bytes alone. Most streams are sampled. Streams that are known
//! to repeat are searched without a sample.

/// Method to decide whether a stream is searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Search {
    /// Decided by a sample.
    Sampled,
    /// Always searched: the stream has long repetitions in every program.
    Always,
    /// Searched without a sample unless its values are mixed. The stream has few values, with long
    /// repetitions unless they are mixed.
    SampledIfMixed,
}

/// Size in bytes of a sample, from the middle of a stream.
const SAMPLE_BYTES: usize = 2048;
/// Smallest size in bytes of a stream that is sampled. A shorter one packs quickly and is searched.
const SAMPLED_BYTES_MIN: usize = 8192;
/// Largest ratio of searched to unsearched size of a sample at which the search pays.
///
/// Measured on the events of six programs, in nanoseconds and bytes per event. With a sample of
/// 4,096 bytes, packed both ways, and a ratio of 0.85, the values were as follows. Stress 5.3 and
/// 2.86, clang++ 5.3 and 2.54, Node 5.0 and 2.98, redis 3.5 and 1.58, jq 5.2 and 0.78, Python 2.4
/// and 0.75. With the present values: a fifth less time and 2.88, 2.53, 2.94, 1.58, 0.78 and 0.74
/// bytes. (At 0.85 jq has 0.97 bytes: a smaller sample repeats itself less.)
const PAYS: f32 = 0.91;
/// Least entropy, in bits per byte, at which values count as mixed.
///
/// The tokens of events of Node and redis have 1.0 to 1.9. There a sample misses repetitions over
/// longer distances, and the search leaves a quarter to a half in as much time. Those of clang++
/// have 1.4 to 2.3, and those of stress 1.8 or 2.5 to 3.0. There the search leaves four fifths in
/// twice the time. With 2.2, stress and clang++ take 0.6 ns more per event and have 1 % fewer
/// bytes.
const MIXED_BITS: f32 = 1.7;
/// Bytes of a frame's header, and bits of its table for each value that occurs.
const FRAME_BYTES: f32 = 12.0;
const VALUE_BITS: f32 = 4.0;

impl Search {
    /// `Ok` if the decision needs no sample: whether the stream is searched. Otherwise `Err` with
    /// the sample to be searched.
    pub(super) fn sample(self, stream: &[u8]) -> Result<bool, Sample<'_>> {
        if self == Self::Always || stream.len() < SAMPLED_BYTES_MIN {
            return Ok(true);
        }
        let (_, from) = stream.split_at((stream.len() - SAMPLE_BYTES) / 2);
        let sample = Sample::new(&from[..SAMPLE_BYTES]);
        match self {
            Self::SampledIfMixed if sample.bits < MIXED_BITS * SAMPLE_BYTES as f32 => Ok(true),
            _ => Err(sample),
        }
    }
}

/// A part of a stream, and its size without a search.
#[derive(Debug)]
pub(super) struct Sample<'a> {
    pub(super) bytes: &'a [u8],
    /// Size in bits by the frequencies of its bytes, without the table of frequencies.
    bits: f32,
    value_count: u16,
}

impl<'a> Sample<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        // Four tables, so that the same byte twice in a row does not wait for the first increment.
        let mut counts = [[0_u16; 256]; 4];
        for four in bytes.chunks_exact(counts.len()) {
            for (counts, &byte) in counts.iter_mut().zip(four) {
                counts[usize::from(byte)] += 1;
            }
        }
        let (mut bits, mut value_count) = (bytes.len() as f32 * (bytes.len() as f32).log2(), 0);
        for value in 0..256 {
            let count: u16 = counts.iter().map(|counts| counts[value]).sum();
            if count > 0 {
                bits -= f32::from(count) * f32::from(count).log2();
                value_count += 1;
            }
        }
        Self { bytes, bits, value_count }
    }

    /// Whether a search that leaves `left_bytes` pays.
    pub(super) fn pays(&self, left_bytes: usize) -> bool {
        let without = FRAME_BYTES + (self.bits + f32::from(self.value_count) * VALUE_BITS) / 8.0;
        (left_bytes as f32) < without * PAYS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_left_by_its_frequencies() {
        // Eight equally frequent values: three bits each.
        let even: Vec<u8> = (0..SAMPLE_BYTES).map(|number| (number / 3 % 8) as u8).collect();
        let sample = Sample::new(&even);
        assert!((sample.bits / SAMPLE_BYTES as f32 - 3.0).abs() < 0.01, "{}", sample.bits);
        assert_eq!(sample.value_count, 8);
        // Unsearched size: 768 bytes, 12 for the header and 4 for the table.
        assert!(sample.pays(700) && !sample.pays(750));
        assert_eq!(Sample::new(&[7; SAMPLE_BYTES]).bits, 0.0);
    }

    #[test]
    fn who_is_searched() {
        let even: Vec<u8> = (0..60_000_u32).map(|number| (number / 3 % 8) as u8).collect();
        let uneven: Vec<u8> = even.iter().map(|value| value & 4).collect();
        assert!(Search::Always.sample(&even).unwrap());
        assert!(Search::SampledIfMixed.sample(&uneven).unwrap());
        assert!(Search::SampledIfMixed.sample(&even[..8191]).unwrap());
        for search in [Search::Sampled, Search::SampledIfMixed] {
            assert_eq!(search.sample(&even).unwrap_err().bytes, &even[28_976..31_024]);
        }
        assert!(Search::Sampled.sample(&uneven).is_err());
    }
}
