/** The views of a file as tabs. */
import type { ComponentChildren } from 'preact';
import { go } from '../address/use-address';

export interface View {
  key: string;
  title: string;
  help: string;
}

/** Fields that a change of the view resets: sort keys and selections have another meaning there. */
export const LEFT_BEHIND = { sort: '', ascending: false, match: '', select: '', hidden: [] as string[], focus: '', finding: -1 };

export function Tabs({ views, current, children }: { views: View[]; current: string; children?: ComponentChildren }) {
  const move = (event: KeyboardEvent) => {
    const at = views.findIndex((view) => view.key === current);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: -1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    const next = views.at(to % views.length);
    if (next) go({ view: next.key, ...LEFT_BEHIND });
    requestAnimationFrame(() => document.querySelector<HTMLElement>('.tabs [aria-selected=true]')?.focus());
  };
  return (
    <div class="tabs" role="tablist" aria-label="Views" onKeyDown={move}>
      {views.map((view) => (
        <button
          key={view.key} type="button" role="tab" aria-selected={view.key === current} tabIndex={view.key === current ? 0 : -1}
          title={view.help} onClick={() => view.key !== current && go({ view: view.key, ...LEFT_BEHIND })}
        >
          {view.title}
        </button>
      ))}
      <span class="grow" />
      {children}
    </div>
  );
}
