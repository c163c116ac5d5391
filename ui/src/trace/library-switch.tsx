/** Switches of flame graph and call tree: frames of libraries, and of collapsed images. */
import { go, useAddress } from '../address/use-address';
import { linkedName } from '../image-links';

export function LibrarySwitch() {
  const address = useAddress();
  return <label class="check" title="Each frame that is not the program's own; otherwise those that call one another are one"><input type="checkbox" checked={address.libraries} onChange={() => go({ libraries: !address.libraries, root: '', select: '' })} /> library frames</label>;
}

/** Images that are collapsed; a click shows their frames again. */
export function CollapsedImages() {
  const { collapsed } = useAddress();
  return collapsed.map((image) => (
    <button key={image} type="button" class="chip" title={`Show the frames of ${image}`} onClick={() => go({ collapsed: collapsed.filter((other) => other !== image), root: '', select: '' })}>
      {linkedName(image)} collapsed <span aria-hidden="true">×</span>
    </button>
  ));
}
