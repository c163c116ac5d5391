//! What V8 says of the memory of the main thread's isolate.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use serde::Deserialize;
use serde_json::json;

use super::connection::{Connection, Isolate, OnEvent, Patience};
use super::error::Result;
use super::message::parse_value;
use crate::own_scripts::QUESTION;

/// What an isolate has.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct V8Memory {
    /// What V8 has taken from the system for objects.
    pub total_bytes: u64,
    /// Objects, those that are garbage already, too.
    pub used_bytes: u64,
    /// Memory outside of the heap that objects hold; of Node alone.
    pub external_bytes: Option<u64>,
    /// Of that in array buffers.
    pub array_buffer_bytes: Option<u64>,
    /// Parts of the heap; of Node alone.
    pub spaces: Vec<V8Space>,
}

/// A part of V8's heap.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct V8Space {
    /// V8's name.
    #[serde(rename = "space_name", default)]
    pub name: String,
    /// What it has taken.
    #[serde(rename = "space_size", default)]
    pub size_bytes: u64,
    /// Of that in objects.
    #[serde(rename = "space_used_size", default)]
    pub used_bytes: u64,
    /// Of that in memory, as V8 believes.
    #[serde(rename = "physical_space_size", default)]
    pub physical_bytes: u64,
}

/// Asks; what only Node knows is missing in others.
pub(crate) fn ask(
    connection: &mut Connection,
    wait: Duration,
    is_cancelled: &AtomicBool,
    (used_bytes, total_bytes): (u64, u64),
) -> Result<V8Memory> {
    #[derive(Deserialize)]
    struct Evaluated {
        result: Value,
    }
    #[derive(Deserialize)]
    struct Value {
        #[serde(default)]
        value: Option<String>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Answer {
        external: u64,
        array_buffers: u64,
        spaces: Vec<V8Space>,
    }
    let patience = Patience { silence_max: wait, deadline: None, is_cancelled };
    // The command line API is what makes `require` known outside of modules.
    let params = json!({ "expression": QUESTION, "includeCommandLineAPI": true, "silent": true, "returnByValue": true });
    let nothing: OnEvent<'_> = &mut |_, _| Ok(());
    let answer = connection.call(&Isolate::Main, "Runtime.evaluate", &params, patience, nothing)?;
    let mut memory = V8Memory { used_bytes, total_bytes, ..V8Memory::default() };
    let text = parse_value::<Evaluated>(&answer).ok().and_then(|evaluated| evaluated.result.value);
    let Some(answer) = text.and_then(|text| serde_json::from_str::<Answer>(&text).ok()) else {
        return Ok(memory);
    };
    memory.external_bytes = Some(answer.external);
    memory.array_buffer_bytes = Some(answer.array_buffers);
    memory.spaces = answer.spaces;
    Ok(memory)
}
