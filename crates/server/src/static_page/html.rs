//! Builds one HTML file of the page's files and the answers. Its policy forbids loading resources
//! and running scripts other than its own.

use std::io::Read as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};

use crate::error::{Error, Result};
use crate::page;

/// Encodes as in <https://www.rfc-editor.org/rfc/rfc4648>, section 4.
pub(super) fn base64(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// Builds the page; `answers` is base64 of gzip.
pub(super) fn page(answers: &str) -> Result<Vec<u8>> {
    let index = text("index.html")?;
    let (style, script) = (text("app.css")?, text("app.js")?);
    // A script's text must not contain its end tag.
    let script = script.replace("</script", "<\\/script").replace("<!--", "<\\!--");
    let policy = format!(
        "default-src 'none'; script-src '{}'; style-src '{}' 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'",
        hash(&script),
        hash(&style),
    );
    // With a hash 'unsafe-inline' counts for old browsers only.
    let policy = policy.replace(" 'unsafe-inline'", "");
    let head = format!(
        "<meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n    <style>{style}</style>\n  </head>"
    );
    let tail = format!(
        "<script type=\"application/json\" id=\"heapr-answers\" data-encoding=\"gzip+base64\">{answers}</script>\n    \
         <script>{script}</script>\n  </body>"
    );
    let mut page = String::with_capacity(index.len() + head.len() + tail.len());
    for line in index.lines() {
        let is_reference = line.contains("<link rel=") || line.contains("<script src=");
        if is_reference {
            continue;
        }
        match line.trim() {
            "</head>" => page.push_str(&head),
            "</body>" => page.push_str(&tail),
            _ => page.push_str(line),
        }
        page.push('\n');
    }
    if !page.contains("heapr-answers") || !page.contains("Content-Security-Policy") {
        return Err(Error::Internal("the page has another form than the static one expects".to_owned()));
    }
    Ok(page.into_bytes())
}

fn hash(text: &str) -> String {
    format!("sha256-{}", base64(&Sha256::digest(text.as_bytes())))
}

/// Text of a file of the page.
fn text(name: &'static str) -> Result<String> {
    let file = page::file(name).ok_or(Error::NotFound { what: "file of the page", name: name.to_owned() })?;
    let mut text = String::new();
    let read = flate2::read::GzDecoder::new(file.gzip).read_to_string(&mut text);
    read.map(|_| text).map_err(|error| Error::Internal(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_refers_to_nothing_and_ends_its_scripts_once() {
        let page = String::from_utf8(page("QUJD").unwrap()).unwrap();
        assert!(!page.contains("src=\"app") && !page.contains("href=\"app") && !page.contains("<link"));
        assert_eq!(page.matches("</script").count(), 2);
        assert!(page.contains(">QUJD</script>") && page.contains("script-src 'sha256-"));
    }
}
