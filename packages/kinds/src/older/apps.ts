import { type ApiObject, type JsonObject, jsonObject } from '@wheelhouse/machinery';
import { fillDaemonSet, templateGenerationAnnotation } from '../apps/daemon-set.ts';
import { at, textAt } from '../cells.ts';
import type { Strategy } from '../resource-def.ts';
import { ensure, fill, objectAt } from '../rules/fill.ts';
import type { OlderKind, OlderVersion } from './contract.ts';

/**
 * The workloads before `apps/v1`: their selector defaulted to the template's labels and could
 * change, and they had other defaults.
 */

/** The annotation that carries a member which `apps/v1` no longer has. */
const rollbackAnnotation = 'deprecated.deployment.rollback.to';

const rollback: Pick<OlderVersion, 'toStorage' | 'fromStorage' | 'operations'> = {
  operations: [{ name: 'rollback', kind: 'DeploymentRollback' }],
  toStorage(object) {
    const wanted = objectAt(object, 'spec', 'rollbackTo');
    if (wanted !== undefined) toAnnotation(object, rollbackAnnotation, wanted['revision'] ?? 0);
    else toAnnotation(object, rollbackAnnotation, undefined);
    return object;
  },
  fromStorage(object) {
    const revision = fromAnnotation(object, rollbackAnnotation);
    if (revision !== undefined) ensure(object, 'spec')['rollbackTo'] = { revision };
    return object;
  },
};

const templateGeneration: Pick<OlderVersion, 'toStorage' | 'fromStorage'> = {
  toStorage(object) {
    toAnnotation(
      object,
      templateGenerationAnnotation,
      at(object, 'spec', 'templateGeneration') ?? 0,
    );
    return object;
  },
  fromStorage(object) {
    const generation = fromAnnotation(object, templateGenerationAnnotation);
    if (generation !== undefined) ensure(object, 'spec')['templateGeneration'] = generation;
    return object;
  },
};

/** Older versions of Deployment, DaemonSet, ReplicaSet, and StatefulSet. */
export function olderApps(): readonly OlderKind[] {
  const labeled = { defaults: selectorFromTemplate };
  return [
    {
      facts: 'apps',
      kind: 'Deployment',
      older: [
        version('apps', 'v1beta2'),
        version('apps', 'v1beta1', {
          ...rollback,
          defaults: firstDeployment,
          rules: rollsBack,
        }),
        version('extensions', 'v1beta1', {
          ...rollback,
          defaults: extensionsDeployment,
          rules: rollsBack,
        }),
      ],
    },
    {
      facts: 'apps',
      kind: 'DaemonSet',
      older: [
        version('apps', 'v1beta2'),
        version('extensions', 'v1beta1', {
          ...templateGeneration,
          defaults: (object) => {
            replacedByHand(object);
            fillDaemonSet(object);
          },
          defaulting: 'alone',
          rules: freeSelector,
        }),
      ],
    },
    {
      facts: 'apps',
      kind: 'ReplicaSet',
      older: [
        version('apps', 'v1beta2'),
        // The type came with the next version; this version's package has none.
        version('apps', 'v1beta1', {
          ...labeled,
          type: 'apps.v1beta2.ReplicaSet',
          life: {
            introduced: 6,
            deprecated: 8,
            removed: 16,
            replacement: { group: 'apps', version: 'v1', kind: 'ReplicaSet' },
          },
        }),
        version('extensions', 'v1beta1', { ...labeled, rules: freeSelector }),
      ],
    },
    {
      facts: 'apps',
      kind: 'StatefulSet',
      older: [version('apps', 'v1beta2'), version('apps', 'v1beta1', { defaults: replacedByHand })],
    },
  ];
}

function selectorFromTemplate(object: JsonObject): void {
  const spec = ensure(object, 'spec');
  const labels = objectAt(spec, 'template', 'metadata', 'labels');
  if (labels === undefined) return;
  spec['selector'] ??= { matchLabels: { ...labels } };
  const metadata = ensure(object, 'metadata');
  if (Object.keys(objectAt(metadata, 'labels') ?? {}).length > 0) return;
  metadata['labels'] = { ...labels };
}

const version = (facts: string, name: string, more: Partial<OlderVersion> = {}): OlderVersion => ({
  facts,
  version: name,
  defaultPropagation: 'Orphan',
  ...more,
});

/** Stores a member in an annotation that the stored form does not have. */
function toAnnotation(object: ApiObject, name: string, value: unknown): void {
  const { annotations, ...metadata } = object.metadata;
  const { [name]: _, ...others } = annotations ?? {};
  const kept = value === undefined ? others : { ...others, [name]: String(value) };
  object.metadata = metadata;
  if (Object.keys(kept).length > 0) object.metadata.annotations = kept;
}

/** Removes a number from an annotation and returns it; undefined if there is none. */
function fromAnnotation(object: ApiObject, name: string): number | undefined {
  const text = textAt(jsonObject(object), 'metadata', 'annotations', name);
  if (!/^-?\d{1,15}$/.test(text)) return undefined;
  toAnnotation(object, name, undefined);
  return Number(text);
}

function firstDeployment(object: JsonObject): void {
  selectorFromTemplate(object);
  fill(ensure(object, 'spec'), { revisionHistoryLimit: 2 });
}

/** A rollback stores its request unchanged: the object's own rules do not apply. */
const rollsBack = (strategy: Strategy): Partial<Strategy> => {
  const rules = { ...strategy, ...freeSelector(strategy) };
  return {
    ...rules,
    prepareForUpdate(context, object, old) {
      if (context.subresource !== 'rollback') rules.prepareForUpdate?.(context, object, old);
    },
    validateUpdate: (context, object, old) =>
      context.subresource === 'rollback'
        ? []
        : (rules.validateUpdate?.(context, object, old) ?? []),
  };
};

/** Rules that let the selector change, for the endpoints of old clients. */
const freeSelector = (strategy: Strategy): Partial<Strategy> => ({
  validateUpdate(context, object, old) {
    const spec = { ...objectAt(old, 'spec') };
    const selector = at(object, 'spec', 'selector');
    if (selector === undefined) delete spec['selector'];
    else spec['selector'] = selector;
    return strategy.validateUpdate?.(context, object, { ...old, spec }) ?? [];
  },
});

/** The value that kube-apiserver writes where the oldest Deployments had no limit. */
const unlimited = 2_147_483_647;

function extensionsDeployment(object: JsonObject): void {
  selectorFromTemplate(object);
  const spec = ensure(object, 'spec');
  fill(spec, { progressDeadlineSeconds: unlimited, revisionHistoryLimit: unlimited });
  const strategy = ensure(spec, 'strategy');
  fill(strategy, { type: 'RollingUpdate' });
  const rolls = strategy['type'] === 'RollingUpdate' || strategy['rollingUpdate'] !== undefined;
  if (rolls) fill(ensure(strategy, 'rollingUpdate'), { maxUnavailable: 1, maxSurge: 1 });
}

function replacedByHand(object: JsonObject): void {
  selectorFromTemplate(object);
  fill(ensure(ensure(object, 'spec'), 'updateStrategy'), { type: 'OnDelete' });
}
