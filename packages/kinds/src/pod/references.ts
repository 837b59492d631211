import { firstByName, type JsonObject } from '@wheelhouse/machinery';
import { textAt } from '../cells.ts';
import type { Container, Pod, PodSpec, Volume } from '../gen/types/core/v1.ts';
import type { Stored } from '../resource-def.ts';
import { objectsAt } from '../rules/fill.ts';

/** A container of a spec, and its path, such as `spec.containers[0]`. */
export interface PlacedContainer {
  readonly container: JsonObject;
  readonly path: string;
}

/** The lists of containers in a spec, in the order in which kube-apiserver visits them. */
const members = ['initContainers', 'containers', 'ephemeralContainers'] as const;

/** Returns all containers of the spec at `path`, with their paths; init containers are first. */
export function eachContainer(spec: Stored<PodSpec> | undefined, path: string): PlacedContainer[] {
  return members.flatMap((member) =>
    objectsAt(spec, member).map((container, index) => ({
      container,
      path: path === '' ? `${member}[${index}]` : `${path}.${member}[${index}]`,
    })),
  );
}

/** Returns the init, regular, and ephemeral containers of a spec, in this order. */
export function containersOf(spec: Stored<PodSpec> | undefined): readonly JsonObject[] {
  return members.flatMap((member) => spec?.[member] ?? []);
}

/** Members of a volume that name a Secret in the namespace of the pod. */
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

/** Returns the names of the Secrets that the spec of a pod refers to, each once. */
export function secretNames(spec: Stored<PodSpec> | undefined): readonly string[] {
  const names = [
    ...(spec?.imagePullSecrets ?? []).map((imagePullSecret) => imagePullSecret.name ?? ''),
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
    ...(container.envFrom ?? []).map((source) => textAt(source, `${kind}Ref`, 'name')),
    ...(container.env ?? []).map((variable) =>
      textAt(variable, 'valueFrom', `${kind}KeyRef`, 'name'),
    ),
  ];
}

function projectedNames(volume: Stored<Volume>, kind: 'secret' | 'configMap'): string[] {
  return (volume?.projected?.sources ?? []).map((source) => textAt(source, kind, 'name'));
}

function distinct(names: readonly string[]): readonly string[] {
  return [...new Set(names)].filter((name) => name !== '');
}

/** Returns the names of the ConfigMaps that the spec of a pod refers to, each once. */
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

/** Returns the names of the volume claims of a pod and of its ephemeral volumes, each once. */
export function claimNames(pod: Stored<Pod>): readonly string[] {
  const podName = pod.metadata.name ?? '';
  const names = (pod.spec?.volumes ?? []).map((volume) => {
    const claim = volume.persistentVolumeClaim;
    if (claim !== undefined) return claim.claimName ?? '';
    return volume.ephemeral === undefined ? '' : `${podName}-${volume.name ?? ''}`;
  });
  return distinct(names);
}

/**
 * Returns the names of the device claims of a pod, each once. The names of claims that were created
 * from a template are in the status.
 */
export function resourceClaimNames(pod: Stored<Pod>): readonly string[] {
  const statuses = pod.status?.resourceClaimStatuses ?? [];
  const statusByName = firstByName(statuses, (status) => textAt(status, 'name'));
  const names = (pod.spec?.resourceClaims ?? []).map((claim) => {
    const own = claim.resourceClaimName ?? '';
    if (own !== '') return own;
    return textAt(statusByName.get(claim.name ?? ''), 'resourceClaimName');
  });
  return distinct(names);
}
