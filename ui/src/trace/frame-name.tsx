/**
 * Frame in a cell: image quiet, symbol plain, location at the end. A symbol is always inserted as
 * text.
 */
import type { Frame } from '../api/types';
import { imageHue, seriesLightness } from '../canvas/colours';
import { fileName, unnamedCode } from '../format';
import { linkedName, linksTo } from '../image-links';
import { folded, lastPart } from '../symbol-text';
import { framePlace } from './metric-columns';

/** Name of an image, with its path. */
export function ImageName({ module }: { module: string | null }) {
  const links = linksTo(module);
  return (
    <span class="frame-name" title={links && `${links} is a link to this file`}>
      <ImageSwatch name={module === null ? '' : fileName(module)} />
      <span class="symbol">{module ?? '(no module)'}</span>
      {links && <span class="quiet">run as {links}</span>}
    </span>
  );
}

function imageVariables(name: string): string {
  const hue = imageHue(name);
  return `--hue: ${hue}; --in-light: ${seriesLightness(hue, false)}%; --in-dark: ${seriesLightness(hue, true)}%`;
}

/** Colour of an image beside its name, as in the legend. */
export function ImageSwatch({ name }: { name: string }) {
  // The style sheet computes the colour, because it knows the theme.
  return name === '' ? <i class="swatch is-rest" /> : <i class="swatch is-image" style={imageVariables(name)} />;
}

/** Name that may be cut: brackets folded, the scope cut before the name itself; whole on hover. */
export function SymbolText({ name, isOwn = false }: { name: string; isOwn?: boolean }) {
  const short = folded(name);
  const at = lastPart(short);
  return (
    <span class={`symbol${isOwn ? ' is-own' : ''}`} title={short === name ? undefined : name}>
      {at > 0 && <span class="symbol-scope">{short.slice(0, at)}</span>}
      <span class="symbol-last">{short.slice(at)}</span>
    </span>
  );
}

/** `lines`: lines of the frame, if what is shown sums several. */
export function FrameName({ frame, showsPlace = true, showsModule = true, isOwn = false, lines }: { frame: Frame; showsPlace?: boolean; showsModule?: boolean; isOwn?: boolean; lines?: number[] | undefined }) {
  const module = frame.module === null ? '' : fileName(frame.module);
  const place = !showsPlace ? '' : lines && lines.length > 1 && frame.file !== null ? `${fileName(frame.file)}, ${lines.length} lines: ${lines.slice(0, 3).join(', ')}${lines.length > 3 ? '…' : ''}` : framePlace(frame);
  return (
    <span class="frame-name">
      <ImageSwatch name={module} />
      <SymbolText name={frame.symbol ?? unnamedCode(linkedName(module), frame.offset)} isOwn={isOwn} />
      {frame.inlined && <span class="inlined-mark quiet" title="Inlined into its caller" aria-label="inlined">⤷</span>}
      {place && <span class="quiet">{place}</span>}
      {showsModule && frame.symbol !== null && module && <span class="quiet">{linkedName(module)}</span>}
    </span>
  );
}
