import type { JsonObject, JsonValue } from '@wheelhouse/machinery';
import { textAt } from '../cells.ts';
import { ensure, fill, fillAbsent, fillAmounts, objectAt, objectsAt } from '../rules/fill.ts';
import { containerAmounts, podLevelResources } from './amounts.ts';
import { imageTag } from './validation/image-name.ts';

/** Fills a pod's spec, wherever it stands, as upstream's defaulting does. */
export function fillPodSpec(spec: JsonObject | undefined): void {
  if (spec === undefined) return;
  fill(spec, {
    restartPolicy: 'Always',
    dnsPolicy: 'ClusterFirst',
    schedulerName: 'default-scheduler',
    terminationGracePeriodSeconds: 30,
    securityContext: {},
  });
  fillAccount(spec);
  fillAmounts(objectAt(spec, 'overhead'));
  for (const member of ['initContainers', 'containers', 'ephemeralContainers']) {
    for (const container of objectsAt(spec, member)) fillContainer(container);
  }
  for (const volume of objectsAt(spec, 'volumes')) fillVolume(volume);
}

/** The account's name stands in two members; the newer one decides. */
function fillAccount(spec: JsonObject): void {
  const name = textAt(spec, 'serviceAccountName') || textAt(spec, 'serviceAccount');
  if (name === '') return;
  spec['serviceAccountName'] = name;
  spec['serviceAccount'] = name;
}

/** On the host's network a container's port is the host's; of pods, not of templates. */
export function fillHostPorts(spec: JsonObject): void {
  if (spec['hostNetwork'] !== true) return;
  for (const member of ['initContainers', 'containers']) {
    for (const port of objectsAt(spec, member).flatMap((one) => objectsAt(one, 'ports'))) {
      if ((port['hostPort'] ?? 0) === 0) port['hostPort'] = port['containerPort'] ?? 0;
    }
  }
}

/** A pod's addresses are a list; the one it had before there was a list is its first. */
export function fillAddresses(status: JsonObject | undefined): void {
  if (status === undefined) return;
  const [first] = objectsAt(status, 'podIPs');
  const single = textAt(status, 'podIP');
  if (single !== '' && textAt(first, 'ip') !== single) status['podIPs'] = [{ ip: single }];
  else if (first !== undefined) status['podIP'] = textAt(first, 'ip');
}

function fillContainer(container: JsonObject): void {
  fill(container, {
    imagePullPolicy: pullPolicy(textAt(container, 'image')),
    terminationMessagePath: '/dev/termination-log',
    terminationMessagePolicy: 'File',
  });
  fillResources(objectAt(container, 'resources'));
  for (const port of objectsAt(container, 'ports')) {
    fill(port, { protocol: 'TCP' });
  }
  for (const variable of objectsAt(container, 'env')) {
    fill(objectAt(variable, 'valueFrom', 'fieldRef'), { apiVersion: 'v1' });
  }
  for (const name of ['livenessProbe', 'readinessProbe', 'startupProbe']) {
    fillProbe(objectAt(container, name));
  }
  for (const name of ['postStart', 'preStop']) {
    fillHttpGet(objectAt(container, 'lifecycle', name, 'httpGet'));
  }
}

/** What a container, or a claim, asks for and may have. */
export function fillResources(resources: JsonObject | undefined): void {
  fillAmounts(objectAt(resources, 'limits'));
  fillAmounts(objectAt(resources, 'requests'));
}

/** `latest` and no tag at all mean the image may change under its name; a digest pins it. */
function pullPolicy(image: string): JsonValue {
  return imageTag(image) === 'latest' ? 'Always' : 'IfNotPresent';
}

function fillProbe(probe: JsonObject | undefined): void {
  if (probe === undefined) return;
  const counts = { timeoutSeconds: 1, periodSeconds: 10, successThreshold: 1, failureThreshold: 3 };
  for (const [name, value] of Object.entries(counts)) {
    if (probe[name] === undefined || probe[name] === 0) probe[name] = value;
  }
  fillHttpGet(objectAt(probe, 'httpGet'));
  fillAbsent(objectAt(probe, 'grpc'), { service: '' });
}

function fillHttpGet(action: JsonObject | undefined): void {
  fill(action, { path: '/', scheme: 'HTTP' });
}

const fileMode = 0o644;

function fillVolume(volume: JsonObject): void {
  const sources = Object.keys(volume).filter((name) => name !== 'name' && volume[name] !== null);
  if (sources.length === 0) volume['emptyDir'] = {};
  for (const name of ['secret', 'configMap', 'downwardAPI', 'projected']) {
    fill(objectAt(volume, name), { defaultMode: fileMode });
  }
  fillDownwardItems(objectsAt(volume, 'downwardAPI', 'items'));
  for (const source of objectsAt(volume, 'projected', 'sources')) {
    fillDownwardItems(objectsAt(source, 'downwardAPI', 'items'));
    fill(objectAt(source, 'serviceAccountToken'), { expirationSeconds: 3600 });
  }
  fillDrivers(volume);
  const image = objectAt(volume, 'image');
  fill(image, { pullPolicy: pullPolicy(textAt(image, 'reference')) });
  const claim = objectAt(volume, 'ephemeral', 'volumeClaimTemplate', 'spec');
  fillAbsent(claim, { volumeMode: 'Filesystem' });
  fillResources(objectAt(claim, 'resources'));
}

function fillDownwardItems(items: readonly JsonObject[]): void {
  for (const item of items) fill(objectAt(item, 'fieldRef'), { apiVersion: 'v1' });
}

/** Volume drivers with defaults; of a pod's volume and of a persistent one. */
export function fillDrivers(source: JsonObject): void {
  fillAbsent(objectAt(source, 'hostPath'), { type: '' });
  fill(objectAt(source, 'iscsi'), { iscsiInterface: 'default' });
  fill(objectAt(source, 'rbd'), { pool: 'rbd', user: 'admin', keyring: '/etc/ceph/keyring' });
  fill(objectAt(source, 'scaleIO'), { storageMode: 'ThinProvisioned', fsType: 'xfs' });
  fillAbsent(objectAt(source, 'azureDisk'), {
    cachingMode: 'ReadWrite',
    kind: 'Shared',
    fsType: 'ext4',
    readOnly: false,
  });
}

/** Requests that are not given are what the limits are; for pods, not for templates. */
export function requestsFromLimits(spec: JsonObject): void {
  for (const member of ['initContainers', 'containers']) {
    for (const container of objectsAt(spec, member)) {
      const limits = objectAt(container, 'resources', 'limits');
      if (limits === undefined) continue;
      fill(ensure(ensure(container, 'resources'), 'requests'), { ...limits });
    }
  }
}

/**
 * A pod that limits itself as a whole asks for what its containers ask for, or else for what its
 * limits are; for pods, after their containers are filled.
 */
export function fillPodRequests(spec: JsonObject): void {
  const limits = objectAt(spec, 'resources', 'limits');
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

/** What a container asks for may change while it runs, unless it says otherwise. */
export function fillResizePolicies(spec: JsonObject): void {
  for (const container of objectsAt(spec, 'containers')) {
    const requests = objectAt(container, 'resources', 'requests') ?? {};
    const policies = objectsAt(container, 'resizePolicy');
    const added = ['cpu', 'memory'].filter(
      (name) =>
        requests[name] !== undefined && !policies.some((one) => one['resourceName'] === name),
    );
    if (added.length === 0) continue;
    const usual = added.map((name) => ({ resourceName: name, restartPolicy: 'NotRequired' }));
    container['resizePolicy'] = [...policies, ...usual];
  }
}
