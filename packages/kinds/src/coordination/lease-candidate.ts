import {
  configMapKey,
  type Dialect,
  type FieldError,
  invalid,
  type JsonObject,
  required,
} from '@wheelhouse/machinery';
import { ageColumn, column, nameColumn, textAt } from '../cells.ts';
import { defineKind } from '../define.ts';
import type { ResourceDef } from '../resource-def.ts';
import { immutable } from '../rules/checks.ts';
import { oldestEmulationVersion, validateLeaseStrategy } from './strategy.ts';

type Version = readonly [major: number, minor: number, patch: number, preRelease: string];

const number = '(0|[1-9]\\d{0,9})';
const words = '[0-9A-Za-z.-]{1,256}';
const semanticVersion = new RegExp(
  `^${number}\\.${number}\\.${number}(?:-(${words}))?(?:\\+${words})?$`,
);

/** Reads `1.32.0`, with a pre-release and build or without; undefined for what is no version. */
function parseVersion(text: string): Version | undefined {
  const match = semanticVersion.exec(text);
  if (match === null) return undefined;
  const [, major, minor, patch, preRelease = ''] = match;
  return [Number(major), Number(minor), Number(patch), preRelease];
}

/** Whether one version comes before another; a pre-release comes before its release. */
function isBefore(one: Version, other: Version): boolean {
  for (const index of [0, 1, 2] as const) {
    if (one[index] !== other[index]) return one[index] < other[index];
  }
  if (one[3] === other[3] || one[3] === '') return false;
  return other[3] === '' || one[3] < other[3];
}

const notSemantic = 'must be a valid semantic version';

function validate(object: JsonObject): FieldError[] {
  const member = (name: string) => textAt(object, 'spec', name);
  const [binary, emulated] = [member('binaryVersion'), member('emulationVersion')];
  const [binaryVersion, emulationVersion] = [parseVersion(binary), parseVersion(emulated)];
  const errors = member('leaseName') === '' ? [required('spec.leaseName')] : [];
  if (emulated !== '' && emulationVersion === undefined) {
    errors.push(invalid('spec.emulationVersion', emulated, notSemantic));
  }
  if (binary === '') errors.push(required('spec.binaryVersion'));
  else if (binaryVersion === undefined) {
    errors.push(invalid('spec.binaryVersion', binary, notSemantic));
  }
  const none: Version = [0, 0, 0, ''];
  if (binary !== '' && emulated !== '') {
    if (isBefore(binaryVersion ?? none, emulationVersion ?? none)) {
      const detail = 'must be greater than or equal to `emulationVersion`';
      errors.push(invalid('spec.binaryVersion', binary, detail));
    }
  }
  return [...errors, ...validateStrategy(member('strategy'), emulationVersion)];
}

function validateStrategy(strategy: string, emulated: Version | undefined): FieldError[] {
  if (strategy === '') return [required('spec.strategy')];
  const isNone = emulated === undefined || emulated.join('') === '000';
  const detail = `must be specified when \`strategy\` is '${oldestEmulationVersion}'`;
  return [
    ...(strategy === oldestEmulationVersion && isNone
      ? [required('spec.emulationVersion', detail)]
      : []),
    ...validateLeaseStrategy(strategy, 'spec.strategy'),
  ];
}

/** LeaseCandidate: a program that would hold a Lease, and the release that it acts as. */
export function leaseCandidate(dialect: Dialect): ResourceDef {
  const text = (name: string, member: string, description: string) =>
    column(name, (object) => textAt(object, 'spec', member), { description });
  return defineKind({
    dialect,
    facts: 'coordination',
    kind: 'LeaseCandidate',
    resource: 'leasecandidates',
    scope: 'Namespaced',
    versions: [
      {
        version: 'v1alpha2',
        columns: [
          nameColumn,
          text('LeaseName', 'leaseName', 'The Lease that it would hold.'),
          text('BinaryVersion', 'binaryVersion', 'The release that it is.'),
          text('EmulationVersion', 'emulationVersion', 'The release that it acts as.'),
          ageColumn,
        ],
      },
    ],
    strategy: {
      validateName: configMapKey,
      validateCreate: (_, object) => validate(object),
      validateUpdate: (_, object, old) => [
        ...validate(object),
        ...immutable(
          'spec.leaseName',
          textAt(object, 'spec', 'leaseName'),
          textAt(old, 'spec', 'leaseName'),
        ),
      ],
      allowCreateOnUpdate: true,
      allowUnconditionalUpdate: false,
    },
    example: () => ({
      apiVersion: `${dialect.group('coordination')}/v1alpha2`,
      kind: 'LeaseCandidate',
      metadata: { name: 'example', namespace: 'default' },
      spec: {
        leaseName: 'example',
        binaryVersion: '1.32.0',
        emulationVersion: '1.32.0',
        strategy: oldestEmulationVersion,
      },
    }),
  });
}
