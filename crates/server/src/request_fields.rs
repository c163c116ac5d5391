//! Fields of a request's JSON object. Several types, the parts of the request, take the fields that
//! they know; a field that no part knows is refused.

use serde::Deserialize;
use serde::de::{DeserializeOwned, DeserializeSeed, Deserializer, IntoDeserializer, MapAccess, Visitor};
use serde_json::Value;

use crate::error::{Error, Result};

/// Fields of a request.
#[derive(Debug)]
pub(crate) struct RequestFields {
    /// Fields that no part has taken, in the order of the body.
    left: Pairs,
    /// Names of the fields that the parts know.
    known: Vec<&'static str>,
    /// Name of the field that is being read.
    current: Option<String>,
}

impl RequestFields {
    /// Parses the body of a request.
    pub(crate) fn parse(body: &[u8]) -> Result<Self> {
        let left = serde_json::from_slice(body).map_err(|error| unreadable(None, error))?;
        Ok(Self { left, known: Vec::new(), current: None })
    }

    /// Reads a part of the request.
    pub(crate) fn part<T: DeserializeOwned>(&mut self) -> Result<T> {
        T::deserialize(&mut *self).map_err(|error| unreadable(self.current.take(), error))
    }

    /// Refuses fields that no part has taken.
    pub(crate) fn finish(self) -> Result<()> {
        let Some((name, _)) = self.left.0.into_iter().next() else { return Ok(()) };
        let known: Vec<String> = self.known.iter().map(|name| format!("`{name}`")).collect();
        let problem = format!("unknown field `{name}`, expected one of {}", known.join(", "));
        Err(unreadable(Some(name), problem))
    }
}

/// Error for a request that cannot be read.
fn unreadable(field: Option<String>, problem: impl std::fmt::Display) -> Error {
    Error::BadRequest {
        field: field.map(Into::into),
        message: format!("the request can't be read: {problem}"),
    }
}

/// Names and values of an object, in their order and with duplicates.
#[derive(Debug, Default)]
struct Pairs(Vec<(String, Value)>);

impl<'de> Deserialize<'de> for Pairs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;

        impl<'de> Visitor<'de> for Object {
            type Value = Pairs;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("a JSON object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Pairs, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Pairs(pairs))
            }
        }

        deserializer.deserialize_map(Object)
    }
}

impl<'de> Deserializer<'de> for &mut RequestFields {
    type Error = serde_json::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        let pairs = std::mem::take(&mut self.left).0.into_iter();
        visitor.visit_map(Taken { pairs, value: Value::Null, current: &mut self.current })
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        let all = std::mem::take(&mut self.left).0.into_iter();
        let (taken, left): (Vec<_>, _) = all.partition(|(name, _)| fields.contains(&name.as_str()));
        self.left = Pairs(left);
        self.known.extend(fields);
        visitor.visit_map(Taken { pairs: taken.into_iter(), value: Value::Null, current: &mut self.current })
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit
        unit_struct newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

/// Fields for one part.
struct Taken<'a> {
    pairs: std::vec::IntoIter<(String, Value)>,
    /// Value of the last field whose name was read.
    value: Value,
    current: &'a mut Option<String>,
}

impl<'de> MapAccess<'de> for Taken<'_> {
    type Error = serde_json::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Self::Error> {
        *self.current = None;
        let Some((name, value)) = self.pairs.next() else { return Ok(None) };
        self.value = value;
        *self.current = Some(name.clone());
        seed.deserialize(name.into_deserializer()).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Self::Error> {
        seed.deserialize(std::mem::take(&mut self.value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Own {
        file: usize,
        #[serde(default, alias = "order")]
        sort: Order,
    }

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum Order {
        #[default]
        Bytes,
        MeanAge,
    }

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    struct Common {
        offset: usize,
    }

    fn parts(body: &str) -> Result<(Own, Common)> {
        let mut fields = RequestFields::parse(body.as_bytes())?;
        let parts = (fields.part()?, fields.part()?);
        fields.finish()?;
        Ok(parts)
    }

    #[test]
    fn each_part_takes_the_fields_that_it_knows() {
        let read = parts(r#"{"offset": 7, "order": "mean_age", "file": 3}"#).unwrap();
        assert_eq!(read, (Own { file: 3, sort: Order::MeanAge }, Common { offset: 7 }));
        let read = parts(r#"{"file": 3}"#).unwrap();
        assert_eq!(read, (Own { file: 3, sort: Order::Bytes }, Common::default()));
    }

    #[test]
    fn an_error_names_the_field_and_lists_what_is_known() {
        for (body, wanted, told) in [
            (r#"{"file": 1, "sort": "colour"}"#, Some("sort"), "`colour`, expected `bytes` or `mean_age`"),
            (r#"{"file": 1, "offset": "x"}"#, Some("offset"), "invalid type: string"),
            (
                r#"{"file": 1, "limits": 2}"#,
                Some("limits"),
                "unknown field `limits`, expected one of `file`, `order`, `sort`, `offset`",
            ),
            (r#"{"file": 1, "offset": 1, "offset": 2}"#, Some("offset"), "duplicate field `offset`"),
            (r#"{"offset": 1}"#, None, "missing field `file`"),
            ("[1]", None, "expected a JSON object"),
            ("{", None, "EOF"),
        ] {
            match parts(body) {
                Err(Error::BadRequest { field, message }) => {
                    assert_eq!(field.as_deref(), wanted, "{message}");
                    assert!(message.contains(told), "{message}");
                }
                other => panic!("{body}: {other:?}"),
            }
        }
    }
}
