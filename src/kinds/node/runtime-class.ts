import type { JsonObject } from '../../base/json.ts';
import type { ResourceDef } from '../../catalogue/resource-def.ts';
import type { Dialect } from '../../dialect.ts';
import { breaks, dnsLabel, dnsSubdomain } from '../../meta/names.ts';
import { ageColumn, column, nameColumn, textAt } from '../cells.ts';
import { immutable } from '../checks.ts';
import { defineKind } from '../define.ts';

/** RuntimeClass: a way to run containers. */
export function runtimeClass(dialect: Dialect): ResourceDef {
  const validate = (object: JsonObject) => breaks('handler', textAt(object, 'handler'), dnsLabel);
  return defineKind({
    dialect,
    facts: 'node',
    kind: 'RuntimeClass',
    resource: 'runtimeclasses',
    scope: 'Cluster',
    versions: [
      {
        version: 'v1',
        columns: [
          nameColumn,
          column('Handler', (object) => textAt(object, 'handler'), {
            description: 'Configuration of the container runtime.',
          }),
          ageColumn,
        ],
      },
    ],
    strategy: {
      validateName: dnsSubdomain,
      validateCreate: (_, object) => validate(object),
      validateUpdate: (_, object, old) => immutable('handler', object['handler'], old['handler']),
      allowUnconditionalUpdate: false,
    },
    example: () => ({
      apiVersion: `${dialect.group('node')}/v1`,
      kind: 'RuntimeClass',
      metadata: { name: 'example' },
      handler: 'example',
    }),
  });
}
