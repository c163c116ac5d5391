//! pprof's `profile.proto`, gzipped:
//! <https://github.com/google/pprof/blob/main/proto/profile.proto>.
//!
//! Only what a profile of stacks needs is encoded: sample types, samples, locations with a line
//! each, functions, mappings, the string table.

use std::collections::HashMap;
use std::io::{self, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use heapr_query::Metric;

use crate::{Profile, Sample, SampleFrame};

/// Values are signed.
const LARGEST: u64 = i64::MAX as u64;

/// Whether an amount is larger than the format can say.
#[must_use]
pub fn is_too_large(samples: &[Sample]) -> bool {
    samples.iter().any(|sample| Metric::all().any(|metric| metric.of(&sample.amounts) > LARGEST))
}

/// A protocol buffer message being written.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn number(&mut self, field: u64, value: u64) {
        if value != 0 {
            self.varint(field << 3);
            self.varint(value);
        }
    }

    fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn packed(&mut self, field: u64, values: impl Iterator<Item = u64>) {
        let mut packed = Self::default();
        values.for_each(|value| packed.varint(value));
        self.bytes(field, &packed.0);
    }
}

/// Texts by number; number 0 is the empty one.
struct Strings<'a> {
    numbers: HashMap<&'a str, u64>,
    texts: Vec<&'a str>,
}

impl<'a> Strings<'a> {
    fn number(&mut self, text: &'a str) -> u64 {
        *self.numbers.entry(text).or_insert_with(|| {
            self.texts.push(text);
            self.texts.len() as u64 - 1
        })
    }
}

/// Writes it. `value` is what pprof shows unless told otherwise.
pub(crate) fn write(out: &mut dyn Write, profile: &Profile<'_>) -> io::Result<()> {
    let &Profile { samples, value, start_unix_ns, duration_ns, .. } = profile;
    let mut strings = Strings { numbers: HashMap::from([("", 0)]), texts: vec![""] };
    let mut profile = Message::default();
    for metric in Metric::all() {
        let mut value_type = Message::default();
        value_type.number(1, strings.number(metric.pprof()));
        value_type.number(2, strings.number(if metric.is_bytes() { "bytes" } else { "count" }));
        profile.bytes(1, &value_type.0);
    }
    let mut locations: HashMap<&SampleFrame, u64> = HashMap::new();
    let mut functions: HashMap<(&str, &str), u64> = HashMap::new();
    let mut mappings: HashMap<&str, u64> = HashMap::new();
    let mut tables = Message::default();
    for sample in samples {
        let ids: Vec<u64> = sample
            .frames
            .iter()
            .map(|frame| {
                location(frame, &mut locations, &mut functions, &mut mappings, &mut strings, &mut tables)
            })
            .collect();
        let mut message = Message::default();
        message.packed(1, ids.into_iter());
        message.packed(2, Metric::all().map(|metric| metric.of(&sample.amounts).min(LARGEST)));
        profile.bytes(2, &message.0);
    }
    profile.0.extend_from_slice(&tables.0);
    profile.number(9, start_unix_ns);
    profile.number(10, duration_ns);
    profile.number(14, strings.number(value.pprof()));
    for text in &strings.texts {
        profile.bytes(6, text.as_bytes());
    }
    let mut encoder = GzEncoder::new(out, Compression::default());
    encoder.write_all(&profile.0)?;
    encoder.finish()?;
    Ok(())
}

fn location<'a>(
    frame: &'a SampleFrame,
    locations: &mut HashMap<&'a SampleFrame, u64>,
    functions: &mut HashMap<(&'a str, &'a str), u64>,
    mappings: &mut HashMap<&'a str, u64>,
    strings: &mut Strings<'a>,
    tables: &mut Message,
) -> u64 {
    if let Some(&id) = locations.get(frame) {
        return id;
    }
    let next = functions.len() as u64 + 1;
    let function = *functions.entry((&frame.name, &frame.file)).or_insert_with(|| {
        let mut message = Message::default();
        message.number(1, next);
        message.number(2, strings.number(&frame.name));
        message.number(3, strings.number(&frame.name));
        message.number(4, strings.number(&frame.file));
        tables.bytes(5, &message.0);
        next
    });
    let next = mappings.len() as u64 + 1;
    let mapping = *mappings.entry(&frame.module).or_insert_with(|| {
        let mut message = Message::default();
        message.number(1, next);
        message.number(5, strings.number(&frame.module));
        for has in 7..=10 {
            message.number(has, 1);
        }
        tables.bytes(3, &message.0);
        next
    });
    let id = locations.len() as u64 + 1;
    let mut line = Message::default();
    line.number(1, function);
    line.number(2, u64::from(frame.line));
    let mut message = Message::default();
    message.number(1, id);
    message.number(2, mapping);
    message.bytes(4, &line.0);
    tables.bytes(4, &message.0);
    locations.insert(frame, id);
    id
}
