//! File of counts: one line per job, columns separated by tabs.

use std::fmt;
use std::path::Path;

use anyhow::{Context as _, bail};

/// Largest allowed ratio of instructions to those of the line.
pub(super) const INSTRUCTIONS_ALLOWED: f64 = 1.03;
/// Largest allowed ratio of system calls to those of the line.
pub(super) const SYSTEM_CALLS_ALLOWED: f64 = 1.03;
/// Largest allowed ratio of peak memory to that of the line.
pub(super) const PEAK_ALLOWED: f64 = 1.05;

const HEADING: &str = "job\tinstructions_of_b41abb5\tinstructions\tsystem_calls\tpeak_kib";

/// Counts of one job; a count that a job does not have is unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// Instructions, by Callgrind.
    pub(super) instructions: Option<u64>,
    /// System calls, by strace.
    pub(super) system_calls: Option<u64>,
    /// Largest resident set, in KiB.
    pub(super) peak_kib: Option<u64>,
}

impl fmt::Display for Counts {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [instructions, calls, peak] = [self.instructions, self.system_calls, self.peak_kib].map(cell);
        write!(to, "{instructions} instructions, {calls} system calls, {peak} KiB")
    }
}

/// Line of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    name: String,
    first: Option<u64>,
    /// Reference for later counts.
    pub(super) counts: Counts,
}

/// Beginning of the line that names compiler and tools.
const MAKERS: &str = "# measured with ";

/// The whole file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Record {
    /// Compiler and tools of the lines: see [`super::makers`]. Empty: unknown.
    pub(super) makers: String,
    lines: Vec<Line>,
}

impl Record {
    /// Reads the file; without a file the record is empty.
    pub(super) fn read(path: &Path) -> anyhow::Result<Self> {
        match std::fs::read_to_string(path) {
            Ok(text) => Self::parse(&text).with_context(|| path.display().to_string()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(error).with_context(|| path.display().to_string()),
        }
    }

    fn parse(text: &str) -> anyhow::Result<Self> {
        let mut lines = Vec::new();
        let makers = text.lines().find_map(|line| line.strip_prefix(MAKERS)).unwrap_or_default();
        let of_jobs = |&(_, line): &(usize, &str)| !line.starts_with('#') && line != HEADING;
        for (number, line) in text.lines().enumerate().filter(of_jobs) {
            let cells: Vec<&str> = line.split('\t').collect();
            let [name, first, instructions, system_calls, peak_kib] = cells[..] else {
                bail!("line {}: five columns are expected", number + 1)
            };
            let count = |cell: &str| match cell {
                "-" => Ok(None),
                _ => cell.parse().map(Some).with_context(|| format!("line {}: {cell}", number + 1)),
            };
            let counts = Counts {
                instructions: count(instructions)?,
                system_calls: count(system_calls)?,
                peak_kib: count(peak_kib)?,
            };
            lines.push(Line { name: name.to_owned(), first: count(first)?, counts });
        }
        Ok(Self { makers: makers.to_owned(), lines })
    }

    fn text(&self) -> String {
        let lines = self.lines.iter().map(|line| {
            let counts = &line.counts;
            let [first, instructions, calls, peak] =
                [line.first, counts.instructions, counts.system_calls, counts.peak_kib].map(cell);
            format!("{}\t{first}\t{instructions}\t{calls}\t{peak}\n", line.name)
        });
        let makers = (!self.makers.is_empty()).then(|| format!("{MAKERS}{}\n", self.makers));
        makers.into_iter().chain([format!("{HEADING}\n")]).chain(lines).collect()
    }

    pub(super) fn write(&self, path: &Path) -> anyhow::Result<()> {
        std::fs::write(path, self.text()).with_context(|| path.display().to_string())
    }

    pub(super) fn line(&self, name: &str) -> Option<&Line> {
        self.lines.iter().find(|line| line.name == name)
    }

    fn line_mut(&mut self, name: &str) -> &mut Line {
        let at = self.lines.iter().position(|line| line.name == name).unwrap_or_else(|| {
            self.lines.push(Line { name: name.to_owned(), first: None, counts: Counts::default() });
            self.lines.len() - 1
        });
        &mut self.lines[at]
    }

    pub(super) fn set(&mut self, name: &str, counts: Counts) {
        self.line_mut(name).counts = counts;
    }

    pub(super) fn set_first(&mut self, name: &str, counts: &Counts) {
        self.line_mut(name).first = counts.instructions;
    }
}

fn cell(count: Option<u64>) -> String {
    count.map_or_else(|| "-".to_owned(), |count| count.to_string())
}

/// Returns the cells of a job in the printed table.
pub(super) fn row(name: &str, before: Option<&Line>, now: &Counts) -> Vec<String> {
    let ratio = |now: Option<u64>, before: Option<u64>| match (now, before) {
        (Some(now), Some(before)) if before > 0 => format!("{:.3}", now as f64 / before as f64),
        _ => "-".to_owned(),
    };
    let line = before.map(|line| line.counts).unwrap_or_default();
    vec![
        name.to_owned(),
        cell(now.instructions),
        ratio(now.instructions, before.and_then(|line| line.first)),
        ratio(now.instructions, line.instructions),
        cell(now.system_calls),
        cell(now.peak_kib),
        ratio(now.peak_kib, line.peak_kib),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_as_it_was_written() -> anyhow::Result<()> {
        let mut record = Record::default();
        let counts = Counts { instructions: Some(1_000), system_calls: None, peak_kib: Some(7) };
        record.set("pair", counts);
        record.set_first("report", &counts);
        assert_eq!(record.text(), format!("{HEADING}\npair\t-\t1000\t-\t7\nreport\t1000\t-\t-\t-\n"));
        assert_eq!(Record::parse(&record.text())?, record);
        record.makers = "rustc 1".into();
        assert!(record.text().starts_with("# measured with rustc 1\njob\t"));
        assert_eq!(Record::parse(&record.text())?, record);
        assert!(Record::parse("heading\na\tb\n").is_err());
        Ok(())
    }

    #[test]
    fn a_count_above_its_line_is_named() {
        let line = Counts { instructions: Some(1_000), system_calls: Some(100), peak_kib: None };
        let within = Counts { instructions: Some(1_030), system_calls: Some(103), peak_kib: Some(1) };
        assert_eq!(line.exceeded_by(&within), None);
        let above = Counts { instructions: Some(1_031), ..within };
        assert_eq!(line.exceeded_by(&above).as_deref(), Some("1031 instructions, 1000 are allowed"));
    }
}
