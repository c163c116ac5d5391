//! System calls whose numbers the C libraries' headers do not have for all processors.

use libc::c_long;

/// Calls that this processor's kernel lacks: a number that no call has.
const MISSING: c_long = -2;
pub(crate) const POLL: c_long = MISSING;
pub(crate) const SELECT: c_long = MISSING;
pub(crate) const EPOLL_WAIT: c_long = MISSING;

/// Number of `io_pgetevents`, which not all headers have.
pub(crate) const IO_PGETEVENTS: c_long = 292;
