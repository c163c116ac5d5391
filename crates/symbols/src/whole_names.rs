//! Whole names of functions that have no linkage name: g++ gives none to functions local to a file
//! (static functions, anonymous namespaces, lambdas, local classes).
//!
//! The name is composed of the function's scopes and arguments, in the demangler's format.
//! Functions of one name in different scopes thus stay distinct, and one name means one function,
//! inlined or not.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashMap;
use std::path::Path;
use std::rc::Rc;

use gimli::{AttributeValue, DebugInfoOffset, EndianSlice, RunTimeEndian, UnitHeader, UnitOffset};
use object::{Object as _, ObjectSection as _};

use crate::demangle::demangle;
use crate::mapped_file;

type Slice<'d> = EndianSlice<'d, RunTimeEndian>;
type Entry<'d> = gimli::DebuggingInformationEntry<Slice<'d>>;

/// Largest depth to which scopes and types are followed: hostile ones lead in circles.
const DEPTH_MAX: u32 = 48;
/// Longest composed name in bytes; longer ones are dropped.
const NAME_BYTES_MAX: usize = 16 << 10;

/// A requested function: an address in it, and the offset of its entry in the address's unit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked {
    pub(crate) svma: u64,
    pub(crate) entry: usize,
}

/// Finds the whole names, in the order of `asked`; `None` if the debug information lacks one.
pub(crate) fn find(debug: &Path, asked: &[Asked]) -> Vec<Option<String>> {
    let mut names = vec![None; asked.len()];
    if !asked.is_empty() {
        fill(debug, asked, &mut names);
    }
    names
}

fn fill(debug: &Path, asked: &[Asked], names: &mut [Option<String>]) -> Option<()> {
    let svmas: Vec<u64> = asked.iter().map(|asked| asked.svma).collect();
    each_unit(
        debug,
        &svmas,
        |_| true,
        |units, unit, inside| {
            for &at in inside {
                let place = Place { unit: Rc::clone(unit), offset: UnitOffset(asked[at].entry) };
                names[at] = units.function(place, 0).filter(|name| name.len() <= NAME_BYTES_MAX);
            }
        },
    )
}

/// Calls `given` with each unit that contains some of the addresses, and the indices of these.
/// Stops early if `wanted` rejects the file's abbreviation table, which lists the kinds of entries.
pub(crate) fn each_unit(
    debug: &Path,
    svmas: &[u64],
    wanted: impl Fn(&[u8]) -> bool,
    mut given: impl for<'u, 'd> FnMut(&Units<'u, 'd>, &Rc<OpenUnit<'d>>, &[usize]),
) -> Option<()> {
    let map = mapped_file::map(debug)?;
    let object = object::File::parse(&*map).ok()?;
    let endian = if object.is_little_endian() { RunTimeEndian::Little } else { RunTimeEndian::Big };
    let kinds = object.section_by_name(".debug_abbrev")?.uncompressed_data().ok()?;
    if !wanted(&kinds) {
        return None;
    }
    let sections = gimli::DwarfSections::load(|id| match object.section_by_name(id.name()) {
        Some(section) => section.uncompressed_data(),
        None => Ok(Cow::Borrowed(&[][..])),
    })
    .ok()?;
    let dwarf = sections.borrow(|section| EndianSlice::new(section, endian));
    let mut by_svma: Vec<(u64, usize)> = svmas.iter().enumerate().map(|(at, &svma)| (svma, at)).collect();
    by_svma.sort_unstable();
    let mut headers = Vec::new();
    let mut found: Vec<(usize, Vec<usize>)> = Vec::new();
    let mut units = dwarf.units();
    while let Ok(Some(header)) = units.next() {
        headers.push(header);
        let Ok(unit) = dwarf.unit(header) else { continue };
        let Ok(mut ranges) = dwarf.unit_ranges(&unit) else { continue };
        let mut inside = Vec::new();
        while let Ok(Some(range)) = ranges.next() {
            let first = by_svma.partition_point(|&(svma, _)| svma < range.begin);
            inside.extend(
                by_svma[first..].iter().take_while(|&&(svma, _)| svma < range.end).map(|&(_, at)| at),
            );
        }
        if !inside.is_empty() {
            found.push((headers.len() - 1, inside));
        }
    }
    let units = Units { dwarf: &dwarf, headers, open: RefCell::default() };
    for (number, inside) in found {
        let Some(unit) = units.open(number) else { continue };
        given(&units, &unit, &inside);
    }
    Some(())
}

/// A unit with its scopes.
pub(crate) struct OpenUnit<'d> {
    pub(crate) unit: gimli::Unit<Slice<'d>>,
    is_cpp: bool,
    /// Scopes and functions in order of their offsets, each with its parent.
    scopes: Vec<Scope>,
    /// Composed names by offset.
    names: RefCell<HashMap<usize, Option<String>>>,
}

#[derive(Clone, Copy)]
struct Scope {
    offset: usize,
    /// Offset of the enclosing scope; 0 for the unit itself.
    parent: usize,
    is_function: bool,
}

/// An entry of a unit.
#[derive(Clone)]
struct Place<'d> {
    unit: Rc<OpenUnit<'d>>,
    offset: UnitOffset,
}

pub(crate) struct Units<'u, 'd> {
    pub(crate) dwarf: &'u gimli::Dwarf<Slice<'d>>,
    headers: Vec<UnitHeader<Slice<'d>>>,
    open: RefCell<HashMap<usize, Rc<OpenUnit<'d>>>>,
}

fn is_type_scope(tag: gimli::DwTag) -> bool {
    matches!(
        tag,
        gimli::DW_TAG_class_type
            | gimli::DW_TAG_structure_type
            | gimli::DW_TAG_union_type
            | gimli::DW_TAG_enumeration_type
    )
}

impl<'d> OpenUnit<'d> {
    fn new(unit: gimli::Unit<Slice<'d>>) -> Option<Self> {
        let mut scopes = Vec::new();
        let mut around: Vec<(isize, usize)> = Vec::new();
        let mut is_cpp = false;
        let mut entries = unit.entries();
        while let Some(entry) = entries.next_dfs().ok()? {
            let (depth, tag, offset) = (entry.depth(), entry.tag(), entry.offset().0);
            while around.last().is_some_and(|&(outer, _)| outer >= depth) {
                around.pop();
            }
            if depth == 0 {
                if let Some(AttributeValue::Language(language)) = entry.attr_value(gimli::DW_AT_language) {
                    is_cpp = is_cpp_language(language);
                }
                continue;
            }
            let is_function = tag == gimli::DW_TAG_subprogram;
            if is_function
                || is_type_scope(tag)
                || matches!(tag, gimli::DW_TAG_namespace | gimli::DW_TAG_module)
            {
                let parent = around.last().map_or(0, |&(_, parent)| parent);
                scopes.push(Scope { offset, parent, is_function });
                if entry.has_children() {
                    around.push((depth, offset));
                }
            }
        }
        Some(Self { unit, is_cpp, scopes, names: RefCell::default() })
    }

    fn parent_of(&self, offset: UnitOffset) -> Option<UnitOffset> {
        let place = self.scopes.binary_search_by_key(&offset.0, |scope| scope.offset).ok()?;
        Some(self.scopes[place].parent).filter(|&parent| parent != 0).map(UnitOffset)
    }

    fn entry(&self, offset: UnitOffset) -> Option<Entry<'d>> {
        self.unit.entry(offset).ok()
    }
}

/// True if the language is a version of C++.
pub(crate) fn is_cpp_language(language: gimli::DwLang) -> bool {
    matches!(
        language,
        gimli::DW_LANG_C_plus_plus
            | gimli::DW_LANG_C_plus_plus_03
            | gimli::DW_LANG_C_plus_plus_11
            | gimli::DW_LANG_C_plus_plus_14
            | gimli::DW_LANG_C_plus_plus_17
            | gimli::DW_LANG_C_plus_plus_20
    )
}

impl<'d> Units<'_, 'd> {
    fn open(&self, number: usize) -> Option<Rc<OpenUnit<'d>>> {
        if let Some(known) = self.open.borrow().get(&number) {
            return Some(Rc::clone(known));
        }
        let unit = self.dwarf.unit(*self.headers.get(number)?).ok()?;
        let unit = Rc::new(OpenUnit::new(unit)?);
        self.open.borrow_mut().insert(number, Rc::clone(&unit));
        Some(unit)
    }

    /// Target of a reference in an entry of `unit`.
    fn referred(&self, unit: &Rc<OpenUnit<'d>>, value: AttributeValue<Slice<'d>>) -> Option<Place<'d>> {
        match value {
            AttributeValue::UnitRef(offset) => Some(Place { unit: Rc::clone(unit), offset }),
            AttributeValue::DebugInfoRef(DebugInfoOffset(offset)) => {
                let begin =
                    |header: &UnitHeader<Slice<'d>>| header.debug_info_offset().map_or(0, |begin| begin.0);
                let number = self.headers.partition_point(|header| begin(header) <= offset).checked_sub(1)?;
                let unit = self.open(number)?;
                let offset = DebugInfoOffset(offset).to_unit_offset(&unit.unit.header)?;
                Some(Place { unit, offset })
            }
            _ => None,
        }
    }

    fn text(&self, unit: &OpenUnit<'d>, entry: &Entry<'d>, attribute: gimli::DwAt) -> Option<String> {
        let text = self.dwarf.attr_string(&unit.unit, entry.attr_value(attribute)?).ok()?;
        let text = text.slice();
        (text.len() <= NAME_BYTES_MAX).then(|| String::from_utf8_lossy(text).into_owned())
    }

    fn function(&self, place: Place<'d>, depth: u32) -> Option<String> {
        let (unit, at) = (Rc::clone(&place.unit), place.offset.0);
        if let Some(known) = unit.names.borrow().get(&at) {
            return known.clone();
        }
        let name = self.function_unknown(place, depth);
        unit.names.borrow_mut().insert(at, name.clone());
        name
    }

    fn function_unknown(&self, mut place: Place<'d>, depth: u32) -> Option<String> {
        if depth > DEPTH_MAX {
            return None;
        }
        let (mut name, mut is_external) = (None, false);
        for _ in 0..8 {
            let entry = place.unit.entry(place.offset)?;
            for attribute in [gimli::DW_AT_linkage_name, gimli::DW_AT_MIPS_linkage_name] {
                if let Some(linkage_name) = self.text(&place.unit, &entry, attribute) {
                    return Some(without_clone(demangle(&linkage_name)));
                }
            }
            name = name.or_else(|| self.text(&place.unit, &entry, gimli::DW_AT_name));
            is_external |= entry.attr_value(gimli::DW_AT_external).is_some();
            let origin = [gimli::DW_AT_abstract_origin, gimli::DW_AT_specification];
            let origin = origin.iter().find_map(|&attribute| entry.attr_value(attribute));
            match origin {
                Some(origin) => place = self.referred(&place.unit, origin)?,
                None => break,
            }
        }
        let name = name?;
        let (scope, has_linkage) = self.scope(&place, depth)?;
        // A C++ function callable from other files has no linkage name if it is declared `extern
        // "C"`.
        if !place.unit.is_cpp || is_external && has_linkage {
            return Some(if place.unit.is_cpp || scope.is_empty() {
                name
            } else {
                format!("{scope}::{name}")
            });
        }
        let (arguments, is_const) = self.arguments(&place, depth);
        let separator = if scope.is_empty() { "" } else { "::" };
        Some(format!("{scope}{separator}{name}({arguments}){}", if is_const { " const" } else { "" }))
    }

    /// Name of an entry's scope, and whether the scope consists of named namespaces only.
    fn scope(&self, place: &Place<'d>, depth: u32) -> Option<(String, bool)> {
        let Some(parent) = place.unit.parent_of(place.offset) else { return Some((String::new(), true)) };
        let entry = place.unit.entry(parent)?;
        let parent = Place { unit: Rc::clone(&place.unit), offset: parent };
        if entry.tag() == gimli::DW_TAG_subprogram {
            return Some((self.function(parent, depth + 1)?, false));
        }
        if is_type_scope(entry.tag()) {
            return Some((self.type_scope(parent, &entry, depth + 1)?, false));
        }
        let (outer, has_linkage) = if depth > DEPTH_MAX { None } else { self.scope(&parent, depth + 1) }?;
        let name = self.text(&parent.unit, &entry, gimli::DW_AT_name);
        let has_linkage = has_linkage && name.is_some();
        Some((joined(&outer, name.as_deref().unwrap_or("(anonymous namespace)")), has_linkage))
    }

    /// Name of a class, structure, union or enumeration with its scope.
    fn type_scope(&self, mut place: Place<'d>, entry: &Entry<'d>, depth: u32) -> Option<String> {
        if depth > DEPTH_MAX {
            return None;
        }
        let mut name = self.text(&place.unit, entry, gimli::DW_AT_name);
        if let Some(declared) = entry.attr_value(gimli::DW_AT_specification) {
            place = self.referred(&place.unit, declared)?;
            let declared = place.unit.entry(place.offset)?;
            name = name.or_else(|| self.text(&place.unit, &declared, gimli::DW_AT_name));
        }
        let (scope, _) = self.scope(&place, depth)?;
        let name = match name.filter(|name| !name.starts_with("<lambda")) {
            Some(name) => name,
            None => self.nameless(&place, depth),
        };
        Some(joined(&scope, &name))
    }

    /// The demangler's name for a type without a name: its number, from 1, among similar ones in
    /// the scope.
    fn nameless(&self, place: &Place<'d>, depth: u32) -> String {
        let like = self.lambda(place, depth);
        let parent = place.unit.parent_of(place.offset).map_or(0, |parent| parent.0);
        let before = place.unit.scopes.iter().take_while(|scope| scope.offset < place.offset.0);
        let is_like = |scope: &&Scope| {
            let other = Place { unit: Rc::clone(&place.unit), offset: UnitOffset(scope.offset) };
            let entry = other.unit.entry(other.offset).filter(|entry| is_type_scope(entry.tag()));
            entry.is_some_and(|entry| {
                let name = self.text(&other.unit, &entry, gimli::DW_AT_name);
                name.is_none_or(|name| name.starts_with("<lambda")) && self.lambda(&other, depth) == like
            })
        };
        let number =
            before.filter(|scope| scope.parent == parent && !scope.is_function).filter(is_like).count() + 1;
        match like {
            Some(arguments) => format!("{{lambda({arguments})#{number}}}"),
            None => format!("{{unnamed type#{number}}}"),
        }
    }

    /// Arguments of a lambda's class; `None` for another class.
    fn lambda(&self, place: &Place<'d>, depth: u32) -> Option<String> {
        let inside = place.unit.scopes.iter().skip_while(|scope| scope.offset <= place.offset.0);
        // The members of a class follow it before all other entries.
        let mut functions = inside
            .take_while(|scope| scope.parent >= place.offset.0)
            .filter(|scope| scope.is_function && scope.parent == place.offset.0);
        functions.find_map(|scope| {
            let call = Place { unit: Rc::clone(&place.unit), offset: UnitOffset(scope.offset) };
            let entry = call.unit.entry(call.offset)?;
            let name = self.text(&call.unit, &entry, gimli::DW_AT_name)?;
            (name == "operator()").then(|| self.arguments(&call, depth + 1).0)
        })
    }

    /// Types of a function's arguments, and whether it is a const member function.
    fn arguments(&self, place: &Place<'d>, depth: u32) -> (String, bool) {
        let mut arguments = String::new();
        let mut is_const = false;
        let Ok(mut tree) = place.unit.unit.entries_tree(Some(place.offset)) else {
            return (arguments, false);
        };
        let Ok(root) = tree.root() else { return (arguments, false) };
        let mut children = root.children();
        while let Ok(Some(child)) = children.next() {
            let entry = child.entry();
            let text = match entry.tag() {
                gimli::DW_TAG_formal_parameter if entry.attr_value(gimli::DW_AT_artificial).is_some() => {
                    let this = self.type_text(&place.unit, entry, depth);
                    is_const |= this.strip_suffix(" const").unwrap_or(&this).ends_with(" const*");
                    continue;
                }
                gimli::DW_TAG_formal_parameter => self.type_text(&place.unit, entry, depth),
                gimli::DW_TAG_unspecified_parameters => "...".to_owned(),
                _ => continue,
            };
            if arguments.len() + text.len() > NAME_BYTES_MAX {
                break;
            }
            arguments.extend([if arguments.is_empty() { "" } else { ", " }, &text]);
        }
        (arguments, is_const)
    }

    /// Type of an entry.
    fn type_text(&self, unit: &Rc<OpenUnit<'d>>, entry: &Entry<'d>, depth: u32) -> String {
        self.type_of(unit, entry.attr_value(gimli::DW_AT_type), depth)
    }

    /// Type to which an attribute refers.
    pub(crate) fn type_of(
        &self,
        unit: &Rc<OpenUnit<'d>>,
        value: Option<AttributeValue<Slice<'d>>>,
        depth: u32,
    ) -> String {
        let Some(value) = value else { return "void".to_owned() };
        let unknown = || "?".to_owned();
        let Some(place) = self.referred(unit, value).filter(|_| depth <= DEPTH_MAX) else { return unknown() };
        let Some(entry) = place.unit.entry(place.offset) else { return unknown() };
        let inner = || self.type_text(&place.unit, &entry, depth + 1);
        let text = match entry.tag() {
            gimli::DW_TAG_pointer_type => pointer(inner(), "*"),
            gimli::DW_TAG_reference_type => pointer(inner(), "&"),
            gimli::DW_TAG_rvalue_reference_type => pointer(inner(), "&&"),
            gimli::DW_TAG_const_type => inner() + " const",
            gimli::DW_TAG_volatile_type => inner() + " volatile",
            gimli::DW_TAG_typedef | gimli::DW_TAG_atomic_type | gimli::DW_TAG_restrict_type => inner(),
            gimli::DW_TAG_array_type => inner() + " []",
            gimli::DW_TAG_subroutine_type => {
                let (arguments, _) = self.arguments(&place, depth + 1);
                format!("{} ({arguments})", inner())
            }
            tag if is_type_scope(tag) => {
                self.type_scope(place.clone(), &entry, depth + 1).unwrap_or_else(unknown)
            }
            _ => {
                let name = self.text(&place.unit, &entry, gimli::DW_AT_name).unwrap_or_else(unknown);
                plain_type(&name).map_or(name, str::to_owned)
            }
        };
        if text.len() > NAME_BYTES_MAX { unknown() } else { text }
    }
}

fn joined(scope: &str, name: &str) -> String {
    if scope.is_empty() { name.to_owned() } else { format!("{scope}::{name}") }
}

/// Appends a pointer's sign to its type, but inside the parentheses of a function's: `int
/// (*)(char)`.
fn pointer(inner: String, sign: &str) -> String {
    match inner.split_once(" (") {
        Some((result, arguments)) if arguments.starts_with('*') => format!("{result} ({sign}{arguments}"),
        Some((result, arguments)) if arguments.ends_with(')') => format!("{result} ({sign})({arguments}"),
        _ => inner + sign,
    }
}

/// The demangler's name for a type that the compiler names differently.
fn plain_type(name: &str) -> Option<&'static str> {
    Some(match name {
        "long int" => "long",
        "long unsigned int" => "unsigned long",
        "short int" => "short",
        "short unsigned int" => "unsigned short",
        "long long int" => "long long",
        "long long unsigned int" => "unsigned long long",
        "__int128 unsigned" => "unsigned __int128",
        "decltype(nullptr)" => "decltype(nullptr)",
        _ => return None,
    })
}

/// Removes the mark of a clone that the compiler has made for some arguments: it is the same
/// function.
pub(crate) fn without_clone(mut name: String) -> String {
    if let Some(clone) = name.find(" [clone ") {
        name.truncate(clone);
    }
    name
}
