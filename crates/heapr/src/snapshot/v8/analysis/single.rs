//! `heapr snapshot suspects FILE`: one snapshot alone has no growth; what is large and alike comes
//! first.

use std::io::Write;
use std::process::ExitCode;

use heapr_v8::analysis::{LargeOwner, Naming, duplicated_strings, large_owners, path_json};
use heapr_v8::devtools::Heap;
use serde_json::{Value, json};

use super::path_text::path_lines;
use super::suspects_text::objects;
use crate::output::Format;
use crate::plain_text::{one_line, printed};
use heapr_table::csv::quoted;
use heapr_table::quantity::{bytes, count};

pub(super) fn run(heap: &Heap, top: usize, format: Format) -> anyhow::Result<ExitCode> {
    let naming = Naming::of(heap);
    let owners = large_owners(heap, &naming, top);
    let mut out = printed(format == Format::Text);
    match format {
        Format::Text => write_text(&mut out, heap, &owners)?,
        Format::Json => {
            let owners: Vec<Value> = owners.iter().map(|owner| owner_json(heap, owner)).collect();
            writeln!(out, "{:#}", json!({ "schema": "heapr.snapshot.owners/1", "owners": owners }))?;
        }
        Format::Csv => write_csv(&mut out, heap, &owners)?,
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

fn write_text(out: &mut impl Write, heap: &Heap, owners: &[LargeOwner]) -> std::io::Result<()> {
    writeln!(out, "one snapshot shows what is large, not what grows: take another one later and give both")?;
    for (number, owner) in owners.iter().enumerate() {
        writeln!(out)?;
        writeln!(out, "{}. {}", number + 1, one_line(&owner.called.text))?;
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

fn write_csv(out: &mut impl Write, heap: &Heap, owners: &[LargeOwner]) -> std::io::Result<()> {
    writeln!(out, "rank,name,id,retained_bytes,count,class,class_count,place")?;
    for (rank, owner) in owners.iter().enumerate() {
        let place = owner.called.place.as_ref().map(ToString::to_string).unwrap_or_default();
        writeln!(
            out,
            "{},{},{},{},{},{},{},{}",
            rank + 1,
            quoted(&owner.called.text),
            heap.snapshot().id(owner.node),
            owner.retained_bytes,
            owner.count,
            quoted(&owner.class),
            owner.class_count,
            quoted(&place)
        )?;
    }
    Ok(())
}

fn owner_json(heap: &Heap, owner: &LargeOwner) -> Value {
    json!({
        "name": owner.called.text,
        "id": heap.snapshot().id(owner.node),
        "retained_bytes": owner.retained_bytes,
        "count": owner.count,
        "class": owner.class,
        "class_count": owner.class_count,
        "place": owner.called.place.as_ref().map(ToString::to_string),
        "path": path_json(&owner.path, str::to_owned),
    })
}
