//! Variables that a context keeps alive although no function uses them.
//!
//! ```text
//!  function make() { const big = …, small = …;  return () => small; }
//!
//!  closure --context--> Context --big-->  alive with the closure: another nested function, which
//!                          |  `--small--> is freed, used `big`, and all share one context
//!                          `--previous--> Context of the function around
//! ```
//!
//! A variable is reported only if no function that can reach its context uses its name, and the
//! texts of all these functions are known. Contexts with other referrers (a waiting generator, a
//! stack frame) are left out.

use heapr_table::SortRows as _;
use rustc_hash::{FxHashMap, FxHashSet};

use super::heap_view::{EdgeName, HeapView, field};
use super::naming::Naming;
use super::scripts::{Place, is_of_the_runtime};
use crate::devtools::SubtreeCounts;
use crate::script_text::{ScriptText, Uses};
use crate::{EdgeKind, Location, NodeKind};

/// Variable that no function can use, in all contexts of one function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnusedVariable {
    /// Name of the variable.
    pub name: String,
    /// Class of its value; the most frequent one if the contexts differ.
    pub class: String,
    /// Number of contexts that hold the variable.
    pub count: u64,
    /// Bytes that would be freed if the variables were cleared.
    pub retained_bytes: u64,
    /// Context whose variable retains most.
    pub example: u32,
    /// Value of the variable in that context.
    pub example_value: u32,
    /// Name of a function that keeps the context alive.
    pub kept_by: String,
    /// Source location of that function.
    pub place: Option<Place>,
}

/// Unused variables, and functions that could not be examined.
#[derive(Debug, Default)]
pub struct UnusedVariables {
    /// Unused variables, most bytes first.
    pub variables: Vec<UnusedVariable>,
    /// Number of functions whose text is unknown or could not be parsed. They count as using every
    /// variable in reach.
    pub unknown_function_count: u64,
    /// Scripts of those functions.
    pub unknown_scripts: Vec<String>,
}

/// Returns the text of a script, by number and name.
pub type TextOf<'a> = &'a dyn Fn(u32, &str) -> Option<String>;

/// Largest number of holders of a value; with more, the value counts as held elsewhere.
const MAX_RETAINERS_LOOKED_AT: usize = 512;
/// Largest number of nested contexts that are followed.
const MAX_DEPTH: usize = 256;

/// Returns the variables that no function uses.
pub fn unused_variables<H: HeapView>(
    heap: &H,
    naming: &Naming<'_, H>,
    text_of: TextOf<'_>,
) -> UnusedVariables {
    let mut users = Users::of(heap, naming);
    users.forget_what_others_use(heap, naming);
    let paths = heap.script_paths();
    let is_own = |&(_, path): &(&u32, &String)| !is_of_the_runtime(path);
    let first_own = paths.all().iter().filter(is_own).map(|(&id, _)| id).min().unwrap_or(0);
    let is_of_the_runtime = |id: u32, path: &str| {
        if path.is_empty() { id < first_own } else { is_of_the_runtime(path) }
    };
    let mut sources = Sources { text_of, scripts: FxHashMap::default(), unknown: FxHashSet::default() };
    let uses: Vec<Uses> = users
        .functions
        .iter()
        .map(|&(location, _)| {
            let path = paths.get(location.script_id).unwrap_or("");
            let is_told = !is_of_the_runtime(location.script_id, path);
            sources.uses(location, path, is_told)
        })
        .collect();
    let counts = SubtreeCounts::of(heap.dominators());
    let mut positions = vec![0u32; heap.node_count() as usize];
    for (position, &node) in (0..).zip(heap.dominators().order()) {
        positions[node as usize] = position;
    }
    let tree = Tree { counts, positions };
    let mut groups: FxHashMap<(u32, String), Vec<Found>> = FxHashMap::default();
    for (&context, functions) in &users.of_contexts {
        let place = |&&function: &&u32| {
            let (Location { script_id, line, column, .. }, _) = users.functions[function as usize];
            (script_id, line, column)
        };
        let Some(&first) = functions.iter().min_by_key(place) else { continue };
        let unused = variables(heap, context).into_iter().filter(|(name, _)| {
            !name.starts_with('.') && !functions.iter().any(|&function| uses[function as usize].has(name))
        });
        let unused: Vec<(String, u32)> = unused.collect();
        let values: Vec<u32> = unused.iter().map(|&(_, value)| value).collect();
        for (name, value) in unused {
            if tree.is_held_only_so(heap, context, value, &values) {
                groups.entry((first, name)).or_default().push(Found { context, value });
            }
        }
    }
    let group = |((function, name), found): ((u32, String), Vec<Found>)| {
        let (_, closure) = users.functions[function as usize];
        tree.sum_up(heap, naming, (name, closure), found)
    };
    let mut variables: Vec<UnusedVariable> = groups.into_iter().map(group).collect();
    variables.retain(|variable| variable.retained_bytes > 0);
    variables.sort_rows_by(|a, b| {
        (b.retained_bytes, &a.name, a.example).cmp(&(a.retained_bytes, &b.name, b.example))
    });
    let mut unknown_scripts: Vec<String> = sources.unknown.into_iter().collect();
    unknown_scripts.sort_rows();
    let is_unknown = |((location, _), uses): &(&(Location, u32), &Uses)| {
        let path = paths.get(location.script_id).unwrap_or("");
        **uses == Uses::Everything && !is_of_the_runtime(location.script_id, path)
    };
    let unknown_function_count = users.functions.iter().zip(&uses).filter(is_unknown).count() as u64;
    UnusedVariables { variables, unknown_function_count, unknown_scripts }
}

/// Returns the variables of a context by the names in the snapshot.
fn variables<H: HeapView>(heap: &H, context: u32) -> Vec<(String, u32)> {
    let edges = heap.graph().edges(context).filter(|&edge| heap.edge_kind(edge) == EdgeKind::CONTEXT);
    let named = edges.filter_map(|edge| match heap.edge_name(edge) {
        EdgeName::Name(name) => Some((name.into_owned(), heap.graph().target(edge))),
        EdgeName::Index(_) => None,
    });
    named.collect()
}

/// Variable of one context.
struct Found {
    context: u32,
    value: u32,
}

/// Functions that can reach each context.
struct Users {
    /// Each function text once, with one of its closures.
    functions: Vec<(Location, u32)>,
    of_contexts: FxHashMap<u32, FxHashSet<u32>>,
}

impl Users {
    fn of<H: HeapView>(heap: &H, naming: &Naming<'_, H>) -> Self {
        let mut users = Self { functions: Vec::new(), of_contexts: FxHashMap::default() };
        let mut numbers: FxHashMap<(u32, u32, u32), u32> = FxHashMap::default();
        for closure in 0..heap.node_count() {
            if heap.kind(closure) != NodeKind::CLOSURE {
                continue;
            }
            let Some(location) = heap.location(closure) else { continue };
            let key = (location.script_id, location.line, location.column);
            let number = *numbers.entry(key).or_insert_with(|| {
                users.functions.push((location, closure));
                users.functions.len() as u32 - 1
            });
            let context = field(heap, closure, &["context"]);
            users.add(heap, naming, context, number);
        }
        users
    }

    /// Notes that a function reaches a context and the contexts around it.
    fn add<H: HeapView>(&mut self, heap: &H, naming: &Naming<'_, H>, context: Option<u32>, function: u32) {
        let mut at = context;
        for _ in 0..MAX_DEPTH {
            let Some(context) = at.filter(|&context| naming.is_context(context)) else { return };
            let functions = self.of_contexts.entry(context).or_default();
            if !functions.insert(function) {
                // The contexts around it have the function as well.
                return;
            }
            at = field(heap, context, &["previous"]);
        }
    }

    /// Removes contexts that are referred to by anything but functions and inner contexts.
    fn forget_what_others_use<H: HeapView>(&mut self, heap: &H, naming: &Naming<'_, H>) {
        let is_used_otherwise = |context: u32| {
            heap.retainers().edges_into(context).iter().any(|&edge| {
                let holder = heap.graph().source(edge);
                match heap.kind(holder) {
                    NodeKind::CLOSURE => false,
                    // Code compiled for this context runs only through a function that has the
                    // context.
                    NodeKind::CODE => false,
                    _ if heap.edge_kind(edge) == EdgeKind::WEAK => false,
                    _ => !naming.is_context(holder),
                }
            })
        };
        self.of_contexts.retain(|&context, _| !is_used_otherwise(context));
    }
}

/// Scripts that were parsed. Nameless scripts before the program's first one belong to the runtime.
struct Sources<'a> {
    text_of: TextOf<'a>,
    scripts: FxHashMap<u32, Option<ScriptText>>,
    unknown: FxHashSet<String>,
}

impl Sources<'_> {
    /// Returns the names that a function uses. `is_told`: an unknown script is added to `unknown`.
    fn uses(&mut self, location: Location, path: &str, is_told: bool) -> Uses {
        let Location { script_id, line, column, .. } = location;
        let text_of = self.text_of;
        let read = || text_of(script_id, path).and_then(ScriptText::of);
        let script = self.scripts.entry(script_id).or_insert_with(read);
        match script {
            Some(script) => script.uses_at(line, column),
            None => {
                let name = if path.is_empty() { format!("script {script_id}") } else { path.to_owned() };
                if is_told {
                    self.unknown.insert(name);
                }
                Uses::Everything
            }
        }
    }
}

/// Dominator tree as ranges of positions.
struct Tree {
    counts: SubtreeCounts,
    positions: Vec<u32>,
}

impl Tree {
    fn is_within(&self, node: u32, above: u32) -> bool {
        let start = self.positions[above as usize];
        (start..start + self.counts.of_node(above)).contains(&self.positions[node as usize])
    }

    /// Whether a value is held only by unused variables of the context and by objects that the
    /// value dominates.
    fn is_held_only_so<H: HeapView>(&self, heap: &H, context: u32, value: u32, unused: &[u32]) -> bool {
        let edges = heap.retainers().edges_into(value);
        if edges.len() > MAX_RETAINERS_LOOKED_AT || heap.dominators().idom(value) != context {
            return false;
        }
        edges.iter().all(|&edge| {
            let holder = heap.graph().source(edge);
            let is_of_context = holder == context && heap.edge_kind(edge) == EdgeKind::CONTEXT;
            let is_variable = is_of_context && unused.contains(&heap.graph().target(edge));
            is_variable
                || heap.edge_kind(edge) == EdgeKind::WEAK
                || holder != context && self.is_within(holder, value)
        })
    }

    fn sum_up<H: HeapView>(
        &self,
        heap: &H,
        naming: &Naming<'_, H>,
        (name, closure): (String, u32),
        mut found: Vec<Found>,
    ) -> UnusedVariable {
        // A value within another one is counted with that one.
        found.sort_by_key(|found| self.positions[found.value as usize]);
        let (mut retained_bytes, mut end) = (0u64, 0);
        for Found { value, .. } in &found {
            let position = self.positions[*value as usize];
            if position >= end {
                retained_bytes = retained_bytes.saturating_add(heap.retained_bytes(*value));
                end = position + self.counts.of_node(*value);
            }
        }
        let mut classes: FxHashMap<String, u64> = FxHashMap::default();
        for found in &found {
            *classes.entry(naming.own_name(found.value)).or_default() += 1;
        }
        let class = classes.into_iter().max_by(|a, b| (a.1, &b.0).cmp(&(b.1, &a.0)));
        let largest = found.iter().max_by_key(|found| (heap.retained_bytes(found.value), found.context));
        let (example, example_value) = largest.map_or((0, 0), |found| (found.context, found.value));
        UnusedVariable {
            name: naming.variable_in_sources(example, name.into()).into_owned(),
            class: class.map(|(class, _)| class).unwrap_or_default(),
            count: found.len() as u64,
            retained_bytes,
            example,
            example_value,
            kept_by: naming.own_name(closure),
            place: naming.place(closure),
        }
    }
}
