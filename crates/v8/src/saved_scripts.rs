//! Saved scripts of a snapshot: scripts whose text as it ran is in no other file, in a file next to
//! the snapshot.
//!
//! `a.heapsnapshot.scripts` is text, compressed with zstd: a line with the schema, then one JSON
//! object per line for each script.
//!
//! ```text
//! {"schema":"heapr.scripts/1"}
//! {"id":72,"url":"/srv/app.ts","source_map_url":"data:…","source_map":null,"start":[0,0],"text":"…"}
//! ```

use std::io::{self, BufRead, BufReader, Read as _, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// Script as it ran.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedScript {
    /// Number of the script, as in the snapshot's locations.
    pub id: u32,
    /// Path or URL; empty for most scripts made by `eval`.
    #[serde(default)]
    pub url: String,
    /// URL of the source map, as named by the script.
    #[serde(default)]
    pub source_map_url: String,
    /// Text of the source map, if it was a file that readers of the snapshot may lack.
    #[serde(default)]
    pub source_map: Option<String>,
    /// Line and column of the script's start in the file or page that contains it, from 0.
    #[serde(default)]
    pub start: (u32, u32),
    /// Text of the script.
    #[serde(default)]
    pub text: String,
}

const SCHEMA: &str = r#"{"schema":"heapr.scripts/1"}"#;
const ENDING: &str = ".scripts";
/// Largest length of a line (a script and its map), in bytes.
const LINE_BYTES_MAX: u64 = 256 << 20;
/// Largest length of the uncompressed file, in bytes.
const BYTES_MAX: u64 = 1 << 30;
const LEVEL: i32 = 3;

impl SavedScript {
    /// Path of the file with the scripts of a snapshot.
    #[must_use]
    pub fn file_beside(snapshot: &Path) -> PathBuf {
        let mut name = snapshot.as_os_str().to_owned();
        name.push(ENDING);
        name.into()
    }

    /// Writes scripts to `out`.
    ///
    /// # Errors
    /// Fails if writing to `out` fails.
    pub fn write_all(scripts: &[Self], out: &mut dyn Write) -> io::Result<()> {
        let mut out = zstd::Encoder::new(out, LEVEL)?;
        writeln!(out, "{SCHEMA}")?;
        for script in scripts {
            serde_json::to_writer(&mut out, script)?;
            out.write_all(b"\n")?;
        }
        out.finish()?.flush()
    }

    /// Reads the scripts next to a snapshot, including one that was compressed later. Returns an
    /// empty list if the file does not exist. A truncated file is read as far as possible.
    #[must_use]
    pub fn beside(snapshot: &Path) -> Vec<Self> {
        let bare = snapshot.with_extension("");
        let is_packed = matches!(snapshot.extension().and_then(|it| it.to_str()), Some("gz" | "xz" | "zst"));
        let file = heapr_files::regular(&Self::file_beside(snapshot)).or_else(|error| {
            if is_packed { heapr_files::regular(&Self::file_beside(&bare)) } else { Err(error) }
        });
        match file {
            Ok(file) => Self::read_all(file),
            Err(_) => Vec::new(),
        }
    }

    /// Reads all scripts up to the first defect.
    #[must_use]
    pub fn read_all(file: impl io::Read) -> Vec<Self> {
        let mut scripts = Vec::new();
        let Ok(text) = zstd::Decoder::new(file) else { return scripts };
        let mut text = BufReader::new(text.take(BYTES_MAX));
        let mut line = Vec::new();
        let mut is_first = true;
        loop {
            line.clear();
            let count = (&mut text).take(LINE_BYTES_MAX).read_until(b'\n', &mut line);
            if !matches!(count, Ok(1..)) || line.pop() != Some(b'\n') {
                return scripts;
            }
            if std::mem::take(&mut is_first) {
                if line != SCHEMA.as_bytes() {
                    return scripts;
                }
                continue;
            }
            match serde_json::from_slice(&line) {
                Ok(script) => scripts.push(script),
                Err(_) => return scripts,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scripts() -> Vec<SavedScript> {
        let of = |id, text: &str| SavedScript {
            id,
            url: "/srv/app.ts".into(),
            source_map_url: "app.ts.map".into(),
            source_map: Some("{}".into()),
            start: (1, 2),
            text: text.into(),
        };
        vec![of(7, "let a = 1;\n"), of(8, "\u{2028}\"ü"), SavedScript::default()]
    }

    #[test]
    fn what_is_written_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let snapshot = folder.path().join("a.heapsnapshot");
        let mut bytes = Vec::new();
        SavedScript::write_all(&scripts(), &mut bytes).unwrap();
        assert_eq!(SavedScript::beside(&snapshot), []);
        std::fs::write(SavedScript::file_beside(&snapshot), &bytes).unwrap();
        assert_eq!(SavedScript::beside(&snapshot), scripts());
        assert_eq!(SavedScript::beside(&folder.path().join("a.heapsnapshot.gz")), scripts());
    }

    #[test]
    fn a_file_that_breaks_off_or_is_none_is_read_as_far_as_it_goes() {
        let mut bytes = Vec::new();
        SavedScript::write_all(&scripts(), &mut bytes).unwrap();
        for end in 0..bytes.len() {
            let read = SavedScript::read_all(&bytes[..end]);
            assert!(scripts().starts_with(&read), "{end}");
        }
        for at in 0..bytes.len() {
            let mut bytes = bytes.clone();
            bytes[at] ^= 0x55;
            let _ = SavedScript::read_all(&bytes[..]);
        }
        assert_eq!(SavedScript::read_all(&b"no such file"[..]), []);
    }
}
