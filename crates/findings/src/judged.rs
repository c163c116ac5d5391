//! Inputs of the judgement, beside the recording.

use heapr_query::{OwnCode, PackageSource, Suppressions};

/// Rules by which a recording is judged, and its name.
#[derive(Debug, Clone, Copy)]
pub struct Judged<'a> {
    /// Rule for which code is the program's.
    pub own: &'a OwnCode,
    /// Names of the packages of files.
    pub packages: &'a dyn PackageSource,
    /// Suppressions: sites that they match are left out of the findings.
    pub left_out: &'a Suppressions,
    /// Name of the file in commands.
    pub file: &'a str,
}
