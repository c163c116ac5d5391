/** Switch that shows rows without a difference in a comparison. */
import { go, useAddress } from '../address/use-address';

export function SameSwitch({ title }: { title: string }) {
  const address = useAddress();
  return <label class="check" title={title}><input type="checkbox" checked={address.same} onChange={() => go({ same: !address.same })} /> also rows without a difference</label>;
}
