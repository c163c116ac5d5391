//! What a query needs of a trace's stack tree and modules: a trace has it, and so have the tests'
//! models.

use heapr_trace::{
    LanguageFrames, LanguageFunction, LanguagePlace, ModuleIndex, ProcessIndex, StackIndex, StackNode,
};

/// Stack nodes and modules.
pub trait StackSource {
    /// Number of nodes, the empty one included.
    fn node_count(&self) -> u32;
    /// A node; `stack` is neither empty nor beyond the end.
    fn node(&self, stack: StackIndex) -> StackNode;
    /// Its caller's node.
    fn parent(&self, stack: StackIndex) -> StackIndex;
    /// Module and address in its file.
    fn locate(&self, process: ProcessIndex, avma: u64, time_ns: u64) -> Option<(ModuleIndex, u64)>;
    /// Path of a module; empty if there is no such module.
    fn module_path(&self, module: ModuleIndex) -> &str;
    /// Which frames are shown.
    fn language_frames(&self) -> LanguageFrames {
        LanguageFrames::Mixed
    }
    /// The function of a frame of a language, if it is known.
    fn function(&self, process: ProcessIndex, place: LanguagePlace) -> Option<&LanguageFunction> {
        let _ = (process, place);
        None
    }
}
