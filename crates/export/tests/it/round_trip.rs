//! Every format of the table, read back by another reader: the sums equal those of the report.

use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};

use heapr_export::{FORMATS, Profile, Samples};
use heapr_query::Metric;
use heapr_trace::Amounts;

use crate::made_trace::{four_minutes, named_report, sampled};
use crate::python;

/// Prints the sums of an OTLP file by type. Fails if the file breaks the protocol's rules.
const READ_OTLP: &str = r"
import sys, json
from opentelemetry.proto.collector.profiles.v1development.profiles_service_pb2 import ExportProfilesServiceRequest
from opentelemetry.proto.profiles.v1development import profiles_pb2 as p
whole = ExportProfilesServiceRequest.FromString(sys.stdin.buffer.read())
size = whole.ByteSize()
whole.DiscardUnknownFields()
assert whole.ByteSize() == size, 'fields that the protocol does not know'
d = whole.dictionary
for table, empty in ((d.mapping_table, p.Mapping()), (d.location_table, p.Location()), (d.function_table, p.Function()),
                     (d.link_table, p.Link()), (d.attribute_table, p.KeyValueAndUnit()), (d.stack_table, p.Stack())):
    assert table[0] == empty
assert d.string_table[0] == '' and len(set(d.string_table)) == len(d.string_table)
used = set()
for stack in d.stack_table:
    for number in stack.location_indices:
        assert 0 < number < len(d.location_table)
        used.add(number)
assert used == set(range(1, len(d.location_table))), 'orphans'
for location in d.location_table[1:]:
    assert location.mapping_index < len(d.mapping_table) and len(location.lines) == 1
    assert 0 < location.lines[0].function_index < len(d.function_table)
for function in d.function_table:
    assert max(function.name_strindex, function.filename_strindex) < len(d.string_table)
for mapping in d.mapping_table:
    assert mapping.filename_strindex < len(d.string_table)
    for number in mapping.attribute_indices:
        assert d.string_table[d.attribute_table[number].key_strindex] == 'process.executable.build_id.gnu'
sums, ids = {}, set()
for resource in whole.resource_profiles:
    for scope in resource.scope_profiles:
        assert scope.scope.name == 'heapr'
        for profile in scope.profiles:
            ids.add(profile.profile_id)
            assert len(profile.profile_id) == 16 and profile.period > 0
            assert d.string_table[profile.period_type.type_strindex] == 'space'
            name = d.string_table[profile.sample_type.type_strindex]
            sums[name] = sum(sum(sample.values) for sample in profile.samples)
            assert all(sample.stack_index < len(d.stack_table) for sample in profile.samples)
assert len(ids) == len(sums)
print(json.dumps(sums))
";

pub(crate) fn written(format: &str, samples: &Samples, value: Metric) -> Vec<u8> {
    let format = FORMATS.iter().find(|known| known.name == format).unwrap();
    let mut bytes = Vec::new();
    (format.write)(&mut bytes, &Profile::new(samples, value, "made")).unwrap();
    bytes
}

/// Numbers that follow a mark, one for each occurrence of the mark.
fn numbers_behind(text: &str, mark: &str) -> Vec<u64> {
    let digits =
        |rest: &str| rest.chars().take_while(|c| c.is_ascii_digit() || *c == ',').collect::<String>();
    text.split(mark).skip(1).filter_map(|rest| digits(rest).replace(',', "").parse().ok()).collect()
}

#[test]
fn sums_are_the_same_in_every_format() {
    check_sums(&four_minutes());
}

/// Estimates, too, are equal to the byte in all formats.
#[test]
fn sums_of_samples_are_the_same_in_every_format() {
    let trace = sampled();
    check_sums(&trace);
    let totals = named_report(&trace).totals.amounts();
    assert!(totals.total_count > 3 * named_report(&four_minutes()).totals.alloc_count, "{totals:?}");
    assert!(Metric::OutstandingBytes.plus_minus(&totals) > 0);
}

fn check_sums(trace: &heapr_trace::Trace) {
    let report = named_report(trace);
    let totals = report.totals.amounts();
    let samples = Samples::of_report(&report, &mut |_, _| {});
    for format in FORMATS {
        match format.name {
            "collapsed" => {
                for metric in Metric::all() {
                    let text = String::from_utf8(written("collapsed", &samples, metric)).unwrap();
                    let costs =
                        text.lines().map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap());
                    assert_eq!(costs.sum::<u64>(), metric.of(&totals), "{}", metric.name());
                }
            }
            "speedscope" => {
                for metric in Metric::all() {
                    let bytes = written("speedscope", &samples, metric);
                    let file: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
                    let weights = file["profiles"][0]["weights"].as_array().unwrap();
                    let sum: u64 = weights.iter().map(|weight| weight.as_u64().unwrap()).sum();
                    assert_eq!(sum, metric.of(&totals), "{}", metric.name());
                }
            }
            "pprof" => {
                let bytes = written("pprof", &samples, Metric::default());
                let again = heapr_import::from_bytes(&bytes).unwrap();
                let read: Amounts = crate::made_trace::report(&again).totals.amounts();
                for metric in Metric::all() {
                    assert_eq!(metric.of(&read), metric.of(&totals), "{}", metric.name());
                }
            }
            "otlp" => {
                let bytes = written("otlp", &samples, Metric::default());
                let packages =
                    [("opentelemetry-proto", "opentelemetry.proto.profiles.v1development.profiles_pb2")];
                let Some(python) = python::with(&packages) else { continue };
                let mut child = Command::new(python)
                    .args(["-c", READ_OTLP])
                    .stdin(Stdio::piped())
                    .stdout(Stdio::piped())
                    .spawn()
                    .unwrap();
                child.stdin.take().unwrap().write_all(&bytes).unwrap();
                let (mut text, mut out) = (String::new(), child.stdout.take().unwrap());
                out.read_to_string(&mut text).unwrap();
                assert!(child.wait().unwrap().success());
                let sums: serde_json::Value = serde_json::from_str(&text).unwrap();
                for metric in Metric::all() {
                    assert_eq!(sums[metric.pprof()], metric.of(&totals), "{}", metric.name());
                }
            }
            "flamegraph" => {
                let text = String::from_utf8(written("flamegraph", &samples, Metric::default())).unwrap();
                assert!(!numbers_behind(&text, " ").is_empty() && text.contains("grow"));
            }
            other => panic!("{other} is read back by nobody: add it here"),
        }
    }
}

/// Checks the type that pprof's readers show first, and the build-ids by which they find names.
#[test]
fn a_profile_tells_its_type_period_and_build_ids() {
    let frame = heapr_export::SampleFrame {
        name: "f".to_owned(),
        module: "/lib/a.so".to_owned(),
        file: String::new(),
        line: 0,
    };
    let mut amounts = Amounts { outstanding_bytes: 7, outstanding_count: 1, ..Amounts::default() };
    amounts.variances.outstanding_bytes = 300;
    let plus_minus = Metric::OutstandingBytes.plus_minus(&amounts);
    let samples = Samples::of_stacks([(vec![frame], amounts)]);
    let modules = [heapr_trace::Module { path: "/lib/a.so".to_owned(), build_id: vec![0xab, 0x01] }];
    let mut profile = Profile::new(&samples, Metric::TotalBytes, "");
    profile.modules = &modules;
    profile.period_bytes = 524_288;
    profile.sampled = Some("sampled, every so often".to_owned());
    profile.tells_intervals = true;
    for format in ["pprof", "otlp"] {
        let format = FORMATS.iter().find(|known| known.name == format).unwrap();
        let mut bytes = Vec::new();
        (format.write)(&mut bytes, &profile).unwrap();
        if format.name == "pprof" {
            let mut plain = Vec::new();
            flate2::read::GzDecoder::new(&bytes[..]).read_to_end(&mut plain).unwrap();
            bytes = plain;
        }
        let has = |text: &[u8]| bytes.windows(text.len()).any(|window| window == text);
        assert!(has(b"ab01") && has(b"inuse_space") && has(b"space"), "{}", format.name);
        assert!(has(b"sampled, every so often"), "{}", format.name);
        // Intervals of the whole and of the stack.
        match format.name {
            "pprof" => {
                assert!(has(format!("inuse_space_plus_minus={plus_minus}").as_bytes()));
                assert!(has(b"\x16inuse_space_plus_minus"));
            }
            _ => assert!(has(b"heapr.inuse_space_plus_minus") && has(b"heapr.plus_minus")),
        }
        // 524,288 as a varint, which has seven bits per byte.
        assert!(has(&[0x80, 0x80, 0x20]), "{}", format.name);
    }
}

/// Readers of pprof assume that the first mapping is the program.
#[test]
fn the_program_is_the_first_mapping() {
    let frame = |module: &str| heapr_export::SampleFrame {
        name: format!("of {module}"),
        module: module.to_owned(),
        file: String::new(),
        line: 0,
    };
    let sample = |modules: [&str; 2], total_bytes: u64| {
        (modules.map(frame).to_vec(), Amounts { total_bytes, ..Amounts::default() })
    };
    let samples = Samples::of_stacks([
        sample(["/lib/a.so", "/bin/sh"], 10),
        sample(["/lib/b.so", "/bin/python"], 900),
        sample(["/lib/a.so", "/lib/c.so"], 5000),
    ]);
    let mut profile = Profile::new(&samples, Metric::TotalBytes, "");
    profile.programs = vec!["/bin/sh", "/bin/python", "/bin/never"];
    let format = FORMATS.iter().find(|known| known.name == "pprof").unwrap();
    let (mut packed, mut plain) = (Vec::new(), Vec::new());
    (format.write)(&mut packed, &profile).unwrap();
    flate2::read::GzDecoder::new(&packed[..]).read_to_end(&mut plain).unwrap();
    // Texts are numbered in order of first use, as mappings are.
    let place = |text: &str| plain.windows(text.len()).position(|window| window == text.as_bytes()).unwrap();
    assert!(place("/bin/python") < place("/lib/a.so"), "{}", String::from_utf8_lossy(&plain));
    assert!(!plain.windows(10).any(|window| window == b"/bin/never"));
}
