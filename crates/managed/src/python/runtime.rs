//! Anchors of a CPython: `_PyRuntime`, the version, and the interpreters.

use heapr_proc::Mapping;

use super::debug_offsets;
use super::objects::{is_pointer, type_of};
use crate::error::{Error, Result};
use crate::pages::Pages;
use crate::symbols::{Module, module_starts};
use heapr_known::cpython::{self, Layout};

/// Largest number of interpreters.
const INTERPRETERS_MAX: usize = 1024;
/// Anchors of a CPython.
#[derive(Debug, Clone)]
pub(super) struct Runtime {
    pub(super) layout: Layout,
    /// Whole version as it is written: `3.11.2`; without the last number before 3.11.
    pub(super) version_text: String,
    /// `_PyRuntime`.
    pub(super) avma: u64,
    /// `PyType_Type`.
    pub(super) type_type: u64,
    /// Secret with which the interpreter makes its hashes; `None` without one.
    pub(super) hash_key: Option<u64>,
    /// Interpreters, the main one first.
    pub(super) interpreters: Vec<u64>,
    /// Path of the module that has all of this.
    pub(super) module: String,
}

impl Runtime {
    /// Finds the runtime of a process.
    pub(super) fn find(pages: &Pages<'_>, mappings: &[Mapping]) -> Result<Self> {
        let (module, symbols, runtime) = module_starts(mappings)
            .find_map(|(start_avma, name)| {
                let module = Module::at(pages, start_avma)?;
                let runtime = module.find(pages, "_PyRuntime")?;
                is_pointer(runtime.address_avma).then_some(())?;
                Some((name.to_owned(), module, runtime))
            })
            .ok_or_else(|| if has_pypy(mappings) { Error::PyPy } else { Error::NoRuntime })?;
        let (avma, bytes) = (runtime.address_avma, runtime.size_bytes);
        let stated = symbols.find(pages, "Py_Version").and_then(|symbol| pages.half(symbol.address_avma));
        let layout = match stated {
            Some(version) => {
                let version = version >> 16;
                *cpython::of_version(version).ok_or(Error::UnknownVersion { version })?
            }
            None => {
                *cpython::of_runtime_bytes(bytes).ok_or(Error::UnknownRuntime { runtime_bytes: bytes })?
            }
        };
        let version = layout.version;
        let version_text = match stated {
            Some(stated) => format!("3.{}.{}", version & 0xff, stated >> 8 & 0xff),
            None => format!("3.{}", version & 0xff),
        };
        let other = |what| Error::OtherLayout { version, what };
        let dict_type = symbols.find(pages, "PyDict_Type").ok_or(other("PyDict_Type"))?.address_avma;
        let layout = match version {
            0x030d.. => debug_offsets::stated(pages, avma, &layout, dict_type)?,
            _ => layout,
        };
        let type_type = symbols.find(pages, "PyType_Type").ok_or(other("PyType_Type"))?.address_avma;
        if type_of(pages, type_type) != Some(type_type) {
            return Err(other("PyType_Type"));
        }
        let hash_key =
            symbols.find(pages, "_Py_HashSecret").and_then(|secret| pages.word(secret.address_avma));
        // With `PYTHONHASHSEED=0` it is 0.
        let hash_key = hash_key.filter(|&key| key != 0);
        let interpreters = Vec::new();
        let mut runtime = Self { layout, version_text, avma, type_type, hash_key, interpreters, module };
        runtime.find_interpreters(pages);
        let layout = &runtime.layout;
        let first = *runtime.interpreters.first().ok_or(other("the interpreter"))?;
        for (offset, what) in [(layout.modules, "sys.modules"), (layout.sys_dict, "the dict of sys")] {
            let dict = pages.word(first + offset).filter(|&dict| is_pointer(dict)).ok_or(other(what))?;
            if type_of(pages, dict) != Some(dict_type) {
                return Err(other(what));
            }
        }
        Ok(runtime)
    }

    fn find_interpreters(&mut self, pages: &Pages<'_>) {
        let mut at_avma = pages.word_or_zero(self.avma + self.layout.first_interpreter);
        while is_pointer(at_avma)
            && self.interpreters.len() < INTERPRETERS_MAX
            && !self.interpreters.contains(&at_avma)
        {
            self.interpreters.push(at_avma);
            at_avma = pages.word_or_zero(at_avma + self.layout.next_interpreter);
        }
        // The newest is the first of the list.
        self.interpreters.reverse();
    }
}

/// Whether a program or library of PyPy is mapped.
fn has_pypy(mappings: &[Mapping]) -> bool {
    mappings.iter().filter(|mapping| mapping.is_executable).any(|mapping| {
        let name = mapping.name.rsplit('/').next().unwrap_or_default();
        name.starts_with("pypy") || name.starts_with("libpypy")
    })
}
