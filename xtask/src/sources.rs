//! Reads Rust sources, and blanks their comments and literals for rules about code.

use std::path::{Path, PathBuf};

use anyhow::Context as _;

/// Returns all `.rs` files under a folder.
pub(crate) fn rust_files(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for entry in entries {
            let path = entry.with_context(|| folder.display().to_string())?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

/// Returns the code of a source: comments, strings and characters become blanks, lines stay.
pub(crate) fn code_of(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut code = String::with_capacity(text.len());
    let mut at = 0;
    while at < bytes.len() {
        let end = skipped(bytes, at);
        if end > at {
            code.extend(bytes[at..end].iter().map(|&byte| if byte == b'\n' { '\n' } else { ' ' }));
            at = end;
        } else {
            code.push(char::from(bytes[at]));
            at += 1;
        }
    }
    code
}

/// Returns the end of the comment or literal that begins at `at`, or else `at` itself.
fn skipped(bytes: &[u8], at: usize) -> usize {
    let rest = &bytes[at..];
    if rest.starts_with(b"//") {
        return at + rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len());
    }
    if rest.starts_with(b"/*") {
        return at + find(rest, b"*/", 2).unwrap_or(rest.len());
    }
    let is_word = at > 0 && (bytes[at - 1].is_ascii_alphanumeric() || bytes[at - 1] == b'_');
    if rest[0] == b'r' && !is_word {
        let hashes = rest[1..].iter().take_while(|&&byte| byte == b'#').count();
        if rest.get(1 + hashes) == Some(&b'"') {
            let close = [&b"\""[..], &b"#".repeat(hashes)].concat();
            return at + find(rest, &close, 2 + hashes).unwrap_or(rest.len());
        }
    }
    match rest {
        [b'"', ..] => at + quoted_end(rest, b'"'),
        // A lifetime has no closing quote after its first letter.
        [b'\'', b'\\', ..] => at + quoted_end(rest, b'\''),
        [b'\'', _, b'\'', ..] => at + 3,
        _ => at,
    }
}

fn find(bytes: &[u8], needle: &[u8], from: usize) -> Option<usize> {
    let tail = bytes.get(from..)?;
    tail.windows(needle.len()).position(|window| window == needle).map(|place| from + place + needle.len())
}

fn quoted_end(bytes: &[u8], quote: u8) -> usize {
    let mut at = 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 1,
            byte if byte == quote => return at + 1,
            _ => {}
        }
        at += 1;
    }
    bytes.len()
}

#[test]
fn comments_and_literals_are_no_code() {
    let text = "a // unsafe\n\"unsafe \\\" unsafe\" 'u' r#\"unsafe\"# /* unsafe */ fn f<'a>() { b'\\'' }";
    let code = code_of(text);
    assert!(!code.contains("unsafe") && code.contains("fn f<'a>()") && code.lines().count() == 2, "{code}");
}
