//! Tables queried by DuckDB: the ten questions of `docs/tables.md`, compared with reports.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use heapr_export::tables::{Recording, Table, write_tables};
use heapr_query::{Answer, Metric};
use heapr_trace::Trace;
use serde_json::Value;

use crate::made_trace::{Embedded, four_minutes, report, sampled};
use crate::python;

/// Python program that executes the statements of standard input. Each `SELECT` prints a line of
/// JSON.
const ASK: &str = r"
import sys, json, duckdb, decimal, datetime, uuid
def plain(value):
    return int(value) if isinstance(value, decimal.Decimal) else str(value)
db = duckdb.connect()
db.execute('SET threads = 2')
for statement in sys.stdin.read().split(';\n'):
    if not statement.strip():
        continue
    found = db.execute(statement)
    if statement.strip().startswith('SELECT'):
        names = [column[0] for column in found.description]
        print(json.dumps([dict(zip(names, row)) for row in found.fetchall()], default=plain))
";

pub(crate) fn write(trace: &Trace, folder: &Path, service: &str) {
    let recording = Recording {
        host: "here",
        service: Some(service),
        labels: "{}",
        file: service,
        interval_ns: 60_000_000_000,
    };
    let mut new_file = |table: &Table| {
        let place = folder.join(table.name).join("date=2026-11-26");
        std::fs::create_dir_all(&place)?;
        Ok(Box::new(std::fs::File::create(place.join(format!("{service}.parquet")))?) as Box<dyn Write>)
    };
    let damage = write_tables(trace, &recording, &mut Embedded::of(trace), &mut new_file).unwrap();
    assert!(damage.is_empty());
}

/// SQL statements of the documentation page: the definitions of views, and the questions.
fn statements(folder: &Path) -> (String, Vec<String>) {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/tables.md");
    let page = std::fs::read_to_string(page).unwrap().replace("DIR", &folder.display().to_string());
    let mut blocks = page.split("```sql\n").skip(1).map(|part| part.split("```").next().unwrap().to_owned());
    (blocks.next().unwrap(), blocks.collect())
}

pub(crate) fn ask(python: &Path, statements: &str) -> Vec<Vec<BTreeMap<String, Value>>> {
    ask_by(python, ASK, statements).into_iter().map(|rows| serde_json::from_value(rows).unwrap()).collect()
}

/// Runs a Python program that reads the statements, and returns the lines of JSON that it prints.
fn ask_by(python: &Path, program: &str, statements: &str) -> Vec<Value> {
    let mut child = Command::new(python)
        .args(["-c", program])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(statements.as_bytes()).unwrap();
    let ran = child.wait_with_output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let text = String::from_utf8(ran.stdout).unwrap();
    text.lines().filter(|line| !line.is_empty()).map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn number(row: &BTreeMap<String, Value>, name: &str) -> u64 {
    row[name].as_u64().unwrap_or_else(|| panic!("{name} in {row:?}"))
}

/// Spark (if Java is installed), DataFusion and DuckDB give the same answers.
#[test]
fn all_engines_give_the_same_answers() {
    let packages = [("duckdb", "duckdb"), ("datafusion", "datafusion"), ("pyspark", "pyspark")];
    let Some(python) = python::with(&packages) else { return };
    let folder = tempfile::tempdir().unwrap();
    let trace = four_minutes();
    write(&trace, folder.path(), "before");
    write(&trace, folder.path(), "after");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../benches/ten_questions.py");
    let ran = Command::new(python).arg(script).arg(folder.path()).output().unwrap();
    let said = String::from_utf8_lossy(&ran.stdout);
    let errors = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{}: {said}{errors}", ran.status);
    assert!(said.contains("asked: duckdb") && said.contains("datafusion"), "{said}");
    if !said.contains("spark") {
        heapr_testkit::not_run("no java: Spark does not run");
    }
}

#[test]
fn ten_questions_have_the_answers_of_reports() {
    let Some(python) = python::with(&[("duckdb", "duckdb")]) else { return };
    let folder = tempfile::tempdir().unwrap();
    let trace = four_minutes();
    // Two recordings: equal contents have equal ids in both.
    write(&trace, folder.path(), "before");
    write(&trace, folder.path(), "after");
    let (views, questions) = statements(folder.path());
    assert_eq!(questions.len(), 10);
    let metrics: Vec<String> = Metric::all().map(|metric| format!("sum({0}) {0}", metric.name())).collect();
    let counts = "SELECT (SELECT count(*) FROM frames) frames, (SELECT count(DISTINCT stack_id) FROM stacks) stacks, \
                  (SELECT count(*) FROM mappings) mappings, (SELECT count(*) FROM resident) resident, \
                  (SELECT count(DISTINCT time) FROM samples) times;\n";
    let sums_of = |samples: &str| {
        format!(
            "SELECT {} FROM {samples};\n",
            metrics
                .join(", ")
                .replace("sum(outstanding_bytes)", "sum(outstanding_bytes) FILTER (is_last = 1)")
                .replace("sum(outstanding_count)", "sum(outstanding_count) FILTER (is_last = 1)")
        )
    };
    let sums = sums_of("samples WHERE service = 'before'");
    // A sampled recording, whose amounts are estimates.
    let (estimates, other_folder) = (sampled(), tempfile::tempdir().unwrap());
    write(&estimates, other_folder.path(), "sampled");
    let files = format!("read_parquet('{}/samples/**/*.parquet')", other_folder.path().display());
    let statements = [views, questions.concat(), counts.to_owned(), sums, sums_of(&files)];
    let answers = ask(&python, &statements.concat());
    let of_estimates = report(&estimates).totals.amounts();
    for metric in Metric::all() {
        assert_eq!(number(&answers[12][0], metric.name()), metric.of(&of_estimates), "{}", metric.name());
    }
    let report = report(&trace);
    let totals = report.totals.amounts();
    // Every metric of one recording is equal to the byte.
    for metric in Metric::all() {
        assert_eq!(number(&answers[11][0], metric.name()), metric.of(&totals), "{}", metric.name());
    }
    let counts = &answers[10][0];
    assert_eq!(number(counts, "stacks"), 3);
    // Functions main, grow inlined into it, churn, passing.
    assert_eq!(number(counts, "frames"), 5);
    assert_eq!(number(counts, "times"), 4);
    assert_eq!(number(counts, "resident"), 2 * 240);
    assert!(number(counts, "mappings") >= 2);

    let all = &answers[0][0];
    assert_eq!(number(all, "live_bytes"), 2 * totals.outstanding_bytes);
    assert_eq!(number(all, "total_bytes"), 2 * totals.total_bytes);
    assert_eq!(number(all, "allocations"), 2 * totals.total_count);
    assert_eq!(number(all, "temporary"), 2 * totals.temporary_count);
    let Answer::Ranking(ranking) = &report.sections[0].answer else { panic!("no ranking") };
    let of_grow = ranking.groups.iter().map(|group| group.amounts.outstanding_bytes).max().unwrap();
    assert_eq!((answers[1].len(), number(&answers[1][0], "bytes")), (3, 2 * of_grow));
    assert_eq!(answers[1][0]["stack"], "grow <- main <- main");
    assert_eq!(number(&answers[1][0], "processes"), 2);
    let by_function: BTreeMap<&str, u64> =
        answers[2].iter().map(|row| (row["function"].as_str().unwrap(), number(row, "bytes"))).collect();
    assert_eq!(by_function.values().sum::<u64>(), 2 * totals.total_bytes);
    assert_eq!(by_function["churn"], 2 * 240 * 2 * 16);
    let main = answers[3].iter().find(|row| row["function"] == "main").unwrap();
    assert_eq!(number(main, "bytes"), 2 * totals.outstanding_bytes);
    assert_eq!(answers[4].len(), 2 * 4);
    assert_eq!(
        answers[4].iter().map(|row| number(row, "allocated_bytes")).sum::<u64>(),
        2 * totals.total_bytes
    );
    assert_eq!(answers[5][0]["stack"], "grow <- main <- main");
    assert_eq!(number(&answers[5][0], "growth"), 180 * 100);
    assert!(answers[6].iter().all(|row| number(row, "more_bytes") == 0), "{:?}", answers[6]);
    assert_eq!(number(&answers[7][0], "allocations"), 2 * 480);
    assert_eq!(number(&answers[7][0], "temporary"), 2 * 480);
    let held = &answers[8][0];
    assert_eq!(number(held, "anonymous"), (100 + 239) * 4096);
    assert_eq!(number(held, "not_in_blocks"), number(held, "anonymous") - totals.outstanding_bytes);
    assert_eq!(
        answers[9].iter().map(|row| number(row, "innermost_bytes")).sum::<u64>(),
        2 * totals.outstanding_bytes
    );
    assert_eq!(number(&answers[9][0], "processes"), 2);
}

/// ClickHouse as a library is another reader of the format, and gives the same sums.
#[test]
fn clickhouse_reads_the_same() {
    const ASK: &str = r"
import sys, chdb
print(chdb.query(sys.stdin.read(), 'JSONEachRow'))
";
    let Some(python) = python::with(&[("chdb", "chdb")]) else { return };
    let folder = tempfile::tempdir().unwrap();
    let trace = four_minutes();
    write(&trace, folder.path(), "service");
    let place = |table: &str| format!("file('{}/{table}/*/*.parquet', Parquet)", folder.path().display());
    let sums: Vec<String> = Metric::all()
        .map(|metric| {
            let is_state = metric.name().starts_with("outstanding");
            let of = if is_state { "is_last" } else { "1" };
            format!("toString(sum({} * {of})) AS {}", metric.name(), metric.name())
        })
        .collect();
    let statement = format!(
        "SELECT {}, (SELECT count() FROM {}) AS frames FROM {}",
        sums.join(", "),
        place("frames"),
        place("samples")
    );
    let answers = ask_by(&python, ASK, &statement);
    let totals = report(&trace).totals.amounts();
    for metric in Metric::all() {
        assert_eq!(answers[0][metric.name()], metric.of(&totals).to_string(), "{}", metric.name());
    }
    assert_eq!(answers[0]["frames"].to_string().trim_matches('"'), "5");
}
