//! A suspect in JSON, whoever prints or serves it (`docs/native-snapshots.md`).

use serde::Serialize;

use super::suspect::Suspect;

/// See the module.
#[derive(Debug, Clone, Serialize)]
pub struct SuspectJson<'a> {
    confidence: &'static str,
    bytes_per_hour: f64,
    growth_bytes: i64,
    rising_share: f64,
    chance: f64,
    kept_share: Option<f64>,
    oldest_ns: u64,
    /// By snapshot.
    block_bytes: Vec<u64>,
    /// By snapshot.
    block_count: Vec<u64>,
    frames: &'a [String],
}

impl<'a> From<&Suspect<'a>> for SuspectJson<'a> {
    fn from(suspect: &Suspect<'a>) -> Self {
        let amounts = suspect.line.rows.iter().map(|row| (row.amount.block_bytes, row.amount.block_count));
        let (block_bytes, block_count) = amounts.unzip();
        Self {
            confidence: suspect.confidence.name(),
            bytes_per_hour: suspect.trend.per_hour,
            growth_bytes: i64::try_from(suspect.trend.growth).unwrap_or(i64::MAX),
            rising_share: suspect.trend.rising_share,
            chance: suspect.trend.chance,
            kept_share: suspect.kept_share,
            oldest_ns: suspect.last.oldest_age_ns,
            block_bytes,
            block_count,
            frames: &suspect.line.frames,
        }
    }
}
