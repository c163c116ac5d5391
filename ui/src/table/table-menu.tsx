/** Menu of actions on a whole table: copy, save, choose columns. */
import { useState } from 'preact/hooks';
import { copyText, saveText } from '../frame/clipboard';
import { Popover } from '../frame/popover';
import { formatCount, plural } from '../format';
import { type Column, rowsAsCsv, rowsAsMarkdown, rowsAsText } from './columns';
import type { LazyTree } from './lazy-tree';

interface TableMenuProps<Row> {
  label: string;
  columns: Column<Row>[];
  shown: Column<Row>[];
  tree: LazyTree<Row>;
  hidden: string[];
  onHide: (hidden: string[]) => void;
  /** Visible rows that are selected, both ends included. */
  picked: { from: number; to: number } | null;
  onCopy: () => void;
  /** Message of the last copying. */
  said: string;
}

/** Most rows that are copied; more go into a file. */
const COPIED_ROWS = 10_000;
const MARKDOWN_ROWS = 20;
const SAVED_ROWS = 1_000_000;

export function TableMenu<Row>({ label, columns, shown, tree, hidden, onHide, picked, onCopy, said: tableSaid }: TableMenuProps<Row>) {
  const [said, setSaid] = useState('');
  const tell = async (work: () => Promise<string>) => {
    setSaid('…');
    try {
      setSaid(await work());
    } catch (error) {
      setSaid(error instanceof Error ? error.message : String(error));
    }
  };
  const copyAll = () =>
    tell(async () => {
      const rows = await tree.all(COPIED_ROWS);
      await copyText(rowsAsText(shown, rows));
      return `${plural(rows.length, 'row')} copied`;
    });
  const copyMarkdown = () =>
    tell(async () => {
      const rows = await tree.all(MARKDOWN_ROWS);
      const command = document.querySelector('.filter-row .command code')?.textContent ?? '';
      await copyText(`**${label}**\n\n${rowsAsMarkdown(shown, rows.slice(0, MARKDOWN_ROWS))}${command === '' ? '' : `\n\`\`\`\n${command}\n\`\`\`\n`}`);
      return `${plural(Math.min(rows.length, MARKDOWN_ROWS), 'row')} copied`;
    });
  const save = () =>
    tell(async () => {
      const rows = await tree.all(SAVED_ROWS);
      saveText(`${label.toLowerCase().replace(/[^a-z0-9]+/g, '-')}.csv`, 'text/csv', rowsAsCsv(shown, rows));
      return `${plural(rows.length, 'row')} saved`;
    });
  const toggle = (column: Column<Row>) => {
    const mark = column.isExtra ? `+${column.key}` : column.key;
    onHide(hidden.includes(mark) ? hidden.filter((other) => other !== mark) : [...hidden, mark]);
  };
  return (
    <div class="table-menu">
      <span class="quiet" role="status">{said || tableSaid}</span>
      <span class="quiet">{tree.topCount === null ? '' : plural(tree.topCount, 'row')}</span>
      <Popover label="Table" title="Copy, save, choose columns">
        <button type="button" class="menu-item" disabled={!picked} onClick={onCopy}>
          Copy {picked && picked.to > picked.from ? `${formatCount(picked.to - picked.from + 1)} selected rows` : 'selected row'} as text
        </button>
        <button type="button" class="menu-item" onClick={() => void copyAll()}>Copy all as text</button>
        <button type="button" class="menu-item" title={`The first ${MARKDOWN_ROWS} rows, for a note or an issue`} onClick={() => void copyMarkdown()}>Copy as Markdown</button>
        <button type="button" class="menu-item" onClick={() => void save()}>Save as CSV</button>
        <fieldset class="menu-set">
          <legend>Columns</legend>
          {columns.map((column) => (
            <label key={column.key} title={column.help}>
              <input type="checkbox" checked={shown.includes(column)} disabled={shown.length === 1 && shown[0] === column} onChange={() => toggle(column)} />
              {column.title}
            </label>
          ))}
        </fieldset>
      </Popover>
    </div>
  );
}
