//! Writer of Thrift's compact protocol, in which Parquet's headers and footer are encoded.

/// Types of fields and elements.
pub(super) const I32: u8 = 5;
pub(super) const BINARY: u8 = 8;
pub(super) const STRUCT: u8 = 12;
const TRUE: u8 = 1;
const FALSE: u8 = 2;
const I64: u8 = 6;
const LIST: u8 = 9;

/// Structure being written.
#[derive(Debug, Default)]
pub(super) struct Struct {
    bytes: Vec<u8>,
    last_field: i16,
}

fn put_varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

impl Struct {
    fn field(&mut self, field: i16, kind: u8) {
        // Fields are written in ascending order, with steps of less than 16.
        let step = field - self.last_field;
        debug_assert!((1..16).contains(&step));
        self.last_field = field;
        self.bytes.push((step as u8) << 4 | kind);
    }

    pub(super) fn i32(&mut self, field: i16, value: i32) -> &mut Self {
        self.field(field, I32);
        put_varint(&mut self.bytes, zigzag(i64::from(value)));
        self
    }

    pub(super) fn i64(&mut self, field: i16, value: i64) -> &mut Self {
        self.field(field, I64);
        put_varint(&mut self.bytes, zigzag(value));
        self
    }

    pub(super) fn bool(&mut self, field: i16, value: bool) -> &mut Self {
        self.field(field, if value { TRUE } else { FALSE });
        self
    }

    pub(super) fn binary(&mut self, field: i16, value: &[u8]) -> &mut Self {
        self.field(field, BINARY);
        put_varint(&mut self.bytes, value.len() as u64);
        self.bytes.extend_from_slice(value);
        self
    }

    pub(super) fn structure(&mut self, field: i16, value: Self) -> &mut Self {
        self.field(field, STRUCT);
        self.bytes.extend(value.end());
        self
    }

    fn list(&mut self, field: i16, kind: u8, count: usize) {
        self.field(field, LIST);
        if count < 15 {
            self.bytes.push((count as u8) << 4 | kind);
        } else {
            self.bytes.push(0xf0 | kind);
            put_varint(&mut self.bytes, count as u64);
        }
    }

    pub(super) fn structures(&mut self, field: i16, values: Vec<Self>) -> &mut Self {
        self.list(field, STRUCT, values.len());
        self.bytes.extend(values.into_iter().flat_map(Self::end));
        self
    }

    pub(super) fn i32s(&mut self, field: i16, values: &[i32]) -> &mut Self {
        self.list(field, I32, values.len());
        values.iter().for_each(|&value| put_varint(&mut self.bytes, zigzag(i64::from(value))));
        self
    }

    pub(super) fn texts(&mut self, field: i16, values: &[&str]) -> &mut Self {
        self.list(field, BINARY, values.len());
        for value in values {
            put_varint(&mut self.bytes, value.len() as u64);
            self.bytes.extend_from_slice(value.as_bytes());
        }
        self
    }

    /// Ends the structure and returns its bytes.
    pub(super) fn end(mut self) -> Vec<u8> {
        self.bytes.push(0);
        self.bytes
    }
}
