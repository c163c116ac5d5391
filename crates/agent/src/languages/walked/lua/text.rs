//! Names of a Lua function without a name of its own, and of its file, as Lua's own tracebacks show
//! them.

use crate::languages::readable::Readable;
use crate::languages::text::Text;
use crate::languages::walked::Described;

const FILE_BYTES_MAX: usize = 1024;
/// Largest number of characters of code without a file, which is named by its beginning.
const CODE_BYTES_MAX: usize = 40;

/// Names a function by its first line, if its caller gives it no name. Names its file by the
/// source's name: `@cache.lua`, `=stdin`, or the code itself.
pub(super) fn describe(readable: &mut Readable, (source, first_line): (usize, u32), out: &mut Described<'_>) {
    out.first_line = first_line;
    write_file(readable, source, &mut out.file);
    if out.name.bytes != 0 {
        return;
    }
    if first_line == 0 {
        out.name.push_all("main chunk");
        return;
    }
    let Described { name, file, .. } = out;
    name.push_all("function <");
    name.push_bytes(file.out.get(..file.bytes).unwrap_or_default());
    name.push(':');
    push_number(name, first_line);
    name.push('>');
}

fn write_file(readable: &mut Readable, source: usize, out: &mut Text<'_>) {
    let first = readable.bytes(source, 1).map_or(0, |bytes| bytes.first().copied().unwrap_or(0));
    let is_named = matches!(first, b'@' | b'=');
    if !is_named {
        out.push_all("[string \"");
    }
    let limit = if is_named { FILE_BYTES_MAX } else { CODE_BYTES_MAX };
    for away in usize::from(is_named)..limit {
        match readable.bytes(source.wrapping_add(away), 1) {
            Some([0]) | None => break,
            Some([b'\n']) if !is_named => {
                out.push_all("...");
                break;
            }
            Some(byte) => out.push_bytes(byte),
        }
    }
    if !is_named {
        out.push_all("\"]");
    }
}

fn push_number(out: &mut Text<'_>, number: u32) {
    let mut digits = [0_u8; 10];
    let mut rest = number;
    let mut count = 0_usize;
    for digit in digits.iter_mut().rev() {
        *digit = b'0'.wrapping_add((rest % 10) as u8);
        rest /= 10;
        count = count.wrapping_add(1);
        if rest == 0 {
            break;
        }
    }
    out.push_bytes(digits.get(digits.len().wrapping_sub(count)..).unwrap_or_default());
}
