//! Standard input and output: a message a line. Calls of tools run beside each other.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};

use crate::lifecycle::Lifecycle;
use crate::message::{Fault, Message, parse};
use crate::running_calls::RunningCalls;
use crate::server::{Server, Step};
use crate::{Error, Result};

/// Largest size of a line, in bytes: many times that of all texts of a call.
const LINE_BYTES_MAX: u64 = 4 << 20;
/// Time for answers that are under way when the client closes its side.
const LAST_ANSWERS: Duration = Duration::from_secs(5);

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
    let running = RunningCalls::default();
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
                    let (id, only_reads) = (call.id.clone(), call.is_read_only());
                    let of_call = Arc::clone(server);
                    if !running.begin(&id, only_reads, answers, async move { of_call.call(call).await }) {
                        let _ = answers.send(Fault::same_id().answer(Some(&id)));
                    }
                }
            },
            Ok(Message::Answer) if is_opening => {
                return Err(Error::Protocol("its first message is no request".to_owned()));
            }
            Ok(Message::Notification { method, params }) if method == "notifications/cancelled" => {
                if let Some(id) = params.get("requestId") {
                    running.cancel(id);
                }
            }
            Ok(Message::Notification { .. } | Message::Answer) => {}
            Err((fault, id)) => drop(answers.send(fault.answer(id.as_ref()))),
        }
    }
}
