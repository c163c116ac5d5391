//! Standard input and output: a message a line. Calls of tools run beside each other.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};

use crate::lifecycle::Lifecycle;
use crate::message::{Message, parse};
use crate::server::{Server, Step};
use crate::{Error, Result};

/// Largest size of a line, in bytes: many times that of all texts of a call.
const LINE_BYTES_MAX: u64 = 4 << 20;
/// Time for answers that are under way when the client closes its side.
const LAST_ANSWERS: Duration = Duration::from_secs(5);

/// Calls without an answer yet, by the id's JSON. A cancelled call is removed, so that its answer
/// is dropped.
type Running = Arc<Mutex<HashSet<String>>>;

/// Answers the client until it closes standard input.
pub(crate) async fn serve(server: &Arc<Server>) -> Result<()> {
    let (answers, waiting) = mpsc::unbounded_channel();
    let writer = tokio::spawn(write_all(waiting));
    let outcome = read_all(server, &answers).await;
    drop(answers);
    // Calls hold the channel open. Those that take longer end with the server.
    let _ = tokio::time::timeout(LAST_ANSWERS, writer).await;
    outcome
}

async fn write_all(mut waiting: UnboundedReceiver<Value>) {
    let mut output = tokio::io::stdout();
    while let Some(answer) = waiting.recv().await {
        let line = format!("{answer}\n");
        if output.write_all(line.as_bytes()).await.is_err() || output.flush().await.is_err() {
            break;
        }
    }
}

async fn read_all(server: &Arc<Server>, answers: &UnboundedSender<Value>) -> Result<()> {
    let mut input = BufReader::new(tokio::io::stdin());
    let mut lifecycle = Lifecycle::default();
    let running = Running::default();
    let mut line = Vec::new();
    loop {
        line.clear();
        let count = (&mut input).take(LINE_BYTES_MAX).read_until(b'\n', &mut line).await;
        let count = count.map_err(|error| Error::Protocol(error.to_string()))?;
        let is_opening = lifecycle == Lifecycle::Opening;
        if count == 0 {
            let early = "the connection closed before the first request".to_owned();
            return if is_opening { Err(Error::Protocol(early)) } else { Ok(()) };
        }
        if count as u64 == LINE_BYTES_MAX {
            return Err(Error::Protocol(format!("a line of more than {LINE_BYTES_MAX} bytes")));
        }
        if line.trim_ascii().is_empty() {
            continue;
        }
        // (A sending fails if the client no longer reads. Then it closes its other side, too.)
        match parse(&line) {
            Ok(Message::Request(request)) => match server.begin(&mut lifecycle, request) {
                Step::Answer(answer) => drop(answers.send(answer)),
                Step::Call(call) => {
                    let id = call.id.to_string();
                    locked(&running).insert(id.clone());
                    let of_task = (Arc::clone(server), answers.clone(), Arc::clone(&running));
                    tokio::spawn(async move {
                        let (server, answers, running) = of_task;
                        let answer = server.call(call).await;
                        if locked(&running).remove(&id) {
                            let _ = answers.send(answer);
                        }
                    });
                }
            },
            Ok(_) if is_opening => {
                return Err(Error::Protocol("its first message is no request".to_owned()));
            }
            Ok(Message::Notification { method, params }) if method == "notifications/cancelled" => {
                let id = params.get("requestId").map(Value::to_string).unwrap_or_default();
                locked(&running).remove(&id);
            }
            Ok(Message::Notification { .. } | Message::Answer) => {}
            Err(fault) => drop(answers.send(fault.answer(None))),
        }
    }
}

fn locked(running: &Running) -> std::sync::MutexGuard<'_, HashSet<String>> {
    running.lock().unwrap_or_else(PoisonError::into_inner)
}
