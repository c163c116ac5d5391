/** Suspects that grow from native snapshot to native snapshot, the surest first. */
import { go, useAddress } from '../address/use-address';
import type { NativeSuspect, RowsAnswer } from '../api/types';
import { Curve } from '../canvas/curve';
import { formatBytes, formatPercent } from '../format';
import { Message } from '../frame/message';
import { Search } from '../frame/search';
import { Split } from '../frame/split';
import type { Column } from '../table/columns';
import { emptyText } from '../table/empty-text';
import { Table } from '../table/table';
import { isEstimate, withHalf } from '../trace/estimate';
import { StackPane } from '../trace/stack-pane';
import { ageColumn, deltaColumn, momentFilter, snapshotsOf, stackColumn, widened } from './native-columns';
import { type Choices, GroupChoice, OrderChoice, Warnings, groupOf, orderOf, useNativeRows } from './native-rows';
import type { NativeViewProps } from './view-props';

const SORTS: Choices = [['oldest', 'surest, then oldest first'], ['rate', 'fastest first'], ['growth', 'largest growth first']];

export function NativeSuspectsView({ file, filter, shown, onCommand }: NativeViewProps) {
  const count = snapshotsOf(file).filter((snapshot) => !/^(exit|killed|out of)/.test(snapshot.trigger)).length;
  if (count < 3) {
    return <Message kind="note">Growth is seen in three or more snapshots, and there {count === 1 ? 'is 1' : `are ${count}`}: <code>heapr run --snapshot-every 10 -- PROGRAM</code></Message>;
  }
  return <Suspects {...{ file, filter, shown, onCommand }} />;
}

function Suspects({ file, filter, shown, onCommand }: Pick<NativeViewProps, 'file' | 'filter' | 'shown' | 'onCommand'>) {
  const address = useAddress();
  const by = groupOf(address.group);
  const sort = orderOf(address.sort, SORTS);
  const body = { files: [file.file], filter: momentFilter(filter), by, sort, match: address.match };
  // A running session takes ever more snapshots.
  const version = String(file.trace?.snapshots?.length ?? 0);
  const { tree, isLoading, page } = useNativeRows<NativeSuspect, RowsAnswer<NativeSuspect> & { snapshots?: object[] }>('suspects', body, onCommand, version);
  const columns: Column<NativeSuspect>[] = [
    { key: 'confidence', title: 'Confidence', help: 'How sure it is that this grows steadily', width: 6.2, text: (row) => row.confidence, cell: (row) => <span class={`verdict is-${row.confidence}`}>{row.confidence}</span> },
    { key: 'bytes_per_hour', title: 'Per hour', help: 'Median of the slopes between all pairs of snapshots', isNumber: true, width: 6.8, text: (row) => withHalf(row, 'bytes_per_hour', (rate) => formatBytes(Math.round(rate)), formatBytes), raw: (row) => row.bytes_per_hour },
    deltaColumn('growth_bytes', 'Growth', 'From the first to the last snapshot'),
    { key: 'rising_share', title: 'Rising', help: 'Share of the steps that go up', isNumber: true, width: 5.2, text: (row) => formatPercent(row.rising_share, 1), raw: (row) => row.rising_share },
    { key: 'kept_share', title: 'Kept', help: 'Share of the intervals of which blocks are still live: a leak keeps some of each', isNumber: true, width: 5.2, text: (row) => (row.kept_share === null ? '' : formatPercent(row.kept_share, 1)), raw: (row) => row.kept_share ?? '' },
    { key: 'chance', title: 'Chance', help: 'How probable it is that bytes without a trend rise so', isNumber: true, width: 5.2, text: (row) => (row.chance < 0.0005 ? '< 0.001' : row.chance.toFixed(3)), raw: (row) => row.chance },
    ageColumn('oldest_ns', 'Oldest', 'Age of the oldest block'),
    { key: 'block_bytes', title: 'Over time', width: 8, text: (row) => row.block_bytes.map(formatBytes).join(' '), exact: (row) => row.block_bytes.map(formatBytes).join(' → '), cell: (row) => <Curve values={row.block_bytes} /> },
    stackColumn<NativeSuspect>(by),
  ];
  const table = (
    <Table
      label={`${file.name} suspects`} columns={widened(columns, (page?.snapshots ?? []).some(isEstimate))} tree={tree} rowKey={(row) => row.id ?? row.frames.join('\n')} selected={address.select}
      onSelect={(row) => row.id !== null && go({ select: row.id }, true)} hidden={address.hidden} onHide={(hidden) => go({ hidden }, true)} isOld={isLoading} empty={emptyText(address.match, 'No suspect: nothing grew steadily.')}
      tools={(
        <>
          <GroupChoice by={by} />
          <OrderChoice sort={sort} sorts={SORTS} />
          <Search value={address.match} onChange={(match) => go({ match }, true)} label="Search suspects" />
        </>
      )}
    />
  );
  return (
    <>
      <Warnings of={page?.warnings} />
      <Split
        direction="side" label="Width of the details" share={0.34} first={table}
        second={address.select && by === 'stacks' ? <StackPane file={file} filter={{ ...momentFilter(filter), snapshot: String(shown.number) }} id={address.select} /> : null}
      />
    </>
  );
}
