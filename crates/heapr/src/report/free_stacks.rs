//! `heapr report --free-stacks`: stacks of frees, of double frees, and of frees of unknown blocks.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};

use heapr_query::json::{FrameJson, SamplingJson};
use heapr_query::{FrameView, FreeSites, Freed, Metric, StackGroups};
use heapr_trace::{Amounts, StackIndex};
use serde_json::{Value, json};

use super::amounts_text::{amount, things};
use super::frame_text::{frame_line, frame_name};
use heapr_export::Subject;
use heapr_table::SortRows as _;
use heapr_table::csv::quoted;
use heapr_table::quantity::{count, percent, plural};

heapr_trace::block_members! {
    /// Freed blocks, in JSON.
    struct FreedBlocks { count: count, bytes: bytes }
}

/// Frees with the same kind and the same stacks.
#[derive(Debug, Clone)]
struct Row {
    freed: Freed,
    stack: StackIndex,
    /// Number of calls, and the bytes that they freed.
    amounts: Amounts,
}

/// Report on stacks of frees.
pub(crate) struct FreeReport<'t> {
    groups: StackGroups<'t>,
    rows: Vec<Row>,
    left_out: usize,
    all: Amounts,
    without_stack: Amounts,
}

/// Kinds of frees: names for programs, and titles.
const KINDS: [(&str, &str); 4] = [
    ("freed_twice", "FREED TWICE (what is free already)"),
    ("freed_unknown", "FREED UNKNOWN (what was never seen allocated)"),
    ("freed_inherited", "FREED INHERITED (what a forked child has from its parent)"),
    ("freed", "FREED"),
];

fn kind(freed: Freed) -> &'static str {
    match freed {
        Freed::Twice { .. } => KINDS[0].0,
        Freed::Unknown => KINDS[1].0,
        Freed::Inherited => KINDS[2].0,
        Freed::Live => KINDS[3].0,
    }
}

/// Returns the stacks of frees, and the stacks that explain them.
pub(crate) fn stacks(found: &FreeSites) -> Vec<StackIndex> {
    let of_site = |freed: Freed| match freed {
        Freed::Twice { before, allocated } => vec![before, allocated],
        _ => Vec::new(),
    };
    found.sites.iter().flat_map(|site| [of_site(site.freed), vec![site.stack]].concat()).collect()
}

impl<'t> FreeReport<'t> {
    /// Sums frees with the same kind and stacks; at most `top` rows of each kind.
    pub(crate) fn new(found: &FreeSites, groups: StackGroups<'t>, top: usize) -> Self {
        let place = |stack: StackIndex| groups.group_of(stack);
        let alike = |freed: Freed, stack: StackIndex| match freed {
            Freed::Twice { before, allocated } => {
                (kind(freed), [place(stack), place(before), place(allocated)])
            }
            _ => (kind(freed), [place(stack), None, None]),
        };
        let mut rows: Vec<Row> = Vec::new();
        let mut places = HashMap::new();
        for site in found.sites.iter().filter(|site| place(site.stack).is_some()) {
            let at = *places.entry(alike(site.freed, site.stack)).or_insert_with(|| {
                rows.push(Row { freed: site.freed, stack: site.stack, amounts: Amounts::default() });
                rows.len() - 1
            });
            rows[at].amounts += &site.amounts;
        }
        let without = rows.iter().filter(|row| row.stack == StackIndex::EMPTY);
        let without_stack = without.map(|row| &row.amounts).sum();
        let all = rows.iter().map(|row| &row.amounts).sum();
        rows.sort_rows_by_key(|row| Reverse((row.amounts.total_bytes, row.amounts.total_count)));
        let mut shown = BTreeMap::new();
        let before = rows.len();
        rows.retain(|row| {
            let number = shown.entry(kind(row.freed)).or_insert(0_usize);
            *number += 1;
            *number <= top
        });
        let left_out = before - rows.len();
        Self { groups, rows, left_out, all, without_stack }
    }

    fn of_kind(&self, name: &str) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(move |row| kind(row.freed) == name)
    }

    fn frames(&self, stack: StackIndex) -> Vec<FrameView<'_>> {
        self.groups.group_of(stack).map(|group| self.groups.frames(group)).unwrap_or_default()
    }

    /// Writes the report as text.
    pub(crate) fn write_text(
        &self,
        out: &mut dyn Write,
        subject: &Subject,
        (width, depth): (usize, usize),
    ) -> io::Result<()> {
        let frees = |amounts: &Amounts| things(Metric::TotalCount, amounts, "free");
        writeln!(out, "{}: {}", subject.file, frees(&self.all))?;
        if let Some(sampled) = &subject.sampled {
            writeln!(out, "Counted: {sampled}; frees of what was not allocated are not known")?;
        }
        if self.without_stack.total_count > 0 {
            let of_them = frees(&self.without_stack);
            writeln!(out, "{of_them} without a stack: record with --stack-events alloc,realloc,free")?;
        }
        for (name, title) in KINDS {
            if self.of_kind(name).next().is_none() {
                continue;
            }
            writeln!(out, "\n{title} by stack")?;
            for (number, row) in self.of_kind(name).enumerate() {
                let size = match row.amounts.total_bytes {
                    0 => String::new(),
                    _ => format!(", {}", amount(Metric::TotalBytes, &row.amounts)),
                };
                let share = percent(row.amounts.total_count, self.all.total_count);
                writeln!(out, "\n#{}  {}{size} ({share})", number + 1, frees(&row.amounts))?;
                self.write_stack(out, row.stack, (width, depth))?;
                if let Freed::Twice { before, allocated } = row.freed {
                    writeln!(out, "    freed before by")?;
                    self.write_stack(out, before, (width, depth))?;
                    writeln!(out, "    allocated by")?;
                    self.write_stack(out, allocated, (width, depth))?;
                }
            }
        }
        if self.left_out > 0 {
            writeln!(out, "\n… and {}; --top N shows more", plural(self.left_out as u64, "more stack"))?;
        }
        Ok(())
    }

    fn write_stack(
        &self,
        out: &mut dyn Write,
        stack: StackIndex,
        (width, depth): (usize, usize),
    ) -> io::Result<()> {
        let frames = self.frames(stack);
        if frames.is_empty() {
            return writeln!(out, "      (no stack was taken)");
        }
        for frame in frames.iter().take(depth) {
            writeln!(out, "      {}", frame_line(frame, width.saturating_sub(6)))?;
        }
        match frames.len().checked_sub(depth) {
            Some(left_out @ 1..) => writeln!(out, "      … {} more", count(left_out as u64)),
            _ => Ok(()),
        }
    }

    /// Returns the report as JSON, schema `heapr.free-stacks/1`.
    pub(crate) fn json(&self, subject: &Subject) -> Value {
        let frames = |stack: StackIndex| -> Vec<FrameJson> {
            self.frames(stack).iter().map(FrameJson::from).collect()
        };
        let row = |row: &Row| {
            let mut value = json!(FreedBlocks::from(row.amounts.allocated()));
            value["frames"] = json!(frames(row.stack));
            if let Freed::Twice { before, allocated } = row.freed {
                value["freed_before_frames"] = json!(frames(before));
                value["allocated_frames"] = json!(frames(allocated));
            }
            value
        };
        let mut value = json!({
            "schema": "heapr.free-stacks/1",
            "file": subject.file,
            "warnings": subject.warnings,
            "sampling": SamplingJson::of(&subject.sampling),
            "free_count": self.all.total_count,
            "free_count_plus_minus": Metric::TotalCount.plus_minus(&self.all),
            "without_stack_count": self.without_stack.total_count,
        });
        for (name, _) in KINDS {
            value[name] = self.of_kind(name).map(row).collect();
        }
        value
    }

    /// Writes the report as CSV.
    pub(crate) fn write_csv(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(
            out,
            "kind,count,bytes,frames,freed_before_frames,allocated_frames,count_plus_minus,bytes_plus_minus"
        )?;
        let stack = |stack: StackIndex| {
            let names: Vec<String> = self.frames(stack).iter().map(frame_name).collect();
            quoted(&names.join(" <- "))
        };
        for (name, _) in KINDS {
            for row in self.of_kind(name) {
                let (before, allocated) = match row.freed {
                    Freed::Twice { before, allocated } => (stack(before), stack(allocated)),
                    _ => (String::new(), String::new()),
                };
                writeln!(
                    out,
                    "{name},{},{},{},{before},{allocated},{},{}",
                    row.amounts.total_count,
                    row.amounts.total_bytes,
                    stack(row.stack),
                    Metric::TotalCount.plus_minus(&row.amounts),
                    Metric::TotalBytes.plus_minus(&row.amounts),
                )?;
            }
        }
        Ok(())
    }
}
