//! Names of classes as programmers write them.

/// Largest number of dimensions of an array, as the virtual machine allows it.
const DIMENSIONS_MAX: usize = 255;
/// Largest number of characters of a name that is made of others.
const MADE_NAME_MAX: usize = 256;

/// Shortens a name that is made of others, if it is long.
pub(super) fn cut(mut name: String) -> String {
    let end = name.char_indices().nth(MADE_NAME_MAX).map(|(end, _)| end);
    if let Some(end) = end {
        name.truncate(end);
    }
    name
}

/// Converts a class name of a dump: `java/util/HashMap$Node` and `[Ljava.lang.String;` become
/// `java.util.HashMap$Node` and `java.lang.String[]`.
pub(super) fn readable(name: &str) -> String {
    let element = name.trim_start_matches('[');
    let dimensions = name.len() - element.len();
    let base = match (dimensions, element) {
        (0, _) => element.replace('/', "."),
        (_, "Z") => "boolean".to_owned(),
        (_, "B") => "byte".to_owned(),
        (_, "C") => "char".to_owned(),
        (_, "S") => "short".to_owned(),
        (_, "I") => "int".to_owned(),
        (_, "J") => "long".to_owned(),
        (_, "F") => "float".to_owned(),
        (_, "D") => "double".to_owned(),
        _ => {
            let element = element.strip_prefix('L').unwrap_or(element);
            element.strip_suffix(';').unwrap_or(element).replace('/', ".")
        }
    };
    base + &"[]".repeat(dimensions.min(DIMENSIONS_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_source() {
        for (name, expected) in [
            ("java/util/HashMap$Node", "java.util.HashMap$Node"),
            ("[Ljava/lang/String;", "java.lang.String[]"),
            ("[[Ljava.lang.String;", "java.lang.String[][]"),
            ("[I", "int[]"),
            ("[[B", "byte[][]"),
            ("java.lang.String[]", "java.lang.String[]"),
            ("[", "[]"),
            ("", ""),
        ] {
            assert_eq!(readable(name), expected);
        }
    }

    #[test]
    fn long_names_are_cut() {
        assert_eq!(readable(&"[".repeat(4096)).len(), 2 * DIMENSIONS_MAX);
        assert_eq!(cut("ä".repeat(300)).chars().count(), MADE_NAME_MAX);
        assert_eq!(cut("short".to_owned()), "short");
    }
}
