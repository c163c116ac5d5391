//! Findings for continuous integration: GitHub's annotations, and JUnit's XML.

use std::io::{self, Write};

use heapr_findings::Finding;
use heapr_query::Confidence;

use super::answer::{Answer, Subject};
use super::markup::escaped;

/// Writes an annotation for each finding, which GitHub shows beside the line of source.
pub(super) fn write_github(
    out: &mut dyn Write,
    answer: &Answer,
    is_failure: &dyn Fn(&Subject, &Finding) -> bool,
) -> io::Result<()> {
    for (subject, finding) in answer.findings() {
        let level = match (is_failure(subject, finding), finding.confidence) {
            (true, _) => "error",
            (false, Confidence::High) => "warning",
            (false, _) => "notice",
        };
        let mut properties = vec![format!("title={}", property(&format!("heapr: {}", kind(finding))))];
        if let Some(own) = &finding.own_frame {
            properties.extend(own.file.as_ref().map(|file| format!("file={}", property(file))));
            properties.extend(own.line.map(|line| format!("line={line}")));
        }
        let text =
            format!("{}\n{}\nmore: {}", finding.sentence, finding.evidence.join("\n"), finding.command);
        writeln!(out, "::{level} {}::{}", properties.join(","), data(&text))?;
    }
    for subject in &answer.subjects {
        if subject.findings.is_empty() {
            writeln!(out, "{}: {}", subject.name, subject.verdict)?;
        }
    }
    Ok(())
}

/// Escapes text for a message of a GitHub command.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// Escapes text for a property of a GitHub command.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

/// Writes a suite for each subject and a case for each finding. Findings that exceed a threshold
/// have failed.
pub(super) fn write_junit(
    out: &mut dyn Write,
    answer: &Answer,
    is_failure: &dyn Fn(&Subject, &Finding) -> bool,
) -> io::Result<()> {
    writeln!(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>")?;
    writeln!(out, "<testsuites name=\"heapr explain\">")?;
    for subject in &answer.subjects {
        let failures = subject.findings.iter().filter(|finding| is_failure(subject, finding)).count();
        // A suite without a case would count as one that did not run.
        let cases = subject.findings.len().max(1);
        let name = escaped(&subject.name);
        writeln!(out, "  <testsuite name=\"{name}\" tests=\"{cases}\" failures=\"{failures}\">")?;
        for finding in &subject.findings {
            let case = escaped(kind(finding));
            write!(
                out,
                "    <testcase classname=\"{name}\" name=\"{case}: {}\"",
                escaped(&finding.sentence)
            )?;
            let text = escaped(&format!("{}\n{}", finding.evidence.join("\n"), finding.command));
            if is_failure(subject, finding) {
                let sentence = escaped(&finding.sentence);
                writeln!(out, ">\n      <failure message=\"{sentence}\">{text}</failure>\n    </testcase>")?;
            } else {
                writeln!(out, ">\n      <system-out>{text}</system-out>\n    </testcase>")?;
            }
        }
        if subject.findings.is_empty() {
            writeln!(out, "    <testcase classname=\"{name}\" name=\"{}\"/>", escaped(&subject.verdict))?;
        }
        writeln!(out, "  </testsuite>")?;
    }
    writeln!(out, "</testsuites>")
}

fn kind(finding: &Finding) -> &'static str {
    finding.kind.name()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_a_meaning_is_escaped() {
        assert_eq!(escaped("a<b>&\"\u{1}"), "a&lt;b&gt;&amp;&quot;\u{fffd}");
        assert_eq!(data("50 %\nof"), "50 %25%0Aof");
        assert_eq!(property("a:b,c"), "a%3Ab%2Cc");
    }
}
