//! Labels that distinguish recordings in an engine.

use anyhow::{Context as _, ensure};

/// Keys with their values, in the order in which they were given.
#[derive(Debug, Clone, Default)]
pub(crate) struct Labels(pub(crate) Vec<(String, String)>);

impl Labels {
    /// Parses words of the form `key=value`.
    pub(crate) fn parse(words: &[String]) -> anyhow::Result<Self> {
        let label = |word: &String| {
            let (key, value) =
                word.split_once('=').with_context(|| format!("--label {word}: a label is KEY=VALUE"))?;
            let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
            ensure!(
                !key.is_empty()
                    && key.chars().all(is_plain)
                    && !key.starts_with(|c: char| c.is_ascii_digit()),
                "--label {word}: a key has letters, digits, dots and underscores"
            );
            Ok((key.to_owned(), value.to_owned()))
        };
        Ok(Self(words.iter().map(label).collect::<anyhow::Result<_>>()?))
    }

    /// Returns the labels as a JSON object.
    pub(crate) fn json(&self) -> String {
        let object: serde_json::Map<String, serde_json::Value> =
            self.0.iter().map(|(key, value)| (key.clone(), value.as_str().into())).collect();
        serde_json::Value::Object(object).to_string()
    }
}

/// Host name of this machine.
pub(crate) fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}
