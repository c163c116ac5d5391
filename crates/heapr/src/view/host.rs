//! What the server asks the command line: to find names and indexes.

use std::path::Path;

use heapr_query::SymbolSource;
use heapr_server::Host;
use heapr_trace::{SnapshotTrigger, Trace};
use heapr_v8::IndexStore;

use crate::report::names::{NameArguments, TraceNames};
use crate::snapshot::native::why;
use crate::snapshot::v8::index_cache;

/// See the module.
#[derive(Debug)]
pub(crate) struct CommandLineHost {
    pub(crate) names: NameArguments,
}

impl Host for CommandLineHost {
    fn names(&self, trace: &Trace) -> Box<dyn SymbolSource + Send> {
        Box::new(TraceNames::new(trace, &self.names))
    }

    fn snapshot_indexes(&self, path: &Path) -> Option<IndexStore> {
        index_cache::store_for(path)
    }

    fn trigger(&self, trigger: SnapshotTrigger) -> String {
        why(trigger)
    }

    fn version(&self) -> &str {
        env!("CARGO_PKG_VERSION")
    }
}
