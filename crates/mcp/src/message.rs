//! Messages of JSON-RPC 2.0, one a line.

use serde_json::{Map, Value, json};

/// A message of the client.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Message {
    /// A call that gets an answer.
    Request(Request),
    /// A message that gets no answer.
    Notification {
        /// Name of the method.
        method: String,
        /// Parameters of the method.
        params: Map<String, Value>,
    },
    /// An answer of the client; this server asks nothing.
    Answer,
}

/// A call of the client.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Request {
    /// Text or number that the answer repeats.
    pub(crate) id: Value,
    /// Name of the method.
    pub(crate) method: String,
    /// Parameters; empty by default.
    pub(crate) params: Map<String, Value>,
}

impl Request {
    /// Facts about the request itself (`_meta`).
    pub(crate) fn meta(&self, key: &str) -> Option<&Value> {
        self.params.get("_meta")?.get(key)
    }
}

/// An error of the protocol.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Fault {
    /// Code of JSON-RPC or of the protocol.
    code: i32,
    message: String,
    data: Option<Value>,
}

impl Fault {
    /// The line is not JSON.
    pub(crate) fn no_json() -> Self {
        Self { code: -32700, message: "Parse error".to_owned(), data: None }
    }

    /// The line is JSON, and no message of JSON-RPC 2.0.
    pub(crate) fn no_message() -> Self {
        Self { code: -32600, message: "Invalid request".to_owned(), data: None }
    }

    /// A call of the same id has no answer yet.
    pub(crate) fn same_id() -> Self {
        Self { code: -32600, message: "a request with this id has no answer yet".to_owned(), data: None }
    }

    /// The server has no such method.
    pub(crate) fn no_method(method: &str) -> Self {
        Self { code: -32601, message: format!("there is no method {method}"), data: None }
    }

    /// The parameters are not those of the method.
    pub(crate) fn parameters(message: impl Into<String>) -> Self {
        Self { code: -32602, message: message.into(), data: None }
    }

    /// The server does not speak the requested version.
    pub(crate) fn version(requested: &str, supported: &[&str]) -> Self {
        let data = json!({"requested": requested, "supported": supported});
        Self { code: -32022, message: "Unsupported protocol version".to_owned(), data: Some(data) }
    }

    /// The answer to the request with this id; `None` if the id cannot be read.
    pub(crate) fn answer(self, id: Option<&Value>) -> Value {
        let mut error = json!({"code": self.code, "message": self.message});
        if let Some(data) = self.data {
            error["data"] = data;
        }
        let mut answer = json!({"jsonrpc": "2.0", "error": error});
        if let Some(id) = id {
            answer["id"] = id.clone();
        }
        answer
    }
}

/// The answer to the request with this id.
pub(crate) fn answer(id: &Value, result: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

/// Parses a line.
///
/// # Errors
/// The fault, and the id of the request if the line has one.
pub(crate) fn parse(line: &[u8]) -> Result<Message, (Fault, Option<Value>)> {
    let Ok(value) = serde_json::from_slice::<Value>(line) else { return Err((Fault::no_json(), None)) };
    let Value::Object(mut fields) = value else { return Err((Fault::no_message(), None)) };
    let id = fields.remove("id");
    let of_request = id.clone().filter(|id| id.is_string() || id.is_number());
    let no_message = || Err((Fault::no_message(), of_request.clone()));
    if fields.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return no_message();
    }
    let params = match fields.remove("params") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(params)) => params,
        Some(_) => return no_message(),
    };
    match (fields.remove("method"), id) {
        (Some(Value::String(method)), None) => Ok(Message::Notification { method, params }),
        (Some(Value::String(method)), Some(id @ (Value::String(_) | Value::Number(_)))) => {
            Ok(Message::Request(Request { id, method, params }))
        }
        (None, Some(_)) if fields.contains_key("result") || fields.contains_key("error") => {
            Ok(Message::Answer)
        }
        _ => no_message(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_notifications_and_answers_are_told_apart_and_other_lines_refused() {
        let request = parse(br#"{"jsonrpc":"2.0","id":"a","method":"ping"}"#).unwrap();
        let expected = Request { id: "a".into(), method: "ping".to_owned(), params: Map::new() };
        assert_eq!(request, Message::Request(expected));
        let line = br#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}"#;
        assert!(matches!(parse(line), Ok(Message::Notification { params, .. }) if params["requestId"] == 7));
        assert_eq!(parse(br#"{"jsonrpc":"2.0","id":1,"result":{}}"#), Ok(Message::Answer));
        assert_eq!(parse(b"\xff\xfe"), Err((Fault::no_json(), None)));
        for (line, id) in [
            ("7", None),
            ("[]", None),
            (r#"{"jsonrpc":"2.0","id":1}"#, Some(Value::from(1))),
            (r#"{"jsonrpc":"1.0","id":"a","method":"ping"}"#, Some(Value::from("a"))),
            (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, None),
            (r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}"#, Some(Value::from(1))),
        ] {
            assert_eq!(parse(line.as_bytes()), Err((Fault::no_message(), id)), "{line}");
        }
        let said = Fault::no_method("tools/none").answer(Some(&1.into()));
        assert_eq!(said["error"]["message"], "there is no method tools/none");
    }
}
