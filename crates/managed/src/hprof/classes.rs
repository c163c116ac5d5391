//! Classes of a dump: the layout of their instances, what their references mean, whose they are.

use rustc_hash::{FxHashMap, FxHashSet};

use super::census::Census;
use super::collections;
use super::records::Type;

/// Largest number of superclasses; more form a circle.
const SUPERCLASSES_MAX: usize = 1 << 10;

/// Way in which an object of `java.lang.ref` refers to its referent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reference {
    Soft,
    /// Weak and phantom ones, which hold nothing.
    Weak,
    /// References of the runtime to objects that wait for their finalizer.
    Final,
}

/// A field of an instance that refers to an object.
#[derive(Debug, Clone, Copy)]
pub(super) struct Field {
    /// Offset of the value in the record, in bytes.
    pub(super) offset: usize,
    /// Id of the name.
    pub(super) name: u64,
    pub(super) role: Role,
}

/// Meaning of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// An attribute.
    Plain,
    /// A field of a collection, or of a part of one.
    Internal,
    /// A field of a collection that leads to the collection with its contents.
    Inner,
    /// The object that a reference of `java.lang.ref` is made for.
    Referent(Reference),
    /// A field that only the collector uses.
    Collectors,
    /// Characters of a string.
    Characters,
}

/// A class.
#[derive(Debug)]
pub(super) struct Class {
    pub(super) name: String,
    /// References in the order of the record.
    pub(super) fields: Vec<Field>,
    /// Bytes of an instance's record.
    pub(super) record_bytes: usize,
    /// Number of references, and bytes of all other fields.
    pub(super) reference_count: u64,
    pub(super) plain_bytes: u64,
    /// Bytes of an instance, if the dump says it truly; 0 otherwise.
    pub(super) known_bytes: u32,
    pub(super) is_storage: bool,
    pub(super) is_collection: bool,
    /// Whether instances keep their class, and so its loader.
    pub(super) keeps_loader: bool,
    /// True for classes of the program, or of a library that the runtime does not bring along.
    pub(super) is_of_the_program: bool,
    /// Position in the record of a string's `coder`.
    pub(super) coder: Option<usize>,
    pub(super) kind: ClassKind,
}

/// Classes of which more is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ClassKind {
    Other,
    String,
    /// An entry of a thread's map of thread-local values.
    ThreadLocalEntry,
}

impl Class {
    /// True for classes of arrays of objects.
    pub(super) fn is_array(&self) -> bool {
        self.name.ends_with("[]")
    }

    /// Describes all classes of a dump.
    pub(super) fn all(census: &Census, id_bytes: usize, has_true_sizes: bool) -> Vec<Self> {
        let names: Vec<String> = census.classes.iter().map(|class| census.class_name(class.id)).collect();
        let runtime_loaders = loaders_of_the_runtime(census, &names);
        let mut found = Vec::with_capacity(names.len());
        for (number, record) in census.classes.iter().enumerate() {
            let mut class = Self {
                name: names[number].clone(),
                fields: Vec::new(),
                record_bytes: 0,
                reference_count: 0,
                plain_bytes: 0,
                known_bytes: if has_true_sizes { record.instance_bytes } else { 0 },
                is_storage: collections::is_storage(&names[number]),
                is_collection: collections::is_collection(&names[number]),
                keeps_loader: record.loader != 0,
                is_of_the_program: !runtime_loaders.contains(&record.loader),
                coder: None,
                kind: match names[number].as_str() {
                    "java.lang.String" => ClassKind::String,
                    "java.lang.ThreadLocal$ThreadLocalMap$Entry" => ClassKind::ThreadLocalEntry,
                    _ => ClassKind::Other,
                },
            };
            class.add_fields(census, &names, number, id_bytes);
            found.push(class);
        }
        found
    }

    /// Adds the fields of a class and its superclasses, in the order of the record.
    fn add_fields(&mut self, census: &Census, names: &[String], number: usize, id_bytes: usize) {
        let chain = chain(census, number);
        let reference = chain.iter().find_map(|&at| match names[at].as_str() {
            "java.lang.ref.SoftReference" => Some(Reference::Soft),
            "java.lang.ref.FinalReference" => Some(Reference::Final),
            "java.lang.ref.WeakReference" | "java.lang.ref.PhantomReference" => Some(Reference::Weak),
            _ => None,
        });
        for &at in &chain {
            for &(name, kind) in &census.classes[at].fields {
                let text = census.text(name);
                if self.kind == ClassKind::String && text == "coder" {
                    self.coder = Some(self.record_bytes);
                }
                if kind == Type::Object {
                    let role = self.role(&names[at], text, reference);
                    self.fields.push(Field { offset: self.record_bytes, name, role });
                    self.reference_count += 1;
                } else {
                    self.plain_bytes += kind.bytes(id_bytes) as u64;
                }
                self.record_bytes += kind.bytes(id_bytes);
            }
        }
    }

    fn role(&self, declared_by: &str, field: &str, reference: Option<Reference>) -> Role {
        match (declared_by, field) {
            ("java.lang.ref.Reference", "referent") => Role::Referent(reference.unwrap_or(Reference::Weak)),
            ("java.lang.ref.Reference", "discovered" | "next") => Role::Collectors,
            ("java.lang.String", "value") => Role::Characters,
            ("java.lang.Thread", "threadLocals" | "inheritableThreadLocals") => Role::Internal,
            _ if collections::leads_to_inner(declared_by, field) => Role::Inner,
            _ if self.is_storage || self.is_collection && collections::is_collection(declared_by) => {
                Role::Internal
            }
            _ => Role::Plain,
        }
    }
}

/// Indexes of a class and its superclasses.
fn chain(census: &Census, number: usize) -> Vec<usize> {
    let mut chain = vec![number];
    let mut at = census.classes[number].super_id;
    while let Some(&next) = census.class_of_id.get(&at) {
        if chain.len() >= SUPERCLASSES_MAX || chain.contains(&(next as usize)) {
            break;
        }
        chain.push(next as usize);
        at = census.classes[next as usize].super_id;
    }
    chain
}

/// Loaders whose classes come with the runtime: none, and those that loaded nothing but the JDK's.
fn loaders_of_the_runtime(census: &Census, names: &[String]) -> FxHashSet<u64> {
    let mut of_the_jdk_alone: FxHashMap<u64, bool> = FxHashMap::default();
    for (class, name) in census.classes.iter().zip(names) {
        *of_the_jdk_alone.entry(class.loader).or_insert(true) &= is_of_the_jdk(name);
    }
    let alone = of_the_jdk_alone.into_iter().filter(|&(_, is_alone)| is_alone);
    alone.map(|(loader, _)| loader).chain([0]).collect()
}

/// Whether a class is of a package of the JDK.
fn is_of_the_jdk(name: &str) -> bool {
    ["java.", "javax.", "jdk.", "sun.", "com.sun.", "org.jcp.", "netscape.javascript"]
        .iter()
        .any(|package| name.starts_with(package))
}
