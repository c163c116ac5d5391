//! Reasons for which a heap dump of a runtime cannot be read.

/// Reason for which a heap dump of Java, Ruby or .NET cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DumpError {
    /// Reading failed.
    #[error("it cannot be read at offset {offset}: {source}")]
    Io {
        /// Offset in the unpacked file, in bytes.
        offset: u64,
        /// Cause.
        source: std::io::Error,
    },
    /// The file ends inside of something that must be whole.
    #[error("it ends at offset {offset}, inside of a record")]
    Ends {
        /// Offset of the end, in bytes.
        offset: u64,
    },
    /// Another beginning than that of a heap dump.
    #[error("it does not begin as a heap dump of Java does (\"JAVA PROFILE 1.0\")")]
    NotHprof,
    /// Another beginning than that of a dump of `ObjectSpace`.
    #[error("it does not begin as a heap dump of Ruby does (a line of ObjectSpace.dump_all)")]
    NotRuby,
    /// Another beginning than that of a stream of events of .NET.
    #[error("it does not begin as events of .NET do (\"Nettrace\")")]
    NotNettrace,
    /// Another beginning than that of a `.gcdump`.
    #[error("it does not begin as a heap dump of .NET does (\"GCHeapDump\")")]
    NotGcdump,
    /// Events that are missing.
    #[error("events were lost, or the runtime ended: {objects} objects came, which are not all")]
    Incomplete {
        /// Number of objects that came.
        objects: u64,
    },
    /// Line that is longer than any object's.
    #[error("it has a line of more than {limit_bytes} bytes at offset {offset}: it is damaged")]
    LongLine {
        /// Offset of the line, in bytes.
        offset: u64,
        /// Largest length that is read.
        limit_bytes: usize,
    },
    /// Ids that are no addresses of 4 or 8 bytes.
    #[error("its ids have {id_bytes} bytes, and only 4 and 8 are known")]
    IdBytes {
        /// Bytes of an id.
        id_bytes: u32,
    },
    /// Events of a runtime with addresses of another size.
    #[error("its runtime has addresses of {address_bytes} bytes, and only those of 8 are read")]
    AddressBytes {
        /// Bytes of an address.
        address_bytes: u32,
    },
    /// Part of a heap dump of unknown kind, whose length is unknown, too.
    #[error("it has an unknown part (tag {tag:#04x}) at offset {offset}: it is damaged, or of a newer kind")]
    UnknownPart {
        /// Tag.
        tag: u8,
        /// Offset of the tag, in bytes.
        offset: u64,
    },
    /// Value of a type that does not exist.
    #[error("it has a value of unknown type {kind} at offset {offset}: it is damaged")]
    UnknownType {
        /// Number of the type.
        kind: u8,
        /// Offset behind the number, in bytes.
        offset: u64,
    },
    /// Part that is longer than the record that it is in.
    #[error("a part that ends at offset {offset} is longer than its record: it is damaged")]
    Overrun {
        /// Offset of the part's end, in bytes.
        offset: u64,
    },
    /// Fields of one object that are longer than any class allows.
    #[error("it has an object with {bytes} bytes of fields at offset {offset}, more than a class can have")]
    TooLong {
        /// Bytes of the fields.
        bytes: u64,
        /// Offset of the fields, in bytes.
        offset: u64,
    },
    /// More of something than can be numbered.
    #[error("it has more {what} than can be numbered")]
    TooMany {
        /// Things in the plural.
        what: &'static str,
    },
    /// No objects at all.
    #[error("it has no objects")]
    NoObjects,
    /// The graph cannot be true.
    #[error(transparent)]
    Graph(#[from] heapr_v8::Error),
}

impl DumpError {
    /// Offset in the unpacked file, in bytes, if the reason has one.
    #[must_use]
    pub fn offset(&self) -> Option<u64> {
        match *self {
            Self::Io { offset, .. }
            | Self::Ends { offset }
            | Self::UnknownPart { offset, .. }
            | Self::UnknownType { offset, .. }
            | Self::Overrun { offset }
            | Self::LongLine { offset, .. }
            | Self::TooLong { offset, .. } => Some(offset),
            _ => None,
        }
    }
}

/// Result of reading a heap dump.
pub(crate) type Result<T> = std::result::Result<T, DumpError>;

/// Fills a buffer with the next bytes of a dump, and moves the offset behind them.
pub(crate) fn fill(reader: &mut impl std::io::Read, offset: &mut u64, bytes: &mut [u8]) -> Result<()> {
    reader.read_exact(bytes).map_err(|source| match source.kind() {
        std::io::ErrorKind::UnexpectedEof => DumpError::Ends { offset: *offset },
        _ => DumpError::Io { offset: *offset, source },
    })?;
    *offset += bytes.len() as u64;
    Ok(())
}
