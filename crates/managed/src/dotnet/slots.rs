//! Places of an object that can refer to others, in the order in which the runtime tells them.
//!
//! ```text
//! class Derived : Base   fields of Base | own references | structures that have references
//! ```
//! In each part the order is that of the file. (.NET 3.1 and 8 lay objects out like this, whatever
//! the order in the source, unless a class says where its fields lie.)

use std::cell::Cell;

use rustc_hash::FxHashMap;

use super::assembly::Assembly;
use super::members::{Named, Parent, Shape};
use super::walk::{Type, Walk};

/// Class of an assembly: numbers of the file and of the class in it.
pub(super) type Place = (u32, u32);

/// Largest number of classes inside of each other, or above each other.
const DEPTH_MAX: usize = 32;
/// Largest number of fields and arguments that are looked at for a type: bent files may have
/// structures whose parts double at each step.
const LOOKS_MAX: u32 = 20_000;
/// Largest number of places of an object.
const SLOTS_MAX: usize = 256;
const TEXT: &str = "System.String";
/// Classes that any value can be of.
const ANY: [&str; 3] = ["System.Object", "System.ValueType", "System.Enum"];

/// Objects that a place can refer to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    Any,
    Text,
    Array,
    Class(Place),
}

/// Place of an object.
#[derive(Debug, Clone)]
pub(super) struct Slot {
    pub(super) name: String,
    pub(super) wanted: Wanted,
}

/// Contents of a field.
#[derive(Debug, Clone)]
enum Contents {
    Plain,
    Reference(Wanted),
    Inside(Vec<Slot>),
}

/// Classes of all files of a process.
pub(super) struct Classes<'a> {
    assemblies: &'a [Assembly],
    /// Class of each name; `None` of names that several have.
    by_name: FxHashMap<&'a str, Option<Place>>,
    /// Class of each type.
    places: FxHashMap<u64, Place>,
    /// Number of looks that are left for the type under work.
    looks: Cell<u32>,
}

impl<'a> Classes<'a> {
    /// Finds the classes of all types that the events name.
    pub(super) fn of(assemblies: &'a [Assembly], walk: &Walk) -> Self {
        let mut by_name: FxHashMap<&str, Option<Place>> = FxHashMap::default();
        for (file, assembly) in (0..).zip(assemblies) {
            for (class, name) in (0..).zip(&assembly.classes) {
                by_name.entry(name).and_modify(|place| *place = None).or_insert(Some((file, class)));
            }
        }
        let files = files(assemblies, walk);
        let places = walk.types.iter().filter_map(|(&id, known)| {
            let file = *files.get(&known.module)?;
            has_class(&assemblies[file as usize], known).then(|| (id, (file, known.number - 1)))
        });
        Self { assemblies, by_name, places: places.collect(), looks: Cell::new(0) }
    }

    /// Places of the objects of a type; `None` if they are not known.
    pub(super) fn slots(&self, walk: &Walk, id: u64) -> Option<Vec<Slot>> {
        self.looks.set(LOOKS_MAX);
        let known = walk.types.get(&id).filter(|known| !known.is_array)?;
        self.slots_of(*self.places.get(&id)?, &self.arguments(walk, known, 0), 0)
    }

    /// True if an object of a type can stand in a place. Unknown ones can.
    pub(super) fn fits(&self, walk: &Walk, wanted: Wanted, id: u64) -> bool {
        let Some(known) = walk.types.get(&id) else { return true };
        match wanted {
            Wanted::Any => true,
            Wanted::Text => known.name == TEXT,
            Wanted::Array => known.is_array,
            Wanted::Class(wanted) => {
                if self.assemblies[wanted.0 as usize].members[wanted.1 as usize].is_interface {
                    return true;
                }
                let name = self.name(wanted);
                if ANY.contains(&name) || known.is_array {
                    return ANY[0] == name || name == "System.Array" || !known.is_array;
                }
                let Some(&place) = self.places.get(&id) else { return true };
                self.is_heir(place, wanted)
            }
        }
    }

    /// Counts a look; `None` if there were too many.
    fn look(&self) -> Option<()> {
        self.looks.set(self.looks.get().checked_sub(1)?);
        Some(())
    }

    fn is_heir(&self, mut place: Place, wanted: Place) -> bool {
        for _ in 0..DEPTH_MAX {
            if place == wanted {
                return true;
            }
            match &self.assemblies[place.0 as usize].members[place.1 as usize].parent {
                Parent::None => return false,
                Parent::Unknown => return true,
                Parent::Class(named, _) => match self.place(place.0, *named) {
                    Some(above) => place = above,
                    None => return true,
                },
            }
        }
        true
    }

    fn name(&self, place: Place) -> &str {
        &self.assemblies[place.0 as usize].classes[place.1 as usize]
    }

    /// Class that a file names.
    fn place(&self, file: u32, named: Named) -> Option<Place> {
        let assembly = &self.assemblies[file as usize];
        let place = match named {
            Named::Here(class) => (file, class),
            Named::Elsewhere(row) => (*self.by_name.get(&**assembly.elsewhere.get(row as usize)?)?)?,
        };
        let is_one = (place.1 as usize) < self.assemblies[place.0 as usize].members.len();
        is_one.then_some(place)
    }

    /// Contents of fields of the types of a generic type's arguments.
    fn arguments(&self, walk: &Walk, known: &Type, depth: usize) -> Vec<Option<Contents>> {
        let of = |id: &u64| {
            self.look()?;
            let argument = walk.types.get(id)?;
            Some(match argument {
                argument if argument.is_primitive => Contents::Plain,
                argument if argument.is_array => Contents::Reference(Wanted::Array),
                argument if argument.name == TEXT => Contents::Reference(Wanted::Text),
                argument if argument.is_structure => {
                    let arguments = (depth < DEPTH_MAX).then(|| self.arguments(walk, argument, depth + 1))?;
                    Contents::Inside(self.slots_of(*self.places.get(id)?, &arguments, depth + 1)?)
                }
                _ => Contents::Reference(self.places.get(id).map_or(Wanted::Any, |&it| Wanted::Class(it))),
            })
        };
        known.parameters.iter().map(of).collect()
    }

    fn slots_of(&self, at: Place, arguments: &[Option<Contents>], depth: usize) -> Option<Vec<Slot>> {
        let members = self.assemblies[at.0 as usize].members.get(at.1 as usize)?;
        if depth > DEPTH_MAX || members.is_laid_out {
            return None;
        }
        let mut slots = match &members.parent {
            Parent::None => Vec::new(),
            Parent::Unknown => return None,
            Parent::Class(named, given) => {
                let given: Vec<_> =
                    given.iter().map(|shape| self.contents(at.0, shape, arguments, depth)).collect();
                self.slots_of(self.place(at.0, *named)?, &given, depth + 1)?
            }
        };
        let mut inside = Vec::new();
        for field in &members.fields {
            let name = readable_field(&field.name);
            match self.contents(at.0, field.shape.as_ref()?, arguments, depth)? {
                Contents::Plain => {}
                Contents::Reference(wanted) => slots.push(Slot { name: name.to_owned(), wanted }),
                Contents::Inside(parts) => inside.extend(
                    parts.into_iter().map(|part| Slot { name: format!("{name}.{}", part.name), ..part }),
                ),
            }
            if slots.len() + inside.len() > SLOTS_MAX {
                return None;
            }
        }
        slots.append(&mut inside);
        Some(slots)
    }

    fn contents(
        &self,
        file: u32,
        shape: &Shape,
        arguments: &[Option<Contents>],
        depth: usize,
    ) -> Option<Contents> {
        self.look()?;
        Some(match shape {
            Shape::Plain => Contents::Plain,
            Shape::Text => Contents::Reference(Wanted::Text),
            Shape::Array => Contents::Reference(Wanted::Array),
            Shape::Object(None) => Contents::Reference(Wanted::Any),
            Shape::Object(Some(named)) => {
                Contents::Reference(self.place(file, *named).map_or(Wanted::Any, Wanted::Class))
            }
            Shape::Argument(number) => arguments.get(*number as usize)?.clone()?,
            Shape::Structure(named, given) => {
                let given: Vec<_> =
                    given.iter().map(|shape| self.contents(file, shape, arguments, depth + 1)).collect();
                Contents::Inside(self.slots_of(self.place(file, *named)?, &given, depth + 1)?)
            }
        })
    }
}

/// True if a file has a class of a type's number and name.
fn has_class(assembly: &Assembly, known: &Type) -> bool {
    let Some(number) = known.number.checked_sub(1) else { return false };
    let outer = known.name.split('[').next().unwrap_or_default();
    assembly.members.len() == assembly.classes.len()
        && assembly.classes.get(number as usize).is_some_and(|name| {
            name == outer || name.strip_suffix(outer).is_some_and(|rest| rest.ends_with('+'))
        })
}

/// File of each module that the events name: the only one that has classes of all its types' names.
fn files(assemblies: &[Assembly], walk: &Walk) -> FxHashMap<u64, u32> {
    let mut types: FxHashMap<u64, Vec<&Type>> = FxHashMap::default();
    for known in walk.types.values().filter(|known| known.number > 0 && !known.is_array) {
        types.entry(known.module).or_default().push(known);
    }
    let only = |of_module: &[&Type]| {
        let mut fitting = (0..)
            .zip(assemblies)
            .filter(|(_, assembly)| of_module.iter().all(|known| has_class(assembly, known)));
        let (file, _) = fitting.next()?;
        fitting.next().is_none().then_some(file)
    };
    types.into_iter().filter_map(|(module, types)| Some((module, only(&types)?))).collect()
}

/// Name of a field as the source has it: of `<Lines>k__BackingField` and `<lines>5__2` the name in
/// brackets.
fn readable_field(name: &str) -> &str {
    match name.strip_prefix('<').and_then(|rest| rest.split_once('>')) {
        Some((inner, _)) if !inner.is_empty() => inner,
        _ => name,
    }
}

/// Names the references of an object: for each target, the number of its place. A place is told if
/// all orders in which the targets fit the places agree on it.
pub(super) fn places(
    slots: &[Slot],
    targets: &[u64],
    mut fits: impl FnMut(usize, u64) -> bool,
) -> Option<Vec<Option<usize>>> {
    if targets.len() > slots.len() {
        return None;
    }
    let mut first = Vec::with_capacity(targets.len());
    let mut at = 0;
    for &target in targets {
        at += (at..slots.len()).position(|slot| fits(slot, target))?;
        first.push(at);
        at += 1;
    }
    let mut end = slots.len();
    let mut found = vec![None; targets.len()];
    for (number, &target) in targets.iter().enumerate().rev() {
        end = (first[number]..end).rev().find(|&slot| fits(slot, target))?;
        found[number] = (end == first[number]).then_some(end);
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_is_named_if_all_orders_agree() {
        let slot = |name: &str, wanted| Slot { name: name.to_owned(), wanted };
        let slots = [
            slot("a", Wanted::Text),
            slot("b", Wanted::Any),
            slot("c", Wanted::Text),
            slot("d", Wanted::Array),
        ];
        // Types: 1 is a text, 2 an array.
        let fits = |at: usize, of: u64| match slots[at].wanted {
            Wanted::Text => of == 1,
            Wanted::Array => of == 2,
            _ => true,
        };
        let found = |targets: &[u64]| places(&slots, targets, fits);
        assert_eq!(found(&[1, 2, 1, 2]), Some(vec![Some(0), Some(1), Some(2), Some(3)]));
        assert_eq!(found(&[1, 1, 1]), Some(vec![Some(0), Some(1), Some(2)]));
        assert_eq!(found(&[1, 2]), Some(vec![None, None]));
        assert_eq!(found(&[2, 1]), Some(vec![Some(1), Some(2)]));
        assert_eq!(found(&[2, 1, 2]), Some(vec![Some(1), Some(2), Some(3)]));
        assert_eq!(found(&[2, 2, 1]), None);
        assert_eq!(found(&[1, 1, 1, 1, 2]), None);
    }

    #[test]
    fn names_are_those_of_the_source() {
        assert_eq!(readable_field("<Lines>k__BackingField"), "Lines");
        assert_eq!(readable_field("<lines>5__2"), "lines");
        assert_eq!(readable_field("<>4__this"), "<>4__this");
        assert_eq!(readable_field("_items"), "_items");
    }
}
