/** The table of crates/export/src/lib.rs, written by its test: not to be edited. */

export const EXPORT_FORMATS: { name: string; ending: string; help: string }[] = [
  { name: 'collapsed', ending: 'txt', help: "A line for each stack, as flame graph scripts read it" },
  { name: 'pprof', ending: 'pb.gz', help: "pprof's gzipped protocol buffer, with all values" },
  { name: 'otlp', ending: 'otlp.pb', help: "OpenTelemetry's profiles (alpha), a profile for each value" },
  { name: 'speedscope', ending: 'speedscope.json', help: "The file format of speedscope.app" },
  { name: 'flamegraph', ending: 'svg', help: "A self-contained SVG" },
];
