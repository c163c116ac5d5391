/**
 * Address of the page, which holds what is shown:
 * `#view=flame&range=1s&range=2s&value=total_bytes`. Only values that differ from the default are
 * written, so that a shared address is short. A value that cannot be read falls back to the
 * default.
 */
import type { Filter } from '../api/types';

const DEFAULTS = {
  /** Number of the file. */
  file: 0,
  /** Empty: the first view of the file's kind. */
  view: '',
  // The filter, as in the API.
  pid: [] as string[],
  heap: [] as string[],
  thread: [] as string[],
  range: [] as string[],
  lifetime: [] as string[],
  size: [] as string[],
  at: '',
  temporary: false,
  type: '',
  require_frames: [] as string[],
  innermost_frames: [] as string[],
  cull_frames: [] as string[],
  no_default_cull: false,
  hide_known: false,
  snapshot: '',
  /**
   * Frames shown of stacks with language frames: mixed, own, native; empty for the choice of the
   * command line.
   */
  lang_frames: '',
  // The timeline: the amounts that are drawn, and the interval that is visible (ns).
  by: 'image',
  chart: 'bytes',
  rss: true,
  seen: [] as string[],
  // The flame graph.
  /** Metric of the graph; empty for what is live, or was at the peak. */
  value: '',
  direction: 'top-down',
  shape: 'flame',
  recursion: false,
  /** Whether each frame of a library is a box or row of its own. */
  libraries: false,
  /** Images whose frames are one box or row where they call one another. */
  collapsed: [] as string[],
  /**
   * Whether each line of a function is a row or box of its own in flame graph, call tree, functions
   * and frames.
   */
  lines: false,
  root: '',
  focus: '',
  search: '',
  // Tables.
  sort: '',
  ascending: false,
  match: '',
  select: '',
  hidden: [] as string[],
  // A comparison: both files (-1 for the default), and moments of both.
  before: -1,
  after: -1,
  before_at: '',
  after_at: '',
  picture: 'table',
  /** Empty: functions for two files, stacks for two moments of one. */
  group: '',
  /** Numbers of further builds of a comparison, and pairs of functions made by hand (`old=new`). */
  more: [] as string[],
  pair: [] as string[],
  /** Number of the finding whose story is shown; -1 for the list. */
  finding: -1,
  /** Whether leaks that are known to be harmless are shown. */
  known: false,
  /** Whether leaks exclude what the program frees as it ends. */
  to_end: false,
  /** Whether rows without a difference are shown. */
  same: false,
  // Native snapshots: the view, the snapshot (-1 for the last), the one before (`file:number`).
  part: 'summary',
  number: -1,
  since: '',
  between: false,
  // Snapshots.
  kind: [] as string[],
  class: '',
  object: -1,
  ignore: [] as string[],
  lower: 'retainers',
  list: 'strings',
  /** Notes of the author: `1200ms text`, or text alone. */
  notes: [] as string[],
  /** Index of a moment of resident memory or of the address space; -1 for the last. */
  moment: -1,
};

const LANGUAGE_FRAMES = ['mixed', 'own', 'native'] as const;

export type Address = typeof DEFAULTS;

/** Returns the default of every field. */
export function defaultAddress(): Address {
  return structuredClone(DEFAULTS);
}

/** Parses the text after `#`. */
export function parseAddress(hash: string): Address {
  const address = defaultAddress();
  const given = new URLSearchParams(hash.replace(/^#/, ''));
  const fields = address as unknown as Record<string, unknown>;
  for (const [name, fallback] of Object.entries(DEFAULTS)) {
    const values = given.getAll(name);
    const last = values.at(-1);
    if (last === undefined) continue;
    if (Array.isArray(fallback)) fields[name] = values;
    else if (typeof fallback === 'number') fields[name] = /^-?\d{1,15}$/.test(last) ? Number(last) : fallback;
    else if (typeof fallback === 'boolean') fields[name] = last === '1' ? true : last === '0' ? false : fallback;
    else fields[name] = last;
  }
  for (const pair of ['range', 'lifetime', 'size', 'seen'] as const) {
    if (address[pair].length !== 2) address[pair] = [];
  }
  return address;
}

/** Returns the text after `#`; empty if all fields have their defaults. */
export function writeAddress(address: Address): string {
  const text = new URLSearchParams();
  for (const [name, fallback] of Object.entries(DEFAULTS)) {
    const value = address[name as keyof Address];
    if (Array.isArray(value)) {
      for (const item of value) text.append(name, item);
    } else if (value !== fallback) {
      text.set(name, typeof value === 'boolean' ? (value ? '1' : '0') : String(value));
    }
  }
  return text.toString();
}

/** Returns the filter of an address in the server's form. */
export function filterOf(address: Address): Filter {
  const filter: Filter = {};
  for (const name of ['pid', 'heap', 'thread', 'require_frames', 'innermost_frames', 'cull_frames'] as const) {
    if (address[name].length > 0) filter[name] = address[name];
  }
  for (const name of ['range', 'lifetime', 'size'] as const) {
    const [from, to] = address[name];
    if (from !== undefined && to !== undefined) filter[name] = [from, to];
  }
  if (address.at) filter.at = address.at;
  if (address.type) filter.type = address.type;
  if (address.temporary) filter.temporary = true;
  if (address.no_default_cull) filter.no_default_cull = true;
  if (address.hide_known) filter.hide_known = true;
  if (address.snapshot) filter.snapshot = address.snapshot;
  const shown = LANGUAGE_FRAMES.find((name) => name === address.lang_frames);
  if (shown) filter.lang_frames = shown;
  return filter;
}

/** Returns the fields of the filter, emptied. */
export function emptyFilter(): Partial<Address> {
  return {
    pid: [], heap: [], thread: [], range: [], lifetime: [], size: [], at: '', temporary: false, type: '', require_frames: [],
    innermost_frames: [], cull_frames: [], no_default_cull: false, hide_known: false, snapshot: '',
  };
}

/** Returns the change of an address that adds a filter: lists grow, other fields are replaced. */
export function addedFilter(address: Address, filter: Filter): Partial<Address> {
  const change: Partial<Address> = {};
  for (const name of ['pid', 'heap', 'thread', 'require_frames', 'innermost_frames', 'cull_frames'] as const) {
    const more = filter[name];
    if (more) change[name] = [...new Set([...address[name], ...more])];
  }
  for (const name of ['range', 'lifetime', 'size'] as const) {
    const pair = filter[name];
    if (pair) change[name] = [...pair];
  }
  if (filter.at !== undefined) change.at = filter.at;
  if (filter.type !== undefined) change.type = filter.type;
  if (filter.temporary) change.temporary = true;
  if (filter.no_default_cull) change.no_default_cull = true;
  return change;
}
