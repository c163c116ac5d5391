//! Frames as one line of text.

use heapr_query::{FrameView, file_name, folded};
use heapr_table::plain::{cut_middle, printable};
use unicode_width::UnicodeWidthStr as _;

/// Name of a frame: `libfoo.so!foo::bar(int)`, `libfoo.so+0x1234`, or `0x7f001234` outside all
/// modules. A module's first byte is never code. A frame there is a name for allocations without a
/// stack (`allocated before attach`).
#[must_use]
pub fn frame_name(frame: &FrameView<'_>) -> String {
    if frame.is_of_language() {
        return language_name(frame);
    }
    let module = frame.module.map(file_name);
    match (module, frame.symbol) {
        (Some(module), Some(symbol)) => format!("{}!{}", printable(module), printable(symbol)),
        (None, Some(symbol)) => printable(symbol),
        (Some(module), None) if frame.offset == 0 => printable(module),
        (Some(module), None) => format!("{}+{:#x}", printable(module), frame.offset),
        (None, None) => format!("{:#x}", frame.offset),
    }
}

/// Name of a language's frame: `features (numpy_cache.py:41)`.
fn language_name(frame: &FrameView<'_>) -> String {
    let name = printable(frame.symbol.unwrap_or("(unknown)"));
    match place(frame) {
        place if place.is_empty() => name,
        place => format!("{name} ({place})"),
    }
}

/// Name of the innermost frame's module.
#[must_use]
pub(crate) fn image_name(frames: &[FrameView<'_>]) -> String {
    frames.first().and_then(|frame| frame.module).map_or_else(|| "(no module)".to_owned(), printable)
}

/// Source location of a frame: `foo.cc:12`; empty if unknown.
#[must_use]
pub fn place(frame: &FrameView<'_>) -> String {
    match (frame.file, frame.line) {
        (Some(file), Some(line)) => format!("{}:{line}", printable(file_name(file))),
        (Some(file), None) => printable(file_name(file)),
        _ => String::new(),
    }
}

/// Shortens a name to at most `width` columns: folds brackets first, then cuts the middle.
#[must_use]
pub fn fitted(name: &str, width: usize) -> String {
    if name.width() <= width {
        return name.to_owned();
    }
    let (module, symbol) = name.split_once('!').unwrap_or(("", name));
    let mark = if module.is_empty() { "" } else { "!" };
    cut_middle(&format!("{module}{mark}{}", folded(symbol)), width)
}

/// Function of a frame as sentences name it: without its module if it has a symbol, with brackets
/// folded.
#[must_use]
pub fn short_name(frame: &FrameView<'_>) -> String {
    frame.symbol.map_or_else(|| frame_name(frame), |symbol| printable(&folded(symbol)))
}

/// Frame as one line of at most `width` columns: the name, the source location, and a mark if the
/// frame is inlined. The name is folded and cut in the middle if necessary.
#[must_use]
pub fn frame_line(frame: &FrameView<'_>, width: usize) -> String {
    let mut tail = if frame.is_of_language() { String::new() } else { place(frame) };
    if !tail.is_empty() {
        tail.insert_str(0, "  ");
    }
    if frame.is_inlined {
        tail.push_str(" (inlined)");
    }
    let name = frame_name(frame);
    let room = width.saturating_sub(tail.width());
    // A source location that would leave no room for the name is left out.
    let shown = fitted(&name, room);
    if room < 20 && name.width() > room || shown.width() > room {
        return fitted(&name, width);
    }
    shown + &tail
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAME: FrameView<'_> = FrameView {
        module: Some("/usr/lib/libfoo.so.1"),
        symbol: Some("foo::bar(int)"),
        file: Some("/src/foo.cc"),
        line: Some(12),
        is_inlined: false,
        offset: 0x1234,
    };

    #[test]
    fn frames_are_named_by_what_is_known() {
        assert_eq!(frame_name(&FRAME), "libfoo.so.1!foo::bar(int)");
        assert_eq!(frame_name(&FrameView { symbol: None, ..FRAME }), "libfoo.so.1+0x1234");
        assert_eq!(frame_name(&FrameView { module: None, ..FRAME }), "foo::bar(int)");
        assert_eq!(frame_name(&FrameView { module: None, symbol: None, ..FRAME }), "0x1234");
    }

    #[test]
    fn a_long_name_is_cut_in_its_middle_and_the_place_stays() {
        assert_eq!(frame_line(&FRAME, 80), "libfoo.so.1!foo::bar(int)  foo.cc:12");
        assert_eq!(frame_line(&FRAME, 34), "libfoo.so.1!foo::bar(…)  foo.cc:12");
        assert_eq!(frame_line(&FRAME, 32), "libfoo.so.…oo::bar(…)  foo.cc:12");
        assert_eq!(frame_line(&FRAME, 20), cut_middle("libfoo.so.1!foo::bar(…)", 20));
        assert_eq!(short_name(&FRAME), "foo::bar(…)");
    }

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        assert_eq!(
            frame_name(&FrameView { symbol: Some("a\u{1b}[2J"), ..FRAME }),
            "libfoo.so.1!a\u{fffd}[2J"
        );
    }
}
