//! Names of classes, and labels of their instances.

use std::rc::Rc;

use rustc_hash::FxHashMap;

use super::values::Kind;

/// Names of classes that were asked for.
#[derive(Debug, Default)]
pub(super) struct ClassNames {
    pub(super) own: FxHashMap<u64, Option<Rc<str>>>,
    /// Labels of instances, by class and kind.
    pub(super) labels: FxHashMap<(u64, Kind), u32>,
}
