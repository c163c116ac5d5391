/** V8 snapshots in the HTTP API. */
export interface SnapshotFacts {
  node_count: number;
  edge_count: number;
  total_bytes: number;
  exposes_internals: boolean;
  root_id: number;
  problems: (string | { offset?: number; what?: string })[];
}

export interface HeapObject {
  id: number;
  name: string;
  class: string;
  type: string;
  distance: number;
  shallow_bytes: number;
  retained_bytes: number;
  child_count: number;
  dom_state: string | null;
  system?: boolean;
}

export interface EdgeRow extends HeapObject {
  edge: string;
  edge_type: string;
}

export interface ClassRow {
  class: string;
  class_key: string;
  place: string | null;
  object_count: number;
  distance: number;
  shallow_bytes: number;
  retained_bytes: number;
}

export interface ClassDiffRow {
  class: string;
  class_key: string;
  place: string | null;
  new_count: number;
  deleted_count: number;
  count_delta: number;
  new_bytes: number;
  deleted_bytes: number;
  bytes_delta: number;
}

/** A class over several snapshots: one number for each. */
export interface ClassSeriesRow {
  class: string;
  place: string | null;
  /** Its key in each snapshot that has it. */
  class_keys: (string | null)[];
  object_count_at: number[];
  shallow_bytes_at: number[];
  retained_bytes_at: number[];
  count_growth: number;
  growth_bytes: number;
  /** 0 to 1. */
  steadiness: number;
}

export interface PathStep {
  name: string;
  id: number;
  held_as: string;
  place: string | null;
}

export interface ObjectAnswer {
  object: HeapObject;
  /** The whole name, or the whole string. */
  text: string | null;
  place: string | null;
  dominator: HeapObject | null;
  dominated_count: number;
  command: string | null;
}

export interface Suspect {
  name: string;
  confidence: 'high' | 'medium' | 'low';
  reasons: string[];
  owner_id: number;
  owner_class: string;
  owner_count: number;
  place: string | null;
  growth_bytes: number;
  growth_count: number;
  growth_bytes_at: number[];
  retained_bytes_at: (number | null)[];
  collects: {
    class: string;
    count: number;
    bytes: number;
    example_id: number | null;
    example_text: string | null;
    example_place: string | null;
  }[];
  also_held_by: (string | { name: string; id: number })[];
  path: PathStep[];
}

export interface Owner {
  name: string;
  id: number;
  retained_bytes: number;
  count: number;
  class: string;
  class_count: number;
  place: string | null;
  path: PathStep[];
}

export interface TreemapAnswer {
  names: string[];
  nodes: {
    id: (string | number | null)[];
    parent: number[];
    name: number[];
    value: number[];
    self: number[];
    left_out: number[];
  };
}
