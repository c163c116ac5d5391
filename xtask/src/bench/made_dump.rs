//! Writer of heap dumps of Java (hprof) of any size: a shop with customers, orders, pictures.
//!
//! ```text
//!  class Shop.ALL -> Customer[][] -> Customer[] -> Customer -> String -> byte[]
//!                                                  |  .orders -> Object[] -> Order -> int[]
//!                                                  |  .friend -> a Customer before it
//!                                                  |  .picture -> byte[], of some customers
//! ```
//! The records are those of HotSpot, in segments of at most 1 MiB, with ids that are addresses. A
//! virtual machine would need as much memory as the dump is long.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

/// Bytes of a segment, at most.
const SEGMENT_BYTES: usize = 1 << 20;
/// Customers of one array.
const CUSTOMERS_OF_ARRAY: u64 = 100_000;
/// Customers from one with a picture to the next.
const PICTURE_EVERY: u64 = 50;
/// Address of the first object.
const FIRST_ID: u64 = 0x7_0000_0000;

/// Classes and their ids.
const CLASSES: [(&str, u64); 9] = [
    ("java/lang/Object", 0x100),
    ("java/lang/String", 0x200),
    ("shop/Customer", 0x300),
    ("shop/Order", 0x400),
    ("shop/Shop", 0x500),
    ("[Ljava/lang/Object;", 0x600),
    ("[Lshop/Customer;", 0x700),
    ("[[Lshop/Customer;", 0x800),
    ("java/lang/Class", 0x900),
];
/// Names of fields, whose ids are their positions behind this number.
const FIELDS: [&str; 11] =
    ["value", "coder", "hash", "name", "orders", "friend", "picture", "number", "customer", "lines", "ALL"];
const FIRST_FIELD: u64 = 0x10_0000;
/// Types in a dump.
const OBJECT: u8 = 2;
const BYTE: u8 = 8;
const INT: u8 = 10;
const LONG: u8 = 11;

/// Contents of a dump that was written.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Made {
    pub(crate) object_count: u64,
    pub(crate) bytes: u64,
}

struct Dump<W> {
    out: W,
    segment: Vec<u8>,
    next_id: u64,
    dice: u64,
    made: Made,
}

/// Writes a dump with so many customers (12 objects and 535 bytes each) and pictures of so many
/// bytes.
pub(crate) fn write(path: &Path, customer_count: u64, picture_bytes: u32) -> anyhow::Result<Made> {
    let out = BufWriter::with_capacity(1 << 20, File::create(path)?);
    let segment = Vec::with_capacity(SEGMENT_BYTES);
    let mut dump = Dump { out, segment, next_id: FIRST_ID, dice: 7, made: Made::default() };
    let array_count = customer_count.div_ceil(CUSTOMERS_OF_ARRAY);
    let all = dump.id(16 + 4 * array_count);
    dump.head()?;
    dump.classes(all)?;
    let mut arrays = Vec::new();
    let mut of_array = Vec::new();
    for number in 0..customer_count {
        // One of those before it in its array.
        let friend = match of_array.len() as u64 {
            0 => 0,
            known => of_array[(dump.below(known)) as usize],
        };
        let picture = if number % PICTURE_EVERY == 0 { picture_bytes } else { 0 };
        of_array.push(dump.customer(number, friend, picture)?);
        if of_array.len() as u64 == CUSTOMERS_OF_ARRAY || number + 1 == customer_count {
            let array = dump.id(16 + 4 * of_array.len() as u64);
            dump.objects(array, "[Lshop/Customer;", &of_array)?;
            arrays.push(array);
            of_array.clear();
        }
    }
    dump.objects(all, "[[Lshop/Customer;", &arrays)?;
    dump.end()
}

fn class(name: &str) -> u64 {
    CLASSES.iter().find(|(known, _)| *known == name).map_or(0, |&(_, id)| id)
}

fn field(name: &str) -> u64 {
    FIELDS.iter().position(|known| *known == name).map_or(0, |at| FIRST_FIELD + at as u64)
}

impl<W: Write> Dump<W> {
    fn below(&mut self, limit: u64) -> u64 {
        self.dice = self.dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.dice >> 33) % limit.max(1)
    }

    fn record(&mut self, tag: u8, contents: &[u8]) -> anyhow::Result<()> {
        self.out.write_all(&[tag, 0, 0, 0, 0])?;
        self.out.write_all(&u32::try_from(contents.len())?.to_be_bytes())?;
        self.out.write_all(contents)?;
        self.made.bytes += 9 + contents.len() as u64;
        Ok(())
    }

    fn head(&mut self) -> anyhow::Result<()> {
        self.out.write_all(b"JAVA PROFILE 1.0.2\0\0\0\0\x08\0\0\0\0\0\0\0\0")?;
        self.made.bytes += 31;
        let fields = FIELDS.iter().map(|name| (*name, field(name)));
        let classes = CLASSES.iter().map(|&(name, id)| (name, id + 1));
        for (name, id) in fields.chain(classes) {
            self.record(0x01, &[&id.to_be_bytes()[..], name.as_bytes()].concat())?;
        }
        for (serial, &(_, id)) in (1_u32..).zip(&CLASSES) {
            let name = (id + 1).to_be_bytes();
            self.record(
                0x02,
                &[&serial.to_be_bytes()[..], &id.to_be_bytes(), &0_u32.to_be_bytes(), &name].concat(),
            )?;
        }
        Ok(())
    }

    /// Writes the segment if a part of so many bytes does not fit any more.
    fn room(&mut self, bytes: usize) -> anyhow::Result<()> {
        if self.segment.len() + bytes > SEGMENT_BYTES && !self.segment.is_empty() {
            let segment = std::mem::take(&mut self.segment);
            self.record(0x1c, &segment)?;
            self.segment = segment;
            self.segment.clear();
        }
        Ok(())
    }

    fn put(&mut self, parts: &[&[u8]]) {
        parts.iter().for_each(|part| self.segment.extend_from_slice(part));
    }

    /// Describes a class with its fields of its own; `all`: value of the static.
    fn class(&mut self, name: &str, fields: &[(&str, u8)], all: Option<u64>) -> anyhow::Result<()> {
        self.room(256)?;
        let above = if name == "java/lang/Object" { 0 } else { class("java/lang/Object") };
        self.put(&[&[0x20], &class(name).to_be_bytes(), &[0; 4], &above.to_be_bytes(), &[0; 40]]);
        self.put(&[&16_u32.to_be_bytes(), &[0; 2]]);
        match all {
            Some(value) => {
                self.put(&[
                    &1_u16.to_be_bytes(),
                    &field("ALL").to_be_bytes(),
                    &[OBJECT],
                    &value.to_be_bytes(),
                ]);
            }
            None => self.put(&[&[0; 2]]),
        }
        self.put(&[&(fields.len() as u16).to_be_bytes()]);
        for &(name, kind) in fields {
            self.put(&[&field(name).to_be_bytes(), &[kind]]);
        }
        self.made.object_count += 1;
        Ok(())
    }

    /// Writes all classes before the first instance, as HotSpot does. A static holds everything.
    fn classes(&mut self, all: u64) -> anyhow::Result<()> {
        self.class("java/lang/Object", &[], None)?;
        self.class("java/lang/Class", &[], None)?;
        self.class("java/lang/String", &[("value", OBJECT), ("coder", BYTE), ("hash", INT)], None)?;
        let of_customer =
            [("name", OBJECT), ("orders", OBJECT), ("friend", OBJECT), ("picture", OBJECT), ("number", LONG)];
        self.class("shop/Customer", &of_customer, None)?;
        self.class("shop/Order", &[("customer", OBJECT), ("lines", OBJECT), ("number", LONG)], None)?;
        for name in ["[Ljava/lang/Object;", "[Lshop/Customer;", "[[Lshop/Customer;"] {
            self.class(name, &[], None)?;
        }
        self.class("shop/Shop", &[], Some(all))?;
        for &(_, id) in &CLASSES {
            self.put(&[&[0x05], &id.to_be_bytes()]);
        }
        Ok(())
    }

    /// Takes the address of an object of so many bytes.
    fn id(&mut self, bytes: u64) -> u64 {
        let id = self.next_id;
        self.next_id += bytes.next_multiple_of(8);
        self.made.object_count += 1;
        id
    }

    fn instance(&mut self, id: u64, name: &str, values: &[&[u8]]) -> anyhow::Result<()> {
        let length: usize = values.iter().map(|value| value.len()).sum();
        self.room(25 + length)?;
        self.put(&[&[0x21], &id.to_be_bytes(), &[0; 4], &class(name).to_be_bytes()]);
        self.put(&[&(length as u32).to_be_bytes()]);
        self.put(values);
        Ok(())
    }

    fn numbers(&mut self, id: u64, kind: u8, count: u32, bytes: usize) -> anyhow::Result<()> {
        self.room(18 + bytes)?;
        self.put(&[&[0x23], &id.to_be_bytes(), &[0; 4], &count.to_be_bytes(), &[kind]]);
        let length = self.segment.len() + bytes;
        self.segment.resize(length, b'x');
        Ok(())
    }

    fn objects(&mut self, id: u64, name: &str, items: &[u64]) -> anyhow::Result<()> {
        self.room(25 + 8 * items.len())?;
        self.put(&[&[0x22], &id.to_be_bytes(), &[0; 4], &(items.len() as u32).to_be_bytes()]);
        self.put(&[&class(name).to_be_bytes()]);
        for item in items {
            self.put(&[&item.to_be_bytes()]);
        }
        Ok(())
    }

    /// Writes a customer and its parts, in the order of their addresses.
    fn customer(&mut self, number: u64, friend: u64, picture_bytes: u32) -> anyhow::Result<u64> {
        let id = self.id(40);
        let (text, name) = (self.id(32), self.id(24));
        let order_count = 2 + self.below(5);
        let mut orders = Vec::new();
        for _ in 0..order_count {
            let count = self.below(10) as u32;
            orders.push((count, self.id(16 + 4 * u64::from(count)), self.id(32)));
        }
        let list = self.id(16 + 4 * order_count);
        let picture = if picture_bytes > 0 { self.id(16 + u64::from(picture_bytes)) } else { 0 };
        let values = [name, list, friend, picture, number].map(u64::to_be_bytes);
        self.instance(id, "shop/Customer", &[values.as_flattened()])?;
        self.numbers(text, BYTE, 16, 16)?;
        self.instance(name, "java/lang/String", &[&text.to_be_bytes(), &[0; 5]])?;
        for &(count, lines, order) in &orders {
            self.numbers(lines, INT, count, 4 * count as usize)?;
            let values = [id, lines, number].map(u64::to_be_bytes);
            self.instance(order, "shop/Order", &[values.as_flattened()])?;
        }
        let items: Vec<u64> = orders.iter().map(|&(.., order)| order).collect();
        self.objects(list, "[Ljava/lang/Object;", &items)?;
        if picture > 0 {
            self.numbers(picture, BYTE, picture_bytes, picture_bytes as usize)?;
        }
        Ok(id)
    }

    fn end(mut self) -> anyhow::Result<Made> {
        let segment = std::mem::take(&mut self.segment);
        self.record(0x1c, &segment)?;
        self.record(0x2c, &[])?;
        self.out.flush()?;
        Ok(self.made)
    }
}
