/** Message to the user. */
import type { ComponentChildren } from 'preact';

export function Message({ kind, children }: { kind: 'error' | 'warning' | 'note'; children: ComponentChildren }) {
  return (
    <div class={`message is-${kind}`} role={kind === 'error' ? 'alert' : 'status'}>
      {children}
    </div>
  );
}
