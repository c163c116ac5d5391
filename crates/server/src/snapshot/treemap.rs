//! Retained sizes as a treemap: the dominator tree, or the classes.

use std::collections::{BinaryHeap, HashMap};

use serde::{Deserialize, Serialize};

use super::rows::short;
use crate::api::{Answer, Context, json, read};
use crate::error::{Error, Result};

/// Most nodes of an answer.
const NODES_MAX: usize = 20_000;
/// Children that are looked at of one object: those of the root of a large heap are millions.
const CHILDREN_MAX: usize = 2_000;

#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
struct TreemapRequest {
    file: usize,
    id: Option<u64>,
    by: String,
    least_share: f64,
    nodes_max: usize,
}

impl Default for TreemapRequest {
    fn default() -> Self {
        Self { file: usize::MAX, id: None, by: "dominators".to_owned(), least_share: 0.001, nodes_max: 2_000 }
    }
}

#[derive(Default, Serialize)]
struct Nodes {
    id: Vec<Option<u64>>,
    parent: Vec<i64>,
    name: Vec<u32>,
    value: Vec<u64>,
    #[serde(rename = "self")]
    own: Vec<u64>,
    left_out: Vec<u64>,
}

#[derive(Serialize)]
struct TreemapJson {
    schema: &'static str,
    command: String,
    total: u64,
    names: Vec<String>,
    nodes: Nodes,
}

#[derive(Default)]
struct Names {
    names: Vec<String>,
    numbers: HashMap<String, u32>,
}

impl Names {
    fn number(&mut self, name: String) -> u32 {
        if let Some(&number) = self.numbers.get(&name) {
            return number;
        }
        let number = self.names.len() as u32;
        self.names.push(name.clone());
        self.numbers.insert(name, number);
        number
    }
}

/// What an area is called: stores of maps and arrays have no name of their own.
fn area_name(name: &str, class: &str) -> String {
    short(if name.is_empty() { class } else { name })
}

pub(super) fn treemap(context: &Context<'_>, body: &[u8]) -> Result<Answer> {
    let request: TreemapRequest = read(body)?;
    let file = context.files.snapshot(request.file)?;
    let objects = file.view.objects();
    let most = request.nodes_max.clamp(1, NODES_MAX);
    let share = if request.least_share.is_finite() { request.least_share.clamp(0.0, 1.0) } else { 0.0 };
    let (mut names, mut nodes) = (Names::default(), Nodes::default());
    let mut push = |names: &mut Names, id, parent: i64, name: String, value: u64, own: u64| {
        nodes.id.push(id);
        nodes.parent.push(parent);
        nodes.name.push(names.number(name));
        nodes.value.push(value);
        nodes.own.push(own);
        nodes.left_out.push(value.saturating_sub(own));
        if let Ok(parent) = usize::try_from(parent) {
            nodes.left_out[parent] = nodes.left_out[parent].saturating_sub(value);
        }
    };
    let root = request.id.map_or(Ok(file.view.root()), |id| file.node(id))?;
    let told = |error| file.error(&error);
    let command = match request.by.as_str() {
        "classes" => {
            // Own sizes: retained ones of different classes overlap.
            let summary = file.summary()?;
            let total: u64 = summary.classes.iter().map(|class| class.self_bytes).sum();
            push(&mut names, None, -1, "(total)".to_owned(), total, 0);
            let mut classes: Vec<_> = summary.classes.iter().collect();
            classes.sort_by_key(|class| std::cmp::Reverse(class.self_bytes));
            let least = ((total as f64 * share) as u64).max(1);
            for class in classes.into_iter().take(most - 1).filter(|class| class.self_bytes >= least) {
                push(&mut names, None, 0, class.name.clone(), class.self_bytes, class.self_bytes);
            }
            file.command("summary", &["--sort", "shallow"])
        }
        "dominators" => {
            let row = file.view.row(root).map_err(told)?;
            let least = ((row.retained_bytes as f64 * share) as u64).max(1);
            push(&mut names, Some(row.id), -1, area_name(&row.name, &row.class), row.retained_bytes, row.self_bytes);
            let mut count = 1;
            // The greatest first, so that what is left out is small.
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
                    if count == most {
                        break;
                    }
                    let row = file.view.row(child).map_err(told)?;
                    push(&mut names, Some(row.id), at as i64, area_name(&row.name, &row.class), retained, row.self_bytes);
                    waiting.push((retained, std::cmp::Reverse(count), child));
                    count += 1;
                }
                if count == most {
                    break;
                }
            }
            file.command("dominators", &[&format!("@{}", objects.id(root))])
        }
        by => return Err(Error::bad("by", format!("{by:?} is neither dominators nor classes"))),
    };
    let total = nodes.value.first().copied().unwrap_or(0);
    json(&TreemapJson { schema: "heapr.view.snapshot.treemap/1", command, total, names: names.names, nodes })
}
