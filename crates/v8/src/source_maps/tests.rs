//! Tests of maps in all possible locations, and of files that are not maps.

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use base64::Engine as _;

use super::mapping::Mapping;
use super::{SourceMaps, Unused};

/// Map of `function a(){}` and `class b{}` in one line, with names at columns 9 and 20.
fn map(source: &str) -> String {
    let mut builder = oxc_sourcemap::SourceMapBuilder::default();
    let source = builder.add_source_and_content(source, "");
    let names = [builder.add_name("growCache"), builder.add_name("Session")];
    builder.add_token(0, 0, 11, 0, Some(source), None);
    builder.add_token(0, 9, 11, 9, Some(source), Some(names[0]));
    builder.add_token(0, 14, 20, 0, Some(source), None);
    builder.add_token(0, 20, 20, 6, Some(source), Some(names[1]));
    builder.add_token(2, 4, 30, 2, None, None);
    builder.into_sourcemap().to_json_string()
}

fn place(mapping: &Mapping, line: u32, column: u32) -> Option<String> {
    Some(mapping.original(line, column)?.to_string())
}

#[test]
fn a_place_is_that_of_the_piece_it_lies_in() {
    let mapping = Mapping::read(map("../src/store.ts").as_bytes(), Path::new("/srv/dist")).unwrap();
    assert_eq!(place(&mapping, 0, 0).as_deref(), Some("/srv/src/store.ts:12:1"));
    assert_eq!(place(&mapping, 0, 10).as_deref(), Some("/srv/src/store.ts:12:10"));
    assert_eq!(place(&mapping, 0, 999).as_deref(), Some("/srv/src/store.ts:21:7"));
    // A line without pieces, and a piece that the bundler made.
    assert_eq!(place(&mapping, 1, 0), None);
    assert_eq!(place(&mapping, 2, 4), None);
    assert_eq!(place(&mapping, 2, 0), None);
    assert_eq!(place(&mapping, u32::MAX, u32::MAX), None);
    // V8's location of a function is after its name, that of a class may be at the name.
    assert_eq!(mapping.name_of(0, 10, "a"), Some("growCache"));
    assert_eq!(mapping.name_of(0, 20, "b"), Some("Session"));
    assert_eq!(mapping.name_of(0, 20, "Session"), None);
    assert_eq!(mapping.name_of(0, 3, "a"), None);
}

#[test]
fn names_are_those_that_stand_in_the_script() {
    //           0         10        20        30
    let script = "function a(){}a();class b{ä(){}}b";
    let mapping = Mapping::read(map("/src/store.ts").as_bytes(), Path::new("/")).unwrap();
    let mapping = mapping.with_script(script.as_bytes());
    assert_eq!(mapping.name_of(0, 10, "a"), Some("growCache"));
    assert_eq!(mapping.name_of(0, 10, "b"), None);
    // Column 24 is the name of the class; the map says 20, where another word is.
    assert_eq!(mapping.name_of(0, 24, "b"), None);
    assert_eq!(mapping.variable_name(0, 12, "a").as_deref(), Some("growCache"));
    assert_eq!(mapping.variable_name(0, 12, "b"), None);
    assert_eq!(mapping.variable_name(9, 0, "a"), None);
}

#[test]
fn a_name_with_two_meanings_is_left_as_it_is() {
    let mut builder = oxc_sourcemap::SourceMapBuilder::default();
    let sources = ["/a.ts", "/b.ts"].map(|name| builder.add_source_and_content(name, ""));
    let names = ["first", "second", "other"].map(|name| builder.add_name(name));
    // e=1;e=2;e=3;t=4;t=5
    builder.add_token(0, 0, 0, 0, Some(sources[0]), Some(names[0]));
    builder.add_token(0, 4, 1, 0, Some(sources[0]), Some(names[1]));
    builder.add_token(0, 8, 2, 0, Some(sources[1]), Some(names[2]));
    builder.add_token(0, 12, 3, 0, Some(sources[0]), Some(names[2]));
    builder.add_token(0, 16, 4, 0, Some(sources[0]), Some(names[2]));
    let json = builder.into_sourcemap().to_json_string();
    let mapping = Mapping::read(json.as_bytes(), Path::new("/")).unwrap().with_script(b"e=1;e=2;e=3;t=4;t=5");
    assert_eq!(mapping.variable_name(0, 1, "e"), None);
    assert_eq!(mapping.variable_name(0, 9, "e").as_deref(), Some("other"));
    assert_eq!(mapping.variable_name(0, 18, "t").as_deref(), Some("other"));
}

#[test]
fn sections_stand_where_they_are_put() {
    let (first, second) = (map("webpack://app/./src/a.ts?7f2c"), map("webpack:///b.js"));
    let json = format!(
        r#"{{"version":3,"sections":[{{"offset":{{"line":0,"column":0}},"map":{first}}},
           {{"offset":{{"line":7,"column":100}},"map":{second}}}]}}"#
    );
    let mapping = Mapping::read(json.as_bytes(), Path::new("/srv")).unwrap();
    assert_eq!(place(&mapping, 0, 9).as_deref(), Some("src/a.ts:12:10"));
    assert_eq!(place(&mapping, 7, 109).as_deref(), Some("./b.js:12:10"));
    assert_eq!(place(&mapping, 7, 99), None);
    assert_eq!(mapping.name_of(7, 110, "a"), Some("growCache"));
}

#[test]
fn maps_are_found_beside_within_and_in_folders() {
    let folder = tempfile::tempdir().unwrap();
    let script = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let maps = |folders: &[&str]| {
        SourceMaps::new(folders.iter().map(|name| folder.path().join(name)).collect(), None)
    };
    let found = |maps: &SourceMaps, script: &str| maps.original(script, 0, 9).map(|found| found.source);

    let encoded = base64::engine::general_purpose::STANDARD.encode(map("/src/within.ts"));
    let within = script(
        "within.js",
        &format!(
            "a()\n//# sourceMappingURL=old.map\n//# sourceMappingURL=data:application/json;base64,{encoded}\n"
        ),
    );
    assert_eq!(found(&maps(&[]), &within).as_deref(), Some("/src/within.ts"));
    let named = script("named.js", "a()\n//# sourceMappingURL=the%20map.json");
    script("the map.json", &map("/src/named.ts"));
    assert_eq!(found(&maps(&[]), &format!("file://{named}")).as_deref(), Some("/src/named.ts"));
    let beside = script("beside.js", "a()");
    script("beside.js.map", &map("/src/beside.ts"));
    let all = maps(&[]);
    assert_eq!(found(&all, &beside).as_deref(), Some("/src/beside.ts"));
    assert_eq!(all.place(&format!("{beside}:1:10")), "/src/beside.ts:12:10");
    assert_eq!(all.place("node:fs:3:4"), "node:fs:3:4");
    assert_eq!(all.take_unused(), []);

    // A map in a folder precedes the one next to the script, and is the only one for a script on
    // another machine.
    fs::create_dir_all(folder.path().join("maps/_next/static")).unwrap();
    script("maps/beside.js.map", &map("/src/folder.ts"));
    script("maps/_next/static/page.js.map", &map("/src/page.tsx"));
    assert_eq!(found(&maps(&["maps"]), &beside).as_deref(), Some("/src/folder.ts"));
    let url = "https://example.org/_next/static/page.js?dpl=1";
    assert_eq!(found(&maps(&["maps"]), url).as_deref(), Some("/src/page.tsx"));
    assert_eq!(found(&maps(&[]), url), None);
}

#[test]
fn what_is_no_map_of_the_script_is_not_used() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.js");
    let script = path.to_str().unwrap();
    fs::write(&path, "a()").unwrap();
    let map_path = folder.path().join("app.js.map");
    for broken in ["", "{", r#"{"version":3,"mappings":"AAAA","sources":[]}"#, r#"{"sections":[{}]}"#] {
        fs::write(&map_path, broken).unwrap();
        let maps = SourceMaps::new(Vec::new(), None);
        assert_eq!(maps.original(script, 0, 9), None);
        let unused = maps.take_unused();
        assert!(matches!(&unused[..], [Unused::Unreadable { map, .. }] if *map == map_path), "{unused:?}");
        // The defect is reported once.
        assert_eq!(maps.original(script, 0, 9), None);
        assert_eq!(maps.take_unused(), []);
    }
    fs::write(&map_path, map("a.ts")).unwrap();
    let long_ago = SystemTime::now() - Duration::from_secs(3600);
    let maps = SourceMaps::new(Vec::new(), Some(long_ago));
    assert_eq!(maps.original(script, 0, 9), None);
    assert!(matches!(&maps.take_unused()[..], [Unused::ScriptChanged { .. }]));
    // Scripts that are not regular files: they are neither waited for nor read.
    let pipe = folder.path().join("pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RWXU).unwrap();
    let maps = SourceMaps::new(Vec::new(), None);
    for script in
        [pipe.to_str().unwrap(), folder.path().to_str().unwrap(), "node:fs", "", "a.js", "/dev/zero"]
    {
        assert_eq!(maps.original(script, 0, 9), None);
    }
    assert_eq!(maps.take_unused(), []);
}

/// A package's map may lead to sources that were not published; such a location would name another
/// package.
#[test]
fn a_place_in_a_package_stays_in_it() {
    let folder = tempfile::tempdir().unwrap();
    let package = folder.path().join("node_modules/@a/boxes/dist");
    fs::create_dir_all(&package).unwrap();
    let script = package.join("index.js");
    fs::write(&script, "function a(){}class b{}\n").unwrap();
    let place = |source: &str| {
        fs::write(package.join("index.js.map"), map(source)).unwrap();
        let maps = SourceMaps::new(Vec::new(), None);
        maps.place(&format!("{}:1:1", script.display()))
    };
    let own = format!("{}:1:1", script.display());
    assert!(place("../src/store.ts").ends_with("node_modules/@a/boxes/src/store.ts:12:1"));
    for outside in [
        "../../src/store.ts",
        "../../../src/store.ts",
        "../../../../src/store.ts",
        "../node_modules/inner/i.ts",
        "webpack://boxes/src/store.ts",
        "/home/author/boxes/src/store.ts",
        "https://example.org/store.ts",
    ] {
        assert_eq!(place(outside), own, "{outside}");
    }
}

#[test]
fn the_folder_of_a_package_is_the_innermost() {
    for (path, folder) in [
        ("/srv/node_modules/a/index.js", Some("/srv/node_modules/a")),
        ("/srv/node_modules/a/node_modules/@b/c/x.js", Some("/srv/node_modules/a/node_modules/@b/c")),
        ("C:\\srv\\node_modules\\a\\i.js", Some("C:\\srv\\node_modules\\a")),
        ("node_modules/a/i.js", Some("node_modules/a")),
        ("/srv/old_node_modules/a/i.js", None),
        ("/srv/node_modules", None),
        ("/srv/node_modules/", None),
        ("/srv/node_modules/a.js", None),
        ("/srv/src/a.js", None),
    ] {
        assert_eq!(super::package_folder(path), folder, "{path}");
    }
}
