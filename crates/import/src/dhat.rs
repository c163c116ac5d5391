//! DHAT's output, from Valgrind or dhat-rs: amounts by stack in JSON.

use heapr_trace::{Amounts, Untold};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use crate::builder::TraceBuilder;
use crate::error::{Error, Result};
use crate::input::Input;
use crate::valgrind_frame;

/// Name of the tool.
pub(crate) const TOOL: &str = "DHAT";
/// Newest version that is read.
const VERSION_MAX: u64 = 2;

/// True for JSON whose first member is the version.
pub(crate) fn tells(start: &[u8]) -> bool {
    let start = start.trim_ascii_start().strip_prefix(b"{").unwrap_or_default();
    start.trim_ascii_start().starts_with(b"\"dhatFileVersion\"")
}

/// Deserializes a whole number in any notation of JSON: `1500`, `1.5e3`.
fn whole<'de, D: Deserializer<'de>>(from: D) -> std::result::Result<u64, D::Error> {
    let number = serde_json::Number::deserialize(from)?;
    let is_none = || D::Error::custom(format_args!("{number} is no whole number from 0 on"));
    heapr_v8::whole_number(&number).ok_or_else(is_none)
}

#[derive(Deserialize)]
struct File {
    #[serde(rename = "dhatFileVersion", deserialize_with = "whole")]
    version: u64,
    mode: String,
    /// Whether lifetimes are known.
    #[serde(default)]
    bklt: bool,
    #[serde(default)]
    tu: String,
    #[serde(default)]
    cmd: String,
    #[serde(default)]
    pid: u32,
    #[serde(default, deserialize_with = "whole")]
    te: u64,
    #[serde(default, deserialize_with = "whole")]
    tg: u64,
    pps: Vec<Point>,
    ftbl: Vec<String>,
}

/// A stack: bytes and blocks in all, at the peak of the whole heap, and at the end.
#[derive(Deserialize)]
struct Point {
    #[serde(deserialize_with = "whole")]
    tb: u64,
    #[serde(deserialize_with = "whole")]
    tbk: u64,
    #[serde(default, deserialize_with = "whole")]
    gb: u64,
    #[serde(default, deserialize_with = "whole")]
    gbk: u64,
    #[serde(default, deserialize_with = "whole")]
    eb: u64,
    #[serde(default, deserialize_with = "whole")]
    ebk: u64,
    /// Frames, the innermost first.
    fs: Vec<usize>,
}

/// Reads a file into the builder.
pub(crate) fn read(input: &mut Input<'_>, builder: &mut TraceBuilder) -> Result<()> {
    let bytes = input.whole()?;
    let file: File = serde_json::from_slice(&bytes).map_err(|error| {
        let before = bytes.split_inclusive(|&byte| byte == b'\n').take(error.line().saturating_sub(1));
        let offset = before.map(<[u8]>::len).sum::<usize>() + error.column();
        Error::Malformed { tool: TOOL, offset: offset as u64, what: error.to_string() }
    })?;
    if file.version > VERSION_MAX {
        return Err(Error::NewerVersion { tool: TOOL, found: file.version, known: VERSION_MAX });
    }
    if file.mode.contains("ad-hoc") {
        return Err(Error::Unusable {
            what: "this DHAT file counts events of the program's own, and no memory".to_owned(),
        });
    }
    builder.tool_version = format!("(file version {}, mode {})", file.version, file.mode);
    builder.command_line = file.cmd.split_whitespace().map(str::to_owned).collect();
    builder.pid = file.pid;
    // The duration of an instruction is unknown.
    let unit = if file.tu.starts_with("µs") || file.tu.starts_with("us") { 1000 } else { 1 };
    builder.duration_ns = file.te.saturating_mul(unit);
    builder.peak_time_ns = file.tg.saturating_mul(unit);
    if unit == 1 {
        builder.note("DHAT counted time in instructions: shown as that many ns".to_owned());
    }
    builder.untold =
        Untold { reallocs: true, temporary: true, live: !file.bklt, peak: !file.bklt, ..Untold::default() };
    if !file.bklt {
        builder.note(format!("DHAT's mode {} tells neither a peak nor an end: they are unknown", file.mode));
    }
    let mut calls = Vec::with_capacity(file.ftbl.len());
    for frame in &file.ftbl {
        let (module, frame) = valgrind_frame::parse(frame);
        calls.push(builder.named(&module, &[], vec![frame])?);
    }
    for point in &file.pps {
        let known: Vec<u64> = point.fs.iter().filter_map(|&frame| calls.get(frame).copied()).collect();
        if known.len() < point.fs.len() {
            return Err(Error::Malformed {
                tool: TOOL,
                offset: bytes.len() as u64,
                what: "a stack has a frame that the table of frames has not".to_owned(),
            });
        }
        let stack = builder.stack_of(&known)?;
        let amounts = Amounts {
            total_bytes: point.tb,
            total_count: point.tbk,
            peak_bytes: point.gb,
            peak_count: point.gbk,
            outstanding_bytes: point.eb,
            outstanding_count: point.ebk,
            ..Amounts::default()
        };
        builder.add(stack, &amounts);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn total_bytes(number: &str) -> Result<u64> {
        let text = format!("{{\"tb\": {number}, \"tbk\": 1, \"fs\": []}}");
        let point: std::result::Result<Point, _> = serde_json::from_str(&text);
        point.map(|point| point.tb).map_err(|error| Error::Unusable { what: error.to_string() })
    }

    #[test]
    fn numbers_are_taken_as_json_has_them_or_refused_by_name() {
        for (text, bytes) in [("1500", 1500), ("1.5e3", 1500), ("2E+2", 200), ("3.0", 3)] {
            assert_eq!(total_bytes(text).unwrap(), bytes, "{text}");
        }
        for text in ["1.5", "-1", "1e19", "18446744073709551616"] {
            let message = total_bytes(text).unwrap_err().to_string();
            assert!(message.contains("is no whole number from 0 on"), "{text}: {message}");
        }
        assert!(total_bytes("1e400").is_err() && total_bytes("\"12\"").is_err());
    }
}
