//! What DevTools does not list: collections, shapes, fan-out, detached nodes, what nothing holds,
//! variables of closures.

use heapr_v8::analysis::{self, CollectionOrder, Naming};
use heapr_v8::devtools::Heap;
use serde::Deserialize;
use serde_json::{Value, json};

use super::rows::short;
use crate::error::Result;
use crate::request::{Answer, Context, json as answer_json, read};

/// Every line has a name to be looked for.
const TOP_MAX: usize = 10_000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ListingRequest {
    file: usize,
    #[serde(default = "crate::request::number::<100>")]
    top: usize,
}

fn place(place: Option<&analysis::Place>) -> Value {
    place.map_or(Value::Null, |place| place.to_string().into())
}

/// One of the lists, by the name of its command.
pub(super) fn listing(context: &Context<'_>, name: &'static str, body: &[u8]) -> Result<Answer> {
    let request: ListingRequest = read(body)?;
    let file = context.files.snapshot(request.file)?;
    let heap = file.heap(context.cancel)?;
    let heap: &Heap = &heap;
    let top = request.top.min(TOP_MAX);
    let id = |node: u32| heap.snapshot().id(node);
    let naming = Naming::of(heap);
    // One more tells whether there are more.
    let most = top + 1;
    let mut rows: Vec<Value> = match name {
        "collections" => analysis::collections(heap, CollectionOrder::Largest, most)
            .into_iter()
            .map(|found| {
                json!({
                    "reference_count": found.reference_count, "store_bytes": found.store_bytes, "fill_percent": found.fill_percent,
                    "retained_bytes": found.retained_bytes, "class": naming.own_name(found.node), "id": id(found.node),
                    "name": short(&naming.call(found.node).text),
                })
            })
            .collect(),
        "shapes" => analysis::shapes(heap, most)
            .into_iter()
            .map(|found| {
                json!({
                    "self_bytes": found.self_bytes, "retained_bytes": found.retained_bytes, "count": found.count,
                    "example_id": id(found.example), "shape": short(&format!("{} {{{}}}", found.class, found.fields.join(", "))),
                })
            })
            .collect(),
        "fanout" => analysis::fanout(heap, most)
            .into_iter()
            .map(|found| {
                json!({
                    "reference_count": found.reference_count, "main_class_count": found.main_class_count, "main_class": found.main_class,
                    "retained_bytes": found.retained_bytes, "id": id(found.node), "name": short(&naming.call(found.node).text),
                })
            })
            .collect(),
        "detached" => analysis::detached(heap, most)
            .into_iter()
            .map(|found| {
                let path = analysis::path_from_root(heap, &naming, found.node);
                json!({
                    "retained_bytes": found.retained_bytes, "detached_count": found.detached_count,
                    "node": short(&heap.snapshot().name_text(found.node)), "id": id(found.node), "held_by": naming.held_by(found.node),
                    "place": place(path.iter().rev().find_map(|step| step.place.as_ref())),
                })
            })
            .collect(),
        "unreachable" => analysis::unreachable(heap, most)
            .into_iter()
            .map(|found| json!({"self_bytes": found.self_bytes, "count": found.count, "example_id": id(found.example), "class": found.class}))
            .collect(),
        _ => analysis::contexts_of_variables(heap, &naming, most)
            .into_iter()
            .map(|found| {
                let variables: Vec<String> = found.variables.into_iter().map(|variable| variable.name).collect();
                json!({
                    "retained_bytes": found.retained_bytes, "function_count": found.function_count, "id": id(found.node),
                    "place": place(found.place.as_ref()), "variables": short(&variables.join(", ")),
                })
            })
            .collect(),
    };
    context.cancel.check()?;
    let is_cut = rows.len() > top;
    rows.truncate(top);
    answer_json(&json!({
        "schema": format!("heapr.view.snapshot.{name}/1"),
        "command": file.command(name, &[]),
        "rows": rows,
        "is_cut": is_cut,
    }))
}
