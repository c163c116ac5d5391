/** Common fields of answers with rows in the HTTP API. */
export interface RowsAnswer<Row> {
  rows: Row[];
  row_count: number;
  command?: string | null;
  total_bytes?: number;
  warnings?: string[];
  kept_count?: number;
  is_cut?: boolean;
}
