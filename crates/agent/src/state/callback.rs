//! Pointer to a function of a higher layer, for a lower layer to call; the agent's start sets it.

use core::sync::atomic::{AtomicPtr, Ordering::Relaxed};

/// A function pointer; calls do nothing until it is set.
#[derive(Debug)]
pub(crate) struct Callback(AtomicPtr<()>);

impl Callback {
    pub(crate) const fn none() -> Self {
        Self(AtomicPtr::new(core::ptr::null_mut()))
    }

    pub(crate) fn set(&self, function: fn()) {
        self.0.store(function as *mut (), Relaxed);
    }

    pub(crate) fn call(&self) {
        // SAFETY: null, or a function that `set` has put there.
        if let Some(function) = unsafe { core::mem::transmute::<*mut (), Option<fn()>>(self.0.load(Relaxed)) }
        {
            function();
        }
    }
}
