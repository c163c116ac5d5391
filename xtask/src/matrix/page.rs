//! Writes the page: one line per row, and the totals.

use std::fmt::Write as _;

use super::recorded::Row;
use super::rows::Program;

/// Line of the page's table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    name: String,
    way: String,
    text: String,
}

impl Line {
    pub(super) fn of(row: &Row) -> Self {
        Self { name: row.name.clone(), way: row.way.to_owned(), text: text_of(row) }
    }

    /// Parses a line of an existing page. `None`: it is not a line of the table.
    fn read(text: &str) -> Option<Self> {
        let mut columns = text.strip_prefix("| ")?.split(" | ");
        let (name, _, way) = (columns.next()?, columns.next()?, columns.next()?);
        let is_row = ["run", "attach"].contains(&way);
        is_row.then(|| Self { name: name.to_owned(), way: way.to_owned(), text: text.to_owned() })
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    fn column(&self, number: usize) -> &str {
        self.text.trim_start_matches("| ").split(" | ").nth(number).unwrap_or_default().trim()
    }

    /// Share in percent; 100 if the process is too small to be measured.
    fn percent(&self, number: usize) -> f64 {
        self.column(number).trim_end_matches(" %").parse().unwrap_or(100.0)
    }

    /// Whether nearly all memory is explained, or there is too little to measure.
    fn is_explained(&self) -> bool {
        self.percent(5) >= 95.0
    }

    /// Whether nearly all memory is in recorded blocks, or is their overhead, data or stacks.
    fn is_whole(&self) -> bool {
        let mebibytes: f64 = self.column(4).parse().unwrap_or(0.0);
        let unseen = 100.0 - self.percent(6);
        self.column(3) != "0" && (unseen <= 10.0 || mebibytes * unseen / 100.0 <= 3.0)
    }

    fn is_silent(&self) -> bool {
        self.text.contains("**silent**")
    }

    fn is_harmed(&self) -> bool {
        self.column(8) == "**yes**"
    }
}

fn text_of(row: &Row) -> String {
    let share = |part: u64, all: u64| match all {
        0 => "–".to_owned(),
        all => format!("{:.0} %", (part.min(all) as f64 / all as f64 * 100.0).floor()),
    };
    let harm = if row.is_harmed { "**yes**" } else { "no" };
    let seen = row.anonymous_bytes.saturating_sub(row.unseen_bytes);
    format!(
        "| {} | {} | {} | {} | {:.1} | {} | {} | {} | {harm} | {} |",
        row.name,
        row.kind,
        row.way,
        row.events,
        row.anonymous_bytes as f64 / f64::from(1 << 20),
        share(row.explained_bytes, row.anonymous_bytes),
        share(seen, row.anonymous_bytes),
        share(row.named.0, row.named.1),
        message(row)
    )
}

/// Returns the message without the parts that change from run to run.
fn message(row: &Row) -> String {
    let text = row.message.replace('|', "\\|");
    let text = text.split_once("MiB of its").map_or(text.clone(), |(before, rest)| {
        let mib = before.rsplit(' ').find(|word| !word.is_empty()).unwrap_or_default();
        format!("{mib} MiB of its{rest}")
    });
    let lost = if row.lost > 0 { "**lost events** " } else { "" };
    let silent = if row.is_silent() { "**silent** " } else { "" };
    format!("{lost}{silent}{text}")
}

/// Content of the page.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Page {
    /// Text between the sums and the table, written by hand.
    notes: String,
    lines: Vec<Line>,
}

const HEAD: &str = "| program | kind | way | events | memory | explained | in blocks | named | harm | message |\n\
                    |---|---|---|---:|---:|---:|---:|---:|---|---|\n";
/// Ends of the sums and of their explanation; the notes follow.
const SUMS: &str = " lost events.\n\n";
const EXPLAINED: &str = "is in no block.)\n\n";

impl Page {
    pub(super) fn read(text: &str) -> Self {
        let between = text.split_once(EXPLAINED).and_then(|(_, rest)| rest.split_once(HEAD));
        Self {
            notes: between.map_or(String::new(), |(notes, _)| notes.to_owned()),
            lines: text.lines().filter_map(Line::read).collect(),
        }
    }

    /// Replaces lines of the same program and way, and sorts all in the programs' order.
    pub(super) fn merge(&mut self, lines: &[Line], programs: &[Program]) {
        let is_same = |one: &Line, other: &Line| one.name == other.name && one.way == other.way;
        self.lines.retain(|known| !lines.iter().any(|line| is_same(line, known)));
        self.lines.extend_from_slice(lines);
        let place = |line: &Line| programs.iter().position(|program| program.name == line.name);
        self.lines.retain(|line| place(line).is_some());
        self.lines.sort_by_key(|line| (place(line), line.way == "attach"));
    }

    pub(super) fn text(&self, programs: &[Program]) -> String {
        let count = |is_so: fn(&Line) -> bool| self.lines.iter().filter(|line| is_so(line)).count();
        let mut text = format!(
            "# Coverage of real programs\n\n\
             `cargo xtask matrix` writes this page: it installs the programs (`--install`), runs them, or attaches\n\
             to them.\n\n\
             * *Memory*: largest anonymous memory of the largest process in MiB, without heapr's own. It is\n  \
             `–` for a process that never has 3 MiB.\n\
             * *Explained*: share of the memory with a known owner. Owners are recorded blocks, free memory of\n  \
             their allocator, data, stacks, mappings whose caller is known, and heaps of named runtimes.\n\
             * *In blocks*: the same share without mappings and heaps of runtimes. A warning names the memory\n  \
             that is in no block.\n\
             * *Named*: share of the recorded bytes at the peak whose stack has three named frames outside of\n  \
             the C library and C++'s.\n\n\
             {} rows: {} explained to 95 % or more, {} seen whole, {} silent, {} harmed, {}{SUMS}\
             (Seen whole: less than a tenth of the memory, or 3 MiB, {EXPLAINED}{}{HEAD}",
            self.lines.len(),
            count(Line::is_explained),
            count(Line::is_whole),
            count(Line::is_silent),
            count(Line::is_harmed),
            count(|line| line.text.contains("**lost events**")),
            self.notes,
        );
        for line in &self.lines {
            let _ = writeln!(text, "{}", line.text);
        }
        let is_missing = |program: &&Program| !self.lines.iter().any(|line| line.name == program.name);
        let missing: Vec<&str> =
            programs.iter().filter(is_missing).map(|program| program.name.as_str()).collect();
        if !missing.is_empty() {
            let _ = writeln!(text, "\nNot installed when the page was made: {}.", missing.join(", "));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(name: &str) -> Program {
        Program { name: name.to_owned(), ..Program::default() }
    }

    #[test]
    fn a_page_comes_back_as_it_was_and_takes_new_rows_in_their_place() {
        let programs = [program("one"), program("two"), program("three")];
        let row = |name: &str, way: &'static str, unseen_bytes: u64| Row {
            name: name.to_owned(),
            way,
            events: 5,
            anonymous_bytes: 100 << 20,
            explained_bytes: 96 << 20,
            unseen_bytes,
            ..Row::default()
        };
        let lines = |rows: &[Row]| rows.iter().map(Line::of).collect::<Vec<_>>();
        let mut page = Page { notes: "By hand.\n\n".to_owned(), lines: Vec::new() };
        page.merge(&lines(&[row("three", "run", 0), row("one", "attach", 50 << 20)]), &programs);
        let text = page.text(&programs);
        assert_eq!(Page::read(&text), page);
        assert!(text.contains("2 rows: 2 explained to 95 % or more, 1 seen whole"), "{text}");
        assert!(
            text.contains("1 silent, 0 harmed, 0 lost") && text.contains("page was made: two."),
            "{text}"
        );
        page.merge(&lines(&[row("one", "run", 1 << 20), row("one", "attach", 2 << 20)]), &programs);
        let names: Vec<_> = page.lines.iter().map(|line| (line.name.as_str(), line.way.as_str())).collect();
        assert_eq!(names, [("one", "run"), ("one", "attach"), ("three", "run")]);
        assert!(page.text(&programs).contains("3 seen whole"));
    }
}
