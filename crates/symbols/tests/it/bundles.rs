//! Symbols embedded in a trace: what goes in comes out, and hostile bytes are refused.

use heapr_symbols::{SymbolTable, Symbolizer, decode_bundle, encode_bundle};
use proptest::prelude::*;

use crate::built_program::{Program, described, nothing_else, resolve};

fn bundle() -> (Program, Vec<u64>, Vec<u8>) {
    let program = Program::cpp(&["-g", "-O2"]);
    let svmas: Vec<u64> = program.functions().iter().flat_map(|&(start, size)| start..start + size).collect();
    let table = resolve(&program.key(), &svmas, nothing_else()).unwrap();
    let key = program.key();
    let bytes = encode_bundle([(&key, &table)]);
    (program, svmas, bytes)
}

#[test]
fn an_embedded_bundle_names_what_its_maker_named() {
    let (program, svmas, bytes) = bundle();
    let key = program.key();
    let expected = resolve(&key, &svmas, nothing_else()).unwrap();
    drop(program);
    let mut elsewhere = Symbolizer::new(nothing_else());
    assert!(elsewhere.use_bundle(&bytes));
    let table = elsewhere.resolve(&key, &svmas).unwrap();
    for svma in svmas {
        assert_eq!(described(&table, svma), described(&expected, svma));
    }
}

#[test]
fn an_address_that_a_bundle_lacks_does_not_hide_those_that_it_has() {
    let (program, svmas, bytes) = bundle();
    let key = program.key();
    drop(program);
    let mut elsewhere = Symbolizer::new(nothing_else());
    assert!(elsewhere.use_bundle(&bytes));
    let table = elsewhere.resolve(&key, &[svmas[0], 1]).unwrap();
    assert!(!described(&table, svmas[0]).is_empty());
    assert!(table.frames(1).is_none_or(<[_]>::is_empty));
}

#[test]
fn an_address_without_a_name_in_a_bundle_is_looked_up_in_the_files() {
    let program = Program::cpp(&["-g", "-O2"]);
    let svmas: Vec<u64> = program.functions().iter().map(|&(start, _)| start).take(3).collect();
    let key = program.key();
    let expected = resolve(&key, &svmas, nothing_else()).unwrap();
    let embedded = SymbolTable::of_names([(svmas[0], ""), (svmas[1], "embedded")]);
    let mut symbolizer = Symbolizer::new(nothing_else());
    assert!(symbolizer.use_bundle(&encode_bundle([(&key, &embedded)])));
    let table = symbolizer.resolve(&key, &svmas).unwrap();
    for svma in [svmas[0], svmas[2]] {
        assert_eq!(described(&table, svma), described(&expected, svma));
    }
    let kept = table.frames(svmas[1]).unwrap();
    assert_eq!(table.symbol(&kept[0]), Some("embedded"));
}

#[test]
fn a_table_is_improved_and_never_made_worse() {
    let program = Program::cpp(&["-g", "-O2"]);
    let svmas: Vec<u64> = program.functions().iter().map(|&(start, _)| start).take(4).collect();
    let known = resolve(&program.key(), &svmas, nothing_else()).unwrap();
    let old = || SymbolTable::of_names([(svmas[0], ""), (svmas[1], "old"), (svmas[2], "old")]);
    for (lines_count, expected) in
        [(false, "old"), (true, known.symbol(&known.frames(svmas[1]).unwrap()[0]).unwrap())]
    {
        let mut table = old();
        table.improve(&known, &svmas[..2], lines_count);
        assert_eq!(described(&table, svmas[0]), described(&known, svmas[0]));
        assert_eq!(table.symbol(&table.frames(svmas[1]).unwrap()[0]), Some(expected));
        // The third address was not requested.
        assert_eq!(table.symbol(&table.frames(svmas[2]).unwrap()[0]), Some("old"));
        assert_eq!((table.len(), table.named_count()), (3, 3));
        let once = encode_bundle([(&program.key(), &table)]);
        table.improve(&known, &svmas[..2], lines_count);
        table.improve(&old(), &svmas, lines_count);
        assert_eq!(encode_bundle([(&program.key(), &table)]), once);
    }
}

#[test]
fn hostile_bundles_are_refused_or_read_within_bounds() {
    let (_program, _, good) = bundle();
    assert!(decode_bundle(&good).is_some());
    proptest!(ProptestConfig::with_cases(2000), |(
        cut in 0..good.len(),
        flips in proptest::collection::vec((12..good.len(), any::<u8>()), 1..8),
        noise in proptest::collection::vec(any::<u8>(), 0..64),
    )| {
        prop_assert!(decode_bundle(&good[..cut]).is_none());
        let mut bad = good.clone();
        for (at, value) in flips {
            bad[at] = value;
        }
        for (_, table) in decode_bundle(&bad).unwrap_or_default() {
            for svma in [0, 1, 0x1000, u64::MAX] {
                for frame in table.frames(svma).unwrap_or_default() {
                    let _ = (table.symbol(frame), table.file(frame));
                }
            }
        }
        let _ = decode_bundle(&[&good[..12], &noise[..]].concat());
        let _ = decode_bundle(&noise);
    });
}
