//! Symbols embedded in a trace: what goes in comes out, and hostile bytes are refused.

use heapr_symbols::{Symbolizer, decode_bundle, encode_bundle};
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
