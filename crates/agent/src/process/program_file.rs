//! The file of a program that is about to be run: whether it has a loader, and whether it is for
//! this processor.
//!
//! The loader of another processor's program (32 bits, or an emulator's) cannot load the agent, and
//! says so on the program's standard error.

use core::ffi::{CStr, c_char, c_int};

use heapr_ring::sys;

use crate::arch::loading::ELF_MACHINE;
use crate::process::environment::own_environment;

/// Name of a program, as exec's variants take it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Program {
    Path(*const c_char),
    /// Searched in the directories of PATH if it has no slash.
    Searched(*const c_char),
    /// Path below a directory, or a descriptor of the file itself with an empty path.
    At(c_int, *const c_char),
}

const PATH_BYTES_MAX: usize = 4096;
/// Largest number of scripts that are followed: a script's interpreter may be a script.
const SCRIPTS_MAX: u32 = 4;

/// Kind of a program's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A program that a loader loads, as far as can be determined.
    Loaded,
    /// A program for another processor.
    Other,
    /// A program without a loader.
    Static,
}

/// Returns the kind of a file, or of a script's interpreter; [`Kind::Loaded`] if it cannot be read.
pub(crate) fn kind(program: Program) -> Kind {
    let Some(mut file) = open(program) else { return Kind::Loaded };
    let mut head = [0_u8; 1024];
    for _ in 0..SCRIPTS_MAX {
        let Ok(count) = sys::read(&file, &mut head) else { return Kind::Loaded };
        let Some(read) = head.get(..count) else { return Kind::Loaded };
        let Some(line) = read.strip_prefix(b"#!") else {
            return match kind_of_elf(read) {
                Kind::Loaded if needs_no_library(&file, read) => Kind::Static,
                kind => kind,
            };
        };
        let line = line.split(|&byte| byte == b'\n').next().unwrap_or_default();
        let mut words = line.split(|byte| byte.is_ascii_whitespace()).filter(|word| !word.is_empty());
        let Some(next) = words.next().and_then(|interpreter| open_joined(&[], interpreter)) else {
            return Kind::Loaded;
        };
        file = next;
    }
    Kind::Loaded
}

fn kind_of_elf(head: &[u8]) -> Kind {
    const CLASS_64: u8 = 2;
    /// Sizes of a file's header, and of each program header after it.
    const HEADER_BYTES: usize = 64;
    const ENTRY_BYTES: usize = 56;
    const PT_INTERP: [u8; 4] = [3, 0, 0, 0];
    if !head.starts_with(b"\x7fELF") {
        return Kind::Loaded;
    }
    if head.get(4) != Some(&CLASS_64)
        || head.get(18..20).is_some_and(|machine| machine != ELF_MACHINE.to_le_bytes())
    {
        return Kind::Other;
    }
    let count = usize::from(head.get(56).copied().unwrap_or(0));
    let is_usual = head.get(32..40) == Some(&[HEADER_BYTES as u8, 0, 0, 0, 0, 0, 0, 0]) && count > 0;
    let entries = head.get(HEADER_BYTES..).unwrap_or_default();
    let Some(entries) = entries.get(..count.wrapping_mul(ENTRY_BYTES)).filter(|_| is_usual) else {
        return Kind::Loaded;
    };
    let has_loader = entries.chunks_exact(ENTRY_BYTES).any(|entry| entry.starts_with(&PT_INTERP));
    if has_loader { Kind::Loaded } else { Kind::Static }
}

/// True if a loader would load only the program: not even the C library, which the agent calls.
/// (Go's position-independent programs are like this.)
fn needs_no_library(file: &sys::Descriptor, head: &[u8]) -> bool {
    const HEADER_BYTES: usize = 64;
    const ENTRY_BYTES: usize = 56;
    const PT_DYNAMIC: [u8; 4] = [2, 0, 0, 0];
    const NEEDED: [u8; 8] = 1_u64.to_le_bytes();
    let count = usize::from(head.get(56).copied().unwrap_or(0));
    let entries = head.get(HEADER_BYTES..).unwrap_or_default();
    let mut entries = entries.chunks_exact(ENTRY_BYTES).take(count);
    let Some(entry) = entries.find(|entry| entry.starts_with(&PT_DYNAMIC)) else { return false };
    let word = |at: usize| {
        let bytes = entry.get(at..)?.first_chunk::<8>()?;
        usize::try_from(u64::from_le_bytes(*bytes)).ok()
    };
    let (Some(offset), Some(bytes)) = (word(8), word(32)) else { return false };
    let mut dynamic = [0_u8; 1024];
    // A section with more entries has one that names a library.
    let Some(dynamic) = dynamic.get_mut(..bytes) else { return false };
    let is_read = sys::read_at(file, dynamic, offset).is_ok_and(|count| count == bytes);
    is_read && bytes > 0 && !dynamic.chunks_exact(16).any(|entry| entry.starts_with(&NEEDED))
}

/// Returns the last part of a program's name.
pub(crate) fn name_of<'a>(program: Program) -> &'a [u8] {
    let (Program::Path(name) | Program::Searched(name) | Program::At(_, name)) = program;
    if name.is_null() {
        return &[];
    }
    // SAFETY: a zero-terminated string, which the caller passes to exec and so outlives the call.
    let name = unsafe { CStr::from_ptr(name) }.to_bytes();
    name.rsplit(|&byte| byte == b'/').next().unwrap_or_default()
}

fn open(program: Program) -> Option<sys::Descriptor> {
    const HERE: c_int = -100;
    let (Program::Path(name) | Program::Searched(name) | Program::At(_, name)) = program;
    if name.is_null() {
        return None;
    }
    // SAFETY: a zero-terminated string, which the caller passes to exec.
    let name = unsafe { CStr::from_ptr(name) }.to_bytes();
    match program {
        Program::Searched(_) if !name.contains(&b'/') => search(name),
        Program::At(directory, _) if directory != HERE && !name.starts_with(b"/") => {
            let mut digits = [0_u8; 10];
            let mut rest = directory.cast_unsigned();
            let mut first = digits.len();
            loop {
                first = first.checked_sub(1)?;
                *digits.get_mut(first)? = b'0'.wrapping_add((rest % 10) as u8);
                rest /= 10;
                if rest == 0 {
                    break;
                }
            }
            let parts: [&[u8]; 2] = [b"/proc/self/fd/", digits.get(first..)?];
            open_joined(&parts, name)
        }
        _ => open_joined(&[], name),
    }
}

/// Searches PATH as the C library does.
fn search(name: &[u8]) -> Option<sys::Descriptor> {
    let mut environment = own_environment();
    let mut directories: &[u8] = b"/bin:/usr/bin";
    loop {
        // SAFETY: the program's environment: an array that ends with a null pointer.
        let entry = unsafe { *environment };
        if entry.is_null() {
            break;
        }
        // SAFETY: as above, of strings.
        if let Some(value) = unsafe { CStr::from_ptr(entry) }.to_bytes().strip_prefix(b"PATH=") {
            directories = value;
            break;
        }
        environment = environment.wrapping_add(1);
    }
    directories.split(|&byte| byte == b':').find_map(|directory| open_joined(&[directory], name))
}

/// Opens `DIRECTORY/NAME`; if one of the two is empty, it is left out.
fn open_joined(directory: &[&[u8]], name: &[u8]) -> Option<sys::Descriptor> {
    let mut path = [0_u8; PATH_BYTES_MAX];
    let mut used = 0_usize;
    let mut put = |text: &[u8]| -> Option<()> {
        let end = used.checked_add(text.len())?;
        // (The last byte stays zero.)
        let place = path.get_mut(used..end).filter(|_| end < PATH_BYTES_MAX)?;
        place.copy_from_slice(text);
        used = end;
        Some(())
    };
    for part in directory {
        put(part)?;
    }
    if !name.is_empty() {
        if directory.iter().any(|part| !part.is_empty()) {
            put(b"/")?;
        }
        put(name)?;
    }
    sys::open(&path, false).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_program_for_another_processor_is_one() {
        let head = |class: u8, machine: u8, first_entry: u8| {
            let mut head = [0; 160];
            head[..4].copy_from_slice(b"\x7fELF");
            (head[4], head[18]) = (class, machine);
            (head[32], head[56], head[64]) = (64, 1, first_entry);
            kind_of_elf(&head)
        };
        assert_eq!((head(2, 62, 3), head(2, 62, 1)), (Kind::Loaded, Kind::Static));
        // i386, x32, aarch64.
        assert_eq!([head(1, 3, 3), head(1, 62, 3), head(2, 183, 1)], [Kind::Other; 3]);
        assert_eq!((kind_of_elf(b"MZ"), kind_of_elf(b"")), (Kind::Loaded, Kind::Loaded));
    }

    #[test]
    fn a_program_is_found_as_exec_finds_it() {
        for program in [
            Program::Path(c"/bin/sh".as_ptr()),
            Program::Searched(c"sh".as_ptr()),
            Program::At(-100, c"/bin/sh".as_ptr()),
        ] {
            assert!(open(program).is_some() && kind(program) == Kind::Loaded, "{program:?}");
        }
        assert!(open(Program::Searched(c"no-such-program".as_ptr())).is_none());
        assert!(open(Program::At(987_654, c"".as_ptr())).is_none());
    }
}
