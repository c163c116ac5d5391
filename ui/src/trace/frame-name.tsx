/** A frame in a cell: image quiet, symbol plain, place at the end. Always text, whatever stands in a symbol. */
import type { Frame } from '../api/types';
import { imageColour } from '../canvas/colours';
import { fileName, unnamedCode } from '../format';
import { isDrawnDark } from '../frame/theme';
import { linkedName, linksTo } from '../image-links';
import { framePlace } from './metric-columns';

/** An image alone, with its path. */
export function ImageName({ module }: { module: string | null }) {
  const links = linksTo(module);
  return (
    <span class="frame-name" title={links && `${links} is a link to this file`}>
      <i class="swatch" style={{ background: imageColour(module === null ? '' : fileName(module), isDrawnDark()) }} />
      <span class="symbol">{module ?? '(no module)'}</span>
      {links && <span class="quiet">run as {links}</span>}
    </span>
  );
}

/** `module!symbol` as two parts; the server writes `?` for a symbol that is not known. */
export function splitName(name: string): { module: string; symbol: string } {
  const at = name.indexOf('!');
  if (at < 0) return { module: '', symbol: name };
  return { module: name.slice(0, at), symbol: name.slice(at + 1) };
}

/** A stack whose frames are texts: the innermost plain, its callers quiet. */
export function NamedStack({ names }: { names: string[] }) {
  const [first, ...callers] = names.map(splitName);
  if (!first) return <span class="quiet">(no frames)</span>;
  const isKnown = first.symbol !== '?' && first.symbol !== '';
  return (
    <span class="stack-name">
      <span class="frame-name">
        <i class="swatch" style={{ background: imageColour(first.module || first.symbol, isDrawnDark()) }} />
        <span class="symbol">{isKnown ? first.symbol : linkedName(first.module) || '(no name)'}</span>
        {isKnown && first.module && <span class="quiet">{linkedName(first.module)}</span>}
        {!isKnown && first.module && <span class="quiet">(no name)</span>}
      </span>
      {callers.length > 0 && <span class="quiet">← {callers.slice(0, 3).map(({ module, symbol }) => (symbol === '?' || symbol === '' ? module : symbol)).join(' ← ')}{callers.length > 3 ? ` … ${names.length} frames` : ''}</span>}
    </span>
  );
}

export function FrameName({ frame, showsPlace = true, showsModule = true }: { frame: Frame; showsPlace?: boolean; showsModule?: boolean }) {
  const module = frame.module === null ? '' : fileName(frame.module);
  const place = showsPlace ? framePlace(frame) : '';
  return (
    <span class="frame-name">
      <i class="swatch" style={{ background: imageColour(module, isDrawnDark()) }} />
      <span class="symbol">{frame.symbol ?? unnamedCode(linkedName(module), frame.offset)}</span>
      {frame.inlined && <span class="badge" title="Inlined into its caller">inlined</span>}
      {place && <span class="quiet">{place}</span>}
      {showsModule && frame.symbol !== null && module && <span class="quiet">{linkedName(module)}</span>}
    </span>
  );
}
