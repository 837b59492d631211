import type { JsonObject, Random } from '@wheelhouse/machinery';
import type { SoakAnswer, SoakClient } from './client.ts';

/** A typical activity of clients, consisting of one or a few requests. */
interface Activity {
  /** Relative frequency. */
  readonly weight: number;
  run(on: Ground): Promise<SoakAnswer>;
}

/** The resources of an activity. */
interface Ground {
  readonly client: SoakClient;
  readonly random: Random;
  /** A number that is unique in the run. */
  readonly serial: number;
}

const namespaces = Array.from({ length: 5 }, (_, i) => `soak-${i}`);
const applyType = 'application/apply-patch+yaml';
const mergeType = 'application/merge-patch+json';

const container = {
  name: 'main',
  image: 'registry.example/app:1',
  env: [{ name: 'A', value: 'b' }],
};

function inNamespace({ random }: Ground, group: string, resource: string): string {
  return `${group}/namespaces/${random.pick(namespaces)}/${resource}`;
}

const named = (name: string, more: JsonObject = {}): JsonObject => ({
  metadata: { name },
  ...more,
});

/** Creates the object, or reads and replaces an existing one. */
async function upsert(
  on: Ground,
  target: { readonly collection: string; readonly name: string; readonly body: JsonObject },
): Promise<SoakAnswer> {
  const { collection, name, body } = target;
  const path = `${collection}/${name}`;
  const current = await on.client.send({ method: 'GET', path });
  if (current.status === 404) {
    return on.client.send({ method: 'POST', path: collection, body: { ...body, ...named(name) } });
  }
  if (current.body === undefined) return current;
  return on.client.send({ method: 'PUT', path, body: { ...current.body, ...body } });
}

async function changeConfigMap(on: Ground): Promise<SoakAnswer> {
  const collection = inNamespace(on, '/api/v1', 'configmaps');
  const text = 'x'.repeat(100 + on.random.below(3000));
  const data = { text, serial: String(on.serial) };
  return upsert(on, { collection, name: `map-${on.random.below(40)}`, body: { data } });
}

async function removeConfigMap(on: Ground): Promise<SoakAnswer> {
  const collection = inNamespace(on, '/api/v1', 'configmaps');
  const path = `${collection}/map-${on.random.below(40)}`;
  return on.client.send({ method: 'DELETE', path });
}

async function patchConfigMap(on: Ground): Promise<SoakAnswer> {
  const collection = inNamespace(on, '/api/v1', 'configmaps');
  const path = `${collection}/map-${on.random.below(40)}`;
  const body = { data: { patched: String(on.serial) } };
  return on.client.send({ method: 'PATCH', path, body, type: mergeType });
}

async function applyDeployment(on: Ground): Promise<SoakAnswer> {
  const manager = `manager-${on.random.below(3)}`;
  const name = `app-${on.random.below(20)}`;
  const labels = { app: name };
  const body = {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name, labels: { [manager]: String(on.serial) } },
    spec: {
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { containers: [container] } },
    },
  };
  const path = `${inNamespace(on, '/apis/apps/v1', 'deployments')}/${name}`;
  const query = `?fieldManager=${manager}&force=true`;
  return on.client.send({ method: 'PATCH', path: path + query, body, type: applyType });
}

async function livePod(on: Ground): Promise<SoakAnswer> {
  const collection = inNamespace(on, '/api/v1', 'pods');
  const name = `pod-${on.serial}`;
  const spec = { containers: [container] };
  const body = named(name, { spec });
  const path = `${collection}/${name}`;
  const { client } = on;
  const created = await client.send({ method: 'POST', path: collection, body });
  if (created.status !== 201) return created;
  const status = { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] };
  await client.send({ method: 'PATCH', path: `${path}/status`, body: { status }, type: mergeType });
  await client.send({ method: 'GET', path });
  return client.send({ method: 'DELETE', path: `${path}?gracePeriodSeconds=0` });
}

async function renewLease(on: Ground): Promise<SoakAnswer> {
  const collection = '/apis/coordination.svc.io/v1/namespaces/soak-0/leases';
  const renewTime = `${new Date().toISOString().slice(0, -1)}000Z`;
  const spec = { holderIdentity: 'soak', leaseDurationSeconds: 40, renewTime };
  return upsert(on, { collection, name: `node-${on.random.below(30)}`, body: { spec } });
}

async function recordEvent(on: Ground): Promise<SoakAnswer> {
  const namespace = on.random.pick(namespaces);
  const involvedObject = { apiVersion: 'v1', kind: 'Pod', name: 'pod-1', namespace };
  const metadata = { generateName: 'soak-' };
  const body = { metadata, involvedObject, reason: 'Soaked', message: `number ${on.serial}` };
  const path = `/api/v1/namespaces/${namespace}/events`;
  return on.client.send({ method: 'POST', path, body });
}

async function pageThrough(on: Ground): Promise<SoakAnswer> {
  const path = on.random.pick([
    '/api/v1/configmaps',
    '/api/v1/events',
    '/apis/apps/v1/deployments',
    '/apis/coordination.svc.io/v1/leases',
  ]);
  let token = '';
  for (let page = 0; ; page++) {
    const from = token === '' ? '' : `&continue=${encodeURIComponent(token)}`;
    const answer = await on.client.send({ method: 'GET', path: `${path}?limit=50${from}` });
    const metadata = answer.body?.['metadata'] as { continue?: string } | undefined;
    token = metadata?.continue ?? '';
    if (token === '' || page >= 5) return answer;
  }
}

async function listByLabel(on: Ground): Promise<SoakAnswer> {
  const collection = inNamespace(on, '/apis/apps/v1', 'deployments');
  const path = `${collection}?labelSelector=manager-${on.random.below(3)}`;
  return on.client.send({ method: 'GET', path });
}

const discoveryAccept =
  'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json';

async function discover(on: Ground): Promise<SoakAnswer> {
  const path = on.random.pick(['/api', '/apis', '/apis/apps/v1', '/openapi/v3', '/version']);
  return on.client.send({ method: 'GET', path, accept: discoveryAccept });
}

async function requestToken(on: Ground): Promise<SoakAnswer> {
  const path = `${inNamespace(on, '/api/v1', 'serviceaccounts')}/default/token`;
  return on.client.send({ method: 'POST', path, body: { spec: { expirationSeconds: 600 } } });
}

async function reviewAccess(on: Ground): Promise<SoakAnswer> {
  const resourceAttributes = { verb: 'get', resource: 'pods', namespace: 'soak-0' };
  const path = '/apis/authorization.svc.io/v1/selfsubjectaccessreviews';
  return on.client.send({ method: 'POST', path, body: { spec: { resourceAttributes } } });
}

async function mistake(on: Ground): Promise<SoakAnswer> {
  const collection = inNamespace(on, '/api/v1', 'configmaps');
  const body = named('Not_A_Name!', { data: 7 });
  return on.random.chance(0.5)
    ? on.client.send({ method: 'POST', path: collection, body })
    : on.client.send({ method: 'GET', path: `${collection}/absent-${on.serial}` });
}

/** Defines a kind, works with its objects, and deletes it. */
async function installKind(on: Ground): Promise<SoakAnswer> {
  const plural = `gadget${on.random.below(6)}s`;
  const kind = `Gadget${plural.slice(6, -1)}`;
  const group = 'soak.example.com';
  const definitions = '/apis/apiextensions.svc.io/v1/customresourcedefinitions';
  const { client } = on;
  const schema = {
    type: 'object',
    properties: { spec: { type: 'object', properties: { size: { type: 'integer', default: 1 } } } },
  };
  const versions = [
    { name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: schema } },
  ];
  const names = { plural, kind };
  const spec = { group, scope: 'Namespaced', names, versions };
  const made = await client.send({
    method: 'POST',
    path: definitions,
    body: named(`${plural}.${group}`, { spec }),
  });
  if (made.status !== 201) return made;
  const collection = `/apis/${group}/v1/namespaces/soak-0/${plural}`;
  for (let i = 0; i < 5; i++) {
    const body = named(`one-${i}`, { apiVersion: `${group}/v1`, kind, spec: {} });
    await client.send({ method: 'POST', path: collection, body });
  }
  await client.send({ method: 'GET', path: collection });
  return client.send({ method: 'DELETE', path: `${definitions}/${plural}.${group}` });
}

/** Creates, fills, and deletes a namespace, which controllers then empty. */
async function liveNamespace(on: Ground): Promise<SoakAnswer> {
  const path = '/api/v1/namespaces';
  const name = `soak-short-${on.serial}`;
  const { client } = on;
  const made = await client.send({ method: 'POST', path, body: named(name) });
  if (made.status !== 201) return made;
  for (const resource of ['configmaps', 'secrets', 'serviceaccounts']) {
    await client.send({ method: 'POST', path: `${path}/${name}/${resource}`, body: named('one') });
  }
  return client.send({ method: 'DELETE', path: `${path}/${name}` });
}

const activities: readonly Activity[] = [
  { weight: 14, run: changeConfigMap },
  { weight: 2, run: removeConfigMap },
  { weight: 8, run: patchConfigMap },
  { weight: 12, run: applyDeployment },
  { weight: 4, run: livePod },
  { weight: 14, run: renewLease },
  { weight: 8, run: recordEvent },
  { weight: 3, run: pageThrough },
  { weight: 3, run: listByLabel },
  { weight: 3, run: discover },
  { weight: 3, run: requestToken },
  { weight: 3, run: reviewAccess },
  { weight: 3, run: mistake },
  { weight: 0.1, run: installKind },
  { weight: 0.3, run: liveNamespace },
];

/** Creates what activities require. */
export async function prepareMix(client: SoakClient): Promise<void> {
  for (const name of namespaces) {
    await client.send({ method: 'POST', path: '/api/v1/namespaces', body: named(name) });
  }
}

/** Runs one activity of the mix; returns the last answer. */
export function runActivity(on: Ground): Promise<SoakAnswer> {
  const total = activities.reduce((sum, { weight }) => sum + weight, 0);
  let at = (on.random.below(1_000_000) / 1_000_000) * total;
  for (const { weight, run } of activities) {
    at -= weight;
    if (at < 0) return run(on);
  }
  return changeConfigMap(on);
}

/** Collections that informers follow. */
export const followed: readonly string[] = [
  '/api/v1/configmaps',
  '/api/v1/pods',
  '/api/v1/events',
  '/api/v1/namespaces',
  '/api/v1/namespaces/soak-0/configmaps',
  '/apis/apps/v1/deployments',
  '/apis/coordination.svc.io/v1/leases',
  '/apis/apiextensions.svc.io/v1/customresourcedefinitions',
];
