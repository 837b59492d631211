import type { JsonObject } from '../../base/json.ts';
import type { ResourceDef } from '../../catalogue/resource-def.ts';
import type { Dialect } from '../../dialect.ts';
import type { FieldError } from '../../meta/field-error.ts';
import { dnsSubdomain } from '../../meta/names.ts';
import { ageColumn, nameColumn } from '../cells.ts';
import { defineKind, scaleSubresource, statusSubresource } from '../define.ts';
import { ensure, fill, objectAt } from '../fill.ts';
import { fillPodSpec } from '../pod/defaults.ts';
import { dropDisabledOfTemplate, templateOf } from '../pod/disabled.ts';
import { noneNegative } from '../pod/fields.ts';
import type { PodRules } from '../pod/rules.ts';
import {
  selectorKept,
  templateRules,
  validateSelector,
  validateTemplate,
} from '../pod/template.ts';
import { templateWarnings } from '../pod/warnings.ts';
import {
  countColumn,
  exampleTemplate,
  replicaFields,
  validateCounts,
  wideColumns,
} from './workload.ts';

function fillDefaults(object: JsonObject): void {
  const spec = ensure(object, 'spec');
  fill(spec, { replicas: 1 });
  fillPodSpec(objectAt(spec, 'template', 'spec'));
}

function validate(object: JsonObject, rules: PodRules): FieldError[] {
  const spec = ensure(object, 'spec');
  return [
    ...noneNegative(spec, 'spec', 'replicas'),
    ...noneNegative(spec, 'spec', 'minReadySeconds'),
    // Upstream's words, as a Deployment's.
    ...validateSelector(object, 'deployment'),
    ...validateTemplate(object, 'ReplicaSet', rules),
  ];
}

const parts = ['fullyLabeledReplicas', 'readyReplicas', 'availableReplicas'];
const counts = ['replicas', ...parts, 'observedGeneration'];

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
      prepareForCreate: (_, object) => dropDisabledOfTemplate(object),
      prepareForUpdate: (context, object, old) => {
        if (context.subresource !== 'status') dropDisabledOfTemplate(object, old);
      },
      validateCreate: (_, object) => validate(object, templateRules(dialect, undefined)),
      validateUpdate: (context, object, old) => {
        if (context.subresource === 'status') return validateCounts(object, counts, parts);
        const errors = validate(object, templateRules(dialect, templateOf(old)));
        // As upstream: what is wrong with the whole is told once as such, once as a change.
        return [...errors, ...errors, ...selectorKept(object, old)];
      },
      warnings: (object, old) =>
        templateWarnings(object, old, { path: ['spec', 'template'], dialect }),
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
