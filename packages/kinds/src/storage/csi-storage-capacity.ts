import {
  type Dialect,
  dnsSubdomain,
  type FieldError,
  invalid,
  invalidGo,
  type JsonValue,
  parseQuantity,
  ruleErrors,
  validateLabelSelector,
} from '@wheelhouse/machinery';
import { textAt } from '../cells.ts';
import { defineKind } from '../define.ts';
import type { CSIStorageCapacity } from '../gen/types/storage/v1.ts';
import { negative } from '../pod/fields.ts';
import { goSelector } from '../pod/go-text.ts';
import { nodeLabelMessage, nodeTermWarnings } from '../pod/warnings.ts';
import type { ResourceDef } from '../resource-def.ts';
import { flatMapSteps, immutable, sameOrAbsent, sortedKeys } from '../rules/checks.ts';
import { objectAt } from '../rules/fill.ts';
import type { Stored } from '../stored.ts';

/**
 * CSIStorageCapacity: the storage of a class that a driver can still provide on the nodes of one
 * topology.
 */
export function csiStorageCapacity(dialect: Dialect): ResourceDef {
  return defineKind<CSIStorageCapacity>({
    dialect,
    facts: 'storage',
    kind: 'CSIStorageCapacity',
    resource: 'csistoragecapacities',
    scope: 'Namespaced',
    versions: [{ version: 'v1' }],
    strategy: {
      extraMetadataChecks: { '': ['whole', 'change'] },
      validateName: dnsSubdomain,
      validateCreate: (_, object) => validate(object),
      validateUpdate: (_, object, old) => [...validate(object), ...validateImmutable(object, old)],
      warnings: (object) => topologyWarnings(object, dialect),
      allowUnconditionalUpdate: false,
    },
    example: () => ({
      apiVersion: `${dialect.group('storage')}/v1`,
      kind: 'CSIStorageCapacity',
      metadata: { name: 'example', namespace: 'default' },
      storageClassName: 'example',
      capacity: '10Gi',
    }),
  });
}

function validate(object: Stored<CSIStorageCapacity>): FieldError[] {
  const className = object.storageClassName ?? '';
  const topology = object.nodeTopology;
  return [
    ...validateLabelSelector(topology, 'nodeTopology'),
    ...ruleErrors('storageClassName', className, dnsSubdomain),
    ...validateCapacity(object.capacity),
  ];
}

function validateCapacity(capacity: JsonValue | undefined): FieldError[] {
  const quantity = parseQuantity(String(capacity ?? '0'));
  if ('error' in quantity || quantity.nano >= 0n) return [];
  return [invalid('capacity', quantity.text, negative)];
}

function validateImmutable(
  object: Stored<CSIStorageCapacity>,
  old: Stored<CSIStorageCapacity>,
): FieldError[] {
  const topology = 'nodeTopology';
  const shown = goSelector(objectAt(object, topology));
  const className = 'storageClassName';
  return [
    ...(sameOrAbsent(object[topology], old[topology])
      ? []
      : [invalidGo(topology, () => shown, 'field is immutable')]),
    ...immutable(className, textAt(object, className), textAt(old, className)),
  ];
}

function* topologyWarnings(
  object: Stored<CSIStorageCapacity>,
  dialect: Dialect,
): Generator<void, string[]> {
  const path = 'nodeTopology';
  const labels = sortedKeys(objectAt(object, path, 'matchLabels'));
  return [
    ...(yield* nodeTermWarnings(objectAt(object, path), path, dialect)),
    ...(yield* flatMapSteps(labels, (label) => {
      const message = nodeLabelMessage(label, dialect);
      return message === undefined ? [] : [`${path}.matchLabels.${label}: ${message}`];
    })),
  ];
}
