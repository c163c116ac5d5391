//! References from outside of the heap: modules, threads, running frames, the runtime's own data.

use rustc_hash::FxHashSet;

use super::dict;
use super::frames::untagged;
use super::objects::{is_pointer, reference_count, type_of};
use super::reader::{ASK_EACH, Reader};
use super::types::Form;
use super::unreached::Unreached;
use crate::error::Result;
use crate::heap::{Edge, EdgeKind, EdgeName, Root, RootKind};
use crate::symbols::{data_of, end_of_module, module_starts};

const THREADS_MAX: usize = 1 << 16;
const FRAMES_MAX: usize = 1 << 14;
/// Frame on the evaluating function's own stack.
const OWNED_BY_STACK: u8 = 3;

impl Reader<'_, '_> {
    /// Adds the roots, and a row for the objects that nothing leads to.
    pub(super) fn add_roots(&mut self) -> Result<()> {
        for (number, interpreter_avma) in self.runtime.interpreters.clone().into_iter().enumerate() {
            let of = if number == 0 { String::new() } else { format!(" of interpreter {number}") };
            self.add_modules(interpreter_avma, &of)?;
            self.add_threads(interpreter_avma, &of)?;
        }
        self.read_late_nodes()?;
        let mut reached = self.reached_by_roots();
        self.add_runtimes_data(&mut reached)?;
        self.add_inside_references(&mut reached)?;
        self.check()?;
        self.count_references_of_blocks(&mut reached);
        self.check()?;
        self.add_other_blocks(&mut reached)?;
        self.add_unreached(&mut reached);
        Ok(())
    }

    /// Follows the references of nodes that were found after all others.
    pub(super) fn read_late_nodes(&mut self) -> Result<()> {
        while self.heap.first_edges.len() <= self.heap.nodes.len() {
            let node = self.heap.first_edges.len() - 1;
            if node.is_multiple_of(ASK_EACH) {
                self.check()?;
            }
            self.read_fields(node as u32)?;
            self.heap.first_edges.push(self.heap.edges.len() as u32);
        }
        Ok(())
    }

    pub(super) fn root_edge(&mut self, edges: &mut Vec<Edge>, word: u64, name: EdgeName) -> Result<()> {
        if let Some(target) = self.node_at(word)? {
            let target = self.folded.get(&target).copied().unwrap_or(target);
            self.push_root_edge(edges, target, name)?;
        }
        Ok(())
    }

    fn add_modules(&mut self, interpreter_avma: u64, of: &str) -> Result<()> {
        let modules = self.pages.word_or_zero(interpreter_avma + self.layout.modules);
        let sys_dict = self.pages.word_or_zero(interpreter_avma + self.layout.sys_dict);
        let mut found = Vec::new();
        if is_pointer(modules) {
            dict::entries(self.pages, self.layout, modules, |_, key, value| found.push((key, value)));
        }
        let mut edges = Vec::new();
        for (key, value) in found {
            let name = self.attribute(EdgeKind::Attribute, key);
            self.root_edge(&mut edges, value, name)?;
        }
        let mut own = Vec::new();
        for (word, name) in [(modules, "sys.modules"), (sys_dict, "sys.__dict__")] {
            let name = self.internal(name);
            self.root_edge(&mut own, word, name)?;
        }
        self.push_root(format!("(modules{of})"), RootKind::Owner, 0, edges);
        self.push_root(format!("(interpreter{of})"), RootKind::Runtime, 0, own);
        Ok(())
    }

    pub(super) fn push_root(&mut self, name: String, kind: RootKind, place: u32, edges: Vec<Edge>) {
        if !edges.is_empty() {
            self.heap.roots.push(Root { name, kind, place, edges });
        }
    }

    fn add_threads(&mut self, interpreter_avma: u64, of: &str) -> Result<()> {
        let mut thread_avma = self.pages.word_or_zero(interpreter_avma + self.layout.first_thread);
        let mut seen = FxHashSet::default();
        let mut threads = Vec::new();
        while is_pointer(thread_avma) && threads.len() < THREADS_MAX && seen.insert(thread_avma) {
            threads.push(thread_avma);
            thread_avma = self.pages.word_or_zero(thread_avma + self.layout.next_thread);
        }
        // The newest is the first of the list.
        threads.reverse();
        let names = self.names_of_threads(interpreter_avma);
        for (number, thread_avma) in threads.into_iter().enumerate() {
            let id = self.pages.word_or_zero(thread_avma + self.layout.thread_id);
            let named = names.iter().find(|(known, _)| *known == id).map(|(_, name)| name.clone());
            let name = named.unwrap_or_else(|| format!("{}", number + 1));
            let mut edges = Vec::new();
            let dict = self.internal("(dict)");
            let word = self.pages.word_or_zero(thread_avma + self.layout.thread_dict);
            self.root_edge(&mut edges, word, dict)?;
            // Exceptions under way, and other states, by their words.
            let state = self.internal("(state)");
            for offset in (0..self.layout.thread_dict.max(256)).step_by(8) {
                let word = self.pages.word_or_zero(thread_avma + offset);
                let is_frame = offset == self.layout.thread_frame;
                if !is_frame && is_pointer(word) {
                    self.root_edge(&mut edges, word, state)?;
                }
            }
            self.push_root(format!("thread {name}{of}"), RootKind::Program, 0, edges);
            self.add_frames(thread_avma)?;
        }
        Ok(())
    }

    /// Names of threads by their ids, from `threading._active`.
    fn names_of_threads(&mut self, interpreter_avma: u64) -> Vec<(u64, String)> {
        let modules = self.pages.word_or_zero(interpreter_avma + self.layout.modules);
        let Some(threading) = self.types.entry(modules, "threading") else { return Vec::new() };
        let dict_avma = self.pages.word_or_zero(threading.wrapping_add(super::objects::MODULE_DICT));
        let Some(active) = self.types.entry(dict_avma, "_active") else { return Vec::new() };
        let mut found = Vec::new();
        dict::entries(self.pages, self.layout, active, |_, key, value| found.push((key, value)));
        let of_each = found.into_iter().filter_map(|(key, thread)| {
            let node = self.map.get(thread)?;
            let edges = self.heap.edges_of(node);
            let name = edges.iter().find_map(|edge| {
                let is_name = edge.name.kind() == EdgeKind::Attribute
                    && matches!(self.heap.strings.get(edge.name.number()), "_name" | "_Thread__name");
                is_name.then_some(self.heap.nodes[edge.target as usize].address_avma)
            })?;
            Some((self.number_at(key)?, self.types.text_at(name, 64)?))
        });
        of_each.collect()
    }

    /// Value of an int below 2^60.
    fn number_at(&self, avma: u64) -> Option<u64> {
        let of = self.types.at(type_of(self.pages, avma)?)?;
        let digits = if self.layout.version >= 0x030c {
            self.pages.word(avma + 16)? >> 3
        } else {
            self.pages.word(avma + 16)?
        };
        let digit = |number: u64| self.pages.half(avma + 24 + number * 4).map(u64::from);
        match (of.form, digits) {
            (Form::Int, 1) => digit(0),
            (Form::Int, 2) => Some(digit(0)? | digit(1)? << 30),
            _ => None,
        }
    }

    fn add_frames(&mut self, thread_avma: u64) -> Result<()> {
        let layout = self.layout;
        let first = self.pages.word_or_zero(thread_avma + layout.thread_frame);
        let mut frame_avma = match layout.cframe {
            Some(offset) if is_pointer(first) => self.pages.word_or_zero(first + offset),
            Some(_) => 0,
            None => first,
        };
        let mut seen = FxHashSet::default();
        for _ in 0..FRAMES_MAX {
            // Frames that lead around were changed meanwhile.
            if !is_pointer(frame_avma) || !seen.insert(frame_avma) {
                return Ok(());
            }
            let is_shim = layout.has_frame_structures()
                && layout.version >= 0x030c
                && self.pages.byte(frame_avma + layout.frame_owner) >= Some(OWNED_BY_STACK);
            let code_avma = untagged(self.pages.word_or_zero(frame_avma + layout.frame_code));
            if !is_shim && is_pointer(code_avma) {
                let (name, place) = self.name_of_frame(code_avma);
                let mut edges = Vec::new();
                if layout.has_frame_structures() {
                    for (word, name) in self.words_of_frame(frame_avma) {
                        self.root_edge(&mut edges, word, name)?;
                    }
                    let object = self.internal("(frame)");
                    let word = self.pages.word_or_zero(frame_avma + layout.frame_object);
                    self.root_edge(&mut edges, word, object)?;
                } else {
                    let object = self.internal("(frame)");
                    self.root_edge(&mut edges, frame_avma, object)?;
                }
                self.push_root(name, RootKind::Program, place, edges);
            }
            frame_avma = self.pages.word_or_zero(frame_avma + layout.frame_previous);
        }
        Ok(())
    }

    /// Whether other objects have all references to an object. A word of a module's data then only
    /// caches its address, as the interpreter's cache of methods does.
    fn is_explained(&self, node: u32, unreached: &Unreached) -> bool {
        // References to the dict of a module or type lead to these, and are too many therefore.
        let is_counted =
            self.type_of_node(node).is_some_and(|of| !matches!(of.form, Form::Module | Form::Type));
        let count = || self.pages.word_or_zero(self.heap.nodes[node as usize].address_avma);
        is_counted
            && reference_count(count(), self.layout.version)
                .is_some_and(|count| count <= unreached.inner_of(node))
    }

    /// Adds references from the interpreter's and all modules' data to objects that nothing else
    /// leads to.
    fn add_runtimes_data(&mut self, reached: &mut Vec<bool>) -> Result<()> {
        let mut ranges: Vec<(String, u64, u64)> = Vec::new();
        for &interpreter_avma in &self.runtime.interpreters {
            let end_avma = interpreter_avma + self.layout.interpreter_bytes;
            ranges.push(("(interpreter's data)".to_owned(), interpreter_avma, end_avma));
        }
        let mappings = self.request.mappings;
        let mut modules: Vec<(u64, &str)> = module_starts(mappings).collect();
        modules.dedup_by_key(|(_, name)| *name);
        for (start_avma, module) in modules {
            let short = module.rsplit('/').next().unwrap_or_default();
            let module_end_avma = end_of_module(self.pages, start_avma).unwrap_or(u64::MAX);
            for (start_avma, end_avma) in data_of(mappings, module) {
                let end_avma = end_avma.min(module_end_avma);
                ranges.push((format!("(data of {short})"), start_avma, end_avma));
            }
        }
        let name = self.internal("(data)");
        let unreached = self.unreached(reached);
        for (of, start_avma, end_avma) in ranges {
            self.check()?;
            let mut edges = Vec::new();
            for at_avma in (start_avma..end_avma).step_by(8) {
                let Some(word) = self.pages.word(at_avma) else { continue };
                // The kernel may join memory of arenas to a module's anonymous data.
                if !is_pointer(word) || self.map.is_in_pool(at_avma) {
                    continue;
                }
                let found = match self.node_at(word)? {
                    Some(object) => Some(self.folded.get(&object).copied().unwrap_or(object)),
                    None => self.block_at(word)?,
                };
                let Some(target) = found.filter(|&target| !self.is_explained(target, &unreached)) else {
                    continue;
                };
                self.read_late_nodes()?;
                reached.resize(self.heap.nodes.len(), false);
                if !reached[target as usize] {
                    self.push_root_edge(&mut edges, target, name)?;
                    self.reach(&[target], reached);
                }
            }
            self.push_root(of, RootKind::Runtime, 0, edges);
        }
        Ok(())
    }
}
