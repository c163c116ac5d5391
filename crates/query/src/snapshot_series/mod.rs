//! Native snapshots of one trace or several, in order of time: new, gone and grown lines, and lines
//! that grow steadily.

mod change;
mod series;
mod suspect;
mod suspect_table;

pub use change::{Change, ChangeOrder, LineChange};
pub use series::{Line, LineOrder, LineStack, Series, SeriesFile, Taken, process_names};
pub use suspect::{Confidence, Suspect, SuspectOrder, is_at_end};
pub use suspect_table::SUSPECT_COLUMNS;
