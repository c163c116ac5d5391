//! Leaves names out of answers that say more of a machine and its data than of a program. Left out
//! are folders, command lines, the machine, and texts of a heap. Names of functions and of files
//! stay.

use serde_json::Value;

/// Members whose values are left out.
const LEFT_OUT: [&str; 10] = [
    "command",
    "command_line",
    "kernel",
    "distribution",
    "session",
    "incident",
    "example_text",
    "text_value",
    "unix_ns",
    "start_unix_ns",
];
/// Members that are texts of a heap's strings.
const TEXTS: [&str; 2] = ["text", "value_text"];
/// Members that are paths, or begin with one: folders may have spaces.
const PATHS: [&str; 9] =
    ["path", "file", "module", "executable", "place", "name", "names", "label", "process"];
/// Answers about heaps that have sums by class. All others name single objects, whose names and
/// keys may be any text.
const OF_CLASSES: [&str; 4] = ["snapshot/summary", "snapshot/statistics", "snapshot/diff", "snapshot/series"];

/// Whether an answer names single objects of a heap.
pub(super) fn names_objects(path: &str, body: &Value) -> bool {
    let is_treemap_of_classes = path == "snapshot/treemap" && body["by"] == "classes";
    path.starts_with("snapshot/") && !OF_CLASSES.contains(&path) && !is_treemap_of_classes
}

/// Leaves the names out of an answer.
pub(super) fn hide(value: &mut Value) {
    match value {
        Value::String(text) => *text = without_folders(text),
        Value::Array(values) => values.iter_mut().for_each(hide),
        Value::Object(fields) => {
            let is_string =
                fields.get("type").and_then(Value::as_str).is_some_and(|of| of.contains("string"));
            for (name, field) in fields.iter_mut() {
                if LEFT_OUT.contains(&name.as_str()) {
                    *field = match field {
                        Value::Array(_) => Value::Array(Vec::new()),
                        Value::String(_) if name != "command" => Value::String(String::new()),
                        Value::Number(_) => Value::from(0),
                        _ => Value::Null,
                    };
                } else if let Some(text) = field.as_str()
                    && (TEXTS.contains(&name.as_str()) || is_string && name == "name")
                {
                    *field = Value::String(format!("({} characters)", text.chars().count()));
                } else {
                    if PATHS.contains(&name.as_str()) {
                        hide_path(field);
                    }
                    hide(field);
                }
            }
        }
        _ => {}
    }
}

/// Leaves the folders out of a path, or of each in a list. A name that only has a slash in it, such
/// as an operator's, is no path.
fn hide_path(value: &mut Value) {
    match value {
        Value::String(text) if text.starts_with(['/', '~']) || text.starts_with("./") => {
            if let Some((_, name)) = text.rsplit_once('/') {
                *text = format!("…/{name}");
            }
        }
        Value::Array(values) => values.iter_mut().for_each(hide_path),
        _ => {}
    }
}

/// Leaves the folders out of the values of a page's address.
pub(super) fn address(text: &str) -> String {
    let pair = |pair: &str| match pair.split_once('=') {
        Some((name, value)) => {
            let mut value = Value::String(decoded(value));
            hide(&mut value);
            format!("{name}={}", super::encoded(value.as_str().unwrap_or_default()))
        }
        None => pair.to_owned(),
    };
    text.split('&').map(pair).collect::<Vec<_>>().join("&")
}

/// Decodes a value of a page's address.
fn decoded(value: &str) -> String {
    let value = value.as_bytes();
    let digit = |at: usize| value.get(at).and_then(|&byte| char::from(byte).to_digit(16));
    let mut bytes = Vec::with_capacity(value.len());
    let mut at = 0;
    while let Some(&byte) = value.get(at) {
        match (byte, digit(at + 1), digit(at + 2)) {
            (b'%', Some(high), Some(low)) => {
                bytes.push((high * 16 + low) as u8);
                at += 3;
            }
            (byte, ..) => {
                bytes.push(if byte == b'+' { b' ' } else { byte });
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Replaces the folders of paths in a text: of absolute ones, and of those whose file's name has an
/// extension.
fn without_folders(text: &str) -> String {
    let is_end = |c: char| c.is_whitespace() || "\"'`,;:()<>[]{}|=&".contains(c);
    let mut told = String::with_capacity(text.len());
    // Each part is a word with the sign that ends it.
    for part in text.split_inclusive(is_end) {
        let whole = part.trim_end_matches(is_end);
        // A pattern begins with an image, which stays.
        let image = whole.find('!').filter(|&at| !whole[..at].contains('/')).map_or(0, |at| at + 1);
        let word = &whole[image..];
        match word.rsplit_once('/') {
            Some((folders, name)) if is_path(folders, name) => {
                told.push_str(&whole[..image]);
                told.push_str("…/");
                told.push_str(name);
                told.push_str(&part[whole.len()..]);
            }
            _ => told.push_str(part),
        }
    }
    told
}

/// Whether the text before the last slash of a word is folders: a single sign is an operator.
fn is_path(folders: &str, name: &str) -> bool {
    if folders.starts_with('/') || folders.is_empty() {
        return !(folders.trim_start_matches('/').is_empty() && name.is_empty());
    }
    let extension = name.rsplit_once('.').filter(|(stem, _)| !stem.is_empty());
    let is_file = extension.is_some_and(|(_, extension)| extension.starts_with(|c: char| c.is_alphabetic()));
    is_file || folders.starts_with(['~', '.'])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn folders_command_lines_and_texts_are_left_out_and_names_of_functions_stay() {
        let mut value = json!({
            "path": "/home/ann/secret/app.heapr",
            "frames": [{"symbol": "shop::operator/(int)", "file": "/home/ann/shop/server.cc", "line": 4}],
            "command_line": ["/home/ann/app", "--password=x"],
            "command": "heapr report /home/ann/app.heapr",
            "sentence": "held by `f` (/home/ann/shop/server.cc:24), see file:///home/ann/x.js",
            "rows": [{"type": "string", "name": "hunter2", "class": "(string)"}],
        });
        hide(&mut value);
        let text = value.to_string();
        assert!(!text.contains("ann") && !text.contains("hunter2") && !text.contains("password"), "{text}");
        assert_eq!(value["path"], "…/app.heapr");
        assert_eq!(value["frames"][0]["symbol"], "shop::operator/(int)");
        assert_eq!(value["frames"][0]["file"], "…/server.cc");
        assert_eq!(value["rows"][0]["name"], "(7 characters)");
        for same in ["a / b", "// a", "operator/", "10 KB/s.", "1/2.5"] {
            assert_eq!(without_folders(same), same);
        }
        assert_eq!(without_folders("at src/secret/a.c:3"), "at …/a.c:3");
        assert_eq!(without_folders("py!/srv/secret/load.py"), "py!…/load.py");
        assert_eq!(without_folders("/srv/a!secret/load.py"), "…/load.py");
    }

    #[test]
    fn folders_with_spaces_and_those_of_an_address_are_left_out() {
        let mut value = json!({"path": "/home/ann lee/b c/app", "names": ["", "/home/ann lee/app", "f"]});
        hide(&mut value);
        assert_eq!(value, json!({"path": "…/app", "names": ["", "…/app", "f"]}));
        assert_eq!(
            address("view=stacks&notes=see+%2Fhome%2Fann%2Fx&a"),
            "view=stacks&notes=see%20%E2%80%A6%2Fx&a"
        );
        assert!(names_objects("snapshot/object", &json!({"file": 0})));
        assert!(!names_objects("snapshot/summary", &json!({})) && !names_objects("report", &json!({})));
    }
}
