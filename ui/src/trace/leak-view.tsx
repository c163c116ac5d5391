/** Blocks that were never freed, by stack, with their age and growth. */
import { useEffect } from 'preact/hooks';
import { go, useAddress } from '../address/use-address';
import type { Amounts, Filter, FindingsAnswer, Leak, LeaksAnswer } from '../api/types';
import { answer, useAnswer } from '../api/use-answer';
import { Curve } from '../canvas/curve';
import { formatBytes, formatCount, formatDuration, formatPercent, plural } from '../format';
import { Search } from '../frame/search';
import { Split } from '../frame/split';
import type { Column } from '../table/columns';
import { emptyText } from '../table/empty-text';
import { Table } from '../table/table';
import { useTold } from '../table/use-told';
import { useTree } from '../table/use-tree';
import { amountText, exactAmount, isEstimate, withHalf, within } from './estimate';
import { frameName } from './metric-columns';
import { StackName } from './stack-name';
import { StackPane } from './stack-pane';
import type { TraceViewProps } from './view-props';

export function LeakView({ file, filter: given, onCommand }: TraceViewProps) {
  // Leaks are of the end: a moment or a type of allocation chooses none of them.
  const { at: _at, temporary: _temporary, type: _type, snapshot: _snapshot, ...filter } = given;
  const address = useAddress();
  const [whole, setWhole] = useTold<Amounts | null>(null);
  const sort = address.sort || 'bytes';
  // Blocks that a program frees at its end were held as long as it worked.
  const isWhole = address.range.length === 0 && file.session?.state !== 'recording';
  const findings = useAnswer<FindingsAnswer>('/api/findings', isWhole ? { file: file.file } : null, file.generation);
  const workEndNs = (isWhole && findings.data?.work_end_ns) || 0;
  const isCut = workEndNs > 0 && !address.to_end;
  // The default order is left out of the request: a page without a server has the answer for that.
  const known: Filter = address.known || filter.hide_known ? filter : { ...filter, hide_known: true };
  const shown: Filter = isCut ? { ...known, range: ['0', `${workEndNs}ns`] } : known;
  const body = { file: file.file, filter: shown, ...(sort === 'bytes' ? {} : { sort }), descending: !address.ascending, match: address.match };
  const isKnown = !isWhole || findings.data !== null || findings.error !== null;
  const { tree, isLoading } = useTree<Leak>(`${isKnown} ${JSON.stringify(body)}`, async (_, offset, limit, signal) => {
    if (!isKnown) return aborted(signal);
    try {
      const report = await answer<LeaksAnswer>('/api/leaks', { ...body, offset, limit }, signal);
      setWhole(report.all);
      onCommand(report.command, null);
      return { rows: report.groups, count: report.match_count };
    } catch (error) {
      if (!signal.aborted) onCommand(null, error instanceof Error ? error.message : String(error));
      throw error;
    }
  }, file.generation);
  useEffect(() => () => onCommand(null, null), []);
  const durationNs = file.trace?.duration_ns ?? 0;
  const age = (key: 'mean_age_ns' | 'oldest_ns' | 'newest_ns', title: string, help: string): Column<Leak> => ({
    key, title, help, isNumber: true, width: 7, sort: key.replace('_ns', ''),
    text: (group) => { const value = group[key]; return value == null ? '' : formatDuration(value); },
    raw: (group) => group[key] ?? '',
  });
  const columns: Column<Leak>[] = [
    { key: 'percent', title: '%', isNumber: true, width: 3.8, text: (group) => (whole ? formatPercent(group.outstanding_bytes, whole.outstanding_bytes).replace(' %', '') : '') },
    { key: 'outstanding_bytes', title: 'Live bytes', isNumber: true, width: isEstimate(whole) ? 12 : 7.2, sort: 'bytes', text: (group) => amountText(group, 'outstanding_bytes'), exact: (group) => exactAmount(group, 'outstanding_bytes'), raw: (group) => group.outstanding_bytes },
    { key: 'outstanding_count', title: 'Live', isNumber: true, width: isEstimate(whole) ? 10 : 5.6, sort: 'count', text: (group) => amountText(group, 'outstanding_count'), raw: (group) => group.outstanding_count },
    { key: 'freed_share', title: 'Unfreed', help: 'Share of the allocations of this stack that were never freed: 100 % is typical of a leak', isNumber: true, width: 5.4, sort: 'unfreed', text: (group) => formatPercent(group.outstanding_count, group.total_count) },
    age('mean_age_ns', 'Mean age', 'From allocation to the end, on average'),
    age('oldest_ns', 'First made', 'When the oldest block was allocated, since the start'),
    age('newest_ns', 'Last made', 'When the newest block was allocated, since the start: near the end, it still grows'),
    {
      key: 'growth', title: 'Over time', help: `Live bytes of the stack over ${formatDuration(durationNs)}`, width: 7, text: (group) => (group.growth ?? []).map((_, at) => grownTo(group, at)).join(' '),
      exact: (group) => (group.growth?.length ? `${grownTo(group, 0)} → ${grownTo(group, group.growth.length - 1)}` : ''), cell: (group) => (group.growth?.length ? <Curve values={group.growth} halves={group.growth_plus_minus} /> : ''),
    },
    {
      key: 'stack', title: 'Stack', width: 0, text: (group) => group.frames.map(frameName).join(' ← '), exact: (group) => group.frames.map(frameName).join('\n'),
      cell: (group) => <StackName frames={group.frames} own={group.own} lines={group.own_lines} frameCount={group.frame_count} />,
    },
  ];
  return (
    <Split
      direction="side" label="Width of the details" share={0.34}
      first={(
        <Table
          label={`${file.name} leaks`} columns={columns} tree={tree} rowKey={(group) => group.id ?? ''} selected={address.select} onSelect={(group) => go({ select: group.id ?? '' }, true)}
          sort={sort} descending={!address.ascending} onSort={(key, descending) => go({ sort: key === 'bytes' ? '' : key, ascending: !descending })}
          hidden={address.hidden} onHide={(hidden) => go({ hidden }, true)} isOld={isLoading || !isKnown} empty={emptyText(address.match, address.known ? 'Everything was freed.' : 'Everything was freed but what is known to be harmless.')}
          tools={(
            <>
              <Search value={address.match} onChange={(match) => go({ match }, true)} label="Search leaks" />
              <label class="check" title="What libraries keep until the end, by design: libstdc++'s pool for exceptions, locales, the dynamic linker's lists"><input type="checkbox" checked={address.known} onChange={() => go({ known: !address.known })} /> known harmless ones too</label>
              {workEndNs > 0 && <label class="check" title="What the program frees as it ends counts as freed"><input type="checkbox" checked={address.to_end} onChange={() => go({ to_end: !address.to_end, select: '' })} /> at the very end</label>}
              {whole && <span class="quiet" title="The command gives the same stacks and bytes; ages and curves are the page's">{amountText(whole, 'outstanding_bytes')} in {withHalf(whole, 'outstanding_count', (count) => plural(count, 'block'), formatCount)} live {isCut ? `after ${formatDuration(workEndNs)}, before the program frees all as it ends` : address.range.length === 2 ? 'in the range' : file.session?.state === 'recording' ? 'so far' : 'at the end'}</span>}
            </>
          )}
        />
      )}
      second={address.select ? <StackPane file={file} filter={shown} id={address.select} /> : null}
    />
  );
}

/** Waits until a request is not wanted, because its answer would be that of another question. */
function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
}

/** Formats the live bytes of a stack at one of the moments. */
function grownTo(group: Leak, at: number): string {
  return within(group.growth[at] ?? 0, group.growth_plus_minus?.[at], formatBytes);
}
