//! pprof's `profile.proto`, gzipped:
//! <https://github.com/google/pprof/blob/main/proto/profile.proto>.
//!
//! Only the fields that a profile of stacks needs are encoded. These are sample types, samples,
//! locations with a line each, functions, mappings with build-ids, the period and the string table.

use std::collections::HashMap;
use std::io::{self, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use heapr_query::Metric;
use heapr_table::interval_key;

use crate::protobuf::{Message, Strings};
use crate::{Profile, SampleFrame, Samples, intervals};

/// Largest value of the format, whose numbers are signed.
pub(crate) const LARGEST: u64 = i64::MAX as u64;

/// Whether any amount is larger than the format's largest value.
#[must_use]
pub fn is_too_large(samples: &Samples) -> bool {
    samples.has_more_than(LARGEST)
}

/// Unit of a metric.
pub(crate) fn unit(metric: Metric) -> &'static str {
    if metric.is_bytes() { "bytes" } else { "count" }
}

/// Writes the profile. `value` is the metric that pprof shows by default.
pub(crate) fn write(out: &mut dyn Write, profile: &Profile<'_>) -> io::Result<()> {
    let mut tables = Tables { build_ids: profile.build_ids(), ..Tables::default() };
    // Readers assume that the first mapping is the program.
    if let Some(program) = profile.program() {
        tables.mapping(program);
    }
    let mut encoder = GzEncoder::new(out, Compression::default());
    let mut message = Message::default();
    for &metric in &profile.metrics {
        let value_type = tables.value_type(metric.pprof(), unit(metric));
        message.message(1, &value_type);
    }
    let samples = profile.samples;
    let location_of: Vec<u64> = samples.frames().iter().map(|frame| tables.location(frame)).collect();
    let mut written = Message::default();
    for row in samples.rows() {
        written.0.clear();
        written.packed(1, samples.frame_numbers(row.stack).map(|frame| location_of[frame as usize]));
        written.packed(2, profile.metrics.iter().map(|metric| metric.of(&row.amounts).min(LARGEST)));
        if profile.tells_intervals {
            for (name, plus_minus) in intervals(&profile.metrics, &row.amounts) {
                let mut label = Message::default();
                label.number(1, tables.strings.number(&interval_key(name)));
                label.number(3, plus_minus.min(LARGEST));
                written.message(3, &label);
            }
        }
        message.message(2, &written);
        // The fields of a message may come in any order, and in several pieces.
        encoder.write_all(&message.0)?;
        message.0.clear();
    }
    message.number(9, profile.start_unix_ns);
    message.number(10, profile.duration_ns);
    let period_type = tables.value_type("space", "bytes");
    message.message(11, &period_type);
    message.number(12, profile.period_bytes);
    for (key, value) in &profile.labels {
        let comment = tables.strings.number(&format!("{key}={value}"));
        message.packed(13, [comment]);
    }
    if let Some(sampled) = &profile.sampled {
        let whole = profile.whole_intervals().into_iter();
        let whole = whole.map(|(name, plus_minus)| format!("{}={plus_minus}", interval_key(name)));
        for text in std::iter::once(sampled.clone()).chain(whole) {
            message.packed(13, [tables.strings.number(&text)]);
        }
    }
    message.number(14, tables.strings.number(profile.value.pprof()));
    encoder.write_all(&message.0)?;
    encoder.write_all(&tables.written.0)?;
    message.0.clear();
    for text in &tables.strings.texts {
        message.bytes(6, text.as_bytes());
    }
    encoder.write_all(&message.0)?;
    encoder.finish()?;
    Ok(())
}

/// Entries that samples refer to by number, from 1.
#[derive(Default)]
struct Tables<'a> {
    strings: Strings,
    build_ids: HashMap<&'a str, String>,
    locations: HashMap<&'a SampleFrame, u64>,
    functions: HashMap<(&'a str, &'a str), u64>,
    mappings: HashMap<&'a str, u64>,
    written: Message,
}

impl<'a> Tables<'a> {
    fn value_type(&mut self, name: &str, unit: &str) -> Message {
        let mut value_type = Message::default();
        value_type.number(1, self.strings.number(name));
        value_type.number(2, self.strings.number(unit));
        value_type
    }

    fn location(&mut self, frame: &'a SampleFrame) -> u64 {
        if let Some(&id) = self.locations.get(frame) {
            return id;
        }
        let (function, mapping) = (self.function(frame), self.mapping(&frame.module));
        let id = self.locations.len() as u64 + 1;
        let mut line = Message::default();
        line.number(1, function);
        line.number(2, u64::from(frame.line));
        let mut message = Message::default();
        message.number(1, id);
        message.number(2, mapping);
        message.message(4, &line);
        self.written.message(4, &message);
        self.locations.insert(frame, id);
        id
    }

    fn function(&mut self, frame: &'a SampleFrame) -> u64 {
        let key = (frame.name.as_str(), frame.file.as_str());
        if let Some(&id) = self.functions.get(&key) {
            return id;
        }
        let id = self.functions.len() as u64 + 1;
        let mut message = Message::default();
        message.number(1, id);
        message.number(2, self.strings.number(&frame.name));
        message.number(3, self.strings.number(&frame.name));
        message.number(4, self.strings.number(&frame.file));
        self.written.message(5, &message);
        self.functions.insert(key, id);
        id
    }

    fn mapping(&mut self, module: &'a str) -> u64 {
        if let Some(&id) = self.mappings.get(module) {
            return id;
        }
        let id = self.mappings.len() as u64 + 1;
        let mut message = Message::default();
        message.number(1, id);
        message.number(5, self.strings.number(module));
        if let Some(build_id) = self.build_ids.get(module) {
            message.number(6, self.strings.number(build_id));
        }
        for has in 7..=10 {
            message.number(has, 1);
        }
        self.written.message(3, &message);
        self.mappings.insert(module, id);
        id
    }
}
