//! Heaps of Java from heap dumps (hprof): those of HotSpot, and those of Android's runtime.
//!
//! ```text
//!  1st reading   names, classes, ids of all objects, roots      -> Census
//!  2nd reading   references with their names                    -> Objects
//!  3rd reading   characters of strings, as far as wanted
//!  then          sizes, names of thread-local values, rows of roots -> Snapshot
//! ```
//! The dump is read in order, in pieces of 1 MiB: it may be packed, and larger than the memory.
//! Threads share the first two readings where the dump can be opened at any offset (`parts`).

mod buffers;
mod census;
mod classes;
mod collections;
mod graph;
mod input;
mod lasting_loaders;
mod loaders;
mod names;
mod parts;
mod reach;
mod records;
mod rows;
mod sizes;
mod snapshot;
mod texts;
mod thread_locals;

use heapr_v8::EdgeKind;
use rustc_hash::FxHashSet;

use crate::dump_error::DumpError;
use crate::dumped_heap::DumpedHeap;
use crate::request::Contents;
use census::Census;
use classes::Class;
use graph::Objects;
use parts::{Division, open_at};
use records::BEGINNING;

pub use parts::OpenDump;

/// Number of bytes from which a heap dump of Java is recognised.
pub const HPROF_BEGINNING_BYTES: usize = BEGINNING.len();

/// Whether an unpacked file that begins so is a heap dump of Java.
#[must_use]
pub fn is_hprof(beginning: &[u8]) -> bool {
    beginning.starts_with(BEGINNING)
}

/// Reads a heap dump. `open` opens the unpacked dump, several times. Threads divide a dump that can
/// be opened at any offset.
///
/// # Errors
/// A dump that cannot be read, with the offset.
pub fn read_hprof(open: &OpenDump<'_>, contents: Contents) -> std::result::Result<DumpedHeap, DumpError> {
    read_divided(open, contents, Division::of_machine())
}

fn read_divided(
    open: &OpenDump<'_>,
    contents: Contents,
    division: Division,
) -> std::result::Result<DumpedHeap, DumpError> {
    let (mut census, walked, parts) = parts::census(open, division)?;
    if census.ids.is_empty() {
        return Err(DumpError::NoObjects);
    }
    census.finish(walked.id_bytes);
    let is_of_android = walked.version.ends_with("1.0.3");
    let classes = Class::all(&census, walked.id_bytes, is_of_android);
    let mut objects = parts::objects(open, &census, &classes, &walked, &parts)?;
    thread_locals::name_values(&census, &mut objects)?;
    let threads = rows::threads(&census);
    let strings_of_threads = rows::names_of_threads(&objects, &threads);
    let mut texts_of_nodes = None;
    let loaders = loaders::of_the_program(&census, &classes);
    let strings_of_loaders = loaders::strings_of_names(&objects, &loaders);
    let names_of_loaders = strings_of_loaders.values().flatten();
    let only: FxHashSet<u32> = strings_of_threads.values().chain(names_of_loaders).copied().collect();
    let told_texts = if contents == Contents::Strings {
        let mut numbers = vec![0; objects.class_of.len()];
        let mut found = rustc_hash::FxHashMap::default();
        let characters = std::mem::take(&mut objects.characters);
        let mut known = snapshot::TextNumbers::default();
        texts::read(open_at(open, 0)?, &census, &characters, |string, text| {
            if only.contains(&string) {
                found.insert(string, text.to_owned());
            }
            numbers[string as usize] = known.number(&mut objects.strings, text)?;
            Ok(())
        })?;
        texts_of_nodes = Some(numbers);
        found
    } else if only.is_empty() {
        rustc_hash::FxHashMap::default()
    } else {
        texts::of_some(open, &census, &objects.characters, &only)?
    };
    let names = strings_of_threads
        .into_iter()
        .filter_map(|(thread, string)| Some((thread, told_texts.get(&string)?.clone())))
        .collect();
    let loader_names = loaders::names(&objects, &strings_of_loaders, &told_texts);
    let mut rows = rows::rows(&census, &names);
    let names_of_nodes = snapshot::Names { texts: texts_of_nodes.as_deref(), loaders: loader_names };
    let mut strings = std::mem::take(&mut objects.strings);
    let (idle_edges, named, own_bytes) = std::thread::scope(|scope| {
        let of_nodes = scope.spawn(|| {
            let named = snapshot::names_of_nodes(&census, &objects, &mut strings, &names_of_nodes);
            (named, sizes::sizes(&census, &objects))
        });
        let idle_edges = reach::add_unreached(&objects, &mut rows);
        let (named, own_bytes) = of_nodes.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        (idle_edges, named, own_bytes)
    });
    objects.strings = strings;
    for edge in idle_edges {
        objects.edge_kinds[edge] = EdgeKind::WEAK;
    }
    let notes = notes(&census, &objects, &walked);
    let snapshot = snapshot::build(&census, objects, rows, (named?, own_bytes), &names_of_nodes, &walked)?;
    Ok(DumpedHeap { snapshot, notes, cut_at: walked.cut_at })
}

/// Returns facts on a dump that its reader should know.
fn notes(census: &Census, objects: &Objects<'_>, walked: &records::Walked) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(offset) = walked.cut_at {
        notes.push(format!("the dump is cut at offset {offset}: what came before it is shown"));
    }
    if census.repeated_count > 0 {
        notes.push(format!("{} objects are in the dump twice: the first counts", census.repeated_count));
    }
    if objects.unknown_count > 0 {
        notes.push(format!(
            "{} objects do not fit the classes of the dump: their references are not all shown",
            objects.unknown_count
        ));
    }
    notes
}

#[cfg(test)]
mod tests;
