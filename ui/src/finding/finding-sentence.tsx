/** Sentence of a finding. */
import type { Finding } from '../api/types';

/** Sentence of a finding, with the own frame's name bold. */
export function Sentence({ finding }: { finding: Finding }) {
  const { sentence, own_frame: own } = finding;
  const symbol = own?.symbol ?? '';
  // The sentence has the symbol without arguments and templates: find its longest beginning there.
  const words = sentence.split(' ');
  // The whole name, which may have a blank: `clang::Decl::operator new`.
  const plain = symbol.replace(/\(.*$/s, '');
  const whole = plain !== '' ? sentence.indexOf(`${plain} `) : -1;
  if (whole >= 0) return <>{sentence.slice(0, whole)}<strong class="own-name">{plain}</strong>{sentence.slice(whole + plain.length)}</>;
  const bare = words.find((word) => word.length > 3 && symbol !== '' && symbol.replace(/<[^<>]*>/g, '').includes(word.replace(/[,.;]$/, '')));
  if (!bare) return <>{sentence}</>;
  const name = bare.replace(/[,.;]$/, '');
  const at = sentence.indexOf(name);
  return <>{sentence.slice(0, at)}<strong class="own-name">{name}</strong>{sentence.slice(at + name.length)}</>;
}
