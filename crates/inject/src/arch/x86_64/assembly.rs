//! Assembly of machine code for a target.

use iced_x86::code_asm::{CodeAssembler, CodeLabel};
use iced_x86::{BlockEncoderOptions, IcedError};

/// Reason for a failure of the assembler, which no valid code has.
pub(super) const NOT_ASSEMBLED: &str = "heapr's code for it cannot be assembled";

/// Assembles code for `start_avma`. `write` adds the instructions, and returns labels; their
/// addresses come with the code.
pub(super) fn assembled<const LABELS: usize>(
    start_avma: u64,
    write: impl FnOnce(&mut CodeAssembler) -> Result<[CodeLabel; LABELS], IcedError>,
) -> Result<(Vec<u8>, [u64; LABELS]), &'static str> {
    let assemble = || -> Result<(Vec<u8>, [u64; LABELS]), IcedError> {
        let mut assembler = CodeAssembler::new(64)?;
        let labels = write(&mut assembler)?;
        let options = BlockEncoderOptions::RETURN_NEW_INSTRUCTION_OFFSETS;
        let done = assembler.assemble_options(start_avma, options)?;
        let mut avmas = [0; LABELS];
        for (avma, label) in avmas.iter_mut().zip(&labels) {
            *avma = done.label_ip(label)?;
        }
        Ok((done.inner.code_buffer, avmas))
    };
    assemble().map_err(|_| NOT_ASSEMBLED)
}
