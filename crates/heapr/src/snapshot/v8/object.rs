//! `heapr snapshot object`: all details of one object.

use std::path::PathBuf;
use std::process::ExitCode;

use heapr_v8::devtools::BASE_SYSTEM_DISTANCE;
use heapr_v8::view::{FieldOrder, FieldRow, Listed, ObjectDetails, ObjectRow, Objects, Page};
use heapr_v8::{DomState, EdgeKind, NodeKind};

use crate::output::{OutputArguments, print_table};
use crate::plain_text::one_line;
use crate::snapshot::v8::heap_file::{ObjectId, ask, details_with_stack};
use heapr_table::quantity::{bytes, count};
use heapr_table::{Column, Table, row};

/// Arguments of `heapr snapshot object`.
#[derive(Debug, clap::Args)]
pub(crate) struct ObjectArguments {
    /// The snapshot
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The object
    #[arg(value_name = "@ID")]
    object: ObjectId,
    #[command(flatten)]
    output: OutputArguments,
}

/// Functions of an allocation's stack that are printed; JSON has all of them.
const MOST_FUNCTIONS: usize = 8;

/// Runs the command.
pub(crate) fn run(arguments: ObjectArguments) -> anyhow::Result<ExitCode> {
    let output = &arguments.output;
    ask(
        &arguments.file,
        |view| {
            let node = arguments.object.node_in(view)?;
            let fields = view.children(node, FieldOrder::Object, Page::top(output.top()))?;
            let values = fields.rows.iter().map(|field| value_text(view.objects(), &field.object)).collect();
            Ok((details_with_stack(view, node)?, fields, values))
        },
        |(details, fields, values)| print(output, &details, fields, values),
    )
}

fn print(
    output: &OutputArguments,
    details: &ObjectDetails,
    fields: Listed<FieldRow>,
    values: Vec<String>,
) -> anyhow::Result<ExitCode> {
    let mut sheet = Table::new(
        "heapr.snapshot.object/1",
        &[
            Column::text("field", "Field"),
            Column::text("edge_type", "Type"),
            Column::id("id", "Id"),
            Column::text("value", "Value"),
            Column::bytes("retained_bytes", "Retained"),
        ],
    );
    let mut title = Vec::new();
    for (key, heading, fact) in facts(details) {
        title.push(format!("{heading:16} {}", fact.text));
        sheet.fact(key, fact.value);
    }
    title.push(String::new());
    sheet.left_off(fields.total_count - fields.rows.len() as u64);
    sheet.rows(
        usize::MAX,
        fields.rows.into_iter().zip(values).map(|(field, value)| {
            row![field.field, field.edge_kind, field.object.id, value, field.object.retained_bytes,]
        }),
    );
    print_table(&sheet, output.format, &title)?;
    Ok(ExitCode::SUCCESS)
}

struct Fact {
    text: String,
    value: serde_json::Value,
}

fn facts(details: &ObjectDetails) -> Vec<(&'static str, &'static str, Fact)> {
    let text = |text: &str| Fact { value: text.to_owned().into(), text: one_line(text) };
    let size =
        |amount: u64| Fact { value: amount.into(), text: format!("{} ({} B)", bytes(amount), count(amount)) };
    let (object, dominator) = (&details.row, &details.dominator);
    let distance = object.distance;
    let distance_text = match distance {
        BASE_SYSTEM_DISTANCE.. => {
            format!("{} from the root; no global object leads here", distance - BASE_SYSTEM_DISTANCE)
        }
        ..0 => "none: not reachable".to_owned(),
        _ => distance.to_string(),
    };
    let mut facts = vec![
        ("id", "object", Fact { value: object.id.into(), text: format!("@{}", object.id) }),
        ("name", "name", text(&object.name)),
        ("class", "class", text(&object.class)),
        ("type", "type", text(&object.kind)),
        ("shallow_bytes", "shallow size", size(object.self_bytes)),
        ("retained_bytes", "retained size", size(object.retained_bytes)),
        ("distance", "distance", Fact { value: distance.into(), text: distance_text }),
        (
            "dominator_id",
            "dominated by",
            Fact {
                value: dominator.id.into(),
                text: format!("@{} {}", dominator.id, one_line(&dominator.name)),
            },
        ),
    ];
    if let Some(place) = &details.place {
        facts.push(("place", "made in", text(place)));
    }
    match details.dom_state {
        DomState::Unknown => {}
        state => facts.push(("dom_state", "DOM node", text(&format!("{state:?}").to_lowercase()))),
    }
    if !details.allocated_by.is_empty() {
        let functions: Vec<String> = details.allocated_by.iter().map(ToString::to_string).collect();
        let text = stack_text(&functions);
        facts.push(("allocated_by", "allocated by", Fact { value: functions.into(), text }));
    }
    facts
}

/// Formats the innermost functions of an allocation's stack.
pub(super) fn stack_text(functions: &[String]) -> String {
    one_line(&functions[..functions.len().min(MOST_FUNCTIONS)].join(" <- "))
}

/// Formats the value of a field. Strings are in quotes; numbers are shown if the snapshot has them.
fn value_text(objects: &dyn Objects, object: &ObjectRow) -> String {
    let kind = objects.kind(object.node);
    if kind.is_string() {
        return format!("\"{}\"", object.name);
    }
    if kind == NodeKind::NUMBER {
        let mut edges = objects.edges(object.node);
        let value = edges.find(|&edge| {
            objects.edge_kind(edge) == EdgeKind::INTERNAL
                && *objects.string_bytes(objects.edge_name_index(edge)) == *b"value"
        });
        if let Some(value) = value {
            return objects.name(objects.target(value)).into_owned();
        }
    }
    object.name.clone()
}
