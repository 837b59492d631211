import type {
  FlowSchema,
  FlowSchemaList,
  PriorityLevelConfiguration,
  PriorityLevelConfigurationList,
} from '@wheelhouse/kinds/types/flowcontrol/v1';
import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import { eventually, type ResponseOf } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';
import {
  abortHeld,
  as,
  configure,
  dumpOf,
  flowGroup,
  holdSeat,
  narrowLevel,
  ofGroup,
  ofUser,
  schemaOf,
  untilLevel,
} from './flow-control-server.ts';

const server = await withServer({
  authorizationModes: ['AlwaysAllow'],
  flowControl: { type: 'priority-and-fairness', objects: 'followed' },
  limits: { readsInFlightMax: 6, writesInFlightMax: 4 },
});

beforeAll(async () => {
  await eventually(async () => {
    const { body } = await server.get<FlowSchemaList>(`${flowGroup}/flowschemas`);
    return body.items.length === 13 && body.items.every((item) => danglingOf(item));
  }, 'the default objects');
});
afterEach(abortHeld);

function danglingOf(schema: Pick<FlowSchema, 'status'>) {
  return schema.status?.conditions?.find(({ type }) => type === 'Dangling');
}

const configMaps = '/api/v1/namespaces/default/configmaps';
const uids = {
  schema: 'x-kubernetes-pf-flowschema-uid',
  level: 'x-kubernetes-pf-prioritylevel-uid',
};
const oneQueue = { type: 'Queue', queuing: { queues: 1, handSize: 1, queueLengthLimit: 1 } };

/** The value of one sample of a metric; NaN if absent. */
async function metric(name: string, labels: Readonly<Record<string, string>>): Promise<number> {
  const { text } = await server.get('/metrics');
  const wanted = Object.entries(labels).map(([label, value]) => `${label}="${value}"`);
  const line = text
    .split('\n')
    .find(
      (sample) => sample.startsWith(`${name}{`) && wanted.every((part) => sample.includes(part)),
    );
  return Number(line?.split(' ').at(-1) ?? Number.NaN);
}

describe('OPS-3: the objects', () => {
  test('OPS-3: the condition of a FlowSchema is applied', async () => {
    const { body } = await server.get<FlowSchema>(`${flowGroup}/flowschemas/exempt`);
    const { managedFields = [] } = body.metadata;
    const owners = managedFields.filter(({ subresource }) => subresource === 'status');
    expect(JSON.stringify(owners)).toContain('"f:conditions":{"k:');
    expect(owners).toMatchObject([
      {
        manager: 'api-priority-and-fairness-config-consumer-v1',
        operation: 'Apply',
        fieldsV1: { 'f:status': { 'f:conditions': { 'k:{"type":"Dangling"}': { '.': {} } } } },
      },
    ]);
  });

  test('OPS-3: the default objects have kube-apiserver’s names and values', async () => {
    const levels = await server.get<PriorityLevelConfigurationList>(
      `${flowGroup}/prioritylevelconfigurations`,
    );
    const numbers = levels.body.items.map(({ metadata, spec }) => {
      const { type, limited, exempt } = spec ?? {};
      const { nominalConcurrencyShares, lendablePercent } = limited ?? exempt ?? {};
      const { queues, handSize, queueLengthLimit } = limited?.limitResponse?.queuing ?? {};
      const row = [metadata?.name, type, nominalConcurrencyShares, lendablePercent];
      return [...row, queues, handSize, queueLengthLimit];
    });
    expect(numbers).toEqual([
      ['catch-all', 'Limited', 5, 0, undefined, undefined, undefined],
      ['exempt', 'Exempt', 0, 0, undefined, undefined, undefined],
      ['global-default', 'Limited', 20, 50, 128, 6, 50],
      ['leader-election', 'Limited', 10, 0, 16, 4, 50],
      ['node-high', 'Limited', 40, 25, 64, 6, 50],
      ['system', 'Limited', 30, 33, 64, 6, 50],
      ['workload-high', 'Limited', 40, 50, 128, 6, 50],
      ['workload-low', 'Limited', 100, 90, 128, 6, 50],
    ]);
    const schemas = (await server.get<FlowSchemaList>(`${flowGroup}/flowschemas`)).body.items;
    const rows = schemas.map(({ metadata, spec }) => {
      const level = spec?.priorityLevelConfiguration.name;
      return [metadata?.name, level, spec?.matchingPrecedence, spec?.distinguisherMethod?.type];
    });
    expect(rows).toEqual([
      ['catch-all', 'catch-all', 10_000, 'ByUser'],
      ['endpoint-controller', 'workload-high', 150, 'ByUser'],
      ['exempt', 'exempt', 1, undefined],
      ['global-default', 'global-default', 9900, 'ByUser'],
      ['kube-controller-manager', 'workload-high', 800, 'ByNamespace'],
      ['kube-scheduler', 'workload-high', 800, 'ByNamespace'],
      ['probes', 'exempt', 2, undefined],
      ['service-accounts', 'workload-low', 9000, 'ByUser'],
      ['svc-system-service-accounts', 'workload-high', 900, 'ByNamespace'],
      ['system-leader-election', 'leader-election', 100, 'ByUser'],
      ['system-node-high', 'node-high', 400, 'ByUser'],
      ['system-nodes', 'system', 500, 'ByUser'],
      ['workload-leader-election', 'leader-election', 200, 'ByUser'],
    ]);
    for (const { metadata } of [...levels.body.items, ...schemas]) {
      expect(metadata.annotations).toEqual({ 'apf.svc.io/autoupdate-spec': 'true' });
    }
  });

  test('OPS-3: a mandatory object is recreated and cannot be changed', async () => {
    const path = `${flowGroup}/flowschemas/catch-all`;
    const before = (await server.get(path)).body;
    const changed = { ...before, spec: { ...before.spec, matchingPrecedence: 9999 } };
    const refused = await server.put(path, changed);
    expect(refused.status).toBe(422);
    expect(refused.body.message).toContain("spec of 'catch-all' must equal the fixed value");
    expect((await server.remove(path)).status).toBe(200);
    const after = await eventually(async () => {
      const found = await server.get(path);
      return found.status === 200 && found.body;
    }, 'the schema to be back');
    expect(after.metadata.uid).not.toBe(before.metadata.uid);
    expect(after.spec).toEqual(before.spec);
  });

  test('OPS-3: a suggested object is maintained until a user takes it over', async () => {
    const path = `${flowGroup}/prioritylevelconfigurations/workload-low`;
    const shares = (limited: number) => ({ spec: { limited: { lendablePercent: limited } } });
    type Level = ResponseOf<PriorityLevelConfiguration>;
    const lowered = await server.patch<Level>(path, shares(10), 'merge');
    expect(lowered.body.spec.limited.lendablePercent).toBe(10);
    await eventually(async () => {
      const { body } = await server.get<Level>(path);
      return body.spec.limited.lendablePercent === 90;
    }, 'the level to be put right');
    const own = { metadata: { annotations: { 'apf.svc.io/autoupdate-spec': 'false' } } };
    const taken = await server.patch(path, { ...own, ...shares(20) }, 'merge');
    expect(taken.status).toBe(200);
    // A later change by the server shows that it has processed this one and left it unchanged.
    await server.remove(`${flowGroup}/prioritylevelconfigurations/leader-election`);
    await eventually(
      async () =>
        (await server.get(`${flowGroup}/prioritylevelconfigurations/leader-election`)).status ===
        200,
    );
    const { body } = await server.get<Level>(path);
    expect(body.spec.limited.lendablePercent).toBe(20);
    expect(body.metadata.resourceVersion).toBe(taken.body.metadata.resourceVersion);
  });

  test('OPS-3: obsolete objects of an earlier server are removed, others are not', async () => {
    const annotated = (name: string, value: string) => {
      const level = narrowLevel(name, { type: 'Reject' });
      const annotations = { 'apf.svc.io/autoupdate-spec': value };
      return { ...level, metadata: { name, annotations } };
    };
    const path = `${flowGroup}/prioritylevelconfigurations`;
    expect((await server.post(path, annotated('mine', 'false'))).status).toBe(201);
    expect((await server.post(path, annotated('odd', 'perhaps'))).status).toBe(201);
    expect((await server.post(path, annotated('bygone', 'true'))).status).toBe(201);
    await eventually(async () => (await server.get(`${path}/bygone`)).status === 404);
    expect((await server.get(`${path}/mine`)).status).toBe(200);
    expect((await server.get(`${path}/odd`)).status).toBe(200);
  });

  test('OPS-3: the status of a FlowSchema reports a dangling level', async () => {
    const name = 'lost';
    const schema = schemaOf(name, { level: 'nowhere', precedence: 700, subject: ofUser(name) });
    expect((await server.post(`${flowGroup}/flowschemas`, schema)).status).toBe(201);
    const dangling = (status: string) =>
      eventually(async () => {
        const { body } = await server.get<FlowSchema>(`${flowGroup}/flowschemas/${name}`);
        const condition = danglingOf(body);
        return condition?.status === status && condition;
      }, `the condition to be ${status}`);
    const about =
      'This FlowSchema references the PriorityLevelConfiguration object named "nowhere"';
    expect(await dangling('True')).toMatchObject({
      reason: 'NotFound',
      message: `${about} but there is no such object`,
    });
    // Such a schema is ignored, so the next one matches.
    const expected = (await server.get(`${flowGroup}/flowschemas/global-default`)).body.metadata
      .uid;
    expect((await server.get('/version', as(name))).headers[uids.schema]).toBe(expected);
    const level = narrowLevel('nowhere', { type: 'Reject' });
    await server.post(`${flowGroup}/prioritylevelconfigurations`, level);
    expect(await dangling('False')).toMatchObject({
      reason: 'Found',
      message: `${about} and it exists`,
    });
    await server.remove(`${flowGroup}/flowschemas/${name}`);
    await server.remove(`${flowGroup}/prioritylevelconfigurations/nowhere`);
  });
});

describe('OPS-3: overload', () => {
  const user = 'busy';
  beforeAll(() =>
    configure(server, {
      level: narrowLevel('narrow', oneQueue),
      schema: schemaOf('narrow', { level: 'narrow', precedence: 1000, subject: ofUser(user) }),
    }),
  );

  test('OPS-3: excess requests wait, then get 429 with Retry-After until there is room', async () => {
    const held = holdSeat(server, user);
    await untilLevel(server, 'narrow', { executing: 1, waiting: 0 });
    const waiting = server.get(configMaps, as(user));
    await untilLevel(server, 'narrow', { executing: 1, waiting: 1 });
    const refused = await server.get(configMaps, as(user));
    expect(refused.status).toBe(429);
    expect(refused.headers['retry-after']).toBe('1');
    expect(refused.headers['content-type']).toBe('text/plain; charset=utf-8');
    expect(refused.headers['x-content-type-options']).toBe('nosniff');
    expect(refused.text).toBe('Too many requests, please try again later.\n');
    const schema = (await server.get(`${flowGroup}/flowschemas/narrow`)).body.metadata.uid;
    const level = (await server.get(`${flowGroup}/prioritylevelconfigurations/narrow`)).body;
    expect(refused.headers[uids.schema]).toBe(schema);
    expect(refused.headers[uids.level]).toBe(level.metadata.uid);
    const labels = { priority_level: 'narrow', flow_schema: 'narrow' };
    const flow = 'apiserver_flowcontrol';
    expect(await metric(`${flow}_current_inqueue_requests`, labels)).toBe(1);
    expect(await metric(`${flow}_current_executing_requests`, labels)).toBe(1);
    expect(await metric(`${flow}_current_executing_seats`, labels)).toBe(1);
    const reason = { ...labels, reason: 'queue-full' };
    expect(await metric(`${flow}_rejected_requests_total`, reason)).toBe(1);
    expect(await metric('apiserver_current_inqueue_requests', { request_kind: 'readOnly' })).toBe(
      1,
    );
    expect(await held.finish()).toBe(201);
    const answer = await waiting;
    expect(answer.status).toBe(200);
    expect(answer.headers[uids.schema]).toBe(schema);
    expect(answer.headers[uids.level]).toBe(level.metadata.uid);
    const ran = { ...labels, execute: 'true' };
    expect(await metric(`${flow}_request_wait_duration_seconds_count`, ran)).toBeGreaterThanOrEqual(
      2,
    );
    expect(await metric(`${flow}_current_inqueue_requests`, labels)).toBe(0);
    expect(await metric(`${flow}_current_executing_requests`, labels)).toBe(0);
    expect(await metric(`${flow}_current_executing_seats`, labels)).toBe(0);
    expect(await metric(`${flow}_dispatched_requests_total`, labels)).toBeGreaterThanOrEqual(2);
    const ofLevel = { priority_level: 'narrow' };
    expect(await metric(`${flow}_nominal_limit_seats`, ofLevel)).toBe(1);
    expect(await metric(`${flow}_current_limit_seats`, ofLevel)).toBe(1);
  });

  test('OPS-3: health checks and leader election survive an overload', async () => {
    const wide = { level: 'narrow', precedence: 5000, subject: ofGroup('system:authenticated') };
    await configure(server, { schema: schemaOf('everybody', wide) });
    const held = holdSeat(server, user);
    const queued = holdSeat(server, user);
    await untilLevel(server, 'narrow', { executing: 1, waiting: 1 });
    const somebody = as('somebody');
    expect((await server.get(configMaps, somebody)).status).toBe(429);
    expect((await server.get('/version', somebody)).status).toBe(429);
    for (const path of ['/healthz', '/livez', '/readyz', '/livez/ping', '/readyz?verbose']) {
      expect((await server.get(path, somebody)).status, path).toBe(200);
      expect((await server.get(path, { token: undefined })).status, path).not.toBe(429);
    }
    const leases = '/apis/coordination.svc.io/v1/namespaces/svc-system/leases';
    const lease = (name: string, holderIdentity: string) => ({
      apiVersion: 'coordination.svc.io/v1',
      kind: 'Lease',
      metadata: { name },
      spec: { holderIdentity, leaseDurationSeconds: 15 },
    });
    for (const [name, headers] of [
      ['manager', as('system:kube-controller-manager')],
      ['scheduler', as('system:kube-scheduler')],
      ['account', as('system:serviceaccount:svc-system:operator')],
      ['node', as('system:node:n1', 'system:nodes')],
    ] as const) {
      const made = await server.post(leases, lease(name, 'a'), headers);
      expect(made.status, `${name}: ${made.text}`).toBe(201);
      const renewed = await server.put(
        `${leases}/${name}`,
        { ...made.body, spec: { ...made.body.spec, holderIdentity: 'b' } },
        headers,
      );
      expect(renewed.status, name).toBe(200);
    }
    const manager = as('system:kube-controller-manager');
    expect((await server.get('/api/v1/nodes', manager)).status).toBe(200);
    expect((await server.get('/api/v1/nodes', as('system:node:n1', 'system:nodes'))).status).toBe(
      200,
    );
    expect((await server.get(configMaps)).status, 'system:masters').toBe(200);
    await server.remove(`${flowGroup}/flowschemas/everybody`);
    expect(await held.finish()).toBe(201);
    expect(await queued.finish()).toBe(201);
  });

  test('OPS-3: a request that waited a quarter of its deadline gets 429', async () => {
    const held = holdSeat(server, user);
    await untilLevel(server, 'narrow', { executing: 1, waiting: 0 });
    const late = await server.get(`${configMaps}?timeout=4s`, as(user));
    expect(late.status).toBe(429);
    expect(late.headers['retry-after']).toMatch(/^\d+$/);
    const reason = { priority_level: 'narrow', flow_schema: 'narrow', reason: 'time-out' };
    expect(await metric('apiserver_flowcontrol_rejected_requests_total', reason)).toBe(1);
    expect(await held.finish()).toBe(201);
  });

  test('OPS-3: a client that disconnects leaves the queue', async () => {
    const held = holdSeat(server, user);
    await untilLevel(server, 'narrow', { executing: 1, waiting: 0 });
    const gone = holdSeat(server, user);
    await untilLevel(server, 'narrow', { executing: 1, waiting: 1 });
    gone.abort();
    await untilLevel(server, 'narrow', { executing: 1, waiting: 0 });
    const reason = { priority_level: 'narrow', flow_schema: 'narrow', reason: 'cancelled' };
    expect(await metric('apiserver_flowcontrol_rejected_requests_total', reason)).toBe(1);
    held.abort();
    await untilLevel(server, 'narrow', { executing: 0, waiting: 0 });
  });

  test('OPS-3: established watches and long-running requests hold no seats', async () => {
    const watches = [
      await server.watch(`${configMaps}?watch=true`, as(user)),
      await server.watch(`${configMaps}?watch=true&resourceVersion=0`, as(user)),
    ];
    expect(watches.map(({ status }) => status)).toEqual([200, 200]);
    await untilLevel(server, 'narrow', { executing: 0, waiting: 0 });
    const held = holdSeat(server, user);
    const queued = holdSeat(server, user);
    await untilLevel(server, 'narrow', { executing: 1, waiting: 1 });
    expect((await server.get(`${configMaps}?watch=true`, as(user))).status).toBe(429);
    const log = '/api/v1/namespaces/default/pods/none/log';
    expect((await server.get(log, as(user))).status).toBe(404);
    for (const watch of watches) watch.close();
    expect(await held.finish()).toBe(201);
    expect(await queued.finish()).toBe(201);
  });

  test('OPS-3: a rejecting level queues nothing', async () => {
    const name = 'strict';
    await configure(server, {
      level: narrowLevel(name, { type: 'Reject' }),
      schema: schemaOf(name, { level: name, precedence: 900, subject: ofUser(name) }),
    });
    const held = holdSeat(server, name);
    await untilLevel(server, name, { executing: 1, waiting: 0 });
    expect((await server.get(configMaps, as(name))).status).toBe(429);
    const reason = { priority_level: name, flow_schema: name, reason: 'concurrency-limit' };
    expect(await metric('apiserver_flowcontrol_rejected_requests_total', reason)).toBe(1);
    expect(await held.finish()).toBe(201);
    expect((await server.get(configMaps, as(name))).status).toBe(200);
  });

  test('OPS-3: flows of a level share it fairly, even if one sent more requests', async () => {
    const name = 'shared';
    const queuing = { queues: 1000, handSize: 1, queueLengthLimit: 50 };
    const schema = { level: name, precedence: 800, subject: ofGroup(name), method: 'ByUser' };
    await configure(server, {
      level: narrowLevel(name, { type: 'Queue', queuing }),
      schema: schemaOf(name, schema),
    });
    const held = holdSeat(server, 'greedy', name);
    await untilLevel(server, name, { executing: 1, waiting: 0 });
    const order: string[] = [];
    const send = async (sender: string) => {
      const { status } = await server.get(configMaps, as(sender, name));
      order.push(`${sender} ${status}`);
    };
    const many = Array.from({ length: 9 }, () => send('greedy'));
    await untilLevel(server, name, { executing: 1, waiting: 9 });
    const modest = send('modest');
    await untilLevel(server, name, { executing: 1, waiting: 10 });
    expect(await held.finish()).toBe(201);
    await Promise.all([...many, modest]);
    expect(new Set(order)).toEqual(new Set(['greedy 200', 'modest 200']));
    expect(order.indexOf('modest 200')).toBeLessThanOrEqual(1);
  });

  test('OPS-3: the debug paths show levels, queues, and requests', async () => {
    const held = holdSeat(server, user);
    const queued = holdSeat(server, user);
    await untilLevel(server, 'narrow', { executing: 1, waiting: 1 });
    const levels = await dumpOf(server, 'dump_priority_levels');
    const narrow = levels.find((level) => level['PriorityLevelName'] === 'narrow');
    expect(narrow).toMatchObject({
      ActiveQueues: '1',
      IsIdle: 'false',
      IsQuiescing: 'false',
      WaitingRequests: '1',
      ExecutingRequests: '1',
    });
    expect(Object.keys(narrow ?? {}).slice(6)).toEqual([
      'DispatchedRequests',
      'RejectedRequests',
      'TimedoutRequests',
      'CancelledRequests',
    ]);
    expect(levels.map((level) => level['PriorityLevelName'])).toContain('catch-all');
    const queues = await dumpOf(server, 'dump_queues');
    expect(queues.filter((queue) => queue['PriorityLevelName'] === 'system')).toHaveLength(64);
    expect(queues.find((queue) => queue['PriorityLevelName'] === 'narrow')).toMatchObject({
      Index: '0',
      PendingRequests: '1',
      ExecutingRequests: '1',
      SeatsInUse: '1',
      NextDispatchR: expect.stringMatching(/^\d+\.\d{8}ss$/),
      InitialSeatsSum: '1',
      MaxSeatsSum: '1',
      TotalWorkSum: '0.00300000ss',
    });
    const requests = await dumpOf(server, 'dump_requests?includeRequestDetails=1');
    const own = requests.filter((request) => request['PriorityLevelName'] === 'narrow');
    expect(own.map((request) => request['RequestIndexInQueue'])).toEqual(['0', '-1']);
    expect(own[0]).toMatchObject({
      FlowSchemaName: 'narrow',
      QueueIndex: '0',
      InitialSeats: '1',
      FinalSeats: '0',
      AdditionalLatency: '0s',
      StartTime: '0001-01-01T00:00:00Z',
      UserName: user,
      Verb: 'create',
      APIPath: configMaps,
      Namespace: 'default',
      APIVersion: 'v1',
      Resource: 'configmaps',
      SubResource: '',
    });
    expect(Date.parse(own[1]?.['StartTime'] ?? '')).toBeGreaterThan(Date.UTC(2020, 0, 1));
    const plain = await server.get('/debug/api_priority_and_fairness/dump_requests');
    expect(plain.status).toBe(200);
    expect(plain.headers['content-type']).toBe('text/plain; charset=utf-8');
    const [header = '', row = ''] = plain.text.split('\n');
    expect(header.split(/, +/)).toEqual([
      'PriorityLevelName',
      'FlowSchemaName',
      'QueueIndex',
      'RequestIndexInQueue',
      'FlowDistingsher',
      'ArriveTime',
      'InitialSeats',
      'FinalSeats',
      'AdditionalLatency',
      'StartTime',
    ]);
    expect(row.split(/, +/)).toHaveLength(10);
    expect(row.lastIndexOf(row.split(/, +/)[9] ?? '')).toBe(header.indexOf('StartTime'));
    expect((await server.get('/debug/api_priority_and_fairness/nothing')).status).toBe(404);
    const nobody = await server.get('/debug/api_priority_and_fairness/dump_queues', {
      token: 'unknown',
    });
    expect(nobody.status).toBe(401);
    expect(await held.finish()).toBe(201);
    expect(await queued.finish()).toBe(201);
  });

  test('OPS-3: a removed level serves its last requests', async () => {
    const name = 'passing';
    await configure(server, {
      level: narrowLevel(name, oneQueue),
      schema: schemaOf(name, { level: name, precedence: 950, subject: ofUser(name) }),
    });
    const held = holdSeat(server, name);
    await untilLevel(server, name, { executing: 1, waiting: 0 });
    const waiting = server.get(configMaps, as(name));
    await untilLevel(server, name, { executing: 1, waiting: 1 });
    await server.remove(`${flowGroup}/flowschemas/${name}`);
    await server.remove(`${flowGroup}/prioritylevelconfigurations/${name}`);
    await eventually(async () => {
      const rows = await dumpOf(server, 'dump_priority_levels');
      const row = rows.find((candidate) => candidate['PriorityLevelName'] === name);
      return row?.['IsQuiescing'] === 'true';
    }, 'the level to quiesce');
    expect((await server.get(configMaps, as(name))).status).toBe(200);
    expect(await held.finish()).toBe(201);
    expect((await waiting).status).toBe(200);
  });
});
