//! The forms of a demangled symbol that a pattern may name.
//!
//! | form | example |
//! |---|---|
//! | as demangled | `char* std::pool<int>::get<long>(long, (anonymous namespace)::tag) const` |
//! | without arguments | `char* std::pool<int>::get<long>` |
//! | plain: without arguments, templates and return type | `std::pool::get` |
//!
//! Rust's paths lose their generics in the same way, and `<Type as Trait>::method` has the plain
//! form `Type::method`.

/// Passes the distinct forms of `symbol_lower` (in lower case) to `visit`, the full one first,
/// until `visit` returns true. Returns whether it did.
pub(crate) fn for_each_form(symbol_lower: &str, mut visit: impl FnMut(&str) -> bool) -> bool {
    if visit(symbol_lower) {
        return true;
    }
    if !symbol_lower.bytes().any(|byte| matches!(byte, b'(' | b'<' | b'[' | b' ')) {
        return false;
    }
    let without_arguments = without_arguments(symbol_lower);
    if without_arguments != symbol_lower && visit(&without_arguments) {
        return true;
    }
    let plain = plain(&without_arguments);
    plain != without_arguments && visit(&plain)
}

/// A symbol without arguments, templates and return type; as a pattern it matches the symbol.
#[must_use]
pub fn plain_symbol(symbol: &str) -> String {
    plain(&without_arguments(symbol))
}

/// Name, file and line of a script's function, in V8's form `handle /srv/app.js:5:49`. `None` if
/// the symbol has another form.
#[must_use]
pub fn script_place(symbol: &str) -> Option<(&str, &str, u32)> {
    let (place, column) = symbol.rsplit_once(':')?;
    let (before, line) = place.rsplit_once(':')?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(column) || !is_number(line) {
        return None;
    }
    // A path may have blanks, a name does not.
    let (name, file) = before.split_once(' ')?;
    let is_file = file.contains('/') || file.contains('.');
    let name = if name.is_empty() { "(anonymous)" } else { name };
    is_file.then_some((name, file, line.parse().ok()?))
}

/// A symbol shortened for reading. Texts between the brackets of templates and arguments are
/// replaced (`std::vector<…>::push_back(…)`), and ABI tags are left out.
#[must_use]
pub fn folded(symbol: &str) -> String {
    let mut kept = String::with_capacity(symbol.len());
    let mut at = 0;
    if symbol.starts_with('<') {
        // Rust's `<Type as Trait>::method`: the types distinguish it from other methods.
        at = balanced_length(symbol, b'<', b'>');
        let inner = symbol[1..at].strip_suffix('>').unwrap_or(&symbol[1..at]);
        kept = format!("<{}>", folded(inner));
    }
    while at < symbol.len() {
        let rest = &symbol[at..];
        if let Some(length) = operator_length(rest, &kept) {
            kept.push_str(&rest[..length]);
            at += length;
            continue;
        }
        let bracket = match rest.as_bytes()[0] {
            // Python's `f.<locals>.g`.
            b'<' if kept.ends_with('.') => None,
            b'<' => Some((b'<', b'>', "<…>")),
            b'(' if rest.starts_with("(anonymous namespace)") => None,
            b'(' if rest.starts_with("()") => None,
            // `(anonymous)` and the like of languages.
            b'(' if kept.is_empty() => None,
            b'(' => Some((b'(', b')', "(…)")),
            b'[' if rest.starts_with("[abi:") => Some((b'[', b']', "")),
            _ => None,
        };
        let length = match bracket {
            Some((open, close, mark)) => {
                kept.push_str(mark);
                balanced_length(rest, open, close)
            }
            None => {
                let length = match rest.starts_with("(anonymous namespace)") {
                    true => "(anonymous namespace)".len(),
                    false => plain_length(rest),
                };
                kept.push_str(&rest[..length]);
                length
            }
        };
        at += length;
    }
    kept
}

/// Cuts argument lists, qualifiers after them, ABI tags and clone suffixes.
fn without_arguments(symbol: &str) -> String {
    let bytes = symbol.as_bytes();
    let mut kept = String::with_capacity(symbol.len());
    let mut angles = 0_usize;
    let mut at = 0;
    while at < bytes.len() {
        let rest = &symbol[at..];
        if let Some(length) = operator_length(rest, kept.as_str()) {
            kept.push_str(&rest[..length]);
            at += length;
            continue;
        }
        match bytes[at] {
            b'<' => angles += 1,
            b'>' if !kept.ends_with('-') => angles = angles.saturating_sub(1),
            b'(' if angles == 0 => {
                const ANONYMOUS: &str = "(anonymous namespace)";
                if rest.starts_with(ANONYMOUS) {
                    kept.push_str(ANONYMOUS);
                    at += ANONYMOUS.len();
                } else if kept.is_empty() || is_template_of_d(&kept) {
                    // What begins with a bracket is a name, such as `(below main)`.
                    let length = balanced_length(rest, b'(', b')');
                    kept.push_str(&rest[..length]);
                    at += length;
                } else {
                    at += balanced_length(rest, b'(', b')');
                }
                continue;
            }
            b'[' if angles == 0 && !rest.starts_with("[]") && !kept.is_empty() => {
                at += balanced_length(rest, b'[', b']');
                continue;
            }
            _ => {}
        }
        let length = plain_length(rest);
        kept.push_str(&rest[..length]);
        at += length;
    }
    loop {
        let trimmed = kept.trim_end();
        let trimmed = [" const", " volatile", " &&", " &", " noexcept"]
            .iter()
            .find_map(|suffix| trimmed.strip_suffix(suffix))
            .unwrap_or(trimmed);
        if trimmed.len() == kept.len() {
            return kept;
        }
        kept.truncate(trimmed.len());
    }
}

/// Cuts template arguments and the return type from a result of [`without_arguments`].
fn plain(symbol: &str) -> String {
    if symbol.starts_with('(') && balanced_length(symbol, b'(', b')') == symbol.len() {
        return symbol.to_owned();
    }
    let mut kept = String::with_capacity(symbol.len());
    let mut at = 0;
    if symbol.starts_with('<') {
        // Rust's `<Type as Trait>::method` and `<Type>::method`.
        let length = balanced_length(symbol, b'<', b'>');
        let inner = symbol[1..length].trim_end_matches('>');
        let subject = inner.split(" as ").next().unwrap_or(inner);
        kept.push_str(&plain(subject));
        at = length;
    }
    while at < symbol.len() {
        let rest = &symbol[at..];
        if let Some(length) = operator_length(rest, &kept) {
            kept.push_str(&rest[..length]);
            at += length;
        } else if rest.starts_with('(') && is_template_of_d(&kept) {
            kept.pop();
            at += balanced_length(rest, b'(', b')');
        } else if rest.starts_with('<') {
            at += balanced_length(rest, b'<', b'>');
            // Rust writes `path::<T>::next` and `path::<T>`.
            if kept.ends_with("::") && (symbol[at..].starts_with("::") || at == symbol.len()) {
                kept.truncate(kept.len() - 2);
            }
        } else {
            let length = plain_length(rest);
            kept.push_str(&rest[..length]);
            at += length;
        }
    }
    kept.truncate(kept.trim_end().len());
    // Names such as `operator new` and `operator unsigned long` hold spaces: a return type ends at
    // the last space before the name.
    let name_end = kept.find("operator ").unwrap_or(kept.len());
    let unspaced = kept[..name_end].replace("(anonymous namespace)", "(anonymous_namespace)");
    match unspaced.rfind(' ') {
        Some(space) => kept[space + 1..].to_owned(),
        None => kept,
    }
}

/// Whether a bracket behind `before` opens the arguments of a D template.
fn is_template_of_d(before: &str) -> bool {
    before.ends_with('!') && !before.ends_with("operator!")
}

/// Length of the part at the start of `rest` that is copied unchanged. It is the first character,
/// and the others up to the next character that may have a meaning.
fn plain_length(rest: &str) -> usize {
    let bytes = rest.as_bytes();
    let first = rest.chars().next().map_or(1, char::len_utf8);
    // (The `o` may be that of `operator`.)
    let means_something = |&at: &usize| match bytes[at] {
        b'<' | b'>' | b'(' | b'[' => true,
        b'o' => bytes.get(at + 1) == Some(&b'p'),
        _ => false,
    };
    (first..bytes.len()).find(means_something).unwrap_or(bytes.len())
}

/// Length of `operator<<`, `operator()` and the like at the start of `rest`, where brackets are
/// part of the name.
fn operator_length(rest: &str, before: &str) -> Option<usize> {
    let tail = rest.strip_prefix("operator")?;
    if before.ends_with(|last: char| last.is_alphanumeric() || last == '_') {
        return None;
    }
    ["()", "[]", "<=>", "<<=", ">>=", "->*", "->", "<<", ">>", "<=", ">=", "<", ">"]
        .iter()
        .find(|sign| tail.starts_with(**sign))
        .map(|sign| "operator".len() + sign.len())
}

/// Length of the bracketed text at the start of `text`; all of it if the bracket is never closed.
fn balanced_length(text: &str, open: u8, close: u8) -> usize {
    let mut depth = 0_usize;
    let mut previous = 0;
    for (at, byte) in text.bytes().enumerate() {
        if byte == open {
            depth += 1;
        } else if byte == close && !(close == b'>' && previous == b'-') {
            depth -= 1;
            if depth == 0 {
                return at + 1;
            }
        }
        previous = byte;
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn functions_of_scripts_have_a_place_and_those_of_c_have_none() {
        assert_eq!(script_place("handle /srv/my app.js:5:49"), Some(("handle", "/srv/my app.js", 5)));
        assert_eq!(script_place(" node:internal/a.js:7:1"), Some(("(anonymous)", "node:internal/a.js", 7)));
        for other in ["f", "void f(int)", "a::b::c", "x y:1:2", "f /a.js:5", "f /a.js:5:", ":1:2"] {
            assert_eq!(script_place(other), None, "{other}");
        }
    }

    #[test]
    fn brackets_are_folded_and_operators_are_none() {
        for (symbol, wanted) in [
            ("std::vector<int, std::allocator<int> >::push_back(int&&)", "std::vector<…>::push_back(…)"),
            ("main", "main"),
            ("add.<locals>.<listcomp>", "add.<locals>.<listcomp>"),
            ("f() const", "f() const"),
            ("app::operator<(app::A const&, app::A const&)", "app::operator<(…)"),
            ("app::(anonymous namespace)::f(int)", "app::(anonymous namespace)::f(…)"),
            ("std::string app::f[abi:cxx11](int)", "std::string app::f(…)"),
            (
                "<alloc::vec::Vec<T> as core::Extend<T>>::extend",
                "<alloc::vec::Vec<…> as core::Extend<…>>::extend",
            ),
            (
                "app::run()::{lambda(int)#1}::operator()(int) const",
                "app::run()::{lambda(…)#1}::operator()(…) const",
            ),
        ] {
            assert_eq!(folded(symbol), wanted);
        }
    }

    fn forms(symbol: &str) -> Vec<String> {
        let mut forms = Vec::new();
        for_each_form(symbol, |form| {
            forms.push(form.to_owned());
            false
        });
        forms
    }

    #[test]
    fn arguments_templates_and_return_types_fall_away() {
        assert_eq!(forms("malloc"), ["malloc"]);
        assert_eq!(forms("operator new(unsigned long)"), ["operator new(unsigned long)", "operator new"]);
        assert_eq!(forms("operator new[](unsigned long)").last().unwrap(), "operator new[]");
        assert_eq!(
            forms("std::vector<int, std::allocator<int> >::push_back(int&&)").last().unwrap(),
            "std::vector::push_back"
        );
        assert_eq!(
            forms("char* std::string::_s_construct<char*>(char*, char*)").last().unwrap(),
            "std::string::_s_construct"
        );
        assert_eq!(
            forms("foo(int)::{lambda(long)#1}::operator()(long) const").last().unwrap(),
            "foo::{lambda#1}::operator()"
        );
        assert_eq!(forms("std::operator<< <char>(std::ostream&)").last().unwrap(), "std::operator<<");
        assert_eq!(forms("(anonymous namespace)::f(int)").last().unwrap(), "(anonymous namespace)::f");
        assert_eq!(forms("a::operator unsigned long() const").last().unwrap(), "a::operator unsigned long");
        assert_eq!(forms("f[abi:cxx11](int) [clone .cold]").last().unwrap(), "f");
        assert_eq!(forms("(below main)"), ["(below main)"]);
        assert_eq!(plain_symbol("(below main)"), "(below main)");
    }

    #[test]
    fn rust_paths_lose_generics_and_traits() {
        assert_eq!(
            forms("alloc::raw_vec::rawvec<t,a>::grow_one").last().unwrap(),
            "alloc::raw_vec::rawvec::grow_one"
        );
        assert_eq!(
            forms("alloc::raw_vec::finish_grow::<alloc::alloc::global>").last().unwrap(),
            "alloc::raw_vec::finish_grow"
        );
        assert_eq!(
            forms("<alloc::vec::vec<t> as core::iter::fromiterator<t>>::from_iter").last().unwrap(),
            "alloc::vec::vec::from_iter"
        );
        assert_eq!(forms("alloc::slice::<impl [t]>::to_vec").last().unwrap(), "alloc::slice::to_vec");
    }

    #[test]
    fn what_stands_between_brackets_is_taken_at_once_and_whole() {
        assert_eq!(forms("ns::foo::color(ooo)").last().unwrap(), "ns::foo::color");
        assert_eq!(forms("é<o>::cooperator<int>::o(é)").last().unwrap(), "é::cooperator::o");
        assert_eq!(forms("a::operator->(int)").last().unwrap(), "a::operator->");
        assert_eq!(forms("f(int) const &").last().unwrap(), "f");
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(symbol in "[a-c<>()\\[\\] :*&é-]{0,24}|operator[<>()a \\[\\]-]{0,12}") {
            forms(&symbol);
        }
    }
}
