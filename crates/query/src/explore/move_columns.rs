//! Sizes and sites in the order of the moves: 8 bytes a move, so that a pass over moves reads on and on instead of here and there.
//!
//! An end belongs to an allocation that lies anywhere in columns of hundreds of megabytes: without these columns a pass spends more
//! than half of its time on waiting for them.

use super::event_table::EventTable;
use super::spread::Spread;
use crate::error::{Error, Result};

/// Moves between two questions whether it was given up.
const CANCEL_INTERVAL: usize = 1 << 16;

/// See the module.
#[derive(Debug)]
pub(super) struct MoveColumns {
    /// As the table stores them.
    pub(super) sizes: Vec<u32>,
    pub(super) sites: Vec<u32>,
}

impl MoveColumns {
    /// Nothing if there is no memory for them.
    pub(super) fn new(
        table: &EventTable,
        spread: Spread,
        is_cancelled: &(dyn Fn() -> bool + Sync),
    ) -> Result<Option<Self>> {
        let in_order = |column: &[u32]| -> Result<Option<Vec<u32>>> {
            let parts = spread.map(0..table.moves.len(), |part| {
                let mut values: Vec<u32> = Vec::new();
                if values.try_reserve_exact(part.len()).is_err() {
                    return Ok(None);
                }
                for moves in table.moves[part].chunks(CANCEL_INTERVAL) {
                    if is_cancelled() {
                        return Err(Error::GivenUp);
                    }
                    values.extend(moves.iter().map(|one| column[one.allocation()]));
                }
                Ok(Some(values))
            })?;
            Ok(joined(parts))
        };
        let (sizes, sites) = (in_order(table.stored_sizes())?, in_order(&table.site_of)?);
        Ok(sizes.zip(sites).map(|(sizes, sites)| Self { sizes, sites }))
    }
}

/// The parts as one, without a copy of the first.
fn joined(parts: Vec<Option<Vec<u32>>>) -> Option<Vec<u32>> {
    let mut parts = parts.into_iter();
    let mut whole = parts.next()??;
    for part in parts {
        let part = part?;
        whole.try_reserve_exact(part.len()).ok()?;
        whole.extend(part);
    }
    Some(whole)
}
