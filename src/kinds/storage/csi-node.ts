import type { JsonObject } from '../../base/json.ts';
import type { ResourceDef } from '../../catalogue/resource-def.ts';
import type { Dialect } from '../../dialect.ts';
import { duplicate, type FieldError, required } from '../../meta/field-error.ts';
import { dnsSubdomain } from '../../meta/names.ts';
import { ageColumn, column, listAt, nameColumn, textAt } from '../cells.ts';
import { defineKind } from '../define.ts';
import { objectsAt } from '../fill.ts';

function validate(object: JsonObject): FieldError[] {
  const seen = new Set<string>();
  return objectsAt(object, 'spec', 'drivers').flatMap((driver, index) => {
    const path = `spec.drivers[${index}]`;
    const errors: FieldError[] = [];
    const name = textAt(driver, 'name');
    if (name === '') errors.push(required(`${path}.name`));
    else if (seen.has(name)) errors.push(duplicate(`${path}.name`, name));
    seen.add(name);
    if (textAt(driver, 'nodeID') === '') errors.push(required(`${path}.nodeID`));
    return errors;
  });
}

/** CSINode: the storage drivers on a node. */
export function csiNode(dialect: Dialect): ResourceDef {
  return defineKind({
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
          column('Drivers', (object) => listAt(object, 'spec', 'drivers').length, {
            type: 'integer',
            description: 'Number of drivers.',
          }),
          ageColumn,
        ],
      },
    ],
    strategy: {
      validateName: dnsSubdomain,
      validateCreate: (_, object) => validate(object),
      validateUpdate: (_, object) => validate(object),
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
