//! Scripts that no file holds as they ran: their source maps and texts are saved with the snapshot.

use serde_json::Value;

use crate::node_server::{Program, has_node};

/// The functions share the declarations of the function around them, and each variable is used by
/// one function. A variable whose function is gone is unused; `alive` names the variables that are
/// used otherwise.
const CONTEXTS: &str = "
    class Upload { constructor() { this.chunks = Array.from({ length: 500 }, (_, at) => ({ at })); } }
    globalThis.kept = [];
    function receive(number) {
        const upload = new Upload(), seen = new Upload(), later = new Upload(), big = new Upload();
        let total = 0;
        (function use() { total += upload.chunks.length + later.chunks.length; return /[']upload/; })();
        const report = () => `${number}: ${total} upload ${seen.chunks.length}`;
        kept.push(report, { stop() { return [later].map(big => big); } }.stop, (big) => ({ upload: big.upload }));
        return () => big;
    }
    for (let at = 0; at < 20; at++) receive(at);
    async function waiting() {
        const waited = new Upload();
        const inner = () => waited;
        await new Promise((resolve) => kept.push(resolve));
        return inner();
    }
    waiting();
    setInterval(() => {}, 1000);
    console.log('ready');";

fn unused(program: &Program, file: &str) -> Value {
    let arguments = ["snapshot", "closures", "--unused", file, "--format", "json"];
    let outcome = program.heapr(&arguments);
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    serde_json::from_str(&outcome.stdout).unwrap()
}

fn take(program: &Program, file: &str) {
    let pid = program.pid().to_string();
    let outcome = program.heapr(&["snapshot", "take", "-q", &pid, "-o", file]);
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
}

fn has_kept_scripts(program: &Program, file: &str) -> bool {
    program.folder.path().join(format!("{file}.scripts")).exists()
}

#[test]
fn variables_that_no_function_uses_are_told_with_what_keeps_them() {
    if !has_node() {
        return;
    }
    let program = Program::node(&["--inspect-port=0"], CONTEXTS, &[]);
    take(&program, "a.heapsnapshot");
    assert!(!has_kept_scripts(&program, "a.heapsnapshot"), "app.js is a file");
    let answer = unused(&program, "a.heapsnapshot");
    assert_eq!(answer["schema"], "heapr.snapshot.unused-variables/1");
    let rows: Vec<&Value> =
        answer["rows"].as_array().unwrap().iter().filter(|row| row["class"] == "Upload").collect();
    let names: Vec<&str> = rows.iter().map(|row| row["variable"].as_str().unwrap()).collect();
    assert_eq!(
        {
            let mut names = names.clone();
            names.sort_unstable();
            names
        },
        ["big", "upload"],
        "{answer:#}"
    );
    for row in &rows {
        assert_eq!(row["count"], 20);
        let bytes = row["retained_bytes"].as_u64().unwrap();
        assert!((20 * 500 * 20..20 * 500 * 100).contains(&bytes), "{row}");
        let place = row["place"].as_str().unwrap();
        assert!(place.contains("app.js:8:"), "the first that is left in the text: {place}");
    }
    let text = program.heapr(&["snapshot", "closures", "--unused", "a.heapsnapshot"]).stdout;
    assert!(text.contains("upload") && text.contains("Upload"), "{text}");
    let csv =
        program.heapr(&["snapshot", "closures", "--unused", "a.heapsnapshot", "--format", "csv"]).stdout;
    assert!(csv.starts_with("retained_bytes,count,variable,class,"), "{csv}");
}

/// The program compiled at load time: its text is in no file, and its map only in the text.
#[test]
fn the_source_map_and_text_of_a_script_that_is_no_file_come_from_the_inspector() {
    if !has_node() {
        return;
    }
    // Line n of the script is line n + 100 of the source, for 30 lines.
    let mappings = format!("{}{}", "AAoGA", ";AACA".repeat(29));
    let map =
        serde_json::json!({ "version": 3, "sources": ["upload.ts"], "names": [], "mappings": mappings });
    let script = format!(
        "const text = {};
         const map = Buffer.from({}).toString('base64');
         const mark = '//# source' + 'MappingURL=data:application/json;base64,';
         require('vm').runInThisContext(text + '\\n' + mark + map, {{ filename: __dirname + '/gone.js' }});
         eval('globalThis.made = () => 1; debugger;');",
        serde_json::json!(CONTEXTS),
        serde_json::json!(map.to_string()),
    );
    let mut program = Program::node(&["--inspect-port=0"], &script, &[]);
    take(&program, "a.heapsnapshot");
    assert!(has_kept_scripts(&program, "a.heapsnapshot"));
    let answer = unused(&program, "a.heapsnapshot");
    let row = answer["rows"].as_array().unwrap().iter().find(|row| row["variable"] == "upload").unwrap();
    assert!(row["place"].as_str().unwrap().ends_with("upload.ts:108:1"), "{row}");
    let objects = program.heapr(&["snapshot", "summary", "a.heapsnapshot", "--format", "csv"]).stdout;
    let upload = objects.lines().find(|line| line.starts_with("Upload,")).expect("the class");
    assert!(upload.contains("upload.ts:102:1"), "{upload}");
    // Without the saved scripts, the answer claims no names.
    std::fs::remove_file(program.folder.path().join("a.heapsnapshot.scripts")).unwrap();
    let outcome = program.heapr(&["snapshot", "closures", "--unused", "a.heapsnapshot"]);
    assert!(!outcome.stdout.contains("Upload"), "{}", outcome.stdout);
    assert!(outcome.stderr.contains("gone.js"), "{}", outcome.stderr);
    let pid = program.pid().to_string();
    for options in [&["--no-scripts"][..], &["--redact"]] {
        let arguments =
            [&["snapshot", "take", "-q", "-f", &pid, "-o", "b.heapsnapshot"][..], options].concat();
        assert_eq!(program.heapr(&arguments).status, 0);
        assert!(!has_kept_scripts(&program, "b.heapsnapshot"), "{options:?}");
    }
    assert!(program.is_alive());
}

/// While scripts are listed, the program must not stop at a `debugger` statement.
#[test]
fn a_debugger_statement_stops_nothing() {
    if !has_node() {
        return;
    }
    let script =
        "let count = 0; setInterval(() => { for (let at = 0; at < 1000; at++) { count++; debugger; } }, 1);
        const fs = require('fs'); setInterval(() => fs.writeFileSync('count', String(count)), 5);
        for (let at = 0; at < 300; at++) eval(`globalThis.made${at} = () => ${at}`);
        console.log('ready');";
    let program = Program::node(&["--inspect-port=0"], script, &[]);
    take(&program, "a.heapsnapshot");
    assert!(has_kept_scripts(&program, "a.heapsnapshot"));
    // The file is empty while it is being written.
    let count = || std::fs::read_to_string(program.folder.path().join("count")).ok()?.parse::<u64>().ok();
    let before = heapr_testkit::wait_until("it counts", count);
    heapr_testkit::wait_until("it goes on", || count().filter(|&count| count > before));
}

#[test]
fn what_heapr_asks_for_is_in_no_later_snapshot_that_was_not_in_the_first() {
    if !has_node() {
        return;
    }
    let program = Program::node(&["--inspect-port=0"], CONTEXTS, &[]);
    let files = ["a.heapsnapshot", "b.heapsnapshot", "c.heapsnapshot"];
    files.iter().for_each(|file| take(&program, file));
    let mut arguments = vec!["snapshot", "suspects", "--format", "json", "--top", "100"];
    arguments.extend(files);
    let outcome = program.heapr(&arguments);
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    let answer: Value = serde_json::from_str(&outcome.stdout).unwrap();
    // V8's hashes of the scripts. Objects that are recognised by location alone may seem to grow by
    // other texts from the first to the second snapshot; the sum does not.
    let is_hash = |text: &str| text.len() >= 40 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let has_hash = |suspect: &&Value| {
        let collects = suspect["collects"].as_array().unwrap();
        collects.iter().any(|it| it["example_text"].as_str().is_some_and(is_hash))
    };
    let texts: Vec<&Value> = answer["suspects"].as_array().unwrap().iter().filter(has_hash).collect();
    assert!(texts.is_empty(), "{texts:#?}");
}
