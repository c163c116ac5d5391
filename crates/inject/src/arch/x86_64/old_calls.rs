//! System calls whose numbers the C libraries' headers do not have for all processors.

use libc::c_long;

/// Calls that newer processors' kernels lack; there a number that no call has.
pub(crate) const POLL: c_long = libc::SYS_poll;
pub(crate) const SELECT: c_long = libc::SYS_select;
pub(crate) const EPOLL_WAIT: c_long = libc::SYS_epoll_wait;

/// Number of `io_pgetevents`, which not all headers have.
pub(crate) const IO_PGETEVENTS: c_long = 333;
