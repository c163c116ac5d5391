//! The page's files, which the build script embeds compressed from `ui/dist`. A build without them
//! embeds a small page that says so.

/// A file of the page.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PageFile {
    /// Path in the address, without the leading slash.
    pub(crate) path: &'static str,
    pub(crate) content_type: &'static str,
    /// Content, compressed with gzip.
    pub(crate) gzip: &'static [u8],
}

include!(concat!(env!("OUT_DIR"), "/page_files.rs"));

/// The file for a path in the address; `/` is the page itself.
pub(crate) fn file(path: &str) -> Option<&'static PageFile> {
    let path = path.trim_start_matches('/');
    let path = if path.is_empty() { "index.html" } else { path };
    PAGE_FILES.iter().find(|file| file.path == path)
}

/// True if this build contains the page, false if only the small one.
#[must_use]
pub fn has_page() -> bool {
    file("app.js").is_some()
}

/// Content security policy of the page: only the server's own resources are allowed.
pub(crate) const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
    img-src 'self' data: blob:; font-src 'self'; connect-src 'self'; worker-src 'self'; manifest-src 'self'; \
    base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    #[test]
    fn the_page_is_there_and_asks_for_nothing_from_elsewhere() {
        let index = file("/").unwrap();
        assert_eq!(index.content_type, "text/html; charset=utf-8");
        let mut text = String::new();
        flate2::read::GzDecoder::new(index.gzip).read_to_string(&mut text).unwrap();
        assert!(text.contains("heapr"));
        assert!(!text.contains("src=\"http") && !text.contains("href=\"http"), "{text}");
        assert!(file("/nothing").is_none() && file("/../Cargo.toml").is_none());
    }
}
