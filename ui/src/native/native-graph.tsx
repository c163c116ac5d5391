/** References of a native snapshot: who holds blocks, which are leaked, and the objects behind. */
import { go, useAddress } from '../address/use-address';
import type { GraphHolder, GraphLeaksAnswer, HoldersAnswer, LeakedRow, OpenFile } from '../api/types';
import { exactBytes, formatBytes, formatPercent } from '../format';
import { Message } from '../frame/message';
import { Search } from '../frame/search';
import { Split } from '../frame/split';
import { ObjectPane } from '../snapshot/object-pane';
import { SummaryView } from '../snapshot/summary-view';
import { TreeView } from '../snapshot/tree-view';
import type { Column } from '../table/columns';
import { emptyText } from '../table/empty-text';
import { Table } from '../table/table';
import { StackPane } from '../trace/stack-pane';
import { ageColumn, bytesColumn, countColumn, deltaColumn, momentFilter, snapshotsOf, stackColumn } from './native-columns';
import { useNativeRows } from './native-rows';
import type { NativeViewProps } from './view-props';

const HOW = 'heapr snapshot take --graph PID';

/** Message of a snapshot without references; null if it has them. */
function withoutGraph({ file, shown }: NativeViewProps) {
  if (shown.has_graph) return null;
  const other = snapshotsOf(file).filter((snapshot) => snapshot.has_graph).at(-1);
  if (!other) return <Message kind="note">Who holds these blocks is not in the file: <code>{HOW}</code> takes a snapshot with references.</Message>;
  return <Message kind="note">Snapshot {shown.number} has no references; <button type="button" class="link" onClick={() => go({ number: other.number })}>snapshot {other.number}</button> has them.</Message>;
}

export function NativeHoldersView(props: NativeViewProps) {
  return withoutGraph(props) ?? <Holders {...props} />;
}

function Holders({ file, shown, onCommand }: NativeViewProps) {
  const address = useAddress();
  const body = { file: file.file, number: shown.number, match: address.match };
  const { tree, isLoading, page } = useNativeRows<GraphHolder, HoldersAnswer>('holders', body, onCommand);
  const columns: Column<GraphHolder>[] = [
    { key: 'percent', title: '%', isNumber: true, width: 4, text: (row) => (page ? formatPercent(row.retained_bytes, page.block_bytes).replace(' %', '') : '') },
    bytesColumn('retained_bytes', 'Holds', 'Bytes that would be freed with it: nothing else holds them'), countColumn('retained_count', 'Blocks', 'Blocks that it alone holds'),
    ...(page?.growth_since == null ? [] : [deltaColumn<GraphHolder>('growth_bytes', 'Growth', `Since snapshot ${page.growth_since}`)]),
    { key: 'holder', title: 'Holder', width: 0, text: (row) => row.name },
  ];
  return (
    <Table
      label={`${file.name} holders`} columns={columns} tree={tree} rowKey={(row) => row.name} hidden={address.hidden} onHide={(hidden) => go({ hidden }, true)} isOld={isLoading}
      empty={emptyText(address.match, 'Nothing is held.')}
      tools={(
        <>
          <Search value={address.match} onChange={(match) => go({ match }, true)} label="Search holders" />
          {page && <span class="quiet" title={exactBytes(page.block_bytes)}>{formatBytes(page.held_by_one_bytes)} of {formatBytes(page.block_bytes)} are held by one alone, {formatBytes(page.held_by_several_bytes)} by several together; the rest is leaked, or small and shared</span>}
        </>
      )}
    />
  );
}

const KINDS: Record<string, string> = { definite: 'leaked', possible: 'possibly leaked', indirect: 'leaked with others' };

export function NativeLeaksView(props: NativeViewProps) {
  return withoutGraph(props) ?? <GraphLeaks {...props} />;
}

function GraphLeaks({ file, filter, shown, onCommand }: NativeViewProps) {
  const address = useAddress();
  const body = { file: file.file, number: shown.number, match: address.match };
  const { tree, isLoading, page } = useNativeRows<LeakedRow, GraphLeaksAnswer>('leaks', body, onCommand);
  const columns: Column<LeakedRow>[] = [
    { key: 'kind', title: 'Kind', help: 'Leaked: nothing leads to it. Possibly: only something doubtful does. With others: only leaked blocks do', width: 8, text: (row) => `${KINDS[row.kind] ?? row.kind}${row.circle_count > 0 ? ', in a circle' : ''}` },
    bytesColumn('block_bytes', 'Bytes', 'Bytes of the blocks'), countColumn('block_count', 'Blocks', 'Number of blocks'), bytesColumn('retained_bytes', 'With held', 'Bytes with those that only these hold'),
    ageColumn('oldest_ns', 'Oldest', 'Age of the oldest block'), ageColumn('youngest_ns', 'Youngest', 'Age of the youngest block'),
    { key: 'type', title: 'Type', width: 9, text: (row) => row.type_name ?? '', exact: (row) => (row.type_name === null ? 'unknown' : `${row.type_name}, by ${row.type_source ?? ''}`) }, stackColumn<LeakedRow>('stacks'),
  ];
  const table = (
    <Table
      label={`${file.name} leaked blocks`} columns={columns} tree={tree} rowKey={(row) => `${row.kind} ${row.id ?? ''} ${row.type_name ?? ''}`} selected={address.select}
      onSelect={(row) => row.id !== null && go({ select: row.id }, true)} hidden={address.hidden} onHide={(hidden) => go({ hidden }, true)} isOld={isLoading}
      empty={emptyText(address.match, 'No block is leaked: something leads to each.')} tools={<Search value={address.match} onChange={(match) => go({ match }, true)} label="Search leaked blocks" />}
    />
  );
  return (
    <>
      {page?.doubt && <Message kind="note">{page.doubt}</Message>}
      {(page?.notes ?? []).map((note) => <Message key={note} kind="note">not seen: {note}</Message>)}
      <Split direction="side" label="Width of the details" share={0.36} first={table} second={address.select === '' ? null : <StackPane file={file} filter={{ ...momentFilter(filter), snapshot: String(shown.number) }} id={address.select} />} />
    </>
  );
}

/** Returns the open file that has the references of a snapshot. */
function graphFile({ file, files, shown }: NativeViewProps): OpenFile | undefined {
  return files.find((other) => other.graph?.file === file.file && other.graph.number === shown.number);
}

/** Objects of the graph, with their retainers, as heaps of other kinds have them. */
export function NativeObjectsView(props: NativeViewProps & { kind: 'objects' | 'dominators' }) {
  const address = useAddress();
  const missing = withoutGraph(props);
  if (missing) return missing;
  const graph = graphFile(props);
  if (!graph) {
    const shown = props.files.find((other) => other.graph?.file === props.file.file)?.graph;
    return <Message kind="note">Single objects are shown of the last snapshot with references{shown ? <>: <button type="button" class="link" onClick={() => go({ number: shown.number })}>snapshot {shown.number}</button></> : ''}.</Message>;
  }
  if (!graph.snapshot) return <p class="empty" role="status">{graph.state === 'failed' ? `${graph.error ?? 'it cannot be read'}` : 'Reading the references…'}</p>;
  const of = { file: graph, files: [graph], totalBytes: graph.snapshot.total_bytes, onCommand: (command: string | null) => props.onCommand(command, null) };
  return (
    <Split
      direction="below" label="Height of the object" share={0.5}
      first={props.kind === 'dominators' ? <TreeView kind="dominators" {...of} /> : <SummaryView {...of} />}
      second={address.object >= 0 ? <ObjectPane {...of} id={address.object} /> : null}
    />
  );
}
