//! Key of a recorded answer, which the page computes from a request in the same way.

use serde_json::{Map, Value};

/// Fields that only limit how much of an answer is sent.
const AMOUNT_FIELDS: [&str; 13] = [
    "offset",
    "limit",
    "bins",
    "series_max",
    "frames_max",
    "nodes_max",
    "least_share",
    "source_lines",
    "from_ns",
    "to_ns",
    "descending",
    "top",
    "same",
];

/// Path and essential part of the body.
pub(super) fn key(path: &str, body: &Value) -> String {
    match essential(body) {
        // serde_json keeps the fields of objects in alphabetical order.
        Some(body) => format!("/api/{path} {body}"),
        None => format!("/api/{path}"),
    }
}

fn essential(value: &Value) -> Option<Value> {
    match value {
        Value::Null | Value::Bool(false) => None,
        Value::String(text) if text.is_empty() => None,
        Value::Array(values) if values.is_empty() => None,
        Value::Object(fields) => {
            let kept: Map<String, Value> = fields
                .iter()
                .filter(|(name, _)| !AMOUNT_FIELDS.contains(&name.as_str()))
                .filter_map(|(name, value)| Some((name.clone(), essential(value)?)))
                .collect();
            (!kept.is_empty()).then_some(Value::Object(kept))
        }
        value => Some(value.clone()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_key_holds_what_chooses_an_answer_in_alphabetical_order() {
        let body = json!({"file": 0, "sort": "so", "by": "stacks", "filter": {}, "match": "", "limit": 8, "root": null, "ok": true});
        assert_eq!(key("report", &body), r#"/api/report {"by":"stacks","file":0,"ok":true,"sort":"so"}"#);
        assert_eq!(key("files", &Value::Null), "/api/files");
        assert_eq!(
            key("x", &json!({"of": [{"number": 1, "file": 0}]})),
            r#"/api/x {"of":[{"file":0,"number":1}]}"#
        );
    }
}
