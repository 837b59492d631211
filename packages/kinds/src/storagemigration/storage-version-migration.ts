import {
  type Dialect,
  dnsSubdomain,
  type FieldError,
  invalid,
  type JsonObject,
  parseInt64,
  problemText,
  required,
  showValue,
} from '@wheelhouse/machinery';
import { column, nameColumn, textAt } from '../cells.ts';
import { defineKind } from '../define.ts';
import type { StorageVersionMigration } from '../gen/types/storagemigration/v1alpha1.ts';
import { negative } from '../pod/fields.ts';
import type { ResourceDef, Stored } from '../resource-def.ts';
import { validateConditions } from '../rules/checks.ts';

/**
 * StorageVersionMigration: a request to rewrite all objects of a resource in the storage version.
 */
export function storageVersionMigration(dialect: Dialect): ResourceDef {
  const resource = (object: JsonObject) =>
    ['resource', 'version', 'group'].map((member) => memberOf(object, member)).join('.');
  const resourceColumn = column('Resource', resource, {
    description: 'Resource whose objects are rewritten.',
  });
  const def = defineKind<StorageVersionMigration>({
    dialect,
    facts: 'storagemigration',
    kind: 'StorageVersionMigration',
    scope: 'Cluster',
    versions: [{ version: 'v1alpha1', columns: [{ ...nameColumn, format: '' }, resourceColumn] }],
    strategy: {
      extraMetadataChecks: { '': ['whole', 'change'] },
      validateName: dnsSubdomain,
      hasStatus: true,
      resetFields: { '': ['status'], status: ['metadata', 'spec'] },
      validateCreate: (_, object) => validate(object),
      validateUpdate: (context, object, old) =>
        context.subresource === 'status'
          ? validateStatus(object, old)
          : [...validate(object), ...validateImmutable(object, old)],
      allowUnconditionalUpdate: false,
    },
    example: () => ({
      spec: { resource: { group: 'apps', version: 'v1', resource: 'deployments' } },
    }),
  });
  return { ...def, gate: 'StorageVersionMigrator' };
}

const memberOf = (object: JsonObject, member: string) => textAt(object, 'spec', 'resource', member);

function validate(object: Stored<StorageVersionMigration>): FieldError[] {
  return (['resource', 'version'] as const).flatMap((member) =>
    memberOf(object, member) === ''
      ? [required(`spec.resource.${member}`, `${member} is required`)]
      : [],
  );
}

function* validateStatus(
  object: Stored<StorageVersionMigration>,
  old: Stored<StorageVersionMigration>,
): Generator<void, FieldError[]> {
  const path = 'status.conditions';
  const [succeeded, failed, running] = ['Succeeded', 'Failed', 'Running'].map((type) =>
    isTrue(object, type),
  );
  const refuse = (detail: string) => [invalid(path, [...conditionsOf(object)], detail)];
  // These conditions have `lastUpdateTime` instead of `lastTransitionTime`.
  const conditions = conditionsOf(object).map((condition) => ({
    ...condition,
    lastTransitionTime: condition.lastUpdateTime ?? '',
  }));
  return [
    ...validateRevision(object),
    ...(yield* validateConditions(conditions, path)),
    ...(isRevisionChanged(object, old)
      ? [invalid(revisionPath, revisionOf(object), 'resourceVersion cannot be updated')]
      : []),
    ...(succeeded && failed
      ? refuse('Both success and failed conditions cannot be true at the same time')
      : []),
    ...(succeeded && running
      ? refuse('Running condition cannot be true when success condition is true')
      : []),
    ...(failed && running
      ? refuse('Running condition cannot be true when failed condition is true')
      : []),
    ...(isTrue(old, 'Succeeded') && !succeeded
      ? refuse('Success condition cannot be set to false once it is true')
      : []),
    ...(isTrue(old, 'Failed') && !failed
      ? refuse('Failed condition cannot be set to false once it is true')
      : []),
  ];
}

function isTrue(object: Stored<StorageVersionMigration>, type: string): boolean {
  const condition = conditionsOf(object).find((candidate) => (candidate.type ?? '') === type);
  return condition !== undefined && (condition.status ?? '') === 'True';
}

const conditionsOf = (object: Stored<StorageVersionMigration>) => object.status?.conditions ?? [];

const revisionPath = 'status.resourceVersion';
const revisionOf = (object: Stored<StorageVersionMigration>) =>
  object.status?.resourceVersion ?? '';

function validateRevision(object: Stored<StorageVersionMigration>): FieldError[] {
  const text = revisionOf(object);
  const revision = text === '' ? 0n : parseInt64(text);
  if (typeof revision === 'bigint') {
    return revision < 0n ? [invalid(revisionPath, revision, negative)] : [];
  }
  const why = problemText({ code: 'number', parser: 'ParseInt', text, problem: revision });
  const detail = `failed to parse resource version ${showValue(text)}: ${why}`;
  return [invalid(revisionPath, text, detail)];
}

function isRevisionChanged(
  object: Stored<StorageVersionMigration>,
  old: Stored<StorageVersionMigration>,
): boolean {
  return revisionOf(old) !== '' && revisionOf(old) !== revisionOf(object);
}

const members = ['group', 'version', 'resource'] as const;

/** Rejects changes of the resource; kube-apiserver reports the members without their path. */
function validateImmutable(
  object: Stored<StorageVersionMigration>,
  old: Stored<StorageVersionMigration>,
): FieldError[] {
  return members.flatMap((member) => {
    const value = memberOf(object, member);
    if (value === memberOf(old, member)) return [];
    return [invalid(member, value, 'field is immutable')];
  });
}
