//! Functions and lines of frames, as they are reported to the recorder.

use heapr_wire::{LINE_MAX, language_place};

use crate::languages::answers::{self, Answers};
use crate::languages::code_table;
use crate::languages::readable::Readable;
use crate::languages::text::Text;
use crate::languages::walked::{Described, Dialect, Walked};
use crate::record::thread::Scope;

const ANSWERS: usize = 4096;
const NAME_BYTES_MAX: usize = 512;
const FILE_BYTES_MAX: usize = 1024;

/// Cached functions and lines of frames, and buffers to find them.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Describing {
    answers: Answers<ANSWERS>,
    /// Whether the readable ranges have been doubted at this event.
    has_doubted: bool,
    name: [u8; NAME_BYTES_MAX],
    file: [u8; FILE_BYTES_MAX],
}

impl Describing {
    /// Drops all cached results, so that each is determined anew.
    pub(super) fn forget(&mut self) {
        self.answers.forget();
    }

    /// Begins an event: the readable ranges are doubted before the first new frame is described.
    #[inline(always)]
    pub(super) fn begin_event(&mut self) {
        self.has_doubted = false;
    }

    /// Returns the recorder's function and line for a frame, cached or determined anew.
    pub(super) fn place<D: Dialect>(
        &mut self,
        scope: &mut Scope,
        readable: &mut Readable,
        frame: &Walked,
    ) -> u64 {
        let key = answers::key([frame.code, frame.check, frame.at, frame.calls]);
        if let Some(place) = self.answers.find(key) {
            return place;
        }
        // Memory that was mapped when the last function was read may be unmapped.
        if !core::mem::replace(&mut self.has_doubted, true) {
            readable.doubt();
        }
        let mut described = Described {
            name: Text { out: &mut self.name, bytes: 0 },
            file: Text { out: &mut self.file, bytes: 0 },
            first_line: 0,
            line: 0,
        };
        // Memory that cannot be read at this event may be readable the next time: the result is not
        // cached.
        if D::describe(readable, frame, &mut described).is_none() {
            return 0;
        }
        let Described { name, file, first_line, line } = described;
        let name = name.out.get(..name.bytes).unwrap_or_default();
        let file = file.out.get(..file.bytes).unwrap_or_default();
        let number = code_table::number_of(scope, D::NUMBER, (name, file, first_line));
        let place = language_place(D::NUMBER, number, line.min(LINE_MAX));
        self.answers.keep(key, place);
        place
    }
}
