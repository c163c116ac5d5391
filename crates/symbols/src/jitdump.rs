//! `jit-PID.dump`: JIT code with its lines, as V8, the JVM's agents and LLVM write it for `perf
//! inject`.
//!
//! ```text
//! | header | lines of the next code | code: address, size, name, its bytes | code moved | …
//! ```

use std::collections::HashMap;

use crate::made_code::MadeFunction;
use crate::perf_map::pretty;

const MAGIC: &[u8; 4] = b"DTiJ";
/// Kind of a record: code loaded.
const LOAD: u32 = 0;
const MOVE: u32 = 1;
const LINES: u32 = 2;
const RECORD_HEAD_BYTES: usize = 16;
/// Size in bytes of the fields behind the head: pid, tid, address, code's address, size, number.
const LOAD_BYTES: usize = 40;

/// A file, and its line at each start address.
type FileLines = (String, Vec<(u64, u32)>);

/// Parses an untrusted file up to its end or first error. Returns the functions in the order of
/// their creation, and how many of them the first `old_bytes` hold.
#[must_use]
pub fn read_jitdump(bytes: &[u8], old_bytes: u64) -> (Vec<MadeFunction>, usize) {
    let (mut functions, mut old) = (Vec::new(), 0);
    if bytes.get(..4) != Some(MAGIC) {
        return (functions, old);
    }
    let mut lines: HashMap<u64, FileLines> = HashMap::new();
    // Index of each code's latest function, by the code's number.
    let mut by_number: HashMap<u64, usize> = HashMap::new();
    let mut at = half(bytes, 8).unwrap_or(0) as usize;
    while let (Some(kind), Some(size)) = (half(bytes, at), half(bytes, at.saturating_add(4))) {
        let end = at.saturating_add(size as usize);
        let Some(record) = bytes.get(at..end).filter(|record| record.len() >= RECORD_HEAD_BYTES) else {
            break;
        };
        let body = &record[RECORD_HEAD_BYTES..];
        match kind {
            LINES => lines.extend(read_lines(body)),
            LOAD => {
                if let Some((function, number)) = read_load(body, &mut lines) {
                    by_number.insert(number, functions.len());
                    functions.push(function);
                }
            }
            MOVE => {
                if let Some(function) = read_move(body, &functions, &mut by_number) {
                    functions.push(function);
                }
            }
            _ => {}
        }
        at = end;
        if end as u64 <= old_bytes {
            old = functions.len();
        }
    }
    (functions, old)
}

/// Lines of the code at an address: its file, and the start address of each line.
fn read_lines(body: &[u8]) -> Option<(u64, FileLines)> {
    let code = word(body, 0)?;
    let count = word(body, 8)?;
    let (mut at, mut file) = (16_usize, String::new());
    let mut lines = Vec::new();
    for _ in 0..count {
        let (Some(start), Some(line)) = (word(body, at), half(body, at.saturating_add(8))) else { break };
        let Some(name) = text(body, at.saturating_add(16)) else { break };
        at = at.saturating_add(17).saturating_add(name.len());
        // 0xff stands for the preceding name.
        if name != b"\xff" {
            let name = String::from_utf8_lossy(name);
            if file.is_empty() {
                file = name.into_owned();
            } else if file != name {
                // Lines of inlined code from another file are left out.
                continue;
            }
        }
        lines.push((start, line));
    }
    lines.sort_by_key(|&(start, _)| start);
    Some((code, (file, lines)))
}

fn read_load(body: &[u8], lines: &mut HashMap<u64, FileLines>) -> Option<(MadeFunction, u64)> {
    let (start_avma, size, number) = (word(body, 16)?, word(body, 24)?, word(body, 32)?);
    let name = pretty(&String::from_utf8_lossy(text(body, LOAD_BYTES)?));
    let (file, lines) = lines.remove(&start_avma).unwrap_or_default();
    let end_avma = start_avma.saturating_add(size);
    (!name.is_empty()).then_some((MadeFunction { start_avma, end_avma, name, file, lines }, number))
}

fn read_move(
    body: &[u8],
    functions: &[MadeFunction],
    by_number: &mut HashMap<u64, usize>,
) -> Option<MadeFunction> {
    let (old_avma, start_avma, number) = (word(body, 16)?, word(body, 24)?, word(body, 40)?);
    let function = functions.get(*by_number.get(&number)?)?;
    if function.start_avma != old_avma {
        return None;
    }
    let size = function.end_avma.saturating_sub(old_avma);
    let moved = |&(at, line): &(u64, u32)| (at.wrapping_sub(old_avma).wrapping_add(start_avma), line);
    by_number.insert(number, functions.len());
    Some(MadeFunction {
        start_avma,
        end_avma: start_avma.saturating_add(size),
        lines: function.lines.iter().map(moved).collect(),
        ..function.clone()
    })
}

fn half(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at.checked_add(8)?)?.try_into().ok()?))
}

/// Bytes up to the next zero.
fn text(bytes: &[u8], at: usize) -> Option<&[u8]> {
    bytes.get(at..)?.split(|&byte| byte == 0).next()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made_code::MadeCode;

    fn record(kind: u32, words: &[u64], rest: &[u8]) -> Vec<u8> {
        let mut body: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        body.extend_from_slice(rest);
        let mut record = kind.to_le_bytes().to_vec();
        record.extend(((body.len() + RECORD_HEAD_BYTES) as u32).to_le_bytes());
        record.extend([0; 8]);
        record.extend(body);
        record
    }

    fn file() -> Vec<u8> {
        let mut file = MAGIC.to_vec();
        file.extend(1_u32.to_le_bytes());
        file.extend(40_u32.to_le_bytes());
        file.resize(40, 0);
        let mut entries: Vec<u8> = Vec::new();
        for (at, line, name) in [(0x1000_u64, 7_u32, &b"work.x\0"[..]), (0x1010, 9, b"\xff\0")] {
            entries.extend(at.to_le_bytes());
            entries.extend(line.to_le_bytes());
            entries.extend([0; 4]);
            entries.extend(name);
        }
        file.extend(record(LINES, &[0x1000, 2], &entries));
        file.extend(record(LOAD, &[0, 0x1000, 0x1000, 0x20, 1], b"JS:*work work.x:7:1\0code"));
        file.extend(record(MOVE, &[0, 0x2000, 0x1000, 0x2000, 0x20, 1], b""));
        file.extend(record(LOAD, &[0, 0x1000, 0x1000, 0x20, 2], b"other\0code"));
        file
    }

    #[test]
    fn code_has_its_name_and_lines_wherever_it_was_moved() {
        let (functions, old) = read_jitdump(&file(), u64::MAX);
        assert_eq!((functions.len(), old), (3, 3));
        let code = MadeCode::new(functions, old);
        assert_eq!(code.find(0x1008).unwrap().name, "other");
        let moved = code.find(0x2011).unwrap();
        assert_eq!((&*moved.name, moved.file, moved.line), ("work work.x:7:1", Some("work.x"), Some(9)));
        let (functions, _) = read_jitdump(&file(), 0);
        let code = MadeCode::new(functions, 0);
        assert_eq!(code.find(0x1008).unwrap().name, "other or work work.x:7:1");
    }

    #[test]
    fn what_is_cut_or_damaged_costs_nothing() {
        let whole = file();
        for length in 0..whole.len() {
            let _ = read_jitdump(&whole[..length], 0);
        }
        for place in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[place] ^= 0xff;
            let _ = MadeCode::new(read_jitdump(&damaged, 0).0, 0).find(0x1000);
        }
    }
}
