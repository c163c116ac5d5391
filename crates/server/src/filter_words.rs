//! A request's filter: the options of `heapr report`, by their names.

use serde::Deserialize;

/// See `docs/api.md`. Values are text as on the command line.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FilterWords {
    /// Process ids.
    pub pid: Vec<String>,
    /// Heaps.
    pub heap: Vec<String>,
    /// Thread ids or names.
    pub thread: Vec<String>,
    /// From and to.
    pub range: Option<[String; 2]>,
    /// At least and below.
    pub lifetime: Option<[String; 2]>,
    /// At least and below.
    pub size: Option<[String; 2]>,
    /// `peak` or a time.
    pub at: Option<String>,
    /// A native snapshot: its number, its name or `last`.
    pub snapshot: Option<String>,
    /// Only temporary allocations.
    pub temporary: bool,
    /// `aifi`, `aifo`, `aofi`, `aofo`.
    pub r#type: Option<String>,
    /// Frame patterns.
    pub require_frames: Vec<String>,
    /// Frame patterns.
    pub cull_frames: Vec<String>,
    /// Without the built-in list.
    pub no_default_cull: bool,
}

impl FilterWords {
    /// The words of the command line. Those that could be taken for options are joined to their option.
    #[must_use]
    pub fn words(&self) -> Vec<String> {
        let mut words = Vec::new();
        let lists = [("pid", &self.pid), ("heap", &self.heap), ("thread", &self.thread)];
        let frames = [("require-frames", &self.require_frames), ("cull-frames", &self.cull_frames)];
        for (option, values) in lists.into_iter().chain(frames) {
            words.extend(
                values
                    .iter()
                    .filter(|value| !value.trim().is_empty())
                    .flat_map(|value| option_words(option, value)),
            );
        }
        let spans = [("range", &self.range), ("lifetime", &self.lifetime), ("size", &self.size)];
        for (option, span) in spans {
            if let Some([from, to]) = span {
                words.extend([format!("--{option}"), from.clone(), to.clone()]);
            }
        }
        for (option, value) in [("at", &self.at), ("snapshot", &self.snapshot), ("type", &self.r#type)] {
            words.extend(value.iter().flat_map(|value| option_words(option, value)));
        }
        for (option, is_set) in [("temporary", self.temporary), ("no-default-cull", self.no_default_cull)] {
            words.extend(is_set.then(|| format!("--{option}")));
        }
        words
    }
}

fn option_words(option: &str, value: &str) -> Vec<String> {
    if value.starts_with('-') {
        vec![format!("--{option}={value}")]
    } else {
        vec![format!("--{option}"), value.to_owned()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_becomes_the_options_of_the_same_names() {
        let text = r#"{"pid": ["7"], "thread": ["-x"], "range": ["1s", "2s"], "temporary": true, "require_frames": ["a b", ""]}"#;
        let filter: FilterWords = serde_json::from_str(text).unwrap();
        assert_eq!(
            filter.words(),
            ["--pid", "7", "--thread=-x", "--require-frames", "a b", "--range", "1s", "2s", "--temporary"]
        );
        assert!(serde_json::from_str::<FilterWords>(r#"{"rage": ["1s", "2s"]}"#).is_err());
    }
}
