/** Treemap of retained sizes: by dominators, or by class. */
import { useEffect } from 'preact/hooks';
import { go, useAddress } from '../address/use-address';
import { useAnswer } from '../api/use-answer';
import type { TreemapAnswer } from '../api/types';
import { formatBytes } from '../format';
import { Message } from '../frame/message';
import { TreemapCanvas } from '../treemap/treemap-canvas';
import { type SnapshotViewProps, showObject } from './view-props';

export function TreemapView({ file, onCommand }: SnapshotViewProps) {
  const address = useAddress();
  const by = address.group === 'classes' ? 'classes' : 'dominators';
  const id = /^\d+$/.test(address.root) ? Number(address.root) : null;
  const { data, error, isLoading } = useAnswer<TreemapAnswer & { command?: string | null }>('/api/snapshot/treemap', { file: file.file, id, by, least_share: 0.0005, nodes_max: 5000 });
  useEffect(() => onCommand(data?.command ?? null), [data]);
  useEffect(() => () => onCommand(null), []);
  const nameOf = (node: number) => (node === 0 && id === null ? 'the whole heap' : (data?.names[data.nodes.name[node] ?? 0] || '(no name)'));
  return (
    <section class="treemap">
      <div class="view-tools">
        <div class="switch" role="group" aria-label="Areas">
          <button type="button" aria-pressed={by === 'dominators'} onClick={() => go({ group: 'stacks', root: '' })}>By dominator</button>
          <button type="button" aria-pressed={by === 'classes'} onClick={() => go({ group: 'classes', root: '' })}>By class</button>
        </div>
        {id !== null && <button type="button" class="button" onClick={() => go({ root: '' })}>The whole heap</button>}
        {id !== null && <span class="quiet">inside @{id}</span>}
        <span class="quiet">{by === 'classes' ? 'Shallow sizes. Double click: the objects of the class.' : 'Retained sizes. Click: the object. Double click: into it.'}</span>
        {isLoading && <span class="quiet" role="status">loading…</span>}
      </div>
      {error && <Message kind="error">{error.message}</Message>}
      <TreemapCanvas
        answer={data} nameOf={nameOf} colourName={(node) => nameOf(node).replace(/[\d@]+$/, '')} amount={formatBytes} isBytes word={by === 'classes' ? 'shallow' : 'retained'} chosen={address.object >= 0 ? String(address.object) : ''}
        label={`Treemap of ${by === 'classes' ? 'shallow' : 'retained'} size. Arrow keys walk, Enter goes into an object.`}
        onChoose={(chosen) => showObject(Number(chosen))} onEnter={(chosen) => go({ root: chosen })} onLeave={() => go({ root: '' })}
      />
    </section>
  );
}
