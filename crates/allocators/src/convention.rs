//! Analysis of code: do the callers of a function follow the calling convention?
//!
//! Callers compiled together with a function may deviate. GCC lets a caller hold a value in any
//! register that the function and all its callees leave unchanged (`-fipa-ra`). If one of these
//! calls leads to unknown code, the compiler must assume that it changes all caller-saved
//! registers:
//!
//! ```text
//! malloc --call--> slow path --call--> make a thread's cache --call by a pointer, or by the loader--> unknown
//! ```
//! A function with such a path is thus called by the convention everywhere. For a function without
//! one the answer is unknown: some of its callees may be in another object.

use std::collections::{HashSet, VecDeque};
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use heapr_known::allocator_libraries::is_function;
use heapr_symbols::CodePlaces;
use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Register};

use crate::arch::aarch64;
use crate::branch::Branch;

/// Number of x86-64 in a file's header.
const EM_X86_64: u16 = 62;
/// Largest number of functions that are analysed for one.
const FUNCTIONS_MAX: usize = 256;
/// Largest part of a function that is analysed, in bytes from its beginning.
const FUNCTION_BYTES_MAX: u64 = 16 << 10;

/// Functions of other files that code calls.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Elsewhere {
    names: HashSet<String>,
    /// True if the code calls functions whose names are unknown.
    is_any_unknown: bool,
}

impl Elsewhere {
    fn add(&mut self, name: Option<&str>) {
        match name {
            Some(name) => drop(self.names.insert(name.to_owned())),
            None => self.is_any_unknown = true,
        }
    }

    /// True if an allocator's function in another file is called.
    pub(crate) fn is_allocator_called(&self) -> bool {
        const FAMILY: [&str; 10] = [
            "malloc",
            "calloc",
            "realloc",
            "reallocarray",
            "posix_memalign",
            "aligned_alloc",
            "memalign",
            "valloc",
            "pvalloc",
            "free",
        ];
        let is_such = |name: &String| {
            let plain = name.strip_prefix("__libc_").unwrap_or(name);
            FAMILY.contains(&plain) || is_function(name)
        };
        self.names.iter().any(is_such)
    }

    /// True if a function that maps memory is called.
    pub(crate) fn is_memory_mapped(&self) -> bool {
        const MAPS: [&str; 9] =
            ["mmap", "mmap64", "mremap", "sbrk", "brk", "__sbrk", "syscall", "shmat", "memfd_create"];
        self.names.iter().any(|name| MAPS.contains(&name.as_str()))
    }

    /// True if an exception may leave the code.
    pub(crate) fn may_throw(&self) -> bool {
        let throws =
            |name: &String| name.starts_with("_Z") || name.contains("throw") || name.contains("Unwind");
        self.is_any_unknown || self.names.iter().any(throws)
    }
}

/// Code of a file.
pub(crate) struct Code {
    file: File,
    places: CodePlaces,
    /// Start and end of all functions, in order; a function in several pieces has several entries.
    functions: Vec<(u64, u64)>,
}

impl Code {
    /// Opens the code of a file. `functions`: start and size in bytes of all named functions.
    /// `None` also for a file of a processor whose branches are not known.
    pub(crate) fn open(file: &Path, functions: Vec<(u64, u64)>) -> Option<Self> {
        let is_known = |places: &CodePlaces| [EM_X86_64, aarch64::MACHINE].contains(&places.machine());
        let places = CodePlaces::read(file).filter(is_known)?;
        let mut functions: Vec<(u64, u64)> =
            functions.into_iter().map(|(svma, bytes)| (svma, svma.saturating_add(bytes))).collect();
        // In a stripped file most functions have no names.
        functions.extend(places.unwound());
        functions.sort_unstable();
        // The longer of two functions with one start is used.
        functions.dedup_by(|later, kept| {
            let is_same = later.0 == kept.0;
            if is_same {
                kept.1 = later.1;
            }
            is_same
        });
        Some(Self { file: File::open(file).ok()?, places, functions })
    }

    /// Function that contains an address.
    fn function_of(&self, svma: u64) -> Option<(u64, u64)> {
        let behind = self.functions.partition_point(|&(start, _)| start <= svma);
        self.functions[..behind].last().copied().filter(|&(_, end)| svma < end)
    }

    /// First bytes of a function.
    fn bytes(&self, (start, end): (u64, u64)) -> Vec<u8> {
        let bytes = (end - start).min(FUNCTION_BYTES_MAX);
        let Some(offset) = self.places.file_offset(start) else { return Vec::new() };
        let mut code = vec![0; bytes as usize];
        let count = self.file.read_at(&mut code, offset).unwrap_or(0);
        code.truncate(count);
        code
    }

    fn instructions(&self, function: (u64, u64)) -> Vec<Instruction> {
        let code = self.bytes(function);
        let decoder = Decoder::with_ip(64, &code, function.0, DecoderOptions::NONE);
        decoder.into_iter().take_while(|found| !found.is_invalid()).collect()
    }

    /// Branches and calls of a function, in its order.
    fn branches(&self, function: (u64, u64)) -> Vec<Branch> {
        if self.places.machine() == aarch64::MACHINE {
            return aarch64::branches(function.0, &self.bytes(function));
        }
        self.instructions(function).iter().filter_map(branch_of).collect()
    }

    /// Calls into other files by the function at `svma` and all its callees in its own file. Names
    /// come from the loader's relocations.
    pub(crate) fn calls_elsewhere(&self, svma: u64) -> Elsewhere {
        let mut elsewhere = Elsewhere::default();
        let mut todo: VecDeque<(u64, u64)> = self.function_of(svma).into_iter().collect();
        let mut known: HashSet<(u64, u64)> = todo.iter().copied().collect();
        while let Some(function) = todo.pop_front() {
            for branch in self.branches(function) {
                let target = match branch {
                    Branch::To(target) => target,
                    Branch::ByWord(word) => {
                        elsewhere.add(self.import_at(word));
                        continue;
                    }
                };
                if (function.0..function.1).contains(&target) {
                    continue;
                }
                if self.places.is_loaders_stub(target) {
                    elsewhere.add(self.import_of_stub(target));
                    continue;
                }
                match self.function_of(target) {
                    Some(next) if known.contains(&next) => {}
                    Some(next) if known.len() < FUNCTIONS_MAX => {
                        known.insert(next);
                        todo.push_back(next);
                    }
                    _ => elsewhere.add(None),
                }
            }
        }
        elsewhere
    }

    fn import_at(&self, word: Option<u64>) -> Option<&str> {
        self.places.import_at(word?)
    }

    fn import_of_stub(&self, svma: u64) -> Option<&str> {
        /// Longest stub. What lies behind a shorter one is not reached.
        const STUB_BYTES: u64 = 24;
        let by_word = |branch: Branch| if let Branch::ByWord(word) = branch { Some(word) } else { None };
        self.import_at(self.branches((svma, svma + STUB_BYTES)).into_iter().find_map(by_word)?)
    }

    /// True if the callers of the function at `svma` are known to follow the convention. Unknown,
    /// and false, for another processor than x86-64.
    pub(crate) fn is_convention_kept(&self, svma: u64) -> bool {
        if self.places.machine() != EM_X86_64 {
            return false;
        }
        let mut todo: VecDeque<(u64, u64)> = self.function_of(svma).into_iter().collect();
        let mut known: HashSet<(u64, u64)> = todo.iter().copied().collect();
        while let Some(function) = todo.pop_front() {
            let instructions = self.instructions(function);
            let is_stub = |svma: u64| self.places.is_loaders_stub(svma);
            if calls_unknown_code(&instructions, function, &is_stub) {
                return true;
            }
            for target in instructions.iter().map(Instruction::near_branch_target) {
                let next = self.function_of(target).filter(|_| target != 0 && !is_stub(target));
                if let Some(next) = next
                    && known.len() < FUNCTIONS_MAX
                    && known.insert(next)
                {
                    todo.push_back(next);
                }
            }
        }
        false
    }
}

/// Returns the branch that an instruction makes, if it makes one.
fn branch_of(found: &Instruction) -> Option<Branch> {
    match found.flow_control() {
        FlowControl::IndirectCall | FlowControl::IndirectBranch => {
            let is_by_loader = found.is_ip_rel_memory_operand() && found.segment_prefix() == Register::None;
            Some(Branch::ByWord(is_by_loader.then(|| found.memory_displacement64())))
        }
        _ => Some(found.near_branch_target()).filter(|&target| target != 0).map(Branch::To),
    }
}

/// True if the code calls through a pointer or a loader's stub, and the call returns.
fn calls_unknown_code(
    instructions: &[Instruction],
    (start, end): (u64, u64),
    is_stub: &dyn Fn(u64) -> bool,
) -> bool {
    let targets: HashSet<u64> = instructions
        .iter()
        .filter(|found| found.flow_control() != FlowControl::Call)
        .map(Instruction::near_branch_target)
        .collect();
    // Calls that end the program do not return.
    let goes_on = |found: &Instruction| found.next_ip() < end && !targets.contains(&found.next_ip());
    instructions.iter().any(|found| match found.flow_control() {
        // Assembly uses calls through a segment register for the C library's own functions.
        FlowControl::IndirectCall => found.segment_prefix() == Register::None && goes_on(found),
        FlowControl::Call => is_stub(found.near_branch_target()) && goes_on(found),
        // A jump table would be read through a register.
        FlowControl::IndirectBranch => found.is_ip_rel_memory_operand(),
        FlowControl::UnconditionalBranch => {
            let target = found.near_branch_target();
            !(start..end).contains(&target) && is_stub(target)
        }
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::process::Command;

    use heapr_symbols::{SymbolOptions, visit_functions};

    use super::*;

    const SOURCE: &str = "
        #include <stdlib.h>
        #define ALONE __attribute__((noinline, noclone, used)) static
        static char pool[1 << 16];
        static unsigned long used;
        static void *(*volatile more)(unsigned long);
        void *from_elsewhere(unsigned long);
        ALONE void *leaf(unsigned long bytes) { used += bytes; return pool + used; }
        ALONE void *calls_a_leaf(unsigned long bytes) { void *block = leaf(bytes); used++; return block; }
        ALONE void *by_a_pointer(unsigned long bytes) { void *block = more(bytes); used++; return block; }
        ALONE void *deep(unsigned long bytes) { void *block = by_a_pointer(bytes); used++; return block; }
        ALONE void *deeper(unsigned long bytes) { void *block = deep(bytes); used++; return block; }
        ALONE void *by_the_loader(unsigned long bytes) { void *block = malloc(bytes); used++; return block; }
        ALONE void *jumps_to_the_loader(unsigned long bytes) { return malloc(bytes + 1); }
        ALONE void *ends(unsigned long bytes) { if (bytes == 77) abort(); return pool + bytes; }
        void *volatile sink;
        int main(void) {
            more = leaf;
            sink = leaf(1); sink = calls_a_leaf(1); sink = by_a_pointer(1); sink = deeper(1);
            sink = by_the_loader(1); sink = jumps_to_the_loader(1); sink = ends(1);
            return 0;
        }";

    #[test]
    fn callers_keep_to_the_convention_where_a_way_leads_to_code_that_nobody_knew() {
        let folder = std::env::temp_dir().join(format!("heapr-convention-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let (source, program) = (folder.join("calls.c"), folder.join("calls"));
        std::fs::write(&source, SOURCE).unwrap();
        for options in [&["-O2"][..], &["-O2", "-fno-plt"], &["-O1", "-fcf-protection"]] {
            let mut gcc = Command::new("gcc");
            gcc.args(options).arg("-o").arg(&program).arg(&source);
            if !gcc.status().is_ok_and(|status| status.success()) {
                // The machine has no compiler.
                return;
            }
            let mut functions = HashMap::new();
            visit_functions(&program, &program, &SymbolOptions::default(), &mut |function| {
                functions.insert(function.name.to_owned(), (function.svma, function.size_bytes));
            })
            .unwrap();
            let code = Code::open(&program, functions.values().copied().collect()).unwrap();
            let names = [
                ("leaf", false),
                ("calls_a_leaf", false),
                ("by_a_pointer", true),
                ("deeper", true),
                ("by_the_loader", true),
                ("jumps_to_the_loader", true),
                ("ends", false),
            ];
            // The names of these functions alone are known, as in a stripped file.
            let few = names.iter().map(|(name, _)| functions[*name]).filter(|found| found.0 != 0);
            let stripped = Code::open(&program, few.collect()).unwrap();
            for (name, expected) in names {
                assert_eq!(code.is_convention_kept(functions[name].0), expected, "{name} {options:?}");
                assert_eq!(stripped.is_convention_kept(functions[name].0), expected, "{name} {options:?}");
            }
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
