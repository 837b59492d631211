import {
  configMapKey,
  type Dialect,
  type FieldError,
  invalid,
  required,
} from '@wheelhouse/machinery';
import { ageColumn, column, nameColumn, textAt } from '../cells.ts';
import { defineKind } from '../define.ts';
import type { LeaseCandidate } from '../gen/types/coordination/v1alpha2.ts';
import type { ResourceDef, Stored } from '../resource-def.ts';
import { immutable } from '../rules/checks.ts';
import { oldestEmulationVersion, validateLeaseStrategy } from './lease.ts';

/** LeaseCandidate: a program that competes for a Lease, and the release that it emulates. */
export function leaseCandidate(dialect: Dialect): ResourceDef {
  const text = (name: string, member: string, description: string) =>
    column(name, (object) => textAt(object, 'spec', member), { description });
  return defineKind<LeaseCandidate>({
    dialect,
    facts: 'coordination',
    kind: 'LeaseCandidate',
    scope: 'Namespaced',
    versions: [
      {
        version: 'v1alpha2',
        columns: [
          nameColumn,
          text('LeaseName', 'leaseName', 'Lease that the candidate competes for.'),
          text('BinaryVersion', 'binaryVersion', 'Release of the candidate.'),
          text('EmulationVersion', 'emulationVersion', 'Release that the candidate emulates.'),
          ageColumn,
        ],
      },
    ],
    strategy: {
      validateName: configMapKey,
      validateCreate: (_, object) => validate(object),
      validateUpdate: (_, object, old) => [
        ...validate(object),
        ...immutable('spec.leaseName', object.spec?.leaseName ?? '', old.spec?.leaseName ?? ''),
      ],
      allowCreateOnUpdate: true,
      allowUnconditionalUpdate: false,
    },
    example: () => ({
      spec: {
        leaseName: 'example',
        binaryVersion: '1.32.0',
        emulationVersion: '1.32.0',
        strategy: oldestEmulationVersion,
      },
    }),
  });
}

const notSemantic = 'must be a valid semantic version';

/** A version as semver.org defines it; build metadata after `+` does not affect the order. */
export interface SemanticVersion {
  readonly core: readonly [major: number, minor: number, patch: number];
  /** The identifiers after `-`; empty for a release. */
  readonly preRelease: readonly string[];
}

function validate(object: Stored<LeaseCandidate>): FieldError[] {
  const member = (name: string) => textAt(object, 'spec', name);
  const [binary, emulated] = [member('binaryVersion'), member('emulationVersion')];
  const binaryVersion = parseSemanticVersion(binary);
  const emulationVersion = parseSemanticVersion(emulated);
  const errors = member('leaseName') === '' ? [required('spec.leaseName')] : [];
  if (emulated !== '' && emulationVersion === undefined) {
    errors.push(invalid('spec.emulationVersion', emulated, notSemantic));
  }
  if (binary === '') errors.push(required('spec.binaryVersion'));
  else if (binaryVersion === undefined) {
    errors.push(invalid('spec.binaryVersion', binary, notSemantic));
  }
  const none: SemanticVersion = { core: [0, 0, 0], preRelease: [] };
  if (binary !== '' && emulated !== '') {
    if (compareSemanticVersions(binaryVersion ?? none, emulationVersion ?? none) < 0) {
      const detail = 'must be greater than or equal to `emulationVersion`';
      errors.push(invalid('spec.binaryVersion', binary, detail));
    }
  }
  return [...errors, ...validateStrategy(member('strategy'), emulationVersion)];
}

const number = '(0|[1-9]\\d{0,19})';
const identifier = '(?:0|[1-9]\\d{0,19}|\\d*[A-Za-z-][0-9A-Za-z-]*)';
const build = '[0-9A-Za-z-]+';
const pattern = new RegExp(
  `^${number}\\.${number}\\.${number}(?:-(${identifier}(?:\\.${identifier})*))?` +
    `(?:\\+${build}(?:\\.${build})*)?$`,
);

/** Parses `1.32.0` with an optional pre-release and build; undefined for other texts. */
export function parseSemanticVersion(text: string): SemanticVersion | undefined {
  const match = pattern.exec(text);
  if (match === null) return undefined;
  const [, major, minor, patch, preRelease] = match;
  return {
    core: [Number(major), Number(minor), Number(patch)],
    preRelease: preRelease?.split('.') ?? [],
  };
}

/**
 * Compares two versions by precedence.
 * @returns a negative number if `left` comes first, a positive one if `right` does, or 0
 */
export function compareSemanticVersions(left: SemanticVersion, right: SemanticVersion): number {
  for (const index of [0, 1, 2] as const) {
    const difference = left.core[index] - right.core[index];
    if (difference !== 0) return difference;
  }
  const [first, second] = [left.preRelease, right.preRelease];
  // A pre-release comes before its release.
  if (first.length === 0 || second.length === 0) return second.length - first.length;
  const shared = Math.min(first.length, second.length);
  for (let index = 0; index < shared; index++) {
    const difference = compareIdentifiers(first[index] ?? '', second[index] ?? '');
    if (difference !== 0) return difference;
  }
  return first.length - second.length;
}

/** Numeric identifiers precede others and compare by value; others compare by characters. */
function compareIdentifiers(left: string, right: string): number {
  const [isNumber, otherIsNumber] = [/^\d+$/.test(left), /^\d+$/.test(right)];
  if (isNumber !== otherIsNumber) return isNumber ? -1 : 1;
  if (isNumber && left.length !== right.length) return left.length - right.length;
  if (left === right) return 0;
  return left < right ? -1 : 1;
}

function validateStrategy(strategy: string, emulated: SemanticVersion | undefined): FieldError[] {
  if (strategy === '') return [required('spec.strategy')];
  const isNone =
    emulated === undefined ||
    (emulated.core.every((part) => part === 0) && emulated.preRelease.length === 0);
  const detail = `must be specified when \`strategy\` is '${oldestEmulationVersion}'`;
  return [
    ...(strategy === oldestEmulationVersion && isNone
      ? [required('spec.emulationVersion', detail)]
      : []),
    ...validateLeaseStrategy(strategy),
  ];
}
