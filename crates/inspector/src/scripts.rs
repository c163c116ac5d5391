//! Scripts of an isolate: origin, source map and text.
//!
//! ```text
//! -> Debugger.enable, Debugger.setSkipAllPauses     <- Debugger.scriptParsed, one for each script
//! -> Debugger.getScriptSource {scriptId}            for those whose text is wanted
//! -> Debugger.disable
//! ```
//! A `debugger;` statement would stop the program while the debugger is enabled. Pauses are
//! therefore skipped, and a pause that came before is ended.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::connection::{Connection, Isolate, Patience};
use super::error::{Error, Result};
use super::message::parse_value;
use crate::own_scripts::is_own;

/// Script as V8 describes it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Script {
    /// Number of the script, as in the locations of a snapshot.
    pub id: u32,
    /// Path or URL; empty for most scripts made by `eval` and `new Function`.
    pub url: String,
    /// URL of the source map, from the script's last line or a header of the server.
    pub source_map_url: String,
    /// Length in UTF-16 units.
    pub length: u64,
    /// Start in the file that contains the script, from 0; scripts in pages start further down.
    pub start: (u32, u32),
}

/// Largest number of scripts that are listed.
const SCRIPTS_MAX: usize = 1 << 18;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Parsed {
    script_id: String,
    #[serde(default)]
    url: String,
    #[serde(default, rename = "sourceMapURL")]
    source_map_url: String,
    #[serde(default)]
    length: u64,
    #[serde(default)]
    start_line: u32,
    #[serde(default)]
    start_column: u32,
    #[serde(default)]
    script_language: String,
}

/// Lists the scripts, and passes those that `wants` accepts to `take` with their texts.
pub(crate) fn each(
    connection: &mut Connection,
    isolate: &Isolate,
    wait: Duration,
    is_cancelled: &AtomicBool,
    wants: &mut dyn FnMut(&Script) -> bool,
    take: &mut dyn FnMut(Script, String),
) -> Result<()> {
    let patience = Patience { silence_max: wait, deadline: None, is_cancelled };
    let mut listing = Listing::default();
    let outcome = (|| {
        // The requests are sent together, so that nothing runs in between.
        connection.send(isolate, "Debugger.enable", &json!({}))?;
        listing.ask(connection, isolate, patience, "Debugger.setSkipAllPauses", json!({ "skip": true }))?;
        for script in std::mem::take(&mut listing.scripts) {
            if !wants(&script) {
                continue;
            }
            let params = json!({ "scriptId": script.id.to_string() });
            match listing.ask(connection, isolate, patience, "Debugger.getScriptSource", params) {
                Ok(answer) => {
                    let Source { text } = parse_value(&answer)?;
                    if !is_own(&text) {
                        take(script, text);
                    }
                }
                // The script was collected in the meantime.
                Err(Error::Refused { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    })();
    let never = AtomicBool::new(false);
    let patience = Patience { is_cancelled: &never, ..patience };
    let disabled = listing.ask(connection, isolate, patience, "Debugger.disable", json!({}));
    outcome.and(disabled.map(drop))
}

#[derive(Deserialize)]
struct Source {
    #[serde(rename = "scriptSource")]
    text: String,
}

/// Scripts and pauses announced so far.
#[derive(Debug, Default)]
struct Listing {
    scripts: Vec<Script>,
    is_paused: bool,
}

impl Listing {
    /// Sends a request and waits for its answer; scripts announced meanwhile are recorded.
    fn ask(
        &mut self,
        connection: &mut Connection,
        isolate: &Isolate,
        patience: Patience<'_>,
        method: &str,
        params: serde_json::Value,
    ) -> Result<Box<RawValue>> {
        let answer = connection
            .call(isolate, method, &params, patience, &mut |event, params| self.hear(event, params))?;
        if std::mem::take(&mut self.is_paused) {
            connection.call(isolate, "Debugger.resume", &json!({}), patience, &mut |_, _| Ok(()))?;
        }
        Ok(answer)
    }

    fn hear(&mut self, event: &str, params: &RawValue) -> Result<()> {
        match event {
            "Debugger.scriptParsed" if self.scripts.len() < SCRIPTS_MAX => {
                let parsed: Parsed = parse_value(params)?;
                if let Some(script) = script(parsed) {
                    self.scripts.push(script);
                }
            }
            "Debugger.paused" => self.is_paused = true,
            "Debugger.resumed" => self.is_paused = false,
            _ => {}
        }
        Ok(())
    }
}

/// Converts a parsed script. Returns `None` for other languages and invalid numbers.
fn script(parsed: Parsed) -> Option<Script> {
    let is_script = matches!(parsed.script_language.as_str(), "" | "JavaScript");
    let id = parsed.script_id.parse().ok().filter(|_| is_script)?;
    Some(Script {
        id,
        url: parsed.url,
        source_map_url: parsed.source_map_url,
        length: parsed.length,
        start: (parsed.start_line, parsed.start_column),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(params: &str) -> Vec<Script> {
        let mut listing = Listing::default();
        let params = RawValue::from_string(params.to_owned()).unwrap();
        listing.hear("Debugger.scriptParsed", &params).unwrap();
        listing.scripts
    }

    #[test]
    fn scripts_are_noted_and_modules_of_wasm_are_not() {
        let script = heard(
            r#"{"scriptId":"72","url":"/srv/a.js","startLine":3,"startColumn":8,"length":120,
                "sourceMapURL":"a.js.map","scriptLanguage":"JavaScript","hash":"x","new":{}}"#,
        );
        let expected = Script {
            id: 72,
            url: "/srv/a.js".into(),
            source_map_url: "a.js.map".into(),
            length: 120,
            start: (3, 8),
        };
        assert_eq!(script, [expected]);
        assert_eq!(heard(r#"{"scriptId":"7"}"#).len(), 1, "older ones say less");
        assert_eq!(heard(r#"{"scriptId":"7","scriptLanguage":"WebAssembly"}"#), []);
        assert_eq!(heard(r#"{"scriptId":"seven"}"#), []);
    }

    #[test]
    fn a_pause_is_noted_until_it_ends() {
        let mut listing = Listing::default();
        let nothing = RawValue::from_string("{}".to_owned()).unwrap();
        listing.hear("Debugger.paused", &nothing).unwrap();
        assert!(listing.is_paused);
        listing.hear("Debugger.resumed", &nothing).unwrap();
        assert!(!listing.is_paused);
    }
}
