//! `--fail-on`: findings that make the command end with status 1.

use heapr_filters::quantity::parse_bytes;
use heapr_findings::{Finding, Kind};
use heapr_query::Confidence;

/// Limit that a recording must not exceed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Threshold {
    /// Any growth of medium or high confidence.
    Growth,
    /// Growth of medium or high confidence that is never freed or whose blocks are idle.
    Leak,
    /// Churn of medium or high confidence.
    Churn,
    /// Peak of more than this many bytes.
    Peak(u64),
}

/// Parses `growth`, `leak`, `churn` or `peak=SIZE`.
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
    /// True if a finding exceeds the threshold. A peak is compared with [`Threshold::peak_bytes`]
    /// instead.
    pub(crate) fn is_passed_by(self, finding: &Finding) -> bool {
        let is_sure = finding.confidence > Confidence::Low;
        match self {
            Self::Growth => finding.kind == Kind::Growth && is_sure,
            Self::Leak => finding.kind == Kind::Growth && is_sure && finding.is_left,
            Self::Churn => finding.kind == Kind::Churn && is_sure,
            Self::Peak(_) => false,
        }
    }

    /// Largest number of live bytes allowed at the peak; `None` for other thresholds.
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
