/** Ranking of stacks, frames, images or threads; the selected one opens beside the table. */
import { useEffect, useState } from 'preact/hooks';
import { addedFilter } from '../address/address';
import { go, useAddress } from '../address/use-address';
import { answer } from '../api/use-answer';
import { requestFile } from '../api/client';
import { EXPORT_FORMATS } from '../api/export-formats';
import type { Amounts, Group, ReportAnswer } from '../api/types';
import { saveBlob } from '../frame/clipboard';
import { Popover } from '../frame/popover';
import { Search } from '../frame/search';
import { Split } from '../frame/split';
import type { Column } from '../table/columns';
import { emptyText } from '../table/empty-text';
import { Table } from '../table/table';
import { useTold } from '../table/use-told';
import { useTree } from '../table/use-tree';
import { defaultSort } from './default-metric';
import { ImageName } from './frame-name';
import { FramePane } from './frame-pane';
import { LineSwitch } from './line-switch';
import { framePattern, frameName, framePlace, metricColumns } from './metric-columns';
import { StackName } from './stack-name';
import { StackPane } from './stack-pane';
import type { TraceViewProps } from './view-props';

export type ReportBy = 'stacks' | 'frames' | 'images' | 'by-thread';

const TITLES: Record<ReportBy, string> = { stacks: 'Stack', frames: 'Frame', images: 'Image', 'by-thread': 'Thread' };
/** Formats of other tools, and of the table itself. */
const EXPORTS = [...EXPORT_FORMATS, { name: 'json', ending: 'json', help: 'heapr report as JSON' }, { name: 'csv', ending: 'csv', help: 'heapr report as CSV' }];

export function ReportView({ by, file, filter, onCommand }: TraceViewProps & { by: ReportBy }) {
  const address = useAddress();
  const usual = defaultSort(file, filter);
  const sort = address.sort || usual;
  const [whole, setWhole] = useTold<{ all: Amounts; matched: Amounts } | null>(null);
  const isByLine = by === 'frames' && address.lines;
  // Lines that the loaded rows sum, by stack.
  const [shownLines] = useState(() => new Map<string, number[]>());
  const body = { file: file.file, filter, by: isByLine ? 'lines' : by, sort, descending: !address.ascending, match: address.match };
  const { tree, isLoading } = useTree<Group>(JSON.stringify(body), async (_, offset, limit, signal) => {
    try {
      const report = await answer<ReportAnswer>('/api/report', { ...body, offset, limit, frames_max: 12 }, signal);
      setWhole({ all: report.all, matched: report.matched });
      for (const group of report.groups) if (group.id && group.own_lines) shownLines.set(group.id, group.own_lines);
      onCommand(report.command, null);
      return { rows: report.groups, count: report.match_count };
    } catch (error) {
      if (!signal.aborted) onCommand(null, error instanceof Error ? error.message : String(error));
      throw error;
    }
  }, file.generation);
  useEffect(() => () => onCommand(null, null), []);

  const name: Column<Group> = {
    key: by === 'by-thread' ? 'thread' : by.replace(/s$/, ''), title: isByLine ? 'Line' : TITLES[by], width: 0, text: groupName,
    exact: (group) => (by === 'stacks' ? stackText(group) : groupName(group)),
    cell: (group) => <GroupName group={group} by={by} />,
  };
  const columns: Column<Group>[] = [...metricColumns<Group>(sort, whole?.all ?? null), name];
  if (by === 'stacks' || by === 'frames') {
    columns.push({ key: 'place', title: 'Place', width: 12, isExtra: true, text: (group) => (group.frames[0] ? framePlace(group.frames[0]) : '') });
    columns.push({ key: 'image', title: 'Image', width: 12, isExtra: true, text: (group) => group.frames[0]?.module ?? '' });
  }
  const narrow = (group: Group) => {
    const first = group.frames[0];
    if (by === 'by-thread' && group.thread) go(addedFilter(address, { thread: [String(group.thread.tid)] }));
    else if (by === 'images' && first) go({ ...addedFilter(address, { innermost_frames: [framePattern({ ...first, symbol: null })] }), view: 'stacks', sort: '' });
  };
  const table = (
    <Table
      label={`${file.name} ${TITLES[by]}s`} columns={columns} tree={tree} rowKey={(group) => group.id ?? group.frames[0]?.module ?? ''} selected={address.select}
      onSelect={(group) => go({ select: group.id ?? '' }, true)} onActivate={narrow} sort={sort} descending={!address.ascending}
      onSort={(key, descending) => go({ sort: key === usual ? '' : key, ascending: !descending })}
      hidden={address.hidden} onHide={(hidden) => go({ hidden }, true)} isOld={isLoading}
      empty={emptyText(address.match, 'No allocation is left by the filters.')}
      tools={(
        <>
          <Search value={address.match} onChange={(match) => go({ match }, true)} label={`Search ${by === 'by-thread' ? 'threads' : by}`} />
          {by === 'frames' && <LineSwitch />}
          {by === 'stacks' && <Export file={file.file} filter={filter} sort={sort} />}
        </>
      )}
    />
  );
  if (by === 'images' || by === 'by-thread') return table;
  const pane = address.select === '' ? null
    : by === 'stacks' ? <StackPane file={file} filter={filter} id={address.select} ownLines={shownLines.get(address.select) ?? []} /> : <FramePane file={file} filter={filter} frame={address.select} sort={sort} />;
  return <Split direction="side" label="Width of the details" share={0.36} first={table} second={pane} />;
}

function GroupName({ group, by }: { group: Group; by: ReportBy }) {
  if (by === 'by-thread') return <>{groupName(group)}</>;
  if (by === 'images' && group.frames[0]) return <ImageName module={group.frames[0].module} />;
  return <StackName frames={group.frames} own={by === 'stacks' ? group.own : null} lines={group.own_lines} frameCount={group.frame_count} showsPlace={by === 'frames'} showsCallers={by === 'stacks'} />;
}

function groupName(group: Group): string {
  if (group.thread) return `${group.thread.name || '(no name)'} ${group.thread.tid}${group.thread.pid !== null ? ` of process ${group.thread.pid}` : ''}`;
  const first = group.frames[0];
  if (!first) return '(no frames)';
  return first.symbol === null && first.offset === 0 && first.module !== null ? first.module : frameName(first);
}

function stackText(group: Group): string {
  const more = group.frame_count - group.frames.length;
  return group.frames.map(frameName).join('\n') + (more > 0 ? `\n… ${more} more` : '');
}

function Export({ file, filter, sort }: { file: number; filter: object; sort: string }) {
  const [error, setError] = useState('');
  const save = async (to: string, ending: string) => {
    try {
      setError('');
      const rest = { by: 'stacks', value: sort };
      saveBlob(`heapr-${to}.${ending}`, await requestFile('/api/export', { file, filter, to, ...rest }));
    } catch (failure) {
      setError(failure instanceof Error ? failure.message : String(failure));
    }
  };
  return (
    <Popover label="Export" title="Files for other programs" side="left">
      {EXPORTS.map(({ name, ending, help }) => <button key={name} type="button" class="menu-item" title={help} onClick={() => void save(name, ending)}>{name}</button>)}
      {error && <p class="filter-error" role="alert">{error}</p>}
    </Popover>
  );
}
