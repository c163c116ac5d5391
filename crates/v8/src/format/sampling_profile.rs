//! `.heapprofile` format: a call tree with the bytes sampled in each node.
//!
//! ```text
//!  {"head": {"callFrame": {"functionName", "scriptId", "url", "lineNumber", "columnNumber"},
//!            "selfSize": 0, "id": 1, "children": [{…}, …]},
//!   "samples": [{"size": 64, "nodeId": 17, "ordinal": 3}, …]}
//! ```
//!
//! The tree nests as deep as the calls, so it is read without recursion.

use std::path::Path;

use rustc_hash::FxHashMap;
use serde_json::Value;

use crate::format::call_function::{CallFunction, named};
use crate::format::input::Input;
use crate::format::scanner::Scanner;
use crate::{Error, Result};

/// Profile as in the file.
#[derive(Debug, Default)]
pub(crate) struct SamplingProfile {
    pub(crate) nodes: Vec<ProfileNode>,
}

/// Node of the tree; parents come first.
#[derive(Debug, Default)]
pub(crate) struct ProfileNode {
    pub(crate) function: CallFunction,
    pub(crate) parent: u32,
    pub(crate) self_bytes: u64,
    pub(crate) sample_count: u64,
    id: u64,
}

/// Largest length of a call frame; real ones have a few hundred bytes.
const FRAME_LIMIT_BYTES: usize = 1 << 20;

/// Returns the name of the first member, which distinguishes the formats.
pub(crate) fn first_member(path: &Path) -> Result<Vec<u8>> {
    let mut scanner = scanner(path)?;
    let mut name = Vec::new();
    if scanner.take_if(b'{')? && scanner.peek()? == Some(b'"') {
        scanner.string(&mut name)?;
    }
    Ok(name)
}

fn scanner(path: &Path) -> Result<Scanner> {
    Ok(Scanner::new(Input::open(path).map_err(|source| Error::Io { offset: 0, source })?))
}

impl SamplingProfile {
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let mut scanner = scanner(path)?;
        let mut profile = Self::default();
        let mut samples: FxHashMap<u64, u64> = FxHashMap::default();
        scanner.expect(b'{', "'{'")?;
        while !scanner.take_if(b'}')? {
            match &member(&mut scanner)?[..] {
                b"head" => profile.tree(&mut scanner)?,
                b"samples" => count_samples(&mut scanner, &mut samples)?,
                _ => skip(&mut scanner)?,
            }
            scanner.take_if(b',')?;
        }
        if profile.nodes.is_empty() {
            return Err(Error::NoMember { name: "head" });
        }
        for node in &mut profile.nodes {
            node.sample_count = samples.get(&node.id).copied().unwrap_or(0);
        }
        Ok(profile)
    }

    fn tree(&mut self, scanner: &mut Scanner) -> Result<()> {
        let mut open = Vec::new();
        self.begin_node(scanner, &mut open)?;
        while let Some(&node) = open.last() {
            match scanner.peek()? {
                Some(b',') => scanner.skip_byte(),
                Some(b'}') => {
                    scanner.skip_byte();
                    open.pop();
                    // After a child comes its sibling or the end of the list of children.
                    if !open.is_empty() {
                        if scanner.take_if(b',')? {
                            self.begin_node(scanner, &mut open)?;
                        } else {
                            scanner.expect(b']', "',' or ']'")?;
                        }
                    }
                }
                _ => self.field(scanner, node, &mut open)?,
            }
        }
        Ok(())
    }

    fn begin_node(&mut self, scanner: &mut Scanner, open: &mut Vec<u32>) -> Result<()> {
        scanner.expect(b'{', "'{'")?;
        let number = u32::try_from(self.nodes.len())
            .map_err(|_| Error::TooMany { what: "nodes of the profile", count: self.nodes.len() as u64 })?;
        self.nodes.push(ProfileNode { parent: open.last().copied().unwrap_or(0), ..ProfileNode::default() });
        open.push(number);
        Ok(())
    }

    fn field(&mut self, scanner: &mut Scanner, node: u32, open: &mut Vec<u32>) -> Result<()> {
        let name = member(scanner)?;
        let here = &mut self.nodes[node as usize];
        match &name[..] {
            b"selfSize" => here.self_bytes = scanner.number()?,
            b"id" => here.id = scanner.number()?,
            b"callFrame" => here.function = call_frame(scanner)?,
            b"children" => {
                scanner.expect(b'[', "a list")?;
                if !scanner.take_if(b']')? {
                    self.begin_node(scanner, open)?;
                }
            }
            _ => skip(scanner)?,
        }
        Ok(())
    }
}

/// Reads the name of a member and its colon.
fn member(scanner: &mut Scanner) -> Result<Vec<u8>> {
    let mut name = Vec::new();
    if !scanner.string(&mut name)? {
        return Err(Error::Truncated { offset: scanner.offset(), inside: "a name" });
    }
    scanner.expect(b':', "':'")?;
    Ok(name)
}

fn skip(scanner: &mut Scanner) -> Result<()> {
    match scanner.value(None, usize::MAX)? {
        true => Ok(()),
        false => Err(Error::Truncated { offset: scanner.offset(), inside: "a value" }),
    }
}

fn call_frame(scanner: &mut Scanner) -> Result<CallFunction> {
    let offset = scanner.offset();
    let mut text = Vec::new();
    if !scanner.value(Some(&mut text), FRAME_LIMIT_BYTES)? {
        return Err(Error::Truncated { offset: scanner.offset(), inside: "\"callFrame\"" });
    }
    let frame: Value = serde_json::from_slice(&text).map_err(|source| Error::Header { offset, source })?;
    let text = |key: &str| frame[key].as_str().unwrap_or_default().to_owned();
    // The file counts from 0 and has -1 for an unknown position.
    let place = |key: &str| frame[key].as_i64().and_then(|at| u32::try_from(at + 1).ok()).unwrap_or(0);
    Ok(CallFunction {
        name: named(text("functionName")),
        script: text("url"),
        line: place("lineNumber"),
        column: place("columnNumber"),
    })
}

fn count_samples(scanner: &mut Scanner, samples: &mut FxHashMap<u64, u64>) -> Result<()> {
    scanner.expect(b'[', "a list")?;
    while !scanner.take_if(b']')? {
        scanner.expect(b'{', "'{'")?;
        while !scanner.take_if(b'}')? {
            if member(scanner)? == b"nodeId" {
                *samples.entry(scanner.number()?).or_default() += 1;
            } else {
                skip(scanner)?;
            }
            scanner.take_if(b',')?;
        }
        scanner.take_if(b',')?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<SamplingProfile> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        std::io::Write::write_all(&mut file, text.as_bytes()).unwrap();
        SamplingProfile::open(file.path())
    }

    const PROFILE: &str = r#"{"head":{"callFrame":{"functionName":"(root)","scriptId":"0","url":"","lineNumber":-1,
        "columnNumber":-1},"selfSize":0,"id":1,"children":[{"callFrame":{"functionName":"","url":"/a.js","lineNumber":4,
        "columnNumber":0},"selfSize":96,"id":2,"children":[]},{"id":3,"selfSize":5,"children":[{"id":4,"new":[1,{}]}]}]},
        "samples":[{"size":48,"nodeId":2,"ordinal":1},{"size":48,"nodeId":2,"ordinal":2}],"other":null}"#;

    #[test]
    fn the_tree_and_the_samples_are_read() {
        let profile = read(PROFILE).unwrap();
        let parents: Vec<u32> = profile.nodes.iter().map(|node| node.parent).collect();
        assert_eq!(parents, [0, 0, 0, 2]);
        let node = &profile.nodes[1];
        assert_eq!((node.self_bytes, node.sample_count), (96, 2));
        assert_eq!(
            (node.function.name.as_str(), node.function.line, node.function.column),
            ("(anonymous function)", 5, 1)
        );
        assert_eq!(profile.nodes[0].function.line, 0);
    }

    #[test]
    fn a_profile_that_breaks_off_is_refused() {
        for cut in 0..PROFILE.len() {
            assert!(read(&PROFILE[..cut]).is_err(), "{cut}");
        }
    }

    #[test]
    fn calls_of_any_depth_are_read() {
        let depth = 100_000;
        let text =
            format!("{{\"head\":{}{{\"id\":0}}{}}}", "{\"children\":[".repeat(depth), "]}".repeat(depth));
        assert_eq!(read(&text).unwrap().nodes.len(), depth + 1);
    }
}
