import { itemAt } from '@wheelhouse/machinery';
import type { Library } from '../types/functions.ts';
import { CelError, Opaque, type Value } from '../values.ts';
import { asText, misfit } from './arguments.ts';

interface Version {
  readonly numbers: readonly [bigint, bigint, bigint];
  readonly pre: readonly string[];
}

const type = 'kubernetes.Semver';
const part = '(0|[1-9]\\d*)';
const identifiers = '[0-9A-Za-z-]+(?:\\.[0-9A-Za-z-]+)*';
const form = new RegExp(
  `^${part}\\.${part}\\.${part}(?:-(${identifiers}))?(?:\\+(${identifiers}))?$`,
);
const lengthMax = 256;

/** `v1.2` becomes `1.2.0`, and leading zeros go: what the lenient form takes. */
function normalized(text: string): string {
  const rest = text.replace(/^v/, '');
  const at = rest.search(/[-+]/);
  const [core, tail] = at < 0 ? [rest, ''] : [rest.slice(0, at), rest.slice(at)];
  const numbers = core.split('.').map((one) => one.replace(/^0+(?=\d)/, ''));
  while (numbers.length < 3) numbers.push('0');
  return numbers.join('.') + tail;
}

function parse(text: string): Version | undefined {
  const match = text.length > lengthMax ? null : form.exec(text);
  if (match === null) return undefined;
  const [major = 0n, minor = 0n, patch = 0n] = match.slice(1, 4).map(BigInt);
  const numbers = [major, minor, patch] as const;
  if (numbers.some((one) => BigInt.asUintN(64, one) !== one)) return undefined;
  const pre = match[4]?.split('.') ?? [];
  return pre.some((one) => /^0\d+$/.test(one)) ? undefined : { numbers, pre };
}

class Semver extends Opaque<Version> {}

function read([text, lenient]: readonly Value[]): Value {
  const versionText = asText(text);
  const version = parse(lenient === true ? normalized(versionText) : versionText);
  if (version === undefined) throw new CelError(`invalid semantic version: ${versionText}`);
  const key = `${version.numbers.join('.')}-${version.pre.join('.')}`;
  return new Semver({ type, value: version, key });
}

const order = (one: bigint, other: bigint) => (one < other ? -1 : one > other ? 1 : 0);

function comparePre(one: string, other: string): number {
  const [isNumber, isOther] = [/^\d+$/.test(one), /^\d+$/.test(other)];
  if (isNumber && isOther) return order(BigInt(one), BigInt(other));
  if (isNumber !== isOther) return isNumber ? -1 : 1;
  return one < other ? -1 : one > other ? 1 : 0;
}

function compare(one: Version, other: Version): number {
  for (const index of [0, 1, 2] as const) {
    const result = order(one.numbers[index], other.numbers[index]);
    if (result !== 0) return result;
  }
  if (one.pre.length === 0 || other.pre.length === 0) {
    return Math.sign(other.pre.length - one.pre.length);
  }
  for (const [index, item] of one.pre.entries()) {
    const against = other.pre[index];
    if (against === undefined) return 1;
    const result = comparePre(item, against);
    if (result !== 0) return result;
  }
  return one.pre.length < other.pre.length ? -1 : 0;
}

function version(value: Value | undefined): Version {
  if (!(value instanceof Semver)) throw misfit(value, type);
  return value.value;
}

const compared = ([one, other]: readonly Value[]) => compare(version(one), version(other));

function isSemver([text, lenient]: readonly Value[]): boolean {
  return parse(lenient === true ? normalized(asText(text)) : asText(text)) !== undefined;
}

/** Semantic versions. */
export const semver: Library = [
  [`semver(string): ${type}`, read],
  [`semver(string, bool): ${type}`, read],
  ['isSemver(string): bool', isSemver],
  ['isSemver(string, bool): bool', isSemver],
  [`${type}.isGreaterThan(${type}): bool`, (args) => compared(args) > 0],
  [`${type}.isLessThan(${type}): bool`, (args) => compared(args) < 0],
  [`${type}.compareTo(${type}): int`, (args) => BigInt(compared(args))],
  ...(['major', 'minor', 'patch'] as const).map(
    (name, index) =>
      [
        `${type}.${name}(): int`,
        ([value]: readonly Value[]) => itemAt(version(value).numbers, index),
      ] as const,
  ),
];
