//! Result codes, and the text of the last failure.

use std::cell::RefCell;
use std::ffi::{CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

use heapr_session::{Error, FailureKind};

/// Result of a call.
#[allow(non_camel_case_types, reason = "the name in C")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub enum heapr_result {
    /// Success.
    HEAPR_OK = 0,
    /// A session of that name exists.
    HEAPR_ALREADY_EXISTS = 1,
    /// The session has ended.
    HEAPR_NO_SUCH_SESSION = 2,
    /// A property, flag, name or pointer makes no sense.
    HEAPR_INVALID = 3,
    /// Not enough memory.
    HEAPR_OUT_OF_MEMORY = 4,
    /// No such process.
    HEAPR_NO_SUCH_PROCESS = 5,
    /// Not allowed; heapr_last_error names the setting.
    HEAPR_NO_PERMISSION = 6,
    /// A process cannot be traced; heapr_last_error says why.
    HEAPR_NOT_TRACEABLE = 7,
    /// The file could not be made or written.
    HEAPR_OUTPUT = 8,
    /// Whatever else; heapr_last_error says what.
    HEAPR_OTHER = 9,
}

/// A failure that is about to be returned to C.
#[derive(Debug)]
pub(crate) struct Failed {
    pub(crate) result: heapr_result,
    pub(crate) message: String,
}

impl Failed {
    pub(crate) fn invalid(message: &str) -> Self {
        Self { result: heapr_result::HEAPR_INVALID, message: message.to_owned() }
    }

    pub(crate) fn of_kind(kind: FailureKind, message: String) -> Self {
        let result = match kind {
            FailureKind::AlreadyExists => heapr_result::HEAPR_ALREADY_EXISTS,
            FailureKind::NoSuchSession => heapr_result::HEAPR_NO_SUCH_SESSION,
            FailureKind::Invalid => heapr_result::HEAPR_INVALID,
            FailureKind::OutOfMemory => heapr_result::HEAPR_OUT_OF_MEMORY,
            FailureKind::NoSuchProcess => heapr_result::HEAPR_NO_SUCH_PROCESS,
            FailureKind::NoPermission => heapr_result::HEAPR_NO_PERMISSION,
            FailureKind::NotTraceable => heapr_result::HEAPR_NOT_TRACEABLE,
            FailureKind::Output => heapr_result::HEAPR_OUTPUT,
            _ => heapr_result::HEAPR_OTHER,
        };
        Self { result, message }
    }
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Self::of_kind(error.kind(), error.to_string())
    }
}

thread_local! {
    static LAST_ERROR: RefCell<CString> = RefCell::new(CString::default());
}

/// Runs the body of a call, and stores the sentence of its failure for this thread.
pub(crate) fn call(body: impl FnOnce() -> Result<(), Failed>) -> heapr_result {
    let failed = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => return heapr_result::HEAPR_OK,
        Ok(Err(failed)) => failed,
        Err(_) => Failed { result: heapr_result::HEAPR_OTHER, message: "heapr has failed inside".to_owned() },
    };
    let text = failed.message.replace('\0', " ");
    LAST_ERROR.with_borrow_mut(|last| *last = CString::new(text).unwrap_or_default());
    failed.result
}

/// The calling thread's last failure in a sentence; empty before the first failure. Valid until
/// this thread's next call that fails.
#[unsafe(no_mangle)]
pub extern "C" fn heapr_last_error() -> *const c_char {
    LAST_ERROR.with_borrow(|last| last.as_ptr())
}
