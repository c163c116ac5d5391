//! Tests of the counts in a file's header, true or not.

use super::model::small;
use super::{read, read_file};
use crate::{Error, Problem, ReadOptions, Snapshot};

#[test]
fn counts_that_differ_from_the_header_are_told() {
    let text = small();
    let fewer = text.replacen("\"node_count\":3", "\"node_count\":9", 1);
    let found = read_file(fewer.as_bytes()).unwrap();
    assert_eq!(found.problems(), [Problem::CountDiffers { section: "nodes", promised: 9, found: 3 }]);
    // A header with a far too large count costs no memory.
    let most = text.replacen("\"edge_count\":3", "\"edge_count\":4000000000", 1);
    assert_eq!(read_file(most.as_bytes()).unwrap().edge_count(), 3);
    assert!(read(text.replacen("\"node_count\":3", "\"node_count\":99999999999", 1).as_bytes()).is_err());
}

#[test]
fn the_lists_count_where_the_header_counts_less() {
    let text = small();
    for (from, to, section, promised, found) in [
        ("\"node_count\":3", "\"node_count\":0", "nodes", 0, 3),
        ("\"node_count\":3", "\"node_count\":2", "nodes", 2, 3),
        ("\"edge_count\":3", "\"edge_count\":0", "edges", 0, 3),
        ("\"edge_count\":3", "\"edge_count\":1", "edges", 1, 3),
    ] {
        let wrong = text.replacen(from, to, 1);
        let read_back = read_file(wrong.as_bytes()).unwrap();
        assert_eq!((read_back.node_count(), read_back.edge_count()), (3, 3), "{to}");
        assert_eq!(read_back.problems(), [Problem::CountDiffers { section, promised, found }]);
        // Text from a pipe cannot be read again.
        assert!(matches!(read(wrong.as_bytes()), Err(Error::MoreThanPromised { .. })), "{to}");
    }
    let neither = text.replacen("\"node_count\":3", "\"node_count\":1", 1);
    let neither = neither.replacen("\"edge_count\":3", "\"edge_count\":0", 1);
    let read_back = read_file(neither.as_bytes()).unwrap();
    assert_eq!((read_back.node_count(), read_back.edge_count(), read_back.problems().len()), (3, 3, 2));
}

#[test]
fn a_compressed_file_whose_header_counts_less_is_read_again() {
    let text = small().replacen("\"edge_count\":3", "\"edge_count\":0", 1);
    let mut file = tempfile::NamedTempFile::new().unwrap();
    std::io::Write::write_all(&mut file, &zstd::encode_all(text.as_bytes(), 1).unwrap()).unwrap();
    let read_back = Snapshot::open(file.path(), &ReadOptions::default()).unwrap();
    assert_eq!(read_back.edge_count(), 3);
}

#[test]
fn counts_of_the_header_are_taken_as_json_has_them_or_refused_by_name() {
    let with = |number: &str| small().replace("\"node_count\":3", &format!("\"node_count\":{number}"));
    assert_ne!(with("7"), small());
    for number in ["3", "3.0", "0.3e1"] {
        assert_eq!(read(with(number).as_bytes()).unwrap().problems(), &[], "{number}");
    }
    assert!(!read(with("1e3").as_bytes()).unwrap().problems().is_empty());
    for number in ["1.5", "-3", "\"3\"", "1e+30", "true"] {
        let error = read(with(number).as_bytes()).unwrap_err().to_string();
        assert!(error.contains("has node_count") && error.contains(number.trim_matches('"')), "{error}");
    }
}
