//! A process at its end, from a core file by the kernel or a debugger: memory, mappings, threads
//! with their registers. 64-bit x86 and Arm only.
//!
//! ```text
//! ELF header | program headers: notes, one a mapping | notes: threads, auxiliary vector, mapped files | memory
//! ```
//! A core mostly leaves out unmodified mappings of files. Such memory is read from the file itself,
//! if the file is given ([`CoreFile::use_files`]). All content is untrusted.

mod source;

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use self::source::{Source, read_up_to};
use crate::Mapping;
use heapr_known::machine::{self, Machine, SMALLEST_PAGE_BYTES};

use crate::core_notes::{CoreThread, MappedFile, Notes, word_at};

/// Size in bytes of the part of a file that has its headers.
const HEAD_BYTES: usize = 4096;
const HEADER_BYTES: usize = 64;
const PROGRAM_HEADER_BYTES: usize = 56;
/// Largest number of segments and size of notes that are read; a process has fewer mappings, and
/// its notes are shorter.
const SEGMENTS_MAX: u64 = 1 << 20;
const NOTES_BYTES_MAX: u64 = 256 << 20;
/// Largest distance of brk memory from the program; the kernel chooses a random one below.
const BREAK_DISTANCE: u64 = 2 << 30;
const PT_LOAD: u32 = 1;
const PT_NOTE: u32 = 4;

/// Reason why a file cannot be read as a core.
#[derive(Debug, thiserror::Error)]
pub enum CoreError {
    /// The operating system returned an error.
    #[error("cannot be read: {0}")]
    Read(#[from] io::Error),
    /// The file ends before the memory that its headers describe. Causes: `ulimit -c`, a full disk,
    /// or a limit of the service that stores cores.
    #[error(
        "it is cut: it ends before byte {end_off}, up to which its headers say it holds memory. What is missing may hold \
         what would seem leaked; take a whole one (ulimit -c unlimited)"
    )]
    Cut {
        /// Offset at which the last piece of memory would end in the file.
        end_off: u64,
    },
    /// The file has another format.
    #[error("it is no core file of a 64-bit process of x86 or Arm: {0}")]
    NotCore(&'static str),
}

/// Memory of the process that neither its core file nor a program's file contains.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// First address.
    pub start_avma: u64,
    /// Exclusive end.
    pub end_avma: u64,
    /// Path of the mapped file; empty for anonymous memory.
    pub path: String,
    /// True if the file is available: its present content can be read as that memory.
    pub is_readable: bool,
}

/// Part of a mapping that the core contains.
#[derive(Debug, Clone, Copy)]
struct Segment {
    start_avma: u64,
    end_avma: u64,
    core_off: u64,
    core_bytes: u64,
}

/// Reads the program headers, after a check that the file is a core of this kind of machine.
fn program_headers(source: &Source) -> Result<(Vec<u8>, &'static Machine), CoreError> {
    let mut header = [0; HEADER_BYTES];
    let is_whole = source.read_at(0, &mut header) == HEADER_BYTES;
    if is_whole && header.starts_with(b"\x7fELF\x01") {
        return Err(CoreError::NotCore("it is of a 32-bit program"));
    }
    if !is_whole || header[..6] != *b"\x7fELF\x02\x01" {
        return Err(CoreError::NotCore("it does not begin as one"));
    }
    let half = |at: usize| u16::from_le_bytes([header[at], header[at + 1]]);
    const ET_CORE: u16 = 4;
    if half(16) != ET_CORE || usize::from(half(54)) != PROGRAM_HEADER_BYTES {
        return Err(CoreError::NotCore("it is an ELF file of another kind"));
    }
    let machine = machine::of_elf(half(18)).ok_or(CoreError::NotCore("it is of another processor"))?;
    let word = |at: usize| word_at(&header, at);
    let mut count = u64::from(half(56));
    if count == 0xffff {
        // The number does not fit; the first section's header holds it.
        let mut section = [0; 64];
        source.read_at(word(40), &mut section);
        count = u64::from(word_at(&section, 44) as u32);
    }
    Ok((source.read_whole(word(32), count.min(SEGMENTS_MAX) * PROGRAM_HEADER_BYTES as u64), machine))
}

fn is_of(kind: u32) -> impl Fn(&&[u8; PROGRAM_HEADER_BYTES]) -> bool {
    move |header| word_at(*header, 0) as u32 == kind
}

/// Returns the memory that a program header describes; `None` if it is empty or impossible.
fn memory(header: &[u8; PROGRAM_HEADER_BYTES], notes: &Notes) -> Option<(Segment, Mapping)> {
    let (flags, start_avma) = (word_at(header, 0) >> 32, word_at(header, 16));
    let end_avma = start_avma.checked_add(word_at(header, 40)).filter(|&end_avma| end_avma != start_avma)?;
    let core_bytes = word_at(header, 32).min(end_avma - start_avma);
    let segment = Segment { start_avma, end_avma, core_off: word_at(header, 8), core_bytes };
    let file = notes.file_at(start_avma);
    let mapping = Mapping {
        start_avma,
        end_avma,
        is_readable: flags & 4 != 0,
        is_writable: flags & 2 != 0,
        is_executable: flags & 1 != 0,
        is_shared: false,
        file_off: file.map_or(0, |file| file.file_off + (start_avma - file.start_avma)),
        inode: file.map_or(0, |file| u64::from(file.number) + 1),
        name: file.map_or_else(String::new, |file| file.path.clone()),
    };
    Some((segment, mapping))
}

/// Mapped files of the notes that no program header describes. Debuggers leave out unmodified
/// memory; [`CoreFile::use_files`] says whether it is executable. `found`: sorted.
fn left_out(found: &[(Segment, Mapping)], notes: &Notes) -> impl Iterator<Item = (Segment, Mapping)> {
    let is_left_out = |file: &&MappedFile| {
        let next = found.partition_point(|(segment, _)| segment.end_avma <= file.start_avma);
        let next = found.get(next).map_or(u64::MAX, |(segment, _)| segment.start_avma);
        file.start_avma < file.end_avma && file.end_avma <= next
    };
    notes.files().iter().filter(is_left_out).map(|file| {
        let (start_avma, end_avma) = (file.start_avma, file.end_avma);
        let mapping = Mapping {
            start_avma,
            end_avma,
            is_readable: true,
            is_writable: false,
            is_executable: false,
            is_shared: false,
            file_off: file.file_off,
            inode: u64::from(file.number) + 1,
            name: file.path.clone(),
        };
        (Segment { start_avma, end_avma, core_off: 0, core_bytes: 0 }, mapping)
    })
}

/// An opened core file. See the module's documentation.
#[derive(Debug)]
pub struct CoreFile {
    source: Source,
    segments: Vec<Segment>,
    mappings: Vec<Mapping>,
    notes: Notes,
    machine: &'static Machine,
    /// Opened files by path, as in the mappings.
    files: HashMap<String, File>,
    /// True if the memory in the file is page aligned.
    is_aligned: bool,
}

impl CoreFile {
    /// Opens a core file.
    ///
    /// # Errors
    /// See [`CoreError`].
    pub fn open(path: &Path) -> Result<Self, CoreError> {
        Self::read(Source::File(heapr_files::regular(path)?))
    }

    /// Processor of the process.
    #[must_use]
    pub fn machine(&self) -> &'static Machine {
        self.machine
    }

    /// Reads a core from bytes in memory.
    ///
    /// # Errors
    /// See [`CoreError`].
    pub fn of_bytes(bytes: Vec<u8>) -> Result<Self, CoreError> {
        Self::read(Source::Bytes(bytes))
    }

    fn read(source: Source) -> Result<Self, CoreError> {
        let (headers, machine) = program_headers(&source)?;
        let headers = headers.as_chunks::<PROGRAM_HEADER_BYTES>().0;
        let is_aligned =
            headers.iter().filter(is_of(PT_LOAD)).all(|header| word_at(header, 48) >= SMALLEST_PAGE_BYTES);
        let mut notes = Notes::default();
        for header in headers.iter().filter(is_of(PT_NOTE)) {
            let bytes = word_at(header, 32).min(NOTES_BYTES_MAX);
            notes.take(&source.read_whole(word_at(header, 8), bytes), machine);
        }
        let loaded = headers.iter().filter(is_of(PT_LOAD));
        let mut found: Vec<(Segment, Mapping)> = loaded.filter_map(|header| memory(header, &notes)).collect();
        let ends = found.iter().map(|(segment, _)| segment.core_off.saturating_add(segment.core_bytes));
        if let Some(end_off) = ends.max().filter(|&end_off| end_off > 0)
            && source.read_at(end_off - 1, &mut [0]) == 0
        {
            return Err(CoreError::Cut { end_off });
        }
        found.sort_by_key(|(segment, _)| segment.start_avma);
        // Overlapping segments are not memory of a process.
        found.dedup_by(|later, earlier| later.0.start_avma < earlier.0.end_avma);
        let listed: Vec<(Segment, Mapping)> = left_out(&found, &notes).collect();
        found.extend(listed);
        found.sort_by_key(|(segment, _)| segment.start_avma);
        found.dedup_by(|later, earlier| later.0.start_avma < earlier.0.end_avma);
        let (segments, mappings) = found.into_iter().unzip();
        let files = HashMap::new();
        let mut core = Self { source, segments, mappings, notes, machine, files, is_aligned };
        core.name_mappings();
        Ok(core)
    }

    /// Names the mappings that the kernel would name: the first thread's stack, the vdso, memory by
    /// brk.
    fn name_mappings(&mut self) {
        let stack_avma = self.notes.program_name_avma.or(self.threads().first().map(|it| it.stack_pointer));
        let is_bare = |mapping: &Mapping| mapping.inode == 0 && mapping.name.is_empty();
        let mut name = |address_avma: Option<u64>, name: &str| {
            let holds = |mapping: &&mut Mapping| address_avma.is_some_and(|avma| mapping.contains(avma));
            if let Some(mapping) = self.mappings.iter_mut().find(holds).filter(|mapping| is_bare(mapping)) {
                mapping.name = name.to_owned();
            }
        };
        name(stack_avma, "[stack]");
        name(self.notes.system_call_page_avma, "[vdso]");
        // Memory by brk lies behind the program and its data, before all other mappings.
        let executable = self.executable().to_owned();
        let last =
            self.mappings.iter().rposition(|mapping| !executable.is_empty() && mapping.name == executable);
        let Some(last) = last else { return };
        let mut end_avma = self.mappings[last].end_avma;
        for mapping in &mut self.mappings[last + 1..] {
            if !is_bare(mapping) {
                break;
            }
            if mapping.start_avma == end_avma {
                end_avma = mapping.end_avma;
            } else if mapping.is_writable && mapping.start_avma - end_avma < BREAK_DISTANCE {
                mapping.name = "[heap]".to_owned();
                break;
            }
        }
    }

    /// Uses files for memory that is not in the core. `local` maps a mapped file's path to its path
    /// on this machine.
    ///
    /// Returns the programs and libraries whose files are missing or differ from the mapped ones.
    pub fn use_files(&mut self, local: impl Fn(&str) -> PathBuf) -> Vec<String> {
        let executable = self.executable().to_owned();
        let mut others = Vec::new();
        let mut seen: HashMap<String, String> = HashMap::new();
        for place in 0..self.mappings.len() {
            let mapping = &self.mappings[place];
            if mapping.inode == 0 {
                continue;
            }
            if let Some(name) = seen.get(&mapping.name) {
                self.mappings[place].name.clone_from(name);
                continue;
            }
            let path = local(&mapping.name);
            let name = path.to_string_lossy().into_owned();
            let file = heapr_files::regular(&path).ok().filter(|file| self.is_same(place, file));
            let is_code = self.mappings.iter().any(|it| it.name == mapping.name && it.is_executable);
            match file {
                Some(file) => drop(self.files.insert(name.clone(), file)),
                None if is_code || mapping.name == executable => others.push(name.clone()),
                None => {}
            }
            seen.insert(mapping.name.clone(), name.clone());
            self.mappings[place].name = name;
        }
        for mapping in &mut self.mappings {
            let file = self.files.get(&mapping.name);
            mapping.is_executable |= file.is_some_and(|file| is_code(file, mapping.file_off));
        }
        others
    }

    /// True if a file begins like the mapped one, or if the core does not contain the beginning.
    fn is_same(&self, place: usize, file: &File) -> bool {
        let (segment, mapping) = (&self.segments[place], &self.mappings[place]);
        // Headers and, mostly, the build-id.
        let mut parts = [[0; 1024]; 2];
        let is_kept =
            mapping.file_off == 0 && !mapping.is_writable && segment.core_bytes >= self.notes.page_bytes();
        if !is_kept {
            return true;
        }
        let in_core = self.source.read_at(segment.core_off, &mut parts[0]);
        let in_file = read_up_to(file, 0, &mut parts[1]);
        in_core == in_file && parts[0] == parts[1]
    }

    /// Reads memory from `address_avma` on, and returns the number of bytes read.
    #[must_use]
    pub fn read_memory(&self, address_avma: u64, into: &mut [u8]) -> usize {
        let mut done = 0;
        while done < into.len() {
            let Some(at_avma) = address_avma.checked_add(done as u64) else { break };
            let place = self.segments.partition_point(|segment| segment.end_avma <= at_avma);
            let Some(segment) = self.segments.get(place).filter(|it| it.start_avma <= at_avma) else { break };
            let offset = at_avma - segment.start_avma;
            let rest = &mut into[done..];
            let in_core = segment.core_bytes.saturating_sub(offset);
            let count = if in_core > 0 {
                let most = rest.len().min(usize::try_from(in_core).unwrap_or(usize::MAX));
                self.source.read_at(segment.core_off.saturating_add(offset), &mut rest[..most])
            } else {
                let mapping = &self.mappings[place];
                let most = rest.len().min(usize::try_from(segment.end_avma - at_avma).unwrap_or(usize::MAX));
                let file = self.files.get(&mapping.name);
                file.map_or(0, |file| {
                    read_up_to(file, mapping.file_off.saturating_add(offset), &mut rest[..most])
                })
            };
            if count == 0 {
                break;
            }
            done += count;
        }
        done
    }

    /// Ranges between two addresses that the core contains, and that the process may thus have
    /// written.
    #[must_use]
    pub fn kept_parts(&self, start_avma: u64, end_avma: u64) -> Vec<(u64, u64)> {
        let parts = self.segments.iter().zip(&self.mappings).filter_map(|(segment, mapping)| {
            // The core contains the first page of an unmodified file mapping, for its build-id.
            let is_head =
                mapping.inode != 0 && !mapping.is_writable && segment.core_bytes <= self.notes.page_bytes();
            let range = (segment.start_avma, segment.start_avma + segment.core_bytes);
            let range = (range.0.max(start_avma), range.1.min(end_avma));
            (!is_head && range.0 < range.1).then_some(range)
        });
        parts.collect()
    }

    /// Mapped memory that the core's headers and file list name without content. The process
    /// excluded it (`MADV_DONTDUMP`), or `coredump_filter` does, as by default for shared file
    /// mappings.
    ///
    /// Programs and libraries do not count: their files hold all unmodified memory.
    #[must_use]
    pub fn left_out(&self) -> Vec<LeftOut> {
        let vdso_avma = self.notes.system_call_page_avma;
        let all = self.segments.iter().zip(&self.mappings);
        let parts = all.filter_map(|(segment, mapping)| {
            let start_avma = segment.start_avma.saturating_add(segment.core_bytes);
            let is_missing = start_avma < segment.end_avma && mapping.is_readable;
            // Data pages of the kernel, beside the vdso's code.
            let is_kernels = vdso_avma == Some(segment.end_avma) && !mapping.is_writable;
            let is_program = mapping.inode != 0 && self.is_program(&mapping.name);
            (is_missing && !is_kernels && !is_program).then(|| LeftOut {
                start_avma,
                end_avma: segment.end_avma,
                path: mapping.name.clone(),
                is_readable: self.files.contains_key(&mapping.name),
            })
        });
        parts.collect()
    }

    /// True if the headers name all mappings, as in the kernel's cores. Debuggers leave out memory
    /// silently; their cores are recognised by unaligned memory in the file.
    #[must_use]
    pub fn names_all_mappings(&self) -> bool {
        self.is_aligned
    }

    /// True if a mapped file is a program or a library.
    fn is_program(&self, path: &str) -> bool {
        let mut begin = [0; 4];
        let file = self.files.get(path);
        let is_elf = file.is_some_and(|file| read_up_to(file, 0, &mut begin) == 4 && begin == *b"\x7fELF");
        is_elf || self.mappings.iter().any(|mapping| mapping.name == path && mapping.is_executable)
    }

    /// All mappings, ordered by address.
    #[must_use]
    pub fn mappings(&self) -> &[Mapping] {
        &self.mappings
    }

    /// All threads; the first is the one that caused the end of the process.
    #[must_use]
    pub fn threads(&self) -> &[CoreThread] {
        &self.notes.threads
    }

    /// Path of the program, as the process saw it; empty if the core does not contain it.
    #[must_use]
    pub fn executable(&self) -> &str {
        let headers_avma = self.notes.program_headers_avma;
        headers_avma.and_then(|avma| self.notes.file_at(avma)).map_or("", |file| &file.path)
    }

    /// Name of the program's mapping; after [`Self::use_files`] it is the path on this machine.
    #[must_use]
    pub fn executable_here(&self) -> Option<&str> {
        let headers_avma = self.notes.program_headers_avma?;
        let mapping = self.mappings.iter().find(|mapping| mapping.contains(headers_avma))?;
        Some(&mapping.name)
    }

    /// Process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.notes.pid
    }

    /// Command line as one text, as far as the kernel stores it.
    #[must_use]
    pub fn command_line(&self) -> &str {
        &self.notes.command_line
    }

    /// The opened file from which memory is read, by its path on this machine.
    #[must_use]
    pub fn file(&self, path: &str) -> Option<&File> {
        self.files.get(path)
    }
}

/// True if the part of a program's file at an offset is loaded as code.
fn is_code(file: &File, file_off: u64) -> bool {
    let mut head = [0; HEAD_BYTES];
    let count = read_up_to(file, 0, &mut head);
    let head = &head[..count];
    let first = usize::try_from(word_at(head, 32)).unwrap_or(usize::MAX);
    let count = usize::from(word_at(head, 56) as u16);
    let mut headers = (0..count).map(|number| first.saturating_add(number * PROGRAM_HEADER_BYTES));
    headers.any(|at| {
        let load_off = word_at(head, at.saturating_add(8)) & !(SMALLEST_PAGE_BYTES - 1);
        word_at(head, at) == u64::from(PT_LOAD) | 5 << 32 && load_off == file_off
    })
}

#[cfg(test)]
mod tests;
