//! Amounts held in one graph, by the names of their holders: variables, frames, mappings.
//!
//! A variable counts as a whole, so that its name stays the same from graph to graph.

use std::collections::HashMap;

use anyhow::Context as _;
use heapr_native::Holders;
use heapr_trace::RootClass;

use super::graph_file::GraphFile;
use super::places::{BEHIND_MODULE, Places};

/// Beginning of the name of several holders that hold a block only together.
pub(super) const TOGETHER: &str = "together: ";

/// Amount that one holder holds alone, or several together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(super) struct Held {
    pub(super) bytes: u64,
    pub(super) count: u64,
}

/// Holders of a graph, single or together.
pub(super) struct HeldHeap {
    /// Name of each holder.
    pub(super) names: Vec<String>,
    pub(super) holders: Holders,
}

impl HeldHeap {
    pub(super) fn of(file: &GraphFile) -> anyhow::Result<Self> {
        let mut places = Places::of(file);
        let mut numbers: HashMap<String, u32> = HashMap::new();
        let mut names: Vec<String> = Vec::new();
        let holder_of = file.graph.roots.iter().map(|root| {
            let area = &file.graph.areas[root.area as usize];
            let name = match area.class {
                RootClass::Global => {
                    let name = places.name(area, root.offset_bytes);
                    // The module is unknown to the recording.
                    if name.starts_with('+') { format!("{} {name}", places.area_name(area)) } else { name }
                }
                RootClass::Stack | RootClass::ThreadLocal => {
                    match places.thread_local(area, root.offset_bytes) {
                        // Names this thread's variable as a whole.
                        Some(variable) => {
                            let variable = variable.split("+0x").next().unwrap_or(&variable);
                            let thread = places.area_name(area);
                            // A module's variable has the module in its name.
                            let thread = thread.split(", TLS ").next().unwrap_or(&thread);
                            format!("{}, {variable}", thread.strip_suffix(" stack").unwrap_or(thread))
                        }
                        None => places.area_name(area),
                    }
                }
                _ => places.area_name(area),
            };
            let name = match area.class {
                RootClass::Global if name.contains('!') || name.starts_with(BEHIND_MODULE) => {
                    name.split("+0x").next().unwrap_or(&name).to_owned()
                }
                _ => name,
            };
            *numbers.entry(name).or_insert_with_key(|name| {
                names.push(name.clone());
                names.len() as u32 - 1
            })
        });
        let holder_of: Vec<u32> = holder_of.collect();
        let size = |node: u32| file.blocks[node as usize].size_bytes;
        let holders = Holders::of(&file.graph, &holder_of, names.len() as u32, size);
        let holders = holders.context("the graph is too large")?;
        let joint: Vec<String> = holders.joint().map(|of| together(of, &names)).collect();
        names.extend(joint);
        Ok(Self { names, holders })
    }

    /// Returns for each holder what it holds alone, of the blocks that `counts` accepts.
    pub(super) fn held(&self, file: &GraphFile, counts: impl Fn(u32) -> bool) -> Vec<Held> {
        let size = |node: u32| file.blocks[node as usize].size_bytes;
        let bytes = self.holders.sums(|node| if counts(node) { size(node) } else { 0 });
        let blocks = self.holders.sums(|node| u64::from(counts(node)));
        let of = |holder: u32| Held {
            bytes: self.holders.of_holder(holder, &bytes),
            count: self.holders.of_holder(holder, &blocks),
        };
        (0..self.names.len() as u32).map(of).collect()
    }

    /// Returns what each holder holds alone, by name.
    pub(super) fn by_name(&self, file: &GraphFile) -> HashMap<String, Held> {
        self.names.iter().cloned().zip(self.held(file, |_| true)).collect()
    }
}

/// Returns the name of several holders, the same in each graph whatever their numbers are.
fn together(holders: &[u32], names: &[String]) -> String {
    /// Most holders named; a longer list is of no help.
    const NAMED_MAX: usize = 3;
    let mut named: Vec<&str> = holders.iter().map(|&holder| names[holder as usize].as_str()).collect();
    named.sort_unstable();
    let others = if named.len() > NAMED_MAX { " and others" } else { "" };
    named.truncate(NAMED_MAX);
    format!("{TOGETHER}{}{others}", named.join(", "))
}
