//! Hooks of embedded allocators' functions, and of the function that loads modules.

use std::mem::offset_of;

use heapr_wire::{INNER_FUNCTIONS, Injection, InnerFunction};

use super::{Hook, Plan};
use crate::arch::{Sampling, Way};
use crate::error::Result;
use crate::image::Image;
use crate::inside_function::{InsideFunction, InsideHeaps, NOT_ALL, THROWS, broken_groups};
use crate::memory::ProcessMemory;
use crate::modules::Modules;

/// Largest number of hooks, below the capacity of an attach's record: functions that are loaded
/// later follow.
const HOOKS_MAX: usize = 300;

impl Plan {
    /// Plans the hooks of embedded allocators: their entries in the agent's table.
    pub(super) fn choose_inside(
        &mut self,
        memory: &ProcessMemory,
        functions: &[InsideFunction],
    ) -> Result<()> {
        let word = |image: &Image, at: usize| image.word(self.injection + at as u64);
        let kept_avma = word(&self.image, offset_of!(Injection, all_registers_entry))?;
        let light_avma = word(&self.image, offset_of!(Injection, light_entry))?;
        let first = word(&self.image, offset_of!(Injection, inner))?;
        let first_kept = word(&self.image, offset_of!(Injection, inner_kept))?;
        let kept_bytes = word(&self.image, offset_of!(Injection, inner_kept_bytes))?;
        let names = word(&self.image, offset_of!(Injection, inner_heap_names))?;
        let mut heaps = InsideHeaps::default();
        let mut number = 0;
        let broken = broken_groups(memory, functions, true);
        for function in functions {
            if number >= INNER_FUNCTIONS as u64 || self.hooks.len() >= HOOKS_MAX {
                self.not_hooked.push((function.name.clone(), "there are too many".to_owned()));
                continue;
            }
            if function.may_throw {
                self.not_hooked.push((function.name.clone(), THROWS.to_owned()));
                continue;
            }
            let prologue = match function.prologue(memory, &self.seen_functions()) {
                Ok(Some(prologue)) => prologue,
                Ok(None) => continue,
                Err(reason) => {
                    self.not_hooked.push((function.name.clone(), reason.to_owned()));
                    continue;
                }
            };
            if function.whole_of.is_some_and(|group| broken.contains(&group)) {
                self.not_hooked.push((function.name.clone(), NOT_ALL.to_owned()));
                continue;
            }
            if self.hooks.iter().any(|hook| hook.prologue.entry_avma == prologue.entry_avma) {
                continue;
            }
            let at = first + number * size_of::<InnerFunction>() as u64;
            let place = |field: usize| at + field as u64;
            let heap = heaps.number_of(function);
            self.plain.push((place(offset_of!(InnerFunction, signature)), function.signature.word()));
            self.plain.push((place(offset_of!(InnerFunction, heap)), heap));
            let (real, own) = (place(offset_of!(InnerFunction, real)), place(offset_of!(InnerFunction, own)));
            // If a substitute is called, its address goes into `real`, and that of the function
            // itself into `own`.
            let real = match function.instead_avma {
                Some(instead_avma) => {
                    self.plain.push((real, instead_avma));
                    own
                }
                None => real,
            };
            let counted = function.counted(memory, &prologue, Sampling::LATER, &|avma| {
                let is_hooked =
                    |hook: &Hook| [hook.prologue.function_avma, hook.prologue.entry_avma].contains(&avma);
                functions.iter().any(|function| function.begins_at(avma)) || self.hooks.iter().any(is_hooked)
            });
            self.plain.extend(function.code_words(at));
            let entry_avma = if function.keeps_convention { light_avma } else { kept_avma };
            let way = Way::Kept { entry_avma, function_avma: first_kept + number * kept_bytes, counted };
            self.hooks.push(Hook {
                name: function.name.clone(),
                way,
                real: vec![real],
                prologue,
                counted: None,
            });
            self.code.has_other = true;
            number += 1;
        }
        for (place, name) in heaps.words() {
            self.plain.push((names + place, name));
        }
        Ok(())
    }

    /// Plans the hook of the function that the loader calls after loading modules, which may
    /// contain an allocator.
    pub(super) fn choose_after_load(&mut self, memory: &ProcessMemory, modules: &Modules) -> Result<()> {
        let word = |at: usize| self.image.word(self.injection + at as u64);
        let way = Way::Kept {
            entry_avma: word(offset_of!(Injection, all_registers_entry))?,
            function_avma: word(offset_of!(Injection, after_load))?,
            counted: None,
        };
        if let Some(function) = InsideFunction::after_load(memory, modules)
            && let Ok(Some(prologue)) = function.prologue(memory, &[])
        {
            self.hooks.push(Hook { name: function.name, way, real: Vec::new(), prologue, counted: None });
        }
        Ok(())
    }
}
