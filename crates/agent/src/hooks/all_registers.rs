//! All-registers hooks: calls of an allocator that lies in the same module as its callers. Every
//! register is as before when such a call returns.
//!
//! A compiler that sees caller and function together does not obey the calling convention. The
//! caller leaves values in registers that the function happens not to touch, and leaves the stack
//! unaligned. [`crate::arch::all_registers_entry`] saves all registers and comes here.
//!
//! Such an allocator's functions also call one another, directly or by a jump. The program's call
//! counts, once; a nested call continues in the function itself, as if there were no hook.
//!
//! If no caller can have values in registers, as the injector has seen in the function's code,
//! [`crate::arch::light_entry`] saves only the arguments.

use core::ffi::c_void;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use heapr_wire::{HOOK_ALLOCATOR, InjectedHook, MORE_ALLOCATORS, called};

use crate::arch::all_registers_entry::{AllRegistersCall, all_registers_entry};
use crate::arch::light_entry::{LightAnswer, LightCall, light_entry};
use crate::arch::trampoline_frame::TrampolineFrame;
use crate::hooks::Caller;
use crate::hooks::forwarded::{self, kinds};
use crate::hooks::inner_calls;
use crate::hooks::plain_calls;
use crate::hooks::real::REAL;
use crate::hooks::sampling;
use crate::hooks::shared::Shared;
use crate::hooks::tree_calls;
use crate::record::thread::Outermost;
use crate::state::AGENT;

pub(crate) use crate::hooks::hooked_function::{Arguments, HookedFunction, NOTHING, Outcome};

all_registers_entry! { make_call }
light_entry! { make_light_call }

/// Makes a call. Returns the address at which it continues; 0 if it is done.
///
/// # Safety
/// 1. `call` was saved by [`crate::arch::all_registers_entry`] for one of the functions below.
pub(crate) unsafe extern "C" fn make_call(call: *mut AllRegistersCall) -> usize {
    // SAFETY: (1).
    let call = unsafe { &mut *call };
    // SAFETY: (1).
    let (kept, outcome) = unsafe { outcome_of_call(&call.frame, call.arguments()) };
    match outcome {
        Outcome::Answered(answer) => call.set_answer(answer),
        Outcome::Silent => {}
        Outcome::PassOn => return kept.own(),
    }
    0
}

/// Makes a call whose caller needs only the usual registers; see [`make_call`].
///
/// # Safety
/// 1. `call` was saved by [`crate::arch::light_entry`] for one of the functions below.
pub(crate) unsafe extern "C" fn make_light_call(call: *mut LightCall) -> LightAnswer {
    // SAFETY: (1).
    let call = unsafe { &*call };
    // SAFETY: (1).
    let (kept, outcome) = unsafe { outcome_of_call(&call.frame, call.arguments()) };
    match outcome {
        Outcome::Answered(answer) => LightAnswer { answer, goes_on_avma: 0 },
        Outcome::Silent => LightAnswer { answer: 0, goes_on_avma: 0 },
        Outcome::PassOn => LightAnswer { answer: 0, goes_on_avma: kept.own() },
    }
}

/// Makes the call of a trampoline's frame, and returns its function and its outcome.
///
/// # Safety
/// 1. The frame is that of one of the functions below.
#[inline(always)]
unsafe fn outcome_of_call(frame: &TrampolineFrame, words: &Arguments) -> (&'static HookedFunction, Outcome) {
    // SAFETY: (1); the functions are never removed.
    let kept = unsafe { &*(frame.function() as *const HookedFunction) };
    let caller = Caller::new(frame.entry(), frame.bp(), kept.called);
    (kept, outcome_of(kept, words, caller))
}

#[inline(always)]
fn outcome_of(kept: &HookedFunction, words: &Arguments, caller: Caller) -> Outcome {
    if !AGENT.is_active() {
        return Outcome::PassOn;
    }
    if let Some(inner) = kept.inner
        && let Some(outcome) = plain_calls::run(kept, inner, words, caller)
    {
        return outcome;
    }
    outcome_in_general(kept, words, caller)
}

#[cold]
#[inline(never)]
fn outcome_in_general(kept: &HookedFunction, words: &Arguments, caller: Caller) -> Outcome {
    if let Some(outcome) = tree_calls::run(kept, words, caller) {
        return outcome;
    }
    let function = core::ptr::from_ref(kept) as usize;
    let Some(before) = Outermost::begin(caller.sp(), function) else {
        if let Some(note) = kept.note_inner {
            note(kept, words, caller);
        }
        sampling::passed(caller);
        return Outcome::PassOn;
    };
    let outcome = (kept.run)(kept, words, caller);
    Outermost::end(before);
    outcome
}

/// Records an operator new with [`new`]; `is_aligned`: its second argument is an alignment.
pub(crate) fn new_named(kept: &HookedFunction, all: &Arguments, is_aligned: bool, caller: Caller) -> Outcome {
    let Some(begun) = inner_calls::begin(caller.entry()) else {
        sampling::passed(caller);
        return Outcome::PassOn;
    };
    let outcome = if is_aligned { new::<true>(kept, all, caller) } else { new::<false>(kept, all, caller) };
    inner_calls::end(begun);
    outcome
}

/// Records a call of operator new or a variant; see
/// [`crate::hooks::foreign::call_what_does_not_throw`].
pub(crate) fn new<const IS_ALIGNED: bool>(
    kept: &HookedFunction,
    &[size, alignment, ..]: &Arguments,
    caller: Caller,
) -> Outcome {
    // `std::nothrow` is a reference that is never read.
    let tag = core::ptr::from_ref(kept) as usize;
    let words = if IS_ALIGNED { [size, alignment, tag, 0] } else { [size, tag, tag, 0] };
    // The call may have been counted before it came here: then it is drawn before the real call.
    let draw = sampling::is_on().then(|| sampling::counted(caller, size));
    let block = forwarded::call(kept.real, words);
    if block == 0 && kept.throwing.load(Relaxed) != 0 {
        return Outcome::PassOn;
    }
    match draw {
        Some(draw) => sampling::made(draw, block as *mut c_void, size, caller),
        None => crate::hooks::allocated(block as *mut c_void, size, caller),
    }
    Outcome::Answered(block)
}

macro_rules! functions {
    ($($name:ident $words:literal $kind:ident |$a:pat_param, $b:pat_param, $c:pat_param| $what:expr;)*) => {
        mod run {
            use super::*;
            $(pub(super) fn $name(kept: &HookedFunction, words: &Arguments, caller: Caller) -> Outcome {
                let &[$a, $b, $c, _] = words;
                let answer = kinds::$kind(kept.real, *words, $what, caller);
                let is_silent = const { matches!(stringify!($kind).as_bytes(), b"frees") };
                if is_silent { Outcome::Silent } else { Outcome::Answered(answer) }
            })*
        }

        pub(crate) const COUNT: usize = [$(stringify!($name)),*].len();

        /// The functions of the process's first allocator.
        pub(crate) mod first {
            use super::*;
            $(#[allow(non_upper_case_globals, reason = "named as the C functions")]
            pub(crate) static $name: HookedFunction = kept(REAL.$name.place(), run::$name, stringify!($name));)*
        }

        const NAMES: [&str; COUNT] = [$(stringify!($name)),*];
        const RUNS: [fn(&HookedFunction, &Arguments, Caller) -> Outcome; COUNT] = [$(run::$name),*];
    };
}

const fn kept(
    real: &'static AtomicUsize,
    run: fn(&HookedFunction, &Arguments, Caller) -> Outcome,
    name: &str,
) -> HookedFunction {
    HookedFunction { run, real, throwing: &NOTHING, called: called(name), inner: None, note_inner: None }
}

pub(crate) fn freed(kept: &HookedFunction, all: &Arguments, caller: Caller) -> Outcome {
    let &[block, ..] = all;
    forwarded::run_free(kept.real, *all, block, caller);
    Outcome::Silent
}

for_all_allocator_functions! { functions }

/// Real functions of the process's other allocators: a second C library (dlmopen), or one that a
/// library calls although the program has another (RTLD_DEEPBIND).
static MORE_REAL: [[AtomicUsize; COUNT]; MORE_ALLOCATORS] =
    [const { [const { AtomicUsize::new(0) }; COUNT] }; MORE_ALLOCATORS];
#[allow(clippy::indexing_slicing, reason = "the compiler evaluates it, and refuses an index out of range")]
static MORE_KEPT: [[HookedFunction; COUNT]; MORE_ALLOCATORS] = {
    const NONE: [HookedFunction; COUNT] = [const { kept(&MORE_REAL[0][0], run::malloc, "malloc") }; COUNT];
    let mut table = [NONE; MORE_ALLOCATORS];
    let mut place = 0;
    while place < MORE_ALLOCATORS * COUNT {
        let (allocator, number) = (place / COUNT, place % COUNT);
        table[allocator][number] = kept(&MORE_REAL[allocator][number], RUNS[number], NAMES[number]);
        place += 1;
    }
    table
};

#[allow(clippy::indexing_slicing, reason = "the compiler evaluates it, and refuses an index out of range")]
/// Hooks for the injector: [`COUNT`] functions for each of the other allocators.
pub(crate) static MORE: Shared<[InjectedHook; MORE_ALLOCATORS * COUNT]> = Shared({
    let mut table = [const { more(0, 0) }; MORE_ALLOCATORS * COUNT];
    let mut place = 0;
    while place < table.len() {
        table[place] = more(place / COUNT, place % COUNT);
        place += 1;
    }
    table
});

#[allow(clippy::indexing_slicing, reason = "the compiler evaluates it, and refuses an index out of range")]
const fn more(allocator: usize, number: usize) -> InjectedHook {
    let name = NAMES[number];
    InjectedHook {
        name: name.as_ptr(),
        name_bytes: name.len(),
        trampoline: core::ptr::null(),
        real: &raw const MORE_REAL[allocator][number],
        group: HOOK_ALLOCATOR,
        kept: (&raw const MORE_KEPT[allocator][number]).cast(),
    }
}
