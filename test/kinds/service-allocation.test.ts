import type { Service } from '@wheelhouse/kinds/types/core/v1';
import type { JsonObject } from '@wheelhouse/machinery';
import { readOptions } from '@wheelhouse/server/testing';
import { describe, expect, test } from 'vitest';
import { temporaryFolder } from '../support/cleanup.ts';
import {
  type Answer,
  eventually,
  freshNamespace,
  type ResponseOf,
  startTestServer,
  type TestServer,
} from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';

/** Fourteen addresses and ten ports: few enough to exhaust. */
const small = { clusterIps: ['10.0.0.0/28', 'fd00::/124'], nodePorts: '30000-30009' };

const server = await withServer();

function service(name: string, spec: JsonObject = {}): JsonObject {
  const ports = [{ port: 80 }];
  return { apiVersion: 'v1', kind: 'Service', metadata: { name }, spec: { ports, ...spec } };
}

const at = (namespace: string, name = '') =>
  `/api/v1/namespaces/${namespace}/services${name === '' ? '' : `/${name}`}`;

async function make(
  of: TestServer,
  namespace: string,
  name: string,
  spec: JsonObject = {},
): Promise<Answer<ResponseOf<Service>>> {
  return of.post<ResponseOf<Service>>(at(namespace), service(name, spec));
}

const causes = (answer: Answer) =>
  (answer.body.details?.causes ?? []).map(
    (cause: { field: string; message: string }) => `${cause.field}: ${cause.message}`,
  );

async function withSmall(run: (smallServer: TestServer, namespace: string) => Promise<void>) {
  const smallServer = await startTestServer({ serviceRanges: small });
  try {
    await run(smallServer, await freshNamespace(smallServer));
  } finally {
    await smallServer.stop();
  }
}

describe('addresses', () => {
  test('a new Service gets an address of the range, a family, and a policy', async () => {
    const namespace = await freshNamespace(server);
    const made = await make(server, namespace, 'a');
    expect(made.status).toBe(201);
    const { spec } = made.body;
    expect(spec.clusterIP).toMatch(/^10\.0\.0\.\d+$/);
    expect(spec).toMatchObject({
      clusterIPs: [spec.clusterIP],
      ipFamilies: ['IPv4'],
      ipFamilyPolicy: 'SingleStack',
      type: 'ClusterIP',
      internalTrafficPolicy: 'Cluster',
    });
  });

  test('a requested address is granted when free and refused otherwise', async () => {
    const namespace = await freshNamespace(server);
    expect((await make(server, namespace, 'a', { clusterIP: '10.0.0.9' })).status).toBe(201);
    const second = await make(server, namespace, 'b', { clusterIP: '10.0.0.9' });
    expect(second.status).toBe(422);
    expect(second.body.message).toBe(
      'Service "b" is invalid: spec.clusterIPs: Invalid value: []string{"10.0.0.9"}: ' +
        'failed to allocate IP 10.0.0.9: provided IP is already allocated',
    );
    const outside = await make(server, namespace, 'c', { clusterIP: '10.9.9.9' });
    expect(outside.body.message).toContain(
      'failed to allocate IP 10.9.9.9: the provided IP (10.9.9.9) is not in the valid range. ' +
        'The range of valid IPs is 10.0.0.0/24',
    );
    const mapped = await make(server, namespace, 'd', { clusterIP: '::ffff:10.9.9.9' });
    expect(mapped.body.message).toContain(
      'failed to allocate IP ::ffff:10.9.9.9: the provided IP (10.9.9.9) is not in the valid range.',
    );
    await server.remove(at(namespace, 'a'));
    expect((await make(server, namespace, 'b', { clusterIP: '10.0.0.9' })).status).toBe(201);
  });

  test.each(['10.0.0.0', '10.0.0.255'])('%s is not allocated', async (clusterIP) => {
    const namespace = await freshNamespace(server);
    expect((await make(server, namespace, 'a', { clusterIP })).status).toBe(422);
  });

  test('headless and external Services get none', async () => {
    const namespace = await freshNamespace(server);
    const headless = await make(server, namespace, 'a', {
      clusterIP: 'None',
      selector: { a: 'b' },
    });
    expect(headless.body.spec).toMatchObject({ clusterIP: 'None', clusterIPs: ['None'] });
    expect(headless.body.spec.ipFamilies).toEqual(['IPv4']);
    const bare = await make(server, namespace, 'b', { clusterIP: 'None' });
    expect(bare.body.spec).toMatchObject({
      ipFamilies: ['IPv4', 'IPv6'],
      ipFamilyPolicy: 'RequireDualStack',
    });
    const external = { type: 'ExternalName', externalName: 'example.com' };
    const outside = await make(server, namespace, 'c', external);
    expect(outside.body.spec).not.toHaveProperty('clusterIP');
    expect(outside.body.spec).not.toHaveProperty('ipFamilies');
  });

  test('an update keeps the address and cannot change it', async () => {
    const namespace = await freshNamespace(server);
    const { body } = await make(server, namespace, 'a');
    const again = await server.put(at(namespace, 'a'), service('a', { selector: { a: 'b' } }));
    expect(again.body.spec.clusterIP).toBe(body.spec.clusterIP);
    const moved = await server.patch(
      at(namespace, 'a'),
      { spec: { clusterIP: '10.0.0.7' } },
      'merge',
    );
    expect(moved.status).toBe(422);
    expect(causes(moved)).toEqual([
      'spec.clusterIPs[0]: Invalid value: []string{"10.0.0.7"}: may not change once set',
    ]);
    const taken = await make(server, namespace, 'b', { clusterIP: '10.0.0.7' });
    expect(taken.status, 'the refused update holds nothing').toBe(201);
  });

  test('becoming external releases it, and returning allocates a new one', async () => {
    const namespace = await freshNamespace(server);
    const { body } = await make(server, namespace, 'a');
    const external = { spec: { type: 'ExternalName', externalName: 'example.com' } };
    const gone = await server.patch(at(namespace, 'a'), external, 'merge');
    expect(gone.status).toBe(200);
    expect(gone.body.spec).not.toHaveProperty('clusterIP');
    expect(gone.body.spec).not.toHaveProperty('ipFamilyPolicy');
    const heir = await make(server, namespace, 'b', { clusterIP: body.spec.clusterIP });
    expect(heir.status).toBe(201);
    const back = { spec: { type: 'ClusterIP', externalName: null } };
    const returned = await server.patch(at(namespace, 'a'), back, 'merge');
    expect(returned.body.spec.clusterIP).toMatch(/^10\.0\.0\./);
    expect(returned.body.spec.clusterIP).not.toBe(body.spec.clusterIP);
  });

  test('a dry run allocates nothing', async () => {
    const namespace = await freshNamespace(server);
    const dry = await server.post(`${at(namespace)}?dryRun=All`, service('a'));
    expect(dry.status).toBe(201);
    expect(dry.body.spec.clusterIP).toBe('10.0.0.0');
    const named = service('a', { clusterIP: '10.0.0.8' });
    expect((await server.post(`${at(namespace)}?dryRun=All`, named)).status).toBe(201);
    expect((await server.post(at(namespace), named)).status).toBe(201);
  });

  test('a PUT of a missing Service creates it', async () => {
    const namespace = await freshNamespace(server);
    const made = await server.put(at(namespace, 'a'), service('a'));
    expect(made.status).toBe(201);
    expect(made.body.spec.clusterIP).toMatch(/^10\.0\.0\./);
  });
});

describe('two families', () => {
  test('a policy requires both, prefers both, or uses one', () =>
    withSmall(async (smallServer, namespace) => {
      const both = await make(smallServer, namespace, 'a', { ipFamilyPolicy: 'RequireDualStack' });
      expect(both.body.spec.ipFamilies).toEqual(['IPv4', 'IPv6']);
      expect(both.body.spec.clusterIPs[1]).toMatch(/^fd00::/);
      const six = await make(smallServer, namespace, 'b', { ipFamilies: ['IPv6'] });
      expect(six.body.spec).toMatchObject({ ipFamilyPolicy: 'SingleStack', ipFamilies: ['IPv6'] });
      expect(six.body.spec.clusterIP).toMatch(/^fd00::/);
      const up = await smallServer.patch<ResponseOf<Service>>(
        at(namespace, 'b'),
        { spec: { ipFamilyPolicy: 'PreferDualStack' } },
        'merge',
      );
      expect(up.body.spec.ipFamilies).toEqual(['IPv6', 'IPv4']);
      expect(up.body.spec.clusterIPs[0]).toBe(six.body.spec.clusterIP);
      const [, secondary] = up.body.spec.clusterIPs;
      const less = { spec: { ipFamilies: ['IPv6'] } };
      const refused = await smallServer.patch(at(namespace, 'b'), less, 'merge');
      expect(causes(refused)).toEqual([
        'spec.ipFamilyPolicy: Invalid value: "PreferDualStack": ' +
          "must be 'SingleStack' to release the secondary IP family",
      ]);
      const down = await smallServer.patch(
        at(namespace, 'b'),
        { spec: { ipFamilyPolicy: 'SingleStack' } },
        'merge',
      );
      expect(down.body.spec).toMatchObject({
        ipFamilies: ['IPv6'],
        clusterIPs: [six.body.spec.clusterIP],
      });
      expect((await make(smallServer, namespace, 'c', { clusterIP: secondary })).status).toBe(201);
    }));

  test('a Service cannot become headless while it gets a second address', () =>
    withSmall(async (smallServer, namespace) => {
      await make(smallServer, namespace, 'a');
      const headless = { clusterIP: 'None', ipFamilyPolicy: 'PreferDualStack' };
      const refused = await smallServer.patch(at(namespace, 'a'), { spec: headless }, 'merge');
      const shown = expect.stringMatching(
        /^spec\.clusterIPs\[0\]: Invalid value: \[\]string\{"None", "fd00::\w+"\}: may not change/,
      );
      expect(causes(refused)).toEqual([
        shown,
        expect.stringContaining("'None' must be the first and only value"),
      ]);
    }));

  test('a single-stack server refuses the other family', async () => {
    const namespace = await freshNamespace(server);
    const six = await make(server, namespace, 'a', { ipFamilies: ['IPv6'] });
    expect(causes(six)).toEqual([
      'spec.ipFamilies[0]: Invalid value: "IPv6": not configured on this cluster',
    ]);
    const both = await make(server, namespace, 'a', { ipFamilyPolicy: 'RequireDualStack' });
    expect(causes(both)).toEqual([
      'spec.ipFamilyPolicy: Invalid value: "RequireDualStack": ' +
        'this cluster is not configured for dual-stack services',
    ]);
    const preferred = await make(server, namespace, 'a', { ipFamilyPolicy: 'PreferDualStack' });
    expect(preferred.body.spec).toMatchObject({
      ipFamilies: ['IPv4'],
      ipFamilyPolicy: 'PreferDualStack',
    });
  });
});

describe('node ports', () => {
  test('each port gets one, and equal port numbers share it', async () => {
    const namespace = await freshNamespace(server);
    const ports = [
      { name: 'tcp', port: 53 },
      { name: 'udp', port: 53, protocol: 'UDP' },
      { name: 'web', port: 80 },
    ];
    const made = await make(server, namespace, 'a', { type: 'NodePort', ports });
    const [tcp, udp, web] = made.body.spec.ports.map((port) => port.nodePort);
    expect(tcp).toBe(udp);
    expect(web).not.toBe(tcp);
    for (const port of [tcp, web]) expect(port).toSatisfy((n: number) => n >= 30000 && n <= 32767);
    expect(made.body.spec.externalTrafficPolicy).toBe('Cluster');
  });

  test('a requested port is granted when free and refused otherwise', async () => {
    const namespace = await freshNamespace(server);
    const spec = (nodePort: number) => ({ type: 'NodePort', ports: [{ port: 80, nodePort }] });
    expect((await make(server, namespace, 'a', spec(30100))).status).toBe(201);
    const taken = await make(server, namespace, 'b', spec(30100));
    expect(taken.body.message).toBe(
      'Service "b" is invalid: spec.ports[0].nodePort: Invalid value: 30100: ' +
        'provided port is already allocated',
    );
    const outside = await make(server, namespace, 'b', spec(99));
    expect(causes(outside)).toEqual([
      'spec.ports[0].nodePort: Invalid value: 99: provided port is not in the valid range. ' +
        'The range of valid ports is 30000-32767',
    ]);
    const update = { spec: { ports: [{ port: 80, nodePort: 30101 }] } };
    expect((await server.patch(at(namespace, 'a'), update, 'merge')).status).toBe(200);
    expect((await make(server, namespace, 'b', spec(30100))).status).toBe(201);
  });

  test('an update keeps ports by name, and another type releases them', async () => {
    const namespace = await freshNamespace(server);
    const made = await make(server, namespace, 'a', { type: 'NodePort' });
    const [{ nodePort }] = made.body.spec.ports;
    const again = await server.put<ResponseOf<Service>>(
      at(namespace, 'a'),
      service('a', { type: 'NodePort' }),
    );
    expect(again.body.spec.ports[0].nodePort).toBe(nodePort);
    const plain = await server.patch<ResponseOf<Service>>(
      at(namespace, 'a'),
      { spec: { type: 'ClusterIP' } },
      'merge',
    );
    expect(plain.status).toBe(200);
    expect(plain.body.spec.ports[0]).not.toHaveProperty('nodePort');
    expect(plain.body.spec).not.toHaveProperty('externalTrafficPolicy');
    const heir = { type: 'NodePort', ports: [{ port: 1, nodePort }] };
    expect((await make(server, namespace, 'b', heir)).status).toBe(201);
  });

  test('a change of the type releases the node ports of kept and removed ports', async () => {
    const namespace = await freshNamespace(server);
    const [web, more] = [
      { name: 'web', port: 80, nodePort: 30210 },
      { name: 'more', port: 81, nodePort: 30211 },
    ];
    await make(server, namespace, 'a', { type: 'NodePort', ports: [web, more] });
    const plain = { spec: { type: 'ClusterIP', ports: [web] } };
    const changed = await server.patch(at(namespace, 'a'), plain, 'merge');
    expect(changed.status, changed.text).toBe(200);
    expect(changed.body.spec.ports).toEqual([
      { name: 'web', protocol: 'TCP', port: 80, targetPort: 80 },
    ]);
    const heir = { type: 'NodePort', ports: [web, more] };
    expect((await make(server, namespace, 'b', heir)).status).toBe(201);
  });

  test('a change of the type clears the addresses of the load balancer', async () => {
    const namespace = await freshNamespace(server);
    await make(server, namespace, 'a', { type: 'LoadBalancer' });
    const status = { loadBalancer: { ingress: [{ ip: '192.0.2.1' }] } };
    const balanced = await server.patch<ResponseOf<Service>>(
      `${at(namespace, 'a')}/status`,
      { status },
      'merge',
    );
    expect(balanced.body.status.loadBalancer.ingress).toEqual([{ ip: '192.0.2.1', ipMode: 'VIP' }]);
    const labeled = { metadata: { labels: { a: 'b' } } };
    const same = await server.patch<ResponseOf<Service>>(at(namespace, 'a'), labeled, 'merge');
    expect(same.body.status.loadBalancer.ingress).toHaveLength(1);
    const changed = await server.patch(at(namespace, 'a'), { spec: { type: 'NodePort' } }, 'merge');
    expect(changed.body.status).toEqual({ loadBalancer: {} });
  });

  test('a dry run reports ports after the highest requested one', async () => {
    const namespace = await freshNamespace(server);
    const [web, more] = [
      { name: 'web', port: 80 },
      { name: 'more', port: 81 },
    ];
    const nodePorts = async (...ports: JsonObject[]) => {
      const path = `${at(namespace)}?dryRun=All`;
      const body = service('a', { type: 'NodePort', ports });
      const made = await server.post<ResponseOf<Service>>(path, body);
      return made.body.spec.ports.map(({ nodePort }) => nodePort);
    };
    expect(await nodePorts(web, more)).toEqual([32769, 32770]);
    expect(await nodePorts({ ...web, nodePort: 30220 }, more)).toEqual([30220, 30221]);
  });

  test('a load balancer may do without, and has a health check port when it is local', async () => {
    const namespace = await freshNamespace(server);
    const none = { type: 'LoadBalancer', allocateLoadBalancerNodePorts: false };
    const bare = await make(server, namespace, 'a', none);
    expect(bare.body.spec.ports[0]).not.toHaveProperty('nodePort');
    const local = { type: 'LoadBalancer', externalTrafficPolicy: 'Local' };
    const made = await make(server, namespace, 'b', local);
    const { healthCheckNodePort } = made.body.spec;
    expect(healthCheckNodePort).toBeGreaterThanOrEqual(30000);
    const changed = await server.patch(
      at(namespace, 'b'),
      { spec: { healthCheckNodePort: healthCheckNodePort + 1 } },
      'merge',
    );
    expect(causes(changed)).toEqual(['spec.healthCheckNodePort: Forbidden: field is immutable']);
    const taken = await make(server, namespace, 'c', { ...local, healthCheckNodePort });
    expect(taken.status).toBe(500);
    expect(taken.body.message).toBe(
      'Internal error occurred: failed to allocate requested HealthCheck NodePort ' +
        `${healthCheckNodePort}: provided port is already allocated`,
    );
    const open = { spec: { externalTrafficPolicy: 'Cluster' } };
    const cluster = await server.patch(at(namespace, 'b'), open, 'merge');
    expect(cluster.body.spec).not.toHaveProperty('healthCheckNodePort');
    const heir = await make(server, namespace, 'c', { ...local, healthCheckNodePort });
    expect(heir.status).toBe(201);
  });
});

describe('exactness', () => {
  test('concurrent writers get different addresses until the range is full', () =>
    withSmall(async (smallServer, namespace) => {
      const names = Array.from({ length: 30 }, (_, index) => `s${index}`);
      const made = await Promise.all(names.map((name) => make(smallServer, namespace, name)));
      const accepted = made.filter(({ status }) => status === 201);
      const ips = accepted.map(({ body }) => body.spec.clusterIP);
      expect(new Set(ips).size).toBe(14);
      expect(ips).toHaveLength(14);
      const refused = made.find(({ status }) => status !== 201);
      expect(refused?.status).toBe(500);
      expect(refused?.body.message).toMatch(
        /^Internal error occurred: failed to allocate a serviceIP: range is full$/,
      );
      await smallServer.remove(at(namespace));
      const again = await Promise.all(
        names.slice(0, 14).map((name) => make(smallServer, namespace, name)),
      );
      expect(again.map(({ status }) => status)).toEqual(Array(14).fill(201));
    }));

  test('ports run out too, and a failed write releases its ports', () =>
    withSmall(async (smallServer, namespace) => {
      const ports = (count: number) => ({
        type: 'NodePort',
        ports: Array.from({ length: count }, (_, index) => ({
          name: `p${index}`,
          port: index + 1,
        })),
      });
      const many = await make(smallServer, namespace, 'a', ports(11));
      expect(many.status).toBe(500);
      expect(many.body.message).toBe(
        'Internal error occurred: failed to allocate a nodePort: range is full',
      );
      const invalid = await make(smallServer, namespace, 'a', {
        ...ports(10),
        sessionAffinity: 'Odd',
      });
      expect(invalid.status).toBe(422);
      expect((await make(smallServer, namespace, 'a', ports(10))).status).toBe(201);
      const clash = await make(smallServer, namespace, 'a', { ipFamilyPolicy: 'RequireDualStack' });
      expect(clash.status).toBe(409);
      const names = Array.from({ length: 13 }, (_, index) => `s${index}`);
      const rest = await Promise.all(names.map((name) => make(smallServer, namespace, name)));
      expect(rest.every(({ status }) => status === 201)).toBe(true);
    }));

  test('a restart knows the allocations', async () => {
    const directory = temporaryFolder();
    const config = { store: { type: 'embedded', directory } as const, serviceRanges: small };
    const before = await startTestServer(config);
    const namespace = await freshNamespace(before);
    const names = Array.from({ length: 13 }, (_, index) => `s${index}`);
    const made = await Promise.all(names.map((name) => make(before, namespace, name)));
    const ips = new Set(made.map(({ body }) => body.spec.clusterIP));
    expect(ips.size).toBe(13);
    await before.stop();
    const after = await withServer(config);
    const [last, full] = [await make(after, namespace, 'x'), await make(after, namespace, 'y')];
    expect(ips).not.toContain(last.body.spec.clusterIP);
    expect(full.body.message).toContain('range is full');
  });

  test('a Service held by a finalizer keeps its address until it is gone', async () => {
    const namespace = await freshNamespace(server);
    const pinned = service('a', { clusterIP: '10.0.0.10' });
    pinned['metadata'] = { name: 'a', finalizers: ['example.com/wait'] };
    await server.post(at(namespace), pinned);
    await server.remove(at(namespace, 'a'));
    expect((await make(server, namespace, 'b', { clusterIP: '10.0.0.10' })).status).toBe(422);
    await server.patch(at(namespace, 'a'), { metadata: { finalizers: null } }, 'merge');
    expect((await make(server, namespace, 'b', { clusterIP: '10.0.0.10' })).status).toBe(201);
  });
});

describe('the server’s own Service', () => {
  test('exists in namespace default with its endpoints and is repaired', async () => {
    const ownServer = await startTestServer({
      advertiseAddress: '192.0.2.7',
      controllers: ['default-service-controller'],
    });
    const services = '/api/v1/namespaces/default/services/svc';
    const endpoints = '/api/v1/namespaces/default/endpoints/svc';
    const slices = '/apis/discovery.svc.io/v1/namespaces/default/endpointslices/svc';
    const found = (path: string) =>
      eventually(async () => {
        const answer = await ownServer.get(path);
        return answer.status === 200 && answer;
      }, path);
    try {
      const port = Number(new URL(ownServer.url).port);
      const { body } = await found(services);
      expect(body.spec).toMatchObject({ clusterIP: '10.0.0.1', type: 'ClusterIP' });
      expect(body.spec.ports).toEqual([
        { name: 'https', port: 443, protocol: 'TCP', targetPort: port },
      ]);
      expect(body.metadata.labels).toEqual({ component: 'apiserver', provider: 'svc' });
      expect((await found(endpoints)).body.subsets).toEqual([
        { addresses: [{ ip: '192.0.2.7' }], ports: [{ name: 'https', port, protocol: 'TCP' }] },
      ]);
      const slice = (await found(slices)).body;
      expect(slice).toMatchObject({ addressType: 'IPv4', ports: [{ name: 'https', port }] });
      expect(slice.metadata.labels).toMatchObject({ 'svc.io/service-name': 'svc' });
      await ownServer.remove(services);
      expect((await found(services)).body.metadata.uid).not.toBe(body.metadata.uid);
      await ownServer.patch(endpoints, { subsets: null }, 'merge');
      await eventually(async () => (await ownServer.get(endpoints)).body.subsets !== undefined);
    } finally {
      await ownServer.stop();
    }
  });
});

test.each([
  [['--service-cluster-ip-range=10.0.0.0/30'], 'must be at least 8 IP addresses'],
  [['--service-node-port-range=x'], '--service-node-port-range "x" is not a port range'],
])('%j stops the start with one line', (args, message) => {
  expect(() => readOptions(args)).toThrow(message);
});
