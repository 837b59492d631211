import { FakeClock } from '@wheelhouse/machinery/testing';
import { FlagError, readOptions } from '@wheelhouse/server/testing';
import { afterEach, expect, test } from 'vitest';
import { auditFolder } from '../audit/audit-run.ts';
import { sample } from '../operations/metric-samples.ts';
import { temporaryFolder, untilEnd } from '../support/cleanup.ts';
import {
  type ConfigChange,
  eventually,
  startTestServer,
  type TestServer,
} from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';
import { abortHeld, as, flowGroup, holdSeat } from './flow-control-server.ts';

const configMaps = '/api/v1/namespaces/default/configmaps';
afterEach(abortHeld);

const start = (change: ConfigChange) =>
  withServer({ authorizationModes: ['AlwaysAllow'], ...change });

const followed = { type: 'priority-and-fairness', objects: 'followed' } as const;

/** Waits for the default objects with their conditions, and returns all objects. */
async function storedObjects(server: TestServer, base = flowGroup): Promise<readonly Stored[]> {
  return eventually(async () => {
    const { body } = await server.get<StoredList>(`${base}/flowschemas`);
    const schemas = body.items;
    const reported = schemas.filter(({ status }) => (status?.conditions?.length ?? 0) > 0);
    const levels = (await server.get<StoredList>(`${base}/prioritylevelconfigurations`)).body.items;
    return reported.length === 13 && levels.length === 8 && [...schemas, ...levels];
  }, 'the default objects');
}

interface StoredList {
  readonly items: readonly Stored[];
}

interface Stored {
  readonly metadata: {
    readonly name: string;
    readonly resourceVersion: string;
    readonly annotations: Readonly<Record<string, string>>;
  };
  readonly spec: { readonly rules?: readonly Record<string, never>[] };
  readonly status?: { readonly conditions?: readonly unknown[] };
}

test('OPS-3: without priority and fairness, reads and writes have separate limits', async () => {
  const audit = untilEnd(auditFolder({ rules: [{ level: 'Metadata' }] }));
  const server = await start({
    audit: audit.settings,
    flowControl: { type: 'max-in-flight' },
    limits: { readsInFlightMax: 1, writesInFlightMax: 1 },
  });
  const write = (user: string) =>
    server.post(`${configMaps}?dryRun=All`, { apiVersion: 'v1', kind: 'ConfigMap' }, as(user));
  const held = holdSeat(server, 'alice');
  const refused = await eventually(async () => {
    const answer = await write('bob');
    return answer.status === 429 && answer;
  }, 'the only place for writes to be taken');
  expect(refused.headers['retry-after']).toBe('1');
  expect(refused.headers['content-type']).toBe('text/plain; charset=utf-8');
  expect(refused.text).toBe('Too many requests, please try again later.\n');
  expect(refused.headers['x-kubernetes-pf-flowschema-uid']).toBeUndefined();
  const recorded = await audit.of(String(refused.headers['audit-id']));
  expect(recorded.at(-1)).toMatchObject({
    stage: 'ResponseComplete',
    verb: 'create',
    impersonatedUser: { username: 'bob' },
    responseStatus: { metadata: {}, code: 429 },
  });
  expect((await server.get(configMaps, as('bob'))).status).toBe(200);
  const masters = { headers: { ...as('root', 'system:masters').headers } };
  expect((await server.remove(`${configMaps}/none`, undefined, masters)).status).toBe(404);
  const watch = await server.watch(`${configMaps}?watch=true`, as('bob'));
  expect(watch.status).toBe(200);
  expect((await server.get(configMaps, as('bob'))).status).toBe(200);
  watch.close();
  const { text } = await server.get('/metrics', { ...masters, accept: 'text/plain' });
  const labels = { verb: 'POST', resource: 'configmaps', scope: 'resource', code: '429' };
  expect(sample(text, 'apiserver_request_terminations_total', labels)).toBe(1);
  expect(await held.finish()).toBe(201);
  expect((await write('bob')).status).not.toBe(429);
  const page = '/debug/api_priority_and_fairness/dump_priority_levels';
  expect((await server.get(page)).status).toBe(404);
  expect((await server.get(`${flowGroup}/flowschemas`)).body.items).toEqual([]);
});

test('OPS-3: the other dialect has its own names', async () => {
  const server = await start({ dialect: 'kubernetes', flowControl: followed });
  const objects = await storedObjects(server, '/apis/flowcontrol.apiserver.k8s.io/v1');
  for (const { metadata } of objects) {
    expect(metadata.annotations).toEqual({ 'apf.kubernetes.io/autoupdate-spec': 'true' });
  }
  const named = (name: string) => objects.find(({ metadata }) => metadata.name === name);
  expect(named('kube-system-service-accounts')?.spec.rules?.[0]).toMatchObject({
    subjects: [{ kind: 'ServiceAccount', serviceAccount: { namespace: 'kube-system', name: '*' } }],
  });
  expect(named('system-leader-election')?.spec.rules?.[0]).toMatchObject({
    resourceRules: [{ apiGroups: ['coordination.k8s.io'], resources: ['leases'] }],
  });
  const account = as('system:serviceaccount:kube-system:operator');
  const answer = await server.get('/apis/coordination.k8s.io/v1/namespaces/a/leases/x', account);
  const uid = (named('system-leader-election') as unknown as { metadata: { uid: string } }).metadata
    .uid;
  expect(answer.headers['x-kubernetes-pf-flowschema-uid']).toBe(uid);
});

test('OPS-3: a server that finds the objects in order writes nothing', async () => {
  const directory = temporaryFolder();
  const store = { type: 'embedded', directory } as const;
  const first = await startTestServer({ store, flowControl: followed });
  const before = await storedObjects(first);
  await first.stop();
  const second = await start({ store, flowControl: followed });
  // The uids in headers show that the stored objects have been read, and therefore also repaired.
  await eventually(async () => {
    const { headers } = await second.get('/version');
    return headers['x-kubernetes-pf-flowschema-uid'] !== undefined;
  }, 'the stored objects to rule');
  const lease = `${flowGroup}/prioritylevelconfigurations/leader-election`;
  const old = (await second.remove(lease)).body;
  await eventually(async () => (await second.get(lease)).status === 200 && old);
  const versions = (objects: readonly Stored[]) =>
    objects
      .filter(({ metadata }) => metadata.name !== 'leader-election')
      .map(({ metadata }) => `${metadata.name} ${metadata.resourceVersion}`);
  expect(versions(await storedObjects(second))).toEqual(versions(before));
});

test('OPS-3: requests are classified from the start, with or without stored objects', async () => {
  const server = await start({ limits: { readsInFlightMax: 3, writesInFlightMax: 0 } });
  const page = '/debug/api_priority_and_fairness/dump_priority_levels';
  const { text } = await server.get(page);
  const names = text.split('\n').map((line) => line.split(',')[0]);
  expect(names.slice(1, -1)).toEqual([
    'catch-all',
    'exempt',
    'global-default',
    'leader-election',
    'node-high',
    'system',
    'workload-high',
    'workload-low',
  ]);
  expect((await server.get(configMaps, as('alice'))).status).toBe(200);
  const { text: metrics } = await server.get('/metrics');
  expect(metrics).toContain(
    'apiserver_flowcontrol_dispatched_requests_total{flow_schema="global-default",priority_level="global-default"} 1\n',
  );
});

test('OPS-3: long lists and widely watched writes take more seats', async () => {
  const server = await start({});
  const user = as('alice');
  const labels = '{flow_schema="global-default",priority_level="global-default"}';
  const sample = async (name: string) => {
    const { text } = await server.get('/metrics');
    const line = text.split('\n').find((candidate) => candidate.startsWith(`${name}${labels} `));
    return Number(line?.split(' ').at(-1) ?? 0);
  };
  const seats = () => sample('apiserver_flowcontrol_work_estimated_seats_sum');
  const make = (index: number) =>
    server.post(configMaps, {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: `c${index}` },
    });
  await Promise.all(Array.from({ length: 110 }, (_, index) => make(index)));
  expect((await server.get(configMaps, user)).body.items.length).toBeGreaterThanOrEqual(110);
  expect(await seats()).toBe(2);
  await server.get(`${configMaps}?limit=10`, user);
  expect(await seats()).toBe(3);
  const watches = await Promise.all(
    Array.from({ length: 11 }, () => server.watch(`${configMaps}?watch=true`)),
  );
  const before = await seats();
  expect((await server.remove(`${configMaps}/c0`, undefined, user)).status).toBe(200);
  expect(await seats()).toBe(before + 2);
  expect(await sample('apiserver_flowcontrol_watch_count_samples_sum')).toBe(11);
  await eventually(
    async () => (await sample('apiserver_flowcontrol_current_executing_seats')) === 0,
    'the seats to be free again',
  );
  for (const watch of watches) watch.close();
  await eventually(async () => {
    const then = await seats();
    await server.remove(`${configMaps}/c1`, undefined, user);
    return (await seats()) === then + 1;
  }, 'the watches to be forgotten');
});

test('OPS-3: flags select the mode and must leave seats', () => {
  const optionsOf = (...args: string[]) => {
    const outcome = readOptions(args);
    return outcome.kind === 'options' ? outcome.options.config : undefined;
  };
  expect(optionsOf()?.flowControl).toBeUndefined();
  const off = optionsOf('--enable-priority-and-fairness=false');
  expect(off?.flowControl).toEqual({ type: 'max-in-flight' });
  const none = ['--max-requests-inflight=0', '--max-mutating-requests-inflight=0'];
  expect(() => optionsOf(...none)).toThrow(FlagError);
  expect(() => optionsOf(...none)).toThrow('must add up to something positive');
  expect(optionsOf(...none, '--enable-priority-and-fairness=false')?.limits).toMatchObject({
    readsInFlightMax: Number.POSITIVE_INFINITY,
  });
});

test('OPS-1, OPS-3: the use of each level is measured exactly', async () => {
  const clock = new FakeClock();
  const server = await start({ clock });
  await server.get(configMaps, as('alice'));
  const prefix = 'apiserver_flowcontrol';
  const of = 'priority_level="global-default"';
  const counts = async () => {
    const { text } = await server.get('/metrics');
    const count = (series: string) => {
      const line = text
        .split('\n')
        .find((candidate) => candidate.startsWith(`${prefix}_${series} `));
      return Number(line?.split(' ').at(-1));
    };
    return [
      count(`demand_seats_count{${of}}`),
      count(`demand_seats_bucket{${of},le="0.2"}`),
      count(`priority_level_seat_utilization_bucket{phase="executing",${of},le="0"}`),
      count(`priority_level_request_utilization_bucket{phase="executing",${of},le="0"}`),
      count(`priority_level_request_utilization_bucket{phase="waiting",${of},le="0"}`),
    ];
  };
  const before = await counts();
  clock.advance(2000);
  const after = await counts();
  const grown = after.map((value, index) => value - (before[index] ?? 0));
  expect(grown).toEqual([2e9, 2e9, 2e9, 2e9, 2e9]);
});
