/** Maximum length, in lines, of a compared change; a longer one is shown as a replacement. */
const linesMax = 2_000;
const contextLines = 3;

type Mark = ' ' | '-' | '+';
type Line = readonly [mark: Mark, text: string];

/** Returns the hunks of a unified diff between two texts; empty if the texts are equal. */
export function lineDiff(before: string, after: string): string[] {
  const lines = editScript(linesOf(before), linesOf(after));
  const changed = lines.flatMap(([mark], at) => (mark === ' ' ? [] : [at]));
  const hunks: { from: number; to: number }[] = [];
  for (const at of changed) {
    const from = Math.max(0, at - contextLines);
    const to = Math.min(lines.length, at + contextLines + 1);
    const last = hunks.at(-1);
    if (last !== undefined && from <= last.to) last.to = to;
    else hunks.push({ from, to });
  }
  return hunks.flatMap(({ from, to }) => hunkText(lines, from, to));
}

const linesOf = (text: string): string[] =>
  text === '' ? [] : text.replace(/\n$/, '').split('\n');

function hunkText(lines: readonly Line[], from: number, to: number): string[] {
  const count = (part: readonly Line[], mark: Mark) =>
    part.filter(([lineMark]) => lineMark === ' ' || lineMark === mark).length;
  const [precedingLines, hunkLines] = [lines.slice(0, from), lines.slice(from, to)];
  const range = (mark: Mark) => {
    const length = count(hunkLines, mark);
    return `${count(precedingLines, mark) + (length === 0 ? 0 : 1)},${length}`;
  };
  return [
    `@@ -${range('-')} +${range('+')} @@`,
    ...hunkLines.map(([mark, text]) => `${mark}${text}`),
  ];
}

/** All lines of both texts in order, marked as kept, removed, or added. */
function editScript(before: readonly string[], after: readonly string[]): Line[] {
  let commonStart = 0;
  while (
    commonStart < before.length &&
    commonStart < after.length &&
    before[commonStart] === after[commonStart]
  )
    commonStart += 1;
  let commonEnd = 0;
  while (
    commonEnd < before.length - commonStart &&
    commonEnd < after.length - commonStart &&
    before.at(-1 - commonEnd) === after.at(-1 - commonEnd)
  ) {
    commonEnd += 1;
  }
  const unchanged = (text: string): Line => [' ', text];
  const middle = changedLines(
    before.slice(commonStart, before.length - commonEnd),
    after.slice(commonStart, after.length - commonEnd),
  );
  return [
    ...before.slice(0, commonStart).map(unchanged),
    ...middle,
    ...before.slice(before.length - commonEnd).map(unchanged),
  ];
}

/** Compares lines by their longest common subsequence. */
function changedLines(before: readonly string[], after: readonly string[]): Line[] {
  const removed = before.map((text): Line => ['-', text]);
  const added = after.map((text): Line => ['+', text]);
  if (before.length === 0 || after.length === 0 || before.length * after.length > linesMax ** 2) {
    return [...removed, ...added];
  }
  const width = after.length + 1;
  const lengths = new Uint16Array((before.length + 1) * width);
  const lengthAt = (row: number, column: number) => lengths[row * width + column] ?? 0;
  for (let row = before.length - 1; row >= 0; row -= 1) {
    for (let column = after.length - 1; column >= 0; column -= 1) {
      lengths[row * width + column] =
        before[row] === after[column]
          ? lengthAt(row + 1, column + 1) + 1
          : Math.max(lengthAt(row + 1, column), lengthAt(row, column + 1));
    }
  }
  const result: Line[] = [];
  let [row, column] = [0, 0];
  while (row < before.length || column < after.length) {
    if (row < before.length && before[row] === after[column]) {
      result.push([' ', before[row] ?? '']);
      row += 1;
      column += 1;
    } else if (
      column >= after.length ||
      (row < before.length && lengthAt(row + 1, column) >= lengthAt(row, column + 1))
    ) {
      result.push(['-', before[row] ?? '']);
      row += 1;
    } else {
      result.push(['+', after[column] ?? '']);
      column += 1;
    }
  }
  return result;
}
