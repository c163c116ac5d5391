//! Branch of a program's code.

/// Target of a branch or call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Branch {
    /// Code at this address of the file.
    To(u64),
    /// Code whose address the word at this address of the file has; `None`: by a register, or a
    /// word elsewhere.
    ByWord(Option<u64>),
}
