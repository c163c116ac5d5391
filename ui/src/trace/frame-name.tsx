/** A frame in a cell: image quiet, symbol plain, place at the end. Always text, whatever stands in a symbol. */
import type { Frame } from '../api/types';
import { imageHue } from '../canvas/colours';
import { fileName, unnamedCode } from '../format';
import { linkedName, linksTo } from '../image-links';
import { framePlace } from './metric-columns';

/** An image alone, with its path. */
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

/** The colour of an image beside its name, as in the legend. */
export function ImageSwatch({ name }: { name: string }) {
  // The style sheet makes the colour, which knows the theme.
  return name === '' ? <i class="swatch is-rest" /> : <i class="swatch is-image" style={`--hue: ${imageHue(name)}`} />;
}

export function FrameName({ frame, showsPlace = true, showsModule = true }: { frame: Frame; showsPlace?: boolean; showsModule?: boolean }) {
  const module = frame.module === null ? '' : fileName(frame.module);
  const place = showsPlace ? framePlace(frame) : '';
  return (
    <span class="frame-name">
      <ImageSwatch name={module} />
      <span class="symbol">{frame.symbol ?? unnamedCode(linkedName(module), frame.offset)}</span>
      {frame.inlined && <span class="badge" title="Inlined into its caller">inlined</span>}
      {place && <span class="quiet">{place}</span>}
      {showsModule && frame.symbol !== null && module && <span class="quiet">{linkedName(module)}</span>}
    </span>
  );
}
