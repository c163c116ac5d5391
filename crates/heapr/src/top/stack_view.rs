//! Stack of a function, with source lines.

use heapr_table::plain::printable;
use serde_json::Value;

/// Line of the view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StackLine {
    pub(super) text: String,
    /// True for the frame of user code that answers for the stack, and for its line of source.
    pub(super) is_own: bool,
}

/// Stack as lines of text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct StackView {
    pub(super) lines: Vec<StackLine>,
}

impl StackView {
    /// Reads the answer of `stack`.
    pub(super) fn of(answer: &Value) -> Self {
        let own = answer["own"].as_u64();
        let mut lines = Vec::new();
        for (number, frame) in answer["frames"].as_array().into_iter().flatten().enumerate() {
            let is_own = own == Some(number as u64);
            let text = |name: &str| frame[name].as_str().map(printable);
            let module = text("module").map(|path| path.rsplit('/').next().unwrap_or_default().to_owned());
            let symbol = text("symbol")
                .unwrap_or_else(|| format!("+{:#x}", frame["offset"].as_u64().unwrap_or_default()));
            let mut line = format!("#{number:<3} {symbol}");
            if let Some(module) = module {
                line += &format!(" [{module}]");
            }
            if let Some(file) = text("file") {
                let number = frame["line"].as_u64();
                line += &format!("  {file}{}", number.map(|line| format!(":{line}")).unwrap_or_default());
            }
            if frame["culled"].as_bool() == Some(true) {
                line += "  (allocator)";
            }
            lines.push(StackLine { text: line, is_own });
            if is_own {
                lines.extend(source_lines(frame));
            }
        }
        if lines.is_empty() {
            lines.push(StackLine { text: "(no stack was recorded)".to_owned(), is_own: false });
        }
        Self { lines }
    }
}

fn source_lines(frame: &Value) -> Vec<StackLine> {
    let source = &frame["source"];
    let first = source["first_line"].as_u64().unwrap_or(0);
    let lines = source["lines"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let mut shown: Vec<StackLine> = Vec::new();
    for (number, text) in (first..).zip(lines) {
        let is_own = frame["line"].as_u64() == Some(number);
        let text = printable(&text.replace('\t', "    "));
        shown.push(StackLine { text: format!("       {number:>5} | {text}"), is_own });
    }
    if !shown.is_empty() && source["is_newer"].as_bool() == Some(true) {
        let text = "             (the file is newer than the recording)".to_owned();
        shown.push(StackLine { text, is_own: false });
    }
    shown
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_own_frame_has_its_source() {
        let view = StackView::of(&json!({"own": 1, "frames": [
            {"symbol": "malloc", "module": "/lib/libc.so.6", "culled": true, "offset": 4},
            {"symbol": "load", "module": "/bin/app", "file": "/src/a.c", "line": 7,
             "source": {"first_line": 6, "lines": ["{", "\tp = malloc(1);", "}"], "is_newer": true}},
            {"module": "/bin/app", "offset": 16},
        ]}));
        let texts: Vec<&str> = view.lines.iter().map(|line| line.text.as_str()).collect();
        assert_eq!(
            texts,
            [
                "#0   malloc [libc.so.6]  (allocator)",
                "#1   load [app]  /src/a.c:7",
                "           6 | {",
                "           7 |     p = malloc(1);",
                "           8 | }",
                "             (the file is newer than the recording)",
                "#2   +0x10 [app]",
            ]
        );
        let own: Vec<bool> = view.lines.iter().map(|line| line.is_own).collect();
        assert_eq!(own, [false, true, false, true, false, false, false]);
        assert_eq!(StackView::of(&json!({})).lines.len(), 1);
    }
}
