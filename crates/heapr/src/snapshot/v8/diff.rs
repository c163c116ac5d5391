//! `heapr snapshot diff`: lists new and deleted objects between snapshots.

use std::process::ExitCode;

use heapr_v8::analysis::{
    Comparison, MatchedBy, ObjectDifference, compare_by_graph, compare_by_id, compare_class,
};
use heapr_v8::devtools::{Heap, Population, ScriptPaths};

use crate::output::print_table;
use crate::snapshot::limit::{Limit, TOTAL, exit_status};
use crate::snapshot::v8::doubts::doubts;
use crate::snapshot::v8::heap_file::{Wanted, open};
use crate::snapshot::v8::profile_diff::{self, are_profiles};
use crate::snapshot::v8::trend;
use crate::snapshot::verbs::DiffQuestion;
use heapr_table::SortRows as _;
use heapr_table::quantity::{count, plural, signed_bytes, signed_count};
use heapr_table::{Column, Table, row};

/// Options for V8 heaps only.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub(crate) struct DiffOptions {
    /// List the new and deleted objects of this class instead
    #[arg(long, value_name = "NAME")]
    class: Option<String>,
}

/// Runs the command.
pub(super) fn run(asked: &DiffQuestion, options: &DiffOptions) -> anyhow::Result<ExitCode> {
    let (before, after) = match &asked.files[..] {
        [before, after] if are_profiles(before, after)? => {
            let output = &asked.output;
            anyhow::ensure!(
                asked.fail_if_growth.is_empty() && options.class.is_none(),
                "sampling profiles have no classes: heapr diff A B --fail-if-growth BYTES"
            );
            return profile_diff::run(before, after, output.format, output.top(), None);
        }
        [before, after] => (before, after),
        [_, _, ..] => return trend::run(asked),
        _ => anyhow::bail!("two or more V8 snapshots are compared: name another file"),
    };
    // The first snapshot is classified like the second one, which is therefore read first. Only one
    // is in memory at a time.
    let new = Population::of(&*open(after, Wanted::Classes)?, None);
    let old = Population::of(&*open(before, Wanted::Classes)?, Some(new.interfaces()));
    let comparison = match compare_by_id(&old, &new) {
        Some(comparison) => comparison,
        // Places are found by walking both graphs together.
        None => compare_by_graph(&*open(before, Wanted::Classes)?, &*open(after, Wanted::Classes)?),
    };
    let warnings = doubts((before, &old), (after, &new), comparison.matched_by);
    for warning in &warnings {
        warn!("{warning}");
    }
    match &options.class {
        None => print_classes(asked, new.script_paths(), &comparison, &warnings)?,
        Some(class) => {
            drop((old, new));
            let (before, after) = (open(before, Wanted::Classes)?, open(after, Wanted::Classes)?);
            print_objects(asked, &before, &after, &comparison, class)?;
        }
    }
    let grown = |limit: &Limit| -> (i64, i64) {
        let all = comparison.classes.iter();
        let of_class = all.filter(|line| {
            limit.class == TOTAL || line.class.name_text() == limit.class || line.class.key() == limit.class
        });
        of_class
            .fold((0, 0), |(objects, bytes), line| (objects + line.count_delta(), bytes + line.bytes_delta()))
    };
    Ok(exit_status(&asked.fail_if_growth, "object", grown))
}

fn print_classes(
    asked: &DiffQuestion,
    paths: &ScriptPaths,
    comparison: &Comparison,
    warnings: &[String],
) -> anyhow::Result<()> {
    let mut columns = vec![
        Column::text("class", "Class"),
        Column::text("place", "Constructor"),
        Column::count("new_count", "New"),
        Column::count("deleted_count", "Deleted"),
        Column::count("count_delta", "Delta"),
        Column::bytes("new_bytes", "New size"),
        Column::bytes("deleted_bytes", "Deleted size"),
        Column::bytes("bytes_delta", "Size delta"),
    ];
    let is_by_address = comparison.matched_by == MatchedBy::Address;
    let do_contents_tell = comparison.do_contents_tell();
    if do_contents_tell {
        columns.push(Column::count("refilled_count", "Other contents"));
    }
    let mut sheet = Table::new("heapr.snapshot.diff/1", &columns);
    sheet.fact("heap", "v8");
    sheet.fact("warnings", warnings);
    sheet.fact("kept_count", comparison.kept_count);
    sheet.fact("matched_by", comparison.matched_by.key());
    if is_by_address {
        sheet.fact("by_address_count", comparison.by_address_count);
    }
    sheet.rows(
        asked.output.top(),
        comparison.classes.iter().map(|line| {
            let place =
                line.class.location.map(|(script_id, line, column)| paths.place_at(script_id, line, column));
            let mut row = row![
                line.class.name_text().into_owned(),
                place,
                line.new_count,
                line.deleted_count,
                line.count_delta(),
                line.new_bytes,
                line.deleted_bytes,
                line.bytes_delta(),
            ];
            if do_contents_tell {
                row.push(line.refilled_count.into());
            }
            row
        }),
    );
    let [before, after] = [&asked.files[0], &asked.files[1]].map(|file| file.display());
    let total: (i64, i64) = comparison
        .classes
        .iter()
        .fold((0, 0), |(objects, bytes), line| (objects + line.count_delta(), bytes + line.bytes_delta()));
    let title = format!(
        "{before} -> {after}: {} objects, {}; {} in both",
        signed_count(i128::from(total.0)),
        signed_bytes(i128::from(total.1)),
        plural(comparison.kept_count, "object")
    );
    let mut lines = vec![title];
    lines.extend(is_by_address.then(|| sentence_on_addresses(comparison)));
    lines.push(String::new());
    print_table(&sheet, asked.output.format, &lines)
}

/// Says how far the objects of both snapshots are known to be the same ones.
fn sentence_on_addresses(comparison: &Comparison) -> String {
    let refilled_count = comparison.classes.iter().map(|line| line.refilled_count).sum();
    let mut text =
        format!("told by address and class alone: {} of these", count(comparison.by_address_count));
    if refilled_count > 0 {
        text += &format!(
            "; {} nothing of the contents that the earlier one had (Other contents): another object, \
             or the same one filled anew",
            if refilled_count == 1 {
                "one has".to_owned()
            } else {
                format!("{} have", count(refilled_count))
            }
        );
    }
    text
}

fn print_objects(
    asked: &DiffQuestion,
    before: &Heap,
    after: &Heap,
    comparison: &Comparison,
    class: &str,
) -> anyhow::Result<()> {
    let mut sheet = Table::new(
        "heapr.snapshot.diff-objects/1",
        &[
            Column::text("change", "Change"),
            Column::id("id", "Id"),
            Column::text("name", "Object"),
            Column::bytes("shallow_bytes", "Shallow"),
        ],
    );
    let named =
        comparison.classes.iter().filter(|line| line.class.name_text() == class || line.class.key() == class);
    let mut found = false;
    for line in named {
        found = true;
        let mut objects = compare_class(before, after, comparison.matched_by, &line.class);
        // New objects come first; the largest of a kind first.
        objects.sort_rows_by_key(|&object| match object {
            ObjectDifference::New(node) => (0, std::cmp::Reverse(after.snapshot().self_bytes(node))),
            ObjectDifference::Deleted(node) => (1, std::cmp::Reverse(before.snapshot().self_bytes(node))),
        });
        sheet.rows(
            asked.output.top(),
            objects.into_iter().map(|object| {
                let (change, heap, node) = match object {
                    ObjectDifference::New(node) => ("new", after, node),
                    ObjectDifference::Deleted(node) => ("deleted", before, node),
                };
                row![
                    change,
                    heap.snapshot().id(node),
                    heap.display_text(node),
                    heap.snapshot().self_bytes(node),
                ]
            }),
        );
    }
    if !found {
        anyhow::bail!("no objects of a class {class:?} came or went");
    }
    print_table(&sheet, asked.output.format, &[format!("{class}:"), String::new()])
}
