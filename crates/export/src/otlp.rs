//! OpenTelemetry's profiles, as `ExportProfilesServiceRequest` of protocol 1.11 (`v1development`,
//! alpha). This is the body of requests to `/v1development/profiles`, and the content of files.
//!
//! There is one dictionary, and a profile for each metric, as a profile has one sample type. Entry
//! 0 of every table is empty.

use std::collections::HashMap;
use std::io::{self, Write};

use crate::pprof::{LARGEST, unit};
use crate::protobuf::{Message, Strings};
use crate::samples::Node;
use crate::tables::content_id;
use crate::{Profile, SampleFrame, Samples, intervals};
use heapr_query::Metric;
use heapr_table::interval_key;

/// Key of the mappings' attribute that holds the build-id.
const BUILD_ID: &str = "process.executable.build_id.gnu";
/// Key of a sample's attribute that holds half the interval of its value.
const PLUS_MINUS: &str = "heapr.plus_minus";

/// Table of the dictionary: messages by number. Message 0 is empty.
struct Entries {
    written: Vec<Message>,
}

impl Default for Entries {
    fn default() -> Self {
        Self { written: vec![Message::default()] }
    }
}

impl Entries {
    fn add(&mut self, message: Message) -> u64 {
        self.written.push(message);
        self.written.len() as u64 - 1
    }

    fn write(&self, field: u64, out: &mut Message) {
        self.written.iter().for_each(|message| out.message(field, message));
    }
}

#[derive(Default)]
struct Dictionary<'a> {
    strings: Strings,
    build_ids: HashMap<&'a str, String>,
    mappings: Entries,
    mapping_of: HashMap<&'a str, u64>,
    locations: Entries,
    location_of: HashMap<&'a SampleFrame, u64>,
    functions: Entries,
    function_of: HashMap<(&'a str, &'a str), u64>,
    attributes: Entries,
    interval_of: HashMap<(&'static str, u64), u64>,
}

fn text_value(text: &str) -> Message {
    let mut value = Message::default();
    value.bytes(1, text.as_bytes());
    value
}

fn number_value(number: u64) -> Message {
    let mut value = Message::default();
    value.number(3, number.min(LARGEST));
    value
}

fn attribute(key: &str, value: &Message) -> Message {
    let mut attribute = Message::default();
    attribute.bytes(1, key.as_bytes());
    attribute.message(2, value);
    attribute
}

/// Writes the profile.
pub(crate) fn write(out: &mut dyn Write, profile: &Profile<'_>) -> io::Result<()> {
    let mut dictionary = Dictionary { build_ids: profile.build_ids(), ..Dictionary::default() };
    let samples = profile.samples;
    let location_of: Vec<u64> = samples.frames().iter().map(|frame| dictionary.location(frame)).collect();
    let (stack_of, stacks) = numbered_stacks(samples);
    let mut scope_profiles = Message::default();
    scope_profiles.message(1, &scope(profile));
    for &metric in &profile.metrics {
        scope_profiles.message(2, &metric_profile(profile, metric, &stack_of, &mut dictionary));
    }
    let mut resource = Message::default();
    for (key, value) in &profile.labels {
        resource.message(1, &attribute(key, &text_value(value)));
    }
    // The parts are written in turn, each after its tag and length, so that no part is copied into
    // a larger message.
    let mut resource_profiles = Message::default();
    resource_profiles.message(1, &resource);
    resource_profiles.head(2, scope_profiles.0.len());
    let mut request = Message::default();
    request.head(1, resource_profiles.0.len() + scope_profiles.0.len());
    out.write_all(&request.0)?;
    out.write_all(&resource_profiles.0)?;
    out.write_all(&scope_profiles.0)?;
    drop(scope_profiles);
    let tables = dictionary.written();
    write_dictionary(out, &tables, samples, &location_of, &stacks)
}

/// Description of what wrote the profiles.
fn scope(profile: &Profile<'_>) -> Message {
    let mut scope = Message::default();
    scope.bytes(1, b"heapr");
    scope.bytes(2, env!("CARGO_PKG_VERSION").as_bytes());
    if let Some(sampled) = &profile.sampled {
        scope.message(3, &attribute("heapr.sampling", &text_value(sampled)));
        for (name, plus_minus) in profile.whole_intervals() {
            scope.message(3, &attribute(&format!("heapr.{}", interval_key(name)), &number_value(plus_minus)));
        }
    }
    scope
}

/// Profile of one metric, with a sample for each stack.
fn metric_profile(
    profile: &Profile<'_>,
    metric: Metric,
    stack_of: &[u64],
    dictionary: &mut Dictionary<'_>,
) -> Message {
    let mut written = Message::default();
    let sample_type = dictionary.value_type(metric.pprof(), unit(metric));
    written.message(1, &sample_type);
    for row in profile.samples.rows() {
        let value = metric.of(&row.amounts).min(LARGEST);
        if value > 0 {
            let mut entry = Message::default();
            entry.number(1, stack_of[row.stack as usize]);
            if profile.tells_intervals {
                let own = intervals(&[metric], &row.amounts).into_iter();
                let own: Vec<u64> = own.map(|(_, number)| dictionary.interval(metric, number)).collect();
                entry.packed(2, own);
            }
            entry.packed(4, [value]);
            written.message(2, &entry);
        }
    }
    written.fixed64(3, profile.start_unix_ns);
    written.number(4, profile.duration_ns);
    let period_type = dictionary.value_type("space", "bytes");
    written.message(5, &period_type);
    written.number(6, profile.period_bytes);
    let of = [profile.start_unix_ns, profile.duration_ns].map(u64::to_le_bytes).concat();
    written.bytes(7, &content_id(&[profile.title.as_bytes(), metric.name().as_bytes(), &of]));
    written
}

/// Writes the dictionary: its tables, and the stacks.
fn write_dictionary(
    out: &mut dyn Write,
    tables: &Message,
    samples: &Samples,
    location_of: &[u64],
    stacks: &[Node],
) -> io::Result<()> {
    let stack = |stack: Node, message: &mut Message| {
        message.0.clear();
        let locations = samples.frame_numbers(stack).map(|frame| location_of[frame as usize]);
        let mut written = Message::default();
        written.packed(1, locations);
        message.message(7, &written);
    };
    let mut message = Message::default();
    // The dictionary's length must be known first: the stacks are encoded twice.
    let mut bytes = tables.0.len();
    for &number in stacks {
        stack(number, &mut message);
        bytes += message.0.len();
    }
    message.0.clear();
    message.head(2, bytes);
    out.write_all(&message.0)?;
    out.write_all(&tables.0)?;
    for &number in stacks {
        stack(number, &mut message);
        out.write_all(&message.0)?;
    }
    Ok(())
}

/// Numbers the stacks; number 0 is the empty stack. Returns the number of each node that is a
/// stack, and the nodes by number.
fn numbered_stacks(samples: &Samples) -> (Vec<u64>, Vec<Node>) {
    let mut stacks = vec![0];
    let mut stack_of = vec![0; samples.nodes().len()];
    for row in samples.rows() {
        let number = &mut stack_of[row.stack as usize];
        if row.stack != 0 && *number == 0 {
            *number = stacks.len() as u64;
            stacks.push(row.stack);
        }
    }
    (stack_of, stacks)
}

impl<'a> Dictionary<'a> {
    fn value_type(&mut self, name: &str, unit: &str) -> Message {
        let mut value_type = Message::default();
        value_type.number(1, self.strings.number(name));
        value_type.number(2, self.strings.number(unit));
        value_type
    }

    /// Number of the attribute of a half interval. Equal intervals share an attribute.
    fn interval(&mut self, metric: Metric, plus_minus: u64) -> u64 {
        if let Some(&known) = self.interval_of.get(&(unit(metric), plus_minus)) {
            return known;
        }
        let mut message = Message::default();
        message.number(1, self.strings.number(PLUS_MINUS));
        message.message(2, &number_value(plus_minus));
        message.number(3, self.strings.number(unit(metric)));
        let number = self.attributes.add(message);
        self.interval_of.insert((unit(metric), plus_minus), number);
        number
    }

    fn location(&mut self, frame: &'a SampleFrame) -> u64 {
        if let Some(&known) = self.location_of.get(frame) {
            return known;
        }
        let (function, mapping) = (self.function(frame), self.mapping(&frame.module));
        let mut line = Message::default();
        line.number(1, function);
        line.number(2, u64::from(frame.line));
        let mut message = Message::default();
        message.number(1, mapping);
        message.message(3, &line);
        let number = self.locations.add(message);
        self.location_of.insert(frame, number);
        number
    }

    fn function(&mut self, frame: &'a SampleFrame) -> u64 {
        let key = (frame.name.as_str(), frame.file.as_str());
        if let Some(&known) = self.function_of.get(&key) {
            return known;
        }
        let mut message = Message::default();
        let name = self.strings.number(&frame.name);
        message.number(1, name);
        message.number(2, name);
        message.number(3, self.strings.number(&frame.file));
        let number = self.functions.add(message);
        self.function_of.insert(key, number);
        number
    }

    fn mapping(&mut self, module: &'a str) -> u64 {
        if module.is_empty() {
            return 0;
        }
        if let Some(&known) = self.mapping_of.get(module) {
            return known;
        }
        let mut message = Message::default();
        message.number(4, self.strings.number(module));
        if let Some(build_id) = self.build_ids.get(module) {
            let mut attribute = Message::default();
            attribute.number(1, self.strings.number(BUILD_ID));
            attribute.message(2, &text_value(build_id));
            let attribute = self.attributes.add(attribute);
            message.packed(5, [attribute]);
        }
        let number = self.mappings.add(message);
        self.mapping_of.insert(module, number);
        number
    }

    fn written(&self) -> Message {
        let mut message = Message::default();
        self.mappings.write(1, &mut message);
        self.locations.write(2, &mut message);
        self.functions.write(3, &mut message);
        message.message(4, &Message::default());
        for text in &self.strings.texts {
            message.bytes(5, text.as_bytes());
        }
        self.attributes.write(6, &mut message);
        message
    }
}
