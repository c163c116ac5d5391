//! pprof's `profile.proto`, from Go, gperftools, converters of jemalloc's profiles, or heapr
//! itself.

use std::collections::HashMap;

use heapr_trace::{Amounts, Untold};

use crate::builder::TraceBuilder;
use crate::error::{Error, Result};
use crate::input::Input;
use crate::locations::{Frame, Range};
use crate::protobuf::{Fields, Value};

/// Name of the tool.
pub(crate) const TOOL: &str = "pprof";

/// Largest number of frames of a stack.
const FRAMES_MAX: usize = 1 << 20;

/// Accessor of the amount that a sample type holds.
type Of = fn(&mut Amounts) -> &mut u64;

/// Amounts by the profilers' names of sample types.
const TYPES: [(&str, Of); 10] = [
    ("inuse_space", |amounts| &mut amounts.outstanding_bytes),
    ("inuse_objects", |amounts| &mut amounts.outstanding_count),
    ("alloc_space", |amounts| &mut amounts.total_bytes),
    ("alloc_objects", |amounts| &mut amounts.total_count),
    ("reallocs", |amounts| &mut amounts.realloc_count),
    ("peak_space", |amounts| &mut amounts.peak_bytes),
    ("peak_objects", |amounts| &mut amounts.peak_count),
    ("temporary", |amounts| &mut amounts.temporary_count),
    // Names by V8, and by profilers that record only live memory.
    ("space", |amounts| &mut amounts.outstanding_bytes),
    ("objects", |amounts| &mut amounts.outstanding_count),
];

/// True if the first fields are a profile's, each of its kind, and a type of samples or of the
/// period is among them. The format has no other mark.
pub(crate) fn tells(start: &[u8]) -> bool {
    let mut fields = Fields::new(start);
    let (mut count, mut has_type) = (0, false);
    // The last field may be cut.
    while let Ok(Some((field, value))) = fields.next() {
        match (field, value) {
            (1..=6 | 11 | 13, Value::Bytes(_)) | (7..=10 | 12..=14, Value::Number(_)) => count += 1,
            _ => return false,
        }
        has_type |= matches!(field, 1 | 11) && matches!(value.bytes(), [0x08, ..]);
    }
    has_type && (count > 1 || start.len() < 16)
}

#[derive(Default)]
struct MappingEntry {
    start_avma: u64,
    end_avma: u64,
    offset: u64,
    file: u64,
    build_id: u64,
}

#[derive(Default)]
struct LocationEntry {
    id: u64,
    mapping: u64,
    avma: u64,
    /// Functions and lines, the innermost inlined one first.
    lines: Vec<(u64, u64)>,
}

/// Tables of the file, which have no fixed order.
#[derive(Default)]
struct Tables<'a> {
    texts: Vec<&'a [u8]>,
    types: Vec<u64>,
    samples: Vec<Fields<'a>>,
    mappings: HashMap<u64, MappingEntry>,
    locations: Vec<LocationEntry>,
    functions: HashMap<u64, (u64, u64)>,
    start_unix_ns: u64,
    duration_ns: u64,
    period: u64,
}

/// Reads a file into the builder.
pub(crate) fn read(input: &mut Input<'_>, builder: &mut TraceBuilder) -> Result<()> {
    let bytes = input.whole()?;
    let tables = Tables::of(&bytes, input)?;
    let of_types: Vec<Option<Of>> = tables.types.iter().map(|&name| tables.amount(name)).collect();
    if of_types.iter().all(Option::is_none) {
        let names: Vec<String> = tables.types.iter().map(|&name| tables.text(name)).collect();
        return Err(Error::Unusable {
            what: format!(
                "this profile of pprof tells {}: heapr reads those of heaps (inuse_space, alloc_space)",
                names.join(", ")
            ),
        });
    }
    builder.start_unix_ns = tables.start_unix_ns;
    builder.duration_ns = tables.duration_ns;
    let mut calls = HashMap::new();
    for location in &tables.locations {
        calls.insert(location.id, tables.call(location, builder)?);
    }
    let (mut ids, mut values) = (Vec::new(), Vec::new());
    for sample in &tables.samples {
        let mut fields = *sample;
        ids.clear();
        values.clear();
        while let Some((field, value)) = fields.next()? {
            match field {
                1 => value.numbers(&mut ids, FRAMES_MAX)?,
                2 => value.numbers(&mut values, FRAMES_MAX)?,
                _ => {}
            }
        }
        let known: Option<Vec<u64>> = ids.iter().map(|id| calls.get(id).copied()).collect();
        let known = known.ok_or_else(|| sample.malformed("a sample has a location that does not exist"))?;
        let stack = builder.stack_of(&known)?;
        let mut amounts = Amounts::default();
        for (of, &value) in of_types.iter().zip(&values) {
            // A difference of two profiles has negative amounts.
            let Ok(value) = i64::try_from(value) else {
                return Err(Error::Unusable {
                    what: "this is the difference of two profiles of pprof: its amounts are below 0. Give heapr both \
                           profiles themselves: heapr diff BEFORE AFTER"
                        .to_owned(),
                });
            };
            if let Some(of) = of {
                *of(&mut amounts) = value as u64;
            }
        }
        builder.add(stack, &amounts);
    }
    let has_type = |wanted: &str| tables.types.iter().any(|&name| tables.text(name) == wanted);
    let missing: Vec<&str> =
        ["alloc_space", "peak_space"].into_iter().filter(|wanted| !has_type(wanted)).collect();
    if !missing.is_empty() {
        builder.note(format!("the profile does not tell {}: these are unknown", missing.join(" nor ")));
    }
    let has_any = |wanted: &[&str]| wanted.iter().any(|wanted| has_type(wanted));
    builder.untold = Untold {
        counts: !has_any(&["inuse_objects", "alloc_objects", "peak_objects", "objects"]),
        totals: !has_type("alloc_space"),
        live: !has_any(&["inuse_space", "space"]),
        peak: !has_type("peak_space"),
        reallocs: !has_type("reallocs"),
        temporary: !has_type("temporary"),
        times: false,
    };
    if (2..1 << 40).contains(&tables.period) {
        builder.sampled_every(tables.period)?;
        builder.note(format!("the amounts are estimates of samples, one in {} bytes", tables.period));
    }
    Ok(())
}

impl<'a> Tables<'a> {
    fn of(bytes: &'a [u8], input: &mut Input<'_>) -> Result<Self> {
        let mut tables = Self::default();
        let mut fields = Fields::new(bytes);
        while let Some((field, value)) = fields.next()? {
            // Each entry takes some bytes of the file, and at most this much memory.
            input.keep(128)?;
            match field {
                1 => {
                    let [name, ..] = numbers::<2>(value.message())?;
                    tables.types.push(name);
                }
                2 => tables.samples.push(value.message()),
                3 => {
                    let [id, start_avma, end_avma, offset, file, build_id] = numbers::<6>(value.message())?;
                    let entry = MappingEntry { start_avma, end_avma, offset, file, build_id };
                    tables.mappings.insert(id, entry);
                }
                4 => tables.locations.push(location(value.message(), input)?),
                5 => {
                    let [id, name, _, file] = numbers::<4>(value.message())?;
                    tables.functions.insert(id, (name, file));
                }
                6 => tables.texts.push(value.bytes()),
                9 => tables.start_unix_ns = value.number(),
                10 => tables.duration_ns = value.number(),
                12 => tables.period = value.number(),
                _ => {}
            }
        }
        Ok(tables)
    }

    fn text(&self, number: u64) -> String {
        String::from_utf8_lossy(self.bytes(number)).into_owned()
    }

    fn bytes(&self, number: u64) -> &'a [u8] {
        let text = usize::try_from(number).ok().and_then(|number| self.texts.get(number).copied());
        text.unwrap_or_default()
    }

    fn amount(&self, name: u64) -> Option<Of> {
        let name = self.text(name);
        TYPES.iter().find(|(known, _)| *known == name).map(|&(_, of)| of)
    }

    /// Address that stands for a location.
    fn call(&self, location: &LocationEntry, builder: &mut TraceBuilder) -> Result<u64> {
        let mapping = self.mappings.get(&location.mapping);
        let module = mapping.map_or_else(String::new, |mapping| self.text(mapping.file));
        let build_id = mapping.map_or_else(Vec::new, |mapping| bytes_of_hex(&self.text(mapping.build_id)));
        let frame = |&(function, line): &(u64, u64)| {
            let (name, file) = self.functions.get(&function).copied().unwrap_or_default();
            Frame {
                name: self.text(name),
                file: self.text(file),
                line: u32::try_from(line).unwrap_or_default(),
            }
        };
        let length = |number: u64| self.bytes(number).len();
        let texts = location.lines.iter().map(|(function, _)| {
            let (name, file) = self.functions.get(function).copied().unwrap_or_default();
            length(name) + length(file)
        });
        builder.keep(texts.sum::<usize>() + module.len())?;
        let mut frames: Vec<Frame> = location.lines.iter().map(frame).collect();
        if frames.iter().any(|frame| !frame.name.is_empty()) {
            for frame in frames.iter_mut().filter(|frame| frame.name.is_empty()) {
                frame.name = format!("{:#x}", location.avma);
            }
            return builder.named(&module, &build_id, frames);
        }
        if let Some(&MappingEntry { start_avma, end_avma, offset, .. }) = mapping
            && (start_avma..end_avma).contains(&location.avma)
        {
            let svma = heapr_symbols::svma_of_offset(module.as_ref(), offset).unwrap_or(offset);
            let range = Range { start_avma, end_avma, bias_avma: start_avma.wrapping_sub(svma) };
            if builder.mapped(&module, &build_id, range)? {
                return Ok(location.avma);
            }
        }
        let name = format!("{:#x}", location.avma);
        builder.named(&module, &build_id, vec![Frame { name, file: String::new(), line: 0 }])
    }
}

fn location(mut fields: Fields<'_>, input: &mut Input<'_>) -> Result<LocationEntry> {
    let mut entry = LocationEntry::default();
    while let Some((field, value)) = fields.next()? {
        match field {
            1 => entry.id = value.number(),
            2 => entry.mapping = value.number(),
            3 => entry.avma = value.number(),
            4 => {
                input.keep(64)?;
                let [function, line] = numbers::<2>(value.message())?;
                entry.lines.push((function, line));
            }
            _ => {}
        }
    }
    Ok(entry)
}

/// First `N` fields of a message, all of them numbers.
fn numbers<const N: usize>(mut fields: Fields<'_>) -> Result<[u64; N]> {
    let mut found = [0; N];
    while let Some((field, value)) = fields.next()? {
        if let Some(place) = (field as usize).checked_sub(1).and_then(|place| found.get_mut(place)) {
            *place = value.number();
        }
    }
    Ok(found)
}

/// Decodes a build-id from hexadecimal text.
fn bytes_of_hex(text: &str) -> Vec<u8> {
    let digits = text.as_bytes();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    if !digits.len().is_multiple_of(2) {
        return Vec::new();
    }
    digits.chunks(2).map(byte).collect::<Option<Vec<u8>>>().unwrap_or_default()
}
