//! Suspects as rows of a table, whoever prints or serves it (`docs/native-snapshots.md`).

use heapr_table::{Cell, Column, row};

use super::suspect::Suspect;

/// What is known of a suspect, before its frames.
pub const SUSPECT_COLUMNS: [Column; 9] = [
    Column::text("confidence", "Confidence"),
    Column::bytes("bytes_per_hour", "Per hour"),
    Column::bytes("growth_bytes", "Growth"),
    Column::bytes("block_bytes", "Now"),
    Column::count("block_count", "Blocks"),
    Column::ns("oldest_ns", "Oldest"),
    Column::share("rising_share", "Rising %"),
    Column::number("chance", "Chance"),
    Column::share("kept_share", "Kept %"),
];

impl Suspect<'_> {
    /// Its row in these columns, and its frames.
    #[must_use]
    pub fn row(&self) -> Vec<Cell> {
        let amounts = self.line.rows.iter().map(|row| (row.amount.block_bytes, row.amount.block_count));
        let (bytes, counts): (Vec<u64>, Vec<u64>) = amounts.unzip();
        row![
            self.confidence.name(),
            self.trend.per_hour,
            self.trend.growth,
            bytes,
            counts,
            self.last.oldest_age_ns,
            self.trend.rising_share,
            self.trend.chance,
            self.kept_share,
            self.line.frames.clone(),
        ]
    }
}
