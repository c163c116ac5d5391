//! Worker threads of a Node process: each has an isolate, and thus a heap, of its own.

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::json;

use super::connection::{Connection, Isolate, Patience};
use super::error::Result;
use super::message::parse_value;

/// Time to wait for further workers; running workers are usually announced before the answer.
const LATE: Duration = Duration::from_millis(200);

/// Worker thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Worker {
    pub(crate) session_id: String,
    /// Node's number of the thread (`threadId`); the main thread is 0.
    pub thread_number: u32,
    /// Title that Node gives it.
    pub title: String,
    /// URL of its script.
    pub url: String,
}

#[derive(Deserialize)]
struct Attached {
    #[serde(rename = "sessionId")]
    session_id: String,
    #[serde(rename = "workerInfo")]
    info: WorkerInfo,
}

#[derive(Deserialize)]
struct WorkerInfo {
    #[serde(rename = "workerId", default)]
    id: String,
    #[serde(default)]
    title: String,
    #[serde(default)]
    url: String,
}

/// Attaches to all workers and returns them, ordered by number.
pub(crate) fn attach(
    connection: &mut Connection,
    wait: Duration,
    is_cancelled: &AtomicBool,
) -> Result<Vec<Worker>> {
    let mut workers = Vec::new();
    let mut on_event = |event: &str, params: &_| {
        if event == "NodeWorker.attachedToWorker" {
            let Attached { session_id, info } = parse_value(params)?;
            let thread_number = thread_number(&info).unwrap_or(workers.len() as u32 + 1);
            workers.push(Worker { session_id, thread_number, title: info.title, url: info.url });
        }
        Ok(())
    };
    let patience = Patience { silence_max: wait, deadline: None, is_cancelled };
    let params = json!({ "waitForDebuggerOnStart": false });
    connection.call(&Isolate::Main, "NodeWorker.enable", &params, patience, &mut on_event)?;
    connection.listen(&Isolate::Main, Instant::now() + LATE, is_cancelled, &mut on_event)?;
    workers.sort_by_key(|worker: &Worker| worker.thread_number);
    Ok(workers)
}

/// Returns the number of a worker. The title is `Worker 3` in older versions, `[worker 3] name` in
/// newer ones. The id counts sessions.
fn thread_number(info: &WorkerInfo) -> Option<u32> {
    let of_title = info
        .title
        .split(|character: char| !character.is_ascii_digit())
        .find(|digits| !digits.is_empty())
        .and_then(|digits| digits.parse().ok());
    of_title.or_else(|| info.id.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_a_worker_stands_in_its_title() {
        let number = |title: &str, id: &str| {
            thread_number(&WorkerInfo { id: id.to_owned(), title: title.to_owned(), url: String::new() })
        };
        assert_eq!(number("Worker 3", "1"), Some(3));
        assert_eq!(number("[worker 12] fetcher 9", "1"), Some(12));
        assert_eq!(number("fetcher", "4"), Some(4));
        assert_eq!(number("", ""), None);
    }
}
