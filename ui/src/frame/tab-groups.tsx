/** Four tabs, each with its views beside it. */
import { go } from '../address/use-address';
import { LEFT_BEHIND, Tabs, type View } from './tabs';

export interface TabGroup {
  key: string;
  title: string;
  help: string;
  views: View[];
}

/** View that was shown last in each group, for a return to it. */
const lastViews = new Map<string, string>();

/** Returns the group of a view. */
function groupOf(groups: TabGroup[], view: string): TabGroup | undefined {
  return groups.find((group) => group.views.some(({ key }) => key === view)) ?? groups[0];
}

export function TabGroups({ groups, current }: { groups: TabGroup[]; current: string }) {
  const group = groupOf(groups, current);
  if (!group) return null;
  lastViews.set(group.key, current);
  const show = (other: TabGroup) => {
    const last = lastViews.get(other.key);
    const view = other.views.find(({ key }) => key === last) ?? other.views[0];
    if (view && other !== group) go({ view: view.key, ...LEFT_BEHIND });
  };
  const move = (event: KeyboardEvent) => {
    const at = groups.indexOf(group);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: -1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    const next = groups.at(to % groups.length);
    if (next) show(next);
    requestAnimationFrame(() => document.querySelector<HTMLElement>('.tab-groups [aria-selected=true]')?.focus());
  };
  return (
    <div class="tab-rows">
      <div class="tab-groups" role="tablist" aria-label="Questions" onKeyDown={move}>
        {groups.map((other, at) => (
          <button
            key={other.key} type="button" role="tab" aria-selected={other === group} tabIndex={other === group ? 0 : -1}
            title={`${other.help} (${at + 1})`} onClick={() => show(other)}
          >
            {other.title}
          </button>
        ))}
      </div>
      {group.views.length > 1 ? <Tabs views={group.views} current={current} /> : <div class="tabs" />}
    </div>
  );
}
