//! Refusals of a server without permission to attach, and replies to invalid calls.

use serde_json::json;

use crate::client::with_client;

#[test]
fn every_tool_is_listed_with_its_arguments_and_those_that_act_are_refused() {
    let scratch = tempfile::tempdir().unwrap();
    with_client(scratch.path(), &[], async |client| {
        let tools = client.tools().await;
        let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_ref()).collect();
        let expected = [
            "list_processes",
            "record",
            "attach",
            "snapshot",
            "explain",
            "summary",
            "report",
            "source_lines",
            "diff",
            "suspects",
            "retainers",
        ];
        assert_eq!(names, expected);
        for tool in &tools {
            let acts = ["record", "attach", "snapshot"].contains(&tool.name.as_ref());
            let hint = tool.annotations.as_ref().unwrap().read_only_hint;
            assert_eq!(hint, Some(!acts), "{}", tool.name);
            let properties = tool.input_schema["properties"].as_object().unwrap();
            assert!(properties.values().all(|property| property["description"].is_string()), "{}", tool.name);
        }
        let own = std::process::id();
        for (tool, arguments) in [
            ("record", json!({"program": ["true"]})),
            ("attach", json!({"pid": own})),
            ("snapshot", json!({"pid": own})),
        ] {
            let refused = client.call(tool, arguments).await.unwrap_err();
            assert!(refused.contains("--allow-attach"), "{refused}");
        }
        assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 0, "nothing was written");
    });
}

#[test]
fn no_argument_becomes_an_option_and_errors_are_answers() {
    let scratch = tempfile::tempdir().unwrap();
    let trace = scratch.path().join("one.heapr");
    let stored = include_bytes!("../../../trace/tests/data/version-1.heapr");
    std::fs::write(&trace, stored).unwrap();
    let written = scratch.path().join("written");
    with_client(scratch.path(), &[], async |client| {
        let path = trace.to_str().unwrap();
        let output = format!("--output={}", written.display());
        let pipe = scratch.path().join("pipe.heapr");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        for (tool, arguments) in [
            ("report", json!({"trace": output})),
            ("report", json!({"trace": path, "sort": output})),
            ("report", json!({"trace": path, "from": output})),
            ("report", json!({"trace": path, "at": output})),
            ("report", json!({"trace": path, "thread": output})),
            ("report", json!({"trace": path, "callers_of": output})),
            ("report", json!({"trace": path, "require_frames": [output]})),
            ("summary", json!({"file": "t7"})),
            ("summary", json!({"file": "no/such/file"})),
            ("suspects", json!({"snapshots": [path, output]})),
            ("retainers", json!({"snapshot": path, "object": output})),
            ("explain", json!({"targets": [output]})),
            ("report", json!({"trace": path, "top": -1})),
            ("report", json!({"trace": path, "nonsense": 1})),
            ("report", json!({"file": "/dev/zero"})),
            ("summary", json!({"file": pipe})),
            ("explain", json!({})),
            ("explain", json!({"files": ["/dev/stdin"]})),
        ] {
            let shown = format!("{tool} {arguments}");
            match client.call(tool, arguments).await {
                // A pattern that matches no frame is not an error.
                Ok(answer) => {
                    assert!(shown.contains("require_frames") || shown.contains("thread"), "{shown}: {answer}")
                }
                Err(said) => assert!(!said.is_empty() && !said.contains("panicked"), "{shown}: {said}"),
            }
        }
        assert!(!written.exists());
        // An error names the argument that is wrong.
        for (name, value) in
            [("from", "noon"), ("to", "-1"), ("size_from", "x"), ("lifetime_to", "y"), ("at", "z")]
        {
            let said = client.call("report", json!({"file": path, name: value})).await.unwrap_err();
            assert!(said.contains(&format!("argument {name}: ")), "{name}: {said}");
        }
        assert!(client.call("no_such_tool", json!({})).await.is_err());
        // The server still answers.
        let summary = client.ask("summary", json!({"file": path})).await;
        assert!(summary.contains("Peak"), "{summary}");
    });
}
