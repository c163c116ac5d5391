//! .NET, as a runtime that stops its process to tell its heap.

use std::time::Duration;

use anyhow::ensure;
use heapr_managed::{Contents, DotnetError, DotnetHeap, DotnetProcess};

use super::stopping_take::{StoppingOptions, StoppingRuntime, ToldHeap};

impl StoppingRuntime for DotnetProcess {
    const HEAP: &'static str = "dotnet";
    const STOPPER: &'static str = ".NET";
    // Measured with .NET 3.1 and 8, 2.4 million small objects, on a machine with a load of 15.
    const PAUSE_AT_LEAST: Duration = Duration::from_millis(100);
    const PAUSE_PER_GIB: Duration = Duration::from_secs(15);

    fn attach(pid: u32, contents: Contents) -> anyhow::Result<Self> {
        ensure!(
            contents != Contents::Strings,
            ".NET tells no contents of its strings: --contents names has all that it tells"
        );
        Ok(Self::of(pid)?)
    }

    fn used_bytes(&self) -> Option<u64> {
        None
    }

    fn tell(&self, used_bytes: u64, options: &StoppingOptions) -> anyhow::Result<ToldHeap> {
        let DotnetHeap { heap, pause, event_bytes } = DotnetHeap::of(self, used_bytes, options.max_pause)?;
        Ok(ToldHeap { heap, pause, dump_bytes: event_bytes })
    }

    fn advice(error: &anyhow::Error) -> &'static str {
        match error.downcast_ref::<DotnetError>() {
            None | Some(DotnetError::NotAllowed { .. }) => "",
            Some(_) => "; --heap native takes its native heap",
        }
    }

    fn told(dump_bytes: &str) -> String {
        format!("told {dump_bytes} of events")
    }
}
