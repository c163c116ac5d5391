//! Objects that the runtime's events tell, while it walks its heap.

use rustc_hash::FxHashMap;

use super::stream::{Event, Values};
use crate::dump_error::{DumpError, Result};

/// Numbers of the runtime's events.
mod number {
    pub(super) const COLLECTION_START: u32 = 1;
    pub(super) const COLLECTION_END: u32 = 2;
    pub(super) const RESTARTED: u32 = 3;
    pub(super) const STOPPING: u32 = 9;
    pub(super) const TYPES: u32 = 15;
    pub(super) const ROOTS: u32 = 16;
    pub(super) const DEPENDENT: u32 = 17;
    pub(super) const NODES: u32 = 18;
    pub(super) const EDGES: u32 = 19;
    pub(super) const STATICS: u32 = 38;
}

/// Largest number of generic arguments that are kept.
const PARAMETERS_MAX: usize = 64;
/// Largest number of characters of a name.
const NAME_MAX: usize = 1024;

/// Type of objects.
#[derive(Debug, Clone, Default)]
pub(super) struct Type {
    pub(super) name: String,
    /// Number of the file that defines it; 0 if that is unknown.
    pub(super) module: u64,
    pub(super) is_array: bool,
    pub(super) is_delegate: bool,
    /// Number of the class in its file, from 1; 0 if that is unknown.
    pub(super) number: u32,
    /// True for structures.
    pub(super) is_structure: bool,
    /// Type of the items of an array, or types of the generic arguments.
    pub(super) parameters: Vec<u64>,
    /// Whether values of it have no references: numbers and such.
    pub(super) is_primitive: bool,
}

impl Type {
    /// Type of the items of an array; 0 of others.
    pub(super) fn item(&self) -> u64 {
        self.parameters.first().copied().filter(|_| self.is_array).unwrap_or(0)
    }
}

/// Reference from outside of the heap.
#[derive(Debug, Clone, Copy)]
pub(super) struct RootReference {
    pub(super) target: u64,
    pub(super) kind: u8,
    pub(super) flags: u32,
}

/// Static variable.
#[derive(Debug, Clone)]
pub(super) struct StaticVariable {
    /// Address of the variable.
    pub(super) place: u64,
    pub(super) target: u64,
    pub(super) name: String,
    /// Class that declares it, if that is known.
    pub(super) class: Option<String>,
}

/// All that the events tell.
#[derive(Debug, Default)]
pub(super) struct Walk {
    pub(super) addresses: Vec<u64>,
    pub(super) own_bytes: Vec<u64>,
    pub(super) type_ids: Vec<u64>,
    /// Number of edges of each object.
    pub(super) edge_counts: Vec<u32>,
    /// Addresses of the objects that are referred to, by object.
    pub(super) edges: Vec<u64>,
    pub(super) types: FxHashMap<u64, Type>,
    pub(super) roots: Vec<RootReference>,
    pub(super) statics: Vec<StaticVariable>,
    /// Objects that hold another one by a table: key, value.
    pub(super) dependent: Vec<(u64, u64)>,
    /// Time at which the threads were stopped, and at which they went on.
    pub(super) stopped_ns: Option<u64>,
    pub(super) pause_ns: Option<u64>,
    edge_sum: u64,
    /// Index of the next event of each kind: events that were lost leave a gap.
    next: [u32; 4],
    is_lossy: bool,
    is_full: bool,
    is_walked: bool,
}

impl Walk {
    /// Takes an event. Returns whether more are wanted.
    pub(super) fn event(&mut self, event: Event<'_>) -> Result<bool> {
        let mut values = Values::new(event.payload);
        match event.id {
            number::COLLECTION_START => {
                self.is_full = values.u32().zip(values.u32()).is_some_and(|(_, depth)| depth == 2);
            }
            number::COLLECTION_END => self.is_walked |= self.is_full && !self.addresses.is_empty(),
            // Another stop before the walk was for another collection.
            number::STOPPING if !self.is_walked => self.stopped_ns = Some(event.time_ns),
            number::RESTARTED if self.is_walked => {
                self.pause_ns = self.stopped_ns.map(|begin| event.time_ns.saturating_sub(begin));
                return Ok(false);
            }
            number::TYPES => {
                // A cut list leaves types without a name.
                let _ = self.types(&mut values);
            }
            number::STATICS => {
                let _ = self.statics(&mut values);
            }
            number::ROOTS | number::DEPENDENT | number::NODES | number::EDGES => {
                self.bulk(event.id, &mut values)?;
            }
            _ => {}
        }
        Ok(true)
    }

    /// Reads an event with many values of one size.
    fn bulk(&mut self, id: u32, values: &mut Values<'_>) -> Result<()> {
        let Some(((index, count), _clr)) = values.u32().zip(values.u32()).zip(values.u16()) else {
            self.is_lossy = true;
            return Ok(());
        };
        let next = &mut self.next[(id - number::ROOTS) as usize];
        self.is_lossy |= index != *next;
        *next = index.wrapping_add(1);
        for _ in 0..count {
            let read = match id {
                number::ROOTS => self.root(values),
                number::DEPENDENT => self.dependence(values),
                number::NODES => self.node(values),
                _ => values.u64().zip(values.u32()).map(|(target, _field)| self.edges.push(target)),
            };
            if read.is_none() {
                self.is_lossy = true;
                break;
            }
        }
        let is_many = |count: usize| count >= u32::MAX as usize / 2;
        if is_many(self.addresses.len()) || is_many(self.edges.len()) {
            return Err(DumpError::TooMany { what: "objects or references" });
        }
        Ok(())
    }

    fn node(&mut self, values: &mut Values<'_>) -> Option<()> {
        let (address, bytes, id, edges) = (values.u64()?, values.u64()?, values.u64()?, values.u64()?);
        self.addresses.push(address);
        self.own_bytes.push(bytes);
        self.type_ids.push(id);
        self.edge_counts.push(u32::try_from(edges).unwrap_or(u32::MAX));
        self.edge_sum = self.edge_sum.saturating_add(edges);
        Some(())
    }

    fn root(&mut self, values: &mut Values<'_>) -> Option<()> {
        let (target, kind, flags, _place) = (values.u64()?, values.u8()?, values.u32()?, values.u64()?);
        self.roots.push(RootReference { target, kind, flags });
        Some(())
    }

    fn dependence(&mut self, values: &mut Values<'_>) -> Option<()> {
        let (key, value, _place) = (values.u64()?, values.u64()?, values.u64()?);
        self.dependent.push((key, value));
        Some(())
    }

    fn types(&mut self, values: &mut Values<'_>) -> Option<()> {
        /// Flag of arrays.
        const ARRAY: u32 = 8;
        /// Flag of delegates, and of events with all of their handlers.
        const DELEGATE: u32 = 1;
        /// Element type of structures.
        const STRUCTURE: u8 = 0x11;
        /// Largest number of an element type of numbers, characters and truth values.
        const LAST_NUMBER: u8 = 0x0d;
        let (count, _clr) = (values.u32()?, values.u16()?);
        for _ in 0..count {
            let (id, module) = (values.u64()?, values.u64()?);
            let (token, flags, element) = (values.u32()?, values.u32()?, values.u8()?);
            let (name, parameter_count) = (values.text()?, values.u32()?);
            let mut parameters = Vec::new();
            for _ in 0..parameter_count {
                let id = values.u64()?;
                if parameters.len() < PARAMETERS_MAX {
                    parameters.push(id);
                }
            }
            let name = name.chars().take(NAME_MAX).collect();
            let is_array = flags & ARRAY != 0;
            let is_delegate = flags & DELEGATE != 0;
            let is_primitive = (2..=LAST_NUMBER).contains(&element) || matches!(element, 0x18 | 0x19);
            let (number, is_structure) = (token & 0xff_ffff, element == STRUCTURE);
            let told =
                Type { name, module, number, is_structure, is_array, is_delegate, parameters, is_primitive };
            self.types.insert(id, told);
        }
        Some(())
    }

    fn statics(&mut self, values: &mut Values<'_>) -> Option<()> {
        let (count, _domain, _clr) = (values.u32()?, values.u64()?, values.u16()?);
        for _ in 0..count {
            let (place, target) = (values.u64()?, values.u64()?);
            let (_type, _flags, name) = (values.u64()?, values.u32()?, values.text()?);
            let name = name.chars().take(NAME_MAX).collect();
            self.statics.push(StaticVariable { place, target, name, class: None });
        }
        Some(())
    }

    /// Checks that no event was lost.
    pub(super) fn check(&self) -> Result<()> {
        if self.addresses.is_empty() {
            return Err(DumpError::NoObjects);
        }
        if self.is_lossy || !self.is_walked || self.edge_sum != self.edges.len() as u64 {
            return Err(DumpError::Incomplete { objects: self.addresses.len() as u64 });
        }
        Ok(())
    }
}
