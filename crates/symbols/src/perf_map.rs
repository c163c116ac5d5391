//! `/tmp/perf-PID.map`: names of JIT code, as V8 and others write it for Linux perf.
//!
//! Lines of `START SIZE name`, the numbers in hexadecimal, in the order in which the code was
//! created.

use crate::made_code::MadeFunction;

/// Parses an untrusted map; invalid lines are skipped. Returns the functions, and how many of them
/// the first `old_bytes` hold.
#[must_use]
pub fn read_perf_map(bytes: &[u8], old_bytes: u64) -> (Vec<MadeFunction>, usize) {
    let (mut functions, mut old, mut end) = (Vec::new(), 0, 0_u64);
    for line in bytes.split(|&byte| byte == b'\n') {
        end += line.len() as u64 + 1;
        functions.extend(function(line));
        if end <= old_bytes {
            old = functions.len();
        }
    }
    (functions, old)
}

fn function(line: &[u8]) -> Option<MadeFunction> {
    let line = String::from_utf8_lossy(line);
    let mut fields = line.splitn(3, ' ');
    let mut number = || u64::from_str_radix(fields.next()?.trim_start_matches("0x"), 16).ok();
    let (start_avma, size) = (number()?, number()?);
    let name = fields.next().filter(|name| !name.is_empty())?;
    let end_avma = start_avma.saturating_add(size);
    Some(MadeFunction { start_avma, end_avma, name: pretty(name), ..MadeFunction::default() })
}

/// Turns V8's tagged names (`JS:*name file:line:column`, `LazyCompile:~name …`) into `name
/// file:line:column`.
pub(crate) fn pretty(name: &str) -> String {
    let name = ["JS:", "LazyCompile:", "Function:", "Script:", "Eval:"]
        .iter()
        .find_map(|tag| name.strip_prefix(tag))
        .map_or(name, |name| name.trim_start_matches(['*', '~', '^', '+']));
    match name.split_once(' ') {
        Some(("", place)) => format!("(anonymous) {place}"),
        _ => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nonsense_is_passed_over() {
        let map = b"1000 20 Builtin:ArrayMap\nnonsense\n2000 10 JS:*work /a.js:3:5\n2000 8 JS:~ /b.js:1:1\nffffffffffffffff 10 x\n";
        let (functions, old) = read_perf_map(map, 40);
        let found: Vec<_> =
            functions.iter().map(|found| (found.start_avma, found.end_avma, found.name.as_str())).collect();
        assert_eq!(old, 1);
        assert_eq!(
            found,
            [
                (0x1000, 0x1020, "Builtin:ArrayMap"),
                (0x2000, 0x2010, "work /a.js:3:5"),
                (0x2000, 0x2008, "(anonymous) /b.js:1:1"),
                (u64::MAX, u64::MAX, "x"),
            ]
        );
    }
}
