//! Notes of a core file: threads, the auxiliary vector, mapped files.

use heapr_known::machine::{Machine, SMALLEST_PAGE_BYTES};

const PRSTATUS: u32 = 1;
const FPREGSET: u32 = 2;
const PRPSINFO: u32 = 3;
const AUXV: u32 = 6;
const FILE: u32 = 0x4649_4c45;
/// Offsets in `struct elf_prstatus`.
const STATUS_PID: usize = 32;
const STATUS_REGISTERS: usize = 112;
/// Offsets in `struct elf_prpsinfo`.
const INFO_PID: usize = 24;
const INFO_COMMAND_LINE: usize = 56;
const THREADS_MAX: usize = 1 << 20;
const FILES_MAX: u64 = 1 << 20;

/// A thread at the moment of the core.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CoreThread {
    /// Thread id.
    pub tid: u32,
    /// Stack pointer.
    pub stack_pointer: u64,
    /// Address of the thread's descriptor.
    pub thread_pointer: u64,
    /// All registers as words, vector registers too.
    pub registers: Vec<u64>,
}

/// A range of memory at which a file was mapped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MappedFile {
    pub(crate) start_avma: u64,
    pub(crate) end_avma: u64,
    pub(crate) file_off: u64,
    pub(crate) path: String,
    /// Number of the file, equal for all its ranges.
    pub(crate) number: u32,
}

/// Parsed notes of a core file.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    pub(crate) threads: Vec<CoreThread>,
    pub(crate) pid: u32,
    pub(crate) command_line: String,
    /// Address of the program's headers (AT_PHDR).
    pub(crate) program_headers_avma: Option<u64>,
    /// Address of the program's name on the first stack (AT_EXECFN).
    pub(crate) program_name_avma: Option<u64>,
    /// Address of the vdso, the kernel's own code (AT_SYSINFO_EHDR).
    pub(crate) system_call_page_avma: Option<u64>,
    /// Mapped files, ordered by address.
    files: Vec<MappedFile>,
    /// Unit of the files' offsets in bytes; the kernel's page, 1 in a debugger's core.
    unit_bytes: u64,
}

impl Notes {
    /// Adds the notes of one segment.
    pub(crate) fn take(&mut self, bytes: &[u8], machine: &Machine) {
        let mut rest = bytes;
        while rest.len() >= 12 {
            let number = |at: usize| word_at(rest, at) as u32;
            let (name_bytes, body_bytes, kind) = (number(0) as usize, number(4) as usize, number(8));
            let from = 12 + name_bytes.next_multiple_of(4);
            let Some(body) = rest.get(from..).and_then(|behind| behind.get(..body_bytes)) else { break };
            self.note(kind, body, machine);
            rest = rest.get(from + body_bytes.next_multiple_of(4)..).unwrap_or_default();
        }
    }

    fn note(&mut self, kind: u32, body: &[u8], machine: &Machine) {
        match kind {
            PRSTATUS if self.threads.len() < THREADS_MAX => {
                let places = &machine.registers;
                let register = |&index: &usize| word_at(body, STATUS_REGISTERS + index * 8);
                let mut registers: Vec<u64> = places.kernel_indices.iter().map(register).collect();
                if places.thread_pointer_note.is_some() {
                    registers[places.thread_pointer] = 0;
                }
                self.threads.push(CoreThread {
                    tid: word_at(body, STATUS_PID) as u32,
                    stack_pointer: registers[places.stack_pointer],
                    thread_pointer: registers[places.thread_pointer],
                    registers,
                });
            }
            // These notes belong to the preceding thread.
            kind if Some(kind) == machine.registers.thread_pointer_note => {
                if let Some(thread) = self.threads.last_mut() {
                    thread.thread_pointer = word_at(body, 0);
                    thread.registers[machine.registers.thread_pointer] = thread.thread_pointer;
                }
            }
            kind if kind == FPREGSET || kind == machine.registers.vectors_note => {
                let words = body.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word));
                if let Some(thread) = self.threads.last_mut() {
                    thread.registers.extend(words);
                }
            }
            PRPSINFO => {
                self.pid = word_at(body, INFO_PID) as u32;
                let line = body.get(INFO_COMMAND_LINE..).unwrap_or_default();
                let line = line.split(|&byte| byte == 0).next().unwrap_or_default();
                self.command_line = String::from_utf8_lossy(line).trim_end().to_owned();
            }
            AUXV => {
                for pair in body.as_chunks::<16>().0 {
                    let value = Some(word_at(pair, 8)).filter(|&value| value != 0);
                    match word_at(pair, 0) {
                        3 => self.program_headers_avma = value,
                        31 => self.program_name_avma = value,
                        33 => self.system_call_page_avma = value,
                        _ => {}
                    }
                }
            }
            FILE => self.take_files(body),
            _ => {}
        }
    }

    /// Adds the mapped files. Layout: count, page size; start, end and offset in pages of each; the
    /// paths.
    fn take_files(&mut self, body: &[u8]) {
        let (count, unit_bytes) = (word_at(body, 0).min(FILES_MAX), word_at(body, 8));
        self.unit_bytes = unit_bytes;
        let Some(paths) = body.get(16 + count as usize * 24..) else { return };
        let paths: Vec<&[u8]> = paths.split(|&byte| byte == 0).take(count as usize).collect();
        let mut numbers = std::collections::HashMap::new();
        for (place, path) in paths.into_iter().enumerate() {
            let at = 16 + place * 24;
            let path = String::from_utf8_lossy(path).into_owned();
            let next = numbers.len() as u32;
            let number = *numbers.entry(path.clone()).or_insert(next);
            self.files.push(MappedFile {
                start_avma: word_at(body, at),
                end_avma: word_at(body, at + 8),
                file_off: word_at(body, at + 16).wrapping_mul(unit_bytes),
                path,
                number,
            });
        }
        self.files.sort_by_key(|file| file.start_avma);
    }

    /// Size in bytes of a page of the process's machine, as far as the core says it.
    pub(crate) fn page_bytes(&self) -> u64 {
        let is_page = self.unit_bytes.is_power_of_two() && self.unit_bytes >= SMALLEST_PAGE_BYTES;
        if is_page { self.unit_bytes } else { SMALLEST_PAGE_BYTES }
    }

    /// Ranges at which files were mapped, ordered by address.
    pub(crate) fn files(&self) -> &[MappedFile] {
        &self.files
    }

    /// File mapped at an address.
    pub(crate) fn file_at(&self, address_avma: u64) -> Option<&MappedFile> {
        let behind = self.files.partition_point(|file| file.start_avma <= address_avma);
        let file = self.files.get(behind.checked_sub(1)?)?;
        (address_avma < file.end_avma).then_some(file)
    }
}

/// Reads a word of untrusted bytes; 0 behind their end.
pub(crate) fn word_at(bytes: &[u8], at: usize) -> u64 {
    let word = bytes.get(at..).and_then(<[u8]>::first_chunk::<8>);
    word.map_or(0, |word| u64::from_le_bytes(*word))
}
