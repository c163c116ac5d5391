//! Choices of requests from the table of metrics: sort keys, and values of flame graphs.

use heapr_query::Metric;
use serde::{Deserialize, Serialize};

/// Sort key of a table; bytes of live memory by default.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct SortKey(pub(crate) Metric);

impl Default for SortKey {
    fn default() -> Self {
        Self(Metric::OutstandingBytes)
    }
}

/// Text that is no choice, with the choices.
#[derive(Debug, thiserror::Error)]
#[error("{text:?} is no {what}: {known}")]
pub(crate) struct UnknownChoice {
    text: String,
    what: &'static str,
    known: String,
}

impl TryFrom<String> for SortKey {
    type Error = UnknownChoice;

    fn try_from(text: String) -> Result<Self, UnknownChoice> {
        let metric = Metric::of_key(&text);
        metric.map(Self).ok_or_else(|| UnknownChoice { text, what: "sort key", known: Metric::key_list() })
    }
}

/// Name of the bytes of temporary allocations; only flame graphs have this value.
pub(crate) const TEMPORARY_BYTES: &str = "temporary_bytes";

/// Value of a flame graph; bytes of live memory by default.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct FlameValue {
    pub(crate) metric: Metric,
    /// Whether only temporary allocations count.
    pub(crate) is_temporary: bool,
}

impl FlameValue {
    /// Value that shows a metric.
    fn of(shown: Metric) -> Self {
        let is_temporary = shown == Metric::TemporaryCount;
        let metric = if is_temporary { Metric::TotalCount } else { shown };
        Self { metric, is_temporary }
    }

    /// Name in requests and answers.
    pub(crate) fn name(self) -> &'static str {
        match self.metric {
            Metric::TotalBytes if self.is_temporary => TEMPORARY_BYTES,
            Metric::TotalCount if self.is_temporary => Metric::TemporaryCount.name(),
            metric => metric.name(),
        }
    }
}

impl Default for FlameValue {
    fn default() -> Self {
        Self::of(Metric::OutstandingBytes)
    }
}

impl TryFrom<String> for FlameValue {
    type Error = UnknownChoice;

    fn try_from(text: String) -> Result<Self, UnknownChoice> {
        if text == TEMPORARY_BYTES {
            return Ok(Self { metric: Metric::TotalBytes, is_temporary: true });
        }
        Metric::of_name(&text).map(Self::of).ok_or_else(|| {
            let names: Vec<&str> = Metric::all().map(Metric::name).collect();
            let known = format!("it is one of {}, {TEMPORARY_BYTES}", names.join(", "));
            UnknownChoice { text, what: "value", known }
        })
    }
}

/// Text of a choice in requests; the options of the command line have the same.
pub(crate) fn text_of(choice: &impl Serialize) -> String {
    let value = serde_json::to_value(choice).unwrap_or_default();
    value.as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_the_names_of_metrics() {
        for shown in Metric::all() {
            let value = FlameValue::try_from(shown.name().to_owned()).unwrap();
            assert_eq!((value.name(), value.is_temporary), (shown.name(), shown == Metric::TemporaryCount));
        }
        let bytes = FlameValue::try_from(TEMPORARY_BYTES.to_owned()).unwrap();
        assert_eq!(
            (bytes.metric, bytes.is_temporary, bytes.name()),
            (Metric::TotalBytes, true, TEMPORARY_BYTES)
        );
        let error = FlameValue::try_from("colour".to_owned()).unwrap_err().to_string();
        assert!(error.contains("\"colour\" is no value: it is one of") && error.contains("peak_bytes"));
    }

    #[test]
    fn an_unknown_sort_key_lists_the_known_ones() {
        let error = SortKey::try_from("colour".to_owned()).unwrap_err().to_string();
        assert!(error.contains("\"colour\" is no sort key") && error.contains("soc"), "{error}");
    }
}
