//! What interpreters of languages export, noted when their module turns up: where the frames of
//! their programs are looked for.

use core::sync::atomic::{AtomicUsize, Ordering::*};

use crate::modules::link_map::Dynamic;
use crate::modules::memory_map::{Access, Place, place_of};
use crate::x86_64::leaving;

/// The first CPython of the process. (`runtime` is stored last.)
#[derive(Debug)]
pub(crate) struct PythonExports {
    /// `_PyRuntime`; 0: there is no CPython yet.
    pub(crate) runtime: AtomicUsize,
    pub(crate) runtime_bytes: AtomicUsize,
    /// `_PyEval_EvalFrameDefault`, to its end.
    pub(crate) eval: AtomicUsize,
    pub(crate) eval_end: AtomicUsize,
    /// `Py_Version`, of 3.11 and later; else 0.
    pub(crate) version: AtomicUsize,
    pub(crate) code_type: AtomicUsize,
    pub(crate) text_type: AtomicUsize,
    pub(crate) bytes_type: AtomicUsize,
}

pub(crate) static PYTHON: PythonExports = PythonExports {
    runtime: AtomicUsize::new(0),
    runtime_bytes: AtomicUsize::new(0),
    eval: AtomicUsize::new(0),
    eval_end: AtomicUsize::new(0),
    version: AtomicUsize::new(0),
    code_type: AtomicUsize::new(0),
    text_type: AtomicUsize::new(0),
    bytes_type: AtomicUsize::new(0),
};

/// Looks at a module that has turned up.
pub(crate) fn note(dynamic: &Dynamic) {
    if PYTHON.runtime.load(Relaxed) != 0 {
        return;
    }
    let Some((runtime, runtime_bytes)) = dynamic.find_object(b"_PyRuntime") else { return };
    let Some((eval, eval_bytes)) = dynamic.find_object(b"_PyEval_EvalFrameDefault") else { return };
    let address = |name: &[u8]| dynamic.find_object(name).map_or(0, |(address, _)| address);
    PYTHON.runtime_bytes.store(runtime_bytes, Relaxed);
    PYTHON.eval.store(eval, Relaxed);
    PYTHON.eval_end.store(eval.wrapping_add(eval_bytes), Relaxed);
    PYTHON.version.store(address(b"Py_Version"), Relaxed);
    PYTHON.code_type.store(address(b"PyCode_Type"), Relaxed);
    PYTHON.text_type.store(address(b"PyUnicode_Type"), Relaxed);
    PYTHON.bytes_type.store(address(b"PyBytes_Type"), Relaxed);
    // Release: pairs with the Acquire of who asks whether there is one.
    PYTHON.runtime.store(runtime, Release);
}

/// How far above the stack pointer of a frame without tables that of its caller lies, where the
/// frame is one of the trampolines that a CPython has made, which returns to `return_address`.
pub(crate) fn trampoline_frame_bytes(return_address: usize) -> Option<usize> {
    if PYTHON.runtime.load(Relaxed) == 0 {
        return None;
    }
    match place_of(return_address, Access::Read) {
        Place::Mapped { high, .. } if high.wrapping_sub(return_address) >= leaving::CODE_BYTES => {
            // SAFETY: mapped and readable, as the kernel has said.
            let code = unsafe { (return_address as *const [u8; leaving::CODE_BYTES]).read() };
            leaving::frame_bytes(code)
        }
        _ => None,
    }
}
