//! Anchors of a Ruby: the version, the library's data, and tables in it without symbols.

use heapr_proc::Mapping;

use super::ids::{self, Ids};
use super::layout::{Layout, of_version};
use super::slots::Slots;
use super::values::{HAS_VARIABLES_BESIDE, Kind, Values};
use crate::error::{Error, Result};
use crate::pages::Pages;
use crate::symbols::{Module, data_of, end_of_module, module_starts};

/// Largest number of entries of a table that are looked at to recognise it.
const VOTERS: usize = 64;

/// Anchors of a Ruby.
#[derive(Debug, Clone)]
pub(super) struct Runtime {
    pub(super) layout: &'static Layout,
    /// Version as it is written: `3.1.2`.
    pub(super) version_text: String,
    /// Path of the program or library that has it, and the class `Object`.
    pub(super) module: String,
    pub(super) object_class: u64,
}

impl Runtime {
    /// Finds the runtime of a process.
    pub(super) fn find(pages: &Pages<'_>, mappings: &[Mapping]) -> Result<Self> {
        for (start_avma, name) in module_starts(mappings) {
            let Some(module) = Module::at(pages, start_avma) else { continue };
            let Some(version) = module.find(pages, "ruby_api_version") else { continue };
            let number = |at: u64| pages.half(version.address_avma + at * 4).unwrap_or(0);
            let (major, minor) = (number(0), number(1));
            let version = (major & 0xff) << 8 | minor & 0xff;
            let layout = of_version(version).ok_or(Error::UnknownRuby { version })?;
            let other = |what| Error::OtherRuby { version, what };
            let object_class = module.find(pages, "rb_cObject").ok_or(other("rb_cObject"))?;
            let text = module.find(pages, "ruby_version").and_then(|at| pages.text(at.address_avma, 32));
            return Ok(Self {
                layout,
                version_text: text.unwrap_or_else(|| format!("{major}.{minor}")),
                module: name.to_owned(),
                object_class: pages.word_or_zero(object_class.address_avma),
            });
        }
        Err(Error::NoRuby)
    }

    /// Ranges of the written data of a module.
    pub(super) fn data_of(pages: &Pages<'_>, mappings: &[Mapping], module: &str) -> Vec<(u64, u64)> {
        let starts = module_starts(mappings).filter(|&(_, name)| name == module);
        let end_avma = starts.filter_map(|(start_avma, _)| end_of_module(pages, start_avma)).max();
        let ranges = data_of(mappings, module);
        let limit_avma = end_avma.unwrap_or(u64::MAX);
        ranges.map(|(start, end)| (start, end.min(limit_avma))).filter(|(start, end)| start < end).collect()
    }
}

/// Tables of the library, found by what they have.
#[derive(Debug, Default)]
pub(super) struct Tables {
    /// Table of global variables; 0 if it was not found.
    pub(super) globals: u64,
    /// Table of instance variables of objects of other kinds.
    pub(super) variables_beside: u64,
    /// Shapes; 0 without them.
    pub(super) shapes: u64,
}

impl Tables {
    /// Finds the tables, and the names of ids, by the words of the library's data.
    pub(super) fn find(
        values: Values<'_, '_>,
        slots: &Slots,
        runtime: &Runtime,
        ranges: &[(u64, u64)],
    ) -> Result<(Self, Ids)> {
        let mut tables = Self::default();
        let mut names = None;
        for &(start_avma, end_avma) in ranges {
            for at_avma in (start_avma.next_multiple_of(8)..end_avma).step_by(8) {
                let word = values.word(at_avma, 0);
                if word == 0 || !word.is_multiple_of(8) {
                    continue;
                }
                if slots.get(word).is_some() {
                    if names.is_none() && ids::is_table(values, word) {
                        names = Some(word);
                    }
                    continue;
                }
                if values.layout.has_shapes && tables.shapes == 0 {
                    tables.shapes = ids::shapes_at(values, word);
                }
                if tables.variables_beside == 0 && is_beside(values, slots, word) {
                    tables.variables_beside = word;
                }
                if tables.globals == 0 && is_globals(values, word) {
                    tables.globals = word;
                }
            }
        }
        let version = runtime.layout.version;
        let names = names.ok_or(Error::OtherRuby { version, what: "the table of names" })?;
        if runtime.layout.has_shapes && tables.shapes == 0 {
            return Err(Error::OtherRuby { version, what: "the table of shapes" });
        }
        let ids = Ids::of(names, tables.shapes);
        Ok((tables, ids))
    }
}

/// Whether a table's keys are objects that say that they have variables in it.
fn is_beside(values: Values<'_, '_>, slots: &Slots, table: u64) -> bool {
    if values.pages.byte(table).is_none_or(|power| power > 32) || values.word(table, 16) == 0 {
        return false;
    }
    let (mut count, mut right) = (0, 0);
    values.entries_while(table, |key, _| {
        let is_key = slots.get(key).is_some() && values.flags(key) & HAS_VARIABLES_BESIDE != 0;
        count += 1;
        right += usize::from(is_key);
        is_key && count < VOTERS
    });
    count > 0 && right == count
}

/// Whether a table's values are global variables: records of a variable and of the name's id.
fn is_globals(values: Values<'_, '_>, table: u64) -> bool {
    let room = values.pages.half(table).unwrap_or(0);
    if !room.is_power_of_two() || !(64..1 << 20).contains(&room) {
        return false;
    }
    let (mut count, mut right) = (0, 0);
    values.id_entries_while(table, |key, value| {
        let id = values.word(value, 8);
        let is_variable = value != 0 && ids::number_of(id) == key && ids::is_global(id);
        count += 1;
        right += usize::from(is_variable);
        is_variable && count < VOTERS
    });
    count > 8 && right == count
}

/// Whether an object is a class.
pub(super) fn is_class(values: Values<'_, '_>, avma: u64) -> bool {
    matches!(values.kind(avma), Kind::Class | Kind::Module)
}
