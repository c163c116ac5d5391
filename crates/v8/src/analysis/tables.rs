//! Tables of lists that DevTools does not have, for the command line and the page.

use heapr_table::{Column, Table, row};

use super::collections::all_collections;
use super::{
    CodeUnit, Collection, CollectionOrder, CollectionOwner, Naming, code_shares, collection_owners,
    collections, contexts_of_variables, detached, duplicated_strings, fanout, path_from_root, pending,
    shapes, unreachable,
};
use crate::devtools::Heap;
use crate::objects::Objects;

/// List that can be shown as a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listing {
    /// Texts that are in memory more than once.
    Strings,
    /// Maps, sets, arrays and objects that are used as dictionaries.
    Collections(CollectionOrder),
    /// Holders of collections, by what these waste.
    CollectionOwners,
    /// Objects by class and fields.
    Shapes,
    /// Objects with most references.
    Fanout,
    /// DOM trees that are out of the document but still referenced.
    Detached,
    /// Objects that no strong reference leads to, by class.
    Unreachable,
    /// Variables that functions keep alive.
    Closures,
    /// Pending work: promises, timers, listeners, handles.
    Pending,
    /// Heap bytes by package or source file.
    Packages(CodeUnit),
}

impl Listing {
    /// Returns the list with the name of its command.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "strings" => Self::Strings,
            "collections" => Self::Collections(CollectionOrder::Largest),
            "collection-owners" => Self::CollectionOwners,
            "shapes" => Self::Shapes,
            "fanout" => Self::Fanout,
            "detached" => Self::Detached,
            "unreachable" => Self::Unreachable,
            "closures" => Self::Closures,
            "pending" => Self::Pending,
            "packages" => Self::Packages(CodeUnit::Package),
            _ => return None,
        })
    }

    /// Returns the table with the list's first `top` rows.
    #[must_use]
    pub fn table(self, heap: &Heap, top: usize) -> Table {
        match self {
            Self::Strings => string_table(heap, top),
            Self::Collections(order) => collection_table(heap, &collections(heap, order, top)),
            Self::CollectionOwners => {
                let found = collection_owners(heap, &Naming::of(heap), &all_collections(heap), top);
                collection_owner_table(heap, &found)
            }
            Self::Shapes => shape_table(heap, top),
            Self::Fanout => fanout_table(heap, top),
            Self::Detached => detached_table(heap, top),
            Self::Unreachable => unreachable_table(heap, top),
            Self::Closures => closure_table(heap, top),
            Self::Pending => pending_table(heap, top),
            Self::Packages(unit) => package_table(heap, unit, top),
        }
    }
}

fn string_table(heap: &Heap, top: usize) -> Table {
    let columns = [
        Column::bytes("wasted_bytes", "Wasted"),
        Column::bytes("total_bytes", "All"),
        Column::count("count", "Copies"),
        Column::id("example_id", "One is"),
        Column::text("text", "Text"),
    ];
    let row = |found: super::DuplicatedString| {
        row![
            found.wasted_bytes,
            found.total_bytes,
            found.count,
            heap.snapshot().id(found.example),
            if found.is_cut { found.text + "…" } else { found.text },
        ]
    };
    let found = duplicated_strings(heap, top);
    Table::of("heapr.snapshot.strings/1", &columns, found.into_iter().map(row))
}

/// Table of collections of a heap, which may be in memory or in an index.
#[must_use]
pub fn collection_table<H: Objects + ?Sized>(heap: &H, found: &[Collection]) -> Table {
    let naming = Naming::of(heap);
    let columns = [
        Column::count("reference_count", "Holds"),
        Column::bytes("store_bytes", "Store"),
        Column::percent("fill_percent", "Filled %"),
        Column::bytes("retained_bytes", "Retained"),
        Column::text("class", "Class"),
        Column::id("id", "Id"),
        Column::text("name", "Name"),
    ];
    let row = |found: &Collection| {
        row![
            found.reference_count,
            found.store_bytes,
            found.fill_percent,
            found.retained_bytes,
            naming.own_name(found.node),
            heap.id(found.node),
            naming.call(found.node).text,
        ]
    };
    Table::of("heapr.snapshot.collections/1", &columns, found.iter().map(row))
}

/// Table of the holders of collections.
#[must_use]
pub fn collection_owner_table<H: Objects + ?Sized>(heap: &H, found: &[CollectionOwner]) -> Table {
    let columns = [
        Column::bytes("wasted_bytes", "Wasted"),
        Column::count("collection_count", "Collections"),
        Column::count("empty_count", "Empty"),
        Column::count("slot_count", "Slots"),
        Column::count("used_count", "Used"),
        Column::percent("fill_percent", "Filled %"),
        Column::id("example_id", "One is"),
        Column::text("owner", "Owner"),
    ];
    let row = |found: &CollectionOwner| {
        row![
            found.wasted_bytes,
            found.collection_count,
            found.empty_count,
            found.slot_count,
            found.used_count,
            found.fill_percent(),
            heap.id(found.example),
            found.name.as_str(),
        ]
    };
    Table::of("heapr.snapshot.collection-owners/1", &columns, found.iter().map(row))
}

fn shape_table(heap: &Heap, top: usize) -> Table {
    let columns = [
        Column::bytes("self_bytes", "Own"),
        Column::bytes("retained_bytes", "Retained"),
        Column::count("count", "Objects"),
        Column::id("example_id", "One is"),
        Column::text("shape", "Class and fields"),
    ];
    let row = |found: super::Shape| {
        row![
            found.self_bytes,
            found.retained_bytes,
            found.count,
            heap.snapshot().id(found.example),
            format!("{} {{{}}}", found.class, found.fields.join(", ")),
        ]
    };
    Table::of("heapr.snapshot.shapes/1", &columns, shapes(heap, top).into_iter().map(row))
}

fn fanout_table(heap: &Heap, top: usize) -> Table {
    let naming = Naming::of(heap);
    let columns = [
        Column::count("reference_count", "References"),
        Column::count("main_class_count", "Of them to"),
        Column::text("main_class", "Class"),
        Column::bytes("retained_bytes", "Retained"),
        Column::id("id", "Id"),
        Column::text("name", "Name"),
    ];
    let row = |found: super::Fanout| {
        row![
            found.reference_count,
            found.main_class_count,
            found.main_class,
            found.retained_bytes,
            heap.snapshot().id(found.node),
            naming.call(found.node).text,
        ]
    };
    Table::of("heapr.snapshot.fanout/1", &columns, fanout(heap, top).into_iter().map(row))
}

fn detached_table(heap: &Heap, top: usize) -> Table {
    let naming = Naming::of(heap);
    let columns = [
        Column::bytes("retained_bytes", "Retained"),
        Column::count("detached_count", "Nodes"),
        Column::text("node", "Node"),
        Column::id("id", "Id"),
        Column::text("held_by", "Held by"),
        Column::text("place", "Near"),
    ];
    let row = |found: super::Detached| {
        let path = path_from_root(heap, &naming, found.node);
        row![
            found.retained_bytes,
            found.detached_count,
            heap.snapshot().name_text(found.node).into_owned(),
            heap.snapshot().id(found.node),
            naming.held_by(found.node),
            path.into_iter().rev().find_map(|step| step.place).map(|place| place.to_string()),
        ]
    };
    Table::of("heapr.snapshot.detached/1", &columns, detached(heap, top).into_iter().map(row))
}

fn unreachable_table(heap: &Heap, top: usize) -> Table {
    let columns = [
        Column::bytes("self_bytes", "Own"),
        Column::count("count", "Objects"),
        Column::id("example_id", "The largest is"),
        Column::text("class", "Class"),
    ];
    let row = |found: super::Unreachable| {
        row![found.self_bytes, found.count, heap.snapshot().id(found.example), found.class]
    };
    Table::of("heapr.snapshot.unreachable/1", &columns, unreachable(heap, top).into_iter().map(row))
}

fn closure_table(heap: &Heap, top: usize) -> Table {
    let naming = Naming::of(heap);
    let columns = [
        Column::bytes("retained_bytes", "Retained"),
        Column::count("function_count", "Functions"),
        Column::id("id", "Id"),
        Column::text("place", "First function at"),
        Column::text("variables", "Variables, the largest first"),
    ];
    let row = |found: super::ContextOfVariables| {
        let variables: Vec<String> = found.variables.into_iter().map(|variable| variable.name).collect();
        row![
            found.retained_bytes,
            found.function_count,
            heap.snapshot().id(found.node),
            found.place.map(|place| place.to_string()),
            variables.join(", "),
        ]
    };
    let found = contexts_of_variables(heap, &naming, top);
    Table::of("heapr.snapshot.closures/1", &columns, found.into_iter().map(row))
}

/// Table of the variables that no function uses.
#[must_use]
pub fn unused_variable_table(heap: &Heap, found: &super::UnusedVariables, top: usize) -> Table {
    let columns = [
        Column::bytes("retained_bytes", "Would go"),
        Column::count("count", "Contexts"),
        Column::text("variable", "Variable"),
        Column::text("class", "Class"),
        Column::id("example_id", "One is"),
        Column::id("context_id", "In"),
        Column::text("kept_by", "Kept by"),
        Column::text("place", "Place"),
    ];
    let row = |found: &super::UnusedVariable| {
        row![
            found.retained_bytes,
            found.count,
            found.name.as_str(),
            found.class.as_str(),
            heap.snapshot().id(found.example_value),
            heap.snapshot().id(found.example),
            found.kept_by.as_str(),
            found.place.as_ref().map(ToString::to_string),
        ]
    };
    let mut table = Table::new("heapr.snapshot.unused-variables/1", &columns);
    table.fact("unknown_function_count", found.unknown_function_count);
    table.fact("unknown_scripts", found.unknown_scripts.as_slice());
    table.rows(top, found.variables.iter().map(row));
    table
}

fn pending_table(heap: &Heap, top: usize) -> Table {
    let naming = Naming::of(heap);
    let columns = [
        Column::text("kind", "Waits as"),
        Column::count("count", "How many"),
        Column::bytes("retained_bytes", "Retained"),
        Column::id("example_id", "One is"),
        Column::text("what", "Function or class"),
        Column::text("event", "Event"),
        Column::text("place", "Place"),
        Column::text("held_by", "Held by"),
    ];
    let row = |found: super::Pending| {
        row![
            found.waiting.name(),
            found.count,
            found.retained_bytes,
            heap.snapshot().id(found.example),
            found.what,
            found.event,
            found.place.map(|place| place.to_string()),
            found.held_by,
        ]
    };
    Table::of("heapr.snapshot.pending/1", &columns, pending(heap, &naming, top).into_iter().map(row))
}

fn package_table(heap: &Heap, unit: CodeUnit, top: usize) -> Table {
    let found = code_shares(heap, &Naming::of(heap), unit);
    let all: u64 = found.iter().map(|share| share.own_bytes).sum();
    let columns = [
        Column::bytes("own_bytes", "Own"),
        Column::percent("own_percent", "%"),
        Column::bytes("retained_bytes", "Retained"),
        Column::count("object_count", "Objects"),
        Column::text("name", if unit == CodeUnit::Package { "Package" } else { "File" }),
    ];
    let mut table = Table::new("heapr.snapshot.packages/1", &columns);
    table.fact("total_bytes", all);
    table.rows(
        top,
        found.into_iter().map(|share| {
            let percent = share.own_bytes as f64 * 100.0 / all.max(1) as f64;
            row![share.own_bytes, percent, share.retained_bytes, share.object_count, share.name]
        }),
    );
    table
}
