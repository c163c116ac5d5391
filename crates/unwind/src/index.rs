//! Finding the entry of a code address in unwind tables.

use gimli::{
    BaseAddresses, CieOrFde, EhFrame, EhFrameHdr, EndianSlice, LittleEndian, Pointer, UnwindSection as _,
};

/// Index of the unwind tables of a module (`.eh_frame_hdr`).
#[derive(Debug, Clone, Copy)]
pub struct UnwindIndex<'d> {
    /// Contents of the section.
    pub bytes: &'d [u8],
    /// Address of the section. Found addresses are of the same kind: of the file, or of a process.
    pub address: u64,
}

impl UnwindIndex<'_> {
    /// Address of the entry for the code at `pc`, or for the nearest code before it. `None`: the
    /// index is empty, damaged, or of a form without a search table.
    #[must_use]
    pub fn entry_address(&self, pc: u64) -> Option<u64> {
        let bases = BaseAddresses::default().set_eh_frame_hdr(self.address);
        let index = EhFrameHdr::new(self.bytes, LittleEndian).parse(&bases, 8).ok()?;
        match index.table()?.lookup(pc, &bases).ok()? {
            Pointer::Direct(address) => Some(address),
            Pointer::Indirect(_) => None,
        }
    }
}

/// Start and end of the code ranges that the tables in a section `.eh_frame` cover, in the order of
/// the section, at most `most`. The list ends at the first damaged entry.
#[must_use]
pub fn covered_ranges(section: &[u8], section_address: u64, most: usize) -> Vec<(u64, u64)> {
    let table = EhFrame::from(EndianSlice::new(section, LittleEndian));
    let bases = BaseAddresses::default().set_eh_frame(section_address);
    let (mut entries, mut found) = (table.entries(&bases), Vec::new());
    while found.len() < most {
        let Ok(Some(entry)) = entries.next() else { break };
        if let CieOrFde::Fde(entry) = entry
            && let Ok(entry) = entry.parse(EhFrame::cie_from_offset)
        {
            let start = entry.initial_address();
            found.push((start, start.saturating_add(entry.len())));
        }
    }
    found
}
