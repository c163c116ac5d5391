//! Scripts that heapr has a program evaluate and that it does not keep: none of them is the
//! program's own, however long V8 has them before it collects them.

/// Closes the inspector's port, from a timer: see `Inspector::close`.
pub(crate) const CLOSE: &str =
    "setTimeout(() => { process._debugEnd(); setImmediate(() => process._debugEnd()); }, 50).unref(); 0";

/// Nothing is kept of it in the program.
pub(crate) const QUESTION: &str = "(() => {
    const { external, arrayBuffers } = process.memoryUsage(), v8 = require('v8');
    return JSON.stringify({ external, arrayBuffers, spaces: v8.getHeapSpaceStatistics() });
})()";

/// Whether a text is one of these.
pub(crate) fn is_own(text: &str) -> bool {
    text == CLOSE || text == QUESTION
}
