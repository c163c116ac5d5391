//! Other tools' formats. Each takes the stacks with their amounts.

pub(crate) mod collapsed;
pub(crate) mod flamegraph;
pub(crate) mod pprof;
pub(crate) mod speedscope;

use heapr_query::{FrameView, file_name};
use heapr_trace::Amounts;

/// A stack and its amounts.
#[derive(Debug)]
pub(crate) struct Sample {
    /// Innermost first.
    pub(crate) frames: Vec<SampleFrame>,
    pub(crate) amounts: Amounts,
}

/// A frame, as exports name it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct SampleFrame {
    /// Function, or `module+0xoffset`.
    pub(crate) name: String,
    /// Path of the module.
    pub(crate) module: String,
    pub(crate) file: String,
    pub(crate) line: u32,
}

impl SampleFrame {
    pub(crate) fn new(frame: &FrameView<'_>) -> Self {
        let module = frame.module.unwrap_or_default();
        let name = match frame.symbol {
            Some(symbol) => symbol.to_owned(),
            None if module.is_empty() => format!("{:#x}", frame.offset),
            None if frame.offset == 0 => file_name(module).to_owned(),
            None => format!("{}+{:#x}", file_name(module), frame.offset),
        };
        Self {
            name,
            module: module.to_owned(),
            file: frame.file.unwrap_or_default().to_owned(),
            line: frame.line.unwrap_or(0),
        }
    }
}
