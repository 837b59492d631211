import http2 from 'node:http2';
import { type Random, randomOf } from '@wheelhouse/machinery';
import { expect, test } from 'vitest';
import { adminToken, eventually } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';
import { as, dumpOf } from './flow-control-server.ts';

const server = await withServer({
  authorizationModes: ['AlwaysAllow'],
  limits: { readsInFlightMax: 3, writesInFlightMax: 2, requestTimeoutMs: 4000 },
});

const configMaps = '/api/v1/namespaces/default/configmaps';

const users: readonly ReturnType<typeof as>[] = [
  as('alice'),
  as('bob'),
  as('system:kube-scheduler'),
  as('system:node:n1', 'system:nodes'),
  as('system:serviceaccount:ns:robot', 'system:serviceaccounts'),
  as('system:serviceaccount:svc-system:robot'),
  as('root', 'system:masters'),
];

interface Step {
  readonly method: string;
  readonly path: string;
  /** Undefined: the body never ends. */
  readonly body: string | undefined;
}

function stepOf(random: Random, serial: number): Step {
  const object = JSON.stringify({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: `storm-${serial}` },
  });
  const steps: readonly Step[] = [
    { method: 'GET', path: configMaps, body: '' },
    { method: 'GET', path: `${configMaps}?watch=true`, body: '' },
    { method: 'GET', path: `${configMaps}?timeout=40ms`, body: '' },
    { method: 'GET', path: '/api/v1/nodes?limit=1', body: '' },
    { method: 'GET', path: '/nothing/there', body: '' },
    { method: 'GET', path: '/livez', body: '' },
    { method: 'POST', path: configMaps, body: object },
    { method: 'POST', path: configMaps, body: '{"kind":' },
    { method: 'POST', path: configMaps, body: undefined },
    { method: 'DELETE', path: `${configMaps}/storm-${serial - 5}`, body: '' },
    { method: 'PATCH', path: `${configMaps}/storm-${serial - 3}`, body: '[]' },
  ];
  return steps[random.below(steps.length)] as Step;
}

/** Sends a request, and aborts some of them; returns the status, or 0 without one. */
function play(
  session: http2.ClientHttp2Session,
  step: Step,
  leave: { readonly afterMs: number | undefined; readonly headers: Record<string, string> },
): Promise<number> {
  return new Promise((resolve) => {
    const { method, path, body } = step;
    const stream = session.request(
      {
        ':method': method,
        ':path': path,
        authorization: `Bearer ${adminToken}`,
        'content-type': method === 'PATCH' ? 'application/json-patch+json' : 'application/json',
        ...leave.headers,
      },
      { endStream: body === '' },
    );
    let status = 0;
    stream.on('response', (headers) => {
      status = Number(headers[':status']);
      if (path.endsWith('watch=true')) stream.close(http2.constants.NGHTTP2_CANCEL);
    });
    stream.on('error', () => {});
    stream.on('close', () => resolve(status));
    stream.resume();
    if (body === undefined) stream.write('{"apiVersion":');
    else if (body !== '') stream.end(body);
    if (leave.afterMs !== undefined) {
      setTimeout(() => stream.close(http2.constants.NGHTTP2_CANCEL), leave.afterMs);
    }
  });
}

test('OPS-3: no seat is lost and health checks answer, regardless of clients', async () => {
  const seed = Date.now() % 1_000_000;
  console.info(`storm seed ${seed}`);
  const random = randomOf(seed);
  const session = http2.connect(server.url, { rejectUnauthorized: false });
  session.on('error', () => {});
  const statuses = new Set<number>();
  const worker = async (first: number) => {
    for (let serial = first; serial < first + 40; serial += 1) {
      const step = stepOf(random, serial);
      const isEndless = step.body === undefined;
      const afterMs = isEndless || random.chance(0.25) ? random.below(60) : undefined;
      const { headers } = random.pick(users);
      const sent = headers as Record<string, string>;
      const status = await play(session, step, { afterMs, headers: sent });
      if (step.path === '/livez' && afterMs === undefined) expect(status, `seed ${seed}`).toBe(200);
      statuses.add(status);
    }
  };
  await Promise.all(Array.from({ length: 16 }, (_, at) => worker(at * 1000)));
  session.destroy();
  expect(statuses.has(200)).toBe(true);
  expect(statuses.has(500), `seed ${seed}: ${[...statuses]}`).toBe(false);
  await eventually(async () => {
    const rows = await dumpOf(server, 'dump_priority_levels');
    return rows.every((row) => row['IsIdle'] === 'true' || row['PriorityLevelName'] === 'exempt');
  }, `seed ${seed}: all levels idle`);
  const { text } = await server.get('/metrics');
  const left = text
    .split('\n')
    .filter((line) => /^apiserver_flowcontrol_current_(executing|inqueue)_/.test(line))
    .filter((line) => !line.includes('"exempt"') && !line.endsWith(' 0'));
  expect(left, `seed ${seed}`).toEqual([]);
  const queues = await dumpOf(server, 'dump_queues');
  const busy = queues.filter((row) => row['SeatsInUse'] !== '0' || row['MaxSeatsSum'] !== '0');
  expect(busy, `seed ${seed}`).toEqual([]);
});
