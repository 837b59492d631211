import { itemAt } from '@wheelhouse/machinery';

/** Lists of the indexes of a Job's pods, as `1,3-5,7`. */

interface Interval {
  readonly from: number;
  readonly to: number;
}

const isWhole = (text: string) => /^[+-]?\d{1,15}$/.test(text);

/** Reads `3` or `3-5`; what is wrong with it, in upstream's words, where it cannot be read. */
function intervalOf(text: string, completions: number): Interval | string {
  const limits = text.split('-');
  if (limits.length > 2) {
    const shown = JSON.stringify(text);
    return `the fragment ${shown} violates the requirement that an index interval can have at most two parts separated by '-'`;
  }
  for (const limit of limits) {
    const shown = JSON.stringify(limit);
    if (!isWhole(limit)) return `cannot convert string to integer for index: ${shown}`;
    if (Number(limit) >= completions) return `too large index: ${shown}`;
  }
  const [from = 0, to = from] = limits.map(Number);
  if (limits.length === 2 && from >= to) {
    return `non-increasing order, previous: ${from}, current: ${to}`;
  }
  return { from, to };
}

/** How many indexes a list has; what is wrong with it where it cannot be read. */
export function countIndexes(
  list: string,
  completions: number,
): { readonly total: number; readonly problem?: string } {
  if (list === '') return { total: 0 };
  let last: number | undefined;
  let total = 0;
  for (const text of list.split(',')) {
    const interval = intervalOf(text, completions);
    if (typeof interval === 'string') return { total: 0, problem: interval };
    const { from, to } = interval;
    if (last !== undefined && last >= from) {
      return { total: 0, problem: `non-increasing order, previous: ${last}, current: ${from}` };
    }
    total += to - from + 1;
    last = to;
  }
  return { total };
}

/** The first index that is in both lists; what of them cannot be read is passed over. */
export function firstShared(
  completed: string,
  failed: string,
  completions: number,
): number | undefined {
  if (completed === '' || failed === '') return undefined;
  const [left, right] = [completed, failed].map((list) =>
    list
      .split(',')
      .map((text) => intervalOf(text, completions))
      .filter((interval) => typeof interval !== 'string'),
  ) as [Interval[], Interval[]];
  let [one, other] = [0, 0];
  while (one < left.length && other < right.length) {
    const [a, b] = [itemAt(left, one), itemAt(right, other)];
    if (a.from <= b.to && b.from <= a.to) return Math.max(a.from, b.from);
    if (a.from <= b.from) one += 1;
    else other += 1;
  }
  return undefined;
}
