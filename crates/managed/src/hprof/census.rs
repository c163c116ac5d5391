//! First reading of a dump: names, classes, ids of all objects, roots.

use rustc_hash::FxHashMap;

use super::lasting_loaders::is_lasting;
use super::names::readable;
use super::records::{ArrayRecord, ClassRecord, FrameRecord, RootRecord, Visitor};
use crate::dump_error::{DumpError, Result};
use crate::id_map::IdMap;

/// Largest number of classes of loaders that are never unloaded, and of these loaders. A virtual
/// machine has one of each class.
const LASTING_MAX: usize = 8;
/// Largest number of objects.
const OBJECTS_MAX: usize = u32::MAX as usize / 2;

/// A record of objects.
#[derive(Debug, Clone, Copy)]
pub(super) struct Segment {
    /// Offset in the dump.
    pub(super) offset: u64,
    /// Number of the first object in it.
    pub(super) first_object: u32,
}

/// Facts of a dump that are needed before its references can be read.
#[derive(Debug)]
pub(super) struct Census {
    /// Texts by the ids of their records.
    names: FxHashMap<u64, Box<str>>,
    /// Id of a class's name by the class's id, and class id by serial number.
    class_names: FxHashMap<u64, u64>,
    serials: FxHashMap<u32, u64>,
    pub(super) frames: FxHashMap<u64, FrameRecord>,
    /// Frames by the serial number of the trace.
    pub(super) traces: FxHashMap<u32, Vec<u64>>,
    pub(super) classes: Vec<ClassRecord>,
    /// Index of a class by its id.
    pub(super) class_of_id: FxHashMap<u64, u32>,
    pub(super) roots: Vec<RootRecord>,
    /// Ids of the classes of loaders that a virtual machine never unloads.
    lasting_classes: Vec<u64>,
    /// Ids of the loaders that a virtual machine never unloads.
    pub(super) lasting_loaders: Vec<u64>,
    /// Ids of all objects in the order of the dump, which is the order of their numbers.
    pub(super) ids: Vec<u64>,
    pub(super) map: IdMap,
    /// Number of objects that the dump has twice.
    pub(super) repeated_count: u64,
    /// Number of items of all arrays of objects.
    pub(super) item_count: u64,
    /// Records of objects in the order of the dump.
    pub(super) segments: Vec<Segment>,
    /// Whether the segments' numbers are right.
    has_exact_segments: bool,
    has_instances: bool,
    id_bytes: usize,
}

impl Census {
    pub(super) fn new() -> Self {
        Self {
            names: FxHashMap::default(),
            class_names: FxHashMap::default(),
            serials: FxHashMap::default(),
            frames: FxHashMap::default(),
            traces: FxHashMap::default(),
            classes: Vec::new(),
            class_of_id: FxHashMap::default(),
            roots: Vec::new(),
            lasting_classes: Vec::new(),
            lasting_loaders: Vec::new(),
            ids: Vec::new(),
            map: IdMap::new(),
            repeated_count: 0,
            item_count: 0,
            segments: Vec::new(),
            has_exact_segments: true,
            has_instances: false,
            id_bytes: 8,
        }
    }

    /// Whether an instance was met. HotSpot describes all classes before the first one.
    pub(super) fn has_instances(&self) -> bool {
        self.has_instances
    }

    /// Records of objects, with the end of each, that have the objects of some numbers, which
    /// ascend. `None` if this is not known.
    pub(super) fn segments_of(&self, objects: impl Iterator<Item = u32>) -> Option<Vec<(Segment, u64)>> {
        let mut found: Vec<(Segment, u64)> = Vec::new();
        for object in objects {
            let behind = self.segments.partition_point(|segment| segment.first_object <= object);
            let segment = *self.segments.get(behind.checked_sub(1)?)?;
            if found.last().is_none_or(|(last, _)| last.offset != segment.offset) {
                found.push((segment, self.segments.get(behind).map_or(u64::MAX, |next| next.offset)));
            }
        }
        self.has_exact_segments.then_some(found)
    }

    /// Facts of a later part of the dump, which is read at the same time.
    pub(super) fn of_later_part(&self) -> Self {
        Self { lasting_classes: self.lasting_classes.clone(), ..Self::new() }
    }

    /// Adds the facts of the next part.
    pub(super) fn append(&mut self, next: Self) -> Result<()> {
        self.names.extend(next.names);
        self.class_names.extend(next.class_names);
        self.serials.extend(next.serials);
        self.frames.extend(next.frames);
        self.traces.extend(next.traces);
        self.roots.extend(next.roots);
        self.repeated_count += next.repeated_count;
        self.item_count += next.item_count;
        let room = LASTING_MAX.saturating_sub(self.lasting_loaders.len());
        self.lasting_loaders.extend(next.lasting_loaders.iter().take(room));
        let first = self.ids.len() as u32;
        self.segments.extend(
            next.segments
                .iter()
                .map(|segment| Segment { first_object: first + segment.first_object, ..*segment }),
        );
        if self.map.unite(&next.map) {
            if self.ids.len() + next.ids.len() > OBJECTS_MAX {
                return Err(DumpError::TooMany { what: "objects" });
            }
            self.ids.extend_from_slice(&next.ids);
        } else {
            // What is repeated has no number, and those behind it have smaller ones.
            self.has_exact_segments = false;
            for &id in &next.ids {
                self.object(id)?;
            }
        }
        for class in next.classes {
            let number = self.classes.len() as u32;
            if let std::collections::hash_map::Entry::Vacant(slot) = self.class_of_id.entry(class.id) {
                slot.insert(number);
                self.classes.push(class);
            }
        }
        Ok(())
    }

    /// Bytes of an id in the dump.
    pub(super) fn id_bytes(&self) -> usize {
        self.id_bytes
    }

    /// Ends the reading of a dump whose ids have so many bytes.
    pub(super) fn finish(&mut self, id_bytes: usize) {
        self.id_bytes = id_bytes;
        self.map.finish(&self.ids);
    }

    /// Text of a name; empty if the dump lacks it.
    pub(super) fn text(&self, id: u64) -> &str {
        self.names.get(&id).map_or("", |text| text)
    }

    /// Id of the name of a class, if the dump has a text for it.
    pub(super) fn name_of_class(&self, class: u64) -> Option<u64> {
        self.class_names.get(&class).copied().filter(|&name| !self.text(name).is_empty())
    }

    /// Readable name of a class by its id.
    pub(super) fn class_name(&self, class: u64) -> String {
        match self.class_names.get(&class).map(|&name| self.text(name)) {
            None | Some("") => format!("(class {class:#x})"),
            Some(name) => readable(name),
        }
    }

    /// Readable name of a class by its serial number.
    pub(super) fn class_name_of_serial(&self, serial: u32) -> Option<String> {
        self.serials.get(&serial).map(|&class| self.class_name(class))
    }

    fn object(&mut self, id: u64) -> Result<()> {
        if !self.map.insert(id) {
            self.repeated_count += 1;
            return Ok(());
        }
        if self.ids.len() >= OBJECTS_MAX {
            return Err(DumpError::TooMany { what: "objects" });
        }
        self.ids.push(id);
        Ok(())
    }
}

impl Visitor for Census {
    fn name(&mut self, id: u64, text: &[u8]) {
        self.names.insert(id, String::from_utf8_lossy(text).into());
    }

    fn loaded(&mut self, serial: u32, class: u64, name: u64) {
        self.class_names.insert(class, name);
        self.serials.insert(serial, class);
    }

    fn frame(&mut self, id: u64, frame: FrameRecord) {
        self.frames.insert(id, frame);
    }

    fn trace(&mut self, serial: u32, _thread: u32, frames: Vec<u64>) {
        self.traces.insert(serial, frames);
    }

    fn root(&mut self, root: RootRecord) {
        self.roots.push(root);
    }

    fn segment(&mut self, offset: u64) {
        self.segments.push(Segment { offset, first_object: self.ids.len() as u32 });
    }

    fn class(&mut self, class: ClassRecord) -> Result<()> {
        let next = self.classes.len() as u32;
        if let std::collections::hash_map::Entry::Vacant(slot) = self.class_of_id.entry(class.id) {
            slot.insert(next);
            self.object(class.id)?;
            if is_lasting(&self.class_name(class.id)) && self.lasting_classes.len() < LASTING_MAX {
                self.lasting_classes.push(class.id);
            }
            self.classes.push(class);
        }
        Ok(())
    }

    fn instance(&mut self, id: u64, class: u64, _values: &[u8]) -> Result<()> {
        self.has_instances = true;
        if self.lasting_classes.contains(&class) && self.lasting_loaders.len() < LASTING_MAX {
            self.lasting_loaders.push(id);
        }
        self.object(id)
    }

    fn array(&mut self, array: ArrayRecord) -> Result<u64> {
        if array.class != 0 {
            self.item_count += u64::from(array.count);
        }
        self.object(array.id)?;
        Ok(0)
    }
}
