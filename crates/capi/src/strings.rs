//! Texts, paths and arrays from C.

use std::ffi::{CStr, OsString, c_char};
use std::os::unix::ffi::OsStringExt;

use crate::result::Failed;

/// Largest number of entries read of an array of texts; it ends the reading of an array without its
/// null pointer.
const TEXTS_MAX: usize = 1 << 20;

/// Reads a required text.
///
/// # Safety
/// `text` is null or points to bytes that end in a zero byte and do not change during the call.
pub(crate) unsafe fn text(text: *const c_char, what: &str) -> Result<String, Failed> {
    // SAFETY: this function's own condition.
    let bytes = unsafe { bytes(text, what) }?;
    String::from_utf8(bytes).map_err(|_| Failed::invalid(&format!("the {what} is not UTF-8")))
}

/// Reads a required path or argument of any bytes.
///
/// # Safety
/// The condition of [`text`] holds.
pub(crate) unsafe fn os_text(text: *const c_char, what: &str) -> Result<OsString, Failed> {
    // SAFETY: this function's own condition.
    unsafe { bytes(text, what) }.map(OsString::from_vec)
}

unsafe fn bytes(text: *const c_char, what: &str) -> Result<Vec<u8>, Failed> {
    if text.is_null() {
        return Err(Failed::invalid(&format!("the {what} is a null pointer")));
    }
    // SAFETY: not null (checked above), and the caller guarantees that it ends in a zero byte.
    Ok(unsafe { CStr::from_ptr(text) }.to_bytes().to_vec())
}

/// Reads process ids.
///
/// # Safety
/// `pids` is null, or points to `count` numbers that do not change during the call.
pub(crate) unsafe fn pids(pids: *const u32, count: usize) -> Result<Vec<u32>, Failed> {
    if count == 0 {
        return Ok(Vec::new());
    }
    if pids.is_null() || !pids.is_aligned() || count > TEXTS_MAX {
        return Err(Failed::invalid("the process ids are a null or misaligned pointer, or too many"));
    }
    // SAFETY: not null and aligned (checked above), and the caller guarantees that there are
    // `count`.
    Ok(unsafe { std::slice::from_raw_parts(pids, count) }.to_vec())
}

/// Reads an array of texts that ends in a null pointer, such as `argv`.
///
/// # Safety
/// `array` is null, or points to pointers for which the condition of [`text`] holds, the last of
/// them null.
pub(crate) unsafe fn arguments(array: *const *const c_char) -> Result<Vec<OsString>, Failed> {
    if array.is_null() || !array.is_aligned() {
        return Err(Failed::invalid("the arguments are a null pointer"));
    }
    let mut texts = Vec::new();
    for number in 0..TEXTS_MAX {
        // SAFETY: the entries before were not null, so this one is within the array, as the caller
        // guarantees.
        let entry = unsafe { *array.add(number) };
        if entry.is_null() {
            return Ok(texts);
        }
        // SAFETY: the caller guarantees it for each entry.
        texts.push(unsafe { os_text(entry, "argument") }?);
    }
    Err(Failed::invalid("the arguments have no end"))
}
