//! Intake: buffers and processes that the agents have published, in time order.

pub(crate) mod clock;
pub(crate) mod merge;
pub(crate) mod pool_growth;
pub(crate) mod samples;
pub(crate) mod scan;
