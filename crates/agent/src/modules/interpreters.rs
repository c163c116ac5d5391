//! Exported symbols of interpreters, noted when their module is found. The frames of interpreted
//! programs are read by means of them.

use core::sync::atomic::{AtomicUsize, Ordering::*};

use crate::arch::leaving;
use crate::modules::dynamic_section::Dynamic;
use crate::modules::memory_map::{Access, Place, place_of};

/// Symbols of the first CPython of the process. (`runtime` is stored last.)
#[derive(Debug)]
pub(crate) struct PythonExports {
    /// `_PyRuntime`; 0: no CPython yet.
    pub(crate) runtime: AtomicUsize,
    pub(crate) runtime_bytes: AtomicUsize,
    /// `_PyEval_EvalFrameDefault`; ends at `eval_end`.
    pub(crate) eval: AtomicUsize,
    pub(crate) eval_end: AtomicUsize,
    /// `Py_Version`, of 3.11 and later; 0 before.
    pub(crate) version: AtomicUsize,
    /// `PyGILState_GetThisThreadState`.
    pub(crate) thread_state: AtomicUsize,
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
    thread_state: AtomicUsize::new(0),
    code_type: AtomicUsize::new(0),
    text_type: AtomicUsize::new(0),
    bytes_type: AtomicUsize::new(0),
};

/// Symbols of the first V8 of the process. (`major` is stored last.)
#[derive(Debug)]
pub(crate) struct V8Exports {
    /// Address of the major version number; 0: no V8 yet.
    pub(crate) major: AtomicUsize,
    pub(crate) minor: AtomicUsize,
    /// 1 once a thread has seen that it is loaded.
    pub(crate) is_seen: AtomicUsize,
    /// 1 if a program has Node's interface for addons, but exports no version of V8 (it may have
    /// another engine).
    pub(crate) is_hidden: AtomicUsize,
}

pub(crate) static V8: V8Exports = V8Exports {
    major: AtomicUsize::new(0),
    minor: AtomicUsize::new(0),
    is_seen: AtomicUsize::new(0),
    is_hidden: AtomicUsize::new(0),
};

/// Symbols of the first Ruby of the process. (`version` is stored last. For PHP and Perl, the first
/// field is stored last.)
#[derive(Debug)]
pub(crate) struct RubyExports {
    /// `rb_vm_exec`; ends at `eval_end`; 0: not exported.
    pub(crate) eval: AtomicUsize,
    pub(crate) eval_end: AtomicUsize,
    /// Offset of the thread-local variable `ruby_current_ec` in its module's block.
    pub(crate) context: AtomicUsize,
    /// `rb_errinfo`, which reads that variable before anything else.
    pub(crate) reader: AtomicUsize,
    /// Address of the version, a text; 0: no Ruby yet.
    pub(crate) version: AtomicUsize,
    pub(crate) is_seen: AtomicUsize,
}

pub(crate) static RUBY: RubyExports = RubyExports {
    eval: AtomicUsize::new(0),
    eval_end: AtomicUsize::new(0),
    context: AtomicUsize::new(0),
    reader: AtomicUsize::new(0),
    version: AtomicUsize::new(0),
    is_seen: AtomicUsize::new(0),
};

/// Symbols of the first PHP of the process.
#[derive(Debug)]
pub(crate) struct PhpExports {
    /// `executor_globals`; 0: no PHP yet.
    pub(crate) globals: AtomicUsize,
    pub(crate) globals_bytes: AtomicUsize,
    /// `execute_ex`; ends at `eval_end`.
    pub(crate) eval: AtomicUsize,
    pub(crate) eval_end: AtomicUsize,
    pub(crate) is_seen: AtomicUsize,
}

pub(crate) static PHP: PhpExports = PhpExports {
    globals: AtomicUsize::new(0),
    globals_bytes: AtomicUsize::new(0),
    eval: AtomicUsize::new(0),
    eval_end: AtomicUsize::new(0),
    is_seen: AtomicUsize::new(0),
};

/// Symbols of the first Perl of the process.
#[derive(Debug)]
pub(crate) struct PerlExports {
    /// `PL_thr_key`, the key of the threads' interpreters; 0: no Perl yet.
    pub(crate) key: AtomicUsize,
    pub(crate) revision: AtomicUsize,
    pub(crate) version: AtomicUsize,
    /// `Perl_runops_standard`; ends at `eval_end`.
    pub(crate) eval: AtomicUsize,
    pub(crate) eval_end: AtomicUsize,
    pub(crate) is_seen: AtomicUsize,
}

pub(crate) static PERL: PerlExports = PerlExports {
    key: AtomicUsize::new(0),
    revision: AtomicUsize::new(0),
    version: AtomicUsize::new(0),
    eval: AtomicUsize::new(0),
    eval_end: AtomicUsize::new(0),
    is_seen: AtomicUsize::new(0),
};

/// Symbols of the first Lua of the process. (`new_state` is stored last.)
#[derive(Debug)]
pub(crate) struct LuaExports {
    /// `lua_newstate`; 0: no Lua yet.
    pub(crate) new_state: AtomicUsize,
    /// `lua_ident`, a text with the version, and its number of bytes; 0: not exported.
    pub(crate) ident: AtomicUsize,
    pub(crate) ident_bytes: AtomicUsize,
    /// 1 if the module is LuaJIT 2.1.
    pub(crate) is_luajit: AtomicUsize,
    pub(crate) is_seen: AtomicUsize,
}

pub(crate) static LUA: LuaExports = LuaExports {
    new_state: AtomicUsize::new(0),
    ident: AtomicUsize::new(0),
    ident_bytes: AtomicUsize::new(0),
    is_luajit: AtomicUsize::new(0),
    is_seen: AtomicUsize::new(0),
};

/// Addresses of the tables in which the first HotSpot virtual machine describes its structures.
/// (`structs` is stored last.)
#[derive(Debug)]
pub(crate) struct JavaExports {
    /// Address of the pointer to the table of fields; 0: no HotSpot yet.
    pub(crate) structs: AtomicUsize,
    pub(crate) types: AtomicUsize,
    pub(crate) constants: AtomicUsize,
    /// 1 once a thread has seen that it is loaded.
    pub(crate) is_seen: AtomicUsize,
}

pub(crate) static JAVA: JavaExports = JavaExports {
    structs: AtomicUsize::new(0),
    types: AtomicUsize::new(0),
    constants: AtomicUsize::new(0),
    is_seen: AtomicUsize::new(0),
};

/// Notes the symbols of a HotSpot virtual machine, if the module is one.
fn note_java(dynamic: &Dynamic) {
    if JAVA.structs.load(Relaxed) == 0
        && let Some((structs, _)) = dynamic.find_object(b"gHotSpotVMStructs")
        && let Some((types, _)) = dynamic.find_object(b"gHotSpotVMTypes")
        && let Some((constants, _)) = dynamic.find_object(b"gHotSpotVMIntConstants")
    {
        JAVA.types.store(types, Relaxed);
        JAVA.constants.store(constants, Relaxed);
        JAVA.structs.store(structs, Release);
    }
}

/// Notes the symbols of an interpreter whose frames are walked, if the module is one.
fn note_walked(dynamic: &Dynamic) {
    if RUBY.version.load(Relaxed) == 0
        && let Some((version, _)) = dynamic.find_object(b"ruby_version")
        && let Some((reader, _)) = dynamic.find_object(b"rb_errinfo")
    {
        RUBY.reader.store(reader, Relaxed);
        if let Some((eval, bytes)) = dynamic.find_object(b"rb_vm_exec")
            && let Some((context, _)) = dynamic.find_object(b"ruby_current_ec")
        {
            RUBY.eval_end.store(eval.wrapping_add(bytes), Relaxed);
            // An offset in a thread-local block, to which the module's bias was added.
            RUBY.context.store(dynamic.offset_of(context), Relaxed);
            RUBY.eval.store(eval, Relaxed);
        }
        RUBY.version.store(version, Release);
    }
    if PHP.globals.load(Relaxed) == 0
        && let Some((eval, bytes)) = dynamic.find_object(b"execute_ex")
        && let Some((globals, globals_bytes)) = dynamic.find_object(b"executor_globals")
    {
        PHP.eval.store(eval, Relaxed);
        PHP.eval_end.store(eval.wrapping_add(bytes), Relaxed);
        PHP.globals_bytes.store(globals_bytes, Relaxed);
        PHP.globals.store(globals, Release);
    }
    if PERL.key.load(Relaxed) == 0
        && let Some((eval, bytes)) = dynamic.find_object(b"Perl_runops_standard")
        && let Some((key, _)) = dynamic.find_object(b"PL_thr_key")
    {
        let address = |name: &[u8]| dynamic.find_object(name).map_or(0, |(address, _)| address);
        PERL.eval.store(eval, Relaxed);
        PERL.eval_end.store(eval.wrapping_add(bytes), Relaxed);
        PERL.revision.store(address(b"PL_revision"), Relaxed);
        PERL.version.store(address(b"PL_version"), Relaxed);
        PERL.key.store(key, Release);
    }
    if LUA.new_state.load(Relaxed) == 0
        && let Some((new_state, _)) = dynamic.find_object(b"lua_newstate")
    {
        let (ident, bytes) = dynamic.find_object(b"lua_ident").unwrap_or_default();
        LUA.ident.store(ident, Relaxed);
        LUA.ident_bytes.store(bytes, Relaxed);
        let is_luajit = dynamic.find_object(b"luaJIT_profile_start").is_some();
        LUA.is_luajit.store(usize::from(is_luajit), Relaxed);
        LUA.new_state.store(new_state, Release);
    }
}

/// Notes the interpreters that a new module contains.
pub(crate) fn note(dynamic: &Dynamic) {
    note_python(dynamic);
    note_walked(dynamic);
    note_java(dynamic);
    if V8.major.load(Relaxed) == 0
        && let Some((major, _)) = dynamic.find_object(b"_ZN2v88internal7Version6major_E")
        && let Some((minor, _)) = dynamic.find_object(b"_ZN2v88internal7Version6minor_E")
    {
        V8.minor.store(minor, Relaxed);
        // Release: pairs with the Acquire of the readers of `major`.
        V8.major.store(major, Release);
    }
    if V8.major.load(Relaxed) == 0 && dynamic.find_object(b"napi_create_function").is_some() {
        V8.is_hidden.store(1, Release);
    }
}

fn note_python(dynamic: &Dynamic) {
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
    PYTHON.thread_state.store(address(b"PyGILState_GetThisThreadState"), Relaxed);
    PYTHON.code_type.store(address(b"PyCode_Type"), Relaxed);
    PYTHON.text_type.store(address(b"PyUnicode_Type"), Relaxed);
    PYTHON.bytes_type.store(address(b"PyBytes_Type"), Relaxed);
    // Release: pairs with the Acquire of the readers of `runtime`.
    PYTHON.runtime.store(runtime, Release);
}

/// Returns the distance in bytes from a frame's stack pointer to its caller's, if `return_address`
/// lies in a trampoline that CPython has made. Such a frame has no tables.
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
