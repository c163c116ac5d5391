//! Header comment of a victim: how it is built and run, and what heapr must find in it.
//!
//! ```text
//! // build: -lpthread                 compiler arguments added to the usual ones; {folder} is where the program will be
//! // variant: -O2 -fomit-frame-pointer   built and checked once more with these instead of -O1
//! // library: plugin.c -DVALUE=1 as plugin_a.so     a shared object built beside the program
//! // run: 3 10                        arguments
//! // wrap: sh -c "{} | cat"           run through this; {} is the program
//! // environment: NAME=VALUE
//! // needs: root                      or a command that must be there; the test says that it was not run
//! // exit: 137                        status as a shell says it; 0 without the line
//! // seconds: 600                     time-out; 120 without the line
//! // verify: 16                       every Nth stack is checked; 1 without the line, 0 never
//! // untraced: static                 runs, cannot be traced, heapr's stderr must say this word
//! // expect: frame=victim_main allocs=10 alloc_bytes=160 outstanding=1 peak_bytes>=16
//! // expect-stack: victim_leaf <- victim_caller <- main allocs=10
//! // expect-processes: 3              process images in the file; `>=3` too
//! // expect-unmatched: 0              frees of blocks that were never seen allocated
//! // notice: word                      the file says this of a recording, and nothing else; nothing without the line
//! // perhaps-notice: word              the file says this, or nothing
//! // refused: 2                       processes that could not be recorded; none without the line
//! // report: frames                   look at innermost frames only (for files with very many stacks)
//! ```

use std::path::Path;

/// Number that the report must show: `allocs=10`, `peak_bytes>=16`, `peak_bytes<=20`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Claim {
    /// Name of the number.
    pub(crate) quantity: String,
    /// Least value.
    pub(crate) least: u64,
    /// Greatest value.
    pub(crate) greatest: u64,
}

/// Claims on the allocations whose stack has these frames.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Expectation {
    /// Symbols, innermost first, in this order and next to each other.
    pub(crate) frames: Vec<String>,
    /// Claims on the numbers.
    pub(crate) claims: Vec<Claim>,
}

/// A parsed header.
#[derive(Debug, Clone, Default)]
pub(crate) struct Header {
    pub(crate) build: Vec<String>,
    pub(crate) variants: Vec<Vec<String>>,
    pub(crate) libraries: Vec<(String, Vec<String>, String)>,
    pub(crate) arguments: Vec<String>,
    pub(crate) wrap: Vec<String>,
    pub(crate) environment: Vec<(String, String)>,
    pub(crate) needs: Vec<String>,
    pub(crate) exit: i32,
    pub(crate) seconds: u64,
    pub(crate) verify: u32,
    pub(crate) untraced: Option<String>,
    pub(crate) expectations: Vec<Expectation>,
    pub(crate) processes: Option<Claim>,
    pub(crate) unmatched: Option<Claim>,
    pub(crate) notice: Option<String>,
    pub(crate) is_notice_certain: bool,
    pub(crate) refused: u64,
    pub(crate) is_by_frame: bool,
}

impl Claim {
    /// Fails unless `value` is as claimed.
    pub(crate) fn check(&self, value: Option<u64>, label: &str, context: &dyn std::fmt::Debug) {
        assert!(
            value.is_some_and(|value| (self.least..=self.greatest).contains(&value)),
            "{label}: {self:?} but it is {value:?} in {context:?}"
        );
    }
}

impl Header {
    /// Reads the header of the victim at `source`: its first lines that begin with `//` or `#`.
    pub(crate) fn read(source: &Path) -> Self {
        let text =
            std::fs::read_to_string(source).unwrap_or_else(|error| panic!("{}: {error}", source.display()));
        let mut header = Self { seconds: heapr_testkit::LIMIT.as_secs(), verify: 1, ..Self::default() };
        for line in text.lines() {
            let Some(line) = line.strip_prefix("//").or_else(|| line.strip_prefix('#')) else { break };
            header.take(line.trim(), source);
        }
        header
    }

    fn take(&mut self, line: &str, source: &Path) {
        let Some((key, value)) = line.split_once(':') else { return };
        let value = value.trim();
        let words = || split_words(value);
        let number = || value.parse().unwrap_or_else(|_| panic!("{}: {line}", source.display()));
        match key {
            "build" => self.build.extend(words()),
            "variant" => self.variants.push(words()),
            "library" => {
                let mut parts = words();
                let output = parts.pop().expect("a library has a name");
                assert_eq!(parts.pop().as_deref(), Some("as"), "{line}");
                self.libraries.push((parts.remove(0), parts, output));
            }
            "run" => self.arguments = words(),
            "wrap" => self.wrap = words(),
            "environment" => {
                let (name, value) = value.split_once('=').expect("NAME=VALUE");
                self.environment.push((name.into(), value.into()));
            }
            "needs" => self.needs.extend(words()),
            "exit" => self.exit = number() as i32,
            "seconds" => self.seconds = number() * u64::from(heapr_testkit::SLOWNESS),
            "verify" => self.verify = number() as u32,
            "untraced" => self.untraced = Some(value.into()),
            "notice" => (self.notice, self.is_notice_certain) = (Some(value.into()), true),
            "perhaps-notice" => self.notice = Some(value.into()),
            "refused" => self.refused = number(),
            "expect" => {
                let rest = value.strip_prefix("frame=").unwrap_or_else(|| panic!("no frame= in {line}"));
                let (frame, claims) = rest.split_once(' ').expect("a frame and claims");
                self.expectations
                    .push(Expectation { frames: vec![frame.into()], claims: parse_claims(claims) });
            }
            "expect-stack" => self.expectations.push(parse_stack(value)),
            "expect-processes" => self.processes = Some(parse_count("processes", value)),
            "expect-unmatched" => self.unmatched = Some(parse_count("unmatched_frees", value)),
            "report" => self.is_by_frame = value == "frames",
            _ => {}
        }
    }
}

fn parse_stack(value: &str) -> Expectation {
    let words = split_words(value);
    let claims_start = words.iter().position(|word| word.contains('=')).unwrap_or(words.len());
    let (frames, claims) = words.split_at(claims_start);
    Expectation {
        frames: frames.iter().filter(|word| *word != "<-").cloned().collect(),
        claims: parse_claims(&claims.join(" ")),
    }
}

fn parse_claims(text: &str) -> Vec<Claim> {
    let claims: Vec<_> = text.split_whitespace().map(parse_claim).collect();
    assert!(!claims.is_empty(), "an expectation without claims: {text:?}");
    claims
}

fn parse_count(quantity: &str, value: &str) -> Claim {
    let separator = if value.starts_with(['<', '>']) { "" } else { "=" };
    parse_claim(&format!("{quantity}{separator}{value}"))
}

fn parse_claim(word: &str) -> Claim {
    let (name, value) = word.split_once('=').unwrap_or_else(|| panic!("no number in {word:?}"));
    let value: u64 = value.parse().unwrap_or_else(|_| panic!("no number in {word:?}"));
    let (quantity, least, greatest) = match name.as_bytes().last() {
        Some(b'>') => (&name[..name.len() - 1], value, u64::MAX),
        Some(b'<') => (&name[..name.len() - 1], 0, value),
        _ => (name, value, value),
    };
    Claim { quantity: quantity.into(), least, greatest }
}

/// Splits words as a shell would, with double quotes only.
fn split_words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut is_quoted = false;
    let mut is_word = false;
    for letter in text.chars() {
        match letter {
            '"' => {
                is_quoted = !is_quoted;
                is_word = true;
            }
            letter if letter.is_whitespace() && !is_quoted => {
                if is_word {
                    words.push(std::mem::take(&mut word));
                }
                is_word = false;
            }
            letter => {
                word.push(letter);
                is_word = true;
            }
        }
    }
    if is_word {
        words.push(word);
    }
    words
}

#[test]
fn a_header_line_becomes_claims_about_frames() {
    let mut header = Header::default();
    let source = Path::new("x.c");
    header.take("expect: frame=victim_main allocs=10 peak_bytes>=16 failed<=2", source);
    header.take("expect-stack: a <- b <- main allocs=3", source);
    header.take("wrap: sh -c \"{} | cat\"", source);
    assert_eq!(header.expectations[0].frames, ["victim_main"]);
    assert_eq!(
        header.expectations[0].claims[1],
        Claim { quantity: "peak_bytes".into(), least: 16, greatest: u64::MAX }
    );
    assert_eq!(header.expectations[0].claims[2], Claim { quantity: "failed".into(), least: 0, greatest: 2 });
    assert_eq!(header.expectations[1].frames, ["a", "b", "main"]);
    assert_eq!(header.wrap, ["sh", "-c", "{} | cat"]);
}
