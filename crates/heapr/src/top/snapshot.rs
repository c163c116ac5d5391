//! Snapshot of the shown session, by its socket.

use heapr_session::{Answer, GraphRequest, Request, SessionClient, SessionName};
use heapr_table::quantity::{bytes_within, plural_within};

/// Takes a snapshot of these processes, of a single one with its graph. The session of this name
/// must still be that of this recorder. Returns a sentence on it.
pub(super) fn take(session: &SessionName, recorder_pid: u32, pids: Vec<u32>) -> Result<String, String> {
    let graph = (pids.len() == 1).then(GraphRequest::default);
    let has_graph = graph.is_some();
    let request = Request::Snapshot { name: "top".to_owned(), pids, graph };
    let answer = SessionClient::find(session).and_then(|client| match client.ask(Request::Status)? {
        Answer::Status(status) if status.recorder_pid == recorder_pid => client.ask(request).map(Some),
        _ => Ok(None),
    });
    match answer.map_err(|error| error.to_string())? {
        Some(Answer::Snapshot(taken)) => Ok(format!(
            "snapshot {}{}: {} in {}",
            taken.number,
            if has_graph { " with its graph" } else { "" },
            bytes_within(taken.block_bytes, taken.block_bytes_plus_minus),
            plural_within(taken.block_count, taken.block_count_plus_minus, "block"),
        )),
        None => Err("the session has ended".to_owned()),
        Some(_) => Err("the session's answer makes no sense".to_owned()),
    }
}
