/** Search field that reports each change, and is cleared by Escape. */
import { useEffect, useState } from 'preact/hooks';

interface SearchProps {
  value: string;
  onChange: (text: string) => void;
  label: string;
  /** Time without a change after which the text is reported. */
  waitMs?: number;
}

export function Search({ value, onChange, label, waitMs = 120 }: SearchProps) {
  const [draft, setDraft] = useState(value);
  useEffect(() => setDraft(value), [value]);
  useEffect(() => {
    if (draft === value) return;
    const timer = setTimeout(() => onChange(draft), waitMs);
    return () => clearTimeout(timer);
  }, [draft]);
  return (
    <input
      type="search" class="search" placeholder={label} aria-label={label} title={`${label} (/)`} value={draft} spellcheck={false}
      onInput={(event) => setDraft(event.currentTarget.value)}
      onKeyDown={(event) => {
        if (event.key === 'Escape') setDraft('');
      }}
    />
  );
}
