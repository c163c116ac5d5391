//! Cost of a graph for the process, printed beforehand.

use std::time::Duration;

use heapr_proc::Fields;
use heapr_session::GraphPause;
use heapr_table::quantity::{bytes, duration};

/// Time to copy page tables, per GiB (measured: 26 ms of processor time), with the part that does
/// not depend on the size.
const COPY_PER_GIB: Duration = Duration::from_millis(28);
const COPY_AT_LEAST: Duration = Duration::from_millis(2);
/// Time to read all memory, per GiB.
const READ_PER_GIB: Duration = Duration::from_millis(1000);
const READ_AT_LEAST: Duration = Duration::from_millis(10);

/// Returns a sentence on the cost; `None` if the process's size is unknown.
pub(in crate::snapshot) fn told_before(pid: u32, pause: GraphPause) -> Option<String> {
    let own_bytes = Fields::of_process(pid).ok()?.bytes("RssAnon")?;
    let share = own_bytes as f64 / f64::from(1 << 30);
    let span = |at_least: Duration, per_gib: Duration| {
        duration((at_least + per_gib.mul_f64(share)).as_nanos() as u64)
    };
    let own = bytes(own_bytes);
    Some(match pause {
        GraphPause::Copy => format!(
            "process {pid} has {own} of its own: it will stand still for about {} on an idle machine; what it writes while the \
             copy is read takes memory a second time",
            span(COPY_AT_LEAST, COPY_PER_GIB)
        ),
        GraphPause::Stop => format!(
            "process {pid} has {own} of its own: it will stand still for about {}",
            span(READ_AT_LEAST, READ_PER_GIB)
        ),
        GraphPause::None => format!(
            "process {pid} has {own} of its own: it is read twice while it runs, for about {} each",
            span(READ_AT_LEAST, READ_PER_GIB)
        ),
    })
}
