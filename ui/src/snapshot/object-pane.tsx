/**
 * Pane of the chosen object: its retainers, the shortest paths from a root as a picture, and its
 * details.
 */
import { useEffect } from 'preact/hooks';
import { go, useAddress } from '../address/use-address';
import { answer, useAnswer } from '../api/use-answer';
import type { EdgeRow, ObjectAnswer, PathStep, RowsAnswer } from '../api/types';
import { CommandLine } from '../filter/filter-bar';
import { exactBytes, formatBytes, plural } from '../format';
import { Message } from '../frame/message';
import { useTop } from '../frame/use-top';
import { Table } from '../table/table';
import { useTree } from '../table/use-tree';
import { type HeapRow, distanceText, heapColumns } from './object-columns';
import { PathPicture } from './path-picture';
import type { SnapshotViewProps } from './view-props';

/** Most levels of retainers that open by themselves. */
const OPENED_MAX = 20;

const PANES: [string, string][] = [['retainers', 'Retainers'], ['paths', 'Retaining paths'], ['fields', 'Fields'], ['object', 'Object']];

export function ObjectPane(props: SnapshotViewProps & { id: number }) {
  const { file, id } = props;
  const address = useAddress();
  const pane = PANES.find(([key]) => key === address.lower)?.[0] ?? 'retainers';
  const { data, error } = useAnswer<ObjectAnswer>('/api/snapshot/object', { file: file.file, id });
  return (
    <section class="object-pane" aria-label="Object">
      <header class="pane-head">
        <div class="switch" role="group" aria-label="About the object">
          {PANES.map(([key, title]) => <button key={key} type="button" aria-pressed={key === pane} onClick={() => go({ lower: key }, true)}>{title}</button>)}
        </div>
        <strong class="object-title">{data ? data.object.name || data.object.class : ''} <span class="quiet">@{id}</span></strong>
        {data && <span class="quiet" title={`${exactBytes(data.object.shallow_bytes)} shallow, ${exactBytes(data.object.retained_bytes)} retained`}>{formatBytes(data.object.retained_bytes)} retained, distance {distanceText(data.object.distance)}</span>}
        <span class="grow" />
        {!file.graph && <button type="button" class="button" onClick={() => go({ view: 'containment', select: String(id) })}>Contents</button>}
        <button type="button" class="button" onClick={() => go({ ...(file.graph ? { part: 'dominators' } : { view: 'dominators' }), select: String(id) })}>Dominated</button>
        <button type="button" class="button" aria-label="Close the object" onClick={() => go({ object: -1, ignore: [] })}>×</button>
      </header>
      {error && <Message kind="error">{error.message}</Message>}
      {pane === 'retainers' && <Retainers {...props} />}
      {pane === 'paths' && <Paths {...props} />}
      {pane === 'fields' && <Fields {...props} />}
      {pane === 'object' && data && <Facts answer={data} />}
    </section>
  );
}

function Retainers({ file, id, totalBytes }: SnapshotViewProps & { id: number }) {
  const address = useAddress();
  const ignore = address.ignore.map(Number).filter(Number.isFinite);
  const { tree } = useTree<HeapRow>(`retainers ${file.file} ${id} ${ignore.join()}`, async (parent, offset, limit, signal) => {
    const page = await answer<RowsAnswer<EdgeRow>>('/api/snapshot/retainers', { file: file.file, id: parent?.id ?? id, ignore, offset, limit }, signal);
    return { rows: page.rows, count: page.row_count };
  });
  // The shortest path to a root is open from the start: the first retainer of each object is the
  // nearest to a root.
  useEffect(() => {
    let index = 0;
    const step = () => {
      for (; index < OPENED_MAX; index += 1) {
        const at = tree.at(index);
        if (!at?.row) return;
        if (at.depth !== index || (at.row.distance ?? 1) <= 0) return stop();
        // Opening a row notifies the listeners, this step among them.
        if (!at.isOpen) return void (index += 1, tree.open(index - 1));
      }
      stop();
    };
    const stop = tree.listen(step);
    step();
    return stop;
  }, [tree]);
  return (
    <Table
      label={`Retainers of ${id}`} columns={heapColumns({ title: 'Object', totalBytes, nativeBytes: file.snapshot?.native_bytes })} tree={tree} rowKey={(row) => `${row.edge ?? ''} @${row.id ?? ''}`} canOpen={(row) => (row.distance ?? 1) > 0}
      onActivate={(row) => row.id !== undefined && go({ object: row.id })} hidden={address.hidden} onHide={(hidden) => go({ hidden }, true)} empty="Nothing refers to it."
      tools={<IgnoreTools tree={tree} ignore={address.ignore} />}
    />
  );
}

/** DevTools' "Ignore this retainer": the rest is shown as if that object did not exist. */
function IgnoreTools({ tree, ignore }: { tree: { at: (index: number) => { row: HeapRow | undefined } | undefined }; ignore: string[] }) {
  const ignoreCursor = () => {
    const cursor = document.querySelector('.object-pane .row.is-cursor');
    const index = Number(cursor?.getAttribute('aria-rowindex') ?? 0) - 2;
    const id = tree.at(index)?.row?.id;
    if (id !== undefined) go({ ignore: [...new Set([...ignore, String(id)])] });
  };
  return (
    <>
      <button type="button" class="button" title="As if the selected retainer did not exist" onClick={ignoreCursor}>Ignore this retainer</button>
      {ignore.map((id) => <button key={id} type="button" class="chip" aria-label={`Do not ignore @${id}`} onClick={() => go({ ignore: ignore.filter((other) => other !== id) })}>without @{id} ×</button>)}
    </>
  );
}

function Paths({ file, id, onCommand }: SnapshotViewProps & { id: number }) {
  const address = useAddress();
  const ignore = address.ignore.map(Number).filter(Number.isFinite);
  const { data, error, isLoading } = useAnswer<{ paths: PathStep[][]; is_cut: boolean; command?: string | null }>('/api/snapshot/paths', { file: file.file, id, ignore, paths: 8 });
  useEffect(() => onCommand(data?.command ?? null), [data]);
  if (error) return <Message kind="error">{error.message}</Message>;
  if (!data) return <p class="empty" role="status">Loading…</p>;
  return (
    <div class={isLoading ? 'is-old path-box' : 'path-box'}>
      {data.paths.length === 0 ? <p class="empty">No root leads to it.</p> : <PathPicture paths={data.paths} onChoose={(step) => go({ object: step.id })} />}
      {data.is_cut && <p class="quiet path-note">There are more ways than these; the shortest are shown.</p>}
    </div>
  );
}

function Fields({ file, id, totalBytes }: SnapshotViewProps & { id: number }) {
  const address = useAddress();
  const { tree } = useTree<HeapRow>(`fields ${file.file} ${id}`, async (parent, offset, limit, signal) => {
    const page = await answer<RowsAnswer<EdgeRow>>('/api/snapshot/containment', { file: file.file, id: parent?.id ?? id, sort: 'object', offset, limit }, signal);
    return { rows: page.rows, count: page.row_count };
  });
  return (
    <Table
      label={`Fields of ${id}`} columns={heapColumns({ title: 'Field', totalBytes, nativeBytes: file.snapshot?.native_bytes })} tree={tree} rowKey={(row) => `${row.edge ?? ''} @${row.id ?? ''}`} canOpen={(row) => (row.child_count ?? 0) > 0}
      onActivate={(row) => row.id !== undefined && go({ object: row.id })} hidden={address.hidden} onHide={(hidden) => go({ hidden }, true)} empty="It refers to nothing."
    />
  );
}

function Facts({ answer: { object, text, place, dominator, dominated_count: dominatedCount, command } }: { answer: ObjectAnswer }) {
  const top = useTop<HTMLDivElement>(object.id);
  const facts: [string, string][] = [
    ['Class', object.class], ['Type', object.type], ['Place', place ?? ''], ['Shallow size', exactBytes(object.shallow_bytes)], ['Retained size', exactBytes(object.retained_bytes)], ['Of it native', typeof object.native_bytes === 'number' ? exactBytes(object.native_bytes) : ''],
    ['Distance', distanceText(object.distance)], ['Keeps alive', plural(dominatedCount, 'object')], ['Text', text ?? ''],
  ];
  return (
    <div ref={top} class="object-facts">
      <dl class="facts">{facts.filter(([, value]) => value !== '').map(([key, value]) => <div key={key}><dt>{key}</dt><dd>{value}</dd></div>)}</dl>
      {dominator && <p>Kept alive by <button type="button" class="link" onClick={() => go({ object: dominator.id })}>{dominator.name || dominator.class} @{dominator.id}</button> alone.</p>}
      <CommandLine command={command} />
    </div>
  );
}
