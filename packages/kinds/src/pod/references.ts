import { firstByName, type JsonObject, type JsonValue } from '@wheelhouse/machinery';
import { textAt } from '../cells.ts';
import type { PodSpec } from '../gen/types/core/v1.ts';
import { objectAt, objectsAt } from '../rules/fill.ts';
import type { Stored } from '../stored.ts';

/** Where volumes of a pod name a Secret of the pod's own namespace. */
const secretSources: readonly (readonly string[])[] = [
  ['azureFile', 'secretName'],
  ['cephfs', 'secretRef', 'name'],
  ['cinder', 'secretRef', 'name'],
  ['flexVolume', 'secretRef', 'name'],
  ['rbd', 'secretRef', 'name'],
  ['secret', 'secretName'],
  ['scaleIO', 'secretRef', 'name'],
  ['iscsi', 'secretRef', 'name'],
  ['storageos', 'secretRef', 'name'],
  ['csi', 'nodePublishSecretRef', 'name'],
];

/** The containers of a pod's spec: those that prepare, those that run, those added later. */
export function containersOf(spec: Stored<PodSpec> | undefined): readonly JsonObject[] {
  return (['initContainers', 'containers', 'ephemeralContainers'] as const).flatMap(
    (member) => spec?.[member] ?? [],
  );
}

/** Names of the Secrets that a pod's spec refers to, each once. */
export function secretNames(spec: JsonObject | undefined): readonly string[] {
  const names = [
    ...objectsAt(spec, 'imagePullSecrets').map((one) => textAt(one, 'name')),
    ...containersOf(spec).flatMap((container) => environmentNames(container, 'secret')),
    ...objectsAt(spec, 'volumes').flatMap((volume) => [
      ...secretSources.map((path) => textAt(volume, ...path)),
      ...projectedNames(volume, 'secret'),
    ]),
  ];
  return distinct(names);
}

/** Names of the ConfigMaps that a pod's spec refers to, each once. */
export function configMapNames(spec: JsonObject | undefined): readonly string[] {
  const names = [
    ...containersOf(spec).flatMap((container) => environmentNames(container, 'configMap')),
    ...objectsAt(spec, 'volumes').flatMap((volume) => [
      textAt(volume, 'configMap', 'name'),
      ...projectedNames(volume, 'configMap'),
    ]),
  ];
  return distinct(names);
}

/** Names of the claims on volumes, those made for the pod alone included, each once. */
export function claimNames(pod: JsonObject): readonly string[] {
  const podName = textAt(pod, 'metadata', 'name');
  const names = objectsAt(pod, 'spec', 'volumes').map((volume) => {
    const named = objectAt(volume, 'persistentVolumeClaim');
    if (named !== undefined) return textAt(named, 'claimName');
    return objectAt(volume, 'ephemeral') === undefined
      ? ''
      : `${podName}-${textAt(volume, 'name')}`;
  });
  return distinct(names);
}

/** Names of the claims on devices; one made from a template is known once the status names it. */
export function resourceClaimNames(pod: JsonObject): readonly string[] {
  const statuses = objectsAt(pod, 'status', 'resourceClaimStatuses');
  const made = firstByName(statuses, (one) => textAt(one, 'name'));
  const names = objectsAt(pod, 'spec', 'resourceClaims').map((claim) => {
    const own = textAt(claim, 'resourceClaimName');
    if (own !== '') return own;
    return textAt(made.get(textAt(claim, 'name')), 'resourceClaimName');
  });
  return distinct(names);
}

function environmentNames(container: JsonObject, kind: 'secret' | 'configMap'): string[] {
  return [
    ...objectsAt(container, 'envFrom').map((one) => textAt(one, `${kind}Ref`, 'name')),
    ...objectsAt(container, 'env').map((one) => textAt(one, 'valueFrom', `${kind}KeyRef`, 'name')),
  ];
}

function projectedNames(volume: JsonValue, kind: 'secret' | 'configMap'): string[] {
  return objectsAt(volume, 'projected', 'sources').map((one) => textAt(one, kind, 'name'));
}

function distinct(names: readonly string[]): readonly string[] {
  return [...new Set(names)].filter((name) => name !== '');
}
