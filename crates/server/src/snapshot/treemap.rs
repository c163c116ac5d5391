//! Treemap of retained sizes: by the dominator tree, or by class.

use std::collections::BinaryHeap;

use heapr_table::SortRows as _;
use serde::Deserialize;

use super::rows::short;
use crate::error::Result;
use crate::request::{Answer, Context, json, read};
use crate::treemap_columns::{NODES_MAX, TreemapColumns};

/// Largest number of children of an object that are shown; the root of a large heap has millions.
const CHILDREN_MAX: usize = 2_000;

#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
struct TreemapRequest {
    file: usize,
    id: Option<u64>,
    by: AreasBy,
    least_share: f64,
    nodes_max: usize,
}

impl Default for TreemapRequest {
    fn default() -> Self {
        Self { file: usize::MAX, id: None, by: AreasBy::Dominators, least_share: 0.001, nodes_max: 2_000 }
    }
}

/// Meaning of the areas.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum AreasBy {
    /// Objects within their dominators.
    Dominators,
    Classes,
}

/// Name of an area: the class for stores of maps and arrays, which have no name.
fn area_name(name: &str, class: &str) -> String {
    short(if name.is_empty() { class } else { name })
}

pub(super) fn treemap(context: &Context<'_>, body: &[u8]) -> Result<Answer> {
    let request: TreemapRequest = read(body)?;
    let file = context.files.snapshot(request.file)?;
    let objects = file.view.objects();
    let most = request.nodes_max.clamp(1, NODES_MAX);
    let share = if request.least_share.is_finite() { request.least_share.clamp(0.0, 1.0) } else { 0.0 };
    let mut columns: TreemapColumns<u64> = TreemapColumns::new(most);
    let root = request.id.map_or(Ok(file.view.root()), |id| file.node(id))?;
    let told = |error| file.error(&error);
    let command = match request.by {
        AreasBy::Classes => {
            // Self sizes: retained sizes of different classes overlap.
            let summary = file.summary()?;
            let total: u64 = summary.classes.iter().map(|class| class.self_bytes).sum();
            columns.push(None, None, "(total)".to_owned(), total, 0);
            let mut classes: Vec<_> = summary.classes.iter().collect();
            classes.sort_rows_by_key(|class| std::cmp::Reverse(class.self_bytes));
            let least = ((total as f64 * share) as u64).max(1);
            for class in classes.into_iter().take(most - 1).filter(|class| class.self_bytes >= least) {
                columns.push(None, Some(0), class.name.clone(), class.self_bytes, class.self_bytes);
            }
            file.command("summary", &["--sort", "shallow"])
        }
        AreasBy::Dominators => {
            let row = file.view.row(root).map_err(told)?;
            let least = ((row.retained_bytes as f64 * share) as u64).max(1);
            columns.push(
                Some(row.id),
                None,
                area_name(&row.name, &row.class),
                row.retained_bytes,
                row.self_bytes,
            );
            // Largest objects first, so that the rest is small.
            let mut waiting = BinaryHeap::from([(row.retained_bytes, std::cmp::Reverse(0_usize), root)]);
            while let Some((_, std::cmp::Reverse(at), node)) = waiting.pop() {
                context.cancel.check()?;
                let mut below: Vec<(u64, u32)> = objects
                    .dominated_by(node)
                    .iter()
                    .map(|&child| (objects.retained_bytes(child), child))
                    .filter(|&(retained, _)| retained >= least)
                    .collect();
                below.sort_unstable_by_key(|&(retained, child)| (std::cmp::Reverse(retained), child));
                for (retained, child) in below.into_iter().take(CHILDREN_MAX) {
                    if columns.len() == most {
                        break;
                    }
                    let row = file.view.row(child).map_err(told)?;
                    let pushed = columns.push(
                        Some(row.id),
                        Some(at),
                        area_name(&row.name, &row.class),
                        retained,
                        row.self_bytes,
                    );
                    waiting.extend(pushed.map(|number| (retained, std::cmp::Reverse(number), child)));
                }
                if columns.len() == most {
                    break;
                }
            }
            file.command("dominators", &[&format!("@{}", objects.id(root))])
        }
    };
    json(&columns.finish("heapr.view.snapshot.treemap/1", command))
}
