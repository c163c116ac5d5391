/** Switch for each line of a function by itself, in the views that have functions. */
import { go, useAddress } from '../address/use-address';

export function LineSwitch() {
  const address = useAddress();
  // Another choice has other frames and nodes, so that selections are cleared.
  const change = () => go({ lines: !address.lines, root: '', focus: '', select: '' });
  return (
    <label class="check" title="Each line of a function by itself, where debug information tells lines">
      <input type="checkbox" checked={address.lines} onChange={change} /> by line
    </label>
  );
}
