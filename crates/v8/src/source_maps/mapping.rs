//! Decoded source map, including maps of sections, which bundlers write when they join maps
//! (ECMA-426, "Source map format").

use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use oxc_sourcemap::{JSONSourceMap, SourceMap};
use serde::Deserialize;

use super::Original;

/// Original locations of the pieces of a script.
#[derive(Debug, Default)]
pub(super) struct Mapping {
    /// Pieces in the order of the script.
    pieces: Vec<Piece>,
    sources: Vec<String>,
    names: Vec<String>,
    script: Option<ScriptText>,
    /// Certain original names of variables, by source and minified name.
    variables: Mutex<HashMap<(u32, String), Option<String>>>,
}

/// Text of the script, which shows the name at the start of a piece.
#[derive(Debug)]
struct ScriptText {
    units: Vec<u16>,
    line_starts: Vec<usize>,
}

#[derive(Debug, Clone, Copy)]
struct Piece {
    /// Line and column of the start in the script.
    at: (u32, u32),
    /// Source, line and column; `None` for a piece that the bundler made.
    from: Option<(u32, u32, u32)>,
    name: Option<u32>,
}

/// Largest number of pieces between a class's name and its constructor.
const PIECES_TO_A_NAME: usize = 64;

/// Members of a map that are read, including those of a list of sections.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Written {
    #[serde(default)]
    mappings: String,
    source_root: Option<String>,
    #[serde(default)]
    sources: Vec<Option<String>>,
    #[serde(default)]
    names: Vec<String>,
    #[serde(default)]
    sections: Vec<Section>,
}

#[derive(Debug, Deserialize)]
struct Section {
    offset: Offset,
    map: Box<Written>,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
struct Offset {
    line: u32,
    column: u32,
}

impl Mapping {
    /// Decodes the JSON of a map; relative sources start in `folder`.
    pub(super) fn read(json: &[u8], folder: &Path) -> Result<Self, String> {
        // Servers put this before a map, so that a page cannot read it as a script.
        let json = match json.strip_prefix(b")]}'") {
            Some(rest) => memchr::memchr(b'\n', rest).map_or(&[][..], |end| &rest[end + 1..]),
            None => json,
        };
        let written: Written = serde_json::from_slice(json).map_err(|error| error.to_string())?;
        let mut mapping = Self::default();
        if written.sections.is_empty() {
            mapping.add(written, Offset::default(), folder)?;
        } else {
            for Section { offset, map } in written.sections {
                if !map.sections.is_empty() {
                    return Err("its sections have sections".to_owned());
                }
                mapping.add(*map, offset, folder)?;
            }
        }
        // Pieces of badly joined maps are out of order.
        mapping.pieces.sort_by_key(|piece| piece.at);
        Ok(mapping)
    }

    fn add(&mut self, written: Written, offset: Offset, folder: &Path) -> Result<(), String> {
        let root = written.source_root.unwrap_or_default();
        let (source_base, name_base) = (self.sources.len() as u32, self.names.len() as u32);
        let sources: Vec<String> = written
            .sources
            .iter()
            .map(|source| shown(source.as_deref().unwrap_or(""), &root, folder))
            .collect();
        let decoded = SourceMap::from_json(JSONSourceMap {
            version: 3,
            file: None,
            mappings: written.mappings,
            source_root: None,
            sources,
            sources_content: None,
            names: written.names,
            debug_id: None,
            x_google_ignore_list: None,
        });
        let decoded = decoded.map_err(|error| error.to_string())?;
        self.pieces.extend(decoded.get_tokens().map(|token| {
            let line = token.get_dst_line();
            let column = if line == 0 { offset.column } else { 0 };
            let source = token.get_source_id();
            Piece {
                at: (line.saturating_add(offset.line), token.get_dst_col().saturating_add(column)),
                from: source.map(|source| (source_base + source, token.get_src_line(), token.get_src_col())),
                name: token.get_name_id().map(|name| name_base + name),
            }
        }));
        self.sources.extend(decoded.get_sources().map(str::to_owned));
        self.names.extend(decoded.get_names().map(str::to_owned));
        Ok(())
    }

    /// Returns the original location of the piece that contains a location of the script.
    pub(super) fn original(&self, line: u32, column: u32) -> Option<Original> {
        let end = self.pieces.partition_point(|piece| piece.at <= (line, column));
        let piece = self.pieces[..end].last().filter(|piece| piece.at.0 == line)?;
        let (source, line, column) = piece.from?;
        let source = self.sources.get(source as usize).filter(|source| !source.is_empty())?;
        Some(Original { source: source.clone(), line, column })
    }

    /// Returns the original name of the function or class called `minified`. Its parameters or body
    /// begin at this location, and the name is at the location or a little before.
    pub(super) fn name_of(&self, line: u32, column: u32, minified: &str) -> Option<&str> {
        let end = self.pieces.partition_point(|piece| piece.at <= (line, column));
        let before = &self.pieces[end.saturating_sub(PIECES_TO_A_NAME)..end];
        let piece = match &self.script {
            Some(script) => before.iter().rev().find(|piece| script.has_name_at(piece.at, minified))?,
            None => {
                let length = u32::try_from(minified.encode_utf16().count()).ok()?;
                let is_it = |piece: &&Piece| {
                    piece.at == (line, column)
                        || piece.at.0 == line && piece.at.1.checked_add(length) == Some(column)
                };
                before.iter().filter(|piece| piece.name.is_some()).find(is_it)?
            }
        };
        self.name(piece).filter(|&name| name != minified)
    }

    /// Returns the original name of the variable called `minified` in the function at this
    /// location. `None` unless the name is the same throughout the function's source.
    pub(super) fn variable_name(&self, line: u32, column: u32, minified: &str) -> Option<String> {
        let end = self.pieces.partition_point(|piece| piece.at <= (line, column));
        let source = self.pieces[..end].last()?.from?.0;
        let mut variables = self.variables.lock().unwrap_or_else(PoisonError::into_inner);
        let known = variables.entry((source, minified.to_owned()));
        known.or_insert_with(|| self.only_name_in(source, minified).map(str::to_owned)).clone()
    }

    fn only_name_in(&self, source: u32, minified: &str) -> Option<&str> {
        let script = self.script.as_ref()?;
        let mut names = self
            .pieces
            .iter()
            .filter(|piece| piece.from.is_some_and(|from| from.0 == source))
            .filter(|piece| piece.name.is_some() && script.has_name_at(piece.at, minified))
            .filter_map(|piece| self.name(piece));
        let first = names.next()?;
        (first != minified && names.all(|name| name == first)).then_some(first)
    }

    fn name(&self, piece: &Piece) -> Option<&str> {
        self.names.get(piece.name? as usize).map(String::as_str).filter(|name| !name.is_empty())
    }

    /// Adds the text of the script, for lookups of names.
    pub(super) fn with_script(self, script: &[u8]) -> Self {
        Self { script: Some(ScriptText::of(script)), ..self }
    }
}

impl ScriptText {
    fn of(script: &[u8]) -> Self {
        let units: Vec<u16> = String::from_utf8_lossy(script).encode_utf16().collect();
        let ends = units.iter().enumerate().filter(|&(_, &unit)| unit == u16::from(b'\n'));
        let line_starts = std::iter::once(0).chain(ends.map(|(at, _)| at + 1)).collect();
        Self { units, line_starts }
    }

    /// True if the identifier at the location is `name`, and not a longer one.
    fn has_name_at(&self, (line, column): (u32, u32), name: &str) -> bool {
        let rest = self
            .line_starts
            .get(line as usize)
            .and_then(|start| self.units.get(start.checked_add(column as usize)?..));
        let Some(mut rest) = rest else { return false };
        for unit in name.encode_utf16() {
            match rest.split_first() {
                Some((&first, after)) if first == unit => rest = after,
                _ => return false,
            }
        }
        let goes_on = |&unit: &u16| {
            char::from_u32(u32::from(unit))
                .is_none_or(|unit| unit.is_alphanumeric() || matches!(unit, '_' | '$'))
        };
        !name.is_empty() && !rest.first().is_some_and(goes_on)
    }
}

/// Returns a source's path without the bundler's prefix: `webpack://app/./src/a.ts?1f2e` becomes
/// `src/a.ts`. A relative path starts in the folder of the map.
fn shown(source: &str, root: &str, folder: &Path) -> String {
    let joined = match root {
        "" => source.to_owned(),
        _ if source.contains("://") || source.starts_with('/') => source.to_owned(),
        root if root.ends_with('/') => format!("{root}{source}"),
        root => format!("{root}/{source}"),
    };
    if let Some(path) = joined.strip_prefix("file://") {
        return path.to_owned();
    }
    if let Some((scheme, rest)) = joined.split_once("://") {
        if matches!(scheme, "http" | "https") {
            return joined;
        }
        // The bundler's name for the project comes first, and may be empty.
        let path = rest.split_once('/').map_or(rest, |(_, path)| path);
        let path = path.trim_start_matches("[project]/").trim_start_matches("./");
        let path = path.split_once('?').map_or(path, |(path, _)| path);
        // A bare name would look like a script of the runtime.
        return if path.contains('/') { path.to_owned() } else { format!("./{path}") };
    }
    let path = Path::new(&joined);
    if joined.is_empty() || path.is_absolute() {
        return joined;
    }
    let mut whole = PathBuf::new();
    for part in folder.join(path).components() {
        match part {
            Component::ParentDir if whole.parent().is_some() => {
                whole.pop();
            }
            Component::CurDir => {}
            part => whole.push(part),
        }
    }
    whole.to_string_lossy().into_owned()
}
