/** Snapshots of native heaps in the HTTP API. */
import type { RowsAnswer } from './row-types';
import type { Histogram } from './trace-types';

export interface NativeSnapshot {
  number: number;
  name: string;
  time_ns: number;
  trigger: string;
  block_count: number;
  block_bytes: number;
  processes: { pid: number | null; name: string; rss_bytes: number | null; block_count: number; block_bytes: number }[];
  notes: string[];
}

export interface NativeRow {
  id: string | null;
  frames: string[];
  block_bytes: number;
  block_count: number;
  youngest_ns: number;
  mean_age_ns: number;
  oldest_ns: number;
}

export interface NativeSummary extends RowsAnswer<NativeRow> {
  shown: number;
  total_bytes: number;
  total_count: number;
  oldest_ns: number;
  youngest_ns: number;
  mean_age_ns: number;
}

export interface TakenSnapshot {
  file: number;
  number: number;
  name: string;
  time_ns: number;
  trigger: string;
  block_bytes: number;
  block_count: number;
}

export interface NativeDiffRow {
  id: string | null;
  frames: string[];
  state: string;
  before_bytes: number;
  after_bytes: number;
  bytes_delta: number;
  count_delta: number;
  new_bytes: number | null;
  new_count: number | null;
  gone_bytes: number | null;
  gone_count: number | null;
  /** By snapshot. */
  block_bytes: number[];
  block_count: number[];
  /** 0 to 1: how steadily the bytes grew over the snapshots. */
  steadiness: number;
}

export interface NativeDiff extends RowsAnswer<NativeDiffRow> {
  snapshots: TakenSnapshot[];
  is_one_recording: boolean;
  bytes_delta: number;
  count_delta: number;
  new_bytes: number | null;
  gone_bytes: number | null;
}

export interface NativeSuspect {
  id: string | null;
  frames: string[];
  confidence: string;
  bytes_per_hour: number;
  growth_bytes: number;
  rising_share: number;
  chance: number;
  kept_share: number | null;
  oldest_ns: number;
  block_bytes: number[];
}

export interface NativeStatistics {
  command: string | null;
  total_bytes: number;
  total_count: number;
  heaps: NativePart[];
  threads: NativePart[];
  processes: NativePart[];
  sizes: Histogram | null;
  ages: Histogram | null;
}

export interface NativePart {
  name: string;
  block_bytes: number;
  block_count: number;
}
