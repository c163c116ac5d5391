/** A stack in a cell or on a card: the allocating frame plain, who called it quiet. */
import type { ComponentChildren } from 'preact';
import type { Frame } from '../api/types';
import { fileName, unnamedCode } from '../format';
import { linkedName } from '../image-links';
import { FrameName, ImageSwatch } from './frame-name';

/** So many callers are named; a narrow cell cuts them, and the stack in full is one click away. */
const CALLERS_NAMED = 3;

/** `frameCount`: how many frames the whole stack has, of which `frames` are the first. */
export function StackName({ frames, frameCount = frames.length, showsPlace = false, showsModule = true, showsCallers = true }: { frames: Frame[]; frameCount?: number; showsPlace?: boolean; showsModule?: boolean; showsCallers?: boolean }) {
  const [first, ...callers] = frames;
  if (!first) return <span class="quiet">(no frames)</span>;
  const names = callers.map((caller) => caller.symbol ?? unnamedCode(linkedName(caller.module === null ? '' : fileName(caller.module)), caller.offset));
  return (
    <WithCallers names={showsCallers ? names : []} frameCount={frameCount}>
      <FrameName frame={first} showsPlace={showsPlace} showsModule={showsModule} />
    </WithCallers>
  );
}

/** `module!symbol` as two parts; the server writes `?` for a symbol that is not known. */
export function splitName(name: string): { module: string; symbol: string } {
  const at = name.indexOf('!');
  if (at < 0) return { module: '', symbol: name };
  return { module: name.slice(0, at), symbol: name.slice(at + 1) };
}

/** A stack whose frames are texts. */
export function NamedStack({ names }: { names: string[] }) {
  const [first, ...callers] = names.map(splitName);
  if (!first) return <span class="quiet">(no frames)</span>;
  const isKnown = ({ symbol }: { symbol: string }) => symbol !== '?' && symbol !== '';
  return (
    <WithCallers names={callers.map((caller) => (isKnown(caller) ? caller.symbol : linkedName(caller.module)))} frameCount={names.length}>
      <span class="frame-name">
        <ImageSwatch name={first.module || first.symbol} />
        <span class="symbol">{isKnown(first) ? first.symbol : linkedName(first.module) || '(no name)'}</span>
        {isKnown(first) && first.module && <span class="quiet">{linkedName(first.module)}</span>}
        {!isKnown(first) && first.module && <span class="quiet">(no name)</span>}
      </span>
    </WithCallers>
  );
}

function WithCallers({ names, frameCount, children }: { names: string[]; frameCount: number; children: ComponentChildren }) {
  const named = names.slice(0, CALLERS_NAMED);
  return (
    <span class="stack-name">
      {children}
      {named.length > 0 && <span class="callers quiet">← {named.join(' ← ')}{frameCount > named.length + 1 ? ` … ${frameCount} frames` : ''}</span>}
    </span>
  );
}
