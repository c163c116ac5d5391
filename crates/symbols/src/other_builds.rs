//! Recorded files whose paths now hold another build: a program that was rebuilt since.

use std::fmt;
use std::path::Path;

use crate::elf_facts::ElfFacts;

/// Largest number of files listed by name; the rest are counted.
const SHOWN_MAX: usize = 3;

/// Files that are another build than the recorded one; see [`OtherBuilds::of`].
#[derive(Debug, Default)]
pub struct OtherBuilds {
    /// Path, recorded build-id, present build-id (may be empty).
    found: Vec<(String, Vec<u8>, Vec<u8>)>,
}

impl OtherBuilds {
    /// Compares modules, given by path and build-id, with their files. Modules without a build-id
    /// or without a file are skipped.
    #[must_use]
    pub fn of<'a>(modules: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> Self {
        let mut found: Vec<(String, Vec<u8>, Vec<u8>)> = Vec::new();
        let mut are_same: Vec<&str> = Vec::new();
        for (path, recorded) in modules {
            if recorded.is_empty() || !path.starts_with('/') {
                continue;
            }
            let Some(now) = ElfFacts::read(Path::new(path)) else { continue };
            if now.build_id == recorded {
                are_same.push(path);
            } else if found.iter().all(|(known, ..)| known != path) {
                found.push((path.to_owned(), recorded.to_vec(), now.build_id));
            }
        }
        // A path whose two builds were both recorded, and which holds one of them, is not reported.
        found.retain(|(path, ..)| !are_same.contains(&path.as_str()));
        Self { found }
    }

    /// One sentence without its full stop; `None` if all builds match.
    #[must_use]
    pub fn sentence(&self) -> Option<String> {
        (!self.found.is_empty()).then(|| self.to_string())
    }
}

impl fmt::Display for OtherBuilds {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |id: &[u8]| match id {
            [] => "no build-id".to_owned(),
            id => format!(
                "build-id {}",
                id.iter().take(4).map(|byte| format!("{byte:02x}")).collect::<String>()
            ),
        };
        let mut parts: Vec<String> = self
            .found
            .iter()
            .take(SHOWN_MAX)
            .map(|(path, recorded, now)| {
                format!("{path} ({} was recorded, {} is there)", text(recorded), text(now))
            })
            .collect();
        if let Some(more @ 1..) = self.found.len().checked_sub(SHOWN_MAX) {
            parts.push(format!("{more} more"));
        }
        let (is, one) = if self.found.len() == 1 { ("is", "another build") } else { ("are", "other builds") };
        write!(
            formatter,
            "{} {is} {one} now than what was recorded: names and lines are those of the recorded one, or missing; its source \
             may have changed",
            parts.join(", ")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_another_build_id_is_told_and_what_is_not_known_is_not() {
        let here = std::env::current_exe().unwrap();
        let path = here.to_str().unwrap();
        let Some(facts) = ElfFacts::read(&here).filter(|facts| !facts.build_id.is_empty()) else { return };
        let same: &[u8] = &facts.build_id;
        let others = |modules: &[(&str, &[u8])]| OtherBuilds::of(modules.iter().copied()).sentence();
        let told = others(&[(path, &[0xab, 0xcd, 1, 2, 3]), ("/none", &[1]), (path, &[])]).unwrap();
        assert!(told.starts_with(path) && told.contains("abcd0102 was recorded"), "{told}");
        assert_eq!(others(&[(path, same)]), None);
        assert_eq!(others(&[(path, &[7]), (path, same)]), None, "one of two in turn is there");
    }
}
