//! Translates what agents report of interpreters and their functions.

use heapr_trace::{Language, LanguageFunction, LanguagePlace, Notice};
use heapr_wire::{
    FunctionRecord, LANGUAGE_JAVASCRIPT, LANGUAGE_PYTHON, VERSION_WITHOUT_LOCK, language_place,
};

use super::Record;
use crate::recorder::output::sink::Sink;
use crate::recorder::state::process_state::ProcessState;

const _: () = assert!(Language::PYTHON.0 == LANGUAGE_PYTHON);

/// Translates the record of a function that language frames name.
#[cold]
pub(super) fn function(record: &Record<'_>, process: &ProcessState, sink: &mut Sink) -> Option<()> {
    let (what, lengths) = (record.word(2), record.word(4));
    let (name_bytes, file_bytes) = ((lengths >> 32) as usize, lengths as u32 as usize);
    let words = FunctionRecord::FIXED_WORDS
        .saturating_add(name_bytes.div_ceil(8))
        .saturating_add(file_bytes.div_ceil(8));
    // The number must be one that a frame can hold.
    let place = u8::try_from(what >> 32)
        .ok()
        .and_then(|language| LanguagePlace::of_call(language_place(language, what as u32, 0)));
    let place = place.filter(|place| words == record.words && place.function == what as u32)?;
    let text = |first: usize, bytes: usize| {
        let words = (first..first + bytes.div_ceil(8)).flat_map(|number| record.word(number).to_le_bytes());
        let bytes: Vec<u8> = words.take(bytes).collect();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    let function = LanguageFunction {
        process: process.index,
        language: place.language,
        number: place.function,
        name: text(FunctionRecord::FIXED_WORDS, name_bytes),
        file: text(FunctionRecord::FIXED_WORDS + name_bytes.div_ceil(8), file_bytes),
        first_line: record.word(3) as u32,
    };
    let outcome = sink.writer.function(&function);
    sink.keep(outcome);
    Some(())
}

/// Translates the record of an interpreter whose version the agent does not know.
#[cold]
pub(super) fn unknown(record: &Record<'_>, time_ns: u64, process: &ProcessState, sink: &mut Sink) {
    let text = unknown_text(record.word(1));
    let outcome = sink.writer.notice(&Notice { process: process.index, time_ns, text });
    sink.keep(outcome);
}

/// Notice for a language and version.
fn unknown_text(what: u64) -> String {
    let (language, version) = (Language((what >> 32) as u8), what as u32);
    let kind = if version & VERSION_WITHOUT_LOCK == 0 { "" } else { ", free-threaded" };
    let number = version & !VERSION_WITHOUT_LOCK;
    let version = match number >> 8 {
        0 => "of an unknown version".to_owned(),
        major => format!("{major}.{}", number & 0xff),
    };
    let name = language.name();
    format!(
        "stacks have no frames of {name} {version}{kind}: this build's are not known{}",
        advice(language, number)
    )
}

/// Advice by which functions of an unknown build get names: another version, or a map that the
/// interpreter writes of its code. `version` has the minor number in its low byte.
fn advice(language: Language, version: u32) -> &'static str {
    /// First CPython whose frames are known.
    const FIRST_PYTHON: u32 = 0x0308;
    match language.0 {
        LANGUAGE_JAVASCRIPT => {
            "; functions have names where V8 is given --perf-basic-prof and --interpreted-frames-native-stack \
             (Deno: DENO_V8_FLAGS=--perf-basic-prof,--interpreted-frames-native-stack)"
        }
        LANGUAGE_PYTHON if (0x0200..FIRST_PYTHON).contains(&version) => {
            "; functions have names where the program runs on CPython 3.8 or newer"
        }
        // A version that is not stated is older than 3.11.
        LANGUAGE_PYTHON if version >> 8 == 0 => {
            "; functions have names on release builds of CPython 3.8 or newer, or where it is given -X perf (from \
             3.12 on)"
        }
        LANGUAGE_PYTHON => "; functions have names where it is given -X perf (from 3.12 on)",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_free_threaded_build_is_called_so() {
        let text = |version: u32| unknown_text(u64::from(LANGUAGE_PYTHON) << 32 | u64::from(version));
        let known = |text: &str| text.split(';').next().map(str::to_owned);
        let said = "stacks have no frames of Python 3.16: this build's are not known";
        assert_eq!(known(&text(0x0310)).as_deref(), Some(said));
        let unlocked = "stacks have no frames of Python 3.14, free-threaded: this build's are not known";
        assert_eq!(known(&text(0x030e | VERSION_WITHOUT_LOCK)).as_deref(), Some(unlocked));
        assert!(text(1).contains("of an unknown version") && text(1).contains("-X perf"));
        assert!(text(0x0306).contains("Python 3.6: ") && text(0x0306).contains("on CPython 3.8 or newer"));
    }
}
