import {
  type Dialect,
  dnsSubdomain,
  duplicate,
  type FieldError,
  firstByName,
  invalid,
  type JsonObject,
  qualifiedName,
  required,
  ruleErrors,
} from '@wheelhouse/machinery';
import { ageColumn, column, nameColumn } from '../cells.ts';
import { defineKind } from '../define.ts';
import type { CSINode, CSINodeDriver } from '../gen/types/storage/v1.ts';
import { validateDriverName, validateNonNegative } from '../pod/fields.ts';
import type { ResourceDef } from '../resource-def.ts';
import { flatMapSteps, reportedTwice, sameOrEmpty } from '../rules/checks.ts';
import type { Stored } from '../stored.ts';

/** CSINode: the storage drivers on a node. */
export function csiNode(dialect: Dialect): ResourceDef {
  return defineKind<CSINode>({
    dialect,
    facts: 'storage',
    kind: 'CSINode',
    resource: 'csinodes',
    scope: 'Cluster',
    versions: [
      {
        version: 'v1',
        columns: [
          nameColumn,
          column('Drivers', (object) => (object.spec?.drivers ?? []).length, {
            type: 'integer',
            description: 'Number of drivers.',
          }),
          ageColumn,
        ],
      },
    ],
    strategy: {
      extraMetadataChecks: { '': ['whole', 'whole'] },
      validateName: dnsSubdomain,
      validateCreate: (_, object) => validate(object),
      *validateUpdate(_, object, old) {
        return [...reportedTwice(yield* validate(object)), ...validateImmutable(object, old)];
      },
      allowUnconditionalUpdate: false,
      deleteAnswers: 'object',
    },
    example: () => ({
      apiVersion: `${dialect.group('storage')}/v1`,
      kind: 'CSINode',
      metadata: { name: 'node-1' },
      spec: { drivers: [{ name: 'driver.example.com', nodeID: 'n1', topologyKeys: null }] },
    }),
  });
}

function validate(object: Stored<CSINode>): Generator<void, FieldError[]> {
  const seen = new Set<string>();
  return flatMapSteps(object.spec?.drivers ?? [], (driver, index) => {
    const path = `spec.drivers[${index}]`;
    const name = driver.name ?? '';
    const errors = [
      ...validateDriverName(name, `${path}.name`),
      ...validateNodeId(driver.nodeID ?? '', `${path}.nodeID`),
      ...validateNonNegative(driver.allocatable ?? {}, `${path}.allocatable`, 'count'),
    ];
    if (seen.has(name)) errors.push(duplicate(`${path}.name`, name));
    seen.add(name);
    return [...errors, ...validateTopologyKeys(driver, path)];
  });
}

const nodeIdBytesMax = 256;

function validateNodeId(id: string, field: string): FieldError[] {
  if (id === '') return [required(field)];
  if (Buffer.byteLength(id) <= nodeIdBytesMax) return [];
  return [invalid(field, id, `must be ${nodeIdBytesMax} characters or less`)];
}

function validateTopologyKeys(driver: Stored<CSINodeDriver>, path: string): FieldError[] {
  const keys = (driver.topologyKeys ?? []).map(String);
  const seen = new Set<string>();
  return keys.flatMap((key) => {
    const errors = key === '' ? [required(path)] : [];
    if (seen.has(key)) errors.push(duplicate(path, key));
    seen.add(key);
    return [...errors, ...ruleErrors(path, key, qualifiedName)];
  });
}

/** Rejects changes of a driver; drivers may be added and removed. */
function validateImmutable(object: Stored<CSINode>, old: Stored<CSINode>): FieldError[] {
  const driversByName = new Map<string, JsonObject[]>();
  for (const driver of object.spec?.drivers ?? []) {
    const name = driver.name ?? '';
    const equallyNamed = driversByName.get(name);
    if (equallyNamed === undefined) driversByName.set(name, [driver]);
    else equallyNamed.push(driver);
  }
  // Names of stored drivers are unique.
  const olds = firstByName(old.spec?.drivers ?? [], ({ name = '' }) => name);
  return [...olds].flatMap(([name, before]) =>
    (driversByName.get(name) ?? [])
      .filter((driver) => !sameOrEmpty(driver, before))
      .map((driver) => invalid('CSINodeDriver', driver, 'field is immutable')),
  );
}
