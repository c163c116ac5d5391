//! Frames as Valgrind's tools and dhat-rs write them.

use crate::locations::Frame;

/// Parses `0x109151: leaf (a.c:4)`, `0x4E: malloc (in /usr/lib/libc.so)` or `0x4E: ???`. Returns
/// the module, which is empty if a source file is named, and the frame.
pub(crate) fn parse(text: &str) -> (String, Frame) {
    let (address, rest) = match text.split_once(": ") {
        Some((address, rest)) if address.starts_with("0x") => (address, rest),
        _ => ("", text),
    };
    let (name, place) = match rest.rfind(" (") {
        Some(at) if rest.ends_with(')') => (&rest[..at], &rest[at + 2..rest.len() - 1]),
        _ => (rest, ""),
    };
    let name = if matches!(name, "???" | "") && !address.is_empty() { address } else { name };
    let mut frame = Frame { name: name.to_owned(), file: String::new(), line: 0 };
    if let Some(module) = place.strip_prefix("in ") {
        return (module.to_owned(), frame);
    }
    // dhat-rs also writes columns.
    let mut parts = place.rsplitn(3, ':');
    let numbers = [parts.next(), parts.next()].map(|part| part.and_then(|part| part.parse::<u32>().ok()));
    match numbers {
        [Some(_), Some(line)] => {
            frame.file = parts.next().unwrap_or_default().to_owned();
            frame.line = line;
        }
        [Some(line), None] => {
            frame.file = place.rsplit_once(':').map_or("", |(file, _)| file).to_owned();
            frame.line = line;
        }
        _ if place.is_empty() => {}
        // Other text in brackets is part of the name.
        _ => frame.name = if name == address { name.to_owned() } else { rest.to_owned() },
    }
    (String::new(), frame)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_of_all_kinds_are_read() {
        let told = |text| {
            let (module, Frame { name, file, line }) = parse(text);
            (module, name, file, line)
        };
        let made = |module: &str, name: &str, file: &str, line| {
            (module.to_owned(), name.to_owned(), file.to_owned(), line)
        };
        assert_eq!(told("0x109151: leaf (a.c:4)"), made("", "leaf", "a.c", 4));
        assert_eq!(told("0x48: malloc (in /usr/lib/libc.so)"), made("/usr/lib/libc.so", "malloc", "", 0));
        assert_eq!(told("0x4E: ???"), made("", "0x4E", "", 0));
        assert_eq!(told("0x4E: ??? (in /bin/x)"), made("/bin/x", "0x4E", "", 0));
        assert_eq!(told("0x1: f(int, char (*)())"), made("", "f(int, char (*)())", "", 0));
        assert_eq!(told("0x1: <T as U>::new (src/a.rs:12:34)"), made("", "<T as U>::new", "src/a.rs", 12));
        assert_eq!(told("in 3 places"), made("", "in 3 places", "", 0));
    }
}
