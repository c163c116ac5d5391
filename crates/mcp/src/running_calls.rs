//! Calls of tools without an answer yet.

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use tokio::sync::mpsc::UnboundedSender;
use tokio::task::AbortHandle;

/// A call under way.
#[derive(Debug)]
struct Running {
    /// Number of the call: a later one may have the same id.
    number: u64,
    /// Task of a call that may be ended at any moment.
    task: Option<AbortHandle>,
}

#[derive(Debug, Default)]
struct State {
    next: u64,
    /// Calls by the id's JSON.
    calls: HashMap<String, Running>,
}

/// Calls without an answer yet. The answer of a cancelled one is dropped.
#[derive(Debug, Clone, Default)]
pub(crate) struct RunningCalls(Arc<Mutex<State>>);

impl RunningCalls {
    fn locked(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a call beside the others and sends its answer. Returns `false` if a call of this id is
    /// under way. `only_reads`: the call may be ended in the middle.
    pub(crate) fn begin(
        &self,
        id: &Value,
        only_reads: bool,
        answers: &UnboundedSender<Value>,
        call: impl Future<Output = Value> + Send + 'static,
    ) -> bool {
        let id = id.to_string();
        // The task removes the call under the lock, and so only after it was added.
        let mut state = self.locked();
        if state.calls.contains_key(&id) {
            return false;
        }
        let number = state.next;
        state.next += 1;
        let of_task = (self.clone(), answers.clone(), id.clone());
        let task = tokio::spawn(async move {
            let (calls, answers, id) = of_task;
            let answer = call.await;
            if calls.end(&id, number) {
                let _ = answers.send(answer);
            }
        });
        let task = only_reads.then(|| task.abort_handle());
        state.calls.insert(id, Running { number, task });
        true
    }

    /// Removes a call that has ended. Returns `false` if it was cancelled.
    fn end(&self, id: &str, number: u64) -> bool {
        let mut state = self.locked();
        let is_there = state.calls.get(id).is_some_and(|running| running.number == number);
        if is_there {
            state.calls.remove(id);
        }
        is_there
    }

    /// Cancels the call of an id: it gets no answer, and ends at once if it only reads.
    pub(crate) fn cancel(&self, id: &Value) {
        if let Some(Running { task: Some(task), .. }) = self.locked().calls.remove(&id.to_string()) {
            task.abort();
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::{mpsc, oneshot};

    use super::*;

    #[test]
    fn one_call_of_an_id_runs_and_a_cancelled_one_that_only_reads_ends() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let calls = RunningCalls::default();
            let (answers, mut sent) = mpsc::unbounded_channel();
            let (held, ended) = oneshot::channel::<()>();
            let waits = async move {
                let _held = held;
                std::future::pending().await
            };
            assert!(calls.begin(&7.into(), true, &answers, waits));
            assert!(!calls.begin(&7.into(), true, &answers, async { Value::from("second") }));
            assert!(calls.begin(&"7".into(), true, &answers, async { Value::from("of a text") }));
            assert_eq!(sent.recv().await, Some("of a text".into()));
            calls.cancel(&7.into());
            // The task is dropped, and what it held with it.
            assert!(ended.await.is_err());
            assert!(calls.begin(&7.into(), false, &answers, async { Value::from("again") }));
            assert_eq!(sent.recv().await, Some("again".into()));
        });
    }

    #[test]
    fn a_cancelled_call_that_acts_ends_by_itself_without_an_answer() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let calls = RunningCalls::default();
            let (answers, mut sent) = mpsc::unbounded_channel();
            let (go, waits) = oneshot::channel::<()>();
            let (done, is_done) = oneshot::channel::<()>();
            let acts = async move {
                let _ = waits.await;
                let _ = done.send(());
                Value::from("acted")
            };
            assert!(calls.begin(&1.into(), false, &answers, acts));
            calls.cancel(&1.into());
            assert!(calls.begin(&1.into(), false, &answers, std::future::pending()));
            go.send(()).unwrap();
            is_done.await.unwrap();
            tokio::task::yield_now().await;
            assert!(sent.try_recv().is_err());
        });
    }
}
