//! Finds the recorder's name, file and line for a function of JavaScript and an instruction.

use heapr_wire::{LANGUAGE_JAVASCRIPT, LINE_MAX, language_place};

use crate::languages::code_table;
use crate::languages::text::Text;
use crate::languages::v8::heap::{Characters, Heap, small_integer};
use crate::languages::v8::layout::MODULE_SCOPE;
use crate::languages::v8::variable_bytes::source_position;
use crate::record::thread::Scope;

/// `Script`.
const SOURCE_AT: usize = 8;
const NAME_AT: usize = 16;
const LINE_OFFSET_AT: usize = 24;
const ID_AT: usize = 64;
/// `SharedFunctionInfo`: its data, from which its instructions are reached.
const DATA_AT: usize = 8;
/// `ScopeInfo`: offsets of words of 8 bytes, indexes of words, and bits of its flags.
const FLAGS_AT: usize = 8;
const LOCALS_AT: usize = 24;
const POSITION_WORD: usize = 3;
const SCOPE_KIND: usize = 15;
const HAS_CLASS_VARIABLE: usize = 1 << 10;
const HAS_FUNCTION_VARIABLE: usize = 3 << 12;
const HAS_INFERRED_NAME: usize = 1 << 14;
/// Limit of the number of local variables whose names are stored inline.
const LOCALS_INLINED: usize = 75;

const NAME_BYTES_MAX: usize = 512;
const FILE_BYTES_MAX: usize = 1024;
/// Number of characters between two stored positions of a source, and number of stored positions.
const STRIDE: usize = 1 << 12;
const PLACES: usize = 1 << 12;

/// Buffers for texts, and cached line counts.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Sources {
    /// Keys of source and position, and the number of lines before the position.
    places: [(u64, u64); PLACES],
    name: [u8; NAME_BYTES_MAX],
    file: [u8; FILE_BYTES_MAX],
}

impl Sources {
    /// Returns the line of a character, from 0.
    fn line(&mut self, key: u64, characters: Characters, position: usize) -> u32 {
        if position > characters.count() {
            return 0;
        }
        let place_of = |stride: usize| {
            let key = (key ^ stride as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
            ((key >> 40) as usize % PLACES, key)
        };
        let mut stride = position / STRIDE;
        let mut lines = 0_u64;
        while stride != 0 {
            let (place, key) = place_of(stride);
            if let Some(&(found, before)) = self.places.get(place)
                && found == key
            {
                lines = before;
                break;
            }
            stride = stride.wrapping_sub(1);
        }
        while stride < position / STRIDE {
            let first = stride.wrapping_mul(STRIDE);
            lines = lines.wrapping_add(characters.line_ends(first, first.wrapping_add(STRIDE)) as u64);
            stride = stride.wrapping_add(1);
            let (place, key) = place_of(stride);
            if let Some(entry) = self.places.get_mut(place) {
                *entry = (key, lines);
            }
        }
        lines = lines.wrapping_add(characters.line_ends(stride.wrapping_mul(STRIDE), position) as u64);
        lines.try_into().unwrap_or(0)
    }
}

/// Returns the array of a function's instructions.
pub(crate) fn instructions_of(heap: &mut Heap<'_>, shared: usize) -> Option<usize> {
    let kinds = &heap.layout.kinds;
    let (array, code) = (kinds.bytecode_array, kinds.code);
    let mut pointer = heap.field(shared, DATA_AT)?;
    // The data is the array, or baseline code, or an object that names the array and a copy of the
    // interpreter's entry.
    for _ in 0..3 {
        let (object, kind) = heap.object(pointer)?;
        if kind == array {
            return Some(object);
        }
        pointer = heap.field(object, if kind == code { heap.layout.deoptimization } else { DATA_AT })?;
    }
    None
}

/// Returns language, function and line of an instruction of a function; without a line if
/// `instruction` is `None`. Returns 0 if the function was not written in JavaScript.
pub(crate) fn place(
    scope: &mut Scope,
    heap: &mut Heap<'_>,
    sources: &mut Sources,
    (shared, array, instruction): (usize, Option<usize>, Option<i64>),
) -> u64 {
    found_place(scope, heap, sources, (shared, array, instruction)).unwrap_or(0)
}

fn found_place(
    scope: &mut Scope,
    heap: &mut Heap<'_>,
    sources: &mut Sources,
    (shared, array, instruction): (usize, Option<usize>, Option<i64>),
) -> Option<u64> {
    let layout = heap.layout;
    let script = heap.member(shared, layout.script, layout.kinds.script)?;
    let source = heap.field(script, SOURCE_AT).and_then(|source| heap.characters(source));
    let id = heap.field(script, ID_AT)?;
    let base =
        heap.field(script, LINE_OFFSET_AT).and_then(small_integer).and_then(|base| u32::try_from(base).ok());
    let base = base.unwrap_or(0).saturating_add(1);
    // Workers number their scripts anew: another source with this number has another length or
    // address.
    let key = source.map_or(0, |source| source.bytes.as_ptr() as u64 ^ (source.count() as u64) << 48)
        ^ (id as u64).rotate_left(7);
    let line_of = |sources: &mut Sources, position: usize| {
        source.map_or(0, |source| sources.line(key, source, position).saturating_add(base))
    };
    let line = instruction.and_then(|instruction| {
        let array = array.or_else(|| instructions_of(heap, shared))?;
        let table = heap.field(array, layout.positions)?;
        let table = heap.bytes(table)?;
        Some(source_position(table, layout.has_breakable, instruction)? as usize)
    });
    let line = line.map_or(0, |position| line_of(sources, position));

    let mut name = Text { out: &mut [0; NAME_BYTES_MAX], bytes: 0 };
    let start = read_name(heap, shared, &mut name);
    let first_line = start.map_or(0, |start| line_of(sources, start));
    if name.bytes == 0 {
        name.push_all(if start == Some(0) { "(top level)" } else { "(anonymous)" });
    }
    let (name_bytes, name) = (name.bytes, &*name.out);
    for (place, &byte) in sources.name.iter_mut().zip(name) {
        *place = byte;
    }

    let mut file = Text { out: &mut sources.file, bytes: 0 };
    if let Some(pointer) = heap.field(script, NAME_AT) {
        let _ = heap.append(pointer, &mut file, 0);
    }
    if file.bytes == 0 {
        file.push_all("(evaluated)");
    }
    let file_bytes = file.bytes;
    let file = sources.file.get(..file_bytes)?;
    // URL prefix in the names of modules.
    let file = file.strip_prefix(b"file://").unwrap_or(file);
    let name = sources.name.get(..name_bytes)?;
    let number = code_table::number_of(scope, LANGUAGE_JAVASCRIPT, (name, file, first_line));
    Some(language_place(LANGUAGE_JAVASCRIPT, number, line.min(LINE_MAX)))
}

/// Writes a function's name, or the one that V8 has inferred from where the function is stored.
/// Returns the function's start in the source.
fn read_name(heap: &mut Heap<'_>, shared: usize, name: &mut Text<'_>) -> Option<usize> {
    let layout = heap.layout;
    let pointer = heap.field(shared, layout.name)?;
    if heap.string(pointer).is_some() {
        let _ = heap.append(pointer, name, 0);
        return None;
    }
    let info = heap.of_kind(pointer, layout.kinds.scope_info)?;
    let flags = heap.field(info, FLAGS_AT)?;
    let flags = if layout.has_smi_flags { flags >> 32 } else { flags & 0xffff_ffff };
    let locals = usize::try_from(small_integer(heap.field(info, LOCALS_AT)?)?).ok()?;
    let word_at = |word: usize| word.wrapping_add(1).wrapping_mul(8);
    let position_of = |heap: &mut Heap<'_>, word: usize| {
        usize::try_from(small_integer(heap.field(info, word_at(word))?)?).ok()
    };
    let mut word = layout.variables;
    let mut start = None;
    if !layout.has_smi_flags {
        start = position_of(heap, POSITION_WORD);
        word = word.wrapping_add(usize::from(flags & SCOPE_KIND == MODULE_SCOPE));
    }
    let named = if locals < LOCALS_INLINED { locals } else { 1 };
    word = word.wrapping_add(named).wrapping_add(locals);
    word = word.wrapping_add(usize::from(flags & HAS_CLASS_VARIABLE != 0));
    if flags & HAS_FUNCTION_VARIABLE != 0 {
        if let Some(pointer) = heap.field(info, word_at(word)) {
            let _ = heap.append(pointer, name, 0);
        }
        word = word.wrapping_add(2);
    }
    if flags & HAS_INFERRED_NAME != 0 {
        if name.bytes == 0
            && let Some(pointer) = heap.field(info, word_at(word))
        {
            let _ = heap.append(pointer, name, 0);
        }
        word = word.wrapping_add(1);
    }
    start.or_else(|| if layout.has_smi_flags { position_of(heap, word) } else { None })
}
