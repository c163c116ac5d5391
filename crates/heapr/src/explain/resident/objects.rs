//! One sum of a process with a managed heap: objects, native blocks, what is free and kept, and the
//! rest of the resident memory.
//!
//! ```text
//! heap's pages = objects + native blocks + rounding + free and kept + what is not explained
//! other pages  = objects in programs' and libraries' data + code, stacks, files, ...
//! ```
//! The two readings are of moments some milliseconds apart.

use std::io::{self, Write};
use std::time::Duration;

use anyhow::Context as _;
use heapr_managed::{ManagedHeap, NodeKind, RuntimePage, write_snapshot};
use heapr_proc::PageMap;
use heapr_resident::{Account, Class};
use heapr_table::quantity::{bytes, duration, plural};
use heapr_v8::analysis::{Naming, NativeHolder, native_holders};
use heapr_v8::devtools::Heap;
use heapr_v8::{ReadOptions, Snapshot};
use serde_json::{Value, json};

use super::written_pages::Pieces;
use crate::explain::printed_table::ClassTable;
use crate::plain_text::one_line;
use crate::snapshot::managed::heap_with_stacks;
use crate::snapshot::v8::native_holders::allocated_by;

/// Largest number of objects for which the holders of native memory are told: finding them takes
/// some hundred bytes for each.
const HOLDERS_OBJECTS_MAX: usize = 3_000_000;
/// Most holders that are told.
const HOLDERS_MAX: usize = 5;
/// Least native bytes of a holder that is told.
const HOLDER_BYTES_LEAST: u64 = 64 << 10;

/// Classes of memory that has objects and native blocks.
const OF_HEAPS: &[Class] =
    &[Class::LiveBlocks, Class::GlibcHeap, Class::AllocatorLive, Class::OtherAllocator, Class::PythonArenas];
/// Classes of memory that allocators keep for later, and of their headers.
const KEPT: &[Class] = &[
    Class::HeadersRounding,
    Class::FreeWholePages,
    Class::FreePinned,
    Class::CachesTops,
    Class::AllocatorSlack,
];

/// Number and resident bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Amount {
    count: u64,
    bytes: u64,
}

impl Amount {
    fn add(&mut self, bytes: u64) {
        self.count += 1;
        self.bytes = self.bytes.saturating_add(bytes);
    }
}

/// The sum.
#[derive(Debug)]
pub(super) struct ObjectSum {
    runtime: String,
    /// Objects with their parts.
    objects: Amount,
    /// Blocks of native memory, and data of arrays.
    native: Amount,
    /// Bytes by which the sizes of objects are rounded up.
    rounding_bytes: u64,
    /// Free memory, caches and headers of allocators.
    kept_bytes: u64,
    /// Resident memory besides heaps, without the objects in it.
    other_bytes: u64,
    /// Bytes of the heaps that no object, block or free memory explains; negative if these have
    /// more.
    unexplained_bytes: i64,
    all_bytes: u64,
    pause: Duration,
    holders: Vec<NativeHolder>,
    notes: Vec<String>,
}

/// True if one of the pages, which are sorted by address, has an address.
fn is_in_page(pages: &[RuntimePage], avma: u64) -> bool {
    let behind = pages.partition_point(|page| page.start_avma <= avma);
    behind.checked_sub(1).is_some_and(|last| pages[last].has(avma))
}

impl ObjectSum {
    /// Reads the objects of a process whose resident memory is known.
    ///
    /// # Errors
    /// It has no managed heap that can be read, or may not be stopped.
    pub(super) fn of(pid: u32, account: &Account) -> anyhow::Result<Self> {
        let (mut heap, pause) = heap_with_stacks(pid)?;
        let pages = PageMap::of_process(pid).ok();
        let mut sum = Self::add_up(&heap, account, pages.as_ref());
        sum.pause = pause;
        sum.notes = std::mem::take(&mut heap.notes);
        if sum.native.bytes < HOLDER_BYTES_LEAST {
            return Ok(sum);
        }
        if heap.nodes.len() > HOLDERS_OBJECTS_MAX {
            sum.notes.push(format!(
                "what holds the native memory: heapr snapshot take {pid}, and then heapr snapshot holders"
            ));
            return Ok(sum);
        }
        sum.holders = holders(heap).context("holders of native memory")?;
        Ok(sum)
    }

    fn add_up(heap: &ManagedHeap, account: &Account, states: Option<&PageMap>) -> Self {
        let places = Pieces::of(account, states);
        let (mut objects, mut native) = (Amount::default(), Amount::default());
        let mut elsewhere_bytes = 0_u64;
        let is_of_heaps =
            |class: Option<Class>| class.is_some_and(|it| OF_HEAPS.contains(&it) || KEPT.contains(&it));
        for (number, node) in heap.nodes.iter().enumerate() {
            let own_bytes = heap.own_bytes(number as u32);
            let class = places.class_at(node.address_avma);
            let is_block = heap.label_of(node).kind == NodeKind::Block;
            let resident_bytes =
                if is_block { places.resident(node.address_avma, own_bytes) } else { own_bytes };
            if is_block { &mut native } else { &mut objects }.add(resident_bytes);
            if !is_of_heaps(class) && !is_in_page(&heap.runtime_pages, node.address_avma) {
                elsewhere_bytes = elsewhere_bytes.saturating_add(resident_bytes);
            }
        }
        let mut room_bytes = 0_u64;
        for page in &heap.runtime_pages {
            let resident_bytes = places.resident(page.start_avma, page.bytes);
            // What was never written is mostly room.
            let absent_bytes = page.bytes.saturating_sub(resident_bytes);
            room_bytes = room_bytes.saturating_add(page.free_bytes.saturating_sub(absent_bytes));
            if !is_of_heaps(places.class_at(page.start_avma)) {
                elsewhere_bytes = elsewhere_bytes.saturating_add(resident_bytes);
            }
        }
        let all_bytes = account.pages.rss_bytes;
        let of = |classes: &[Class]| classes.iter().map(|&class| account.bytes(class)).sum::<u64>();
        let free_in_pools_bytes =
            account.bytes(Class::PythonArenas).saturating_sub(account.python.used_bytes);
        let kept_bytes = of(KEPT) + free_in_pools_bytes + room_bytes;
        let other_bytes = all_bytes.saturating_sub(of(OF_HEAPS) + of(KEPT)).saturating_sub(elsewhere_bytes);
        let explained_bytes = objects
            .bytes
            .saturating_add(native.bytes)
            .saturating_add(heap.rounding_bytes)
            .saturating_add(kept_bytes)
            .saturating_add(other_bytes);
        Self {
            runtime: heap.runtime.clone(),
            objects,
            native,
            rounding_bytes: heap.rounding_bytes,
            kept_bytes,
            other_bytes,
            unexplained_bytes: all_bytes as i64 - explained_bytes.min(i64::MAX as u64) as i64,
            all_bytes,
            pause: Duration::ZERO,
            holders: Vec::new(),
            notes: Vec::new(),
        }
    }

    pub(super) fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(
            out,
            "{} in one sum, with the objects of {} (it stood still for {} more):",
            bytes(self.all_bytes),
            self.runtime,
            duration(self.pause.as_nanos() as u64)
        )?;
        let mut table = ClassTable::new(self.all_bytes);
        let unexplained_bytes = u64::try_from(self.unexplained_bytes).unwrap_or(0);
        let unexplained = match self.unexplained_bytes {
            less @ ..0 => format!("the others have {} more than is resident", bytes(less.unsigned_abs())),
            _ => "the interpreter's own, and what changed meanwhile".to_owned(),
        };
        let rows = [
            ("objects, with their parts", self.objects.bytes, plural(self.objects.count, "object")),
            ("native blocks", self.native.bytes, plural(self.native.count, "block")),
            ("rounding of objects' sizes", self.rounding_bytes, String::new()),
            ("free and kept, headers", self.kept_bytes, "of pools, and of malloc".to_owned()),
            ("other memory", self.other_bytes, "code, data, stacks, files".to_owned()),
            ("not explained", unexplained_bytes, unexplained),
        ];
        for (what, amount, note) in rows {
            table.class(what, amount, note);
        }
        table.write(out)?;
        let told = self.holders.iter().filter(|holder| holder.native_bytes >= HOLDER_BYTES_LEAST);
        for (number, holder) in told.take(HOLDERS_MAX).enumerate() {
            let by = allocated_by(holder).map_or(String::new(), |by| format!(", allocated by {by}"));
            writeln!(
                out,
                "  {:12} {} in {}: {}{by}",
                if number == 0 { "native held:" } else { "" },
                bytes(holder.native_bytes),
                plural(holder.block_count, "block"),
                one_line(&holder.name)
            )?;
        }
        self.notes.iter().try_for_each(|note| writeln!(out, "  not seen: {note}"))
    }

    pub(super) fn json(&self) -> Value {
        let holder = |holder: &NativeHolder| {
            json!({
                "holder": holder.name,
                "native_bytes": holder.native_bytes,
                "block_count": holder.block_count,
                "with_objects_bytes": holder.retained_bytes,
                "allocated_by": holder.allocated_by.iter().map(ToString::to_string).collect::<Vec<_>>(),
            })
        };
        json!({
            "runtime": self.runtime,
            "object_count": self.objects.count,
            "object_bytes": self.objects.bytes,
            "native_count": self.native.count,
            "native_bytes": self.native.bytes,
            "rounding_bytes": self.rounding_bytes,
            "kept_bytes": self.kept_bytes,
            "other_bytes": self.other_bytes,
            "unexplained_bytes": self.unexplained_bytes,
            "rss_bytes": self.all_bytes,
            "pause_ns": self.pause.as_nanos() as u64,
            "holders": self.holders.iter().take(HOLDERS_MAX).map(holder).collect::<Vec<_>>(),
            "notes": self.notes,
        })
    }
}

/// Finds what holds the native memory of a heap.
fn holders(mut heap: ManagedHeap) -> anyhow::Result<Vec<NativeHolder>> {
    let (reader, writer) = std::io::pipe().context("cannot make a pipe")?;
    // An error of writing shows at the reader as a file that ends early.
    let thread = std::thread::spawn(move || {
        let mut out = std::io::BufWriter::with_capacity(1 << 20, writer);
        write_snapshot(&mut heap, &mut out).and_then(|()| out.flush())
    });
    let snapshot = Snapshot::read(reader, &ReadOptions::default());
    let _ = thread.join();
    let heap = Heap::with_dominators(snapshot?)?;
    Ok(native_holders(&heap, &Naming::of(&heap)))
}
