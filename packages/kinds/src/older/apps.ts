import { type ApiObject, type JsonObject, jsonObject, runInOnePiece } from '@wheelhouse/machinery';
import { fillDaemonSet, templateGenerationAnnotation } from '../apps/daemon-set.ts';
import { rollbackAnnotation } from '../apps/deployment.ts';
import { at, textAt } from '../cells.ts';
import type { Strategy } from '../resource-def.ts';
import { ensure, fill, objectAt } from '../rules/fill.ts';
import type { OlderKind, OlderVersion } from './contract.ts';

const rollback: Pick<OlderVersion, 'toStorage' | 'fromStorage' | 'operations'> = {
  operations: [{ name: 'rollback', kind: 'DeploymentRollback' }],
  toStorage(object) {
    const target = objectAt(object, 'spec', 'rollbackTo');
    const revision = target === undefined ? undefined : (target['revision'] ?? 0);
    setAnnotation(object, rollbackAnnotation, revision);
    return object;
  },
  fromStorage(object) {
    const revision = takeAnnotation(object, rollbackAnnotation);
    if (revision !== undefined) ensure(object, 'spec')['rollbackTo'] = { revision };
    return object;
  },
};

const templateGeneration: Pick<OlderVersion, 'toStorage' | 'fromStorage'> = {
  toStorage(object) {
    setAnnotation(
      object,
      templateGenerationAnnotation,
      at(object, 'spec', 'templateGeneration') ?? 0,
    );
    return object;
  },
  fromStorage(object) {
    const generation = takeAnnotation(object, templateGenerationAnnotation);
    if (generation !== undefined) ensure(object, 'spec')['templateGeneration'] = generation;
    return object;
  },
};

/**
 * Older versions of Deployment, DaemonSet, ReplicaSet, and StatefulSet. Their selector is mutable
 * and defaults to the template's labels, and other defaults differ.
 */
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
          defaults: fillAppsDeployment,
          rules: rollbackRules,
        }),
        version('extensions', 'v1beta1', {
          ...rollback,
          defaults: fillExtensionsDeployment,
          rules: rollbackRules,
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
            fillOnDeleteDefaults(object);
            runInOnePiece(fillDaemonSet(object));
          },
          defaulting: 'alone',
          rules: mutableSelectorRules,
        }),
      ],
    },
    {
      facts: 'apps',
      kind: 'ReplicaSet',
      older: [
        version('apps', 'v1beta2'),
        // The package of v1beta1 does not contain the type.
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
        version('extensions', 'v1beta1', { ...labeled, rules: mutableSelectorRules }),
      ],
    },
    {
      facts: 'apps',
      kind: 'StatefulSet',
      older: [
        version('apps', 'v1beta2'),
        version('apps', 'v1beta1', { defaults: fillOnDeleteDefaults }),
      ],
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

/** Sets an annotation; undefined removes it. */
function setAnnotation(object: ApiObject, name: string, value: unknown): void {
  const { annotations, ...metadata } = object.metadata;
  const { [name]: _, ...others } = annotations ?? {};
  const all = value === undefined ? others : { ...others, [name]: String(value) };
  object.metadata = metadata;
  if (Object.keys(all).length > 0) object.metadata.annotations = all;
}

/** Removes a number from an annotation and returns it; undefined if there is none. */
function takeAnnotation(object: ApiObject, name: string): number | undefined {
  const text = textAt(jsonObject(object), 'metadata', 'annotations', name);
  if (!/^-?\d{1,15}$/.test(text)) return undefined;
  setAnnotation(object, name, undefined);
  return Number(text);
}

function fillAppsDeployment(object: JsonObject): void {
  selectorFromTemplate(object);
  fill(ensure(object, 'spec'), { revisionHistoryLimit: 2 });
}

/** Rules of versions with the subresource `rollback`, whose requests are stored unvalidated. */
const rollbackRules = (strategy: Strategy): Partial<Strategy> => {
  const rules = { ...strategy, ...mutableSelectorRules(strategy) };
  return {
    ...rules,
    prepareForUpdate(context, object, old) {
      if (context.subresource === 'rollback') return;
      return rules.prepareForUpdate?.(context, object, old);
    },
    validateUpdate: (context, object, old) =>
      context.subresource === 'rollback'
        ? []
        : (rules.validateUpdate?.(context, object, old) ?? []),
  };
};

/** Rules of versions in which the selector is mutable. */
const mutableSelectorRules = (strategy: Strategy): Partial<Strategy> => ({
  validateUpdate(context, object, old) {
    const spec = { ...objectAt(old, 'spec') };
    const selector = at(object, 'spec', 'selector');
    if (selector === undefined) delete spec['selector'];
    else spec['selector'] = selector;
    return strategy.validateUpdate?.(context, object, { ...old, spec }) ?? [];
  },
});

/** The value that stands for no limit in the oldest Deployments. */
const unlimited = 2_147_483_647;

function fillExtensionsDeployment(object: JsonObject): void {
  selectorFromTemplate(object);
  const spec = ensure(object, 'spec');
  fill(spec, { progressDeadlineSeconds: unlimited, revisionHistoryLimit: unlimited });
  const strategy = ensure(spec, 'strategy');
  fill(strategy, { type: 'RollingUpdate' });
  const rolls = strategy['type'] === 'RollingUpdate' || strategy['rollingUpdate'] !== undefined;
  if (rolls) fill(ensure(strategy, 'rollingUpdate'), { maxUnavailable: 1, maxSurge: 1 });
}

function fillOnDeleteDefaults(object: JsonObject): void {
  selectorFromTemplate(object);
  fill(ensure(ensure(object, 'spec'), 'updateStrategy'), { type: 'OnDelete' });
}
