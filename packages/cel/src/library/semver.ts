import { capitalize, cut, goQuoted, itemAt, problemText } from '@wheelhouse/machinery';
import type { Library } from '../types/functions.ts';
import { CelError, Opaque, type Value } from '../values.ts';
import { asText, misfit } from './arguments.ts';

interface Version {
  readonly numbers: readonly [bigint, bigint, bigint];
  readonly pre: readonly string[];
  readonly build: readonly string[];
}

const semverType = 'kubernetes.Semver';

/** Normalizes the lenient form: `v1.2` becomes `1.2.0`, without leading zeros. */
function normalizedSemver(text: string): string {
  const rest = text.replace(/^v/, '');
  const at = rest.search(/[-+]/);
  const [core, tail] = at < 0 ? [rest, ''] : [rest.slice(0, at), rest.slice(at)];
  const numbers = core.split('.').map((part) => part.replace(/^0+(?=\d)/, ''));
  while (numbers.length < 3) numbers.push('0');
  return numbers.join('.') + tail;
}

/** Parses a version. Throws `CelError` with the text that kube-apiserver reports. */
function parseSemver(text: string): Version {
  if (text === '') throw new CelError('Version string empty');
  const [major, rest] = cut(text, '.');
  const [minor, tail] = cut(rest ?? '', '.');
  if (tail === undefined) throw new CelError('No Major.Minor.Patch elements found');
  const [beforeBuild, build] = cut(tail, '+');
  const [patch, pre] = cut(beforeBuild, '-');
  return {
    numbers: [numberOf('major', major), numberOf('minor', minor), numberOf('patch', patch)],
    pre: pre?.split('.').map(preIdentifier) ?? [],
    build: build?.split('.').map(buildIdentifier) ?? [],
  };
}

function numberOf(name: string, digits: string): bigint {
  if (/[^0-9]/.test(digits)) throw invalidIn(`${name} number`, digits);
  if (isPadded(digits)) {
    const start = `${capitalize(name)} number must not contain leading zeroes`;
    throw new CelError(`${start} ${goQuoted(digits)}`);
  }
  return parseUint(digits);
}

const isPadded = (digits: string) => digits.length > 1 && digits.startsWith('0');

const invalidIn = (place: string, text: string) =>
  new CelError(`Invalid character(s) found in ${place} ${goQuoted(text)}`);

const uint64Digits = 20;

function parseUint(digits: string): bigint {
  const fail = (problem: 'syntax' | 'range') =>
    new CelError(problemText({ code: 'number', parser: 'ParseUint', text: digits, problem }));
  if (digits === '') throw fail('syntax');
  const number = digits.length > uint64Digits ? undefined : BigInt(digits);
  if (number === undefined || BigInt.asUintN(64, number) !== number) {
    throw fail('range');
  }
  return number;
}

function preIdentifier(text: string): string {
  if (text === '') throw new CelError('Prerelease is empty');
  if (/[^0-9]/.test(text)) {
    if (/[^0-9A-Za-z-]/.test(text)) throw invalidIn('prerelease', text);
    return text;
  }
  if (isPadded(text)) {
    const start = 'Numeric PreRelease version must not contain leading zeroes';
    throw new CelError(`${start} ${goQuoted(text)}`);
  }
  parseUint(text);
  return text;
}

function buildIdentifier(text: string): string {
  if (text === '') throw new CelError('Build meta data is empty');
  if (/[^0-9A-Za-z-]/.test(text)) throw invalidIn('build meta data', text);
  return text;
}

class Semver extends Opaque<Version> {}

function versionIn([text, lenient]: readonly Value[]): Version {
  return parseSemver(lenient === true ? normalizedSemver(asText(text)) : asText(text));
}

function parsedSemver(args: readonly Value[]): Value {
  const value = versionIn(args);
  const numbers = value.numbers.join('.');
  const [pre, build] = [value.pre.join('.'), value.build.join('.')];
  const shown = `${numbers}${pre && `-${pre}`}${build && `+${build}`}`;
  const native = () => `(semver.Version)${shown}`;
  return new Semver({ type: semverType, value, key: `${numbers}-${pre}`, native });
}

const compareNumbers = (left: bigint, right: bigint) => (left < right ? -1 : left > right ? 1 : 0);

function comparePre(left: string, right: string): number {
  const [isNumber, isOther] = [/^\d+$/.test(left), /^\d+$/.test(right)];
  if (isNumber && isOther) return compareNumbers(BigInt(left), BigInt(right));
  if (isNumber !== isOther) return isNumber ? -1 : 1;
  return left < right ? -1 : left > right ? 1 : 0;
}

function compareSemvers(left: Version, right: Version): number {
  for (const index of [0, 1, 2] as const) {
    const result = compareNumbers(left.numbers[index], right.numbers[index]);
    if (result !== 0) return result;
  }
  if (left.pre.length === 0 || right.pre.length === 0) {
    return Math.sign(right.pre.length - left.pre.length);
  }
  for (const [index, item] of left.pre.entries()) {
    const against = right.pre[index];
    if (against === undefined) return 1;
    const result = comparePre(item, against);
    if (result !== 0) return result;
  }
  return left.pre.length < right.pre.length ? -1 : 0;
}

function versionOf(value: Value | undefined): Version {
  if (!(value instanceof Semver)) throw misfit(value, semverType);
  return value.value;
}

const comparedArguments = ([left, right]: readonly Value[]) =>
  compareSemvers(versionOf(left), versionOf(right));

function isSemver(args: readonly Value[]): boolean {
  try {
    versionIn(args);
    return true;
  } catch (error) {
    if (error instanceof CelError) return false;
    throw error;
  }
}

/** The Kubernetes library for semantic versions. */
export const semver: Library = [
  [`semver(string): ${semverType}`, parsedSemver],
  [`semver(string, bool): ${semverType}`, parsedSemver],
  ['isSemver(string): bool', isSemver],
  ['isSemver(string, bool): bool', isSemver],
  [`${semverType}.isGreaterThan(${semverType}): bool`, (args) => comparedArguments(args) > 0],
  [`${semverType}.isLessThan(${semverType}): bool`, (args) => comparedArguments(args) < 0],
  [`${semverType}.compareTo(${semverType}): int`, (args) => BigInt(comparedArguments(args))],
  ...(['major', 'minor', 'patch'] as const).map(
    (name, index) =>
      [
        `${semverType}.${name}(): int`,
        ([value]: readonly Value[]) => itemAt(versionOf(value).numbers, index),
      ] as const,
  ),
];
