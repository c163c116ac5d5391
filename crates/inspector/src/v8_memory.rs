//! V8's figures about the memory of the main thread's isolate.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use serde::Deserialize;
use serde_json::json;

use super::connection::{Connection, Isolate, OnEvent, Patience};
use super::error::Result;
use super::message::parse_value;
use crate::own_scripts::QUESTION;

/// Memory of an isolate.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct V8Memory {
    /// Bytes that V8 has allocated from the system for objects.
    pub total_bytes: u64,
    /// Bytes of objects, garbage included.
    pub used_bytes: u64,
    /// Bytes outside of the heap that objects hold; only known for Node.
    pub external_bytes: Option<u64>,
    /// Part of the external bytes in array buffers.
    pub array_buffer_bytes: Option<u64>,
    /// Spaces of the heap; only known for Node.
    pub spaces: Vec<V8Space>,
}

/// Space of V8's heap.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct V8Space {
    /// V8's name of the space.
    #[serde(rename = "space_name", default)]
    pub name: String,
    /// Bytes that the space has allocated.
    #[serde(rename = "space_size", default)]
    pub size_bytes: u64,
    /// Part of these bytes in objects.
    #[serde(rename = "space_used_size", default)]
    pub used_bytes: u64,
    /// Part of these bytes in physical memory, as estimated by V8.
    #[serde(rename = "physical_space_size", default)]
    pub physical_bytes: u64,
}

/// Requests the figures; those that only Node has are missing for other programs.
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
    // The command line API makes `require` available outside of modules.
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
