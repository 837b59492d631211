import { uint64Max } from '../base/numbers.ts';
import { capitalize, cut } from '../base/texts.ts';
import { goQuoted } from './go-values.ts';
import { problemText } from './wording.ts';

/** A version as semver.org defines it. */
export interface SemanticVersion {
  readonly core: readonly [major: bigint, minor: bigint, patch: bigint];
  /** The identifiers after `-`; empty for a release. */
  readonly preRelease: readonly string[];
  /** The identifiers after `+`, which do not affect the order. */
  readonly build: readonly string[];
}

/** A text that is not a version; the message is Go's. */
export class SemanticVersionError extends Error {}

/** Parses `1.32.0` with an optional pre-release and build. Throws SemanticVersionError. */
export function readSemanticVersion(text: string): SemanticVersion {
  if (text === '') throw new SemanticVersionError('Version string empty');
  const [major, rest] = cut(text, '.');
  const [minor, tail] = cut(rest ?? '', '.');
  if (tail === undefined) throw new SemanticVersionError('No Major.Minor.Patch elements found');
  const [beforeBuild, build] = cut(tail, '+');
  const [patch, pre] = cut(beforeBuild, '-');
  return {
    core: [numberOf('major', major), numberOf('minor', minor), numberOf('patch', patch)],
    preRelease: pre?.split('.').map(preIdentifier) ?? [],
    build: build?.split('.').map(buildIdentifier) ?? [],
  };
}

/** Like `readSemanticVersion`; undefined for a text that is not a version. */
export function parseSemanticVersion(text: string): SemanticVersion | undefined {
  try {
    return readSemanticVersion(text);
  } catch (error) {
    if (error instanceof SemanticVersionError) return undefined;
    throw error;
  }
}

function numberOf(name: string, digits: string): bigint {
  if (/[^0-9]/.test(digits)) throw invalidIn(`${name} number`, digits);
  if (isPadded(digits)) {
    const start = `${capitalize(name)} number must not contain leading zeroes`;
    throw new SemanticVersionError(`${start} ${goQuoted(digits)}`);
  }
  return parseUint(digits);
}

const isPadded = (digits: string) => digits.length > 1 && digits.startsWith('0');

const invalidIn = (place: string, text: string) =>
  new SemanticVersionError(`Invalid character(s) found in ${place} ${goQuoted(text)}`);

const uint64Digits = 20;

function parseUint(digits: string): bigint {
  const failure = (problem: 'syntax' | 'range') =>
    new SemanticVersionError(
      problemText({ code: 'number', parser: 'ParseUint', text: digits, problem }),
    );
  if (digits === '') throw failure('syntax');
  const number = digits.length > uint64Digits ? undefined : BigInt(digits);
  if (number === undefined || number > uint64Max) throw failure('range');
  return number;
}

function preIdentifier(text: string): string {
  if (text === '') throw new SemanticVersionError('Prerelease is empty');
  if (/[^0-9]/.test(text)) {
    if (/[^0-9A-Za-z-]/.test(text)) throw invalidIn('prerelease', text);
    return text;
  }
  if (isPadded(text)) {
    const start = 'Numeric PreRelease version must not contain leading zeroes';
    throw new SemanticVersionError(`${start} ${goQuoted(text)}`);
  }
  parseUint(text);
  return text;
}

function buildIdentifier(text: string): string {
  if (text === '') throw new SemanticVersionError('Build meta data is empty');
  if (/[^0-9A-Za-z-]/.test(text)) throw invalidIn('build meta data', text);
  return text;
}

/**
 * Compares two versions by precedence.
 * @returns -1 if `left` comes first, 1 if `right` does, or 0
 */
export function compareSemanticVersions(left: SemanticVersion, right: SemanticVersion): number {
  for (const index of [0, 1, 2] as const) {
    const order = compare(left.core[index], right.core[index]);
    if (order !== 0) return order;
  }
  const [first, second] = [left.preRelease, right.preRelease];
  // A pre-release comes before its release.
  if (first.length === 0 || second.length === 0) return compare(second.length, first.length);
  for (const [index, item] of first.entries()) {
    const other = second[index];
    if (other === undefined) return 1;
    const order = compareIdentifiers(item, other);
    if (order !== 0) return order;
  }
  return compare(first.length, second.length);
}

/** Numeric identifiers precede others and compare by value; others compare by characters. */
function compareIdentifiers(left: string, right: string): number {
  const [isNumber, isOtherNumber] = [left, right].map((text) => /^\d+$/.test(text));
  if (isNumber !== isOtherNumber) return isNumber ? -1 : 1;
  return isNumber ? compare(BigInt(left), BigInt(right)) : compare(left, right);
}

const compare = <Value extends bigint | number | string>(left: Value, right: Value): number =>
  left < right ? -1 : Number(left > right);
