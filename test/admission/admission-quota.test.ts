import type { ResourceQuota } from '@wheelhouse/kinds/types/core/v1';
import { describe, expect, test } from 'vitest';
import { mustCreate } from '../authentication/token-users.ts';
import { establish, redefine } from '../custom-kinds/custom-kinds.ts';
import { configMap, eventually, freshNamespace, type ResponseOf } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';

const server = await withServer({ controllers: ['resourcequota-controller'] });

function pod(name: string, resources: object = {}, spec: object = {}): object {
  const containers = [{ name: 'main', image: 'x', resources }];
  const metadata = { name };
  return { apiVersion: 'v1', kind: 'Pod', metadata, spec: { containers, ...spec } };
}

/** Creates a namespace with a quota whose limits are in force. */
async function withQuota(hard: Record<string, string>, more: object = {}): Promise<string> {
  const ns = await freshNamespace(server);
  const core = `/api/v1/namespaces/${ns}`;
  await mustCreate(server, `${core}/resourcequotas`, {
    apiVersion: 'v1',
    kind: 'ResourceQuota',
    metadata: { name: 'quota' },
    spec: { hard, ...more },
  });
  await eventually(async () => {
    const { status } = (await server.get(`${core}/resourcequotas/quota`)).body;
    return Object.keys(status.hard ?? {}).length === Object.keys(hard).length;
  }, 'the quota is in force');
  return core;
}

const quotaOf = async (core: string) =>
  (await server.get<ResponseOf<ResourceQuota>>(`${core}/resourcequotas/quota`)).body;

/** What a quota counts; nothing before the first count of a new one. */
async function used(core: string): Promise<Record<string, string>> {
  const { status }: { readonly status?: { readonly used?: Record<string, string> } } =
    await quotaOf(core);
  return status?.used ?? {};
}

const uses = (core: string, wanted: Record<string, string>) =>
  eventually(async () => {
    const now = await used(core);
    return Object.entries(wanted).every(([name, text]) => now[name] === text);
  }, JSON.stringify(wanted));

describe('ADM-1: counts', () => {
  test('ADM-1: existing objects count when a quota is created', async () => {
    const ns = await freshNamespace(server);
    const core = `/api/v1/namespaces/${ns}`;
    await mustCreate(server, `${core}/configmaps`, configMap('a'));
    await mustCreate(server, `${core}/resourcequotas`, {
      apiVersion: 'v1',
      kind: 'ResourceQuota',
      metadata: { name: 'quota' },
      spec: { hard: { configmaps: '2', 'count/configmaps': '2' } },
    });
    await uses(core, { configmaps: '1', 'count/configmaps': '1' });
  });

  test('ADM-1: the last unit is granted, the next refused, a freed unit granted again', async () => {
    const core = await withQuota({ configmaps: '2' });
    const path = `${core}/configmaps`;
    await mustCreate(server, path, configMap('a'));
    const dry = await server.post(`${path}?dryRun=All`, configMap('dry'));
    expect(dry.status).toBe(201);
    expect(await used(core)).toEqual({ configmaps: '1' });
    await mustCreate(server, path, configMap('b'));
    expect(await used(core)).toEqual({ configmaps: '2' });
    for (const query of ['', '?dryRun=All']) {
      const answer = await server.post(path + query, configMap('c'));
      expect(answer.status).toBe(403);
      expect(answer.body.reason).toBe('Forbidden');
      expect(answer.body.message).toBe(
        'configmaps "c" is forbidden: exceeded quota: quota, requested: configmaps=1, used: configmaps=2, limited: configmaps=2',
      );
    }
    await server.remove(`${path}/a`);
    await uses(core, { configmaps: '1' });
    await mustCreate(server, path, configMap('c'));
  });

  test('ADM-1: concurrent creates never exceed the quota', async () => {
    const core = await withQuota({ 'count/configmaps': '5', secrets: '9' });
    const names = Array.from({ length: 25 }, (_, index) => `c${index}`);
    const answers = await Promise.all(
      names.map((name) => server.post(`${core}/configmaps`, configMap(name))),
    );
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(5);
    expect(answers.filter(({ status }) => status === 403)).toHaveLength(20);
    expect((await server.get(`${core}/configmaps`)).body.items).toHaveLength(5);
    expect((await used(core))['count/configmaps']).toBe('5');
  });

  test('ADM-1: kinds of other groups count by their full resource name', async () => {
    const core = await withQuota({ 'count/leases.coordination.svc.io': '1' });
    const path = core.replace('/api/v1', '/apis/coordination.svc.io/v1');
    const lease = (name: string) => ({
      apiVersion: 'coordination.svc.io/v1',
      kind: 'Lease',
      metadata: { name },
    });
    await mustCreate(server, `${path}/leases`, lease('a'));
    const answer = await server.post(`${path}/leases`, lease('b'));
    expect(answer.body.message).toContain('requested: count/leases.coordination.svc.io=1');
    const update = await server.patch(
      `${path}/leases/a`,
      { spec: { holderIdentity: 'x' } },
      'merge',
    );
    expect(update.status).toBe(200);
  });

  test('ADM-1: a new limit takes effect once the status shows it', async () => {
    const core = await withQuota({ configmaps: '1' });
    await mustCreate(server, `${core}/configmaps`, configMap('a'));
    const raised = { spec: { hard: { configmaps: '2' } } };
    await server.patch(`${core}/resourcequotas/quota`, raised, 'merge');
    await eventually(async () => (await quotaOf(core)).status.hard.configmaps === '2');
    await mustCreate(server, `${core}/configmaps`, configMap('b'));
  });
});

describe('ADM-1: amounts', () => {
  const asks = (cpu: string, memory: string) => ({
    requests: { cpu, memory },
    limits: { cpu, memory },
  });
  test('ADM-1: pod requests add up, and every container must set them', async () => {
    const core = await withQuota({ pods: '5', 'requests.cpu': '1', 'limits.memory': '1Gi' });
    await mustCreate(server, `${core}/pods`, pod('a', asks('500m', '256Mi')));
    expect(await used(core)).toEqual({
      pods: '1',
      'requests.cpu': '500m',
      'limits.memory': '256Mi',
    });
    const silent = await server.post(`${core}/pods`, pod('b'));
    expect(silent.status).toBe(403);
    expect(silent.body.message).toBe(
      'pods "b" is forbidden: failed quota: quota: must specify limits.memory for: main; requests.cpu for: main',
    );
    const greedy = await server.post(`${core}/pods`, pod('b', asks('600m', '900Mi')));
    expect(greedy.body.message).toBe(
      'pods "b" is forbidden: exceeded quota: quota, requested: limits.memory=900Mi,requests.cpu=600m, used: limits.memory=256Mi,requests.cpu=500m, limited: limits.memory=1Gi,requests.cpu=1',
    );
    await mustCreate(server, `${core}/pods`, pod('b', asks('500m', '768Mi')));
    expect(await used(core)).toEqual({ pods: '2', 'requests.cpu': '1', 'limits.memory': '1Gi' });
  });

  test('ADM-1: an extended resource that is named like a count does not replace it', async () => {
    const core = await withQuota({ 'count/pods': '1', pods: '3' });
    const none = { requests: { 'count/pods': '0' }, limits: { 'count/pods': '0' } };
    await mustCreate(server, `${core}/pods`, pod('a', none));
    const second = await server.post(`${core}/pods`, pod('b', none));
    expect(second.status).toBe(403);
    expect(second.body.message).toContain(
      'exceeded quota: quota, requested: count/pods=1, used: count/pods=1, limited: count/pods=1',
    );
  });

  test('ADM-1: a finished pod releases its usage', async () => {
    const core = await withQuota({ pods: '1', 'count/pods': '3' });
    await mustCreate(server, `${core}/pods`, pod('a', {}, { nodeName: 'n' }));
    expect((await server.post(`${core}/pods`, pod('b'))).status).toBe(403);
    await server.patch(`${core}/pods/a/status`, { status: { phase: 'Succeeded' } }, 'merge');
    await uses(core, { pods: '0', 'count/pods': '1' });
    await mustCreate(server, `${core}/pods`, pod('b'));
    await server.remove(`${core}/pods/a?gracePeriodSeconds=0`);
    await uses(core, { pods: '1', 'count/pods': '1' });
  });

  test('ADM-1: storage also counts by class, and growth counts', async () => {
    const gold = 'gold.storageclass.storage.svc.io/requests.storage';
    const core = await withQuota({ 'requests.storage': '10Gi', [gold]: '3Gi' });
    const claim = (name: string, storage: string, storageClassName: string) => ({
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { name },
      spec: {
        storageClassName,
        accessModes: ['ReadWriteOnce'],
        resources: { requests: { storage } },
      },
    });
    const path = `${core}/persistentvolumeclaims`;
    await mustCreate(server, path, claim('a', '2Gi', 'gold'));
    await mustCreate(server, path, claim('b', '4Gi', 'plain'));
    expect(await used(core)).toEqual({ 'requests.storage': '6Gi', [gold]: '2Gi' });
    const answer = await server.post(path, claim('c', '2Gi', 'gold'));
    expect(answer.body.message).toBe(
      `persistentvolumeclaims "c" is forbidden: exceeded quota: quota, requested: ${gold}=2Gi, used: ${gold}=2Gi, limited: ${gold}=3Gi`,
    );
    expect(await used(core)).toEqual({ 'requests.storage': '6Gi', [gold]: '2Gi' });
  });

  test('ADM-1: node ports and load balancers count, also after a change of type', async () => {
    const core = await withQuota({ services: '3', 'services.nodeports': '1' });
    const service = (name: string, type: string) => ({
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name },
      spec: { type, ports: [{ port: 80 }] },
    });
    await mustCreate(server, `${core}/services`, service('a', 'ClusterIP'));
    await mustCreate(server, `${core}/services`, service('b', 'NodePort'));
    expect(await used(core)).toEqual({ services: '2', 'services.nodeports': '1' });
    const turn = { spec: { type: 'NodePort' } };
    const answer = await server.patch(`${core}/services/a`, turn, 'merge');
    expect(answer.status).toBe(403);
    expect(answer.body.message).toBe(
      'services "a" is forbidden: exceeded quota: quota, requested: services.nodeports=1, used: services.nodeports=1, limited: services.nodeports=1',
    );
    await server.patch(`${core}/services/b`, { spec: { type: 'ClusterIP' } }, 'merge');
    await uses(core, { 'services.nodeports': '0' });
    expect((await server.patch(`${core}/services/a`, turn, 'merge')).status).toBe(200);
  });
});

describe('ADM-1: scopes', () => {
  test('ADM-1: a Terminating quota ignores pods without a deadline', async () => {
    const core = await withQuota({ pods: '0' }, { scopes: ['Terminating'] });
    await mustCreate(server, `${core}/pods`, pod('long'));
    const short = pod('short', {}, { activeDeadlineSeconds: 60 });
    expect((await server.post(`${core}/pods`, short)).status).toBe(403);
  });

  test('ADM-1: a NotBestEffort quota ignores best-effort pods', async () => {
    const core = await withQuota({ pods: '0' }, { scopes: ['NotBestEffort'] });
    await mustCreate(server, `${core}/pods`, pod('modest'));
    const asking = pod('asking', { requests: { cpu: '1m' } });
    expect((await server.post(`${core}/pods`, asking)).status).toBe(403);
  });

  test('ADM-1: a PriorityClass scope counts the pods of that class', async () => {
    await mustCreate(server, '/apis/scheduling.svc.io/v1/priorityclasses', {
      apiVersion: 'scheduling.svc.io/v1',
      kind: 'PriorityClass',
      metadata: { name: 'high' },
      value: 10,
    });
    const matchExpressions = [{ scopeName: 'PriorityClass', operator: 'In', values: ['high'] }];
    const core = await withQuota({ pods: '1' }, { scopeSelector: { matchExpressions } });
    const high = (name: string) => pod(name, {}, { priorityClassName: 'high' });
    await mustCreate(server, `${core}/pods`, high('a'));
    expect((await server.post(`${core}/pods`, high('b'))).status).toBe(403);
    await mustCreate(server, `${core}/pods`, pod('plain'));
    expect(await used(core)).toEqual({ pods: '1' });
  });
});

test('ADM-1: events never count, and quotas of other namespaces are independent', async () => {
  const core = await withQuota({ configmaps: '0', 'count/events': '0' });
  const otherNamespace = await freshNamespace(server);
  await mustCreate(server, `/api/v1/namespaces/${otherNamespace}/configmaps`, configMap('a'));
  const namespace = core.split('/').at(-1);
  await mustCreate(server, `${core}/events`, {
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { name: 'e' },
    involvedObject: { kind: 'Pod', name: 'p', namespace },
    reason: 'Tested',
    type: 'Normal',
  });
});

test('ADM-1: a custom kind counts even if its resource is named events', async () => {
  const group = 'quota.example.com';
  await establish(server, { group, plural: 'events', kind: 'Event' });
  const core = await withQuota({ [`count/events.${group}`]: '0' });
  const path = `${core.replace('/api/v1', `/apis/${group}/v1`)}/events`;
  await eventually(async () => (await server.get(path)).status === 200, 'the kind is served');
  const event = { apiVersion: `${group}/v1`, kind: 'Event', metadata: { name: 'e' } };
  const refused = await server.post(path, event);
  expect(refused.body.message).toContain(`limited: count/events.${group}=0`);
});

test('ADM-1: objects of a custom kind still count after its definition has changed', async () => {
  const group = 'changing.example.com';
  const resource = `cups.${group}`;
  await establish(server, { group, plural: 'cups', kind: 'Cup' });
  const core = await withQuota({ [`count/${resource}`]: '5' });
  const path = `${core.replace('/api/v1', `/apis/${group}/v1`)}/cups`;
  await eventually(async () => (await server.get(path)).status === 200, 'the kind is served');
  const cup = (name: string) => ({
    apiVersion: `${group}/v1`,
    kind: 'Cup',
    metadata: { name },
    size: 'small',
  });
  for (const name of ['a', 'b']) await mustCreate(server, path, cup(name));
  await uses(core, { [`count/${resource}`]: '2' });
  await redefine(server, resource, ({ versions: [version] }) => {
    version.schema.openAPIV3Schema = { type: 'object', properties: { size: { type: 'string' } } };
  });
  await eventually(async () => {
    const { body } = await server.post(`${path}?dryRun=All`, cup('c'));
    return body.size === 'small';
  }, 'the new schema');
  await server.remove(`${path}/a`);
  await uses(core, { [`count/${resource}`]: '1' });
});
