//! Code that several traces share. In a module that is the same file in all traces, a function
//! without a name is identified by its offset. Within one trace this always holds.

use std::collections::{HashMap, HashSet};

use heapr_trace::Trace;

use crate::frame_pattern::file_name;
use crate::frames::FrameView;

/// Identity of a module's file: its build-id, or else its trace's number and its path.
type Build<'t> = (&'t [u8], usize, &'t str);

/// File names of the modules of which all traces have the same build.
#[derive(Debug, Default)]
pub struct SameBuilds {
    names: HashSet<String>,
}

impl SameBuilds {
    /// Compares the modules of traces. A file without a build-id is the same only within its own
    /// trace.
    #[must_use]
    pub fn of<'t>(traces: impl IntoIterator<Item = &'t Trace>) -> Self {
        let mut builds: HashMap<&str, HashSet<Build<'_>>> = HashMap::new();
        for (number, trace) in traces.into_iter().enumerate() {
            for module in trace.modules() {
                let build = match module.build_id.as_slice() {
                    [] => (&[][..], number, module.path.as_str()),
                    id => (id, 0, ""),
                };
                builds.entry(file_name(&module.path)).or_default().insert(build);
            }
        }
        let same = builds.into_iter().filter(|(_, builds)| builds.len() == 1);
        Self { names: same.map(|(name, _)| name.to_owned()).collect() }
    }

    /// Offset of a frame without a name in its module's file, if the offset means the same in all
    /// traces. `None` for code outside of files.
    #[must_use]
    pub fn offset(&self, frame: &FrameView<'_>) -> Option<u64> {
        let is_same = frame.symbol.is_none()
            && frame.offset != 0
            && frame.module.is_some_and(|module| self.names.contains(file_name(module)));
        is_same.then_some(frame.offset)
    }

    /// A frame's name in all traces: `module!symbol`, `module+0xoffset`, or `module!?` if builds
    /// differ.
    #[must_use]
    pub fn name(&self, frame: &FrameView<'_>) -> String {
        let module = frame.module.map_or("[no module]", file_name);
        common_name(module, frame.symbol, self.offset(frame))
    }
}

/// The module in a [`common_name`].
#[must_use]
pub fn module_of_name(name: &str) -> &str {
    let is_offset = |digits: &str| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    match name.rsplit_once("+0x") {
        Some((module, digits)) if is_offset(digits) && !name.contains('!') => module,
        _ => name.split('!').next().unwrap_or(name),
    }
}

/// The text of a frame that several traces share.
#[must_use]
pub fn common_name(module: &str, symbol: Option<&str>, offset: Option<u64>) -> String {
    match (symbol, offset) {
        (Some(symbol), _) => format!("{module}!{symbol}"),
        (None, Some(offset)) => format!("{module}+{offset:#x}"),
        (None, None) => format!("{module}!?"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_module_of_a_name_is_found_again() {
        for (symbol, offset) in [(Some("f!+0x1"), None), (None, Some(0x1f)), (None, None)] {
            assert_eq!(module_of_name(&common_name("libstdc++.so.6", symbol, offset)), "libstdc++.so.6");
        }
        assert_eq!(module_of_name("a+0xg"), "a+0xg");
    }
}
