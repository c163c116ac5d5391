//! Limits for CI: `CLASS=AMOUNT`.

use crate::report::quantity::parse_bytes;

/// How much of a class is too much.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Limit {
    /// The class's name; `(total)` is all of them.
    pub(crate) class: String,
    pub(crate) amount: Amount,
}

/// Bytes have a unit, objects have none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Amount {
    Bytes(u64),
    Objects(u64),
}

/// The name that stands for all classes.
pub(crate) const TOTAL: &str = "(total)";

/// The most bytes that a class may have; a plain number is in bytes, too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ByteLimit {
    /// The class's name; `(total)` is all of them.
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
        // Names of classes may contain the sign; amounts never do.
        let (class, amount) = text
            .rsplit_once('=')
            .ok_or_else(|| format!("{text:?} is no limit: CLASS=10M (bytes) or CLASS=100 (objects)"))?;
        let amount = match amount.parse() {
            Ok(objects) => Amount::Objects(objects),
            Err(_) => Amount::Bytes(parse_bytes(amount).map_err(|error| format!("{error:#}"))?),
        };
        Ok(Self { class: class.to_owned(), amount })
    }
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
        assert!("Session".parse::<Limit>().is_err());
        assert!("Session=x".parse::<Limit>().is_err());
    }
}
