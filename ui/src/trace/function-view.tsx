/** All functions with inclusive and self amounts; the chosen one with its callers and callees. */
import { useEffect } from 'preact/hooks';
import { go, useAddress } from '../address/use-address';
import { METRICS } from '../api/metrics';
import type { FunctionRow, FunctionsAnswer, Totals } from '../api/types';
import { answer } from '../api/use-answer';
import { formatPercent } from '../format';
import { Search } from '../frame/search';
import { Split } from '../frame/split';
import type { Column } from '../table/columns';
import { emptyText } from '../table/empty-text';
import { Table } from '../table/table';
import { useTold } from '../table/use-told';
import { useTree } from '../table/use-tree';
import { defaultSort } from './default-metric';
import { amountText, exactAmount, isEstimate } from './estimate';
import { FrameName } from './frame-name';
import { FramePane } from './frame-pane';
import { LineSwitch } from './line-switch';
import { frameName, framePlace, metricOf, metricTitle } from './metric-columns';
import type { TraceViewProps } from './view-props';

/** Metrics by which functions may be ranked. */
const KEYS = METRICS.filter((metric) => metric.key && !metric.isExtra).map((metric) => [metric.key, metricTitle(metric)]);

export function FunctionView({ file, filter, onCommand }: TraceViewProps) {
  const address = useAddress();
  const [totals, setTotals] = useTold<Totals | null>(null);
  const usual = defaultSort(file, filter);
  // `own` behind the key: ranked by a function's self amount.
  const byOwn = address.sort.endsWith('-own');
  const key = address.sort.replace(/-own$/, '') || usual;
  const metric = metricOf(key);
  const body = { file: file.file, filter, sort: key, ...(byOwn ? { by_own: true } : {}), ...(address.lines ? { by_line: true } : {}), descending: !address.ascending, match: address.match };
  const { tree, isLoading } = useTree<FunctionRow>(JSON.stringify(body), async (_, offset, limit, signal) => {
    try {
      const found = await answer<FunctionsAnswer>('/api/functions', { ...body, offset, limit }, signal);
      setTotals(found.totals);
      onCommand(found.command, null);
      return { rows: found.functions, count: found.match_count };
    } catch (error) {
      if (!signal.aborted) onCommand(null, error instanceof Error ? error.message : String(error));
      throw error;
    }
  }, file.generation);
  useEffect(() => () => onCommand(null, null), []);
  const width = isEstimate(totals) ? 12 : 8;
  const whole = totals ? { outstanding_bytes: totals.outstanding_bytes, outstanding_count: totals.outstanding_count, total_bytes: totals.alloc_bytes, total_count: totals.alloc_count, peak_bytes: totals.peak_bytes, peak_count: totals.peak_count, realloc_count: totals.realloc_count, temporary_count: totals.temporary_count }[metric] : 0;
  const nameOf = (row: FunctionRow) => (row.frame ? `${frameName(row.frame)}${address.lines ? ` ${framePlace(row.frame)}`.trimEnd() : ''}` : '');
  const columns: Column<FunctionRow>[] = [
    { key: 'percent', title: '%', help: 'Share of all, with what it calls', isNumber: true, width: 4, text: (row) => (whole ? formatPercent(row.inclusive[metric], whole).replace(' %', '') : '') },
    { key: 'inclusive', title: 'With callees', help: 'Of all stacks that the function is in; recursion counts once', isNumber: true, width, sort: key, text: (row) => amountText(row.inclusive, metric), exact: (row) => exactAmount(row.inclusive, metric), raw: (row) => row.inclusive[metric] },
    { key: 'own', title: 'Itself', help: 'Of the stacks whose innermost frame it is, after culling', isNumber: true, width: width - 1, sort: `${key}-own`, text: (row) => amountText(row.own, metric), exact: (row) => exactAmount(row.own, metric), raw: (row) => row.own[metric] },
    { key: 'allocations', title: 'Allocs', help: 'Allocations with what it calls', isNumber: true, width: isEstimate(totals) ? 9 : 6.6, text: (row) => amountText(row.inclusive, 'total_count'), raw: (row) => row.inclusive.total_count },
    { key: 'function', title: address.lines ? 'Line' : 'Function', width: 0, text: (row) => nameOf(row), exact: (row) => nameOf(row), cell: (row) => (row.frame ? <FrameName frame={row.frame} showsPlace={address.lines} isOwn={row.is_own} /> : '') },
  ];
  const table = (
    <Table
      label={`${file.name} functions`} columns={columns} tree={tree} rowKey={(row) => row.id} selected={address.select} onSelect={(row) => go({ select: row.id }, true)}
      sort={address.sort || usual} descending={!address.ascending} onSort={(next, descending) => go({ sort: next === usual ? '' : next, ascending: !descending })}
      hidden={address.hidden} onHide={(hidden) => go({ hidden }, true)} isOld={isLoading} empty={emptyText(address.match, 'No allocation is left by the filters.')}
      tools={(
        <>
          <Search value={address.match} onChange={(match) => go({ match }, true)} label="Search functions" />
          <label class="check">by <select value={key} onChange={(event) => go({ sort: event.currentTarget.value === usual ? '' : event.currentTarget.value })}>
            {KEYS.map(([value, title]) => <option key={value} value={value}>{title}</option>)}
          </select></label>
          <LineSwitch />
          <span class="quiet">bold: the program's own</span>
        </>
      )}
    />
  );
  const pane = address.select === '' ? null : <FramePane file={file} filter={filter} frame={address.select} sort={key} />;
  return <Split direction="side" label="Width of the details" share={0.36} first={table} second={pane} />;
}
