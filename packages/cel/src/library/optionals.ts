import type { Library } from '../types/functions.ts';
import { CelError, Duration, isMapValue, List, numeric, Optional, type Value } from '../values.ts';
import { misfit } from './arguments.ts';

const none = new Optional();

function isZero(value: Value): boolean {
  if (value === null || value === false || value === '') return true;
  const number = numeric(value);
  if (number !== undefined) return Number(number) === 0;
  if (value instanceof Uint8Array) return value.length === 0;
  if (value instanceof List) return value.items.length === 0;
  if (isMapValue(value)) return value.size === 0;
  if (value instanceof Duration) return value.nanos === 0n;
  return value instanceof Optional && value.value === undefined;
}

function inner(value: Value | undefined): Value | undefined {
  if (!(value instanceof Optional)) throw misfit(value, 'optional_type');
  return value.value;
}

/** Optional values. */
export const optionals: Library = [
  ['optional.of(V): optional_type(V)', ([value]) => new Optional(value)],
  ['optional.none(): optional_type(V)', () => none],
  [
    'optional.ofNonZeroValue(V): optional_type(V)',
    ([value = null]) => (isZero(value) ? none : new Optional(value)),
  ],
  ['optional_type(V).hasValue(): bool', ([value]) => inner(value) !== undefined],
  [
    'optional_type(V).value(): V',
    ([value]) => {
      const content = inner(value);
      if (content === undefined) throw new CelError('optional.none() dereference');
      return content;
    },
  ],
  [
    'optional_type(V).or(optional_type(V)): optional_type(V)',
    ([value = none, other = none]) => (inner(value) === undefined ? other : value),
  ],
  ['optional_type(V).orValue(V): V', ([value, other = null]) => fallback(value, other)],
];

/** The content of an optional may itself be null. */
function fallback(value: Value | undefined, other: Value): Value {
  const content = inner(value);
  return content === undefined ? other : content;
}
