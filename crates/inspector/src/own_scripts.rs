//! Scripts that heapr makes a program evaluate and that do not stay. They are not the program's
//! own, even while V8 has not yet collected them.

/// Closes the inspector's port from a timer; see `Inspector::close`.
pub(crate) const CLOSE: &str =
    "setTimeout(() => { process._debugEnd(); setImmediate(() => process._debugEnd()); }, 50).unref(); 0";

/// Reads memory figures; nothing of it stays in the program.
pub(crate) const QUESTION: &str = "(() => {
    const { external, arrayBuffers } = process.memoryUsage(), v8 = require('v8');
    return JSON.stringify({ external, arrayBuffers, spaces: v8.getHeapSpaceStatistics() });
})()";

/// Whether a text is one of heapr's own scripts.
pub(crate) fn is_own(text: &str) -> bool {
    text == CLOSE || text == QUESTION
}
