import { firstByName, type JsonObject } from '@wheelhouse/machinery';
import { textAt } from '../cells.ts';
import type { Container, Pod, PodSpec, Volume } from '../gen/types/core/v1.ts';
import { objectsAt } from '../rules/fill.ts';
import type { Stored } from '../stored.ts';

export interface PlacedContainer {
  readonly container: JsonObject;
  /** `spec.containers[0]` */
  readonly path: string;
}

/** The lists of containers in a spec, in the order in which kube-apiserver visits them. */
const members = ['initContainers', 'containers', 'ephemeralContainers'];

/** Every container of a spec with its path, init containers first. */
export function eachContainer(spec: Stored<PodSpec> | undefined, path: string): PlacedContainer[] {
  return members.flatMap((member) =>
    objectsAt(spec, member).map((container, index) => ({
      container,
      path: path === '' ? `${member}[${index}]` : `${path}.${member}[${index}]`,
    })),
  );
}

/** The containers of a spec: init containers, regular ones, ephemeral ones. */
export function containersOf(spec: Stored<PodSpec> | undefined): readonly JsonObject[] {
  return (['initContainers', 'containers', 'ephemeralContainers'] as const).flatMap(
    (member) => spec?.[member] ?? [],
  );
}

/** Where volumes of a pod name a Secret in the pod's namespace. */
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

/** Names of the Secrets that a pod's spec refers to, each once. */
export function secretNames(spec: Stored<PodSpec> | undefined): readonly string[] {
  const names = [
    ...(spec?.imagePullSecrets ?? []).map((one) => one.name ?? ''),
    ...containersOf(spec).flatMap((container) => environmentNames(container, 'secret')),
    ...(spec?.volumes ?? []).flatMap((volume) => [
      ...secretSources.map((path) => textAt(volume, ...path)),
      ...projectedNames(volume, 'secret'),
    ]),
  ];
  return distinct(names);
}

function environmentNames(container: Stored<Container>, kind: 'secret' | 'configMap'): string[] {
  return [
    ...(container.envFrom ?? []).map((one) => textAt(one, `${kind}Ref`, 'name')),
    ...(container.env ?? []).map((one) => textAt(one, 'valueFrom', `${kind}KeyRef`, 'name')),
  ];
}

function projectedNames(volume: Stored<Volume>, kind: 'secret' | 'configMap'): string[] {
  return (volume?.projected?.sources ?? []).map((one) => textAt(one, kind, 'name'));
}

function distinct(names: readonly string[]): readonly string[] {
  return [...new Set(names)].filter((name) => name !== '');
}

/** Names of the ConfigMaps that a pod's spec refers to, each once. */
export function configMapNames(spec: Stored<PodSpec> | undefined): readonly string[] {
  const names = [
    ...containersOf(spec).flatMap((container) => environmentNames(container, 'configMap')),
    ...(spec?.volumes ?? []).flatMap((volume) => [
      volume.configMap?.name ?? '',
      ...projectedNames(volume, 'configMap'),
    ]),
  ];
  return distinct(names);
}

/** Names of the volume claims, including those made for ephemeral volumes, each once. */
export function claimNames(pod: Stored<Pod>): readonly string[] {
  const podName = pod.metadata.name ?? '';
  const names = (pod.spec?.volumes ?? []).map((volume) => {
    const named = volume.persistentVolumeClaim;
    if (named !== undefined) return named.claimName ?? '';
    return volume.ephemeral === undefined ? '' : `${podName}-${volume.name ?? ''}`;
  });
  return distinct(names);
}

/** Names of the device claims, each once; the status names those that are made from a template. */
export function resourceClaimNames(pod: Stored<Pod>): readonly string[] {
  const statuses = pod.status?.resourceClaimStatuses ?? [];
  const made = firstByName(statuses, (one) => textAt(one, 'name'));
  const names = (pod.spec?.resourceClaims ?? []).map((claim) => {
    const own = claim.resourceClaimName ?? '';
    if (own !== '') return own;
    return textAt(made.get(claim.name ?? ''), 'resourceClaimName');
  });
  return distinct(names);
}
