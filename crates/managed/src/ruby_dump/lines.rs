//! Lines of a dump and their members.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, Visitor};

/// Line of a dump. Unknown members are passed.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Line<'l> {
    pub(super) address: Option<Address>,
    /// Kind of the object in capitals; `ROOT` for references from outside of the heap.
    #[serde(borrow, rename = "type")]
    pub(super) kind: Cow<'l, str>,
    pub(super) class: Option<Address>,
    pub(super) superclass: Option<Address>,
    pub(super) references: Vec<Address>,
    pub(super) memsize: u64,
    /// Name of a class or module.
    #[serde(borrow)]
    pub(super) name: Option<Cow<'l, str>>,
    /// Nearest named class of a singleton class.
    #[serde(borrow)]
    pub(super) real_class_name: Option<Cow<'l, str>>,
    pub(super) singleton: bool,
    /// Name of the native structure of a `DATA`.
    #[serde(borrow, rename = "struct")]
    pub(super) structure: Option<Cow<'l, str>>,
    #[serde(borrow)]
    pub(super) imemo_type: Option<Cow<'l, str>>,
    /// Name of a group of roots.
    #[serde(borrow)]
    pub(super) root: Option<Cow<'l, str>>,
    /// Characters of a string; a number of other kinds.
    #[serde(borrow)]
    pub(super) value: Value<'l>,
}

/// Address of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Address(pub(super) u64);

impl<'l> Deserialize<'l> for Address {
    fn deserialize<D: Deserializer<'l>>(from: D) -> Result<Self, D::Error> {
        struct Hexadecimal;

        impl Visitor<'_> for Hexadecimal {
            type Value = Address;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an address such as \"0x7f00\"")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Address, E> {
                let digits = text.strip_prefix("0x").unwrap_or(text);
                u64::from_str_radix(digits, 16).map(Address).map_err(E::custom)
            }
        }

        from.deserialize_str(Hexadecimal)
    }
}

/// Value of a member that is a text for strings alone.
#[derive(Debug, Default)]
pub(super) struct Value<'l>(pub(super) Option<Cow<'l, str>>);

impl<'d: 'l, 'l> Deserialize<'d> for Value<'l> {
    fn deserialize<D: Deserializer<'d>>(from: D) -> Result<Self, D::Error> {
        struct Text;

        impl<'d> Visitor<'d> for Text {
            type Value = Value<'d>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a text or a number")
            }

            fn visit_borrowed_str<E: Error>(self, text: &'d str) -> Result<Value<'d>, E> {
                Ok(Value(Some(Cow::Borrowed(text))))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Value<'d>, E> {
                Ok(Value(Some(Cow::Owned(text.to_owned()))))
            }

            fn visit_bool<E: Error>(self, _: bool) -> Result<Value<'d>, E> {
                Ok(Value(None))
            }

            fn visit_i64<E: Error>(self, _: i64) -> Result<Value<'d>, E> {
                Ok(Value(None))
            }

            fn visit_u64<E: Error>(self, _: u64) -> Result<Value<'d>, E> {
                Ok(Value(None))
            }

            fn visit_f64<E: Error>(self, _: f64) -> Result<Value<'d>, E> {
                Ok(Value(None))
            }

            fn visit_unit<E: Error>(self) -> Result<Value<'d>, E> {
                Ok(Value(None))
            }
        }

        from.deserialize_any(Text)
    }
}
