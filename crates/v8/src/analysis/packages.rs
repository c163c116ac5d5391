//! Heap bytes by npm package, workspace or source file.
//!
//! An object belongs to the code of its constructor. A function and the variables of its calls
//! belong to their script. Nodes without code of their own (texts, arrays, Maps, objects of the
//! runtime) belong to the nearest dominator that has code.

use std::collections::HashMap;

use heapr_table::SortRows as _;
use rustc_hash::FxHashMap;

use super::heap_view::HeapView;
use super::naming::Naming;
use crate::NodeKind;

/// Unit by which code is grouped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CodeUnit {
    /// npm package, workspace of a monorepo, or the rest of the program.
    Package,
    /// Source file.
    File,
}

/// Part of the heap that belongs to one unit of code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeShare {
    /// Name of the package or path of the file.
    pub name: String,
    /// Number of objects that belong to the unit.
    pub object_count: u64,
    /// Bytes of those objects. The shares add up to the heap.
    pub own_bytes: u64,
    /// Bytes that only these objects keep alive, including objects of other code. For objects
    /// without code, only the sum of their self sizes: the root retains everything.
    pub retained_bytes: u64,
}

/// Name of the share of objects that belong to no code of the program.
const NO_CODE: &str = "(runtime and roots)";
/// Name of the share of the program's own files that are in no package or workspace.
const OWN_CODE: &str = "(own code)";

/// Returns the shares of all code in the heap, most bytes first.
pub fn code_shares<H: HeapView>(heap: &H, naming: &Naming<'_, H>, unit: CodeUnit) -> Vec<CodeShare> {
    let owners = Owners::of(heap, naming, unit);
    let mut shares: Vec<CodeShare> = owners
        .names
        .iter()
        .map(|name| CodeShare { name: name.clone(), object_count: 0, own_bytes: 0, retained_bytes: 0 })
        .collect();
    for (node, &owner) in (0..).zip(&owners.of_nodes) {
        let share = &mut shares[owner as usize];
        share.object_count += 1;
        share.own_bytes = share.own_bytes.saturating_add(heap.self_bytes(node));
    }
    add_retained(heap, &owners.of_nodes, &mut shares);
    shares.retain(|share| share.object_count > 0);
    shares.sort_rows_by(|a, b| (b.own_bytes, &a.name).cmp(&(a.own_bytes, &b.name)));
    shares
}

/// Owner of each node, as an index into the names.
struct Owners {
    names: Vec<String>,
    of_nodes: Vec<u32>,
}

impl Owners {
    fn of<H: HeapView>(heap: &H, naming: &Naming<'_, H>, unit: CodeUnit) -> Self {
        let mut names = vec![NO_CODE.to_owned()];
        let mut numbers: HashMap<String, u32> = HashMap::new();
        // Most objects belong to few scripts.
        let mut of_scripts: FxHashMap<String, Option<u32>> = FxHashMap::default();
        let dominators = heap.dominators();
        let mut of_nodes = vec![0; heap.node_count() as usize];
        for &node in dominators.order() {
            let has_place =
                matches!(heap.kind(node), NodeKind::CLOSURE | NodeKind::OBJECT | NodeKind::HIDDEN)
                    && (heap.location(node).is_some() || naming.is_context(node));
            let own = has_place.then(|| naming.place(node)).flatten().and_then(|place| {
                *of_scripts.entry(place.script.clone()).or_insert_with(|| {
                    let is_of_the_program = place.has_path && !place.is_of_the_runtime();
                    let name = owner_name(&place.script, unit).filter(|_| is_of_the_program)?;
                    let next = names.len() as u32;
                    Some(*numbers.entry(name).or_insert_with_key(|name| {
                        names.push(name.clone());
                        next
                    }))
                })
            });
            let above = of_nodes[dominators.idom(node) as usize];
            of_nodes[node as usize] = own.unwrap_or(above);
        }
        Self { names, of_nodes }
    }
}

/// Adds the bytes that the outermost objects of each owner retain.
fn add_retained(heap: &impl HeapView, of_nodes: &[u32], shares: &mut [CodeShare]) {
    const NO_OWNER: usize = 0;
    let dominators = heap.dominators();
    let mut retained: Vec<u64> = (0..of_nodes.len() as u32).map(|node| heap.self_bytes(node)).collect();
    // Linked lists of the nodes that each node dominates.
    let mut next = vec![u32::MAX; of_nodes.len()];
    let mut first = vec![u32::MAX; of_nodes.len()];
    for &node in dominators.order().iter().skip(1).rev() {
        let above = dominators.idom(node) as usize;
        retained[above] = retained[above].saturating_add(retained[node as usize]);
        next[node as usize] = std::mem::replace(&mut first[above], node);
    }
    let mut open = vec![0u32; shares.len()];
    let mut walk = vec![(dominators.root(), false)];
    while let Some((node, is_left)) = walk.pop() {
        let owner = of_nodes[node as usize] as usize;
        if is_left {
            open[owner] -= 1;
            continue;
        }
        if open[owner] == 0 && owner != NO_OWNER {
            let sum = &mut shares[owner].retained_bytes;
            *sum = sum.saturating_add(retained[node as usize]);
        }
        open[owner] += 1;
        walk.push((node, true));
        let mut below = first[node as usize];
        while below != u32::MAX {
            walk.push((below, false));
            below = next[below as usize];
        }
    }
    if let Some(without_owner) = shares.get_mut(NO_OWNER) {
        without_owner.retained_bytes = without_owner.own_bytes;
    }
}

/// Returns the unit that a script belongs to, or `None` for a script without a name.
fn owner_name(script: &str, unit: CodeUnit) -> Option<String> {
    if script.is_empty() {
        return None;
    }
    if unit == CodeUnit::File {
        return Some(script.to_owned());
    }
    let parts: Vec<&str> = script.split(['/', '\\']).collect();
    // The innermost `node_modules` folder counts: packages contain packages.
    if let Some(at) = parts.iter().rposition(|part| *part == "node_modules")
        && let Some(name) = parts.get(at + 1)
    {
        return Some(match parts.get(at + 2) {
            Some(second) if name.starts_with('@') => format!("{name}/{second}"),
            _ => (*name).to_owned(),
        });
    }
    let workspace = parts
        .windows(3)
        .find(|three| matches!(three[0], "packages" | "apps" | "libs" | "services" | "workspaces"));
    Some(match workspace {
        Some(three) => format!("{}/{}", three[0], three[1]),
        None => OWN_CODE.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_belongs_to_the_innermost_package() {
        for (script, package) in [
            ("/srv/node_modules/a/index.js", "a"),
            ("/srv/node_modules/a/node_modules/@b/c/lib/x.js", "@b/c"),
            ("/srv/node_modules/.pnpm/undici@6.1.0/node_modules/undici/index.js", "undici"),
            ("C:\\srv\\node_modules\\a\\index.js", "a"),
            ("/home/me/shop/packages/store/src/a.ts", "packages/store"),
            ("/home/me/shop/src/a.ts", OWN_CODE),
            ("/home/me/packages/a.ts", OWN_CODE),
            ("https://example.org/app.js", OWN_CODE),
        ] {
            assert_eq!(owner_name(script, CodeUnit::Package).as_deref(), Some(package), "{script}");
            assert_eq!(owner_name(script, CodeUnit::File).as_deref(), Some(script));
        }
        assert_eq!(owner_name("", CodeUnit::Package), None);
        assert_eq!(owner_name("/srv/node_modules", CodeUnit::Package).as_deref(), Some(OWN_CODE));
    }
}
