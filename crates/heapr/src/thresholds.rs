//! `--fail-on`: which findings make the command end with 1.

use heapr_filters::quantity::parse_bytes;
use heapr_findings::{Finding, Kind};
use heapr_query::Confidence;

/// What is not to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Threshold {
    /// Any growth that is not of low confidence.
    Growth,
    /// Growth that is never freed, or unfreed idle memory.
    Leak,
    /// Churn.
    Churn,
    /// A peak of more bytes.
    Peak(u64),
}

/// Reads `growth`, `leak`, `churn` or `peak=SIZE`.
pub(crate) fn threshold(text: &str) -> Result<Threshold, String> {
    match text.split_once('=') {
        None => match text {
            "growth" => Ok(Threshold::Growth),
            "leak" => Ok(Threshold::Leak),
            "churn" => Ok(Threshold::Churn),
            _ => Err("it is one of growth, leak, churn, peak=SIZE".to_owned()),
        },
        Some(("peak", size)) => parse_bytes(size).map(Threshold::Peak).map_err(|error| format!("{error:#}")),
        Some(_) => Err("it is one of growth, leak, churn, peak=SIZE".to_owned()),
    }
}

impl Threshold {
    /// Whether a finding passes it. A peak of a recording is compared by [`Threshold::peak_bytes`].
    pub(crate) fn is_passed_by(self, finding: &Finding) -> bool {
        let is_sure = finding.confidence > Confidence::Low;
        match self {
            Self::Growth => finding.kind == Kind::Growth && is_sure,
            Self::Leak => finding.kind == Kind::Growth && is_sure && finding.is_left,
            Self::Churn => finding.kind == Kind::Churn && is_sure,
            Self::Peak(_) => false,
        }
    }

    /// The most that may have been live.
    pub(crate) fn peak_bytes(self) -> Option<u64> {
        match self {
            Self::Peak(bytes) => Some(bytes),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thresholds_are_read() {
        assert_eq!(threshold("growth"), Ok(Threshold::Growth));
        assert_eq!(threshold("peak=2M"), Ok(Threshold::Peak(2 << 20)));
        assert!(threshold("peak").is_err() && threshold("peak=x").is_err() && threshold("leaks").is_err());
    }
}
