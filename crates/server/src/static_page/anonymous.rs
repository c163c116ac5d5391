//! Leaves names out of answers that say more of a machine and its data than of a program: folders,
//! command lines, the machine, texts of a heap. Names of functions and of files stay.

use serde_json::Value;

/// Members whose values are left out.
const LEFT_OUT: [&str; 9] = [
    "command",
    "command_line",
    "kernel",
    "distribution",
    "session",
    "example_text",
    "text_value",
    "unix_ns",
    "start_unix_ns",
];
/// Members that are texts of a heap's strings.
const TEXTS: [&str; 2] = ["text", "value_text"];

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
                    hide(field);
                }
            }
        }
        _ => {}
    }
}

/// Replaces the folders of absolute paths in a text.
fn without_folders(text: &str) -> String {
    let is_end = |c: char| c.is_whitespace() || "\"'`,;:()<>[]{}|=".contains(c);
    let mut told = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find('/') {
        let (before, path) = rest.split_at(start);
        told.push_str(before);
        let is_first =
            before.chars().next_back().map_or(told.is_empty(), |c| is_end(c) || c == '~' || c == '.');
        let is_first = is_first || (before.is_empty() && told.chars().next_back().is_none_or(is_end));
        let length = path.find(is_end).unwrap_or(path.len());
        let (path, behind) = path.split_at(length);
        match path.rsplit_once('/') {
            // A single sign is an operator, and `//` belongs to a URL or a comment.
            Some((folder, name)) if is_first && !(folder.is_empty() && name.is_empty()) => {
                told.push_str("…/");
                told.push_str(name);
            }
            _ => told.push_str(path),
        }
        rest = behind;
    }
    told.push_str(rest);
    told
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
        assert_eq!(without_folders("a / b"), "a / b");
    }
}
