//! Fuzzes suppressions, applied to stacks of names from the same text.
#![no_main]

use heapr_query::{FrameText, Suppressions};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let Ok(rules) = Suppressions::parse(text) else { return };
    let frames: Vec<FrameText<'_>> = text
        .split(['\n', ':'])
        .map(|part| FrameText { symbol: Some(part), module: Some(part), file: Some(part), line: Some(1) })
        .collect();
    let _ = rules.rule_for(&frames);
    assert_eq!(rules.names().next().is_none(), rules.is_empty());
});
