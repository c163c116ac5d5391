//! Allocator of heapr that handles want of memory: the program to be recorded then runs without
//! heapr, in this process's place.
//!
//! With a low memory limit (`ulimit -v`, `ulimit -d`), even the command line's own block may be
//! unavailable. The code thus reads the words of the command line as the kernel has laid them out,
//! and allocates nothing.

use std::alloc::{GlobalAlloc, Layout, System};
use std::ffi::{CStr, c_char};
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::command_words;
use crate::large_blocks;
use crate::program_start::restore_given;

/// The system's allocator. If memory runs out before a program has been started, `heapr run`
/// becomes that program.
#[derive(Debug)]
pub struct RunsAlone {
    /// Options of `run` whose value is the next word, with their dashes.
    pub with_values: &'static [&'static str],
}

/// Whether a program is being started or has been, so that it must not be started again.
static IS_STARTED: AtomicBool = AtomicBool::new(false);

/// Announces the start of a program: want of memory is an ordinary error afterwards.
pub fn program_starts() {
    IS_STARTED.store(true, Relaxed);
}

// SAFETY: a block comes from the system allocator, or is a mapping of its own if its layout makes
// it a large one. It is returned to where it came from, as the layout tells.
unsafe impl GlobalAlloc for RunsAlone {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if large_blocks::is_large(layout) {
            return self.or_run(large_blocks::make(layout.size()));
        }
        // SAFETY: the caller's layout.
        self.or_run(unsafe { System.alloc(layout) })
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if large_blocks::is_large(layout) {
            return self.or_run(large_blocks::make(layout.size()));
        }
        // SAFETY: as above.
        self.or_run(unsafe { System.alloc_zeroed(layout) })
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if large_blocks::is_large(layout) {
            // SAFETY: the block was made with this layout, as a large one.
            unsafe { large_blocks::give_back(block, layout.size()) };
            return;
        }
        // SAFETY: the block is the system allocator's, with this layout.
        unsafe { System.dealloc(block, layout) };
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: the caller's new size is valid with the alignment of the layout.
        let new_layout = unsafe { Layout::from_size_align_unchecked(bytes, layout.align()) };
        let is_large = (large_blocks::is_large(layout), large_blocks::is_large(new_layout));
        self.or_run(match is_large {
            // SAFETY: the block is the system allocator's, with this layout.
            (false, false) => unsafe { System.realloc(block, layout, bytes) },
            // SAFETY: the block was made with this layout, as a large one.
            (true, true) => unsafe { large_blocks::resize(block, layout.size(), bytes) },
            // SAFETY: as for the caller.
            _ => unsafe { self.moved(block, layout, new_layout) },
        })
    }
}

impl RunsAlone {
    /// Moves a block between the system allocator and the large blocks.
    ///
    /// # Safety
    /// As for [`GlobalAlloc::realloc`].
    #[cold]
    unsafe fn moved(&self, block: *mut u8, layout: Layout, new_layout: Layout) -> *mut u8 {
        // SAFETY: the new block has room for what both have, and no one knows it yet.
        unsafe {
            let new = self.alloc(new_layout);
            if !new.is_null() {
                std::ptr::copy_nonoverlapping(block, new, layout.size().min(new_layout.size()));
                self.dealloc(block, layout);
            }
            new
        }
    }
}

impl RunsAlone {
    #[inline]
    fn or_run(&self, block: *mut u8) -> *mut u8 {
        if block.is_null() {
            self.run_alone();
        }
        block
    }

    /// Makes the first thread's stack grow before the heap takes its room, under a limit of
    /// addresses or of data. A stack that cannot grow ends the process. The limit of the stack
    /// itself leaves at least [`STACK_BYTES`].
    pub fn reserve_stack(&self) {
        if !is_limited() {
            return;
        }
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a new mapping, whose address does not leave this function.
        let has_room = unsafe {
            let place = libc::mmap(std::ptr::null_mut(), STACK_BYTES, libc::PROT_NONE, flags, -1, 0);
            place != libc::MAP_FAILED && libc::munmap(place, STACK_BYTES) == 0
        };
        if has_room {
            touch_stack();
        } else {
            self.run_alone();
        }
    }

    #[cold]
    fn run_alone(&self) {
        let (words, count) = command_words::words();
        if words.is_null() || IS_STARTED.swap(true, Relaxed) {
            return;
        }
        // SAFETY: the kernel's list of words exists as long as the process.
        let words = unsafe { std::slice::from_raw_parts(words, count) };
        // SAFETY: each word ends with a zero.
        let text = |word: &*const c_char| unsafe { CStr::from_ptr(*word) }.to_bytes();
        let Some(place) = program_place(words.iter().map(text), self.with_values) else { return };
        let Some(name) = words.get(place).map(text) else { return };
        let is_judged = words[..place].iter().any(|word| text(word).starts_with(b"--fail-on"));
        if is_judged {
            tell(&[
                b"heapr: --fail-on cannot be judged: heapr has not enough memory (ulimit -v, ulimit -d)\n",
            ]);
            // SAFETY: the call does not return.
            unsafe { libc::_exit(2) };
        }
        tell(&[
            b"heapr: warning: ",
            name,
            b" runs untraced: heapr has not enough memory for itself (ulimit -v, ulimit -d)\n",
        ]);
        // SAFETY: this is just before an exec. The list of words ends with a null behind the last
        // one.
        unsafe {
            restore_given();
            libc::execvp(words[place], words.as_ptr().add(place));
        }
        let is_missing = std::io::Error::last_os_error().raw_os_error() == Some(libc::ENOENT);
        tell(&[b"heapr: cannot run ", name, b"\n"]);
        // SAFETY: the call does not return.
        unsafe { libc::_exit(if is_missing { 127 } else { 126 }) };
    }
}

/// More than the command line's parser has on the stack.
const STACK_BYTES: usize = 512 << 10;

/// Whether addresses or data of the process are limited; `true` if that cannot be asked.
fn is_limited() -> bool {
    let mut limits = [libc::rlimit { rlim_cur: 0, rlim_max: 0 }; 2];
    let [addresses, data] = &mut limits;
    // SAFETY: both structures are written.
    let is_known = unsafe {
        libc::getrlimit(libc::RLIMIT_AS, addresses) == 0 && libc::getrlimit(libc::RLIMIT_DATA, data) == 0
    };
    !is_known || limits.iter().any(|limit| limit.rlim_cur != libc::RLIM_INFINITY)
}

/// Makes the stack grow: each page of a large frame is touched as the function begins.
#[inline(never)]
fn touch_stack() {
    let mut room = MaybeUninit::<[u8; STACK_BYTES - (64 << 10)]>::uninit();
    std::hint::black_box(room.as_mut_ptr());
}

fn tell(parts: &[&[u8]]) {
    for part in parts {
        // SAFETY: pointer and length are those of the slice.
        let _ = unsafe { libc::write(libc::STDERR_FILENO, part.as_ptr().cast(), part.len()) };
    }
}

/// Index of the program's name in the words of `heapr run`; `None` for another command.
fn program_place<'a>(words: impl Iterator<Item = &'a [u8]>, with_values: &[&str]) -> Option<usize> {
    let has_value = |option: &[u8]| with_values.iter().any(|known| known.as_bytes() == option);
    let mut words = words.enumerate().skip(1);
    // The options common to all commands have no values.
    let (_, command) = words.find(|(_, word)| !word.starts_with(b"-"))?;
    if command != b"run" {
        return None;
    }
    while let Some((place, word)) = words.next() {
        match word {
            b"--" => return words.next().map(|(place, _)| place),
            [b'-', b'-', ..] => {
                if has_value(word) {
                    words.next()?;
                }
            }
            // Short options may be combined. The first one with a value takes the rest of the word,
            // or the next word.
            [b'-', letters @ ..] if !letters.is_empty() => {
                let takes = letters.iter().position(|&letter| has_value(&[b'-', letter]));
                if takes.is_some_and(|takes| takes + 1 == letters.len()) {
                    words.next()?;
                }
            }
            _ => return Some(place),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_stands_behind_the_options_and_their_values() {
        const WITH_VALUES: [&str; 2] = ["--output", "-o"];
        let place = |line: &str| {
            let words = line.split(' ').map(str::as_bytes);
            program_place(words, &WITH_VALUES).map(|place| line.split(' ').nth(place).unwrap().to_owned())
        };
        for line in [
            "heapr run P a",
            "heapr --wide run -q P -o",
            "heapr run -qo FILE P",
            "heapr run -oFILE P",
            "heapr run -o FILE -- P",
            "heapr run --output FILE --quiet P run",
            "heapr run --output=FILE -f P",
            "heapr run -- P",
        ] {
            assert_eq!(place(line).as_deref(), Some("P"), "{line}");
        }
        for line in ["heapr report P", "heapr", "heapr run", "heapr run --", "heapr run -o P"] {
            assert_eq!(place(line), None, "{line}");
        }
    }
}
