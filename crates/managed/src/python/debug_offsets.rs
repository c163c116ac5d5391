//! Offsets that a CPython from 3.13 on states itself: `_PyRuntime` begins with them.
//!
//! ```text
//! cookie, version, without lock | runtime: size, …, interpreters | interpreter: size, number, next, threads, …
//! ```
//! They change inside of a series. So what is stated is taken, and the table of the version says
//! the rest. Both are checked by what lies there.

use super::objects::{is_pointer, type_of};
use crate::error::{Error, Result};
use crate::pages::Pages;
use heapr_known::cpython::{Generations, Layout};

const COOKIE: &[u8; 8] = b"xdebugpy";
// Indices of words.
const VERSION: u64 = 1;
const FREE_THREADED: u64 = 2;
const FIRST_INTERPRETER: u64 = 5;
const NEXT_INTERPRETER: u64 = 8;
const FIRST_THREAD: u64 = 9;
/// Words among which are the offsets of `sys.modules` and, behind it, of the dict of `sys`.
const DICTS: std::ops::Range<u64> = 10..16;
/// Limit of offsets.
const OFFSET_MAX: u64 = 1 << 20;

/// Returns the layout of a runtime: the version's, with what the runtime states. `dict_type`:
/// address of the type of dicts.
pub(super) fn stated(pages: &Pages<'_>, runtime_avma: u64, known: &Layout, dict_type: u64) -> Result<Layout> {
    let version = known.version;
    let other = |what| Error::OtherLayout { version, what };
    let mut cookie = [0; 8];
    if !pages.read(runtime_avma, &mut cookie) || cookie != *COOKIE {
        return Err(other("_Py_DebugOffsets"));
    }
    let word = |index: u64| pages.word_or_zero(runtime_avma + index * 8);
    if word(FREE_THREADED) != 0 {
        return Err(Error::FreeThreaded);
    }
    if word(VERSION) >> 16 != u64::from(version) {
        return Err(other("the version"));
    }
    let offset = |index: u64, what| {
        Some(word(index)).filter(|it| it.is_multiple_of(8) && *it < OFFSET_MAX).ok_or(other(what))
    };
    let first_interpreter = offset(FIRST_INTERPRETER, "the list of interpreters")?;
    let interpreter_avma = pages.word_or_zero(runtime_avma + first_interpreter);
    if !is_pointer(interpreter_avma) {
        return Err(other("the interpreter"));
    }
    let is_dict = |offset: &u64| {
        let dict = pages.word_or_zero(interpreter_avma + offset);
        offset.is_multiple_of(8)
            && *offset < OFFSET_MAX
            && is_pointer(dict)
            && type_of(pages, dict) == Some(dict_type)
    };
    let mut dicts = DICTS.map(word).filter(is_dict);
    let modules = dicts.next().ok_or(other("sys.modules"))?;
    let sys_dict = dicts.next().ok_or(other("the dict of sys"))?;
    // The generations are near to the modules and move with them.
    let generations = match known.generations {
        Generations::Interpreter(at) => {
            Generations::Interpreter(at.wrapping_add(modules.wrapping_sub(known.modules)) % OFFSET_MAX)
        }
        of_runtime @ Generations::Runtime(_) => of_runtime,
    };
    Ok(Layout {
        first_interpreter,
        next_interpreter: offset(NEXT_INTERPRETER, "the next interpreter")?,
        first_thread: offset(FIRST_THREAD, "the list of threads")?,
        modules,
        sys_dict,
        generations,
        ..*known
    })
}

#[cfg(test)]
mod tests {
    use heapr_native::Memory;

    use super::*;
    use heapr_known::cpython;

    const RUNTIME_AVMA: u64 = 0x10000;
    const INTERPRETER_AVMA: u64 = 0x20000;
    const DICT_AVMA: u64 = 0x30000;
    const DICT_TYPE: u64 = 0x40000;

    /// Words of a runtime; an interpreter whose words at 7,648 and 7,664 are dicts.
    struct Stating([u64; 16]);

    impl Memory for Stating {
        fn read(&self, address_avma: u64, into: &mut [u8]) -> usize {
            let words = |of: &dyn Fn(u64) -> u64, into: &mut [u8]| {
                for (number, word) in into.chunks_exact_mut(8).enumerate() {
                    word.copy_from_slice(&of(address_avma % 0x10000 + number as u64 * 8).to_le_bytes());
                }
                into.len()
            };
            match address_avma & !0xffff {
                RUNTIME_AVMA => words(&|at| self.0.get(at as usize / 8).copied().unwrap_or(0), into),
                INTERPRETER_AVMA => words(&|at| if at == 7648 || at == 7664 { DICT_AVMA } else { 1 }, into),
                DICT_AVMA => words(&|_| DICT_TYPE, into),
                _ => 0,
            }
        }
    }

    fn words(of: &[(usize, u64)]) -> Stating {
        let mut words = [0; 16];
        words[0] = u64::from_le_bytes(*COOKIE);
        words[1] = 0x030d_1200;
        for &(index, word) in &[(5, 112), (8, 7256), (9, 7336), (10, 7400), (11, 7664), (12, 7648)] {
            words[index] = word;
        }
        words[14] = INTERPRETER_AVMA;
        for &(index, word) in of {
            words[index] = word;
        }
        Stating(words)
    }

    fn read(of: &[(usize, u64)]) -> Result<Layout> {
        let memory = words(of);
        let known = cpython::of_version(0x030d).unwrap();
        stated(&Pages::of(&memory), RUNTIME_AVMA, known, DICT_TYPE)
    }

    #[test]
    fn what_is_stated_is_taken_before_the_table() {
        let layout = read(&[]).unwrap();
        assert_eq!(
            (layout.first_interpreter, layout.next_interpreter, layout.first_thread),
            (112, 7256, 7336)
        );
        assert_eq!((layout.modules, layout.sys_dict), (7664, 7648));
        assert_eq!(layout.generations, Generations::Interpreter(7424 + 8));
    }

    #[test]
    fn what_cannot_be_true_is_refused() {
        let refused = |of: &[(usize, u64)], what: &str| {
            let error = read(of).unwrap_err().to_string();
            assert!(error.contains(what), "{error}");
        };
        refused(&[(0, 7)], "_Py_DebugOffsets");
        refused(&[(1, 0x030e_0000)], "the version");
        refused(&[(2, 1)], "free-threaded");
        refused(&[(11, 0), (12, 0)], "sys.modules");
        refused(&[(12, 16)], "the dict of sys");
        refused(&[(9, u64::MAX)], "the list of threads");
    }
}
