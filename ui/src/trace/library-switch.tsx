/** Switch that shows each frame of libraries, in flame graph and call tree. */
import { go, useAddress } from '../address/use-address';

export function LibrarySwitch() {
  const address = useAddress();
  return <label class="check" title="Each frame that is not the program's own; otherwise those that call one another are one"><input type="checkbox" checked={address.libraries} onChange={() => go({ libraries: !address.libraries, root: '', select: '' })} /> library frames</label>;
}
