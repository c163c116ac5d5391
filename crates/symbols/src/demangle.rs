//! Demangling: names as their languages write them.

use std::fmt::{self, Write};

/// Longest mangled name that is read, in bytes.
const MANGLED_BYTES_MAX: usize = 64 << 10;
/// Longest demangled text in bytes. Hostile names repeat themselves: a hundred bytes can expand to
/// gigabytes.
const DEMANGLED_BYTES_MAX: usize = 64 << 10;
/// Largest number of pieces in a demangled text. Empty pieces can be repeated too.
const PIECES_MAX: u32 = 256 << 10;

/// Demangles a name: Rust (legacy and v0, without the hash), C++, D. Other names, and those with
/// too long a result, are returned unchanged.
#[must_use]
pub fn demangle(name: &str) -> String {
    // A version that the linker has appended (`malloc@@GLIBC_2.2.5`) is not part of the name.
    let name = name.split_once('@').map_or(name, |(name, _)| name);
    demangled(name).unwrap_or_else(|| name.to_owned())
}

/// True if a name is mangled, so that it contains its scope.
pub(crate) fn is_mangled(name: &str) -> bool {
    ["_Z", "__Z", "_R", "_D"].iter().any(|start| name.starts_with(start)) && demangled(name).is_some()
}

fn demangled(name: &str) -> Option<String> {
    if name.len() > MANGLED_BYTES_MAX || !name.starts_with(['_', 'Z', 'R']) {
        return None;
    }
    let mut text = BoundedText { text: String::new(), pieces_left: PIECES_MAX };
    if let Ok(rust) = rustc_demangle::try_demangle(name) {
        return write!(text, "{rust:#}").ok().map(|()| text.text);
    }
    if name.starts_with("_Z") || name.starts_with("__Z") {
        let symbol = cpp_demangle::Symbol::new(name).ok()?;
        let options = cpp_demangle::DemangleOptions::default();
        return symbol.structured_demangle(&mut text, &options).ok().map(|()| text.text);
    }
    d_demangle::demangle(name, &mut text).map(|()| text.text)
}

/// A text of limited size.
struct BoundedText {
    text: String,
    pieces_left: u32,
}

impl Write for BoundedText {
    fn write_str(&mut self, piece: &str) -> fmt::Result {
        self.pieces_left = self.pieces_left.checked_sub(1).ok_or(fmt::Error)?;
        if self.text.len() + piece.len() > DEMANGLED_BYTES_MAX {
            return Err(fmt::Error);
        }
        self.text.push_str(piece);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_written_as_in_their_languages() {
        assert_eq!(
            demangle("_ZNSt6vectorIiSaIiEE9push_backERKi"),
            "std::vector<int, std::allocator<int> >::push_back(int const&)"
        );
        assert_eq!(
            demangle("_ZN5alloc5alloc15exchange_malloc17h0123456789abcdefE"),
            "alloc::alloc::exchange_malloc"
        );
        assert_eq!(demangle("_RNvC6_123foo3bar"), "123foo::bar");
        assert_eq!(demangle("_D3std5stdio7writelnFiZv"), "std.stdio.writeln(int)");
        assert_eq!(demangle("malloc@@GLIBC_2.2.5"), "malloc");
        assert_eq!(demangle("main"), "main");
    }

    #[test]
    fn a_name_that_would_be_endless_stays_mangled() {
        // Each argument is a pair of the preceding one.
        let mut cpp = "_Z1f1AIiiE".to_owned();
        for level in 0..29 {
            let before = char::from_digit(level, 36).unwrap().to_ascii_uppercase();
            cpp += &format!("S_IS{before}_S{before}_E");
        }
        assert!(demangle(&cpp).len() <= DEMANGLED_BYTES_MAX);
        let d = format!("_D1fF{}Zv", "Bi".repeat(5000));
        assert!(demangle(&d).len() <= DEMANGLED_BYTES_MAX);
        let long = format!("_ZN{}E", "1a".repeat(MANGLED_BYTES_MAX));
        assert_eq!(demangle(&long), long);
    }
}
