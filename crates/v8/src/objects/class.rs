//! Class of objects.

/// Script, line and column, the latter two from 0.
pub type ConstructorPlace = (u32, u32, u32);

/// Class: a name, and the location that distinguishes constructors of the same name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Class {
    /// Location of the constructor.
    pub location: Option<ConstructorPlace>,
    /// Name that DevTools shows, WTF-8.
    pub name: Vec<u8>,
}

impl Class {
    /// Name as a `str`, invalid parts replaced.
    pub fn name_text(&self) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(&self.name)
    }

    /// DevTools' key of the class, equal in each snapshot of a process.
    pub fn key(&self) -> String {
        match self.location {
            Some((script_id, line, column)) => format!("{script_id},{line},{column},{}", self.name_text()),
            None => format!(",{}", self.name_text()),
        }
    }
}
