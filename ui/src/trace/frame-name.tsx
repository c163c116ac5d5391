/** A frame in a cell: image quiet, symbol plain, place at the end. Always text, whatever stands in a symbol. */
import type { Frame } from '../api/types';
import { imageColour } from '../canvas/colours';
import { fileName, unnamedCode } from '../format';
import { isDrawnDark } from '../frame/theme';
import { framePlace } from './metric-columns';

/** An image alone, with its path. */
export function ImageName({ module }: { module: string | null }) {
  return (
    <span class="frame-name">
      <i class="swatch" style={{ background: imageColour(module === null ? '' : fileName(module), isDrawnDark()) }} />
      <span class="symbol">{module ?? '(no module)'}</span>
    </span>
  );
}

export function FrameName({ frame, showsPlace = true }: { frame: Frame; showsPlace?: boolean }) {
  const module = frame.module === null ? '' : fileName(frame.module);
  const place = showsPlace ? framePlace(frame) : '';
  return (
    <span class="frame-name">
      <i class="swatch" style={{ background: imageColour(module, isDrawnDark()) }} />
      <span class="symbol">{frame.symbol ?? unnamedCode(module, frame.offset)}</span>
      {frame.inlined && <span class="badge" title="Inlined into its caller">inlined</span>}
      {place && <span class="quiet">{place}</span>}
      {frame.symbol !== null && module && <span class="quiet">{module}</span>}
    </span>
  );
}
