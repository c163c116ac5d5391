//! Checks the shapes of functions: length and number of parameters.

use crate::sources::code_of;

/// Largest number of lines, from the name to the last brace, without a reason.
const LINES_MAX: usize = 80;
/// Largest number of parameters, not counting `self`.
const PARAMETERS_MAX: usize = 6;
/// Largest number of parameters of type `bool`.
const BOOLS_MAX: usize = 1;
/// Beginning of the comment that says why a function is long.
const REASON: &str = "Long: ";

/// Returns the breaches of a source's functions, each with line and name.
pub(crate) fn breaches(source: &str) -> Vec<(usize, String, String)> {
    let code = code_of(source);
    let lines: Vec<&str> = source.lines().collect();
    let mut found = Vec::new();
    for (at, _) in code.match_indices("fn ") {
        if code[..at].chars().next_back().is_some_and(|letter| letter.is_alphanumeric() || letter == '_') {
            continue;
        }
        let Some(shape) = Shape::of(&code[at..]) else { continue };
        let first = code[..at].matches('\n').count();
        let name = code[at + 3..].split(['(', '<']).next().unwrap_or("").trim();
        if shape.lines > LINES_MAX && !has_reason(&lines, first) {
            found.push((first + 1, name.to_owned(), format!("has {} lines", shape.lines)));
        }
        if shape.parameters > PARAMETERS_MAX {
            found.push((first + 1, name.to_owned(), format!("has {} parameters", shape.parameters)));
        }
        if shape.bools > BOOLS_MAX {
            found.push((first + 1, name.to_owned(), format!("has {} parameters that are bool", shape.bools)));
        }
    }
    found
}

/// True if the comment above a function, or in its first lines, begins with [`REASON`].
fn has_reason(lines: &[&str], first: usize) -> bool {
    let is_other = |line: &&&str| {
        let line = line.trim_start();
        line.starts_with("//") || line.starts_with("#[")
    };
    let above = lines[..first].iter().rev().take_while(is_other);
    let mut near = above.chain(lines[first..].iter().take(12));
    near.any(|line| line.trim_start().trim_start_matches('/').trim_start().starts_with(REASON))
}

struct Shape {
    lines: usize,
    parameters: usize,
    bools: usize,
}

impl Shape {
    /// Parses `code`, which begins with `fn NAME`. `None`: a type, or a declaration without a body.
    fn of(code: &str) -> Option<Self> {
        let open = 3 + list_start(&code[3..])?;
        let name = code[3..open].split('<').next()?.trim();
        if name.is_empty() || !name.chars().all(|letter| letter.is_alphanumeric() || letter == '_') {
            return None;
        }
        let close = open + closing(&code[open..], '(', ')')?;
        let list = &code[open + 1..close];
        let parts = parts(list);
        let parameters = parts.iter().filter(|part| part.contains(':')).count();
        let bools = parts
            .iter()
            .filter(|part| part.split(':').nth(1).is_some_and(|kind| kind.trim() == "bool"))
            .count();
        let body = close + code[close..].find(['{', ';'])?;
        if code[body..].starts_with(';') {
            return None;
        }
        let end = body + closing(&code[body..], '{', '}')?;
        Some(Self { lines: code[..end].matches('\n').count() + 1, parameters, bools })
    }
}

/// Returns the position of the parenthesis behind a function's name and its type parameters.
fn list_start(code: &str) -> Option<usize> {
    let (mut depth, mut before) = (0_i32, ' ');
    for (at, letter) in code.char_indices() {
        match letter {
            '(' if depth == 0 => return Some(at),
            '<' => depth += 1,
            '>' if before != '-' => depth -= 1,
            '{' | ';' => return None,
            _ => {}
        }
        before = letter;
    }
    None
}

/// Returns the position of the bracket that closes the first one.
fn closing(code: &str, open: char, close: char) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, letter) in code.char_indices() {
        if letter == open {
            depth += 1;
        } else if letter == close {
            depth = depth.checked_sub(1)?;
            if depth == 0 {
                return Some(at);
            }
        }
    }
    None
}

/// Splits a list at the commas outside of brackets.
fn parts(list: &str) -> Vec<&str> {
    let (mut found, mut start, mut depth) = (Vec::new(), 0, 0_i32);
    let mut before = ' ';
    for (at, letter) in list.char_indices() {
        match letter {
            '(' | '<' | '[' | '{' => depth += 1,
            '>' if before == '-' => {}
            ')' | '>' | ']' | '}' => depth -= 1,
            ',' if depth == 0 => {
                found.push(&list[start..at]);
                start = at + 1;
            }
            _ => {}
        }
        before = letter;
    }
    found.push(&list[start..]);
    found.retain(|part| !part.trim().is_empty());
    found
}

#[cfg(test)]
mod tests {
    use super::breaches;

    #[test]
    fn long_functions_need_a_reason_and_parameters_are_few() {
        let body = "    x();\n".repeat(90);
        let long = format!("fn long() {{\n{body}}}\n");
        assert_eq!(breaches(&long), [(1, "long".to_owned(), "has 92 lines".to_owned())]);
        assert_eq!(breaches(&format!("/// Long: a table.\n{long}")), []);
        let many = "fn many<T: Fn(u8, u8)>(a: u8, b: &[(u8, u8)], c: T, d: u8, e: u8, f: u8, g: u8) {}\n";
        assert_eq!(breaches(many), [(1, "many".to_owned(), "has 7 parameters".to_owned())]);
        assert_eq!(breaches("fn two(&self, a: bool, b: bool) -> bool { a }\n").len(), 1);
        assert_eq!(breaches("type F = fn(bool, bool); trait T { fn no(a: bool) ; }\n"), []);
    }
}
