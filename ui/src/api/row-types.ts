/** Common fields of answers with rows in the HTTP API. */
export interface RowsAnswer<Row> {
  rows: Row[];
  row_count: number;
  command?: string | null;
  total_bytes?: number;
  warnings?: string[];
  kept_count?: number;
  /** Objects of which address and class alone say that they are the same; absent where no contents tell. */
  by_address_count?: number | null;
  is_cut?: boolean;
}
