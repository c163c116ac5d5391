/** Choice of the frames shown of stacks with language frames, in all views: `--lang-frames`. */
import { go, useAddress } from '../address/use-address';
import { isStatic } from '../api/client';
import type { OpenFile } from '../api/types';
import { ImageSwatch } from '../trace/frame-name';

export function LanguageSwitch({ file }: { file: OpenFile }) {
  const address = useAddress();
  const languages = file.trace?.languages ?? [];
  // A page without a server has the answers for the frames with which it was made.
  if (languages.length === 0 || isStatic()) return null;
  const names = languages.map(([, name]) => name).join(', ');
  const choices: [string, string, string][] = [
    ['mixed', 'mixed', `Frames of ${names} among native ones, each where it runs`],
    ['own', 'own', `Frames of ${names}, without the native ones that only run them`],
    ['native', 'native', `Native frames, without those of ${names}`],
  ];
  const shown = address.lang_frames || file.trace?.lang_frames;
  return (
    <div class="languages">
      {languages.map(([short = '', name = '']) => <span key={short} class="quiet" title={`The colour of ${name}`}><ImageSwatch name={short} /> {name}</span>)}
      <div class="switch" role="group" aria-label={`Frames of ${names}`}>
        {choices.map(([key, label, title]) => (
          // Another choice has other frames and nodes, so that selections are cleared.
          <button key={key} type="button" aria-pressed={shown === key} title={`${title} (--lang-frames ${key})`} onClick={() => go({ lang_frames: key, root: '', focus: '', select: '' })}>{label}</button>
        ))}
      </div>
    </div>
  );
}
