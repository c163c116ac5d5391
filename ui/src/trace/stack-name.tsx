/** Stack in a cell or on a card: the own frame bold, the allocating frame and its callers quiet. */
import type { ComponentChildren } from 'preact';
import type { Frame, OwnFrameOfStack } from '../api/types';
import { fileName, unnamedCode } from '../format';
import { linkedName } from '../image-links';
import { folded } from '../symbol-text';
import { FrameName, ImageSwatch, SymbolText } from './frame-name';

/** Number of callers named; a narrow cell cuts them, and a click shows the whole stack. */
const CALLERS_NAMED = 3;

/** Returns the name of a frame beside others. */
function plainName(frame: Frame): string {
  return frame.symbol === null ? unnamedCode(linkedName(frame.module === null ? '' : fileName(frame.module)), frame.offset) : folded(frame.symbol);
}

/**
 * Draws a stack. `frameCount`: number of frames of the whole stack, of which `frames` are the
 * first.
 */
export function StackName({ frames, own = null, frameCount = frames.length, showsPlace = false, showsModule = true, showsCallers = true, lines }: { frames: Frame[]; own?: OwnFrameOfStack | null | undefined; frameCount?: number; showsPlace?: boolean; showsModule?: boolean; showsCallers?: boolean; lines?: number[] | undefined }) {
  const first = frames[0];
  if (!first) return <span class="quiet">(no frames)</span>;
  const shown = own ?? first;
  const place = own?.place ?? 0;
  const callers = showsCallers ? frames.slice(place + 1).map(plainName) : [];
  return (
    <WithCallers names={callers} frameCount={frameCount - place}>
      <FrameName frame={shown} lines={lines} showsPlace={showsPlace || own !== null} showsModule={showsModule && own === null} isOwn={own !== null} />
      {place > 0 && <span class="through quiet" title={first.symbol ?? ''}>through {plainName(first)}</span>}
    </WithCallers>
  );
}

/**
 * Splits `module!symbol` into parts; without a symbol it is `module+0xoffset`, or `module!?` if
 * builds differ.
 */
export function splitName(name: string): { module: string; symbol: string; offset: string } {
  const at = name.indexOf('!');
  if (at >= 0) return { module: name.slice(0, at), symbol: name.slice(at + 1), offset: '' };
  const [, module, offset] = /^(.*)(\+0x[0-9a-f]+)$/.exec(name) ?? [];
  return module && offset ? { module, symbol: '', offset } : { module: '', symbol: name, offset: '' };
}

/** Draws a stack whose frames are texts; `own`: index of the own frame. */
export function NamedStack({ names, own = null }: { names: string[]; own?: number | null | undefined }) {
  const parts = names.map(splitName);
  const shown = parts[own ?? 0];
  const first = parts[0];
  if (!shown || !first) return <span class="quiet">(no frames)</span>;
  type Part = ReturnType<typeof splitName>;
  const isKnown = ({ symbol }: Part) => symbol !== '?' && symbol !== '';
  const nameOf = (part: Part) => (isKnown(part) ? folded(part.symbol) : linkedName(part.module) + part.offset);
  const place = own ?? 0;
  return (
    <WithCallers names={parts.slice(place + 1).map(nameOf)} frameCount={names.length - place}>
      <span class="frame-name">
        <ImageSwatch name={shown.module || shown.symbol} />
        <SymbolText name={isKnown(shown) ? shown.symbol : nameOf(shown) || '(no name)'} isOwn={own !== null} />
        {own === null && isKnown(shown) && shown.module && <span class="quiet">{linkedName(shown.module)}</span>}
        {!isKnown(shown) && shown.module && shown.offset === '' && <span class="quiet">(no name)</span>}
      </span>
      {place > 0 && <span class="through quiet" title={first.symbol}>through {nameOf(first)}</span>}
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
