/** Treemap of retained sizes: by dominators, or by class. */
import { useEffect, useMemo } from 'preact/hooks';
import { go, useAddress } from '../address/use-address';
import { useAnswer } from '../api/use-answer';
import type { TreemapAnswer } from '../api/types';
import { formatBytes } from '../format';
import { placeColour } from '../canvas/colours';
import { Message } from '../frame/message';
import { isDrawnDark } from '../frame/theme';
import { TreemapCanvas } from '../treemap/treemap-canvas';
import { type SnapshotViewProps, showObject } from './view-props';

export function TreemapView({ file, onCommand }: SnapshotViewProps) {
  const address = useAddress();
  const by = address.group === 'classes' ? 'classes' : 'dominators';
  const id = /^\d+$/.test(address.root) ? Number(address.root) : null;
  const { data, error, isLoading } = useAnswer<TreemapAnswer & { command?: string | null }>('/api/snapshot/treemap', { file: file.file, id, by, least_share: 0.0005, nodes_max: 5000 });
  useEffect(() => onCommand(data?.command ?? null), [data]);
  useEffect(() => () => onCommand(null), []);
  const places = useMemo(() => holderPlaces(data), [data]);
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
        answer={data} nameOf={nameOf} colourOf={(node, depth) => placeColour(places[node] ?? 0, isDrawnDark(), depth)} amount={formatBytes} isBytes word={by === 'classes' ? 'shallow' : 'retained'} chosen={address.object >= 0 ? String(address.object) : ''}
        label={`Treemap of ${by === 'classes' ? 'shallow' : 'retained'} size. Arrow keys walk, Enter goes into an object.`}
        onChoose={(chosen) => showObject(Number(chosen))} onEnter={(chosen) => go({ root: chosen })} onLeave={() => go({ root: '' })}
      />
    </section>
  );
}

/**
 * Returns the place of the large holder that each area lies in: each has one colour, the largest the
 * first. Areas come after the one that they lie in.
 */
function holderPlaces(data: TreemapAnswer | null): number[] {
  if (!data) return [];
  const { parent, value } = data.nodes;
  const holders = parent.flatMap((above, number) => (above === 0 ? [number] : []));
  holders.sort((one, other) => (value[other] ?? 0) - (value[one] ?? 0));
  const places: number[] = [];
  parent.forEach((above, number) => places.push(above > 0 ? (places[above] ?? 0) : Math.max(0, holders.indexOf(number))));
  return places;
}
