//! Stacks of a trace as content-addressed frames.

use std::collections::HashMap;

use heapr_query::{SourceFrame, SymbolSource, file_name};
use heapr_trace::{CalledFunction, LanguagePlace, ModuleIndex, ProcessIndex, StackIndex, Trace};
use rustc_hash::FxHashMap;

use super::content_id::{ContentId, NOTHING, content_id};

/// Smallest address that importers invent for functions that a file names without an address.
const MADE_SVMA: u64 = 1 << 51;

/// Location of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum CallSite {
    Code { module: ModuleIndex, svma: u64 },
    Outside { process: ProcessIndex, avma: u64 },
    Language { process: ProcessIndex, avma: u64 },
}

/// Function of a frame.
#[derive(Debug, Clone, Default)]
pub(super) struct Line {
    pub(super) function: String,
    pub(super) file: String,
    pub(super) line: u32,
}

/// Frame: a call site with its functions, the innermost inlined one first.
#[derive(Debug)]
pub(super) struct FrameRow {
    pub(super) id: ContentId,
    pub(super) kind: &'static str,
    pub(super) module: String,
    pub(super) build_id: String,
    pub(super) offset: u64,
    pub(super) lines: Vec<Line>,
}

/// Call sites of a trace, see the module.
pub(super) struct CallSites {
    pub(super) frames: Vec<FrameRow>,
    /// By node: index of its frame.
    frame_of: Vec<u32>,
    /// By node: id of the stack that ends there.
    stack_ids: Vec<ContentId>,
}

/// Value of `frame_of` for a node without a frame: it is in no wanted stack, or represents the
/// allocation function that was called. (The tables omit the allocation function: a query for
/// innermost frames wants its caller.)
const NONE: u32 = u32::MAX;

impl CallSites {
    /// Collects the call sites of the stacks in `wanted`, including all outer frames.
    pub(super) fn new(trace: &Trace, wanted: &[StackIndex], names: &mut dyn SymbolSource) -> Self {
        let count = trace.stacks().len();
        let mut frame_of = vec![NONE; count];
        let mut sites: FxHashMap<CallSite, u32> = FxHashMap::default();
        let mut listed: Vec<CallSite> = Vec::new();
        for &stack in wanted {
            let mut node = caller_of(trace, stack);
            while node != StackIndex::EMPTY && frame_of.get(node.0 as usize) == Some(&NONE) {
                let Some(site) = call_site(trace, node) else { break };
                let number = *sites.entry(site).or_insert_with(|| {
                    listed.push(site);
                    listed.len() as u32 - 1
                });
                frame_of[node.0 as usize] = number;
                node = trace.stacks().parent(node);
            }
        }
        let lines = named(trace, &listed, names);
        let frames: Vec<FrameRow> =
            listed.iter().zip(lines).map(|(&site, lines)| frame_row(trace, site, lines)).collect();
        // Callers have smaller numbers than their callees.
        let mut stack_ids = vec![NOTHING; count];
        for node in 1..count {
            if let Some(frame) = frames.get(frame_of[node] as usize) {
                let parent = trace.stacks().parent(StackIndex(node as u32));
                stack_ids[node] = content_id(&[&stack_ids[parent.0 as usize], &frame.id]);
            }
        }
        for &stack in wanted {
            let id = stack_ids.get(caller_of(trace, stack).0 as usize).copied();
            if let (Some(id), Some(own)) = (id, stack_ids.get_mut(stack.0 as usize)) {
                *own = id;
            }
        }
        Self { frames, frame_of, stack_ids }
    }

    /// Id of a stack.
    pub(super) fn stack_id(&self, stack: StackIndex) -> ContentId {
        self.stack_ids.get(stack.0 as usize).copied().unwrap_or(NOTHING)
    }

    /// Frames of a stack, innermost first.
    pub(super) fn frames_of<'a>(
        &'a self,
        trace: &'a Trace,
        stack: StackIndex,
    ) -> impl Iterator<Item = &'a FrameRow> {
        let mut node = caller_of(trace, stack);
        std::iter::from_fn(move || {
            let here = node;
            node = if here == StackIndex::EMPTY { here } else { trace.stacks().parent(here) };
            self.frames.get(*self.frame_of.get(here.0 as usize)? as usize)
        })
    }
}

/// Stack without its innermost frame, if that represents the allocation function that was called.
fn caller_of(trace: &Trace, stack: StackIndex) -> StackIndex {
    let called = trace.stacks().node(stack).is_some_and(|node| {
        let avma = node.return_address_avma.saturating_sub(1);
        let place = trace.locate(node.process, avma, node.first_seen_ns);
        let module = place.and_then(|(module, _)| trace.modules().get(module.0 as usize));
        module.is_some_and(|module| CalledFunction::name_in(&module.path).is_some())
    });
    if called { trace.stacks().parent(stack) } else { stack }
}

fn call_site(trace: &Trace, node: StackIndex) -> Option<CallSite> {
    let node = trace.stacks().node(node)?;
    let avma = node.return_address_avma.saturating_sub(1);
    if LanguagePlace::of_call(avma).is_some() {
        return Some(CallSite::Language { process: node.process, avma });
    }
    Some(match trace.locate(node.process, avma, node.first_seen_ns) {
        Some((module, svma)) => CallSite::Code { module, svma },
        None => CallSite::Outside { process: node.process, avma },
    })
}

/// Functions at each site.
fn named(trace: &Trace, sites: &[CallSite], names: &mut dyn SymbolSource) -> Vec<Vec<Line>> {
    let mut lines: Vec<Vec<Line>> = vec![Vec::new(); sites.len()];
    let mut of_module: HashMap<ModuleIndex, (Vec<u64>, Vec<usize>)> = HashMap::new();
    let mut outside: HashMap<ProcessIndex, (Vec<u64>, Vec<usize>)> = HashMap::new();
    for (place, site) in sites.iter().enumerate() {
        let (addresses, places, address) = match *site {
            CallSite::Code { module, svma } => {
                let (addresses, places) = of_module.entry(module).or_default();
                (addresses, places, svma)
            }
            CallSite::Outside { process, avma } => {
                let (addresses, places) = outside.entry(process).or_default();
                (addresses, places, avma)
            }
            CallSite::Language { process, avma } => {
                if let Some(function) = LanguagePlace::of_call(avma)
                    .and_then(|frame| Some((frame, trace.function(process, frame)?)))
                {
                    let (frame, function) = function;
                    lines[place] = vec![Line {
                        function: function.name.clone(),
                        file: function.file.clone(),
                        line: frame.line,
                    }];
                }
                continue;
            }
        };
        addresses.push(address);
        places.push(place);
    }
    let text = |text: Option<&str>| text.unwrap_or_default().to_owned();
    let line = |frame: &SourceFrame<'_>| Line {
        function: text(frame.symbol),
        file: text(frame.file),
        line: frame.line.unwrap_or(0),
    };
    for (module, (svmas, places)) in of_module {
        names.resolve(module, &svmas, &mut |number, frames| {
            lines[places[number]] = frames.iter().map(line).collect();
        });
    }
    for (process, (avmas, places)) in outside {
        names.resolve_unmapped(process, &avmas, &mut |number, frames| {
            lines[places[number]] = frames.iter().map(line).collect();
        });
    }
    lines
}

fn frame_row(trace: &Trace, site: CallSite, mut lines: Vec<Line>) -> FrameRow {
    if lines.is_empty() {
        lines.push(Line::default());
    }
    let first = &lines[0];
    let by_name = |kind: &'static str, scope: &str| {
        content_id(&[
            kind.as_bytes(),
            scope.as_bytes(),
            first.function.as_bytes(),
            first.file.as_bytes(),
            &first.line.to_le_bytes(),
        ])
    };
    let row = |id, kind, module: &str, build_id: &[u8], offset| FrameRow {
        id,
        kind,
        module: module.to_owned(),
        build_id: build_id.iter().map(|byte| format!("{byte:02x}")).collect(),
        offset,
        lines: Vec::new(),
    };
    let mut row = match site {
        CallSite::Code { module, svma } => {
            let module = trace.modules().get(module.0 as usize);
            let (path, build_id) =
                module.map_or(("", &[][..]), |module| (module.path.as_str(), &module.build_id[..]));
            if svma >= MADE_SVMA && first.function.is_empty() {
                let id = content_id(&[b"nameless", file_name(path).as_bytes(), &svma.to_le_bytes()]);
                row(id, "named", path, build_id, 0)
            } else if svma >= MADE_SVMA {
                row(by_name("named", file_name(path)), "named", path, build_id, 0)
            } else if build_id.is_empty() {
                let id = content_id(&[b"module", file_name(path).as_bytes(), &svma.to_le_bytes()]);
                row(id, "module", path, build_id, svma)
            } else {
                row(content_id(&[b"code", build_id, &svma.to_le_bytes()]), "code", path, build_id, svma)
            }
        }
        CallSite::Language { avma, .. } => {
            let language = LanguagePlace::of_call(avma).map_or("", |place| place.language.short_name());
            row(by_name("language", language), "language", language, &[], 0)
        }
        CallSite::Outside { avma, .. } if first.function.is_empty() => {
            row(content_id(&[b"address", &avma.to_le_bytes()]), "address", "", &[], avma)
        }
        CallSite::Outside { avma, .. } => row(by_name("address", ""), "address", "", &[], avma),
    };
    row.lines = lines;
    row
}
