//! Parts of documents that are written from tables of the code.

use std::path::Path;

/// Variable that makes tests write generated parts, in place of comparing them.
pub const WRITE: &str = "HEAPR_WRITE_GENERATED";

/// Compares the part `name` of a document with `text`, or writes it if [`WRITE`] is set.
///
/// The part lies between the lines `<!-- NAME: written by … -->` and `<!-- end of NAME -->`.
///
/// # Panics
/// Panics if the document has no such part, or another text in it.
pub fn check_part(document: &Path, name: &str, text: &str) {
    let path = document.display();
    let whole = std::fs::read_to_string(document).unwrap_or_else(|error| panic!("{path}: {error}"));
    let written = with_part(&whole, name, text).unwrap_or_else(|| panic!("{path}: no part `{name}`"));
    if std::env::var_os(WRITE).is_some() {
        std::fs::write(document, &written).unwrap_or_else(|error| panic!("{path}: {error}"));
        return;
    }
    assert!(whole == written, "{path}: part `{name}`: run this test with {WRITE}=1");
}

/// Returns a document with another text in a part.
fn with_part(whole: &str, name: &str, text: &str) -> Option<String> {
    let start = whole.find(&format!("<!-- {name}: "))?;
    let from = start + whole[start..].find("-->\n")? + "-->\n".len();
    let to = from + whole[from..].find(&format!("<!-- end of {name} -->"))?;
    Some(format!("{}\n{}\n\n{}", &whole[..from], text.trim_end(), &whole[to..]))
}

#[cfg(test)]
mod tests {
    use super::with_part;

    #[test]
    fn a_part_lies_between_its_marks() {
        let whole = "a\n<!-- rows: written by b -->\nold\n<!-- end of rows -->\nc\n";
        let new = with_part(whole, "rows", "| new |\n").unwrap();
        assert_eq!(new, "a\n<!-- rows: written by b -->\n\n| new |\n\n<!-- end of rows -->\nc\n");
        assert_eq!(with_part(&new, "rows", "| new |").as_deref(), Some(new.as_str()));
        assert_eq!(with_part(whole, "columns", ""), None);
    }
}
