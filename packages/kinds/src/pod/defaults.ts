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
import {
  ensure,
  fill,
  fillAbsent,
  fillMapSteps,
  objectAt,
  roundAmountsSteps,
} from '../rules/fill.ts';
import type { Stored } from '../stored.ts';
import { containerAmounts, podLevelResources } from './amounts.ts';

/** Fills the defaults of a pod's spec, in pods and templates. */
export function fillPodSpec(spec: Stored<PodSpec> | undefined): void {
  if (spec !== undefined) runInOnePiece(fillPodSpecSteps(spec));
}

/** Containers that one step fills. */
const containersPerStep = 100;

/** The same in steps (TRUST-2). */
export function* fillPodSpecSteps(spec: Stored<PodSpec>): Generator<void, void> {
  fill(spec, {
    restartPolicy: 'Always',
    dnsPolicy: 'ClusterFirst',
    schedulerName: 'default-scheduler',
    terminationGracePeriodSeconds: 30,
    securityContext: {},
  });
  fillAccount(spec);
  if (spec.overhead !== undefined) yield* roundAmountsSteps(spec.overhead);
  for (const member of ['initContainers', 'containers', 'ephemeralContainers'] as const) {
    for (const [index, container] of (spec[member] ?? []).entries()) {
      if (index % containersPerStep === containersPerStep - 1) yield;
      fillContainer(container);
      if (container.resources !== undefined) yield* resourceSteps(container.resources);
    }
  }
  yield;
  for (const volume of spec.volumes ?? []) fillVolume(volume);
}

/** Both members hold the account's name; the newer one takes precedence. */
function fillAccount(spec: Stored<PodSpec>): void {
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
  for (const port of container.ports ?? []) {
    fill(port, { protocol: 'TCP' });
  }
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

/** `latest` and an absent tag mean that the image may change under its name; a digest pins it. */
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
 * The tag of an image's name, `latest` if it has neither tag nor digest; undefined for invalid
 * names and for digests.
 */
function imageTag(image: string): string | undefined {
  if (image.length > imageLengthMax || identifier.test(image)) return undefined;
  const [, , name = '', tag, pin] = reference.exec(inFull(image)) ?? [];
  if (name === '' || name.length > pathLengthMax || !isDigest(pin)) return undefined;
  return tag ?? (pin === undefined ? 'latest' : undefined);
}

/** Adds the registry that a short name omits: the first part of the path, if it is a domain. */
function inFull(image: string): string {
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

function isDigest(pin: string | undefined): boolean {
  if (pin === undefined) return true;
  const [algorithm = '', encoded = ''] = pin.split(':');
  return digestLengths.get(algorithm) === encoded.length && encoded === encoded.toLowerCase();
}

/** Fills the requests and limits of a container or claim. */
export function fillResources(
  resources: Stored<ResourceRequirements | VolumeResourceRequirements> | undefined,
): void {
  if (resources !== undefined) runInOnePiece(resourceSteps(resources));
}

function* resourceSteps(
  resources: Stored<ResourceRequirements | VolumeResourceRequirements>,
): Generator<void, void> {
  if (resources.limits !== undefined) yield* roundAmountsSteps(resources.limits);
  if (resources.requests !== undefined) yield* roundAmountsSteps(resources.requests);
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

function fillVolume(volume: Stored<Volume>): void {
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
  fillResources(claim?.resources);
}

function fillDownwardItems(items: readonly Stored<DownwardAPIVolumeFile>[]): void {
  for (const item of items) fill(item.fieldRef, { apiVersion: 'v1' });
}

/** Fills the defaults of volume drivers, for pods' volumes and persistent volumes. */
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

/**
 * On the host's network, ports of containers are ports of the host. For pods only, not templates.
 */
export function fillHostPorts(spec: Stored<PodSpec>): void {
  if (spec.hostNetwork !== true) return;
  for (const member of ['initContainers', 'containers'] as const) {
    for (const port of (spec[member] ?? []).flatMap((one) => one.ports ?? [])) {
      if ((port['hostPort'] ?? 0) === 0) port['hostPort'] = port['containerPort'] ?? 0;
    }
  }
}

/** Keeps `podIP` consistent with `podIPs`, whose first address it is. */
export function fillAddresses(status: Stored<PodStatus> | undefined): void {
  if (status === undefined) return;
  const [first] = status.podIPs ?? [];
  const single = status.podIP ?? '';
  if (single !== '' && (first?.ip ?? '') !== single) status.podIPs = [{ ip: single }];
  else if (first !== undefined) status.podIP = first.ip ?? '';
}

/** Requests default to limits. For pods only, not templates. */
export function* requestsFromLimits(spec: Stored<PodSpec>): Generator<void, void> {
  for (const member of ['initContainers', 'containers'] as const) {
    for (const container of spec[member] ?? []) {
      const limits = container.resources?.limits;
      if (limits === undefined) continue;
      yield* fillMapSteps(ensure(ensure(container, 'resources'), 'requests'), limits);
    }
  }
}

/**
 * The requests of a pod as a whole default to the sum over its containers, or else to its limits.
 * For pods only, after their containers have been filled.
 */
export function fillPodRequests(spec: Stored<PodSpec>): void {
  const limits = spec.resources?.limits;
  if (limits === undefined || Object.keys(limits).length === 0) return;
  const requests: JsonObject = {};
  for (const [name, sum] of containerAmounts(spec, 'requests')) {
    if (podLevelResources.includes(name)) requests[name] = sum.text;
  }
  for (const name of podLevelResources) {
    const limit = limits[name];
    if (limit !== undefined && requests[name] === undefined) requests[name] = limit;
  }
  if (Object.keys(requests).length === 0) return;
  fill(ensure(ensure(spec, 'resources'), 'requests'), requests);
}

/** Resources of a container may change without a restart unless its policy says otherwise. */
export function fillResizePolicies(spec: Stored<PodSpec>): void {
  for (const container of spec.containers ?? []) {
    const requests = container.resources?.requests ?? {};
    const policies = container.resizePolicy ?? [];
    const added = ['cpu', 'memory'].filter(
      (name) => requests[name] !== undefined && !policies.some((one) => one.resourceName === name),
    );
    if (added.length === 0) continue;
    const usual = added.map((name) => ({ resourceName: name, restartPolicy: 'NotRequired' }));
    container.resizePolicy = [...policies, ...usual];
  }
}

/** Wraps the defaults of a template's kind so that they first remove old init containers. */
export function keepingOldInitContainers<O extends JsonObject>(
  dialect: Dialect,
  path: readonly string[],
  defaults: (object: O) => void,
): (object: O) => void {
  const removeOld = oldInitContainersRemover(dialect, path);
  return (object) => {
    removeOld(object);
    defaults(object);
  };
}

/**
 * A function that removes the annotations that held init containers before they had a field;
 * kube-apiserver drops those everywhere. `path` leads to the template, and is empty for a pod.
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
      const found = keys.filter((key) => Object.hasOwn(annotations, key));
      for (const key of found) delete annotations[key];
      const isBare = found.length > 0 && Object.keys(annotations).length === 0;
      if (isBare) delete metadata['annotations'];
    }
  };
}
