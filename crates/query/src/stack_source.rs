//! The stack tree and modules that a query needs; implemented by traces and by the tests' models.

use heapr_trace::{
    LanguageFrames, LanguageFunction, LanguagePlace, ModuleIndex, ProcessIndex, StackIndex, StackNode,
};

/// Stack nodes and modules.
pub trait StackSource {
    /// Number of nodes, including the empty one.
    fn node_count(&self) -> u32;
    /// A node; `stack` is neither empty nor beyond the end.
    fn node(&self, stack: StackIndex) -> StackNode;
    /// The caller's node.
    fn parent(&self, stack: StackIndex) -> StackIndex;
    /// Module at an address, and the address in the module's file.
    fn locate(&self, process: ProcessIndex, avma: u64, time_ns: u64) -> Option<(ModuleIndex, u64)>;
    /// Path of a module; empty if there is no such module.
    fn module_path(&self, module: ModuleIndex) -> &str;
    /// Choice of the frames to show.
    fn language_frames(&self) -> LanguageFrames {
        LanguageFrames::Mixed
    }
    /// The function of a frame of a language, if it is known.
    fn function(&self, process: ProcessIndex, place: LanguagePlace) -> Option<&LanguageFunction> {
        let _ = (process, place);
        None
    }
}
