import { parseQuantity } from '@wheelhouse/machinery';
import type { Library } from '../types/functions.ts';
import { CelError, Opaque, type Value } from '../values.ts';
import { asInt, asText } from './arguments.ts';
import { int64 } from './arithmetic.ts';

const type = 'kubernetes.Quantity';
const billion = 1_000_000_000n;

class Quantity extends Opaque<bigint> {}

function quantity(nano: bigint): Quantity {
  return new Quantity({ type, value: nano, key: String(nano) });
}

function read(text: string): Quantity {
  const found = parseQuantity(text);
  if ('error' in found) throw new CelError(found.error);
  return quantity(found.nano);
}

const nano = (value: Value | undefined) =>
  value instanceof Quantity ? value.value : asInt(value) * billion;

function asInteger([value]: readonly Value[]): bigint {
  const amount = nano(value);
  const whole = amount / billion;
  if (amount % billion !== 0n || BigInt.asIntN(64, whole) !== whole) {
    throw new CelError('cannot convert value to integer');
  }
  return int64(whole);
}

function isInteger([value]: readonly Value[]): boolean {
  const amount = nano(value);
  return amount % billion === 0n && BigInt.asIntN(64, amount / billion) === amount / billion;
}

const sign = (amount: bigint) => (amount < 0n ? -1n : amount > 0n ? 1n : 0n);

/** Amounts such as `500m` and `1Gi`. */
export const quantities: Library = [
  [`quantity(string): ${type}`, ([text]) => read(asText(text))],
  ['isQuantity(string): bool', ([text]) => !('error' in parseQuantity(asText(text)))],
  [`${type}.sign(): int`, ([value]) => sign(nano(value))],
  [`${type}.isGreaterThan(${type}): bool`, ([one, other]) => nano(one) > nano(other)],
  [`${type}.isLessThan(${type}): bool`, ([one, other]) => nano(one) < nano(other)],
  [`${type}.compareTo(${type}): int`, ([one, other]) => sign(nano(one) - nano(other))],
  [`${type}.asInteger(): int`, asInteger],
  [`${type}.isInteger(): bool`, isInteger],
  [`${type}.asApproximateFloat(): double`, ([value]) => Number(nano(value)) / 1e9],
  ...[type, 'int'].flatMap(
    (other) =>
      [
        [
          `${type}.add(${other}): ${type}`,
          ([one, two]: readonly Value[]) => quantity(nano(one) + nano(two)),
        ],
        [
          `${type}.sub(${other}): ${type}`,
          ([one, two]: readonly Value[]) => quantity(nano(one) - nano(two)),
        ],
      ] as const,
  ),
];
