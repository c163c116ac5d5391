//! Names of sites in sentences.

use heapr_query::{CullList, FrameView, Owner, file_name, plain_symbol, script_place};
use heapr_trace::StackIndex;

use crate::finding::OwnFrame;
use crate::kept_memory::EARLIER_BLOCKS;
use crate::recording::Recording;
use crate::site::Site;

/// Name of the site of the blocks that were made before heapr attached to the process.
const BEFORE_ATTACH: &str = "the program before the attach";

impl Recording<'_> {
    /// Own frame of a site with its source location, and its name in sentences.
    pub(crate) fn name(&self, site: &Site) -> (OwnFrame, String) {
        self.name_at(site, site.stack)
    }

    /// Variant of [`Recording::name`], with the lines of one of the site's stacks.
    pub(crate) fn name_at(&self, site: &Site, stack: StackIndex) -> (OwnFrame, String) {
        let views = self.tree.views(self.trace, stack, self.tree.named(stack));
        let place = self.own.place(&views).or_else(|| {
            // Without an own frame, the first frame outside the allocator is used.
            (!views.is_empty()).then(|| {
                let cull = CullList::built_in();
                let culled = |view: &&FrameView<'_>| cull.matches(view.module, view.symbol);
                views.iter().take_while(culled).count().min(views.len() - 1)
            })
        });
        let Some(view) = place.and_then(|place| views.get(place)) else {
            return (OwnFrame::default(), "code without a stack".to_owned());
        };
        let module = view.module.map(file_name);
        if view.module == Some(EARLIER_BLOCKS) {
            return (OwnFrame::default(), BEFORE_ATTACH.to_owned());
        }
        let script = view.symbol.and_then(script_place);
        let file = view.file.or(script.map(|(_, file, _)| file));
        let line = view.line.or(script.map(|(.., line)| line));
        let mut name = match (view.symbol, module) {
            (Some(symbol), _) => shown_symbol(view.module, symbol),
            (None, Some(module)) => format!("{module}+{:#x}", view.offset),
            (None, None) => format!("{:#x}", view.offset),
        };
        if view.symbol.is_none()
            && let Some(caller) = place.and_then(|place| self.named_caller(&views[place + 1..]))
        {
            name += &format!(", called by {caller}");
        }
        if let (Some(file), Some(line)) = (file, line) {
            name += &format!(" ({}:{line})", file_name(file));
        }
        if site.is_loading {
            name = format!("code that is loaded for {name}");
        }
        if self.trace.processes().len() > 1
            && let Some(process) = self.trace.processes().get(site.process.0 as usize)
        {
            name += &format!(" in {} ({})", process.name(), process.pid);
        }
        let frame = OwnFrame {
            module: view.module.map(str::to_owned),
            symbol: view.symbol.map(str::to_owned),
            file: file.map(str::to_owned),
            line,
        };
        (frame, name)
    }

    /// Name of the nearest caller that has one and does not belong to the runtime. It says what
    /// code without a name works for.
    fn named_caller(&self, callers: &[FrameView<'_>]) -> Option<String> {
        let mut named = callers.iter().filter_map(|view| Some((view, view.symbol?)));
        named
            .find(|(view, symbol)| {
                *symbol != "main" && self.own.owner(view.module, Some(symbol), view.file) != Owner::Runtime
            })
            .map(|(_, symbol)| plain_symbol(symbol))
    }

    /// Pattern that matches stacks with a frame; empty if the frame is unknown.
    pub(crate) fn required(&self, frame: &OwnFrame) -> Vec<String> {
        let pattern = match (&frame.symbol, &frame.module) {
            (Some(symbol), Some(module)) if is_language(module) => Some(format!("{module}!{symbol}")),
            (Some(symbol), _) => Some(plain_symbol(symbol)),
            (None, Some(module)) => Some(format!("{}!", file_name(module))),
            (None, None) => None,
        };
        pattern.into_iter().collect()
    }
}

/// Name of a function in sentences.
pub(crate) fn shown_symbol(module: Option<&str>, symbol: &str) -> String {
    // A file of another tool may have an address in place of a name.
    if symbol.starts_with("0x")
        && let Some(module) = module
    {
        return format!("{}!{symbol}", file_name(module));
    }
    match script_place(symbol) {
        _ if module.is_some_and(is_language) => symbol.to_owned(),
        Some((name, ..)) => name.to_owned(),
        None => plain_symbol(symbol),
    }
}

/// Whether a module is a language. Frames of languages have its name in place of a path, and their
/// symbols are not C++.
fn is_language(module: &str) -> bool {
    !module.contains('/') && !module.starts_with('[')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_in_place_of_a_name_is_told_with_its_module() {
        let shown = |module| shown_symbol(module, "0x4872306");
        assert_eq!(shown(Some("libjq.so.1")), "libjq.so.1!0x4872306");
        assert_eq!(shown(Some("/usr/lib/libjq.so.1")), "libjq.so.1!0x4872306");
        assert_eq!(shown(None), "0x4872306");
        assert_eq!(shown_symbol(Some("/usr/bin/shop"), "shop::load(int)"), "shop::load");
    }
}
