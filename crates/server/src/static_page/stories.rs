//! Stories of findings, as the page asks for them: the lines of their functions, and single blocks.

use heapr_query::file_name;
use serde_json::{Value, json};

use super::recorder::Recorder;
use crate::error::Result;

/// Number of lines of a function that the page asks for.
const LINES: usize = 500;

pub(super) fn record(recorder: &mut Recorder<'_>, file: usize) -> Result<()> {
    if !recorder.begin(&format!("stories of the findings of file {file}")) {
        return Ok(());
    }
    let findings = recorder.findings(file)?;
    // They are few: a recording tells of the worst alone.
    for finding in findings["findings"].as_array().into_iter().flatten() {
        let filter = filter_of(finding);
        if let Some(symbol) = finding["own_frame"]["symbol"].as_str() {
            let sort = if finding["kind"] == "churn" { "st" } else { "so" };
            // The lines of the function alone, as the page asks for them.
            let lines = json!({"file": file, "filter": filter, "by_line": true, "sort": sort, "match": symbol, "limit": LINES});
            recorder.record("functions", lines)?;
        }
        let examples = recorder.read("examples", json!({"file": file, "filter": filter}))?;
        let stack = examples.map(|examples| examples["blocks"][0]["stack"].clone());
        if let Some(id) = stack.filter(Value::is_string) {
            let source_lines = recorder.story_lines();
            recorder.record("stack", json!({"file": file, "id": id, "source_lines": source_lines}))?;
        }
    }
    Ok(())
}

/// Filter of a finding's story: what it chooses, of the stacks of its function.
fn filter_of(finding: &Value) -> Value {
    let mut filter = finding["chosen"].as_object().cloned().unwrap_or_default();
    filter.remove("sort");
    let own = &finding["own_frame"];
    if own.is_object() && !filter.contains_key("require_frames") {
        let module = own["module"].as_str().map(|module| format!("{}!", file_name(module)));
        let pattern = module.unwrap_or_default() + own["symbol"].as_str().unwrap_or_default();
        filter.insert("require_frames".to_owned(), json!([pattern]));
    }
    Value::Object(filter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_story_is_of_what_its_finding_chooses_in_its_own_function() {
        let own = json!({"module": "/usr/bin/shop", "symbol": "remember"});
        let finding = json!({"own_frame": own, "chosen": {"sort": "so", "range": ["0", "9ns"]}});
        assert_eq!(filter_of(&finding), json!({"range": ["0", "9ns"], "require_frames": ["shop!remember"]}));
        let finding = json!({"own_frame": own, "chosen": {"require_frames": ["f"]}});
        assert_eq!(filter_of(&finding), json!({"require_frames": ["f"]}));
        assert_eq!(filter_of(&json!({"own_frame": null, "chosen": null})), json!({}));
    }
}
