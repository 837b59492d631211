import { firstByName, type JsonObject, runInOnePiece } from '@wheelhouse/machinery';
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

/** The members of a volume that name a Secret in the namespace of the pod, and where they do. */
const secretSources: ReadonlyMap<string, readonly string[]> = new Map([
  ['azureFile', ['secretName']],
  ['cephfs', ['secretRef', 'name']],
  ['cinder', ['secretRef', 'name']],
  ['flexVolume', ['secretRef', 'name']],
  ['rbd', ['secretRef', 'name']],
  ['secret', ['secretName']],
  ['scaleIO', ['secretRef', 'name']],
  ['iscsi', ['secretRef', 'name']],
  ['storageos', ['secretRef', 'name']],
  ['csi', ['nodePublishSecretRef', 'name']],
]);

/** The names of the Secrets that the spec of a pod refers to; empty for what refers to none. */
function* secretNamesIn(spec: Stored<PodSpec> | undefined): Generator<string> {
  for (const secret of spec?.imagePullSecrets ?? []) yield secret.name ?? '';
  for (const container of containersOf(spec)) yield* environmentNames(container, 'secret');
  for (const volume of spec?.volumes ?? []) {
    for (const member of Object.keys(volume)) {
      const path = secretSources.get(member);
      yield path === undefined ? '' : textAt(volume, member, ...path);
    }
    yield* projectedNames(volume, 'secret');
  }
}

/** The names of the ConfigMaps that the spec of a pod refers to, like `secretNamesIn`. */
function* configMapNamesIn(spec: Stored<PodSpec> | undefined): Generator<string> {
  for (const container of containersOf(spec)) yield* environmentNames(container, 'configMap');
  for (const volume of spec?.volumes ?? []) {
    yield volume.configMap?.name ?? '';
    yield* projectedNames(volume, 'configMap');
  }
}

/** The names of the volume claims of a pod and of its ephemeral volumes, like `secretNamesIn`. */
function* claimNamesIn(pod: Stored<Pod>): Generator<string> {
  const podName = pod.metadata.name ?? '';
  for (const volume of pod.spec?.volumes ?? []) {
    const claim = volume.persistentVolumeClaim;
    if (claim !== undefined) yield claim.claimName ?? '';
    else yield volume.ephemeral === undefined ? '' : `${podName}-${volume.name ?? ''}`;
  }
}

/**
 * The names of the device claims of a pod, like `secretNamesIn`. The names of claims that were
 * created from a template are in the status.
 */
function* resourceClaimNamesIn(pod: Stored<Pod>): Generator<string> {
  const statuses = pod.status?.resourceClaimStatuses ?? [];
  const statusByName = firstByName(statuses, (status) => textAt(status, 'name'));
  for (const claim of pod.spec?.resourceClaims ?? []) {
    const own = claim.resourceClaimName ?? '';
    yield own === '' ? textAt(statusByName.get(claim.name ?? ''), 'resourceClaimName') : own;
  }
}

function* environmentNames(
  container: Stored<Container>,
  kind: 'secret' | 'configMap',
): Generator<string> {
  for (const source of container.envFrom ?? []) yield textAt(source, `${kind}Ref`, 'name');
  for (const variable of container.env ?? []) {
    yield textAt(variable, 'valueFrom', `${kind}KeyRef`, 'name');
  }
}

function* projectedNames(volume: Stored<Volume>, kind: 'secret' | 'configMap'): Generator<string> {
  for (const source of volume.projected?.sources ?? []) yield textAt(source, kind, 'name');
}

/** Whether the spec of a pod refers to Secrets. */
export function namesSecrets(spec: Stored<PodSpec> | undefined): boolean {
  return someName(secretNamesIn(spec));
}

/** Whether the spec of a pod refers to ConfigMaps. */
export function namesConfigMaps(spec: Stored<PodSpec> | undefined): boolean {
  return someName(configMapNamesIn(spec));
}

function someName(names: Iterable<string>): boolean {
  for (const name of names) if (name !== '') return true;
  return false;
}

/** Returns the names of the volume claims of a pod and of its ephemeral volumes, each once. */
export function claimNames(pod: Stored<Pod>): readonly string[] {
  return runInOnePiece(distinctSteps(claimNamesIn(pod)));
}

/** The names of the objects in its namespace that a pod refers to, each once. */
interface PodReferences {
  readonly secrets: readonly string[];
  readonly configMaps: readonly string[];
  /** Volume claims, also those of ephemeral volumes. */
  readonly claims: readonly string[];
  /** Device claims. */
  readonly resourceClaims: readonly string[];
}

/** Returns the references of a pod, in steps (TRUST-2). */
export function* podReferencesSteps(pod: Stored<Pod>): Generator<void, PodReferences> {
  return {
    secrets: yield* distinctSteps(secretNamesIn(pod.spec)),
    configMaps: yield* distinctSteps(configMapNamesIn(pod.spec)),
    claims: yield* distinctSteps(claimNamesIn(pod)),
    resourceClaims: yield* distinctSteps(resourceClaimNamesIn(pod)),
  };
}

/** Names that one step reads, in less than a millisecond. */
const namesPerStep = 1_000;

/** The names that are not empty, each once, in steps. */
function* distinctSteps(names: Iterable<string>): Generator<void, readonly string[]> {
  const found = new Set<string>();
  let count = 0;
  for (const name of names) {
    if (name !== '') found.add(name);
    count += 1;
    if (count % namesPerStep === 0) yield;
  }
  return [...found];
}
