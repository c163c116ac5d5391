//! `heapr info`: reports damage wherever it is in the file.

use heapr_testkit::run;
use serde_json::Value;

use crate::recording::heapr;

const STORED: &[u8] = include_bytes!("../../../trace/tests/data/version-1.heapr");

#[test]
fn damage_in_chunks_of_every_kind_is_told() {
    let scratch = tempfile::tempdir().unwrap();
    let info = |bytes: &[u8], format: &str| {
        std::fs::write(scratch.path().join("x.heapr"), bytes).unwrap();
        run(&mut heapr(scratch.path(), &["info", "x.heapr", "--format", format])).ok().stdout
    };
    let whole: Value = serde_json::from_str(&info(STORED, "json")).unwrap();
    assert_eq!(whole["damage"].as_array().unwrap().len(), 0, "{whole}");
    assert!(!info(STORED, "text").contains("DAMAGE"));
    for chunk in whole["chunks"].as_array().unwrap() {
        let mut file = STORED.to_vec();
        let offset = chunk["offset"].as_u64().unwrap();
        file[offset as usize + 48 + chunk["stored_bytes"].as_u64().unwrap() as usize - 1] ^= 8;
        let damaged: Value = serde_json::from_str(&info(&file, "json")).unwrap();
        assert_eq!(damaged["damage"][0]["offset"].as_u64(), Some(offset), "{chunk}");
        let text = info(&file, "text");
        assert_eq!(text.matches("DAMAGE").count(), 1, "{chunk}: {text}");
    }
}
