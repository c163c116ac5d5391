//! heaptrack's files, versions 0 to 3: one line for each text, piece of code, stack, size,
//! allocation and free. Numbers are hexadecimal; tables count from 1, sizes from 0.

use std::collections::HashMap;

use heapr_trace::{Action, StackIndex};

use crate::builder::TraceBuilder;
use crate::error::{Error, Result};
use crate::input::Input;
use crate::locations::Frame;

/// Name of the tool.
pub(crate) const TOOL: &str = "heaptrack";
/// Newest version that is read.
const VERSION_MAX: u64 = 3;
/// First version in which texts have their length.
const SIZED_TEXTS: u64 = 3;
/// Number that heaptrack 1.0 writes for version 1.
const EARLY_VERSION: u64 = 0x1_0200;
/// Distance in bytes of the invented block addresses, as with an allocator; the file has no
/// addresses.
const BLOCK_STEP: u64 = 16;

/// True if the first line looks like `v 10400 3`.
pub(crate) fn tells(start: &[u8]) -> bool {
    let line = start.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let is_number = |word: &[u8]| !word.is_empty() && word.iter().all(u8::is_ascii_hexdigit);
    line.len() < 40
        && start.len() > line.len()
        && line.strip_prefix(b"v ").is_some_and(|rest| rest.split(|&byte| byte == b' ').all(is_number))
}

/// A size at a stack, which allocations refer to.
struct Kind {
    size_bytes: u64,
    stack: StackIndex,
    live: Vec<u64>,
    free: Vec<u64>,
}

#[derive(Default)]
struct State {
    version: u64,
    texts: Vec<String>,
    /// Addresses of calls, by number.
    calls: Vec<u64>,
    stacks: Vec<StackIndex>,
    kinds: Vec<Kind>,
    /// Live blocks, in version 0 only.
    blocks: HashMap<u64, ()>,
    page_bytes: u64,
    time_ns: u64,
    /// Whether the preceding event was a free.
    is_behind_free: bool,
    next_avma: u64,
}

/// Reads a file into the builder.
pub(crate) fn read(input: &mut Input<'_>, builder: &mut TraceBuilder) -> Result<()> {
    let mut state = State { next_avma: 1 << 16, page_bytes: 4096, ..State::default() };
    let mut line = Vec::new();
    while let Some(offset) = input.line(&mut line)? {
        if line.first() == Some(&b's') && state.version >= SIZED_TEXTS {
            whole_text(input, &mut line)?;
        }
        if !state.take(&line, offset, input, builder)? {
            builder.invalid(offset);
        }
    }
    builder.duration_ns = state.time_ns;
    Ok(())
}

/// Reads the rest of a text that contains line ends.
fn whole_text(input: &mut Input<'_>, line: &mut Vec<u8>) -> Result<()> {
    let Some((length, from)) = sized(line) else { return Ok(()) };
    let mut more = Vec::new();
    while ((line.len() - from) as u64) < length && input.line(&mut more)?.is_some() {
        line.push(b'\n');
        line.extend_from_slice(&more);
        input.keep(more.len())?;
    }
    Ok(())
}

/// Parses `s 9 /tmp/file`: the length, and the offset of the text.
fn sized(line: &[u8]) -> Option<(u64, usize)> {
    let rest = line.get(2..)?;
    let end = rest.iter().position(|&byte| byte == b' ').unwrap_or(rest.len());
    Some((number(&rest[..end])?, (2 + end + 1).min(line.len())))
}

fn number(word: &[u8]) -> Option<u64> {
    u64::from_str_radix(std::str::from_utf8(word).ok()?, 16).ok()
}

impl State {
    /// Reads a line; `false` if it is invalid.
    fn take(
        &mut self,
        line: &[u8],
        offset: u64,
        input: &mut Input<'_>,
        builder: &mut TraceBuilder,
    ) -> Result<bool> {
        let [mode, rest @ ..] = line else { return Ok(true) };
        let rest = rest.strip_prefix(b" ").unwrap_or(rest);
        let mut words = rest.split(|&byte| byte == b' ').filter(|word| !word.is_empty());
        let mut next = || number(words.next()?);
        match mode {
            b'v' => self.set_version(next().unwrap_or_default(), next(), builder)?,
            b'X' => {
                let command = String::from_utf8_lossy(rest);
                builder.command_line = command.split_whitespace().map(str::to_owned).collect();
            }
            b'I' => {
                self.page_bytes = next().unwrap_or(4096);
                builder.system.page_bytes = self.page_bytes;
                builder.system.memory_bytes = next().unwrap_or_default().saturating_mul(self.page_bytes);
            }
            b's' => {
                let text = match self.version >= SIZED_TEXTS {
                    true => sized(line).map_or(rest, |(_, from)| &line[from..]),
                    false => rest,
                };
                input.keep(text.len() + size_of::<String>())?;
                self.texts.push(String::from_utf8_lossy(text).into_owned());
            }
            b'i' => return self.code(next, input, builder),
            b't' => return self.trace(next, input, builder),
            b'a' => {
                let (Some(size_bytes), Some(stack)) = (next(), next()) else { return Ok(false) };
                let stack = self.stack(stack);
                input.keep(size_of::<Kind>())?;
                self.kinds.push(Kind { size_bytes, stack, live: Vec::new(), free: Vec::new() });
            }
            b'+' if self.version == 0 => {
                let (Some(size_bytes), Some(stack), Some(avma)) = (next(), next(), next()) else {
                    return Ok(false);
                };
                input.keep(48)?;
                self.blocks.insert(avma, ());
                self.alloc(avma, size_bytes, self.stack(stack), builder)?;
            }
            b'-' if self.version == 0 => {
                let Some(avma) = next() else { return Ok(false) };
                if self.blocks.remove(&avma).is_some() {
                    self.free(avma, builder)?;
                }
            }
            b'+' => return self.alloc_of_kind(next(), input, builder),
            b'-' => return self.free_of_kind(next(), builder),
            b'c' => {
                let Some(time_ms) = next() else { return Ok(false) };
                self.time_ns = self.time_ns.max(time_ms.saturating_mul(1_000_000));
            }
            b'R' => {
                let Some(pages) = next() else { return Ok(false) };
                builder.resident(self.time_ns, pages.saturating_mul(self.page_bytes))?;
            }
            b'A' => builder.note("heaptrack was attached: what was there before is not counted".to_owned()),
            // A comment, or a suppression: heapr has its own.
            b'#' | b'S' => {}
            b'x' | b'm' => {
                return Err(Error::Unusable {
                    what: format!(
                        "at offset {offset}: this is raw data of heaptrack, without names: let heaptrack interpret it first \
                         (heaptrack_interpret < RAW > FILE)"
                    ),
                });
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// `v TOOL VERSION`; heaptrack 1.0 has no version of the file.
    fn set_version(&mut self, tool: u64, version: Option<u64>, builder: &mut TraceBuilder) -> Result<()> {
        self.version = version.unwrap_or(u64::from(tool == EARLY_VERSION));
        builder.tool_version =
            format!("{}.{}.{} (file version {})", tool >> 16, tool >> 8 & 0xff, tool & 0xff, self.version);
        if self.version > VERSION_MAX {
            return Err(Error::NewerVersion { tool: TOOL, found: self.version, known: VERSION_MAX });
        }
        Ok(())
    }

    /// Returns the stack with a number; an unknown one is empty.
    fn stack(&self, number: u64) -> StackIndex {
        of_table(&self.stacks, number).copied().unwrap_or(StackIndex::EMPTY)
    }

    /// `t CALL CALLER`: a node of the stacks.
    fn trace(
        &mut self,
        mut next: impl FnMut() -> Option<u64>,
        input: &mut Input<'_>,
        builder: &mut TraceBuilder,
    ) -> Result<bool> {
        let (Some(call), Some(caller)) = (next(), next()) else { return Ok(false) };
        let call = of_table(&self.calls, call).copied();
        let caller = self.stack(caller);
        input.keep(96)?;
        let stack = match call {
            Some(call) => builder.stack(caller, call)?,
            None => caller,
        };
        self.stacks.push(stack);
        Ok(call.is_some())
    }

    /// `+ KIND`: an allocation of a size at a stack.
    fn alloc_of_kind(
        &mut self,
        kind: Option<u64>,
        input: &mut Input<'_>,
        builder: &mut TraceBuilder,
    ) -> Result<bool> {
        let kind = kind.and_then(|kind| self.kinds.get_mut(usize::try_from(kind).ok()?));
        let Some(kind) = kind else { return Ok(false) };
        let avma = match kind.free.pop() {
            Some(avma) => avma,
            None => {
                input.keep(64)?;
                self.next_avma += BLOCK_STEP;
                self.next_avma
            }
        };
        kind.live.push(avma);
        let (size_bytes, stack) = (kind.size_bytes, kind.stack);
        self.alloc(avma, size_bytes, stack, builder)?;
        Ok(true)
    }

    /// `- KIND`: the free of the latest live block of a size at a stack.
    fn free_of_kind(&mut self, kind: Option<u64>, builder: &mut TraceBuilder) -> Result<bool> {
        let kind = kind.and_then(|kind| self.kinds.get_mut(usize::try_from(kind).ok()?));
        let Some(avma) = kind.and_then(|kind| {
            let avma = kind.live.pop()?;
            kind.free.push(avma);
            Some(avma)
        }) else {
            return Ok(false);
        };
        self.free(avma, builder)?;
        Ok(true)
    }

    /// Reads `i ADDRESS MODULE [FUNCTION FILE LINE]…`, the innermost inlined frame first.
    fn code(
        &mut self,
        mut next: impl FnMut() -> Option<u64>,
        input: &mut Input<'_>,
        builder: &mut TraceBuilder,
    ) -> Result<bool> {
        let (Some(avma), Some(module)) = (next(), next()) else { return Ok(false) };
        let text = |number: u64| of_table(&self.texts, number).cloned().unwrap_or_default();
        let module = text(module);
        let mut frames = Vec::new();
        while let (Some(name), Some(file), Some(line)) = (next(), next(), next()) {
            frames.push(Frame { name: text(name), file: text(file), line: line as u32 });
        }
        // A frame without a function has at most a source location. Its offset in the module is
        // unknown.
        if frames.is_empty() {
            frames.push(Frame { name: String::new(), file: String::new(), line: 0 });
        }
        for frame in frames.iter_mut().filter(|frame| frame.name.is_empty()) {
            frame.name = format!("{avma:#x}");
        }
        let bytes: usize = frames.iter().map(|frame| frame.name.len() + frame.file.len() + 64).sum();
        input.keep(2 * (bytes + module.len() + 64))?;
        let call = builder.named(&module, &[], frames)?;
        self.calls.push(call);
        Ok(true)
    }

    fn alloc(
        &mut self,
        address_avma: u64,
        size_bytes: u64,
        stack: StackIndex,
        builder: &mut TraceBuilder,
    ) -> Result<()> {
        self.is_behind_free = false;
        builder
            .event(self.time_ns, Action::Alloc { address_avma, size_bytes, stack, is_moved_realloc: false })
    }

    /// Records a free. heaptrack counts a block as temporary if no event at all, not even another
    /// free, lies between allocation and free.
    fn free(&mut self, address_avma: u64, builder: &mut TraceBuilder) -> Result<()> {
        let stack = StackIndex::EMPTY;
        let action = Action::Free { address_avma, stack, is_moved_realloc: false };
        if std::mem::replace(&mut self.is_behind_free, true) {
            builder.event_elsewhere(self.time_ns, action)
        } else {
            builder.event(self.time_ns, action)
        }
    }
}

/// Entry of a table that counts from 1.
fn of_table<T>(table: &[T], number: u64) -> Option<&T> {
    table.get(usize::try_from(number.checked_sub(1)?).ok()?)
}
