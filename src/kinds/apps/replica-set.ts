import type { JsonObject } from '../../base/json.ts';
import type { ResourceDef } from '../../catalogue/resource-def.ts';
import type { Dialect } from '../../dialect.ts';
import type { FieldError } from '../../meta/field-error.ts';
import { dnsSubdomain } from '../../meta/names.ts';
import { ageColumn, nameColumn } from '../cells.ts';
import { defineKind, scaleSubresource, statusSubresource } from '../define.ts';
import { ensure, fill, objectAt } from '../fill.ts';
import { fillPodSpec } from '../pod/defaults.ts';
import { selectorKept, validateSelector, validateTemplate } from '../pod/template.ts';
import { notNegative } from '../pod/validate.ts';
import { countColumn, exampleTemplate, replicaFields, wideColumns } from './workload.ts';

function fillDefaults(object: JsonObject): void {
  const spec = ensure(object, 'spec');
  fill(spec, { replicas: 1 });
  fillPodSpec(objectAt(spec, 'template', 'spec'));
}

function validate(object: JsonObject): FieldError[] {
  const spec = ensure(object, 'spec');
  return [
    ...notNegative(spec, 'spec.replicas'),
    ...notNegative(spec, 'spec.minReadySeconds'),
    ...validateSelector(object, 'deployment'),
    ...validateTemplate(object, { restart: ['Always'], controller: 'ReplicaSet' }),
  ];
}

/** ReplicaSet: keeps replicas of one pod template running. */
export function replicaSet(dialect: Dialect): ResourceDef {
  return defineKind({
    dialect,
    facts: 'apps',
    kind: 'ReplicaSet',
    resource: 'replicasets',
    scope: 'Namespaced',
    shortNames: ['rs'],
    categories: ['all'],
    versions: [
      {
        version: 'v1',
        defaults: fillDefaults,
        columns: [
          nameColumn,
          countColumn('Desired', ['spec', 'replicas'], 'Replicas wanted.'),
          countColumn('Current', ['status', 'replicas'], 'Replicas there are.'),
          countColumn('Ready', ['status', 'readyReplicas'], 'Replicas that are ready.'),
          ageColumn,
          ...wideColumns(),
        ],
      },
    ],
    storage: { fieldsOf: replicaFields },
    generation: true,
    strategy: {
      validateName: dnsSubdomain,
      hasStatus: true,
      validateCreate: (_, object) => validate(object),
      validateUpdate: (context, object, old) =>
        context.subresource === 'status' ? [] : [...validate(object), ...selectorKept(object, old)],
    },
    subresources: [scaleSubresource, statusSubresource],
    example: () => ({
      apiVersion: 'apps/v1',
      kind: 'ReplicaSet',
      metadata: { name: 'example', namespace: 'default' },
      spec: {
        replicas: 2,
        selector: { matchLabels: { app: 'example' } },
        template: exampleTemplate(),
      },
    }),
  });
}
