import {
  type Dialect,
  type JsonObject,
  type JsonValue,
  runInOnePiece,
} from '@wheelhouse/machinery';
import type {
  Container,
  DownwardAPIVolumeFile,
  EphemeralContainer,
  HTTPGetAction,
  PersistentVolumeSpec,
  PodSpec,
  PodStatus,
  Probe,
  ResourceRequirements,
  Volume,
  VolumeResourceRequirements,
} from '../gen/types/core/v1.ts';
import type { MaybeSteps, Stored } from '../resource-def.ts';
import {
  ensure,
  fill,
  fillAbsent,
  fillMapSteps,
  forEachSteps,
  objectAt,
  roundAmountsSteps,
} from '../rules/fill.ts';
import { containerAmountsSteps, podLevelResources } from './amounts.ts';

/** Containers, or volumes, that one step fills. */
const partsPerStep = 100;

/** Fills the defaults of the spec of a pod or template, in steps (TRUST-2). */
export function* fillPodSpecSteps(spec: Stored<PodSpec> | undefined): Generator<void, void> {
  if (spec === undefined) return;
  fill(spec, {
    restartPolicy: 'Always',
    dnsPolicy: 'ClusterFirst',
    schedulerName: 'default-scheduler',
    terminationGracePeriodSeconds: 30,
    securityContext: {},
  });
  fillServiceAccount(spec);
  if (spec.overhead !== undefined) yield* roundAmountsSteps(spec.overhead);
  if (spec.resources !== undefined) yield* resourceSteps(spec.resources);
  for (const member of ['initContainers', 'containers', 'ephemeralContainers'] as const) {
    yield* forEachSteps(
      spec[member] ?? [],
      (container) => {
        fillContainer(container);
        return container.resources && resourceSteps(container.resources);
      },
      partsPerStep,
    );
  }
  yield* forEachSteps(spec.volumes ?? [], fillVolume, partsPerStep);
}

/** Makes both members with the name of the service account equal; the newer one has precedence. */
function fillServiceAccount(spec: Stored<PodSpec>): void {
  const name = (spec.serviceAccountName ?? '') || (spec.serviceAccount ?? '');
  if (name === '') return;
  spec.serviceAccountName = name;
  spec.serviceAccount = name;
}

function fillContainer(container: Stored<Container | EphemeralContainer>): void {
  fill(container, {
    imagePullPolicy: pullPolicy(container.image ?? ''),
    terminationMessagePath: '/dev/termination-log',
    terminationMessagePolicy: 'File',
  });
  for (const port of container.ports ?? []) fill(port, { protocol: 'TCP' });
  for (const variable of container.env ?? []) {
    fill(variable.valueFrom?.fieldRef, { apiVersion: 'v1' });
  }
  for (const name of ['livenessProbe', 'readinessProbe', 'startupProbe'] as const) {
    fillProbe(container[name]);
  }
  for (const name of ['postStart', 'preStop'] as const) {
    fillHttpGet(container.lifecycle?.[name]?.httpGet);
  }
}

/** The default policy: `Always` for an image with the tag `latest` or without tag and digest. */
function pullPolicy(image: string): JsonValue {
  return imageTag(image) === 'latest' ? 'Always' : 'IfNotPresent';
}

const imageLengthMax = 4096;

const identifier = /^[a-f0-9]{64}$/;

const domainPart = '(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])';
const host = `(?:${domainPart}(?:\\.${domainPart})*|\\[[a-fA-F0-9:]+\\])(?::[0-9]+)?`;

const alphanumeric = '[a-z0-9]+';
const pathPart = `${alphanumeric}(?:(?:[._]|__|-+)${alphanumeric})*`;
const path = `${pathPart}(?:/${pathPart})*`;

const digest = '[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}';
const reference = new RegExp(
  `^(?:(${host})/)?(${path})(?::([A-Za-z0-9_][A-Za-z0-9_.-]{0,127}))?(?:@(${digest}))?$`,
);

const pathLengthMax = 255;

/**
 * Returns the tag of an image: `latest` for a name without tag and digest, and undefined for an
 * invalid name and for a name with only a digest.
 */
function imageTag(image: string): string | undefined {
  if (image.length > imageLengthMax || identifier.test(image)) return undefined;
  const [, , name = '', tag, digestText] = reference.exec(withRegistry(image)) ?? [];
  if (name === '' || name.length > pathLengthMax || !isDigest(digestText)) return undefined;
  return tag ?? (digestText === undefined ? 'latest' : undefined);
}

/** Adds a registry to a name that has none: whose first part is not a domain. */
function withRegistry(image: string): string {
  const slash = image.indexOf('/');
  const first = image.slice(0, Math.max(slash, 0));
  const isDomain = first === 'localhost' || /[.:]/.test(first) || first !== first.toLowerCase();
  if (slash < 0) return `registry/library/${image}`;
  return isDomain ? image : `registry/${image}`;
}

const digestLengths = new Map([
  ['sha256', 64],
  ['sha384', 96],
  ['sha512', 128],
]);

function isDigest(text: string | undefined): boolean {
  if (text === undefined) return true;
  const [algorithm = '', encoded = ''] = text.split(':');
  return digestLengths.get(algorithm) === encoded.length && encoded === encoded.toLowerCase();
}

/** Rounds the requests and limits of a container or claim, as kube-apiserver does. */
export function fillResources(
  resources: Stored<ResourceRequirements | VolumeResourceRequirements> | undefined,
): void {
  if (resources !== undefined) runInOnePiece(resourceSteps(resources));
}

/** Does the work of `fillResources` in steps (TRUST-2). */
export function* resourceSteps(
  resources: Stored<ResourceRequirements | VolumeResourceRequirements>,
): Generator<void, void> {
  if (resources.limits !== undefined) yield* roundAmountsSteps(resources.limits);
  if (resources.requests !== undefined) yield* roundAmountsSteps(resources.requests);
}

/** Rounds the resources that a status reports for containers, in steps. */
export function* roundReportedSteps(status: Stored<PodStatus> | undefined): Generator<void, void> {
  const { containerStatuses, initContainerStatuses, ephemeralContainerStatuses } = status ?? {};
  for (const list of [initContainerStatuses, containerStatuses, ephemeralContainerStatuses]) {
    yield* forEachSteps(
      list ?? [],
      function* ({ allocatedResources, resources }) {
        if (allocatedResources !== undefined) yield* roundAmountsSteps(allocatedResources);
        if (resources !== undefined) yield* resourceSteps(resources);
      },
      partsPerStep,
    );
  }
}

function fillProbe(probe: Stored<Probe> | undefined): void {
  if (probe === undefined) return;
  probe.timeoutSeconds ||= 1;
  probe.periodSeconds ||= 10;
  probe.successThreshold ||= 1;
  probe.failureThreshold ||= 3;
  fillHttpGet(probe.httpGet);
  fillAbsent(probe.grpc, { service: '' });
}

function fillHttpGet(action: Stored<HTTPGetAction> | undefined): void {
  fill(action, { path: '/', scheme: 'HTTP' });
}

const fileMode = 0o644;

/** @returns the rest of the work, which may take long */
function fillVolume(volume: Stored<Volume>): MaybeSteps<void> {
  const sources = Object.entries(volume).filter(
    ([name, source]) => name !== 'name' && source !== null,
  );
  if (sources.length === 0) volume.emptyDir = {};
  for (const name of ['secret', 'configMap', 'downwardAPI', 'projected'] as const) {
    fill(volume[name], { defaultMode: fileMode });
  }
  fillDownwardItems(volume.downwardAPI?.items ?? []);
  for (const source of volume.projected?.sources ?? []) {
    fillDownwardItems(source.downwardAPI?.items ?? []);
    fill(source.serviceAccountToken, { expirationSeconds: 3600 });
  }
  fillDrivers(volume);
  const { image } = volume;
  fill(image, { pullPolicy: pullPolicy(image?.reference ?? '') });
  const claim = volume.ephemeral?.volumeClaimTemplate?.spec ?? undefined;
  fillAbsent(claim, { volumeMode: 'Filesystem' });
  return claim?.resources && resourceSteps(claim.resources);
}

function fillDownwardItems(items: readonly Stored<DownwardAPIVolumeFile>[]): void {
  for (const item of items) fill(item.fieldRef, { apiVersion: 'v1' });
}

/** Fills the defaults of volume drivers, in volumes of pods and in PersistentVolumes. */
export function fillDrivers(source: Stored<Volume | PersistentVolumeSpec>): void {
  fillAbsent(source.hostPath, { type: '' });
  fill(source.iscsi, { iscsiInterface: 'default' });
  fill(source.rbd, { pool: 'rbd', user: 'admin', keyring: '/etc/ceph/keyring' });
  fill(source.scaleIO, { storageMode: 'ThinProvisioned', fsType: 'xfs' });
  fillAbsent(source.azureDisk, {
    cachingMode: 'ReadWrite',
    kind: 'Shared',
    fsType: 'ext4',
    readOnly: false,
  });
}

/** Sets the host ports of a pod that uses the host's network, in steps; not for templates. */
export function* fillHostPorts(spec: Stored<PodSpec>): Generator<void, void> {
  if (spec.hostNetwork !== true) return;
  for (const member of ['initContainers', 'containers'] as const) {
    yield* forEachSteps(spec[member] ?? [], ({ ports }) =>
      forEachSteps(ports ?? [], (port) => {
        if ((port.hostPort ?? 0) === 0) port.hostPort = port.containerPort ?? 0;
      }),
    );
  }
}

/** Makes `podIP` and the first address of `podIPs` equal; `podIP` has precedence. */
export function fillAddresses(status: Stored<PodStatus> | undefined): void {
  if (status === undefined) return;
  const [first] = status.podIPs ?? [];
  const single = status.podIP ?? '';
  if (single !== '' && (first?.ip ?? '') !== single) status.podIPs = [{ ip: single }];
  else if (first !== undefined) status.podIP = first.ip ?? '';
}

/** Sets absent requests of containers to their limits, in steps; not for templates. */
export function* requestsFromLimits(spec: Stored<PodSpec>): Generator<void, void> {
  for (const member of ['initContainers', 'containers'] as const) {
    yield* forEachSteps(spec[member] ?? [], (container) => {
      const limits = container.resources?.limits;
      if (limits === undefined) return;
      return fillMapSteps(ensure(ensure(container, 'resources'), 'requests'), limits);
    });
  }
}

/**
 * Sets absent requests of a pod as a whole to the sum over its containers, or to its limits where
 * there is no sum; in steps. Not for templates; the containers must have their defaults.
 */
export function* fillPodRequests(spec: Stored<PodSpec>): Generator<void, void> {
  const limits = spec.resources?.limits;
  if (limits === undefined || Object.keys(limits).length === 0) return;
  const requests: JsonObject = {};
  for (const [name, sum] of yield* containerAmountsSteps(spec, 'requests')) {
    if (podLevelResources.includes(name)) requests[name] = sum.text;
  }
  for (const name of podLevelResources) {
    const limit = limits[name];
    if (limit !== undefined && requests[name] === undefined) requests[name] = limit;
  }
  if (Object.keys(requests).length === 0) return;
  fill(ensure(ensure(spec, 'resources'), 'requests'), requests);
}

/** Adds the default resize policy in steps: a change of cpu or memory restarts no container. */
export function fillResizePolicies(spec: Stored<PodSpec>): Generator<void, void> {
  return forEachSteps(spec.containers ?? [], (container) => {
    const requests = container.resources?.requests ?? {};
    const policies = container.resizePolicy ?? [];
    const added = ['cpu', 'memory'].filter(
      (name) =>
        requests[name] !== undefined && !policies.some((policy) => policy.resourceName === name),
    );
    if (added.length === 0) return;
    const defaults = added.map((name) => ({ resourceName: name, restartPolicy: 'NotRequired' }));
    container.resizePolicy = [...policies, ...defaults];
  });
}

/** Returns the defaults of a kind in steps, preceded by the removal of old init containers. */
export function removingOldInitContainers<O extends JsonObject>(
  dialect: Dialect,
  path: readonly string[],
  defaults: (object: O) => Generator<void, void>,
): (object: O) => Generator<void, void> {
  const removeOld = oldInitContainersRemover(dialect, path);
  return function* (object) {
    removeOld(object);
    yield* defaults(object);
  };
}

/**
 * Returns a function that removes the annotations that init containers had before there was a field
 * for them; kube-apiserver removes them from all templates and pods.
 * @param path the path of the template, empty for a pod
 */
export function oldInitContainersRemover(
  dialect: Dialect,
  path: readonly string[],
): (object: JsonObject) => void {
  const keys = ['alpha', 'beta'].flatMap((stage) =>
    ['init-containers', 'init-container-statuses'].map((name) =>
      dialect.label(name, `pod.${stage}`),
    ),
  );
  return (object) => {
    const metadata = objectAt(object, ...path, 'metadata');
    const annotations = objectAt(metadata, 'annotations');
    if (metadata !== undefined && annotations !== undefined) {
      const presentKeys = keys.filter((key) => Object.hasOwn(annotations, key));
      for (const key of presentKeys) delete annotations[key];
      const isBare = presentKeys.length > 0 && Object.keys(annotations).length === 0;
      if (isBare) delete metadata['annotations'];
    }
  };
}
