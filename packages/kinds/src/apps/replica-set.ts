import type { Dialect, FieldError } from '@wheelhouse/machinery';
import { defineKind, scaleSubresourceOf, statusSubresource } from '../define.ts';
import { defaultFeatures, type Features } from '../features/features.ts';
import type { ReplicaSet } from '../gen/types/apps/v1.ts';
import { fillPodSpec, removingOldInitContainers } from '../pod/defaults.ts';
import { validateNonNegative } from '../pod/fields.ts';
import type { PodRules } from '../pod/rules.ts';
import { validateSelector, validateSelectorUnchanged, validateTemplate } from '../pod/template.ts';
import type { ResourceDef } from '../resource-def.ts';
import { ensure, fill } from '../rules/fill.ts';
import type { Stored } from '../stored.ts';
import { exampleTemplate, replicaColumns, replicaStrategy, wideColumns } from './workload.ts';

/** ReplicaSet: keeps replicas of one pod template running. */
export function replicaSet(dialect: Dialect, features: Features = defaultFeatures): ResourceDef {
  return defineKind<ReplicaSet>({
    dialect,
    features,
    facts: 'apps',
    kind: 'ReplicaSet',
    resource: 'replicasets',
    scope: 'Namespaced',
    shortNames: ['rs'],
    categories: ['all'],
    versions: [
      {
        version: 'v1',
        defaults: removingOldInitContainers(dialect, ['spec', 'template'], fillDefaults),
        columns: [...replicaColumns, ...wideColumns()],
      },
    ],
    generation: true,
    strategy: replicaStrategy(
      { dialect, features },
      { validate, changed: validateSelectorUnchanged },
    ),
    subresources: [
      scaleSubresourceOf({ group: 'apps', resource: 'replicasets/scale' }),
      statusSubresource,
    ],
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

function fillDefaults(object: Stored<ReplicaSet>): void {
  const spec = ensure(object, 'spec');
  fill(spec, { replicas: 1 });
  fillPodSpec(spec.template?.spec);
}

function* validate(object: Stored<ReplicaSet>, rules: PodRules): Generator<void, FieldError[]> {
  const spec = ensure(object, 'spec');
  return [
    ...validateNonNegative(spec, 'spec', 'replicas'),
    ...validateNonNegative(spec, 'spec', 'minReadySeconds'),
    // kube-apiserver uses the message of a Deployment.
    ...validateSelector(object, 'deployment'),
    ...(yield* validateTemplate(object, rules)),
  ];
}
