//! Suspects as rows of a table, printed or served (`docs/native-snapshots.md`).

use heapr_table::{Cell, Column, row};

use super::suspect::Suspect;

/// Columns of a suspect, before its frames.
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
    /// The suspect's row in these columns, followed by its frames.
    #[must_use]
    pub fn row(&self, frames: impl Into<Cell>) -> Vec<Cell> {
        let amounts = || self.line.rows.iter().map(|row| row.amount);
        let bytes: Vec<u64> = amounts().map(|amount| amount.bytes.value).collect();
        let counts: Vec<u64> = amounts().map(|amount| amount.count.value).collect();
        let now = self.last.amount;
        row![
            self.confidence.name(),
            Cell::from(self.trend.per_hour).within(self.per_hour_plus_minus),
            Cell::from(self.trend.growth).within(self.growth_plus_minus),
            Cell::from(bytes).within(now.bytes_plus_minus()),
            Cell::from(counts).within(now.count_plus_minus()),
            self.last.oldest_age_ns,
            self.trend.rising_share,
            self.trend.chance,
            self.kept_share,
            frames.into(),
        ]
    }
}
