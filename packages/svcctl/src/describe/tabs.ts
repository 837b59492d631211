import { type JsonObject, member } from '@wheelhouse/machinery';
import { withoutControls } from '../terminal.ts';

/** Spaces between columns. */
const padding = 2;

/**
 * Aligns the columns of lines whose cells end with tabs. A column is as wide as its widest cell in
 * consecutive lines that have it; the text after a line's last tab belongs to no column. A text may
 * contain several lines. Other control characters are shown, not sent to the terminal.
 */
export function alignTabs(texts: readonly string[]): string {
  const lines = texts.flatMap((text) => withoutControls(text).split('\n'));
  const rows = lines.map((line) => line.split('\t'));
  const columns = rows.reduce((most, cells) => Math.max(most, cells.length - 1), 0);
  for (let column = 0; column < columns; column += 1) {
    const hasColumn = (at: number) => (rows[at]?.length ?? 0) - 1 > column;
    for (let start = 0; start < rows.length; start += 1) {
      if (!hasColumn(start)) continue;
      let end = start;
      while (hasColumn(end)) end += 1;
      const block = rows.slice(start, end);
      const widest = block.reduce((most, cells) => Math.max(most, cells[column]!.length), 0);
      for (const cells of block) cells[column] = cells[column]!.padEnd(widest + padding);
      start = end;
    }
  }
  return rows.map((cells) => `${cells.join('')}\n`).join('');
}

/** A title with values, one per line, or `<none>`. */
export function valueLines(title: string, values: readonly string[]): string[] {
  if (values.length === 0) return [`${title}:\t<none>`];
  return values.map((value, at) => (at === 0 ? `${title}:\t${value}` : `\t${value}`));
}

/** A title with a text; no line if the text is empty. */
export const optional = (title: string, text: string): string[] =>
  text === '' ? [] : [`${title}:\t${text}`];

/** A title with the sorted members of a map (`key=value`), one per line. */
export const valuePairs = (title: string, map: JsonObject): string[] =>
  valueLines(
    title,
    Object.keys(map)
      .sort()
      .map((key) => `${key}=${String(member(map, key))}`),
  );

/** Column titles and the line below them. */
export function headLines(heads: readonly string[], indent: string): string[] {
  const rule = heads.map((head) => '-'.repeat(head.length));
  return [`${indent}${heads.join('\t')}`, `${indent}${rule.join('\t')}`];
}
