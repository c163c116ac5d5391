/** Treemap of one native snapshot: images, in them own functions, in them stacks. */
import { useEffect } from 'preact/hooks';
import { go, useAddress } from '../address/use-address';
import type { TreemapAnswer } from '../api/types';
import { useAnswer } from '../api/use-answer';
import { fileName, formatBytes, formatCount } from '../format';
import { Message } from '../frame/message';
import { splitName } from '../trace/stack-name';
import { linkedName } from '../image-links';
import { folded } from '../symbol-text';
import { TreemapCanvas } from '../treemap/treemap-canvas';
import { momentFilter } from './native-columns';
import type { NativeViewProps } from './view-props';

export function NativeTreemapView({ file, filter, shown, onCommand }: NativeViewProps) {
  const address = useAddress();
  const value = address.value === 'outstanding_count' ? 'blocks' : 'bytes';
  const { data, error, isLoading } = useAnswer<TreemapAnswer & { command?: string | null }>('/api/native/treemap', {
    file: file.file, number: shown.number, filter: momentFilter(filter), value, least_share: 0.0005, nodes_max: 5000,
  });
  useEffect(() => onCommand(data?.command ?? null, error?.message ?? null), [data, error]);
  useEffect(() => () => onCommand(null, null), []);
  const nameOf = (node: number) => {
    const name = data?.names[data.nodes.name[node] ?? 0] ?? '';
    if (node === 0) return `snapshot ${shown.number}`;
    if (data?.nodes.parent[node] === 0) return linkedName(name);
    const { module, symbol, offset } = splitName(name);
    return symbol === '?' || symbol === '' ? linkedName(module) + offset || '(no name)' : folded(symbol);
  };
  // An area and all areas in it have the colour of the image, as everywhere.
  const imageOf = (node: number) => {
    let at = node;
    while ((data?.nodes.parent[at] ?? 0) > 0) at = data?.nodes.parent[at] ?? 0;
    return fileName(splitName(data?.names[data.nodes.name[at] ?? 0] ?? '').symbol);
  };
  const open = (id: string) => {
    // Stacks and frames have ids; images have none.
    if (id.startsWith('s')) go({ part: 'summary', group: 'stacks', select: id });
    else if (id.startsWith('f')) go({ part: 'summary', group: 'frames', select: id });
  };
  return (
    <section class="treemap">
      <div class="view-tools">
        <div class="switch" role="group" aria-label="Areas">
          <button type="button" aria-pressed={value === 'bytes'} onClick={() => go({ value: 'outstanding_bytes' })}>Bytes</button>
          <button type="button" aria-pressed={value === 'blocks'} onClick={() => go({ value: 'outstanding_count' })}>Blocks</button>
        </div>
        <span class="quiet">Images, in them the program's own functions, in them whole stacks. Double click: the stack.</span>
        {isLoading && <span class="quiet" role="status">loading…</span>}
      </div>
      {error && <Message kind="error">{error.message}</Message>}
      <TreemapCanvas
        answer={data} nameOf={nameOf} colourName={imageOf} amount={value === 'bytes' ? formatBytes : formatCount} isBytes={value === 'bytes'} chosen={address.select} label={`Treemap of snapshot ${shown.number}. Arrow keys walk, Enter opens.`}
        onChoose={(id) => go({ select: id }, true)} onEnter={open} onLeave={() => go({ select: '' }, true)} word="live"
      />
    </section>
  );
}
