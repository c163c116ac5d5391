//! Compares gimli and the agent on every row of the unwind tables of real programs, evaluated on
//! the same invented machine.
//!
//! A debug build compares a sample of the functions of large files, a release build all of them.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use gimli::{
    BaseAddresses, CfaRule, CieOrFde, EhFrame, EndianSlice, Evaluation, EvaluationResult, LittleEndian,
    Location, Register, RegisterRule, UnwindContext, UnwindExpression, UnwindSection, UnwindTableRow, Value,
};

use super::file_in_memory::FileInMemory;
use super::invented_machine::{Machine, mix};
use crate::arch::columns::{COLUMNS, FRAME_POINTER, RETURN_ADDRESS, STACK_POINTER};
use crate::arch::{Rule, Step};
use crate::unwind::full_unwind::{FullStep, Registers};
use crate::unwind::rule_for;

type Slice<'a> = EndianSlice<'a, LittleEndian>;

/// Number of functions of one file that a debug build compares.
const SAMPLE_COUNT: usize = 1500;

/// Result of gimli's row: the caller's registers (`None`: not known), or that there is no caller.
enum Expected {
    Root,
    Caller(Box<[Option<u64>; COLUMNS]>),
}

#[derive(Default)]
struct Tally {
    functions: usize,
    addresses: usize,
    roots: usize,
    signals: usize,
    slow: usize,
    spent: Duration,
}

fn evaluate(
    expression: &UnwindExpression<usize>,
    section: &EhFrame<Slice<'_>>,
    machine: &Machine,
    cfa: Option<u64>,
) -> u64 {
    let encoding = gimli::Encoding { address_size: 8, format: gimli::Format::Dwarf32, version: 4 };
    let mut evaluation: Evaluation<Slice<'_>> = expression.get(section).unwrap().evaluation(encoding);
    if let Some(cfa) = cfa {
        evaluation.set_initial_value(cfa);
    }
    let mut result = evaluation.evaluate().unwrap();
    loop {
        result = match result {
            EvaluationResult::Complete => break,
            EvaluationResult::RequiresRegister { register, .. } => {
                let value = machine.registers[usize::from(register.0)];
                evaluation.resume_with_register(Value::Generic(value)).unwrap()
            }
            EvaluationResult::RequiresMemory { address, size: 8, .. } => {
                evaluation.resume_with_memory(Value::Generic(Machine::read(address))).unwrap()
            }
            other => panic!("gimli wants {other:?}"),
        };
    }
    match evaluation.as_result() {
        [piece] => match piece.location {
            Location::Address { address } => address,
            ref other => panic!("a location of {other:?}"),
        },
        other => panic!("{} pieces", other.len()),
    }
}

fn expect(row: &UnwindTableRow<usize>, section: &EhFrame<Slice<'_>>, machine: &Machine) -> Expected {
    let cfa = match row.cfa() {
        CfaRule::RegisterAndOffset { register, offset } => {
            machine.registers[usize::from(register.0)].wrapping_add_signed(*offset)
        }
        CfaRule::Expression(expression) => evaluate(expression, section, machine, None),
    };
    let mut caller = [None; COLUMNS];
    for (number, value) in caller.iter_mut().enumerate() {
        let rule = row.register(Register(number as u16)).unwrap_or(RegisterRule::SameValue);
        *value = match rule {
            RegisterRule::Undefined if number == RETURN_ADDRESS => return Expected::Root,
            RegisterRule::Undefined => None,
            RegisterRule::SameValue if number == STACK_POINTER => Some(cfa),
            RegisterRule::SameValue if number == RETURN_ADDRESS => None,
            RegisterRule::SameValue => Some(machine.registers[number]),
            RegisterRule::Offset(offset) => Some(Machine::read(cfa.wrapping_add_signed(offset))),
            RegisterRule::ValOffset(offset) => Some(cfa.wrapping_add_signed(offset)),
            RegisterRule::Register(register) => Some(machine.registers[usize::from(register.0)]),
            RegisterRule::Expression(expression) => {
                Some(Machine::read(evaluate(&expression, section, machine, Some(cfa))))
            }
            RegisterRule::ValExpression(expression) => {
                Some(evaluate(&expression, section, machine, Some(cfa)))
            }
            other => panic!("a rule of {other:?}"),
        };
    }
    Expected::Caller(Box::new(caller))
}

/// Compares rule and full step with gimli's result, for one address inside a row.
fn compare(
    file: &FileInMemory,
    section: &EhFrame<Slice<'_>>,
    row: &UnwindTableRow<usize>,
    is_signal_frame: bool,
    lookup_avma: u64,
    tally: &mut Tally,
) {
    let mut machine = Machine::new(lookup_avma);
    // Either a return address, or an address that a signal has interrupted; expressions see the
    // address itself.
    let is_exact = mix(lookup_avma) & 1 == 1;
    let pc = lookup_avma + 1;
    machine.registers[RETURN_ADDRESS] = if is_exact { lookup_avma } else { pc };
    let expected = expect(row, section, &machine);
    let hdr = file.hdr();
    let begin = Instant::now();
    let rule = rule_for(&hdr, lookup_avma as usize);
    tally.spent += begin.elapsed();
    tally.addresses += 1;

    let (sp, bp) = (machine.registers[STACK_POINTER] as usize, machine.registers[FRAME_POINTER] as usize);
    let mut read = |address: usize| Some(Machine::read(address as u64) as usize);
    let stepped = rule.step(pc as usize, sp, bp, is_exact, &mut read);
    let mut registers = machine.registers;
    registers[RETURN_ADDRESS] = pc;
    let mut full = Registers::of(registers, is_exact);
    let full_stepped = full.step(Some(&hdr), &mut read);

    let context = || format!("at {lookup_avma:#x}, row {row:?}, rule {rule:?}");
    match expected {
        Expected::Root => {
            tally.roots += 1;
            assert_eq!(stepped, Step::Root, "{}", context());
            assert_eq!(full_stepped, FullStep::Root, "{}", context());
        }
        Expected::Caller(mut columns) => {
            tally.signals += usize::from(is_signal_frame);
            if let (true, Some(pc)) = (is_signal_frame, &mut columns[RETURN_ADDRESS]) {
                *pc = pc.wrapping_add(1);
            }
            if columns[RETURN_ADDRESS].is_none() {
                assert_eq!(full_stepped, FullStep::Stop, "{}", context());
                return;
            }
            assert_eq!(full_stepped, FullStep::Caller, "{}", context());
            for (number, &value) in columns.iter().enumerate() {
                assert_eq!(full.get(number), value, "register {number} {}", context());
            }
            if rule.is_slow() {
                tally.slow += 1;
                return;
            }
            let Step::Caller { pc, sp, bp } = stepped else { panic!("{stepped:?} {}", context()) };
            assert_eq!(Some(pc as u64), columns[RETURN_ADDRESS], "return address {}", context());
            assert_eq!(Some(sp as u64), columns[STACK_POINTER], "stack pointer {}", context());
            assert!(
                columns[FRAME_POINTER].is_none_or(|value| value == bp as u64),
                "frame pointer {}",
                context()
            );
            assert_eq!(rule.is_signal_frame(), is_signal_frame, "{}", context());
        }
    }
}

/// Compares the rows of all functions of a file, or of every `step`th.
fn compare_file(path: &Path) -> Option<Tally> {
    let file = FileInMemory::load(path)?;
    let hdr_section = gimli::EhFrameHdr::new(file.bytes_from(file.hdr_avma), LittleEndian);
    let bases = BaseAddresses::default().set_eh_frame_hdr(file.hdr_avma as u64);
    let parsed = hdr_section.parse(&bases, 8).unwrap();
    let frames_avma = parsed.eh_frame_ptr().direct().unwrap();
    let bases = bases.set_eh_frame(frames_avma);
    let mut section = EhFrame::new(file.bytes_from(frames_avma as usize), LittleEndian);
    section.set_address_size(8);

    let mut functions = Vec::new();
    let mut entries = section.entries(&bases);
    while let Some(entry) = entries.next().unwrap() {
        if let CieOrFde::Fde(partial) = entry {
            functions.push(partial.parse(EhFrame::cie_from_offset).unwrap());
        }
    }
    let every = if cfg!(debug_assertions) { functions.len().div_ceil(SAMPLE_COUNT).max(1) } else { 1 };
    let mut context = UnwindContext::new();
    let mut tally = Tally::default();
    for function in functions.iter().step_by(every) {
        tally.functions += 1;
        let mut table = function.rows(&section, &bases, &mut context).unwrap();
        while let Some(row) = table.next_row().unwrap() {
            let (first, end) = (row.start_address(), row.end_address());
            let mut last = None;
            let range = first..end;
            for address in [first, first + 1, end - 1].into_iter().filter(|address| range.contains(address)) {
                if last != Some(address) {
                    compare(&file, &section, row, function.is_signal_trampoline(), address, &mut tally);
                }
                last = Some(address);
            }
        }
    }
    Some(tally)
}

/// Returns files with unwind tables of many producers: C, C++, Rust, hand-written assembly; GNU ld,
/// lld.
fn files() -> Vec<PathBuf> {
    const FOLDERS: &[&str] = &["/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib"];
    const LIBRARIES: &[&str] = &[
        "libc.so.6",
        "ld-linux-x86-64.so.2",
        "libm.so.6",
        "libgcc_s.so.1",
        "libstdc++.so.6",
        "libcrypto.so.3",
        "libpython3.11.so.1",
        "libLLVM-14.so.1",
        "libLLVM-15.so.1",
        "libjemalloc.so.2",
        "libsqlite3.so.0",
        "libz.so.1",
        "libffi.so.8",
    ];
    const PROGRAMS: &[&str] = &["node", "git", "bash", "python3", "perl", "gdb", "redis-server"];
    let libraries = LIBRARIES.iter().filter_map(|name| {
        FOLDERS.iter().map(|folder| Path::new(folder).join(name)).find(|path| path.exists())
    });
    let programs = PROGRAMS.iter().map(|name| Path::new("/usr/bin").join(name)).filter(|path| path.exists());
    libraries.chain(programs).chain(std::env::current_exe()).collect()
}

#[test]
fn rules_and_full_steps_are_what_gimli_says() {
    let mut compared = 0;
    for path in files() {
        let Some(tally) = compare_file(&path) else {
            heapr_testkit::cannot_run_here(format_args!("{} has no unwind tables", path.display()));
            continue;
        };
        compared += tally.addresses;
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        println!(
            "{name}: {} functions, {} addresses, {} roots, {} in signal frames, {} slow, {} ns a rule",
            tally.functions,
            tally.addresses,
            tally.roots,
            tally.signals,
            tally.slow,
            tally.spent.as_nanos() / tally.addresses.max(1) as u128,
        );
        // Slow are prologues of realigned functions, the loader's lazy binding, and the assembly of
        // libcrypto (1.1 %), which makes no calls.
        assert!(tally.slow * 50 <= tally.addresses, "{name}: too much is slow");
    }
    assert!(compared > 10_000, "only {compared} addresses");
}

#[test]
fn an_address_outside_of_all_functions_is_unwound_by_frame_pointer() {
    let file = FileInMemory::load(&std::env::current_exe().unwrap()).unwrap();
    assert_eq!(rule_for(&file.hdr(), file.hdr_avma), Rule::FRAME_POINTER);
    assert_eq!(rule_for(&file.hdr(), 0), Rule::FRAME_POINTER);
    assert_eq!(rule_for(&file.hdr(), usize::MAX), Rule::FRAME_POINTER);
}
