//! `heapr snapshot suspects FILE`: a single snapshot has no growth, so that large groups of similar
//! objects come first.

use std::io::Write;
use std::process::ExitCode;

use heapr_v8::analysis::{LargeOwner, Naming, duplicated_strings, large_owners, owner_table};
use heapr_v8::devtools::Heap;

use super::path_text::path_lines;
use super::suspects_text::objects;
use crate::output::{Format, print_table};
use crate::plain_text::{one_line, printed};
use heapr_table::quantity::{bytes, count};

pub(super) fn run(heap: &Heap, top: usize, format: Format) -> anyhow::Result<ExitCode> {
    let naming = Naming::of(heap);
    let owners = large_owners(heap, &naming, top);
    if format != Format::Text {
        let table = owner_table("heapr.snapshot.owners/1", heap, &owners, str::to_owned);
        print_table(&table, format, &[])?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut out = printed(true);
    write_text(&mut out, heap, &owners)?;
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

fn write_text(out: &mut impl Write, heap: &Heap, owners: &[LargeOwner]) -> std::io::Result<()> {
    writeln!(out, "one snapshot shows what is large, not what grows: take another one later and give both")?;
    for (number, owner) in owners.iter().enumerate() {
        writeln!(out)?;
        writeln!(out, "{}. {}", number + 1, one_line(&owner.called.whole(None)))?;
        writeln!(out, "   retains    {} (@{})", bytes(owner.retained_bytes), heap.snapshot().id(owner.node))?;
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
    let wasted: u64 = duplicated_strings(heap, usize::MAX).iter().map(|found| found.wasted_bytes).sum();
    writeln!(out)?;
    writeln!(out, "{} are copies of strings: heapr snapshot strings", bytes(wasted))
}
