import type { JsonObject } from '../../base/json.ts';
import type { ResourceDef } from '../../catalogue/resource-def.ts';
import type { Dialect } from '../../dialect.ts';
import { type FieldError, required } from '../../meta/field-error.ts';
import { dnsSubdomain } from '../../meta/names.ts';
import { countColumn, exampleTemplate, replicaFields, wideColumns } from '../apps/workload.ts';
import { ageColumn, nameColumn } from '../cells.ts';
import { defineKind, scaleSubresource, statusSubresource } from '../define.ts';
import { ensure, fill, objectAt } from '../fill.ts';
import { fillPodSpec } from '../pod/defaults.ts';
import { notNegative, validatePodSpec } from '../pod/validate.ts';

/** Labels and selector are those of the template unless said otherwise. */
function fillDefaults(object: JsonObject): void {
  const spec = ensure(object, 'spec');
  fill(spec, { replicas: 1 });
  const labels = objectAt(spec, 'template', 'metadata', 'labels');
  if (labels !== undefined) {
    fill(spec, { selector: { ...labels } });
    fill(ensure(object, 'metadata'), { labels: { ...labels } });
  }
  fillPodSpec(objectAt(spec, 'template', 'spec'));
}

function validate(object: JsonObject): FieldError[] {
  const spec = ensure(object, 'spec');
  const errors = notNegative(spec, 'spec.replicas');
  if (objectAt(spec, 'selector') === undefined) errors.push(required('spec.selector'));
  const template = objectAt(spec, 'template');
  if (template === undefined) return [...errors, required('spec.template')];
  return [...errors, ...validatePodSpec(ensure(template, 'spec'), 'spec.template.spec')];
}

/** ReplicationController: the older ReplicaSet. */
export function replicationController(dialect: Dialect): ResourceDef {
  return defineKind({
    dialect,
    facts: 'core',
    kind: 'ReplicationController',
    resource: 'replicationcontrollers',
    scope: 'Namespaced',
    shortNames: ['rc'],
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
          ...wideColumns().slice(0, 2),
        ],
      },
    ],
    storage: { prefix: '/registry/controllers/', fieldsOf: replicaFields },
    generation: true,
    strategy: {
      validateName: dnsSubdomain,
      hasStatus: true,
      defaultPropagation: 'Orphan',
      validateCreate: (_, object) => validate(object),
      validateUpdate: (context, object) =>
        context.subresource === 'status' ? [] : validate(object),
    },
    subresources: [scaleSubresource, statusSubresource],
    example: () => ({
      apiVersion: 'v1',
      kind: 'ReplicationController',
      metadata: { name: 'example', namespace: 'default' },
      spec: { selector: { app: 'example' }, template: exampleTemplate() },
    }),
  });
}
