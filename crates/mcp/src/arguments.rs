//! Arguments of tools, described once for the client's schema and for the checks.

use heapr_filters::quantity;
use heapr_query::Metric;
use serde_json::{Map, Value, json};

use crate::{Error, Result};

/// Type of an argument.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind {
    /// A text.
    Text,
    /// Some texts, at least one.
    Texts,
    /// A whole number from 1 to this one.
    Count(u64),
    /// One of these words.
    Choice(&'static [&'static str]),
    /// Sort key of reports.
    SortKey,
    /// Yes or no.
    Flag,
    /// An amount of bytes.
    Size,
    /// A length of time.
    Duration,
    /// A time of a recording.
    Time,
    /// A time of a recording, or `peak`.
    Moment,
}

impl Kind {
    /// Checks a text as the command line will read it.
    fn check_text(self, text: &str) -> std::result::Result<(), String> {
        // The start of the recording is unknown here; any will do to read a time of day.
        const START_UNIX_NS: u64 = 1 << 60;
        let outcome = match self {
            Self::Size => quantity::parse_bytes(text).map(drop),
            Self::Duration => quantity::parse_duration_ns(text).map(drop),
            Self::Moment if text == "peak" => Ok(()),
            Self::Time | Self::Moment => quantity::parse_time_ns(text, START_UNIX_NS).map(drop),
            _ => Ok(()),
        };
        outcome.map_err(|error| error.to_string())
    }
}

/// An argument of a tool.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Argument {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) about: &'static str,
    pub(crate) is_required: bool,
    /// Former name, which is understood, too; empty: no other name.
    pub(crate) was: &'static str,
}

/// Largest number of bytes of all texts of a call.
const TEXT_BYTES_MAX: usize = 64 << 10;
/// Largest number of texts in a list.
const TEXTS_MAX: usize = 256;

/// The JSON schema of a tool's arguments.
pub(crate) fn schema(arguments: &[Argument]) -> Map<String, Value> {
    let mut properties = Map::new();
    for argument in arguments {
        let mut property = match argument.kind {
            Kind::Text | Kind::Size | Kind::Duration | Kind::Time | Kind::Moment => json!({"type": "string"}),
            Kind::Texts => json!({"type": "array", "items": {"type": "string"}, "minItems": 1}),
            Kind::Count(most) => json!({"type": "integer", "minimum": 1, "maximum": most}),
            Kind::Choice(words) => json!({"type": "string", "enum": words}),
            Kind::SortKey => {
                let keys: Vec<_> = Metric::sort_keys().map(Metric::key).collect();
                json!({"type": "string", "enum": keys})
            }
            Kind::Flag => json!({"type": "boolean"}),
        };
        property["description"] = argument.about.into();
        properties.insert(argument.name.to_owned(), property);
    }
    let required: Vec<&str> =
        arguments.iter().filter(|argument| argument.is_required).map(|argument| argument.name).collect();
    let mut schema = Map::new();
    schema.insert("type".to_owned(), "object".into());
    schema.insert("properties".to_owned(), properties.into());
    schema.insert("required".to_owned(), required.into());
    schema.insert("additionalProperties".to_owned(), false.into());
    schema
}

/// Arguments of a call, checked against their descriptions.
#[derive(Debug)]
pub(crate) struct Given(Map<String, Value>);

impl Given {
    /// Checks the arguments that a client sent.
    pub(crate) fn check(arguments: &'static [Argument], sent: Option<Map<String, Value>>) -> Result<Self> {
        let mut sent = sent.unwrap_or_default();
        for argument in arguments {
            if !sent.contains_key(argument.name)
                && let Some(value) = sent.remove(argument.was)
            {
                sent.insert(argument.name.to_owned(), value);
            }
        }
        if let Some(unknown) = sent.keys().find(|key| arguments.iter().all(|argument| argument.name != *key))
        {
            let shown: String = unknown.chars().take(40).collect();
            let known: Vec<&str> = arguments.iter().map(|argument| argument.name).collect();
            return Err(Error::Refused(format!(
                "there is no argument {shown:?}; there is {}",
                known.join(", ")
            )));
        }
        let bytes: usize = sent.values().map(|value| value.to_string().len()).sum();
        if bytes > TEXT_BYTES_MAX {
            return Err(Error::Refused(format!(
                "arguments of {bytes} bytes: at most {TEXT_BYTES_MAX} are read"
            )));
        }
        for argument in arguments {
            let wrong = |reason: String| Error::Argument { name: argument.name, reason };
            match (sent.get(argument.name).filter(|value| !value.is_null()), argument.kind) {
                (None, _) if argument.is_required => return Err(wrong("it is required".to_owned())),
                (None, _) | (Some(Value::String(_)), Kind::Text) | (Some(Value::Bool(_)), Kind::Flag) => {}
                (Some(Value::Number(number)), Kind::Count(most))
                    if number.as_u64().is_some_and(|number| (1..=most).contains(&number)) => {}
                (Some(Value::String(word)), Kind::Choice(words)) if words.contains(&word.as_str()) => {}
                (Some(Value::String(word)), Kind::SortKey) if Metric::of_key(word).is_some() => {}
                (Some(Value::Array(texts)), Kind::Texts)
                    if (1..=TEXTS_MAX).contains(&texts.len()) && texts.iter().all(Value::is_string) => {}
                (Some(Value::String(text)), Kind::Size | Kind::Duration | Kind::Time | Kind::Moment) => {
                    argument.kind.check_text(text).map_err(wrong)?;
                }
                (Some(_), Kind::Text | Kind::Size | Kind::Duration | Kind::Time | Kind::Moment) => {
                    return Err(wrong("it is a text".to_owned()));
                }
                (Some(_), Kind::Flag) => return Err(wrong("it is true or false".to_owned())),
                (Some(_), Kind::Count(most)) => {
                    return Err(wrong(format!("it is a number from 1 to {most}")));
                }
                (Some(_), Kind::Choice(words)) => {
                    return Err(wrong(format!("it is one of {}", words.join(", "))));
                }
                (Some(_), Kind::SortKey) => {
                    return Err(wrong(format!("it is one of {}", Metric::key_list())));
                }
                (Some(_), Kind::Texts) => {
                    return Err(wrong(format!("it is a list of 1 to {TEXTS_MAX} texts")));
                }
            }
        }
        Ok(Self(sent))
    }

    /// Text or choice of an argument.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.as_str()
    }

    /// Text of a required argument.
    pub(crate) fn required(&self, name: &'static str) -> Result<&str> {
        self.text(name).ok_or_else(|| Error::Argument { name, reason: "it is required".to_owned() })
    }

    /// List of texts; empty by default.
    pub(crate) fn texts(&self, name: &str) -> Vec<&str> {
        self.0.get(name).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
    }

    /// Number of an argument.
    pub(crate) fn count(&self, name: &str) -> Option<u64> {
        self.0.get(name)?.as_u64()
    }

    /// Flag of an argument; false by default.
    pub(crate) fn flag(&self, name: &str) -> bool {
        self.0.get(name).and_then(Value::as_bool).unwrap_or(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ARGUMENTS: &[Argument] = &[
        Argument { name: "file", kind: Kind::Text, about: "", is_required: true, was: "trace" },
        Argument { name: "top", kind: Kind::Count(50), about: "", is_required: false, was: "" },
        Argument { name: "sort", kind: Kind::Choice(&["so", "st"]), about: "", is_required: false, was: "" },
        Argument { name: "frames", kind: Kind::Texts, about: "", is_required: false, was: "" },
        Argument { name: "size", kind: Kind::Size, about: "", is_required: false, was: "" },
        Argument { name: "at", kind: Kind::Moment, about: "", is_required: false, was: "" },
    ];

    #[test]
    fn what_the_schema_does_not_allow_is_refused_with_the_arguments_name() {
        let check = |sent: Value| {
            Given::check(ARGUMENTS, sent.as_object().cloned()).map_err(|error| error.to_string())
        };
        let given = check(json!({"file": "t1", "top": 5, "sort": "st", "frames": ["a", "b"]})).unwrap();
        assert_eq!(
            (given.text("file"), given.count("top"), given.texts("frames").len()),
            (Some("t1"), Some(5), 2)
        );
        for (sent, said) in [
            (json!({}), "argument file: it is required"),
            (json!({"file": 3}), "argument file: it is a text"),
            (json!({"file": "t1", "top": 0}), "argument top: it is a number from 1 to 50"),
            (json!({"file": "t1", "sort": "--output=x"}), "argument sort: it is one of so, st"),
            (json!({"file": "t1", "frames": []}), "argument frames: it is a list of 1 to 256 texts"),
            (
                json!({"file": "t1", "other": 1}),
                "there is no argument \"other\"; there is file, top, sort, frames, size, at",
            ),
        ] {
            assert_eq!(check(sent).unwrap_err(), said);
        }
        for (name, wrong) in [("size", "--output=x"), ("size", "many"), ("at", "noon"), ("at", "-1")] {
            let said = check(json!({"file": "t1", name: wrong})).unwrap_err();
            assert!(said.starts_with(&format!("argument {name}: ")), "{said}");
        }
        check(json!({"file": "t1", "size": "4K", "at": "peak"})).unwrap();
        check(json!({"file": "t1", "at": "1.5s"})).unwrap();
        let former = check(json!({"trace": "t1"})).unwrap();
        assert_eq!(former.text("file"), Some("t1"));
        assert!(check(json!({"file": "t1", "trace": "t2"})).is_err(), "both names");
        assert!(check(json!({"file": "x".repeat(1 << 20)})).is_err());
    }
}
