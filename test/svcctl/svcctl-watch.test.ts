import http from 'node:http';
import net, { type AddressInfo } from 'node:net';
import { MovableClock } from '@wheelhouse/machinery';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { mustCreate } from '../authentication/token-users.ts';
import { printsLikeKubectl } from '../clients/compare-with-kubectl.ts';
import { untilEnd } from '../support/cleanup.ts';
import {
  configMap,
  eventually,
  freshNamespace,
  selecting,
  type TestServer,
} from '../support/harness.ts';
import { listenLocally } from '../support/local-server.ts';
import { quickClock } from '../support/quick-clock.ts';
import { withServer } from '../support/with-server.ts';
import { svcctlFor } from './svcctl-run.ts';

const historyMs = 300_000;

/** Moved by tests, so that history expires. */
const clock = new MovableClock();
const server = await withServer({ dialect: 'kubernetes', compactionIntervalMs: historyMs, clock });
const home = untilEnd(svcctlFor(server));
let namespace: string;
let maps: string;

beforeEach(async () => {
  namespace = await freshNamespace(server);
  maps = `/api/v1/namespaces/${namespace}/configmaps`;
  await server.post(maps, configMap('x'));
});
afterEach(() => {
  home.onOutput = () => {};
  home.clock = undefined;
});

/** Starts a proxy of the server's port whose connections can be lost. */
async function startLink() {
  const { port } = new URL(server.server.url);
  const sockets = new Set<net.Socket>();
  const listener = net.createServer((near) => {
    const far = net.connect(Number(port), '127.0.0.1');
    for (const [socket, other] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(socket);
      socket.on('error', () => {}).on('close', () => other.destroy());
      socket.pipe(other);
    }
  });
  const listen = (on: number) =>
    new Promise<void>((resolve) => listener.listen(on, '127.0.0.1', resolve));
  await listen(0);
  const address = listener.address() as AddressInfo;
  const cut = () => {
    for (const socket of sockets) socket.destroy();
    sockets.clear();
  };
  const lose = async () => {
    const closed = new Promise((resolve) => listener.close(resolve));
    cut();
    await closed;
  };
  return {
    flags: `--server=https://127.0.0.1:${address.port} -v=6 -n ${namespace}`,
    cut,
    lose,
    restore: () => listen(address.port),
    stop: async () => {
      if (listener.listening) await lose();
    },
  };
}

/** Starts a command line; resolves once it watches. */
async function startWatching(line: string) {
  let text = '';
  home.onOutput = (chunk) => {
    text += chunk;
  };
  const outcome = home.run(line);
  await eventually(
    async () => /watch=true\S* 200/.test(text),
    () => `a watch; ${text}`,
  );
  return { outcome, text: () => text };
}

const withoutRequests = (text: string): string => text.replace(/^(GET|PATCH) .*\n/gm, '');

test('CLIENT-1: wait continues after a lost connection, until it is restored', async () => {
  home.clock = quickClock(50);
  const link = await untilEnd(startLink());
  const line = `wait configmap/x --for=jsonpath={.data.done}=yes --timeout=60s ${link.flags}`;
  const { outcome } = await startWatching(line);
  await link.lose();
  await server.patch(`${maps}/x`, { data: { done: 'yes' } }, 'merge');
  await link.restore();
  const { code, out, err } = await outcome;
  expect({ code, out, err: withoutRequests(err) }).toEqual({
    code: 0,
    out: 'configmap/x condition met\n',
    err: '',
  });
});

test('CLIENT-1: a watch that ends at once is followed by another after a delay', async () => {
  const quick = quickClock(50);
  home.clock = { ...quick, monotonic: () => 0 };
  const link = await untilEnd(startLink());
  const line = `wait configmap/x --for=jsonpath={.data.done}=yes --timeout=60s ${link.flags}`;
  const { outcome } = await startWatching(line);
  link.cut();
  await server.patch(`${maps}/x`, { data: { done: 'yes' } }, 'merge');
  expect((await outcome).out).toContain('configmap/x condition met\n');
  expect(quick.waits).toContain(1_000);
});

test('CLIENT-1: wait for a deletion continues after a lost connection', async () => {
  home.clock = quickClock(50);
  const link = await untilEnd(startLink());
  const { outcome } = await startWatching(`wait configmap/x --for=delete -o name ${link.flags}`);
  await link.lose();
  await server.remove(`${maps}/x`);
  await link.restore();
  const { code, out, err } = await outcome;
  expect({ code, out, err: withoutRequests(err) }).toEqual({
    code: 0,
    out: 'configmap/x\n',
    err: '',
  });
});

test('CLIENT-1: a lost connection ends get --watch and events --watch', async () => {
  for (const line of ['get configmap x --watch --no-headers', 'events --watch']) {
    const link = await untilEnd(startLink());
    const { outcome } = await startWatching(`${line} ${link.flags}`);
    await link.lose();
    const { code, err } = await outcome;
    expect({ line, code, err: withoutRequests(err) }).toEqual({ line, code: 0, err: '' });
  }
});

test('CLIENT-1: an object whose last change has expired can be watched', async () => {
  const { body } = await server.get(`${maps}/x`);
  const since = `${maps}?resourceVersion=${body.metadata.resourceVersion}&resourceVersionMatch=Exact`;
  await eventually(async () => {
    await clock.advance(historyMs);
    await server.post(maps, { metadata: { generateName: 'other-' } });
    return (await server.get(since)).status === 410 || undefined;
  }, 'the end of the history');
  for (const [flags, shown] of [
    ['-o name', 'configmap/x\nconfigmap/x\n'],
    ['--no-headers --output-watch-events', /^ADDED {2,}x .*\nMODIFIED {2,}x .*\n$/],
    ['--watch-only -o name', 'configmap/x\n'],
  ] as const) {
    const watching = home.start(`get configmap x --watch ${flags} -v=6 -n ${namespace}`);
    await eventually(async () => watching.err().includes('watch=true'), flags);
    await server.patch(`${maps}/x`, { data: { flags } }, 'merge');
    await eventually(
      async () => {
        const out = watching.out();
        return typeof shown === 'string' ? out === shown : shown.test(out);
      },
      () => `${flags}: ${watching.out()} ${watching.err()}`,
    );
    await watching.stop();
  }
});

test('CLIENT-1: get --raw prints a response as it arrives', async () => {
  const watching = home.start(`get --raw ${maps}?watch=true&resourceVersion=0`);
  await eventually(async () => /^{"type":"ADDED".*}\n/.test(watching.out()), 'the first event');
  await server.patch(`${maps}/x`, { data: { more: '' } }, 'merge');
  await eventually(async () => watching.out().includes('{"type":"MODIFIED"'), 'the second event');
  expect(await watching.stop()).toBe(130);
});

test('CLIENT-1: responses that are cut off are reported', async () => {
  const api = http.createServer((_, response) => {
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': '100' });
    response.write('{', () => response.destroy());
  });
  const flag = `--server=http://127.0.0.1:${await listenLocally(api)}`;
  const lost = 'unexpected EOF\n';
  expect(await home.run(`get cm x ${flag}`)).toEqual({
    code: 1,
    out: '',
    err: `error: unexpected error when reading response body. Please retry. Original error: ${lost}`,
  });
  expect(await home.run(`get --raw /x ${flag}`)).toEqual({
    code: 1,
    out: '{',
    err: `error: ${lost}`,
  });
  await new Promise((resolve) => api.close(resolve));
});

const deployment = {
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: 'd' },
  spec: selecting({ app: 'd' }),
};
const status = {
  status: { observedGeneration: 1, conditions: [{ type: 'Available', status: 'True' }] },
};

/** Lets one user delete objects that the user may not see, and another one get them. */
async function prepare(cluster: TestServer, place: string): Promise<void> {
  const rbac = `/apis/rbac.authorization.k8s.io/v1/namespaces/${place}`;
  for (const [name, verbs] of [
    ['bob', ['delete']],
    ['eve', ['delete', 'get']],
  ] as const) {
    await mustCreate(cluster, `${rbac}/roles`, {
      metadata: { name },
      rules: [{ apiGroups: [''], resources: ['configmaps'], verbs }],
    });
    await mustCreate(cluster, `${rbac}/rolebindings`, {
      metadata: { name },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name },
      subjects: [{ kind: 'User', name }],
    });
  }
}

printsLikeKubectl(
  'wait',
  [
    ['create -f -', JSON.stringify(deployment)],
    [`patch deployment d --subresource=status --type=merge -p ${JSON.stringify(status)}`],
    ['wait --for=condition=Available deployment/d --timeout=0'],
    ['wait --for=condition=available=TRUE deployment/d --timeout=0 -o name'],
    ['wait --for=condition=available=true=x deployment/d --timeout=0'],
    // The conditions concern the previous generation now.
    ['patch deployment d --type=merge -p {"spec":{"replicas":3}}'],
    ['wait --for=condition=Available deployment/d --timeout=0'],
    ['wait --for=condition=Available deployment/none --timeout=0'],
    ['wait --for=delete deployment/d --timeout=0'],
    ['create configmap c'],
    ['delete configmap c --as=bob'],
    ['create configmap c'],
    ['delete configmap c --as=eve'],
  ],
  { prepare },
);
