//! Heap dumps of Java and Ruby in `heapr view`, beside a trace.

use heapr_testkit::Stage;
use serde_json::json;

use crate::HEAPR;
use crate::viewer::Viewer;

/// Dump of Java: a class whose static has 3 arrays of bytes.
fn hprof() -> Vec<u8> {
    let mut dump = b"JAVA PROFILE 1.0.2\0\0\0\0\x04\0\0\0\0\0\0\0\0".to_vec();
    let mut record = |tag: u8, contents: &[&[u8]]| {
        let contents = contents.concat();
        dump.extend([tag, 0, 0, 0, 0]);
        dump.extend((contents.len() as u32).to_be_bytes());
        dump.extend(contents);
    };
    let id = |number: u32| number.to_be_bytes();
    for (number, name) in
        [(1, "java/lang/Object"), (2, "shop/Cart"), (3, "ITEMS"), (4, "[Ljava/lang/Object;")]
    {
        record(1, &[&id(number), name.as_bytes()]);
    }
    for class in [1, 2, 4] {
        record(2, &[&id(class), &id(0x100 + class), &id(0), &id(class)]);
    }
    // Class, trace, superclass, loader, signers, domain, reserved, size, no constants.
    let class = |number: u32, above: u32| {
        [&[0x20][..], &id(0x100 + number), &id(0), &id(above), &[0; 20], &id(0), &[0, 0]].concat()
    };
    let arrays: Vec<u8> = (0..3_u32)
        .flat_map(|at| [&[0x23][..], &id(0x2000 + at * 0x400), &id(0), &id(1000), &[8], &[0; 1000]].concat())
        .collect();
    record(
        0x1c,
        &[
            &class(1, 0),
            &[0, 0, 0, 0],
            &class(4, 0x101),
            &[0, 0, 0, 0],
            &class(2, 0x101),
            &[0, 1],
            &[&id(3)[..], &[2], &id(0x1000)].concat(),
            &[0, 0],
            &[&[0x22][..], &id(0x1000), &id(0), &id(3), &id(0x104), &id(0x2000), &id(0x2400), &id(0x2800)]
                .concat(),
            &arrays,
            &[0x05],
            &id(0x102),
        ],
    );
    record(0x2c, &[]);
    dump
}

const RUBY: &str = r#"{"type":"ROOT", "root":"vm", "references":["0x7f0000001000"]}
{"address":"0x7f0000001000", "type":"CLASS", "name":"Event", "references":["0x7f0000001028"], "memsize":400}
{"address":"0x7f0000001028", "type":"HASH", "size":0, "memsize":7000}
"#;

#[test]
fn dumps_are_shown_beside_each_other() {
    let stage = Stage::new(HEAPR);
    std::fs::write(stage.path("app.hprof"), hprof()).unwrap();
    std::fs::write(stage.path("app.json"), RUBY).unwrap();
    std::fs::write(stage.path("cut.hprof"), &hprof()[..24]).unwrap();
    let viewer = Viewer::start(&stage, &["app.hprof", "app.json", "cut.hprof"]);
    let opened = heapr_testkit::wait_until("all are opened", || {
        let files = viewer.files();
        let is_opening = |file: &serde_json::Value| file["state"] == "opening";
        let all = files.as_array().unwrap().clone();
        (!all.iter().any(is_opening)).then_some(all)
    });
    assert!(opened[..2].iter().all(|file| file["kind"] == "v8" && file["error"].is_null()), "{opened:#?}");
    // An error has the offset.
    assert!(opened[2].to_string().contains("offset"), "{:#?}", opened[2]);
    let classes =
        |file: usize| viewer.ask("snapshot/summary", json!({"file": file, "limit": 100})).to_string();
    let java = classes(0);
    assert!(java.contains("class shop.Cart") && java.contains("byte[]"), "{java}");
    let ruby = classes(1);
    assert!(ruby.contains("class Event"), "{ruby}");
}
