//! Names of objects.

use heapr_v8::NodeKind;

use super::kinds::Kind;
use super::objects::{Object, Objects};
use crate::dump_error::Result;

/// Largest number of superclasses that are passed on the way to a class with a name.
const SUPERCLASSES_MAX: usize = 64;

impl Objects {
    /// Name of the nearest class with a name, from an address of a class up. `None` without one.
    fn class_name(&self, address: u64) -> Option<String> {
        let mut at = address;
        for _ in 0..SUPERCLASSES_MAX {
            let facts = self.classes.get(&at)?;
            if facts.name != 0 && !facts.is_singleton {
                return Some(self.texts.strings.text(facts.name).into_owned());
            }
            at = facts.superclass;
        }
        None
    }

    /// Class of an object as it is shown.
    fn class_of(&self, object: Object) -> String {
        if let Some(name) = self.class_name(object.class) {
            return name;
        }
        match object.kind {
            Kind::Native if object.name != 0 => format!("native {}", self.texts.strings.text(object.name)),
            Kind::Native => "native".to_owned(),
            Kind::Text => "String".to_owned(),
            Kind::Collection => "internal collection".to_owned(),
            _ if object.class != 0 => "object of an unnamed class".to_owned(),
            _ => "internal object".to_owned(),
        }
    }

    /// Kind of node and number of the name of an object. Strings with characters are named by them.
    pub(super) fn node(&mut self, number: usize) -> Result<(NodeKind, u32)> {
        let object = self.all[number];
        let named = |objects: &Self, what: &str| match objects.classes.get(&object.address) {
            Some(facts) if facts.is_singleton => "singleton class".to_owned(),
            Some(facts) if facts.name != 0 => format!("{what} {}", objects.texts.strings.text(facts.name)),
            _ => format!("unnamed {what}"),
        };
        let (kind, name) = match object.kind {
            Kind::Text if self.with_texts => return Ok((NodeKind::STRING, object.name)),
            Kind::Class => (NodeKind::OBJECT, named(self, "class")),
            Kind::Module => (NodeKind::OBJECT, named(self, "module")),
            Kind::Included => (NodeKind::CODE, "included module".to_owned()),
            Kind::Internal => match &*self.texts.strings.text(object.name) {
                // Variables of blocks: what a Proc keeps is below.
                "env" => (NodeKind::ARRAY, "variables of a block".to_owned()),
                what => (NodeKind::CODE, format!("internal {what}")),
            },
            _ => (NodeKind::OBJECT, self.class_of(object)),
        };
        Ok((kind, self.texts.number(&name)?))
    }
}
