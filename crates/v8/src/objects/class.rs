//! A class of objects.

/// Script, line and column, the latter two from 0.
pub type ConstructorPlace = (u32, u32, u32);

/// A class: a name, and for constructors of the same name the place that tells them apart.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Class {
    /// Script, line and column of the constructor (from 0).
    pub location: Option<ConstructorPlace>,
    /// As DevTools shows it, WTF-8.
    pub name: Vec<u8>,
}

impl Class {
    /// The name to show.
    pub fn name_text(&self) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(&self.name)
    }

    /// DevTools' key of the class, the same in each snapshot of a process.
    pub fn key(&self) -> String {
        match self.location {
            Some((script_id, line, column)) => format!("{script_id},{line},{column},{}", self.name_text()),
            None => format!(",{}", self.name_text()),
        }
    }
}
