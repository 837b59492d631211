import {
  compareSemanticVersions,
  configMapKey,
  type Dialect,
  type FieldError,
  invalid,
  parseSemanticVersion,
  required,
  type SemanticVersion,
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
  const none: SemanticVersion = { core: [0n, 0n, 0n], preRelease: [], build: [] };
  if (binary !== '' && emulated !== '') {
    if (compareSemanticVersions(binaryVersion ?? none, emulationVersion ?? none) < 0) {
      const detail = 'must be greater than or equal to `emulationVersion`';
      errors.push(invalid('spec.binaryVersion', binary, detail));
    }
  }
  return [...errors, ...validateStrategy(member('strategy'), emulationVersion)];
}

function validateStrategy(strategy: string, emulated: SemanticVersion | undefined): FieldError[] {
  if (strategy === '') return [required('spec.strategy')];
  const isNone =
    emulated === undefined ||
    (emulated.core.every((part) => part === 0n) && emulated.preRelease.length === 0);
  const detail = `must be specified when \`strategy\` is '${oldestEmulationVersion}'`;
  return [
    ...(strategy === oldestEmulationVersion && isNone
      ? [required('spec.emulationVersion', detail)]
      : []),
    ...validateLeaseStrategy(strategy),
  ];
}
