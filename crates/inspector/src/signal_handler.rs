//! Handler in a running Node that writes a snapshot on a signal, as `--heapsnapshot-signal` does
//! from the start.
//!
//! Only a handler allows comparable snapshots at any time without an open port in between. V8
//! numbers all objects anew after each inspector session, and the handler needs no session.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use serde::Deserialize;
use serde_json::json;

use super::connection::{Connection, Isolate, Patience};
use super::error::{Error, Result};
use super::message::parse_value;
use super::process::Process;
use super::signal_file::SnapshotSignal;

/// Script that installs the handler; `SIGNAL` is replaced. The handler catches all exceptions,
/// because an uncaught one would end the program.
const INSTALL: &str = "(() => {
    if (process.listenerCount('SIGNAL') > 0) return '';
    const { writeHeapSnapshot } = require('v8'), fs = require('fs'), path = require('path');
    let directory = process.cwd();
    try { fs.rmdirSync(fs.mkdtempSync(path.join(directory, '.heapr-'))); }
    catch { directory = fs.mkdtempSync(path.join(require('os').tmpdir(), 'heapr-')); }
    const pad = (number, width) => String(number).padStart(width, '0');
    let count = 0;
    process.on('SIGNAL', () => {
        const now = new Date();
        const date = now.getFullYear() + pad(now.getMonth() + 1, 2) + pad(now.getDate(), 2);
        const time = pad(now.getHours(), 2) + pad(now.getMinutes(), 2) + pad(now.getSeconds(), 2);
        const name = `Heap.${date}.${time}.${process.pid}.0.${pad(++count, 3)}.heapsnapshot`;
        try { writeHeapSnapshot(path.join(directory, name)); } catch {}
    });
    return directory;
})()";

#[derive(Deserialize)]
struct Evaluated {
    result: Value,
    #[serde(rename = "exceptionDetails")]
    exception: Option<Exception>,
}

#[derive(Deserialize)]
struct Value {
    #[serde(default)]
    value: Option<String>,
    #[serde(default)]
    description: Option<String>,
}

#[derive(Deserialize)]
struct Exception {
    text: String,
}

pub(crate) fn install(
    connection: &mut Connection,
    process: &Process,
    signal: SnapshotSignal,
    wait: Duration,
    is_cancelled: &AtomicBool,
) -> Result<PathBuf> {
    let taken = || Error::SignalTaken { pid: process.pid, signal: signal.name() };
    if process.catches(signal.signal()) {
        return Err(taken());
    }
    let patience = Patience { silence_max: wait, deadline: None, is_cancelled };
    let expression = INSTALL.replace("SIGNAL", signal.name());
    // The command line API makes `require` available outside of modules.
    let params = json!({ "expression": expression, "includeCommandLineAPI": true, "silent": true, "returnByValue": true });
    let method = "Runtime.evaluate";
    let answer = connection.call(&Isolate::Main, method, &params, patience, &mut |_, _| Ok(()))?;
    let Evaluated { result, exception } = parse_value(&answer)?;
    if let Some(exception) = exception {
        let message = result.description.unwrap_or(exception.text);
        return Err(Error::Refused { method: method.to_owned(), message });
    }
    match result.value {
        Some(directory) if !directory.is_empty() => Ok(PathBuf::from(directory)),
        _ => Err(taken()),
    }
}
