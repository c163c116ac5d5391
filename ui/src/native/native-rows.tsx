/**
 * Code shared by the tables of native snapshots: rows that report their command line, and the
 * choices of grouping and order.
 */
import { useEffect } from 'preact/hooks';
import { go } from '../address/use-address';
import type { RowsAnswer } from '../api/types';
import { answer } from '../api/use-answer';
import { Message } from '../frame/message';
import { useTold } from '../table/use-told';
import { useTree } from '../table/use-tree';
import { GROUPS } from './native-columns';
import type { NativeViewProps } from './view-props';

/** Choices of a list: key and title. */
export type Choices = [string, string][];

/** Returns the grouping of the page's address, or the first. */
export const groupOf = (group: string): string => (GROUPS.some(([key]) => key === group) ? group : 'stacks');
/** Returns the order of the page's address, or the first of `sorts`. */
export const orderOf = (sort: string, sorts: Choices): string => (sorts.some(([key]) => key === sort) ? sort : (sorts[0]?.[0] ?? ''));

/**
 * Loads rows of `/api/native/…` as they are scrolled to. `page` is the last answer without them.
 * Rows are loaded anew when `body` or `version` changes.
 */
export function useNativeRows<Row, Page extends RowsAnswer<Row>>(name: string, body: object, onCommand: NativeViewProps['onCommand'], version = '') {
  const [page, setPage] = useTold<Page | null>(null);
  const { tree, isLoading } = useTree<Row>(`${version} ${JSON.stringify(body)}`, async (_, offset, limit, signal) => {
    try {
      const next = await answer<Page>(`/api/native/${name}`, { ...body, offset, limit }, signal);
      setPage({ ...next, rows: [] });
      onCommand(next.command ?? null, null);
      return { rows: next.rows, count: next.row_count };
    } catch (error) {
      if (!signal.aborted) onCommand(null, error instanceof Error ? error.message : String(error));
      throw error;
    }
  });
  useEffect(() => () => onCommand(null, null), []);
  return { tree, isLoading, page };
}

export function GroupChoice({ by }: { by: string }) {
  return (
    <select aria-label="Grouped" value={by} onChange={(event) => go({ group: event.currentTarget.value, select: '' })}>
      {GROUPS.map(([key, title]) => <option key={key} value={key}>{title}</option>)}
    </select>
  );
}

export function OrderChoice({ sort, sorts }: { sort: string; sorts: Choices }) {
  return (
    <select aria-label="Order" value={sort} onChange={(event) => go({ sort: event.currentTarget.value === sorts[0]?.[0] ? '' : event.currentTarget.value })}>
      {sorts.map(([key, title]) => <option key={key} value={key}>{title}</option>)}
    </select>
  );
}

export function Warnings({ of }: { of: string[] | undefined }) {
  return <>{(of ?? []).map((warning) => <Message key={warning} kind="warning">{warning}</Message>)}</>;
}
