// Server with invented answers of the API's shapes. It covers what no real file has at once: a
// million rows, a hundred thousand frames, loss, damage, markup in every name. It also serves work
// on the page without a trace.
//   node e2e/mock-server.mjs [PORT]
import { createServer } from 'node:http';
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const dist = join(dirname(fileURLToPath(import.meta.url)), '../dist');
const TYPES = { html: 'text/html', js: 'text/javascript', css: 'text/css', svg: 'image/svg+xml' };
const CSP = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
const MARKUP = ['<img src=x onerror=window.markupRan=1>', '<script>window.markupRan=1</script>', '"><b>bold</b>', 'javascript:window.markupRan=1', '&lt;'];
const MODULES = ['/usr/lib/libclang-cpp.so.14', '/usr/lib/libLLVM-14.so.1', '/lib/x86_64-linux-gnu/libc.so.6', '/usr/bin/clang', '/usr/lib/libxml2.so.2', null];
export const ROWS = 1_000_000;
export const FLAME_NODES = 100_000;
const GIB = 2 ** 30;

let seed = 7;
const random = () => (seed = (seed * 1103515245 + 12345) % 2147483648) / 2147483648;

function frame(number) {
  const symbol = number % 11 === 3 ? MARKUP[number % MARKUP.length] : number % 13 === 5 ? null : `clang::Sema::ActOn<${number}>(clang::Scope*, unsigned long)`;
  return { module: MODULES[number % MODULES.length], symbol, file: symbol ? `/src/lib/Sema/File${number % 97}.cpp` : null, line: symbol ? number % 4000 : null, inlined: number % 7 === 0, offset: 4096 + number * 16 };
}
function metrics(number) {
  const bytes = Math.round(GIB / (number + 2));
  return { outstanding_bytes: bytes, outstanding_count: Math.round(bytes / 97), total_bytes: bytes * 3, total_count: Math.round(bytes / 30), realloc_count: number % 50, peak_bytes: Math.round(bytes * 1.2), peak_count: Math.round(bytes / 80), temporary_count: Math.round(bytes / 300) };
}
const whole = metrics(-1);
const totals = { alloc_count: 8_000_000, alloc_bytes: 9 * GIB, free_count: 7_600_000, realloc_count: 120_000, failed_count: 0, outstanding_count: 400_000, outstanding_bytes: GIB, temporary_count: 1_900_000, peak_bytes: 1.3 * GIB, peak_count: 900_000, peak_time_ns: 3_100_000_000, unmatched_frees: 0, inherited_frees: 0, implied_frees: 0 };
const DURATION_NS = 4_698_000_000;

function group(number) {
  return { id: `s${number}`, frames: [0, 1, 2, 3].map((at) => frame(number + at * 3)), frame_count: 23, ...metrics(number), oldest_ns: 1e6 * number, newest_ns: 4e9, mean_age_ns: 2e9, growth: Array.from({ length: 16 }, (_, at) => at * (number + 1)) };
}
function page(count, body, make) {
  const from = body.offset ?? 0;
  return Array.from({ length: Math.max(0, Math.min(body.limit ?? 200, count - from)) }, (_, at) => make(from + at));
}
let flame;
function flameAnswer() {
  if (flame) return flame;
  const nodes = { id: ['n0'], parent: [-1], frame: [-1], value: [GIB], self: [0], left_out: [0] };
  let level = [0];
  while (nodes.id.length < FLAME_NODES && level.length > 0) {
    const next = [];
    for (const parent of level) {
      const share = nodes.value[parent];
      let left = share * 0.97;
      for (let child = 0; child < 6 && left > share * 0.02 && nodes.id.length < FLAME_NODES; child += 1) {
        const value = child === 0 ? left * 0.55 : left * random();
        left -= value;
        next.push(nodes.id.length);
        nodes.id.push(`n${nodes.id.length}`);
        nodes.parent.push(parent);
        nodes.frame.push(Math.floor(random() * 3000));
        nodes.value.push(value);
        nodes.self.push(value * 0.03);
        nodes.left_out.push(child === 3 ? value * 0.1 : 0);
      }
    }
    level = next;
  }
  const names = [''];
  const frames = Array.from({ length: 3000 }, (_, number) => {
    const { module, symbol, offset } = frame(number);
    const name = (text) => (text === null ? 0 : names.push(text) - 1);
    return { id: `f${number}`, symbol: name(symbol), module: name(module), offset, ...(number % 3 === 0 ? { is_own: true } : {}) };
  });
  flame = { command: 'heapr report mock.heapr --invert so', value: 'outstanding_bytes', total: GIB, node_count: nodes.id.length, names, frames, nodes };
  return flame;
}
function object(number) {
  return { id: number, name: number % 9 === 4 ? MARKUP[number % MARKUP.length] : `Session${number}`, class: 'Session', type: 'object', distance: 3 + (number % 9), shallow_bytes: 48 + (number % 5) * 8, retained_bytes: Math.round(5e8 / (number + 1)) + 48, child_count: number % 4 === 0 ? 0 : 40, dom_state: null };
}
const edge = (number) => ({ edge: `field${number}`, edge_type: 'property', ...object(number) });
const trace = {
  duration_ns: DURATION_NS, start_unix_ns: 1763731325000000000, event_count: 15_600_000, is_complete: false, command_line: ['clang++', '-c', '<b>templates</b>.cc'],
  loss: { events_lost: 3, stacks_lost: 0, events_late: 0, records_invalid: 0, processes_refused: 1 }, damage: [{ offset: 4096, bytes: 512, what: 'checksum' }],
  system: { kernel: 'Linux 6.18', machine: 'x86_64', cpu_count: 2, memory_bytes: 24 * GIB }, processes: [{ process: 0, pid: 77, name: 'clang++', executable: '/usr/bin/clang', command_line: [], start_ns: 0, end_ns: null, exit_code: 0, signal: null }],
  threads: [{ thread: 0, process: 0, tid: 77, name: 'clang++', start_ns: 0, end_ns: null }], modules: [{ path: '/usr/bin/clang', build_id: null }], markers: [{ time_ns: 1.2e9, text: 'parsed <i>' }, { time_ns: 3.3e9, text: 'linked' }], totals,
};
const path = [{ name: '(root)', id: 1, held_as: '', place: null }, { name: 'globalThis', id: 5, held_as: '(2)', place: null }, { name: 'MemoryStore', id: 77, held_as: 'variable store', place: '/srv/memory.js:40:21' }, { name: 'Object', id: 99, held_as: '.sessions', place: null }];
const classRow = (number) => ({ class: number % 9 === 4 ? MARKUP[number % MARKUP.length] : `Class${number}`, class_key: `c${number}`, place: number % 2 ? `/srv/app/src/file${number}.js:${number}:7` : null, object_count: 100000 - number, distance: 3, shallow_bytes: Math.round(4e8 / (number + 1)), retained_bytes: Math.round(6e8 / (number + 1)) });

const native = Array.from({ length: 5 }, (_, at) => ({ number: at + 1, name: at === 2 ? MARKUP[0] : '', time_ns: (at + 1) * 8e8, trigger: 'every 1 s', block_count: 1000 * (at + 1), block_bytes: 1e6 * (at + 1), processes: [{ pid: 77, name: 'clang++ (77)', rss_bytes: 5e7, block_count: 1000, block_bytes: 1e6 }], notes: at === 3 ? ['3 events were lost before it'] : [], has_graph: at > 2 }));
const nativeFrames = (number) => [`clang!${number % 9 === 4 ? MARKUP[number % MARKUP.length] : `grow${number}`}`, 'clang!main', 'libc.so.6!?'];
const live = { name: 'web', state: 'recording', shown_until_ns: DURATION_NS, trouble: null, status: { mode: 'trace', duration_ns: DURATION_NS, event_count: 1e6, events_lost: 2, live_bytes: 5e7, live_count: 7e5, peak_bytes: 6e7, file_bytes: 1e7, process_count: 3, live_process_count: 2, write_error: null, remarks: ['<i>flagged</i> program 77 was traced'] } };
const BAD_PATTERN = { error: 'the pattern "bad!!" has two exclamation marks', offset: null, field: 'filter.require_frames' };
const ANSWERS = {
  '/api/files': () => ({ heapr_version: 'mock', files: [
    { file: 0, kind: 'trace', name: 'mock.heapr', path: '/tmp/mock.heapr', file_bytes: 27_224_933, state: 'ready', error: null, offset: null, tasks: [], warnings: [], trace },
    { file: 1, kind: 'trace', name: 'second.heapr', path: '/tmp/second.heapr', file_bytes: 7_224_933, state: 'changed', error: null, offset: null, tasks: [], warnings: [], trace: { ...trace, start_unix_ns: trace.start_unix_ns - 60e9, damage: [], loss: { events_lost: 0, stacks_lost: 0, events_late: 0, records_invalid: 0, processes_refused: 0 } } },
    { file: 2, kind: 'v8', name: 'a.heapsnapshot', path: '/tmp/a.heapsnapshot', file_bytes: 1e9, state: 'ready', error: null, offset: null, tasks: [], warnings: [], snapshot: { node_count: 9_000_000, edge_count: 40_000_000, total_bytes: 1e9, exposes_internals: false, root_id: 1, problems: [] } },
    { file: 3, kind: 'v8', name: 'b.heapsnapshot', path: '/tmp/b.heapsnapshot', file_bytes: 1e9, state: 'ready', error: null, offset: null, tasks: [], warnings: [], snapshot: { node_count: 9_000_000, edge_count: 40_000_000, total_bytes: 1e9, exposes_internals: false, root_id: 1, problems: [] } },
    { file: 5, kind: 'trace', name: 'live.heapr', path: '/tmp/live.heapr', file_bytes: 9e6, state: 'ready', error: null, offset: null, tasks: [], warnings: [], generation: 3, trace: { ...trace, damage: [], snapshots: native, resident_samples: 9 }, session: live },
    { file: 6, kind: 'resident', name: 'looks.json', path: '/tmp/looks.json', file_bytes: 9e5, state: 'ready', error: null, offset: null, tasks: [], warnings: [], resident: { of: 'process 77 clang', moment_count: 30 } },
    { file: 7, kind: 'v8', name: 'live.0.heapsnapshot', path: '/tmp/x/live.0.heapsnapshot', file_bytes: 1e6, state: 'ready', error: null, offset: null, tasks: [], warnings: [], graph: { file: 5, number: 5, pid: null }, snapshot: { node_count: 9_000, edge_count: 40_000, total_bytes: 5e6, exposes_internals: false, root_id: 1, problems: [] } },
    { file: 4, kind: 'trace', name: 'broken.heapr', path: '/tmp/broken.heapr', file_bytes: 12, state: 'failed', error: 'no trace: it begins with "GIF89a"', offset: 0, tasks: [], warnings: [] },
  ] }),
  '/api/timeline': (body) => {
    const bins = body.bins ?? 1000;
    const [from_ns, to_ns] = [body.from_ns ?? 0, body.to_ns ?? DURATION_NS];
    const at = (bin) => { const t = (from_ns + ((bin + 1) * (to_ns - from_ns)) / bins) / DURATION_NS; return Math.round(GIB * (t + 0.25 * Math.abs(Math.sin(t * 21)) + (t > 0.6 && t < 0.7 ? 0.25 : 0))); };
    const live = Array.from({ length: bins }, (_, bin) => at(bin));
    const series = body.by === 'none' ? [] : ['libclang-cpp.so.14', 'libLLVM-14.so.1', 'libc.so.6', 'clang', '<b>markup</b>'].map((name, number) => ({ name, filter: { require_frames: [`${name}!`] }, id: `i${number}`, values: live.map((value, bin) => Math.round((value * (0.4 + 0.1 * Math.sin(bin / 60 + number))) / (number + 1.6))) }));
    return { from_ns, to_ns, bins, live_bytes: live, live_count: live.map((value) => Math.round(value / 99)), most_bytes: live.map((value) => Math.round(value * 1.03)), alloc_bytes: live.map((value) => value >> 8), alloc_count: live.map((value) => value >> 14), free_count: live, series, rest: live.map((value, bin) => value - series.reduce((sum, one) => sum + one.values[bin], 0)), rss: [{ pid: 77, time_ns: Array.from({ length: 200 }, (_, at) => (at * DURATION_NS) / 200), rss_bytes: Array.from({ length: 200 }, (_, at) => (at * 1.6 * GIB) / 200) }], markers: trace.markers, snapshots: [{ time_ns: 2e9, pid: 77 }], peak: { time_ns: totals.peak_time_ns, bytes: totals.peak_bytes, count: totals.peak_count } };
  },
  '/api/report': (body) => ({ command: `heapr report mock.heapr --${body.by} ${body.sort}`, totals, heaps: [{ pid: 77, process: 'clang++', heap: 'malloc', ...totals }], group_count: ROWS, match_count: ROWS, all: whole, matched: whole, offset: body.offset, groups: page(ROWS, body, group) }),
  '/api/diff-functions': (body) => ({ schema: '', command: 'heapr diff second.heapr mock.heapr --by function', sentence: `keep_session ${MARKUP[0]} holds 2.19 MiB more than remember did: 900 bytes a block instead of 700.`, totals: body.sides.map((_, at) => metrics(at)), function_count: 300, match_count: 300, offset: body.offset ?? 0,
    functions: page(300, body, (number) => ({ names: body.sides.map((_, at) => (number % 7 === 3 && at === 0 ? null : number === 0 && at === 0 ? 'remember' : `f${number}`)), frames: body.sides.map((_, at) => (number % 7 === 3 && at === 0 ? null : frame(number))), amounts: body.sides.map((_, at) => metrics(number + 3 - Math.min(at, 2))), renamed: number === 0, delta: 1000 - number })) }),
  '/api/examples': () => ({ schema: '', blocks: [0, 1, 2].map((at) => ({ size_bytes: 700 + at, born_ns: at * 1e9, age_ns: 4e9 - at * 1e9, thread: `worker ${MARKUP[1]}`, stack: `s${at}`, frames: [0, 1, 2, 3].map((step) => frame(at + step * 3)), own: null })) }),
  '/api/where': (body) => {
    const at = body.filter?.at ? Number.parseFloat(body.filter.at) * (body.filter.at.endsWith('ns') ? 1 : body.filter.at.endsWith('us') ? 1e3 : body.filter.at.endsWith('ms') ? 1e6 : 1e9) : 3.1e9;
    const share = at / DURATION_NS;
    const piece = (kind, label, bytes, more = {}) => ({ kind, label, note: '', frame: null, is_own: false, bytes: Math.round(bytes * share), block_count: null, stack_count: 0, ...more });
    const live = { block_count: 4000, stack_count: 12 };
    const pieces = [
      piece('inclusive', 'clang::Parser::ParseTopLevelDecl, with what it calls', 0.4 * GIB, { ...live, is_own: true, frame: frame(1) }), piece('function', MARKUP[0], 0.2 * GIB, { ...live, is_own: true, frame: frame(3) }),
      piece('small', 'small stacks: 12,000 of 400 functions', 0.1 * GIB, live), piece('kept', 'freed and kept by malloc, headers', 0.1 * GIB, { note: 'at least' }),
      piece('files', 'programs, libraries and other files', 0.08 * GIB), piece('thread_stacks', 'thread stacks', 0.01 * GIB), piece('unknown', 'unknown', 0.05 * GIB),
    ];
    const sum = (of) => of.reduce((all, { bytes }) => all + bytes, 0);
    return { schema: 'heapr.view.where/1', command: 'heapr explain mock.heapr --where', time_ns: at, rss_bytes: sum(pieces), rss_time_ns: at, live_bytes: sum(pieces.slice(0, 3)), live_count: 12000, beyond_bytes: 0, whole_bytes: sum(pieces), pieces, not_told: [`what <b>is</b> not known`] };
  },
  '/api/findings': () => ({ command: 'heapr explain mock.heapr', verdict: '', findings: [{ kind: 'growth', sentence: `Memory grows: clang::Sema::ActOn (<b>File7.cpp</b>:7) holds 1.00 GiB in 9 blocks after 5.000 s.`, confidence: 'high', own_frame: { module: '/usr/bin/clang', symbol: 'clang::Sema::ActOn(int)', file: '/src/<b>File7.cpp</b>', line: 7 }, bytes: GIB, left: true, evidence: ['it rises in 100 % of the steps', MARKUP[0]], command: 'heapr report mock.heapr --at 5s', chosen: { at: '5s', require_frames: ['clang::Sema::ActOn'] }, curve: Array.from({ length: 40 }, (_, at) => [at * 1e8, at * 2e7]), source: { first_line: 6, lines: ['void f() {', MARKUP[0], '}'], is_newer: false } }] }),
  '/api/functions': (body) => ({ command: 'heapr report mock.heapr --functions so', totals, function_count: ROWS, match_count: ROWS, functions: page(ROWS, body, (number) => ({ id: `f${number}`, frame: frame(number), is_own: number % 3 === 0, inclusive: metrics(number), own: metrics(number + 5) })) }),
  '/api/leaks': (body) => ({ command: 'heapr report mock.heapr --stacks so', totals, heaps: [], group_count: ROWS, match_count: ROWS, all: whole, matched: whole, offset: body.offset, groups: page(ROWS, body, group) }),
  '/api/stack': (body) => ({ frames: Array.from({ length: 23 }, (_, at) => ({ ...frame(Number(body.id.slice(1)) + at * 3), culled: at < 1, id: `f${at}`, source: at === 1 ? { first_line: 10, lines: ['int main() {', '  return "<script>window.markupRan=1</script>";', '}'], is_newer: true } : null })) }),
  '/api/flame': () => flameAnswer(),
  '/api/diff-flame': () => { const base = flameAnswer(); const { value, self, left_out, ...nodes } = base.nodes; return { ...base, nodes: { ...nodes, before: value.map((amount, at) => amount * (0.3 + (at % 8) / 10)), after: value } }; },
  '/api/frame': () => ({ command: "heapr report mock.heapr --callers 'libc.so.6!malloc'", frame: frame(1), inclusive: metrics(1), self: metrics(3), callers: [2, 3, 4].map((number) => ({ id: `f${number}`, frame: frame(number), ...metrics(number) })), callees: [5, 6, 7].map((number) => ({ id: `f${number}`, frame: frame(number), ...metrics(number) })) }),
  '/api/histograms': () => ({ command: 'heapr report mock.heapr --histogram size', histograms: ['size', 'lifetime'].map((of) => ({ of, unit: of === 'size' ? 'bytes' : 'ns', buckets: Array.from({ length: 24 }, (_, at) => ({ from: 2 ** at, last: 2 ** (at + 1) - 1, total_count: Math.round(1e6 * Math.exp(-((at - 8) ** 2) / 14)), total_bytes: 2 ** at * 1000, outstanding_count: 10 * at, outstanding_bytes: 100 * at })) })) }),
  '/api/types': () => ({ types: ['aifi', 'aifo', 'aofi', 'aofo'].map((type, at) => ({ type, command: `heapr report mock.heapr --type ${type}`, count: 1000 * (4 - at), bytes: GIB / (at + 1) })) }),
  '/api/diff': (body) => ({ command: 'heapr diff second.heapr mock.heapr', before: metrics(2), after: metrics(0), group_count: 5000, match_count: 5000, groups: page(5000, body, (number) => ({ names: ['libc.so.6!x', `clang!${MARKUP[number % 5]}`], before: metrics(number + 3), after: metrics(number), delta: 1 })) }),
  '/api/native/summary': (body) => ({ command: 'heapr snapshot summary live.heapr', shown: 5, total_bytes: GIB, total_count: 5000, oldest_ns: 4e9, youngest_ns: 100, mean_age_ns: 2e9, warnings: ['3 events were lost'], row_count: ROWS, rows: page(ROWS, body, (number) => ({ id: `s${number}`, frames: nativeFrames(number), block_bytes: Math.round(GIB / (number + 2)), block_count: 9, youngest_ns: 5, mean_age_ns: 5e6, oldest_ns: 1e9 })) }),
  '/api/native/diff': (body) => ({ command: 'heapr snapshot diff live.heapr', snapshots: [], is_one_recording: true, bytes_delta: 5e6, count_delta: 50, new_bytes: 6e6, gone_bytes: 1e6, warnings: [], row_count: 500, rows: page(500, body, (number) => ({ id: `s${number}`, frames: nativeFrames(number), state: 'grown', before_bytes: 5, after_bytes: 5000, bytes_delta: number % 2 ? -70 : 4995, count_delta: 3, new_bytes: 4995, new_count: 3, gone_bytes: 0, gone_count: 0, block_bytes: body.of.map((_, at) => at * 1000), block_count: [] })) }),
  '/api/native/suspects': (body) => ({ command: 'heapr snapshot suspects live.heapr', snapshots: [], warnings: [], row_count: 3, rows: page(3, body, (number) => ({ id: `s${number}`, frames: nativeFrames(number), confidence: ['high', 'medium', 'low'][number], bytes_per_hour: 1e6, growth_bytes: 5e5, rising_share: 1, chance: 0.004, kept_share: 0.9, oldest_ns: 1e9, block_bytes: [1, 2, 3, 4, 5] })) }),
  '/api/native/treemap': () => ({ names: ['all', 'clang', 'clang!<b>grow</b>', 'clang!?'], nodes: { id: [null, null, 'f1', 's1'], parent: [-1, 0, 1, 2], name: [0, 1, 2, 3], value: [100, 90, 80, 70], self: [0, 0, 0, 70], left_out: [10, 10, 10, 0] } }),
  '/api/native/holders': (body) => ({ command: 'heapr snapshot holders live.heapr', shown: body.number, block_bytes: 5e6, held_by_one_bytes: 4e6, held_by_several_bytes: 5e5, growth_since: 1, row_count: 40, rows: page(40, body, (number) => ({ name: number % 9 === 4 ? MARKUP[number % MARKUP.length] : `clang!cache${number}`, retained_bytes: Math.round(4e6 / (number + 1)), retained_count: 900 - number, growth_bytes: number % 2 ? -70 : 4000 })) }),
  '/api/native/leaks': (body) => ({ command: 'heapr snapshot leaks live.heapr', shown: body.number, block_bytes: 5e6, doubt: `the core lacks memory ${MARKUP[0]}`, notes: [], row_count: 12, rows: page(12, body, (number) => ({ id: `s${number}`, own: 0, kind: ['definite', 'possible', 'indirect'][number % 3], block_count: 9, block_bytes: 900, retained_bytes: 1200, circle_count: number % 2, youngest_ns: 1e6, oldest_ns: 1e9, type_name: number % 2 ? MARKUP[1] : null, type_source: number % 2 ? 'shape' : null, frames: nativeFrames(number) })) }),
  '/api/place': () => ({ schema: '', pid: 77, process_count: 2, cell_bytes: 4096, runs: [{ cell: 0, start_avma: '0x55d0c0000000' }], owners: MARKUP, coloured: 5, moments: Array.from({ length: 48 }, (_, at) => ({ time_ns: (at + 1) * (DURATION_NS / 48), snapshot: null, live_bytes: 2e6, page_bytes: 4e6, free_bytes: 2e6, half_free_bytes: 1e6, rss_bytes: 9e6, pins: MARKUP.map((_, owner) => ({ owner, free_bytes: 1e5 * (5 - owner), block_count: 14, block_bytes: 900 })), cell_live_bytes: Array.from({ length: 900 }, (_, cell) => ((cell + at) % 7 === 0 ? 0 : (cell * 7919) % 4096)), owner: Array.from({ length: 900 }, (_, cell) => (cell % 9 === 0 ? -1 : cell % 5)) })) }),
  '/api/native/pages': (body) => ({ schema: '', command: 'heapr report live.heapr --snapshot 5', shown: body.number, time_ns: body.number * 8e8, page_bytes: 4096, page_count: 900, live_bytes: 2e6 * body.number, free_bytes: 1e6, cell_bytes: 4096, runs: [{ cell: 0, start_avma: '0x55d0c0000000' }], owners: MARKUP.map((label, at) => ({ label, stack: `s${at}`, free_bytes: 1e5 * (at + 1), block_count: 14, block_bytes: 900, live_bytes: 4e5 })), owner: Array.from({ length: 900 }, (_, at) => (at % 9 === 0 ? null : at % 5)), cell_live_bytes: Array.from({ length: 900 }, (_, at) => (at % 7 === 0 ? 0 : (at * 7919) % 4096)) }),
  '/api/native/statistics': () => ({ command: 'heapr report live.heapr --totals --snapshot 5', total_bytes: 100, total_count: 5, heaps: [{ name: 'malloc', block_bytes: 100, block_count: 5 }], threads: [{ name: MARKUP[0], block_bytes: 100, block_count: 5 }], processes: [{ name: 'clang (77)', block_bytes: 100, block_count: 5 }], sizes: { of: 'size', unit: 'bytes', buckets: [] }, ages: { of: 'lifetime', unit: 'ns', buckets: [{ from: 1, last: 1, total_count: 5, total_bytes: 100, outstanding_count: 5, outstanding_bytes: 100 }] } }),
  '/api/resident': (body) => {
    const classes = [['live_blocks', 'live malloc blocks', 0], ['free_pinned', 'free, pinned', 3], ['v8_heap', MARKUP[0], 9], ['code', 'code', 16], ['unknown', 'unknown', 23]];
    const shown = body.moment ?? 29;
    const bytes = (at, moment) => Math.round((GIB / (at + 2)) * (0.4 + moment / 50));
    return {
      command: 'heapr explain looks.json', of: 'process 77 clang', times_ns: Array.from({ length: 30 }, (_, at) => at * 1e9), names: Array.from({ length: 30 }, () => ''), shown,
      rss_bytes: Array.from({ length: 30 }, (_, moment) => classes.reduce((sum, _, at) => sum + bytes(at, moment), 0)),
      bands: classes.map(([key, label, place], at) => ({ class: key, label, place, values: Array.from({ length: 30 }, (_, moment) => bytes(at, moment)) })),
      lines: classes.map(([key, label], at) => ({ class: key, label, bytes: bytes(at, shown), shared_bytes: at * 1e6, note: at === 1 ? `kept by 7 blocks ${MARKUP[1]}` : '', parts: [{ name: 'main arena', bytes: bytes(at, shown) * 0.6 }, { name: MARKUP[at], bytes: bytes(at, shown) * 0.2 }] })),
      pages: { cell_bytes: 131072, runs: [{ cell: 0, start_avma: '0x55d0c0000000' }, { cell: 400, start_avma: '0xffffffffff600000' }], classes: classes.map(([key]) => key), class: Array.from({ length: 900 }, (_, at) => (at % 7 === 0 ? null : Math.floor(at / 190))), resident_bytes: Array.from({ length: 900 }, (_, at) => (at % 7 === 0 ? 0 : (at * 7919) % 131072)) },
      findings: [{ sentence: `free, pinned ${MARKUP[0]}`, confidence: 'high', evidence: ['7 blocks'] }], limits: ['how much of V8 is used'],
    };
  },
  '/api/session/status': () => ({ history: { time_ns: [0, 1e9, 2e9], live_bytes: [0, 2e7, 5e7], live_count: [0, 1, 2], event_count: [0, 1, 2] } }),
  '/api/session/mark': () => ({}),
  '/api/session/snapshot': () => ({ number: 6, block_bytes: 5e7, block_count: 7 }),
  '/api/snapshot/summary': (body) => ({ rows: page(ROWS, body, classRow), row_count: ROWS, total_bytes: 1e9, command: 'heapr snapshot summary a.heapsnapshot' }),
  '/api/snapshot/objects': (body) => ({ rows: page(ROWS, body, object), row_count: ROWS }),
  '/api/snapshot/containment': (body) => ({ rows: page(40, body, edge), row_count: 40 }),
  '/api/snapshot/retainers': (body) => ({ rows: page(40, body, edge), row_count: 40, command: `heapr snapshot retainers a.heapsnapshot @${body.id}` }),
  '/api/snapshot/dominators': (body) => ({ rows: page(40, body, object), row_count: 40 }),
  '/api/snapshot/object': (body) => ({ object: object(body.id), dominated_count: 3, text: 'a <b>text</b>', place: '/srv/memory.js:40:21', dominator: object(5), command: `heapr snapshot object a.heapsnapshot @${body.id}` }),
  '/api/snapshot/paths': () => ({ paths: [path, [path[0], { name: 'Window', id: 12, held_as: 'system', place: null }, path[3]]], is_cut: false }),
  '/api/snapshot/statistics': () => ({ rows: [['code', 2e8], ['strings', 3e8], ['js_arrays', 1e8], ['typed_arrays', 5e7], ['system', 9e7], ['other_js', 2e8], ['other_native', 6e7], ['v8_heap', 9e8], ['native', 1e8], ['total', 1e9]].map(([kind, bytes]) => ({ kind, bytes })) }),
  '/api/snapshot/suspects': (body) => (body.files.length > 1
    ? { files: body.files, growth_bytes: 4e6, doubts: [], suspects: ['high', 'medium', 'low'].map((confidence, at) => ({ name: `MemoryStore.sessions${at || ''}`, confidence, reasons: ['it grew in every interval', 'it is held by the program’s code'], owner_id: 77 + at, owner_class: 'MemoryStore', owner_count: 1, place: '/srv/memory.js:40:21', growth_bytes: 4e6 / (at + 1), growth_count: 4330, growth_bytes_at: [4e6 / (at + 1)], retained_bytes_at: [1e6, 5e6], collects: [{ class: '(string)', count: 4330, bytes: 255000, example_id: 48043, example_text: '<b>V6z0</b>', example_place: null }], also_held_by: [], path })) }
    : { owners: [{ name: 'MemoryStore.sessions', id: 77, retained_bytes: 5e6, count: 1, class: 'Object', class_count: 1, place: null, path }] }),
  '/api/snapshot/diff': (body) => ({ rows: page(3000, body, (number) => ({ ...classRow(number), new_count: 10 * number, deleted_count: number, count_delta: 9 * number, new_bytes: 1e6 / (number + 1), deleted_bytes: 1e5 / (number + 1), bytes_delta: 9e5 / (number + 1) })), row_count: 3000, warnings: [], kept_count: 100000, command: 'heapr snapshot diff a b' }),
  '/api/snapshot/diff-objects': (body) => ({ rows: page(50, body, (number) => ({ change: number % 3 ? 'new' : 'deleted', ...object(number) })), row_count: 50 }),
  '/api/snapshot/search': (body) => ({ rows: page(5000, body, object), row_count: 5000, is_cut: true }),
  '/api/snapshot/treemap': () => { const names = ['(root)']; const nodes = { id: ['1'], parent: [-1], name: [0], value: [1e9], self: [0], left_out: [0] }; const add = (parent, count, deep) => { let left = nodes.value[parent] * 0.95; for (let at = 0; at < count; at += 1) { const value = left * 0.4; left -= value; nodes.id.push(String(nodes.id.length + 100)); nodes.parent.push(parent); nodes.name.push(names.push(at % 4 === 3 ? MARKUP[at % 5] : `Holder${nodes.id.length}`) - 1); nodes.value.push(value); nodes.self.push(value * 0.05); nodes.left_out.push(0); if (deep > 0) add(nodes.id.length - 1, count, deep - 1); } }; add(0, 7, 2); return { names, nodes }; },
};

/**
 * Starts the server; returns its address and a function that ends it. Answers to a path in `held`
 * wait for its promise; those to a path in `changed` are what its function makes of them.
 */
export function startMock(port = 0) {
  const asked = [];
  const held = new Map();
  const changed = new Map();
  const answerTo = (path, make, body) => {
    const answer = make?.(body);
    return answer && changed.has(path) ? changed.get(path)(answer) : answer;
  };
  const server = createServer((incoming, outgoing) => {
    const url = new URL(incoming.url, 'http://localhost');
    if (!url.pathname.startsWith('/api/')) {
      const name = url.pathname === '/' ? 'index.html' : url.pathname.slice(1);
      try {
        const bytes = readFileSync(join(dist, name));
        outgoing.writeHead(200, { 'Content-Type': TYPES[name.split('.').at(-1)] ?? 'text/plain', 'Content-Security-Policy': CSP });
        outgoing.end(bytes);
      } catch {
        outgoing.writeHead(404).end();
      }
      return;
    }
    let text = '';
    incoming.on('data', (part) => (text += part));
    incoming.on('end', async () => {
      const body = text === '' ? {} : JSON.parse(text);
      asked.push({ path: url.pathname, body });
      // A batch is noted with its requests, before an answer is held back.
      for (const request of body.requests ?? []) asked.push({ path: `/api/${request.path}`, body: request.body, isInBatch: true });
      for (const path of [url.pathname, ...(body.requests ?? []).map((request) => `/api/${request.path}`)]) await held.get(path);
      if (url.pathname === '/api/panels') {
        const answers = body.requests.map((request) => {
          const answer = request.body.filter?.require_frames?.includes('bad!!') ? BAD_PATTERN : answerTo(`/api/${request.path}`, ANSWERS[`/api/${request.path}`], request.body);
          return { status: answer.error ? 400 : 200, answer };
        });
        outgoing.writeHead(200, { 'Content-Type': 'application/json' });
        outgoing.end(JSON.stringify({ answers }));
        return;
      }
      const list = /^\/api\/snapshot\/(strings|collections|shapes|fanout|detached|unreachable|closures)$/.test(url.pathname);
      const make = ANSWERS[url.pathname] ?? (list ? () => ({ rows: [{ name: 'a <b>', count: 3, bytes: 5000 }, { name: 'b', count: 2, bytes: 900 }] }) : null);
      const answer = body.filter?.require_frames?.includes('bad!!') ? BAD_PATTERN : answerTo(url.pathname, make, body);
      outgoing.writeHead(answer?.error ? 400 : answer ? 200 : 404, { 'Content-Type': 'application/json' });
      outgoing.end(JSON.stringify(answer ?? { error: 'no such request' }));
    });
  });
  return new Promise((resolve) => server.listen(port, '127.0.0.1', () => resolve({ url: `http://127.0.0.1:${server.address().port}/`, asked, held, changed, stop: () => server.close() })));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { url } = await startMock(Number(process.argv[2] ?? 0));
  console.log(url);
}
