//! `/tmp/perf-PID.map`: names of code that was compiled at run time, as V8 and others write it for
//! Linux perf.
//!
//! Lines of `START SIZE name`, the numbers in hexadecimal. Addresses are used again as code is
//! thrown away: a later line stands for the later code, and wins.

/// The names of one process.
#[derive(Debug, Default)]
pub struct PerfMap {
    /// (start, end, name) by start, not overlapping.
    entries: Vec<(u64, u64, String)>,
}

impl PerfMap {
    /// Reads an untrusted map; lines that make no sense are passed over.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Self {
        let mut found = Vec::new();
        for (number, line) in bytes.split(|&byte| byte == b'\n').enumerate() {
            let line = String::from_utf8_lossy(line);
            let mut fields = line.splitn(3, ' ');
            let number_of =
                |field: Option<&str>| u64::from_str_radix(field?.trim_start_matches("0x"), 16).ok();
            let (Some(start), Some(size)) = (number_of(fields.next()), number_of(fields.next())) else {
                continue;
            };
            let Some(name) = fields.next().filter(|name| !name.is_empty()) else { continue };
            found.push((start, start.saturating_add(size), number, pretty(name)));
        }
        found.sort_by_key(|&(start, _, number, _)| (start, number));
        let mut entries: Vec<(u64, u64, String)> = Vec::with_capacity(found.len());
        for (start, end, _, name) in found {
            if let Some(last) = entries.last_mut() {
                if last.0 == start {
                    *last = (start, end, name);
                    continue;
                }
                last.1 = last.1.min(start);
            }
            entries.push((start, end, name));
        }
        Self { entries }
    }

    /// The name of the code that holds an address.
    #[must_use]
    pub fn find(&self, avma: u64) -> Option<&str> {
        let place = self.entries.partition_point(|&(start, ..)| start <= avma).checked_sub(1)?;
        let (_, end, name) = self.entries.get(place)?;
        (avma < *end).then_some(name.as_str())
    }
}

/// V8's tags (`JS:*name file:line:column`, `LazyCompile:~name …`) as a reader wants them: `name
/// file:line:column`.
fn pretty(name: &str) -> String {
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
    fn later_lines_win_and_nonsense_is_passed_over() {
        let map = PerfMap::parse(
            b"1000 20 Builtin:ArrayMap\nnonsense\n2000 10 JS:*work /a.js:3:5\n2000 8 JS:~ /b.js:1:1\nffffffffffffffff 10 x\n",
        );
        assert_eq!(map.find(0x101f), Some("Builtin:ArrayMap"));
        assert_eq!(map.find(0x1020), None);
        assert_eq!(map.find(0x2000), Some("(anonymous) /b.js:1:1"));
        assert_eq!(map.find(0x2009), None);
    }
}
