//! Names of code that was made at run time, whoever tells them: a perf map, a jitdump, objects that
//! were registered for debuggers.
//!
//! Addresses are used again as code is thrown away, and a stack does not say when it was taken. So
//! an address that stood for several functions while it was recorded has the names of all.

use std::borrow::Cow;

/// Names that one address has, at most.
const NAMES_MAX: usize = 3;

/// A piece of code.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MadeFunction {
    /// Its first address.
    pub start_avma: u64,
    /// Behind its last one.
    pub end_avma: u64,
    /// As a reader wants it.
    pub name: String,
    /// Its source; may be empty.
    pub file: String,
    /// From which address on which line, by address; may be empty.
    pub lines: Vec<(u64, u32)>,
}

/// What an address stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MadePlace<'a> {
    /// The function, or all that it may be.
    pub name: Cow<'a, str>,
    /// Source file, if there is one function.
    pub file: Option<&'a str>,
    /// Line in it.
    pub line: Option<u32>,
}

/// The names of one process.
#[derive(Debug, Default)]
pub struct MadeCode {
    /// By address, those of one in the order in which they were made.
    functions: Vec<(MadeFunction, usize)>,
    /// The highest end of all up to each.
    ends: Vec<u64>,
    /// So many had been made before the recording began.
    old: usize,
}

impl MadeCode {
    /// Functions in the order in which they were made, `old` of them before the recording began.
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

    /// Whether nothing is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.functions.is_empty()
    }

    /// What the code at an address is.
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
        // What others had replaced before the recording began was never seen.
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
            // Of the same function made twice the lines may differ.
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
    /// The line of a call that returns behind an address; 0: unknown.
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
        // The first two were there before, and of these the second replaced the first.
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
