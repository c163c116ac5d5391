//! Limits for CI: `CLASS=AMOUNT`.

use std::process::ExitCode;

use heapr_filters::quantity::parse_bytes;
use heapr_table::quantity::{signed_bytes, signed_count};

/// Largest growth of a class that is allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Limit {
    /// Name of the class; `(total)` means all classes.
    pub(crate) class: String,
    pub(crate) amount: Amount,
}

/// Amount of a limit: with a unit it is bytes, without one it is objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Amount {
    Bytes(u64),
    Objects(u64),
}

/// Name that stands for all classes.
pub(crate) const TOTAL: &str = "(total)";

/// Largest number of bytes of a class; a plain number is in bytes, too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ByteLimit {
    /// Name of the class; `(total)` means all classes.
    pub(crate) class: String,
    pub(crate) bytes: u64,
}

impl std::str::FromStr for ByteLimit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (class, bytes) =
            text.rsplit_once('=').ok_or_else(|| format!("{text:?} is no limit: CLASS=10M (bytes)"))?;
        let bytes = parse_bytes(bytes).map_err(|error| format!("{error:#}"))?;
        Ok(Self { class: class.to_owned(), bytes })
    }
}

impl std::str::FromStr for Limit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // Class names may contain the sign; amounts never do.
        let Some((class, amount)) = text.rsplit_once('=') else {
            let bytes = parse_bytes(text).map_err(|_| {
                format!("{text:?} is no limit: 10M, CLASS=10M (bytes) or CLASS=100 (objects)")
            })?;
            return Ok(Self { class: TOTAL.to_owned(), amount: Amount::Bytes(bytes) });
        };
        let amount = match amount.parse() {
            Ok(objects) => Amount::Objects(objects),
            Err(_) => Amount::Bytes(parse_bytes(amount).map_err(|error| format!("{error:#}"))?),
        };
        Ok(Self { class: class.to_owned(), amount })
    }
}

/// Prints the limits that are exceeded, and returns the exit status. `grown` returns the growth of
/// a limit's class: a number of things named by `noun`, and bytes.
pub(crate) fn exit_status(limits: &[Limit], noun: &str, grown: impl Fn(&Limit) -> (i64, i64)) -> ExitCode {
    let mut status = ExitCode::SUCCESS;
    for limit in limits {
        let (objects, bytes) = grown(limit);
        let finding = match limit.amount {
            Amount::Bytes(allowed) if i128::from(bytes) > i128::from(allowed) => {
                signed_bytes(i128::from(bytes))
            }
            Amount::Objects(allowed) if i128::from(objects) > i128::from(allowed) => {
                format!("{} {noun}{}", signed_count(i128::from(objects)), if objects == 1 { "" } else { "s" })
            }
            _ => continue,
        };
        tell!("heapr: {} has grown by {finding}", limit.class);
        status = ExitCode::FAILURE;
    }
    status
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_with_a_unit_is_in_bytes() {
        let limit = |text: &str| text.parse::<Limit>().unwrap();
        assert_eq!(limit("Session=100"), Limit { class: "Session".to_owned(), amount: Amount::Objects(100) });
        assert_eq!(limit("{a=b}=1K"), Limit { class: "{a=b}".to_owned(), amount: Amount::Bytes(1024) });
        let of_bytes = "Session=100".parse::<ByteLimit>().unwrap();
        assert_eq!((of_bytes.class.as_str(), of_bytes.bytes), ("Session", 100));
        assert!("Session".parse::<ByteLimit>().is_err());
        assert_eq!(limit("10M"), Limit { class: TOTAL.to_owned(), amount: Amount::Bytes(10 << 20) });
        assert!("Session".parse::<Limit>().is_err());
        assert!("Session=x".parse::<Limit>().is_err());
    }
}
