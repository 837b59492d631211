import type { JsonObject } from '../../base/json.ts';
import type { ResourceDef } from '../../catalogue/resource-def.ts';
import type { Dialect } from '../../dialect.ts';
import { type FieldError, required } from '../../meta/field-error.ts';
import { replicaColumns, replicaStrategy } from '../apps/replicas.ts';
import { exampleTemplate, replicaFields, wideColumns } from '../apps/workload.ts';
import { invalidGo } from '../checks.ts';
import { defineKind, scaleSubresource, statusSubresource } from '../define.ts';
import { ensure, fill, objectAt } from '../fill.ts';
import { fillPodSpec } from '../pod/defaults.ts';
import { noneNegative } from '../pod/fields.ts';
import { goStringMap } from '../pod/go-text.ts';
import type { PodRules } from '../pod/rules.ts';
import { validateEndless, validatePodTemplate } from '../pod/template.ts';

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

function validate(object: JsonObject, rules: PodRules): FieldError[] {
  const spec = ensure(object, 'spec');
  const path = 'spec.template';
  const selector = objectAt(spec, 'selector') ?? {};
  const template = objectAt(spec, 'template');
  const isEmpty = Object.keys(selector).length === 0;
  const errors = [
    ...noneNegative(spec, 'spec', 'minReadySeconds'),
    ...(isEmpty ? [required('spec.selector')] : []),
    ...noneNegative(spec, 'spec', 'replicas'),
  ];
  if (template === undefined) return [...errors, required(path)];
  const labels = objectAt(template, 'metadata', 'labels');
  if (!Object.keys(selector).every((key) => labels?.[key] === selector[key])) {
    const detail = '`selector` does not match template `labels`';
    errors.push(invalidGo(`${path}.metadata.labels`, goStringMap(labels), detail));
  }
  return [
    ...errors,
    ...validatePodTemplate(template, path, rules),
    ...validateEndless(template, path, 'ReplicationController'),
  ];
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
        columns: [...replicaColumns, ...wideColumns().slice(0, 2)],
      },
    ],
    storage: { prefix: '/registry/controllers/', fieldsOf: replicaFields },
    generation: true,
    strategy: { ...replicaStrategy(dialect, { validate }), defaultPropagation: 'Orphan' },
    subresources: [scaleSubresource, statusSubresource],
    example: () => ({
      apiVersion: 'v1',
      kind: 'ReplicationController',
      metadata: { name: 'example', namespace: 'default' },
      spec: { selector: { app: 'example' }, template: exampleTemplate() },
    }),
  });
}
