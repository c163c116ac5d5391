/** Comparison of two native snapshots, with those between them: new, freed and remaining blocks. */
import { go, useAddress } from '../address/use-address';
import type { NativeDiff, NativeDiffRow } from '../api/types';
import { Curve } from '../canvas/curve';
import { exactBytes, formatBytes, formatCount, formatPercent, formatSignedBytes, formatSignedCount, plural } from '../format';
import { Message } from '../frame/message';
import { Search } from '../frame/search';
import type { Column } from '../table/columns';
import { emptyText } from '../table/empty-text';
import { Table } from '../table/table';
import { exactAmount, isEstimate, withHalf, within } from '../trace/estimate';
import { bytesColumn, countColumn, deltaColumn, momentFilter, snapshotTitle, snapshotsOf, stackColumn, widened } from './native-columns';
import { type Choices, GroupChoice, OrderChoice, Warnings, groupOf, orderOf, useNativeRows } from './native-rows';
import type { NativeViewProps } from './view-props';

/** Order of more than two snapshots: steady growth comes first. */
const STEADY: Choices = [['steady', 'steady growth first']];
const SORTS: Choices = [['change', 'largest change first'], ['growth', 'largest growth first'], ['new', 'most new bytes first'], ['gone', 'most freed bytes first']];

export function NativeComparisonView({ file, files, filter, shown, onCommand }: NativeViewProps) {
  const address = useAddress();
  const by = groupOf(address.group);
  const others = files.filter((other) => other.trace).flatMap((other) => snapshotsOf(other).map((snapshot) => ({ file: other, snapshot })))
    .filter(({ file: other, snapshot }) => other.file !== file.file || snapshot.number !== shown.number);
  const own = others.filter((other) => other.file.file === file.file && other.snapshot.time_ns <= shown.time_ns);
  const before = others.find((other) => `${other.file.file}:${other.snapshot.number}` === address.since) ?? own[0] ?? others[0];
  if (!before) return <Message kind="note">A comparison needs a second snapshot: <code>heapr run --snapshot-every 10 -- PROGRAM</code></Message>;
  // The snapshots between the two show the course.
  const isOneFile = before.file.file === file.file;
  const between = isOneFile && address.between
    ? snapshotsOf(file).filter((snapshot) => snapshot.time_ns > before.snapshot.time_ns && snapshot.time_ns < shown.time_ns).slice(0, 60) : [];
  const sorts = between.length > 0 ? [...STEADY, ...SORTS] : SORTS;
  const of = [{ file: before.file.file, number: before.snapshot.number }, ...between.map((snapshot) => ({ file: file.file, number: snapshot.number })), { file: file.file, number: shown.number }];
  return (
    <Rows
      key={by} of={of} by={by} sorts={sorts} filter={momentFilter(filter)} label={`${file.name} snapshots ${before.snapshot.number} to ${shown.number}`} onCommand={onCommand}
      tools={(
        <>
          <label>
            Since{' '}
            <select aria-label="Compared with" value={`${before.file.file}:${before.snapshot.number}`} onChange={(event) => go({ since: event.currentTarget.value })}>
              {others.map((other) => <option key={`${other.file.file}:${other.snapshot.number}`} value={`${other.file.file}:${other.snapshot.number}`}>{other.file === file ? '' : `${other.file.name} `}{snapshotTitle(other.snapshot)}</option>)}
            </select>
          </label>
          {isOneFile && <label class="check" title="How the bytes went from snapshot to snapshot; no command line says that"><input type="checkbox" checked={address.between} onChange={() => go({ between: !address.between })} /> the snapshots between, too</label>}
        </>
      )}
    />
  );
}

function bytesIn(row: NativeDiffRow, at: number, text: (bytes: number) => string): string {
  return within(row.block_bytes[at] ?? 0, row.block_bytes_plus_minus?.[at], text);
}

/**
 * Columns for the course from the first to the last: a curve, and on choice the bytes and blocks in
 * each.
 */
function betweenColumns(of: { number: number }[]): Column<NativeDiffRow>[] {
  const between = of.slice(1, -1).map((snapshot, place): Column<NativeDiffRow> => ({
    key: `bytes_in_${snapshot.number}`, title: `In ${snapshot.number}`, help: `Bytes in snapshot ${snapshot.number}`, isNumber: true, width: 6.8, isExtra: true,
    text: (row) => bytesIn(row, place + 1, formatBytes), exact: (row) => `${bytesIn(row, place + 1, exactBytes)} in ${plural(row.block_count[place + 1] ?? 0, 'block')}`, raw: (row) => row.block_bytes[place + 1] ?? 0,
  }));
  return [
    { key: 'block_bytes', title: 'Between', width: 7, text: (row) => row.block_bytes.map((_, at) => bytesIn(row, at, formatBytes)).join(' '), exact: (row) => row.block_bytes.map((_, at) => bytesIn(row, at, formatBytes)).join(' → '), cell: (row) => <Curve values={row.block_bytes} halves={row.block_bytes_plus_minus} /> },
    {
      key: 'steadiness', title: 'Steady', help: '100 %: it grew from each snapshot to the next; less where it stood still, shrank in between or grew in one leap', isNumber: true, width: 5.2,
      text: (row) => (row.steadiness ? formatPercent(row.steadiness, 1) : ''), raw: (row) => row.steadiness,
    },
    ...between,
  ];
}

interface RowsProps extends Pick<NativeViewProps, 'filter' | 'onCommand'> {
  of: { file: number; number: number }[];
  by: string;
  sorts: Choices;
  label: string;
  tools: preact.ComponentChildren;
}

function Rows({ of, by, sorts, filter, label, tools, onCommand }: RowsProps) {
  const address = useAddress();
  const sort = orderOf(address.sort, sorts);
  const body = { of, filter, by, sort, descending: !address.ascending, match: address.match };
  const { tree, isLoading, page: whole } = useNativeRows<NativeDiffRow, NativeDiff>('diff', body, onCommand);
  const columns: Column<NativeDiffRow>[] = [
    deltaColumn('bytes_delta', 'Change', 'Bytes after less bytes before'), deltaColumn('count_delta', 'Blocks', 'Blocks after less blocks before'),
    ...(whole?.is_one_recording === false ? [] : [
      bytesColumn<NativeDiffRow>('new_bytes', 'New', 'Allocated since the first of the two, and still live'), bytesColumn<NativeDiffRow>('gone_bytes', 'Gone', 'Live then, and freed since'),
      { ...countColumn<NativeDiffRow>('new_count', 'New blocks', 'Blocks allocated since'), isExtra: true }, { ...countColumn<NativeDiffRow>('gone_count', 'Gone blocks', 'Blocks freed since'), isExtra: true },
    ]),
    bytesColumn('before_bytes', 'Before', 'Bytes in the first'), bytesColumn('after_bytes', 'After', 'Bytes in the second'),
    ...(of.length > 2 ? betweenColumns(of) : []),
    stackColumn<NativeDiffRow>(by),
  ];
  return (
    <>
      <Warnings of={whole?.warnings} />
      <Table
        label={label} columns={widened(columns, isEstimate(whole))} tree={tree} rowKey={(row) => row.frames.join('\n')} hidden={address.hidden} onHide={(hidden) => go({ hidden }, true)} isOld={isLoading} empty={emptyText(address.match, 'No difference.')}
        tools={(
          <>
            {tools}
            <GroupChoice by={by} />
            <OrderChoice sort={sort} sorts={sorts} />
            <Search value={address.match} onChange={(match) => go({ match }, true)} label="Search the comparison" />
            {whole && <span class="quiet" title={exactAmount(whole, 'bytes_delta')}>{withHalf(whole, 'bytes_delta', formatSignedBytes, formatBytes)}, {withHalf(whole, 'count_delta', formatSignedCount, formatCount)} blocks</span>}
          </>
        )}
      />
    </>
  );
}
