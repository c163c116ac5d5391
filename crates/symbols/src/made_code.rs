//! Names of JIT code, from any source: a perf map, a jitdump, objects registered for debuggers.
//!
//! Addresses are reused when code is discarded, and a stack has no time. An address that stood for
//! several functions during the recording thus has all their names.

use std::borrow::Cow;

/// Largest number of names of one address.
const NAMES_MAX: usize = 3;

/// A function of JIT code.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MadeFunction {
    /// First address.
    pub start_avma: u64,
    /// Exclusive end.
    pub end_avma: u64,
    /// Readable name.
    pub name: String,
    /// Source file; may be empty.
    pub file: String,
    /// Line at each start address, ordered by address; may be empty.
    pub lines: Vec<(u64, u32)>,
}

/// Function and source location of an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MadePlace<'a> {
    /// Name of the function, or of all possible functions.
    pub name: Cow<'a, str>,
    /// Source file, if there is only one function.
    pub file: Option<&'a str>,
    /// Line in the file.
    pub line: Option<u32>,
}

/// JIT code of one process.
#[derive(Debug, Default)]
pub struct MadeCode {
    /// Functions with their numbers, ordered by address; those at one address in the order of
    /// creation.
    functions: Vec<(MadeFunction, usize)>,
    /// Highest end of all functions up to each.
    ends: Vec<u64>,
    /// Number of functions created before the recording began.
    old: usize,
}

impl MadeCode {
    /// Takes functions in the order of their creation, `old` of them created before the recording
    /// began.
    #[must_use]
    pub fn new(functions: Vec<MadeFunction>, old: usize) -> Self {
        let numbered = functions.into_iter().enumerate().map(|(number, function)| (function, number));
        let mut functions: Vec<_> = numbered.collect();
        functions.sort_by_key(|(function, number)| (function.start_avma, *number));
        let highest = |end: &mut u64, (function, _): &(MadeFunction, usize)| {
            *end = (*end).max(function.end_avma);
            Some(*end)
        };
        let ends = functions.iter().scan(0, highest).collect();
        Self { functions, ends, old }
    }

    /// True if no functions are known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.functions.is_empty()
    }

    /// Function and source location of the code at an address.
    #[must_use]
    pub fn find(&self, avma: u64) -> Option<MadePlace<'_>> {
        let below = self.functions.partition_point(|(function, _)| function.start_avma <= avma);
        let mut found: Vec<&(MadeFunction, usize)> = Vec::new();
        for place in (0..below).rev() {
            if self.ends[place] <= avma {
                break;
            }
            let entry = &self.functions[place];
            if avma < entry.0.end_avma {
                found.push(entry);
            }
        }
        found.sort_by_key(|(_, number)| *number);
        // A function that another one had replaced before the recording began cannot occur.
        let first = found.iter().rposition(|(_, number)| *number < self.old).unwrap_or(0);
        let found = &found[first.min(found.len())..];
        let (last, _) = found.last()?;
        let mut names: Vec<&str> = Vec::new();
        for (function, _) in found.iter().rev() {
            if !names.contains(&function.name.as_str()) {
                names.push(&function.name);
            }
        }
        if names.len() == 1 {
            // Two versions of one function may have different lines.
            let lines: Vec<u32> = found.iter().map(|(function, _)| function.line_of(avma)).collect();
            let is_one = lines.iter().all(|line| *line == lines[0]);
            return Some(MadePlace {
                name: Cow::Borrowed(&last.name),
                file: Some(last.file.as_str()).filter(|file| !file.is_empty()),
                line: lines.first().copied().filter(|&line| is_one && line != 0),
            });
        }
        if names.len() > NAMES_MAX {
            names.truncate(NAMES_MAX);
            names.push("others");
        }
        Some(MadePlace { name: Cow::Owned(names.join(" or ")), file: None, line: None })
    }
}

impl MadeFunction {
    /// Line of a call that returns behind an address; 0 if unknown.
    fn line_of(&self, avma: u64) -> u32 {
        let place = self.lines.partition_point(|&(start, _)| start <= avma);
        place.checked_sub(1).and_then(|place| self.lines.get(place)).map_or(0, |&(_, line)| line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function(start_avma: u64, size: u64, name: &str) -> MadeFunction {
        MadeFunction {
            start_avma,
            end_avma: start_avma + size,
            name: name.to_owned(),
            ..MadeFunction::default()
        }
    }

    fn name(code: &MadeCode, avma: u64) -> Option<String> {
        code.find(avma).map(|place| place.name.into_owned())
    }

    #[test]
    fn an_address_has_the_names_of_all_that_it_stood_for_while_it_was_recorded() {
        let functions = || {
            vec![
                function(0x1000, 0x100, "first"),
                function(0x1000, 0x40, "second"),
                function(0x1020, 0x40, "third"),
                function(0x2000, 0x10, "same"),
                function(0x2000, 0x20, "same"),
            ]
        };
        let code = MadeCode::new(functions(), 0);
        assert_eq!(name(&code, 0x1010).as_deref(), Some("second or first"));
        assert_eq!(name(&code, 0x1030).as_deref(), Some("third or second or first"));
        assert_eq!(name(&code, 0x10f0).as_deref(), Some("first"));
        assert_eq!(name(&code, 0x1100), None);
        assert_eq!(name(&code, 0x2008).as_deref(), Some("same"));
        assert_eq!(name(&code, 0x2018).as_deref(), Some("same"));
        // The first two functions are old, and of these the second replaced the first.
        let code = MadeCode::new(functions(), 2);
        assert_eq!(name(&code, 0x1010).as_deref(), Some("second"));
        assert_eq!(name(&code, 0x1030).as_deref(), Some("third or second"));
        assert_eq!(name(&code, 0x10f0).as_deref(), Some("first"));
    }

    #[test]
    fn a_line_is_that_of_the_last_place_before() {
        let lines = vec![(0x10, 3), (0x18, 5)];
        let code =
            MadeCode::new(vec![MadeFunction { lines, file: "a.x".into(), ..function(0x10, 0x10, "f") }], 0);
        let place = code.find(0x17).unwrap();
        assert_eq!((place.file, place.line), (Some("a.x"), Some(3)));
        assert_eq!(code.find(0x18).unwrap().line, Some(5));
    }
}
