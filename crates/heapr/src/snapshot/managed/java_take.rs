//! Java's virtual machine, as a runtime that stops its process to write its heap.

use std::time::Duration;

use anyhow::{Context as _, bail};
use heapr_managed::{AttachError, Attached, Contents, HeapDump, read_hprof};

use super::stopping_take::{StoppingOptions, StoppingRuntime, ToldHeap};

impl StoppingRuntime for Attached {
    const HEAP: &'static str = "java";
    const STOPPER: &'static str = "virtual machine";
    // Measured with JDK 17 on a busy machine.
    const PAUSE_AT_LEAST: Duration = Duration::from_millis(100);
    const PAUSE_PER_GIB: Duration = Duration::from_secs(9);

    fn attach(pid: u32, _contents: Contents) -> anyhow::Result<Self> {
        Ok(Self::to(pid)?)
    }

    /// Java 8 does not say it.
    fn used_bytes(&self) -> Option<u64> {
        Attached::used_bytes(self)
    }

    fn tell(&self, used_bytes: u64, options: &StoppingOptions) -> anyhow::Result<ToldHeap> {
        let dump = HeapDump::of(self, Some(used_bytes), options.max_pause)?;
        let heap = read_hprof(&|offset| dump.open(offset), options.contents)
            .context("its heap dump cannot be read")?;
        if let Some(offset) = heap.cut_at {
            bail!("its virtual machine wrote a heap dump that is cut at offset {offset}: is its disk full?");
        }
        Ok(ToldHeap { heap, pause: Some(dump.written_in), dump_bytes: dump.bytes() })
    }

    fn advice(error: &anyhow::Error) -> &'static str {
        match error.downcast_ref::<AttachError>() {
            None | Some(AttachError::NotAllowed { .. }) => "",
            Some(_) => "; --heap native takes its native heap",
        }
    }

    fn told(dump_bytes: &str) -> String {
        format!("wrote {dump_bytes}, which is removed")
    }
}
