//! Search for a script's source map.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use rustix::fs::OFlags;

use super::mapping::Mapping;
use crate::saved_scripts::SavedScript;

/// Largest size of a script or map, in bytes.
const MOST_BYTES: u64 = 512 << 20;
/// Markers at the end of a script before the URL of its map.
const MARKS: [&[u8]; 2] = [b"//# sourceMappingURL=", b"//@ sourceMappingURL="];

/// Base64 decoder with optional padding, because tools differ in whether they write it.
const ANY_PADDING: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Source map that was found but cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unused {
    /// The script is not the one of the snapshot any more.
    #[error("{} has changed since the snapshot: its source map is not used; name a folder with the right one", .script.display())]
    ScriptChanged {
        /// Path of the script.
        script: PathBuf,
    },
    /// The map cannot be decoded.
    #[error("the source map {} can't be read: {problem}", .map.display())]
    Unreadable {
        /// Path of the map, or of the script that contains it.
        map: PathBuf,
        /// Description of the defect.
        problem: String,
    },
}

/// Returns the map of a script. The sources are, in this order: `folders`, the URL in the saved
/// script, the URL in the script's file, the file next to the script.
pub(super) fn mapping_of(
    script: &str,
    folders: &[PathBuf],
    kept: Option<&SavedScript>,
    taken_at: Option<SystemTime>,
) -> Result<Option<Mapping>, Unused> {
    for candidate in in_folders(script, folders) {
        if let Ok(json) = read(&candidate) {
            // Sources are relative to the place where the map was made, next to the script.
            let beside = Path::new(path_of(script).unwrap_or(script)).parent().unwrap_or(Path::new(""));
            let mapping = decode(&json, beside, &candidate)?;
            let script = beside_map(&candidate).and_then(|path| read(&path).ok());
            return Ok(Some(match script {
                Some(script) => mapping.with_script(&script),
                None => mapping,
            }));
        }
    }
    if let Some(kept) = kept {
        return of_kept(kept);
    }
    let Some(path) = path_of(script).map(Path::new).filter(|path| path.is_absolute()) else {
        return Ok(None);
    };
    let Ok(text) = read(path) else { return Ok(None) };
    let folder = path.parent().unwrap_or(Path::new("/"));
    let (json, map) = match named_in(&text) {
        Some(url) if url.starts_with(b"data:") => (inline(url), path.to_owned()),
        Some(url) => {
            let name = String::from_utf8_lossy(url);
            let name = name.strip_prefix("file://").unwrap_or(&name);
            if name.contains("://") {
                return Ok(None);
            }
            let map = folder.join(decoded_percents(name));
            (read(&map).ok(), map)
        }
        None => {
            let map = PathBuf::from(format!("{}.map", path.display()));
            (read(&map).ok(), map)
        }
    };
    let Some(json) = json else { return Ok(None) };
    let changed = std::fs::metadata(path).and_then(|metadata| metadata.modified());
    if let (Some(taken_at), Ok(changed)) = (taken_at, changed)
        && changed > taken_at
    {
        return Err(Unused::ScriptChanged { script: path.to_owned() });
    }
    let mapping = decode(&json, map.parent().unwrap_or(folder), &map)?;
    Ok(Some(mapping.with_script(&text)))
}

/// Returns the map of a script that was saved with its snapshot.
fn of_kept(kept: &SavedScript) -> Result<Option<Mapping>, Unused> {
    let path = PathBuf::from(plain_name(&kept.url));
    let folder = path.parent().unwrap_or(Path::new(""));
    let url = kept.source_map_url.as_str();
    let (json, map) = match &kept.source_map {
        Some(map) => (Some(map.clone().into_bytes()), path.clone()),
        None if url.starts_with("data:") => (inline(url.as_bytes()), path.clone()),
        None => match map_file(&kept.url, url) {
            Some(map) => (read(&map).ok(), map),
            None => return Ok(None),
        },
    };
    let Some(json) = json else { return Ok(None) };
    let folder = map.parent().unwrap_or(folder);
    Ok(Some(decode(&json, folder, &map)?.with_script(kept.text.as_bytes())))
}

/// Returns the file that a script names as its map. `None` if the script names no map, or a URL
/// that is not a file.
#[must_use]
pub fn map_file(script: &str, source_map_url: &str) -> Option<PathBuf> {
    let is_no_file = |url: &str| url.contains("://") || url.starts_with("data:");
    let url = source_map_url.strip_prefix("file://").unwrap_or(source_map_url);
    let script = plain_name(script);
    if url.is_empty() || is_no_file(url) || is_no_file(&script) {
        return None;
    }
    Some(Path::new(&script).parent()?.join(decoded_percents(url))).filter(|path| path.is_absolute())
}

/// Returns the path of a script that is a file, otherwise its name.
pub(super) fn plain_name(script: &str) -> String {
    match script.strip_prefix("file://") {
        Some(path) => decoded_percents(path),
        None => script.to_owned(),
    }
}

fn decode(json: &[u8], folder: &Path, map: &Path) -> Result<Mapping, Unused> {
    Mapping::read(json, folder).map_err(|problem| Unused::Unreadable { map: map.to_owned(), problem })
}

/// Returns the path of a script that is a file.
fn path_of(script: &str) -> Option<&str> {
    match script.strip_prefix("file://") {
        Some(path) => Some(path),
        None => (!script.contains("://")).then_some(script),
    }
}

/// Candidate paths of a map in `folders`, which mirror some end of the script's path.
/// `/srv/app/dist/main.js` becomes `srv/app/dist/main.js.map`, `app/dist/main.js.map` and so on,
/// the longest first.
fn in_folders(script: &str, folders: &[PathBuf]) -> Vec<PathBuf> {
    let bare = script.split_once("://").map_or(script, |(_, rest)| rest);
    let bare = bare.split(['?', '#']).next().unwrap_or(bare);
    let parts: Vec<&str> = bare.split('/').filter(|part| !matches!(*part, "" | "." | "..")).collect();
    let ends = (0..parts.len()).map(|first| format!("{}.map", parts[first..].join("/")));
    ends.flat_map(|end| folders.iter().map(move |folder| folder.join(&end))).collect()
}

/// Returns the path of the script next to its map, as folders of maps often have it.
fn beside_map(map: &Path) -> Option<PathBuf> {
    Some(PathBuf::from(map.to_str()?.strip_suffix(".map")?))
}

/// Reads a regular file of limited size. The path comes from a snapshot and cannot be trusted.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let file = File::from(rustix::fs::open(path, flags, rustix::fs::Mode::empty())?);
    let metadata = file.metadata()?;
    if !metadata.is_file() || metadata.len() > MOST_BYTES {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut bytes = Vec::new();
    file.take(MOST_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Returns the URL in the script's last marker line.
fn named_in(script: &[u8]) -> Option<&[u8]> {
    let (mark, at) = MARKS
        .iter()
        .filter_map(|mark| Some((mark, memchr::memmem::rfind(script, mark)?)))
        .max_by_key(|&(_, at)| at)?;
    let url = &script[at + mark.len()..];
    let end = url.iter().position(u8::is_ascii_whitespace).unwrap_or(url.len());
    Some(&url[..end]).filter(|url| !url.is_empty())
}

/// Returns the text of a script's file as V8 reads it, if the file has not changed since.
pub(super) fn unchanged_text(script: &str, taken_at: Option<SystemTime>) -> Option<String> {
    let path = PathBuf::from(plain_name(script));
    let bytes = path.is_absolute().then(|| read(&path).ok()).flatten()?;
    let changed = std::fs::metadata(&path).and_then(|metadata| metadata.modified()).ok()?;
    if taken_at.is_some_and(|taken_at| changed > taken_at) {
        return None;
    }
    let text = String::from_utf8(bytes).ok()?;
    Some(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}

/// Decodes the JSON in a `data:` URL.
fn inline(url: &[u8]) -> Option<Vec<u8>> {
    let comma = memchr::memchr(b',', url)?;
    let (head, body) = (&url[..comma], &url[comma + 1..]);
    if head.ends_with(b";base64") {
        return ANY_PADDING.decode(body).ok();
    }
    Some(decoded_percents(std::str::from_utf8(body).ok()?).into_bytes())
}

/// Replaces escapes such as `%20` by their bytes.
fn decoded_percents(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let digits = after.get(..2).and_then(|two| std::str::from_utf8(two).ok());
        match digits.and_then(|two| u8::from_str_radix(two, 16).ok()).filter(|_| first == b'%') {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
