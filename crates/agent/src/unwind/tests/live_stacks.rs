//! This process's own stacks, unwound by rules, in full, and by the compiler's unwinder (libgcc):
//! all three must agree.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering::SeqCst};

use crate::arch::Rule;
use crate::arch::Step;
use crate::frames::bounds::KnownRanges;
use crate::modules;
use crate::unwind::full_unwind::{FullStep, Registers};
use crate::unwind::rule_for;

const FRAMES_MAX: usize = 512;
/// Number of frames that differ in both: the unwinding function itself, and `on_leaf`, at two of
/// its calls.
const OWN_FRAMES: usize = 2;

type Reference = unsafe extern "C" fn(*mut usize) -> c_int;

unsafe extern "C" {
    fn dlopen(path: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
}

/// Counters of the leaf function. It may run in a signal handler, so it only counts.
static LEAVES: AtomicUsize = AtomicUsize::new(0);
static DEEPEST: AtomicUsize = AtomicUsize::new(0);
static SIGNAL_FRAMES: AtomicUsize = AtomicUsize::new(0);
static SLOW: AtomicUsize = AtomicUsize::new(0);
static DIFFERENT_STEPS: AtomicUsize = AtomicUsize::new(0);
static DIFFERENT_STACKS: AtomicUsize = AtomicUsize::new(0);
static REFERENCE: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
/// The first stack that differed: the agent's, then the reference.
static EXAMPLE: [[AtomicUsize; FRAMES_MAX]; 2] = [const { [const { AtomicUsize::new(0) }; FRAMES_MAX] }; 2];
static HAS_EXAMPLE: AtomicBool = AtomicBool::new(false);

/// Unwinds from here, by rule and in full side by side. Returns the number of frames, and whether
/// the outermost one was reached.
#[inline(never)]
fn walk(pcs: &mut [usize; FRAMES_MAX]) -> (usize, bool) {
    let mut full = Registers::here();
    let mut ranges = KnownRanges::EMPTY;
    for (index, place) in pcs.iter_mut().enumerate() {
        let (pc, sp, bp, is_exact) = (full.pc(), full.sp(), full.bp(), full.is_exact);
        *place = pc;
        let hdr = modules::unwind_tables(pc.wrapping_sub(1));
        let range = ranges.find(sp, false);
        let mut read = |address: usize| {
            // SAFETY: a word of the mapped stack that `sp` lies on.
            range
                .may_read(address, sp, is_exact)
                .then(|| unsafe { (address as *const usize).read_volatile() })
        };
        let rule = hdr.as_ref().map_or(Rule::FRAME_POINTER, |hdr| rule_for(hdr, pc.wrapping_sub(1)));
        let stepped = rule.step(pc, sp, bp, is_exact, &mut read);
        let full_stepped = full.step(hdr.as_ref(), &mut read);
        let is_same = match (stepped, full_stepped) {
            (Step::Caller { pc, sp, bp }, FullStep::Caller) => {
                SIGNAL_FRAMES.fetch_add(usize::from(rule.is_signal_frame()), SeqCst);
                (pc, sp, bp) == (full.pc(), full.sp(), full.bp()) && full.is_exact == rule.is_signal_frame()
            }
            (Step::Slow, FullStep::Caller) => {
                SLOW.fetch_add(1, SeqCst);
                true
            }
            (Step::Root, FullStep::Root) => return (index + 1, true),
            _ => false,
        };
        if !is_same {
            DIFFERENT_STEPS.fetch_add(1, SeqCst);
        }
        if full_stepped != FullStep::Caller {
            return (index + 1, false);
        }
    }
    (FRAMES_MAX, false)
}

#[inline(never)]
extern "C" fn on_leaf() {
    let mut ours = [0; FRAMES_MAX];
    let (count, is_whole) = walk(&mut ours);
    let mut reference = [0; FRAMES_MAX];
    // SAFETY: the fixture's function of this type, which writes at most FRAMES_MAX words.
    let reference_count = unsafe {
        let function: Reference = std::mem::transmute(REFERENCE.load(SeqCst));
        function(reference.as_mut_ptr())
    };
    LEAVES.fetch_add(1, SeqCst);
    DEEPEST.fetch_max(count, SeqCst);
    let (ours, reference) = (&ours[..count], &reference[..reference_count as usize]);
    if !is_whole || ours.get(OWN_FRAMES..) != reference.get(OWN_FRAMES..) {
        DIFFERENT_STACKS.fetch_add(1, SeqCst);
        if !HAS_EXAMPLE.swap(true, SeqCst) {
            for (places, pcs) in EXAMPLE.iter().zip([ours, reference]) {
                places.iter().zip(pcs).for_each(|(place, &pc)| place.store(pc, SeqCst));
            }
        }
    }
}

fn symbol(library: *mut c_void, name: &CStr) -> *mut c_void {
    // SAFETY: a library that stays open, a zero-terminated name.
    let address = unsafe { dlsym(library, name.as_ptr()) };
    assert!(!address.is_null(), "the fixture has no {name:?}");
    address
}

/// Builds the fixture with these options and opens it; `None` without a compiler.
fn build(compiler: &str, options: &[&str], folder: &Path) -> Option<*mut c_void> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/unwind/tests/live_stacks.c");
    let library = folder.join(format!("live_stacks_{compiler}_{}.so", options.join("_")));
    let built = Command::new(compiler)
        .args(options)
        .args([
            "-shared",
            "-fPIC",
            "-g",
            "-fno-optimize-sibling-calls",
            "-fasynchronous-unwind-tables",
            "-pthread",
        ])
        .arg("-o")
        .arg(&library)
        .arg(&source)
        .args(["-lgcc_s"])
        .output();
    let Ok(output) = built else {
        heapr_testkit::not_run(format_args!("no {compiler}"));
        return None;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let path = CString::new(library.to_str()?).ok()?;
    const RTLD_NOW: c_int = 2;
    // SAFETY: a library that has just been built from the source beside this file; it has no
    // constructors.
    let opened = unsafe { dlopen(path.as_ptr(), RTLD_NOW) };
    assert!(!opened.is_null(), "{} does not load", library.display());
    Some(opened)
}

#[test]
fn live_stacks_are_what_the_compilers_unwinder_finds() {
    const INTERRUPTIONS: c_int = 3000;
    modules::start();
    let folder = tempfile::tempdir().unwrap();
    for compiler in ["gcc", "clang"] {
        for options in [
            &["-O0"][..],
            &["-O2", "-fomit-frame-pointer"],
            &["-O2", "-fno-omit-frame-pointer"],
            &["-O3", "-mavx2"],
            &["-Os", "-fcf-protection=full"],
        ] {
            let Some(library) = build(compiler, options, folder.path()) else { continue };
            REFERENCE.store(symbol(library, c"fixture_reference"), SeqCst);
            // SAFETY: the fixture's functions, of these types; the library stays open.
            let (run, run_interrupted) = unsafe {
                (
                    std::mem::transmute::<*mut c_void, unsafe extern "C" fn(extern "C" fn())>(symbol(
                        library,
                        c"fixture_run",
                    )),
                    std::mem::transmute::<*mut c_void, unsafe extern "C" fn(extern "C" fn(), c_int)>(symbol(
                        library,
                        c"fixture_run_interrupted",
                    )),
                )
            };
            for counter in [&LEAVES, &DEEPEST, &SIGNAL_FRAMES, &SLOW, &DIFFERENT_STEPS, &DIFFERENT_STACKS] {
                counter.store(0, SeqCst);
            }
            // SAFETY: they call `on_leaf`, here and in a handler on a stack of 256 KiB.
            unsafe { run(on_leaf) };
            assert_eq!((LEAVES.load(SeqCst), SIGNAL_FRAMES.load(SeqCst)), (1, 1), "{compiler} {options:?}");
            assert!(DEEPEST.load(SeqCst) > 80, "{compiler} {options:?}: {} frames", DEEPEST.load(SeqCst));
            // SAFETY: as above.
            unsafe { run_interrupted(on_leaf, INTERRUPTIONS) };
            println!(
                "{compiler} {options:?}: {} stacks, up to {} frames, {} slow steps, {} steps and {} stacks differ",
                LEAVES.load(SeqCst),
                DEEPEST.load(SeqCst),
                SLOW.load(SeqCst),
                DIFFERENT_STEPS.load(SeqCst),
                DIFFERENT_STACKS.load(SeqCst),
            );
            assert!(LEAVES.load(SeqCst) > 20);
            if HAS_EXAMPLE.load(SeqCst) {
                let [ours, reference] = EXAMPLE.each_ref().map(|pcs| {
                    pcs.iter().map(|pc| pc.load(SeqCst)).take_while(|&pc| pc != 0).collect::<Vec<_>>()
                });
                panic!("ours {ours:x?}\nreference {reference:x?}");
            }
            assert_eq!(DIFFERENT_STEPS.load(SeqCst), 0, "{compiler} {options:?}");
        }
    }
}
