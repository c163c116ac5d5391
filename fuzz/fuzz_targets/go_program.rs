//! Fuzzes Go programs: the version, the table of functions, the code of some of them.

#![no_main]

use std::io::Write as _;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let path = std::env::temp_dir().join(format!("heapr-fuzz-go-{}", std::process::id()));
    if std::fs::File::create(&path).is_ok_and(|mut file| file.write_all(bytes).is_ok()) {
        let _ = heapr_symbols::GoProgram::read(&path);
    }
});
