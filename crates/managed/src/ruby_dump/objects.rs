//! Reading of a dump: all objects and roots, in the order of the file.

use std::io::{BufRead as _, BufReader, ErrorKind, Read};

use rustc_hash::FxHashMap;

use super::kinds::{Kind, shown_root};
use super::lines::{Address, Line};
use crate::dump::texts::Texts;
use crate::dump_error::{DumpError, Result};
use crate::id_map::IdMap;

/// Largest length of a line in bytes. An array has 20 bytes of its line for each item.
const LINE_BYTES_MAX: usize = 1 << 30;
/// Size of the reader's buffer in bytes.
const BUFFER_BYTES: usize = 1 << 20;
/// Largest number of characters of a text.
const CHARACTERS_MAX: usize = 1024;
/// Largest number of groups of roots.
const ROWS_MAX: usize = 1 << 10;

/// An object without its references.
#[derive(Debug, Clone, Copy)]
pub(super) struct Object {
    pub(super) address: u64,
    /// Address of the class; 0 without one.
    pub(super) class: u64,
    pub(super) kind: Kind,
    /// Number of a name among the texts: of a class, a structure, or a string's characters. 0
    /// without one.
    pub(super) name: u32,
    /// Memory of the object and of what belongs to it alone, in bytes.
    pub(super) own_bytes: u64,
}

/// Class or module.
#[derive(Debug, Clone, Copy)]
pub(super) struct ClassFacts {
    /// Address of the superclass; 0 without one.
    pub(super) superclass: u64,
    /// Number of the name among the texts; 0 without one.
    pub(super) name: u32,
    pub(super) is_singleton: bool,
}

/// Group of references from outside of the heap.
#[derive(Debug)]
pub(super) struct Root {
    pub(super) name: String,
    pub(super) references: Vec<u64>,
}

/// All objects of a dump.
#[derive(Debug)]
pub(super) struct Objects {
    pub(super) all: Vec<Object>,
    /// First reference of each object.
    pub(super) first_references: Vec<usize>,
    /// Addresses of the objects that are referred to, by object.
    pub(super) references: Vec<u64>,
    pub(super) classes: FxHashMap<u64, ClassFacts>,
    pub(super) roots: Vec<Root>,
    pub(super) map: IdMap,
    pub(super) texts: Texts,
    /// Whether strings have their characters.
    pub(super) with_texts: bool,
    pub(super) cut_at: Option<u64>,
    /// Number of objects that the dump has twice.
    pub(super) repeated_count: u64,
    pub(super) unreadable_count: u64,
    pub(super) first_unreadable: Option<u64>,
}

impl Objects {
    /// Reads a dump. `with_texts`: characters of strings are read, too.
    pub(super) fn read(reader: impl Read, with_texts: bool) -> Result<Self> {
        let mut objects = Self {
            all: Vec::new(),
            first_references: Vec::new(),
            references: Vec::new(),
            classes: FxHashMap::default(),
            roots: Vec::new(),
            map: IdMap::new(),
            texts: Texts::new()?,
            with_texts,
            cut_at: None,
            repeated_count: 0,
            unreadable_count: 0,
            first_unreadable: None,
        };
        let mut reader = BufReader::with_capacity(BUFFER_BYTES, reader);
        let (mut line, mut offset) = (Vec::new(), 0_u64);
        loop {
            line.clear();
            let read = reader.by_ref().take(LINE_BYTES_MAX as u64 + 1).read_until(b'\n', &mut line);
            let (ends_early, is_cut) = match read {
                Ok(0) => break,
                Ok(_) => (false, line.last() != Some(&b'\n')),
                // A packed file that is cut ends here, and does so again at each further reading.
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => (true, true),
                Err(source) => return Err(DumpError::Io { offset, source }),
            };
            if line.len() > LINE_BYTES_MAX {
                return Err(DumpError::LongLine { offset, limit_bytes: LINE_BYTES_MAX });
            }
            let is_first = offset == 0;
            match serde_json::from_slice::<Line<'_>>(&line) {
                Ok(found) if !found.kind.is_empty() => objects.line(found)?,
                _ if line.trim_ascii().is_empty() => {}
                _ if is_first => return Err(DumpError::NotRuby),
                _ if is_cut => objects.cut_at = Some(offset + line.len() as u64),
                _ => {
                    objects.unreadable_count += 1;
                    objects.first_unreadable.get_or_insert(offset);
                }
            }
            offset += line.len() as u64;
            if ends_early {
                objects.cut_at = Some(offset);
                break;
            }
        }
        if objects.all.is_empty() {
            return Err(DumpError::NoObjects);
        }
        objects.first_references.push(objects.references.len());
        let ids: Vec<u64> = objects.all.iter().map(|object| object.address).collect();
        objects.map.finish(&ids);
        Ok(objects)
    }

    /// Whether no line says what holds objects from outside.
    pub(super) fn has_no_roots(&self) -> bool {
        self.roots.is_empty()
    }

    /// Addresses that an object refers to.
    pub(super) fn references_of(&self, number: usize) -> &[u64] {
        let at = |number: usize| self.first_references.get(number).copied().unwrap_or(0);
        self.references.get(at(number)..at(number + 1)).unwrap_or_default()
    }

    fn line(&mut self, line: Line<'_>) -> Result<()> {
        if line.kind == "ROOT" {
            self.root(&line);
            return Ok(());
        }
        let (Some(Address(address)), Some(kind)) = (line.address, Kind::of(&line)) else { return Ok(()) };
        if !self.map.insert(address) {
            self.repeated_count += 1;
            return Ok(());
        }
        if self.all.len() >= u32::MAX as usize / 2 {
            return Err(DumpError::TooMany { what: "objects" });
        }
        let name = match kind {
            Kind::Class | Kind::Module => line.name.as_deref().or(line.real_class_name.as_deref()),
            Kind::Text if self.with_texts => line.value.0.as_deref(),
            Kind::Internal => line.imemo_type.as_deref(),
            Kind::Native => line.structure.as_deref(),
            _ => None,
        };
        let name = self.texts.number(cut(name.unwrap_or_default()))?;
        if matches!(kind, Kind::Class | Kind::Module | Kind::Included) {
            let superclass = line.superclass.map_or(0, |it| it.0);
            self.classes.insert(address, ClassFacts { superclass, name, is_singleton: line.singleton });
        }
        let class = line.class.map_or(0, |it| it.0);
        self.all.push(Object { address, class, kind, name, own_bytes: line.memsize });
        self.first_references.push(self.references.len());
        if self.references.len() + line.references.len() >= u32::MAX as usize - (1 << 24) {
            return Err(DumpError::TooMany { what: "references" });
        }
        self.references.extend(line.references.iter().map(|it| it.0));
        Ok(())
    }

    fn root(&mut self, line: &Line<'_>) {
        let name = shown_root(line.root.as_deref().unwrap_or("unknown"));
        let references = line.references.iter().map(|it| it.0);
        let is_full = self.roots.len() >= ROWS_MAX;
        let found = self.roots.iter_mut().find(|root| root.name == name);
        match found {
            Some(root) => root.references.extend(references),
            None if is_full => {}
            None => self.roots.push(Root { name, references: references.collect() }),
        }
    }
}

/// Beginning of a text.
fn cut(text: &str) -> &str {
    text.char_indices().nth(CHARACTERS_MAX).map_or(text, |(end, _)| &text[..end])
}
