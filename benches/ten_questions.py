#!/usr/bin/env python3
"""The ten questions of docs/tables.md, asked of DuckDB, ClickHouse (chDB), Spark and DataFusion, as
far as they are installed: all must give the same answers. And each table read by pandas with
pyarrow, fastparquet and polars: all must see the same rows.

    benches/ten_questions.py DIR             DIR has tables of `heapr export --to parquet`
    benches/ten_questions.py --install VENV  makes VENV with all of them; Spark needs a Java beside
                                             (apt-get install default-jre-headless)
"""
import datetime, decimal, importlib.util, json, pathlib, re, shutil, subprocess, sys, time

PACKAGES = ["duckdb", "chdb", "pyspark", "datafusion"]
READING = ["pandas", "pyarrow", "fastparquet", "polars"]
TABLES = ["processes", "frames", "stacks", "samples", "mappings", "resident"]
PAGE = pathlib.Path(__file__).parent.parent / "docs/tables.md"


def statements(folder):
    """Returns the statements that make the views, by engine, and the questions."""
    page = PAGE.read_text().replace("DIR/", folder + "/")
    views, questions = {}, []
    for part in page.split("```sql")[1:]:
        engine, text = part.split("```")[0].split("\n", 1)
        text = text.rstrip().rstrip(";")
        if engine.strip():
            views[engine.strip()] = text.split(";\n")
        elif "duckdb" not in views:
            views["duckdb"] = text.split(";\n")
        else:
            questions.append(text)
    return views, questions


def of_duckdb(views):
    import duckdb

    database = duckdb.connect()
    for statement in views:
        database.execute(statement)
    return lambda question: database.execute(question).fetchall()


def of_clickhouse(views):
    from chdb import session

    click = session.Session()
    click.query("CREATE DATABASE tables ENGINE = Atomic")
    click.query("USE tables")
    for statement in views:
        click.query(statement)

    def ask(question):
        answer = click.query(f"SELECT * FROM ({question}) SETTINGS join_use_nulls = 1", "JSONCompactEachRow")
        return [json.loads(line) for line in str(answer).splitlines()]

    return ask


def of_spark(views):
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.sql.shuffle.partitions", "2").config("spark.driver.host", "127.0.0.1")
    spark = builder.config("spark.driver.bindAddress", "127.0.0.1").config("spark.sql.session.timeZone", "UTC").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    for statement in views:
        spark.sql(statement)
    return lambda question: [tuple(row) for row in spark.sql(question).collect()]


def of_datafusion(views):
    from datafusion import SessionContext

    context = SessionContext()
    for statement in views:
        context.sql(statement).collect()
    return lambda question: [tuple(row.values()) for row in context.sql(question).to_pylist()]


ENGINES = {
    "duckdb": ("duckdb", of_duckdb),
    "clickhouse": ("chdb", of_clickhouse),
    "spark": ("pyspark", of_spark),
    "datafusion": ("datafusion", of_datafusion),
}


def by_pyarrow(files):
    import pandas

    return pandas.concat([pandas.read_parquet(file, engine="pyarrow", partitioning=None) for file in files])


def by_fastparquet(files):
    import fastparquet, pandas

    return pandas.concat([fastparquet.ParquetFile(file).to_pandas() for file in files])


def by_polars(files):
    import polars

    return polars.concat([polars.read_parquet(file, hive_partitioning=False) for file in files])


READERS = {
    "pyarrow": ("pyarrow", by_pyarrow),
    "fastparquet": ("fastparquet", by_fastparquet),
    "polars": ("polars", by_polars),
}


def cell(value):
    """Returns a value as text: a time in ns, a missing value as empty."""
    import numpy, pandas

    if value is None or value is pandas.NaT or value != value:
        return ""
    if isinstance(value, (datetime.datetime, numpy.datetime64)):
        return str(pandas.Timestamp(value).as_unit("ns").value)
    return value.decode() if isinstance(value, bytes) else str(value)


def read(folder):
    """Returns the number of tables on which the installed readers differ."""
    there = {name: reader for name, (package, reader) in READERS.items() if is_there(package)}
    if not there or not is_there("pandas"):
        return 0
    differ = 0
    for table in TABLES:
        files = sorted(str(file) for file in pathlib.Path(folder, table).glob("**/*.parquet"))
        seen, columns = {}, None
        for name, reader in there.items():
            data = reader(files)
            columns = columns or list(data.columns)
            data = data[columns]
            data = data.iter_rows() if name == "polars" else data.itertuples(index=False)
            seen[name] = sorted(tuple(map(cell, row)) for row in data)
        first = next(iter(seen.values()))
        others = [name for name, found in seen.items() if found != first]
        differ += bool(others)
        print(f"{table}: {len(first)} rows by {', '.join(seen)}", " DIFFERENT" if others else " equal", flush=True)
        for name in others:
            print("  ", name, next(iter(set(seen[name]) - set(first)), None), next(iter(set(first) - set(seen[name])), None))
    return differ


def is_there(package):
    return importlib.util.find_spec(package) is not None and (package != "pyspark" or shutil.which("java"))


def plain(value):
    """Returns a value as text, the same from every engine."""
    if value is None or value == "":
        return ""
    if isinstance(value, (int, float, decimal.Decimal)):
        return f"{float(value):.3f}"
    text = str(value)
    try:
        return f"{float(text):.3f}"
    except ValueError:
        pass
    if re.match(r"\d{4}-\d\d-\d\d[T ]", text):
        text = text.replace("T", " ").split("+")[0]
        return text.rstrip("0").rstrip(".") if "." in text else text
    return text


def rows(found):
    return sorted(tuple(plain(value) for value in row) for row in found)


def answer(name, folder):
    """Prints the answers of an engine, a line a question: seconds and rows."""
    views, questions = statements(folder)
    ask = ENGINES[name][1](views[name])
    for question in questions:
        started = time.time()
        found = rows(ask(question))
        print("answer", json.dumps([time.time() - started, found]), flush=True)


def answers(name, folder):
    """Returns seconds and rows by question. Each engine has a process of its own, because they share
    libraries that conflict."""
    ran = subprocess.run([sys.executable, __file__, "--answer", name, folder], stdout=subprocess.PIPE, text=True)
    lines = [line for line in ran.stdout.splitlines() if line.startswith("answer ")]
    found = [json.loads(line.removeprefix("answer ")) for line in lines]
    # Failures at the interpreter's end do not matter once all answers are there.
    if len(found) != len(statements(folder)[1]):
        sys.exit(f"{name} ended with status {ran.returncode} after {len(found)} answers")
    return found


def main(folder):
    asked = [name for name, (package, _) in ENGINES.items() if is_there(package)]
    if len(asked) < 2:
        sys.exit(f"two engines at least are needed of {', '.join(PACKAGES)}: {sys.argv[0]} --install VENV")
    differ = read(folder)
    of_engines = [answers(name, folder) for name in asked]
    for number, of_question in enumerate(zip(*of_engines), 1):
        first, line = of_question[0][1], f"{number:2}"
        others = []
        for name, (seconds, found) in zip(asked, of_question):
            line += f"  {name} {len(found)} rows {seconds:.2f} s"
            # If the last rows of a limit are equal, either may be left out: amounts are compared.
            if found != first and not len(found) == len(first) == 20:
                others.append((name, found))
        differ += bool(others)
        print(line, " DIFFERENT" if others else " equal", flush=True)
        for name, found in others:
            print(f"   {name}: {found[:3]}\n   {asked[0]}: {first[:3]}")
    print(f"asked: {', '.join(asked)}")
    sys.exit(differ > 0)


if sys.argv[1:2] == ["--install"]:
    subprocess.run([sys.executable, "-m", "venv", sys.argv[2]], check=True)
    subprocess.run([sys.argv[2] + "/bin/pip", "install", "-q", *PACKAGES, *READING], check=True)
elif sys.argv[1:2] == ["--answer"]:
    answer(*sys.argv[2:])
else:
    main(sys.argv[1])
