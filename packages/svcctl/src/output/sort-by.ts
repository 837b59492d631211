import { compareText, type JsonObject, type JsonValue, parseQuantity } from '@wheelhouse/machinery';
import { CliError } from '../io.ts';
import { completePath, evaluateTemplate, parseTemplate } from './jsonpath.ts';

/** A value to sort by. */
type Key =
  | { readonly type: 'null' }
  | { readonly type: 'number'; readonly number: number | bigint }
  | { readonly type: 'text'; readonly text: string; readonly nano: bigint | undefined };

/** Maximum length of lists that kubectl sorts by insertion. */
const insertionMax = 12;

/**
 * Sorts rows by the first value at a JSONPath of their objects (`--sort-by`): numbers and
 * quantities by value, other text by its bytes. The sort is stable, except that rows without a
 * value come first in reverse order. Throws CliError for an invalid path, if no object has a
 * value, and for values that have no order.
 */
export function sortRows<T>(
  rows: readonly T[],
  options: { readonly path: string; readonly objectOf: (row: T) => JsonObject },
): readonly T[] {
  if (rows.length === 0) return rows;
  const text = completePath(options.path);
  const path = parseTemplate(text);
  const absent: T[] = [];
  const values: { readonly row: T; readonly value: JsonValue }[] = [];
  for (const row of rows) {
    const value = evaluateTemplate(path, options.objectOf(row))[0]?.[0];
    if (value === undefined) absent.unshift(row);
    else values.push({ row, value });
  }
  if (values.length === 0) {
    throw new CliError(
      `couldn't find any field with path ${JSON.stringify(text)} in the list of objects`,
    );
  }
  // A single value is compared with no other, so that it needs no order.
  if (values.length === 1) return [...absent, ...values.map(({ row }) => row)];
  const present = values.map(({ row, value }) => ({ row, key: keyOf(value, text) }));
  checkTypes(present, text);
  const sorted =
    rows.length <= insertionMax
      ? insertionSort(present)
      : present.sort((left, right) => compareKeys(left.key, right.key));
  return [...absent, ...sorted.map(({ row }) => row)];
}

function keyOf(value: JsonValue, path: string): Key {
  if (value === null) return { type: 'null' };
  if (typeof value === 'number' || typeof value === 'bigint') {
    return { type: 'number', number: value };
  }
  if (typeof value === 'string') {
    const quantity = parseQuantity(value);
    return { type: 'text', text: value, nano: 'error' in quantity ? undefined : quantity.nano };
  }
  const type = Array.isArray(value) ? 'list' : typeof value;
  throw new CliError(`field ${path} is an unsortable type: ${type}`);
}

function checkTypes(rows: readonly { readonly key: Key }[], path: string): void {
  const types = new Set(rows.map(({ key }) => key.type).filter((type) => type !== 'null'));
  if (types.size > 1) throw new CliError(`field ${path} has both texts and numbers as values`);
}

/**
 * Moves each row before the larger ones in front of it, like kubectl for short lists. The result
 * is defined even if some texts are quantities and others are not, which has no consistent order.
 */
function insertionSort<T extends { readonly key: Key }>(rows: readonly T[]): T[] {
  const sorted: T[] = [];
  for (const row of rows) {
    let at = sorted.length;
    while (at > 0 && compareKeys(row.key, sorted[at - 1]!.key) < 0) at -= 1;
    sorted.splice(at, 0, row);
  }
  return sorted;
}

function compareKeys(left: Key, right: Key): number {
  if (left.type === 'number' && right.type === 'number') return order(left.number, right.number);
  if (left.type === 'text' && right.type === 'text') {
    const areQuantities = left.nano !== undefined && right.nano !== undefined;
    return areQuantities ? order(left.nano, right.nano) : compareText(left.text, right.text);
  }
  return Number(left.type !== 'null') - Number(right.type !== 'null');
}

const order = (left: number | bigint, right: number | bigint): number =>
  Number(left > right) - Number(left < right);
