//! Redacted snapshots: the program's texts never reach the disk.

use crate::node_server::{Program, has_node};

const KEEPER: &str = "
    class Customer { constructor(number) { this.mail = `jane.doe.${number}` + '@private.example'; } }
    globalThis.customers = Array.from({ length: 300 }, (_, at) => new Customer(at));
    for (const customer of customers) JSON.stringify({ [customer.mail]: 1 });
    setInterval(() => {}, 1000);
    console.log('ready');";

#[test]
fn a_redacted_snapshot_holds_the_structure_and_no_text() {
    if !has_node() {
        return;
    }
    let program = Program::node(&["--inspect-port=0"], KEEPER, &[]);
    let pid = program.pid().to_string();
    let take = |name: &str, options: &[&str]| {
        let arguments =
            [&["snapshot", "take", "-q", &pid, "-o", name, "--format", "json"][..], options].concat();
        let outcome = program.heapr(&arguments);
        assert_eq!(outcome.status, 0, "{}", outcome.stderr);
        let answer: serde_json::Value = serde_json::from_str(&outcome.stdout).unwrap();
        let text = std::fs::read_to_string(program.folder.path().join(name)).unwrap();
        assert_eq!(answer["snapshots"][0]["file_bytes"].as_u64(), Some(text.len() as u64));
        text
    };
    let plain = take("plain.heapsnapshot", &[]);
    assert!(plain.contains("jane.doe") && plain.contains("private.example"));
    let redacted = take("redacted.heapsnapshot", &["--redact"]);
    assert!(!redacted.contains("jane.doe") && !redacted.contains("private.example"));
    assert!(redacted.contains("\"Customer\"") && redacted.contains("\"mail\""));
    let named = take("named.heapsnapshot", &["--redact=names"]);
    assert!(!named.contains("jane.doe") && !named.contains("\"Customer\"") && !named.contains("\"mail\""));
    let summary = program.heapr(&["snapshot", "summary", "redacted.heapsnapshot", "--format", "json"]);
    let summary: serde_json::Value = serde_json::from_str(&summary.stdout).unwrap();
    let customers = summary["rows"].as_array().unwrap().iter().find(|row| row["class"] == "Customer");
    assert_eq!(customers.map(|row| &row["object_count"]), Some(&300.into()));
    let checked = program.heapr(&["snapshot", "check", "redacted.heapsnapshot"]);
    assert_eq!(checked.status, 0, "{checked:?}");
    // A snapshot that the program writes by itself cannot be redacted.
    let refused = program.heapr(&["snapshot", "take", &pid, "--redact", "--signal", "SIGUSR2"]);
    assert_eq!(refused.status, 2);
    assert_eq!(program.listening(), [0_u16; 0]);
}
