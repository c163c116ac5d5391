/** Two or more builds side by side, by function of the program's own code. */
import { useEffect, useState } from 'preact/hooks';
import { go, useAddress } from '../address/use-address';
import type { Amounts, BuildFunction, DiffFunctionsAnswer, Filter, OpenFile, ReportAnswer } from '../api/types';
import { METRICS } from '../api/metrics';
import { answer, useAnswer } from '../api/use-answer';
import { exactBytes, formatBytes, formatCount, formatSignedBytes, formatSignedCount } from '../format';
import { SameSwitch } from '../frame/same-switch';
import { Search } from '../frame/search';
import { Split } from '../frame/split';
import type { Column } from '../table/columns';
import { emptyText } from '../table/empty-text';
import { Table } from '../table/table';
import { useTold } from '../table/use-told';
import { useTree } from '../table/use-tree';
import { amountText, exactAmount, isEstimate, within } from './estimate';
import { framePattern, framePlace, metricOf, metricTitle } from './metric-columns';
import { StackPane } from './stack-pane';

/** A build: a file with the filter of its amounts. */
export interface Build {
  file: OpenFile;
  filter: Filter;
}

const SORTS: [string, string][] = METRICS.filter(({ key }) => key !== '').map((metric) => [metric.key, metricTitle(metric)]);
/** Functions that can be chosen as the other name of one. */
const PAIRS_MAX = 60;

interface BuildsViewProps {
  builds: Build[];
  /** Files that may become further columns. */
  others: OpenFile[];
  generation: number;
  onCommand: (command: string | null, error: string | null) => void;
}

export function BuildsView({ builds, others, generation, onCommand }: BuildsViewProps) {
  const address = useAddress();
  const [opened, setOpened] = useState<BuildFunction | null>(null);
  const sort = address.sort || 'so';
  const metric = metricOf(sort);
  const [told, setTold] = useTold<DiffFunctionsAnswer | null>(null);
  const sides = builds.map(({ file, filter }) => ({ file: file.file, filter }));
  const pairs = address.pair.map((text) => text.split('=')).filter((pair) => pair.length === 2);
  const body = { sides, sort, match: address.match, same: address.same, ...(pairs.length > 0 ? { pairs } : {}) };
  const { tree, isLoading } = useTree<BuildFunction>(JSON.stringify(body), async (_, offset, limit, signal) => {
    try {
      const diff = await answer<DiffFunctionsAnswer>('/api/diff-functions', { ...body, offset, limit }, signal);
      setTold(diff);
      onCommand(diff.command, null);
      return { rows: diff.functions, count: diff.match_count };
    } catch (error) {
      if (!signal.aborted) onCommand(null, error instanceof Error ? error.message : String(error));
      throw error;
    }
  }, generation);
  useEffect(() => () => onCommand(null, null), []);
  const columns = columnsOf(builds, metric, told?.totals.some(isEstimate) ?? false);
  const free = others.filter((other) => !builds.some(({ file }) => file.file === other.file));
  const table = (
    <Table
      label="Builds by function" columns={columns} tree={tree} rowKey={keyOf} selected={opened ? keyOf(opened) : ''} onSelect={setOpened} hidden={address.hidden} onHide={(hidden) => go({ hidden }, true)}
      isOld={isLoading} empty={emptyText(address.match, 'No function differs.')}
      tools={(
        <>
          <select aria-label="Difference of" value={sort} onChange={(event) => go({ sort: event.currentTarget.value === 'so' ? '' : event.currentTarget.value })}>
            {SORTS.map(([key, title]) => <option key={key} value={key}>{title}</option>)}
          </select>
          <Search value={address.match} onChange={(match) => go({ match }, true)} label="Search functions" />
          <SameSwitch title="Also functions that do not differ" />
          {free.length > 0 && (
            <select aria-label="Add a build" value="" onChange={(event) => event.currentTarget.value !== '' && go({ more: [...address.more, event.currentTarget.value] })}>
              <option value="">Add a build…</option>
              {free.map((file) => <option key={file.file} value={String(file.file)}>{file.name}</option>)}
            </select>
          )}
          {address.more.length > 0 && <button type="button" class="button" onClick={() => go({ more: [] })}>Only two builds</button>}
          {address.pair.length > 0 && <button type="button" class="button" title={address.pair.join('\n')} onClick={() => go({ pair: [] })}>Undo pairs by hand</button>}
        </>
      )}
    />
  );
  return (
    <>
      {told && <p class="builds-sentence" role="status">{told.sentence}</p>}
      <Split direction="below" label="Height of the sources" share={0.45} first={table} second={opened ? <BuildsPane key={keyOf(opened)} {...{ opened, builds }} rows={told?.functions ?? []} sort={sort} /> : null} />
    </>
  );
}

/** Names of a function, as the command line prints them. */
function namesText(row: BuildFunction): string {
  const names = row.names.filter((name): name is string => name !== null);
  return names.length === 0 ? 'code without a stack' : names.filter((name, at) => name !== names[at - 1]).join(' → ');
}

function keyOf(row: BuildFunction): string {
  return row.names.map((name, at) => `${name ?? ''} ${row.frames[at]?.module ?? ''}`).join('\n');
}

function columnsOf(builds: Build[], metric: keyof Amounts, isSampled: boolean): Column<BuildFunction>[] {
  const isBytes = metric.endsWith('_bytes');
  const [signed, amount, exact] = isBytes ? [formatSignedBytes, formatBytes, exactBytes] as const : [formatSignedCount, formatCount, formatCount] as const;
  return [
    {
      key: 'delta', title: 'Difference', help: 'From the first build to the last', isNumber: true, width: isSampled ? 13.5 : 7.5, text: (row) => within(row.delta, row.delta_plus_minus, signed, amount),
      exact: (row) => within(row.delta, row.delta_plus_minus, exact, exact), raw: (row) => row.delta, cell: (row) => <span class={row.delta > 0 ? 'is-more' : row.delta < 0 ? 'is-less' : ''}>{within(row.delta, row.delta_plus_minus, signed, amount)}</span>,
    },
    ...builds.map(({ file }, at): Column<BuildFunction> => ({
      key: `build_${at + 1}`, title: builds.length > 2 ? file.name : at === 0 ? 'Before' : 'After', help: file.path, isNumber: true, width: isSampled ? 12 : 7.5,
      text: (row) => (row.amounts[at] ? amountText(row.amounts[at], metric) : ''), exact: (row) => (row.amounts[at] ? exactAmount(row.amounts[at], metric) : ''), raw: (row) => row.amounts[at]?.[metric] ?? 0,
    })),
    {
      key: 'names', title: 'Function', width: 0, text: namesText, exact: (row) => `${namesText(row)}\n${row.frames.map((frame) => (frame ? framePlace(frame) : '')).filter(Boolean).join('\n')}`,
      cell: (row) => <span class="frame-name"><span class="symbol is-own">{namesText(row)}</span>{row.renamed && <span class="badge" title="Likely the same function under another name: the same caller and file, and about as many blocks; or paired by hand">renamed</span>}</span>,
    },
  ];
}

/** Sources of a function in its first and its last build, beside each other. */
function BuildsPane({ opened, builds, rows, sort }: { opened: BuildFunction; builds: Build[]; rows: BuildFunction[]; sort: string }) {
  const last = builds.length - 1;
  const missing = [0, last].find((at) => opened.names[at] === null);
  const candidates = missing === undefined ? [] : rows.filter((row) => row.names[missing] !== null && row.names[missing === 0 ? last : 0] === null).slice(0, PAIRS_MAX);
  const [own, other] = missing === 0 ? [last, 0] : [0, last];
  const pair = (name: string) => {
    const ownName = opened.names[own] ?? '';
    const text = missing === 0 ? `${name}=${ownName}` : `${ownName}=${name}`;
    go({ pair: [...new Set([...currentPairs(), text])] });
  };
  const address = useAddress();
  const currentPairs = () => address.pair;
  return (
    <div class="builds-pane">
      {missing !== undefined && candidates.length > 0 && (
        <p class="builds-pair">
          <label>It is the same as <select value="" onChange={(event) => event.currentTarget.value !== '' && pair(event.currentTarget.value)}>
            <option value="">…</option>
            {candidates.map((row) => <option key={keyOf(row)} value={row.names[other] ?? ''}>{row.names[other]}</option>)}
          </select> in {builds[other]?.file.name}</label>
        </p>
      )}
      <div class="builds-sides">
        {[0, last].map((at) => <BuildSource key={at} build={builds[at]} frame={opened.frames[at] ?? null} sort={sort} />)}
      </div>
    </div>
  );
}

function BuildSource({ build, frame, sort }: { build: Build | undefined; frame: BuildFunction['frames'][number]; sort: string }) {
  const pattern = frame ? framePattern(frame) : '';
  const filter: Filter = { ...build?.filter, require_frames: [...(build?.filter.require_frames ?? []), pattern] };
  const { data } = useAnswer<ReportAnswer>('/api/report', build && frame ? { file: build.file.file, filter, by: 'stacks', sort, descending: true, offset: 0, limit: 1, match: '', frames_max: 4 } : null);
  if (!build) return null;
  const id = data?.groups[0]?.id;
  return (
    <section class="builds-side">
      <h3>{build.file.name}{frame ? '' : ': it holds nothing here'}</h3>
      {id && <StackPane file={build.file} filter={filter} id={id} />}
    </section>
  );
}
