//! Classes of a dump: the layout of their instances, what their references mean, whose they are.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::buffers::BufferFields;
use super::census::Census;
use super::collections;
use super::records::Type;

/// Largest number of superclasses whose fields are known.
const SUPERCLASSES_MAX: usize = 128;
/// Largest number of fields of all classes together, each with those of its superclasses.
const FIELDS_MAX: usize = 1 << 24;

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
    /// Name, which classes of the same name share.
    pub(super) name: Arc<str>,
    /// References in the order of the record.
    pub(super) fields: Vec<Field>,
    /// Bytes of an instance's record; `usize::MAX` if the fields are not known.
    pub(super) record_bytes: usize,
    /// Number of references, and bytes of all other fields.
    pub(super) reference_count: u64,
    pub(super) plain_bytes: u64,
    /// Bytes of an instance, if the dump says it truly; 0 otherwise.
    pub(super) known_bytes: u32,
    pub(super) is_storage: bool,
    pub(super) is_collection: bool,
    /// Id of the loader that instances hold; 0 for loaders that are never unloaded.
    pub(super) held_loader: u64,
    /// True for classes of the program, or of a library that the runtime does not bring along.
    pub(super) is_of_the_program: bool,
    /// Position in the record of a string's `coder`.
    pub(super) coder: Option<usize>,
    pub(super) kind: ClassKind,
    /// Fields of a direct buffer.
    pub(super) buffer: Option<BufferFields>,
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
        let names = names_of_classes(census);
        let runtime_loaders = loaders_of_the_runtime(census, &names);
        let mut parents = Parents::new(census, &names);
        let mut fields_left = FIELDS_MAX;
        let mut found = Vec::with_capacity(names.len());
        for (number, record) in census.classes.iter().enumerate() {
            let chain = parents.chain(number);
            let mut class = Self {
                name: Arc::clone(&names[number]),
                fields: Vec::new(),
                record_bytes: 0,
                reference_count: 0,
                plain_bytes: 0,
                known_bytes: if has_true_sizes { record.instance_bytes } else { 0 },
                is_storage: collections::is_storage(&names[number]),
                is_collection: parents.is_collection(&chain),
                held_loader: if census.lasting_loaders.contains(&record.loader) { 0 } else { record.loader },
                is_of_the_program: !runtime_loaders.contains(&record.loader),
                coder: None,
                kind: match &*names[number] {
                    "java.lang.String" => ClassKind::String,
                    "java.lang.ThreadLocal$ThreadLocalMap$Entry" => ClassKind::ThreadLocalEntry,
                    _ => ClassKind::Other,
                },
                buffer: None,
            };
            let field_count: usize = chain.iter().map(|&at| census.classes[at].fields.len()).sum();
            match fields_left.checked_sub(field_count) {
                Some(left) => {
                    fields_left = left;
                    class.add_fields(&parents, &chain, id_bytes);
                }
                None => class.record_bytes = usize::MAX,
            }
            found.push(class);
        }
        found
    }

    /// Adds the fields of a class and its superclasses, in the order of the record.
    fn add_fields(&mut self, parents: &Parents<'_>, chain: &[usize], id_bytes: usize) {
        let (census, names) = (parents.census, parents.names);
        let reference = chain.iter().find_map(|&at| match &*names[at] {
            "java.lang.ref.SoftReference" => Some(Reference::Soft),
            "java.lang.ref.FinalReference" => Some(Reference::Final),
            "java.lang.ref.WeakReference" | "java.lang.ref.PhantomReference" => Some(Reference::Weak),
            _ => None,
        });
        let mut buffer = BufferFields::default();
        for &at in chain {
            buffer.class(&names[at]);
            let is_internal = self.is_storage || self.is_collection && parents.are_collections[at];
            for &(name, kind) in &census.classes[at].fields {
                let text = census.text(name);
                if self.kind == ClassKind::String && text == "coder" {
                    self.coder = Some(self.record_bytes);
                }
                buffer.field(&names[at], text, kind, self.record_bytes);
                if kind == Type::Object {
                    let role = role(&names[at], text, reference, is_internal);
                    self.fields.push(Field { offset: self.record_bytes, name, role });
                    self.reference_count += 1;
                } else {
                    self.plain_bytes += kind.bytes(id_bytes) as u64;
                }
                self.record_bytes += kind.bytes(id_bytes);
            }
        }
        self.buffer = buffer.of_direct();
    }
}

/// Meaning of a field. `is_internal`: fields of its class are the storage of a collection.
fn role(declared_by: &str, field: &str, reference: Option<Reference>, is_internal: bool) -> Role {
    match (declared_by, field) {
        ("java.lang.ref.Reference", "referent") => Role::Referent(reference.unwrap_or(Reference::Weak)),
        // (`next` is strong: a queue that nothing polls holds its references by it.)
        ("java.lang.ref.Reference", "discovered") => Role::Collectors,
        ("java.lang.String", "value") => Role::Characters,
        ("java.lang.Thread", "threadLocals" | "inheritableThreadLocals") => Role::Internal,
        _ if collections::leads_to_inner(declared_by, field) => Role::Inner,
        _ if is_internal => Role::Internal,
        _ => Role::Plain,
    }
}

/// Superclasses of all classes, and which of them are collections.
struct Parents<'a> {
    census: &'a Census,
    names: &'a [Arc<str>],
    /// Whether a class is a collection by its own name.
    are_collections: Vec<bool>,
    /// Whether subclasses of a class are collections.
    make_collections: Vec<bool>,
    /// Number of the class whose chain had a class last.
    last_chains: Vec<usize>,
}

impl<'a> Parents<'a> {
    fn new(census: &'a Census, names: &'a [Arc<str>]) -> Self {
        let of_all =
            |is_one: fn(&str) -> bool| -> Vec<bool> { names.iter().map(|name| is_one(name)).collect() };
        Self {
            census,
            names,
            are_collections: of_all(collections::is_collection),
            make_collections: of_all(collections::has_contents_of_subclasses),
            last_chains: vec![usize::MAX; names.len()],
        }
    }

    /// Indexes of a class and its superclasses, each once.
    fn chain(&mut self, number: usize) -> Vec<usize> {
        let classes = &self.census.classes;
        let mut chain = vec![number];
        self.last_chains[number] = number;
        let mut at = classes[number].super_id;
        while let Some(&next) = self.census.class_of_id.get(&at) {
            let next = next as usize;
            if chain.len() > SUPERCLASSES_MAX || self.last_chains[next] == number {
                break;
            }
            self.last_chains[next] = number;
            chain.push(next);
            at = classes[next].super_id;
        }
        chain
    }

    /// Whether the first class of a chain is a collection, by its name or as a subclass of one.
    fn is_collection(&self, chain: &[usize]) -> bool {
        let Some((&own, superclasses)) = chain.split_first() else { return false };
        let name = &*self.names[own];
        self.are_collections[own]
            || superclasses.iter().any(|&at| self.make_collections[at])
                && !collections::is_storage(name)
                && !collections::is_view(name)
    }
}

/// Readable names of all classes. Classes of the same name share it.
fn names_of_classes(census: &Census) -> Vec<Arc<str>> {
    let mut known: FxHashMap<u64, Arc<str>> = FxHashMap::default();
    let name_of = |class: u64| -> Arc<str> {
        let new = || -> Arc<str> { census.class_name(class).into() };
        match census.name_of_class(class) {
            Some(name) => Arc::clone(known.entry(name).or_insert_with(new)),
            None => new(),
        }
    };
    census.classes.iter().map(|class| class.id).map(name_of).collect()
}

/// Loaders whose classes come with the runtime: none, and those that loaded nothing but the JDK's.
fn loaders_of_the_runtime(census: &Census, names: &[Arc<str>]) -> FxHashSet<u64> {
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
