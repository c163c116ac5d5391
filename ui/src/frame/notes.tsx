/** Notes of the author, pinned to a moment or to the whole; they are part of the address. */
import { go, useAddress } from '../address/use-address';
import { formatDuration } from '../format';
import { noteOf } from './note-text';

export function Notes() {
  const address = useAddress();
  if (address.notes.length === 0) return null;
  return (
    <ul class="notes" aria-label="Notes of the author">
      {address.notes.map((words, at) => {
        const { atNs, text } = noteOf(words);
        return (
          <li key={words}>
            {atNs !== null && <button type="button" class="link" title="Live at this moment" onClick={() => go({ at: `${atNs}ns`, range: [], snapshot: '' })}>{formatDuration(atNs)}</button>}
            <span>{text}</span>
            <button type="button" class="link" aria-label={`Remove the note ${text}`} onClick={() => go({ notes: address.notes.filter((_, other) => other !== at) })}>×</button>
          </li>
        );
      })}
    </ul>
  );
}
