//! Values of a column in a row group, and their encoding as pages.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::io;

use rustc_hash::FxHasher;

use super::column::{Kind, Value, id_text};
use super::levels;
use super::thrift::Struct;

const PLAIN: i32 = 0;
const RLE: i32 = 3;
const RLE_DICTIONARY: i32 = 8;
/// Compression level of all pages.
const ZSTD_LEVEL: i32 = 3;

type FastMap<K> = HashMap<K, u32, BuildHasherDefault<FxHasher>>;

/// Values of a column, in order of rows.
#[derive(Debug)]
pub(super) enum Values {
    /// Texts: each once, and numbers of them.
    Texts { entries: Vec<Box<[u8]>>, numbers: FastMap<Box<[u8]>>, rows: Vec<u32> },
    /// Ids, likewise; they become texts as they are written.
    Ids { entries: Vec<[u8; 16]>, numbers: FastMap<u128>, rows: Vec<u32> },
    /// Numbers.
    Numbers(Vec<i64>),
}

/// Column of a row group.
#[derive(Debug)]
pub(super) struct ColumnValues {
    pub(super) values: Values,
    /// By row: 1 if it has a value. Empty if the column is required.
    present: Vec<u32>,
    is_optional: bool,
}

/// Pages of a column, with the facts for the footer.
#[derive(Debug)]
pub(super) struct Pages {
    pub(super) bytes: Vec<u8>,
    /// Offset of the data page in `bytes`. The dictionary page, if any, precedes it.
    pub(super) data_at: usize,
    pub(super) raw_bytes: usize,
    pub(super) encodings: Vec<i32>,
    /// Smallest and largest value, in the format's encoding.
    pub(super) bounds: Option<[Vec<u8>; 2]>,
}

impl ColumnValues {
    pub(super) fn new(kind: Kind) -> Self {
        let (entries, rows) = (Vec::new(), Vec::new());
        let values = match kind {
            Kind::Number | Kind::Time | Kind::TimeOrNone => Values::Numbers(Vec::new()),
            Kind::Text => Values::Texts { entries, numbers: FastMap::default(), rows },
            Kind::Id => Values::Ids { entries: Vec::new(), numbers: FastMap::default(), rows },
        };
        Self { values, present: Vec::new(), is_optional: kind == Kind::TimeOrNone }
    }

    pub(super) fn push(&mut self, value: &Value<'_>) {
        if self.is_optional {
            self.present.push(u32::from(!matches!(value, Value::Missing)));
        }
        match (&mut self.values, value) {
            (_, Value::Missing) if self.is_optional => {}
            (Values::Numbers(numbers), Value::Number(number)) => numbers.push(*number),
            (Values::Numbers(numbers), _) => numbers.push(0),
            (Values::Texts { entries, numbers, rows }, value) => {
                let text = if let Value::Text(text) = value { text.as_bytes() } else { &[] };
                // Most rows have what the row before has.
                let before = rows.last().copied();
                let number = match before.filter(|&number| *entries[number as usize] == *text) {
                    Some(number) => number,
                    None => numbers.get(text).copied().unwrap_or_else(|| {
                        let number = entries.len() as u32;
                        entries.push(text.into());
                        numbers.insert(text.into(), number);
                        number
                    }),
                };
                rows.push(number);
            }
            (Values::Ids { entries, numbers, rows }, value) => {
                let id = if let Value::Id(id) = value { *id } else { [0; 16] };
                let before = rows.last().copied();
                let number = match before.filter(|&number| entries[number as usize] == id) {
                    Some(number) => number,
                    None => *numbers.entry(u128::from_ne_bytes(id)).or_insert_with(|| {
                        entries.push(id);
                        entries.len() as u32 - 1
                    }),
                };
                rows.push(number);
            }
        }
    }

    /// Encodes the pages of `row_count` rows and clears the column.
    pub(super) fn take_pages(&mut self, row_count: usize) -> io::Result<Pages> {
        let mut data = Vec::new();
        if self.is_optional {
            let mut present = Vec::new();
            levels::encode(&self.present, 1, &mut present);
            data.extend_from_slice(&(present.len() as u32).to_le_bytes());
            data.extend(present);
            self.present.clear();
        }
        let bounds = self.bounds();
        let mut dictionary = Vec::new();
        let entry_count = self.put_values(&mut dictionary, &mut data);
        let mut pages = Pages { bytes: Vec::new(), data_at: 0, raw_bytes: 0, encodings: vec![RLE], bounds };
        let encoding = if let Some(count) = entry_count {
            let mut head = Struct::default();
            head.i32(1, count as i32).i32(2, PLAIN);
            pages.put(2, &dictionary, |page| {
                page.structure(7, head);
            })?;
            pages.data_at = pages.bytes.len();
            pages.encodings.extend([PLAIN, RLE_DICTIONARY]);
            RLE_DICTIONARY
        } else {
            pages.encodings.push(PLAIN);
            PLAIN
        };
        let mut head = Struct::default();
        head.i32(1, row_count as i32).i32(2, encoding).i32(3, RLE).i32(4, RLE);
        pages.put(0, &data, |page| {
            page.structure(5, head);
        })?;
        Ok(pages)
    }

    fn bounds(&self) -> Option<[Vec<u8>; 2]> {
        match &self.values {
            Values::Numbers(numbers) => {
                let (least, greatest) = (numbers.iter().min()?, numbers.iter().max()?);
                Some([least, greatest].map(|number| number.to_le_bytes().to_vec()))
            }
            Values::Texts { entries, .. } => {
                Some([entries.iter().min()?, entries.iter().max()?].map(|entry| entry.to_vec()))
            }
            // (As texts they are in the order of their bytes.)
            Values::Ids { entries, .. } => {
                Some([entries.iter().min()?, entries.iter().max()?].map(|id| id_text(id).to_vec()))
            }
        }
    }

    /// Encodes the values and returns the number of dictionary entries. Returns `None` if no
    /// dictionary is used: values seldom repeat.
    fn put_values(&mut self, dictionary: &mut Vec<u8>, data: &mut Vec<u8>) -> Option<usize> {
        match &mut self.values {
            Values::Texts { entries, numbers, rows } => {
                let is_repeated = put_texts(entries, rows, |entry| &entry[..], dictionary, data);
                let count = entries.len();
                entries.clear();
                numbers.clear();
                rows.clear();
                is_repeated.then_some(count)
            }
            Values::Ids { entries, numbers, rows } => {
                let is_repeated = put_texts(entries, rows, id_text, dictionary, data);
                let count = entries.len();
                entries.clear();
                numbers.clear();
                rows.clear();
                is_repeated.then_some(count)
            }
            Values::Numbers(numbers) => {
                let most = numbers.len() / 4 + 1;
                let mut known: FastMap<i64> = FastMap::default();
                let mut rows = Vec::with_capacity(numbers.len());
                for &number in numbers.iter() {
                    let next = known.len() as u32;
                    rows.push(*known.entry(number).or_insert(next));
                    if known.len() > most {
                        break;
                    }
                }
                let is_repeated = known.len() <= most;
                if is_repeated {
                    let mut entries: Vec<(u32, i64)> =
                        known.iter().map(|(&number, &place)| (place, number)).collect();
                    entries.sort_unstable();
                    entries.iter().for_each(|(_, number)| dictionary.extend(number.to_le_bytes()));
                    put_numbers(&rows, entries.len(), data);
                } else {
                    numbers.iter().for_each(|number| data.extend(number.to_le_bytes()));
                }
                numbers.clear();
                is_repeated.then_some(known.len())
            }
        }
    }
}

/// Writes texts with their lengths. Repeated ones are written once, with the rows' numbers.
/// Returns whether they repeat.
fn put_texts<'e, E, T: AsRef<[u8]>>(
    entries: &'e [E],
    rows: &[u32],
    text: impl Fn(&'e E) -> T,
    dictionary: &mut Vec<u8>,
    data: &mut Vec<u8>,
) -> bool {
    let put_entry = |entry: &'e E, out: &mut Vec<u8>| {
        let text = text(entry);
        let text = text.as_ref();
        out.extend_from_slice(&(text.len() as u32).to_le_bytes());
        out.extend_from_slice(text);
    };
    let is_repeated = entries.len() <= rows.len() / 2 + 1;
    if is_repeated {
        entries.iter().for_each(|entry| put_entry(entry, dictionary));
        put_numbers(rows, entries.len(), data);
    } else {
        rows.iter().for_each(|&number| put_entry(&entries[number as usize], data));
    }
    is_repeated
}

fn put_numbers(rows: &[u32], entry_count: usize, data: &mut Vec<u8>) {
    let width = levels::width(entry_count);
    data.push(width);
    levels::encode(rows, width, data);
}

impl Pages {
    fn put(&mut self, kind: i32, raw: &[u8], head: impl FnOnce(&mut Struct)) -> io::Result<()> {
        let packed = zstd::bulk::compress(raw, ZSTD_LEVEL)?;
        let mut page = Struct::default();
        page.i32(1, kind).i32(2, raw.len() as i32).i32(3, packed.len() as i32);
        head(&mut page);
        let page = page.end();
        self.raw_bytes += page.len() + raw.len();
        self.bytes.extend(page);
        self.bytes.extend(packed);
        Ok(())
    }
}
