/** V8 snapshots in the HTTP API. */
import type { Treemap } from './answers';

export type { ClassDiffRow, ClassRow, ClassSeriesRow, EdgeRow, HeapObject, ObjectAnswer, SnapshotFacts } from './answers';

export interface PathStep {
  name: string;
  id: number;
  held_as: string;
  place: string | null;
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

export type TreemapAnswer = Pick<Treemap<string | number>, 'names' | 'nodes'>;
