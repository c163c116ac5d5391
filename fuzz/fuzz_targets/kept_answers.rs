//! Fuzzes saved answers of `heapr explain`: each moment is formatted, in full and thinned.
#![no_main]

use heapr_resident::SavedMoments;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let Ok(Some(mut kept)) = SavedMoments::parse(text) else { return };
    for moment in &kept.moments {
        let detail = moment.detail(text);
        if let Some(pages) = detail.pages {
            assert_eq!(pages.class.len(), pages.resident_bytes.len());
        }
        let _ = moment.json();
    }
    kept.thinned(3);
    assert!(!kept.moments.is_empty() && kept.moments.len() <= 3);
});
