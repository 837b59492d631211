import {
  compareSemanticVersions,
  itemAt,
  readSemanticVersion,
  type SemanticVersion,
  SemanticVersionError,
} from '@wheelhouse/machinery';
import type { Library } from '../types/functions.ts';
import { CelError, Opaque, type Value } from '../values.ts';
import { asText, misfit } from './arguments.ts';

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
function parseSemver(text: string): SemanticVersion {
  try {
    return readSemanticVersion(text);
  } catch (error) {
    throw error instanceof SemanticVersionError ? new CelError(error.message) : error;
  }
}

class Semver extends Opaque<SemanticVersion> {}

function versionIn([text, lenient]: readonly Value[]): SemanticVersion {
  return parseSemver(lenient === true ? normalizedSemver(asText(text)) : asText(text));
}

function parsedSemver(args: readonly Value[]): Value {
  const value = versionIn(args);
  const numbers = value.core.join('.');
  const [pre, build] = [value.preRelease.join('.'), value.build.join('.')];
  const shown = `${numbers}${pre && `-${pre}`}${build && `+${build}`}`;
  const native = () => `(semver.Version)${shown}`;
  return new Semver({ type: semverType, value, key: `${numbers}-${pre}`, native });
}

function versionOf(value: Value | undefined): SemanticVersion {
  if (!(value instanceof Semver)) throw misfit(value, semverType);
  return value.value;
}

const comparedArguments = ([left, right]: readonly Value[]) =>
  compareSemanticVersions(versionOf(left), versionOf(right));

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
        ([value]: readonly Value[]) => itemAt(versionOf(value).core, index),
      ] as const,
  ),
];
