//! Patterns with `*`, compared without regard to (ASCII) case.

/// A pattern in which `*` matches any run of characters, including an empty one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Glob {
    /// The pattern in lower case.
    text: Box<str>,
    has_star: bool,
    /// Number of bytes before the first star.
    prefix: usize,
    /// Number of bytes after the last star.
    suffix: usize,
}

impl Glob {
    pub(crate) fn new(text: &str) -> Self {
        let prefix = text.find('*');
        Self {
            text: text.to_ascii_lowercase().into(),
            has_star: prefix.is_some(),
            prefix: prefix.unwrap_or(text.len()),
            suffix: text.rfind('*').map_or(0, |star| text.len() - star - 1),
        }
    }

    /// The text to compare with, if the pattern has no star.
    pub(crate) fn as_literal(&self) -> Option<&str> {
        (!self.has_star).then_some(&self.text)
    }

    /// The first byte of all that it matches; `None`: any, or none.
    pub(crate) fn start(&self) -> Option<u8> {
        self.text.bytes().next().filter(|&byte| byte != b'*')
    }

    /// Whether the pattern matches all of `name_lower`, which must be in lower case.
    pub(crate) fn matches_lower(&self, name_lower: &str) -> bool {
        if !self.has_star {
            return *self.text == *name_lower;
        }
        let (pattern, name) = (self.text.as_bytes(), name_lower.as_bytes());
        // Most names differ from the pattern in its ends, which are compared first.
        let (prefix, suffix) = (&pattern[..self.prefix], &pattern[pattern.len() - self.suffix..]);
        if name.len() < prefix.len() + suffix.len() || !name.starts_with(prefix) || !name.ends_with(suffix) {
            return false;
        }
        let is_one_star = prefix.len() + suffix.len() + 1 == pattern.len();
        is_one_star
            || glob_match(
                &pattern[prefix.len()..pattern.len() - suffix.len()],
                &name[prefix.len()..name.len() - suffix.len()],
            )
    }
}

/// Matches greedily with one step back. On a mismatch only the last star takes one character more:
/// characters that an earlier star could take, the last one can take as well. O(pattern x name) at
/// worst.
pub(crate) fn glob_match(pattern: &[u8], name: &[u8]) -> bool {
    matches(pattern, name, None)
}

/// Variant of [`glob_match`] in which `?` matches any one character.
pub(crate) fn glob_match_one(pattern: &[u8], name: &[u8]) -> bool {
    matches(pattern, name, Some(b'?'))
}

fn matches(pattern: &[u8], name: &[u8], any_one: Option<u8>) -> bool {
    let (mut in_pattern, mut in_name) = (0, 0);
    let mut last_star: Option<(usize, usize)> = None;
    while in_name < name.len() {
        match pattern.get(in_pattern) {
            Some(b'*') => {
                last_star = Some((in_pattern + 1, in_name));
                in_pattern += 1;
            }
            Some(&byte) if byte == name[in_name] || Some(byte) == any_one => {
                in_pattern += 1;
                in_name += 1;
            }
            _ => match &mut last_star {
                Some((after_star, taken_to)) => {
                    *taken_to += 1;
                    in_pattern = *after_star;
                    in_name = *taken_to;
                }
                None => return false,
            },
        }
    }
    pattern[in_pattern..].iter().all(|&byte| byte == b'*')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Reference implementation: obviously right, exponential.
    fn naive(pattern: &[u8], name: &[u8]) -> bool {
        match pattern.split_first() {
            None => name.is_empty(),
            Some((b'*', rest)) => (0..=name.len()).any(|taken| naive(rest, &name[taken..])),
            Some((byte, rest)) => {
                name.split_first().is_some_and(|(first, tail)| first == byte && naive(rest, tail))
            }
        }
    }

    proptest! {
        #[test]
        fn equals_the_naive_matcher(pattern in "[ab*]{0,8}", name in "[ab]{0,10}") {
            prop_assert_eq!(Glob::new(&pattern).matches_lower(&name), naive(pattern.as_bytes(), name.as_bytes()));
        }
    }

    #[test]
    fn case_of_the_pattern_does_not_matter() {
        assert!(Glob::new("G_Malloc*").matches_lower("g_malloc0_n"));
        assert!(!Glob::new("g_malloc").matches_lower("g_malloc0"));
    }
}
