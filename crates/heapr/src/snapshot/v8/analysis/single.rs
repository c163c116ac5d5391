//! `heapr snapshot suspects FILE`: a single snapshot has no growth, so that large groups of similar
//! objects come first.

use std::io::Write;
use std::process::ExitCode;

use heapr_table::Table;
use heapr_v8::analysis::{LargeOwner, Naming, duplicated_strings, large_owners, owner_table};
use heapr_v8::devtools::Heap;
use heapr_v8::view::Objects;

use super::path_text::path_lines;
use super::suspects_text::objects;
use crate::output::{Format, print_table};
use crate::plain_text::{PlainText, one_line, printed};
use crate::snapshot::v8::heap_file::Answered;
use heapr_table::quantity::{bytes, count};

/// Largest owners of a heap.
pub(super) struct Found {
    owners: Vec<LargeOwner>,
    /// Bytes of copies of texts.
    wasted_bytes: u64,
}

impl Found {
    /// Takes them from the answers of an index.
    pub(super) fn kept(answered: &Answered, top: usize) -> Option<Self> {
        let owners = answered.answers.large_owners(top)?.to_vec();
        Some(Self { owners, wasted_bytes: answered.answers.wasted_text_bytes })
    }

    /// Finds them.
    pub(super) fn of(heap: &Heap, top: usize) -> Self {
        let texts = duplicated_strings(heap, usize::MAX);
        Self {
            owners: large_owners(heap, &Naming::of(heap), top),
            wasted_bytes: texts.iter().map(|found| found.wasted_bytes).fold(0, u64::saturating_add),
        }
    }
}

/// Owners in the form that is printed.
pub(super) enum Answer {
    /// Text without characters that a terminal acts on.
    Text(Vec<u8>),
    Table(Table),
}

impl Answer {
    /// Puts the owners of a heap, which may be in memory or in an index, into a form.
    pub(super) fn of(heap: &impl Objects, found: &Found, format: Format) -> std::io::Result<Self> {
        if format != Format::Text {
            let table = owner_table("heapr.snapshot.owners/1", heap, &found.owners, str::to_owned);
            return Ok(Self::Table(table));
        }
        let mut text = Vec::new();
        write_text(&mut PlainText(&mut text), heap, found)?;
        Ok(Self::Text(text))
    }

    /// Prints it.
    pub(super) fn print(&self, format: Format) -> anyhow::Result<ExitCode> {
        match self {
            Self::Text(text) => {
                let mut out = printed(false);
                out.write_all(text)?;
                out.flush()?;
            }
            Self::Table(table) => {
                print_table(table, format, &[])?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn write_text(out: &mut impl Write, heap: &impl Objects, found: &Found) -> std::io::Result<()> {
    writeln!(out, "one snapshot shows what is large, not what grows: take another one later and give both")?;
    for (number, owner) in found.owners.iter().enumerate() {
        writeln!(out)?;
        writeln!(out, "{}. {}", number + 1, one_line(&owner.called.whole(None)))?;
        writeln!(out, "   retains    {} (@{})", bytes(owner.retained_bytes), heap.id(owner.node))?;
        writeln!(
            out,
            "   holds      {}, {} of them {}",
            objects(owner.count),
            count(owner.class_count),
            one_line(&owner.class)
        )?;
        if let Some(place) = &owner.called.place {
            writeln!(out, "   made at    {}", one_line(&place.to_string()))?;
        }
        for (line, text) in path_lines(&owner.path).into_iter().enumerate() {
            writeln!(out, "   {:10} {text}", if line == 0 { "held by" } else { "" })?;
        }
    }
    writeln!(out)?;
    writeln!(out, "{} are copies of strings: heapr snapshot strings", bytes(found.wasted_bytes))
}
