//! Runtimes of a process, and the owners of its memory without a name.
//!
//! A runtime is recognised by a mapped file, and its memory by address and kind of mapping. The
//! rest belongs to the owner that takes memory in no recognisable form, if the process has one.

use heapr_known::go;
use heapr_known::runtimes::{self, Runtime};
use heapr_proc::Mapping;
use heapr_proc::smaps::MappingPages;

use crate::claims::Claims;
use crate::class::{Class, ToldBy};
use crate::code_files::whole;
use crate::foreign::ForeignHeap;
use crate::subject::{Subject, file_name};

/// Beginning of the names by which Go's runtime tells the kernel what it maps.
pub(crate) const GO_NAME: &str = "[anon: Go:";

/// Runtimes of a process.
pub(crate) fn runtimes(subject: &Subject) -> Vec<Runtime> {
    let code = subject.mappings.iter().map(|found| &found.mapping);
    let code: Vec<&str> = code
        .filter(|mapping| mapping.is_executable && mapping.inode != 0)
        .map(|mapping| file_name(&mapping.name))
        .chain([file_name(&subject.executable)])
        .collect();
    let mut found = Vec::new();
    for row in code.iter().filter_map(|file| runtimes::of_file(file)) {
        if !found.contains(&row.runtime) {
            found.push(row.runtime);
        }
    }
    if subject.has_go || subject.mappings.iter().any(|found| shows_go(&found.mapping)) {
        found.push(Runtime::Go);
    }
    found
}

/// Whether a mapping alone shows that the program is Go's: the first arena up to Go 1.25, or a name
/// by Go's runtime.
fn shows_go(mapping: &Mapping) -> bool {
    mapping.start_avma == go::ARENAS_AVMA.start && crate::is_private_anonymous(mapping)
        || mapping.name.starts_with(GO_NAME)
}

/// Claims Go's arenas: at their addresses, or as of Go 1.26 at any multiple of their size. An arena
/// may be several mappings side by side, as the runtime forbids huge pages in parts of it.
pub(crate) fn claim_go(subject: &Subject, runtimes: &[Runtime], claims: &mut Claims) {
    if !runtimes.contains(&Runtime::Go) {
        return;
    }
    let mut arenas = Vec::new();
    // End of the mappings of an arena so far.
    let mut arena_end_avma = 0;
    for mapping in subject.mappings.iter().map(|found| &found.mapping) {
        let start_avma = mapping.start_avma;
        let is_in_place = go::ARENAS_AVMA.contains(&start_avma);
        let begins = subject.has_go && start_avma.is_multiple_of(go::ARENA_BYTES);
        let is_arena = is_in_place || begins || start_avma == arena_end_avma;
        let is_anonymous = mapping.inode == 0 && !mapping.is_shared;
        let may_be_gos = mapping.name.is_empty() || mapping.name.starts_with(GO_NAME);
        if is_arena && is_anonymous && may_be_gos && claims.is_free(mapping) {
            arena_end_avma = mapping.end_avma;
            arenas.push(whole(mapping, Class::GoHeap, "arenas", ToldBy::Place));
        }
    }
    claims.add_many(arenas);
}

/// Claims memory of runtimes that is recognised by its address.
pub(crate) fn claim_by_place(subject: &Subject, runtimes: &[Runtime], claims: &mut Claims) {
    let mut found = Vec::new();
    for MappingPages { mapping, .. } in &subject.mappings {
        if !claims.is_free(mapping) {
            continue;
        }
        let is_anonymous = mapping.inode == 0 && !mapping.is_shared && mapping.name.is_empty();
        let claim = if runtimes.contains(&Runtime::Jvm) && is_anonymous {
            jvm_part(mapping)
        } else if runtimes.iter().any(|runtime| runtime.is_v8()) && is_anonymous {
            v8_part(mapping)
        } else {
            None
        };
        found.extend(claim.map(|(class, part)| whole(mapping, class, part, ToldBy::Place)));
    }
    claims.add_many(found);
}

/// Part of a JVM, by address. With compressed pointers the object heap lies below 32 GiB, and the
/// classes above it.
fn jvm_part(mapping: &Mapping) -> Option<(Class, &'static str)> {
    const HEAP_END_AVMA: u64 = 0x8_0000_0000;
    const CLASSES_END_AVMA: u64 = 0x8_8000_0000;
    match mapping.start_avma {
        _ if mapping.is_executable => Some((Class::JvmOther, "compiled code")),
        avma if avma < HEAP_END_AVMA => Some((Class::JvmHeap, "objects")),
        avma if avma < CLASSES_END_AVMA => Some((Class::JvmOther, "classes")),
        _ => None,
    }
}

/// Part of V8, by address: V8's pages begin at multiples of 256 KiB, which other memory of the
/// process does not request.
fn v8_part(mapping: &Mapping) -> Option<(Class, &'static str)> {
    const V8_PAGE_BYTES: u64 = 256 << 10;
    if mapping.is_executable {
        return Some((Class::V8Heap, "compiled code"));
    }
    mapping.start_avma.is_multiple_of(V8_PAGE_BYTES).then_some((Class::V8Heap, "pages"))
}

/// Owner of anonymous memory that is not explained otherwise.
pub(crate) fn owner_of_rest(
    subject: &Subject,
    runtimes: &[Runtime],
    foreign: &[ForeignHeap],
) -> Option<(Class, String)> {
    if let Some(allocator) = &subject.allocator {
        // Memory outside of all known parts of a heap is the allocator's own: descriptions, page
        // maps.
        let named = foreign.iter().find(|heap| allocator.contains(heap.allocator));
        if let Some(heap) = named.or(foreign.first()) {
            return Some((Class::AllocatorSlack, format!("{}: its own", heap.allocator)));
        }
        return Some((Class::OtherAllocator, allocator.clone()));
    }
    let has = |runtime| runtimes.contains(&runtime);
    if has(Runtime::Jvm) {
        return Some((Class::JvmOther, "metaspace and tables".to_owned()));
    }
    if has(Runtime::Go) {
        return Some((Class::GoRuntime, "tables".to_owned()));
    }
    let has_v8 = runtimes.iter().any(|runtime| runtime.is_v8());
    has_v8.then(|| (Class::V8Heap, "other".to_owned()))
}
