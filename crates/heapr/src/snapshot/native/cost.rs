//! What taking a graph will cost a process, told before it is done.

use std::time::Duration;

use heapr_proc::Fields;
use heapr_table::quantity::{bytes, duration};

/// Copying page tables (measured: 26 ms of processor time a gigabyte), and what does not depend on
/// the size.
const COPY_PER_GIB: Duration = Duration::from_millis(28);
const COPY_AT_LEAST: Duration = Duration::from_millis(2);
/// Reading all of it.
const READ_PER_GIB: Duration = Duration::from_millis(1000);
const READ_AT_LEAST: Duration = Duration::from_millis(10);

/// One sentence; `None` if nothing is known of the process.
pub(super) fn told_before(pid: u32, is_copied: bool) -> Option<String> {
    let own_bytes = Fields::of_process(pid).ok()?.bytes("RssAnon")?;
    let share = own_bytes as f64 / f64::from(1 << 30);
    let (at_least, per_gib) =
        if is_copied { (COPY_AT_LEAST, COPY_PER_GIB) } else { (READ_AT_LEAST, READ_PER_GIB) };
    let span = duration((at_least + per_gib.mul_f64(share)).as_nanos() as u64);
    let own = bytes(own_bytes);
    Some(if is_copied {
        format!(
            "process {pid} has {own} of its own: it will stand still for about {span} on an idle machine; what it writes while the \
             copy is read takes memory a second time"
        )
    } else {
        format!("process {pid} has {own} of its own: it will stand still for about {span}")
    })
}
