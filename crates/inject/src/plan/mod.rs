//! Plan of an attach: functions to hook, their addresses, and obstacles. Made while the target
//! runs.

mod c_library;
mod embedded;
mod functions;
mod gadgets;

use std::sync::Arc;

use heapr_wire::{BUILD_ID, INJECTION_MAGIC, INJECTION_SYMBOL};

use crate::allocator_code::AllocatorCode;
use crate::arch::{Counted, Prologue, Way};
use crate::attach_request::AttachRequest;
use crate::error::{Error, Result};
use crate::image::Image;
use crate::memory::{ProcessMemory, TargetMemory as _};
use crate::modules::{Module, Modules, StaticProgram, Symbol};
use crate::remote::Gadgets;

use c_library::code_of;
use functions::Places;
use gadgets::{find_gadgets, make_gadgets};

pub(crate) use c_library::c_library;
pub(crate) use gadgets::{gadgets, gadgets_among};

/// A function to be hooked.
#[derive(Debug)]
pub(crate) struct Hook {
    pub(crate) name: String,
    /// Type of the hook; its addresses are offsets in the image.
    pub(crate) way: Way,
    /// Offsets in the image of the words that get the address of the moved instructions.
    pub(crate) real: Vec<u64>,
    pub(crate) prologue: Prologue,
    /// Calls of the function that can be counted before they reach the agent.
    pub(crate) counted: Option<Counted>,
}

/// The whole plan.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) image: Image,
    pub(crate) modules: Modules,
    pub(crate) gadgets: Gadgets,
    pub(crate) hooks: Vec<Hook>,
    /// Functions that are not hooked: offsets in the image of the words that get their addresses.
    pub(crate) plain: Vec<(u64, u64)>,
    pub(crate) not_hooked: Vec<(String, String)>,
    /// Functions that are recorded through the hooked functions that they call.
    pub(super) seen_through: Vec<u64>,
    /// Whether an allocator has its own interface besides the C library's names.
    pub(super) has_other_interface: bool,
    /// Whether some of the hooked allocator functions are the C library's.
    pub(super) has_libc_functions: bool,
    pub(super) has_other_functions: bool,
    /// Code of the functions whose calls can be counted.
    pub(crate) counted_family: Option<(u64, u64)>,
    pub(crate) code: AllocatorCode,
    /// Functions of the C library that the agent calls.
    pub(crate) imports: Vec<(String, Symbol)>,
    /// Contents of a statically linked program's file; the injector then brings the functions that
    /// the agent calls.
    pub(crate) statics: Option<Arc<StaticProgram>>,
    pub(crate) key_create_avma: u64,
    pub(crate) key_delete_avma: u64,
    pub(crate) set_specific_avma: u64,
    /// Address of the values of the first thread's keys, for musl linked into a program. The next
    /// field is the range of its descriptor.
    pub(crate) first_values_avma: u64,
    pub(crate) first_descriptor: Option<(u64, u64)>,
    pub(crate) find_object_avma: u64,
    pub(crate) stack_end_avma: u64,
    /// Offset of the table in the image.
    pub(crate) injection: u64,
}

impl Plan {
    /// Makes the plan. `is_at_start`: the program's entry has been passed, and none of its own code
    /// has run.
    pub(crate) fn make(
        request: &AttachRequest<'_>,
        memory: &ProcessMemory,
        is_at_start: bool,
    ) -> Result<Self> {
        let &AttachRequest { pid, hooks_mmap, .. } = request;
        let (image, injection) = image_of(request)?;
        let modules = Modules::read(pid, memory)?;
        let mappings = memory.mappings().map_err(|_| Error::NoSuchProcess { pid })?;
        let (libc, name) = c_library(pid, memory, &modules)?;
        let libc_code = code_of(&mappings, libc, memory, name);
        let gadgets = match find_gadgets(pid, memory, &mappings, libc_code) {
            Err(_) if is_at_start && libc.statics().is_some() => make_gadgets(pid, memory)?,
            found => found?,
        };
        let address = |name: &str| modules.find(memory, name).map_or(0, |(_, symbol)| symbol.address_avma);
        let key = |name: &str| match address(name) {
            0 => address(&format!("__{name}")),
            found => found,
        };
        let statics = libc.statics().cloned();
        if statics.is_some() && key("pthread_setspecific") == 0 && address("pthread_create") != 0 {
            let reason = "it makes threads, and there is no function in it by which one tells its end (pthread_setspecific)";
            return Err(Error::Unsupported { pid, reason });
        }
        let imports = match statics {
            Some(_) => Vec::new(),
            None => imports_of(&image, pid, memory, &modules, libc)?,
        };
        let private_lock_range = libc
            .symbol(memory, "__lll_lock_wait_private")
            .map(|symbol| (symbol.address_avma, symbol.address_avma + symbol.size_bytes.max(64)));
        let is_static = statics.is_some();
        let mut plan = Self {
            gadgets,
            hooks: Vec::new(),
            plain: Vec::new(),
            not_hooked: Vec::new(),
            seen_through: Vec::new(),
            has_other_interface: false,
            has_libc_functions: false,
            has_other_functions: false,
            counted_family: None,
            code: AllocatorCode {
                allocator_ranges: Vec::new(),
                library_ranges: vec![libc_code],
                private_lock_range,
                has_other: false,
            },
            imports,
            statics,
            key_create_avma: key("pthread_key_create"),
            key_delete_avma: key("pthread_key_delete"),
            set_specific_avma: key("pthread_setspecific"),
            first_values_avma: address("__pthread_tsd_main"),
            first_descriptor: libc
                .symbol(memory, "builtin_tls")
                .filter(|_| libc.statics().is_some())
                .map(|symbol| (symbol.address_avma, symbol.address_avma + symbol.size_bytes)),
            // In a statically linked program it is not ready when the first blocks are allocated.
            find_object_avma: if is_static { 0 } else { address("_dl_find_object") },
            stack_end_avma: address("__libc_stack_end"),
            injection,
            image,
            modules: Modules { list: Vec::new(), state_avmas: Vec::new(), links: Vec::new() },
        };
        let list = modules_of(&modules.list, memory);
        let places = Places { memory, mappings: &mappings, libc, libc_code, list };
        plan.choose_hooks(&places, hooks_mmap)?;
        if !plan.hooks.iter().any(|hook| hook.name == "malloc") {
            return Err(Error::Unsupported { pid, reason: "its malloc cannot be hooked" });
        }
        plan.choose_more(&places)?;
        plan.choose_inside(memory, request.inside)?;
        plan.choose_after_load(memory, &modules)?;
        plan.modules = modules;
        Ok(plan)
    }

    /// True if a hooked function may be called by another one. That is so if an allocator has its
    /// own interface besides the C library's names, or the program's malloc calls the C library's
    /// functions.
    pub(crate) fn calls_nest(&self) -> bool {
        self.has_other_interface || self.has_other_functions && self.has_libc_functions
    }

    /// True if the program is linked statically with musl.
    pub(crate) fn is_musl(&self) -> bool {
        self.first_descriptor.is_some()
    }
}

/// Loads the agent's image. Returns the offset of its table too.
fn image_of(request: &AttachRequest<'_>) -> Result<(Image, u64)> {
    let mut image = Image::load(request.agent)?;
    // Relocated to 0, pointers in the agent's table are offsets.
    image.relocate(0, 0, |_| Some(0))?;
    let injection =
        image.export(INJECTION_SYMBOL).ok_or(Error::BadAgent { what: "it cannot be injected" })?;
    if image.word(injection)? != INJECTION_MAGIC || image.word(injection + 8)? != BUILD_ID {
        return Err(Error::BadAgent { what: "it is of another build" });
    }
    Ok((image, injection))
}

/// Finds the functions that the agent calls, first in the C library.
fn imports_of(
    image: &Image,
    pid: u32,
    memory: &ProcessMemory,
    modules: &Modules,
    libc: &Module,
) -> Result<Vec<(String, Symbol)>> {
    let symbol_of = |name: String| {
        let found =
            libc.symbol(memory, &name).or_else(|| modules.find(memory, &name).map(|(_, symbol)| symbol));
        let symbol =
            found.ok_or(Error::Unsupported { pid, reason: "its C library lacks a basic function" })?;
        Ok((name, symbol))
    };
    image.imports().into_iter().map(symbol_of).collect()
}

/// Modules other than a preloaded agent, whose functions are not the allocator's.
pub(crate) fn modules_of<'a>(list: &'a [Module], memory: &ProcessMemory) -> Vec<&'a Module> {
    list.iter().filter(|module| module.symbol(memory, INJECTION_SYMBOL).is_none()).collect()
}
