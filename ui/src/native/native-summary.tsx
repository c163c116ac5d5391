/** Contents of one native snapshot, by stack, frame or image, with ages. */
import { go, useAddress } from '../address/use-address';
import type { NativeRow, NativeSummary } from '../api/types';
import { formatDuration, formatPercent } from '../format';
import { Search } from '../frame/search';
import { Split } from '../frame/split';
import type { Column } from '../table/columns';
import { emptyText } from '../table/empty-text';
import { Table } from '../table/table';
import { amountText, exactAmount, isEstimate } from '../trace/estimate';
import { FramePane } from '../trace/frame-pane';
import { StackPane } from '../trace/stack-pane';
import { ageColumn, bytesColumn, countColumn, momentFilter, stackColumn, widened } from './native-columns';
import { GroupChoice, Warnings, groupOf, useNativeRows } from './native-rows';
import type { NativeViewProps } from './view-props';

export function NativeSummaryView({ file, filter, shown, onCommand }: NativeViewProps) {
  const address = useAddress();
  const by = groupOf(address.group);
  const sort = ['bytes', 'count', 'oldest', 'youngest'].includes(address.sort) ? address.sort : 'bytes';
  const body = { file: file.file, number: shown.number, filter: momentFilter(filter), by, sort, descending: !address.ascending, match: address.match };
  const { tree, isLoading, page: whole } = useNativeRows<NativeRow, NativeSummary>('summary', body, onCommand);
  const columns: Column<NativeRow>[] = [
    { key: 'percent', title: '%', isNumber: true, width: 4, text: (row) => (whole ? formatPercent(row.block_bytes, whole.total_bytes).replace(' %', '') : '') },
    bytesColumn('block_bytes', 'Bytes', 'Bytes that were live', 'bytes'), countColumn('block_count', 'Blocks', 'Blocks that were live', 'count'),
    ageColumn('mean_age_ns', 'Mean age', 'From allocation to the snapshot, on average'), ageColumn('oldest_ns', 'Oldest', 'Age of the oldest block', 'oldest'),
    ageColumn('youngest_ns', 'Youngest', 'Age of the youngest block', 'youngest'), stackColumn<NativeRow>(by),
  ];
  const inSnapshot = { ...momentFilter(filter), snapshot: String(shown.number) };
  const pane = address.select === '' ? null
    : by === 'stacks' ? <StackPane file={file} filter={inSnapshot} id={address.select} />
      : by === 'frames' ? <FramePane file={file} filter={inSnapshot} frame={address.select} sort="so" /> : null;
  const table = (
    <Table
      label={`${file.name} snapshot ${shown.number}`} columns={widened(columns, isEstimate(whole))} tree={tree} rowKey={(row) => row.id ?? row.frames.join('\n')} selected={address.select}
      onSelect={(row) => row.id !== null && go({ select: row.id }, true)} sort={sort} descending={!address.ascending}
      onSort={(key, descending) => go({ sort: key === 'bytes' ? '' : key, ascending: !descending })} hidden={address.hidden} onHide={(hidden) => go({ hidden }, true)}
      isOld={isLoading} empty={emptyText(address.match, 'Nothing was live.')}
      tools={(
        <>
          <GroupChoice by={by} />
          <Search value={address.match} onChange={(match) => go({ match }, true)} label="Search the snapshot" />
          {whole && <span class="quiet" title={exactAmount(whole, 'total_bytes')}>{amountText(whole, 'total_bytes')} in {amountText(whole, 'total_count')} blocks, mean age {formatDuration(whole.mean_age_ns)}</span>}
        </>
      )}
    />
  );
  return (
    <>
      <Warnings of={whole?.warnings} />
      <Split direction="side" label="Width of the details" share={0.36} first={table} second={pane} />
    </>
  );
}
