import type { EventList, Service } from '@wheelhouse/kinds/types/core/v1';
import type { IPAddress, ServiceCIDR } from '@wheelhouse/kinds/types/networking/v1beta1';
import type { JsonObject } from '@wheelhouse/machinery';
import { readFeatureGates } from '@wheelhouse/server/testing';
import { describe, expect, test } from 'vitest';
import {
  type Answer,
  eventually,
  freshNamespace,
  type ResponseOf,
  type TestServer,
} from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';

const group = '/apis/networking.k8s.io/v1beta1';
const ranges = `${group}/servicecidrs`;
const addresses = `${group}/ipaddresses`;

/** Six addresses: few enough to exhaust. */
const serviceRanges = { clusterIps: ['10.0.0.0/29'], nodePorts: '30000-30009' };
const on = {
  dialect: 'kubernetes' as const,
  runtimeConfig: new Map([['networking.k8s.io/v1beta1', true]]),
  featureGates: readFeatureGates(['MultiCIDRServiceAllocator=true']).gates,
  controllers: ['namespace-controller', 'service-cidr-controller'],
};

const server = await withServer(on);

const service = (name: string, spec: JsonObject = {}): JsonObject => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name },
  spec: { ports: [{ port: 80 }], ...spec },
});
const at = (namespace: string, name = '') =>
  `/api/v1/namespaces/${namespace}/services${name === '' ? '' : `/${name}`}`;
const range = (name: string, ...cidrs: string[]): JsonObject => ({
  apiVersion: 'networking.k8s.io/v1beta1',
  kind: 'ServiceCIDR',
  metadata: { name },
  spec: { cidrs },
});
const address = (name: string, parentRef?: JsonObject): JsonObject => ({
  apiVersion: 'networking.k8s.io/v1beta1',
  kind: 'IPAddress',
  metadata: { name },
  spec: parentRef === undefined ? {} : { parentRef },
});
const readyOf = ({ body }: Answer<ResponseOf<ServiceCIDR>>) =>
  (body.status?.conditions ?? []).find((condition) => condition.type === 'Ready');

const isReady = (target: TestServer, name: string) =>
  eventually(
    async () =>
      readyOf(await target.get<ResponseOf<ServiceCIDR>>(`${ranges}/${name}`))?.status === 'True',
    name,
  );

describe('VER-5: IPAddress objects of Services', () => {
  test('VER-5: the default ServiceCIDR is ready at the first request', async () => {
    const found = await server.get<ResponseOf<ServiceCIDR>>(`${ranges}/kubernetes`);
    expect(found.body.spec).toEqual({ cidrs: ['10.0.0.0/24'] });
    expect(readyOf(found)).toMatchObject({ status: 'True' });
    await eventually(async () => {
      const { metadata } = (await server.get(`${ranges}/kubernetes`)).body;
      return metadata.finalizers?.includes('networking.k8s.io/service-cidr-finalizer');
    }, 'the finalizer');
    const health = await server.get(
      '/readyz/poststarthook/start-kubernetes-service-cidr-controller',
    );
    expect(health.status).toBe(200);
    const role = await server.get(
      '/apis/rbac.authorization.k8s.io/v1/clusterroles/system:controller:service-cidrs-controller',
    );
    expect(role.body.rules).toContainEqual({
      apiGroups: ['networking.k8s.io'],
      resources: ['ipaddresses'],
      verbs: ['get', 'list', 'watch'],
    });
  });

  test('VER-5: a Service has an IPAddress, which follows its address', async () => {
    const namespace = await freshNamespace(server);
    const { body } = await server.post(at(namespace), service('a'));
    const ip = body.spec.clusterIP;
    const record = await server.get(`${addresses}/${ip}`);
    expect(record.body).toMatchObject({
      metadata: {
        labels: {
          'ipaddress.kubernetes.io/ip-family': 'IPv4',
          'ipaddress.kubernetes.io/managed-by': 'ipallocator.k8s.io',
        },
      },
      spec: { parentRef: { resource: 'services', namespace, name: 'a' } },
    });
    expect((await server.remove(at(namespace, 'a'))).status).toBe(200);
    expect((await server.get(`${addresses}/${ip}`)).status).toBe(404);
    await server.post(at(namespace), service('b', { clusterIP: ip }));
    expect(
      (await server.get<ResponseOf<IPAddress>>(`${addresses}/${ip}`)).body.spec.parentRef.name,
    ).toBe('b');
    const outside = { type: 'ExternalName', externalName: 'example.com', clusterIP: null };
    const changed = await server.patch(
      at(namespace, 'b'),
      { spec: { ...outside, clusterIPs: null } },
      'merge',
    );
    expect(changed.status, changed.text).toBe(200);
    expect((await server.get(`${addresses}/${ip}`)).status).toBe(404);
  });

  test('VER-5: an address recorded by another writer is not allocated', async () => {
    const namespace = await freshNamespace(server);
    const gateway = { group: 'gateway.example.com', resource: 'gateways', name: 'g' };
    expect((await server.post(addresses, address('10.0.0.4', gateway))).status).toBe(201);
    const taken = await server.post(at(namespace), service('a', { clusterIP: '10.0.0.4' }));
    expect([taken.status, taken.body.message]).toEqual([
      422,
      'Service "a" is invalid: spec.clusterIPs: Invalid value: []string{"10.0.0.4"}: ' +
        'failed to allocate IP 10.0.0.4: provided IP is already allocated',
    ]);
    const outside = await server.post(at(namespace), service('b', { clusterIP: '10.7.0.1' }));
    expect([outside.status, outside.body.message]).toEqual([
      422,
      'Service "b" is invalid: spec.clusterIPs: Invalid value: []string{"10.7.0.1"}: ' +
        'failed to allocate IP 10.7.0.1: the provided network does not match the current range',
    ]);
    expect((await server.get(`${addresses}/10.7.0.1`)).status).toBe(404);
  });

  test('VER-5: the generated name of an IPAddress is the prefix itself', async () => {
    const parentRef = { resource: 'gateways', name: 'g' };
    const body = { metadata: { generateName: '10.9.0.9' }, spec: { parentRef } };
    const made = await server.post(addresses, body);
    expect([made.status, made.body.metadata.name]).toEqual([201, '10.9.0.9']);
    const taken = await server.post(addresses, body);
    expect([taken.status, taken.body.message]).toEqual([
      409,
      'ipaddresses.networking.k8s.io "10.9.0.9" already exists, ' +
        'the server was not able to generate a unique name for the object',
    ]);
    const bad = await server.post(addresses, { ...body, metadata: { generateName: 'x' } });
    expect(bad.status).toBe(422);
  });

  test('VER-5: the name of an IPAddress is an address in canonical form', async () => {
    const gateway = { group: 'gateway.example.com', resource: 'gateways', name: 'g' };
    const problems = {
      'a/b': 'ParseAddr("a/b"): unable to parse IP',
      '..': 'ParseAddr(".."): IPv4 field must have at least one digit (at "..")',
      'FD00::1': 'must be a canonical format IP address',
    };
    for (const [name, problem] of Object.entries(problems)) {
      const made = await server.post(addresses, address(name, gateway));
      expect([made.status, made.body.message]).toEqual([
        422,
        `IPAddress.networking.k8s.io "${name}" is invalid: metadata.name: ` +
          `Invalid value: "${name}": ${problem}`,
      ]);
    }
  });

  test('VER-5: a refused Service and a dry run leave no IPAddress', async () => {
    const namespace = await freshNamespace(server);
    const wrong = service('a', { clusterIP: '10.0.0.5', sessionAffinity: 'Nonsense' });
    expect((await server.post(at(namespace), wrong)).status).toBe(422);
    expect((await server.get(`${addresses}/10.0.0.5`)).status).toBe(404);
    const dry = `${at(namespace)}?dryRun=All`;
    const made = await server.post(dry, service('b', { clusterIP: '10.0.0.5' }));
    expect(made.status, made.text).toBe(201);
    expect((await server.get(`${addresses}/10.0.0.5`)).status).toBe(404);
  });
});

describe('VER-5: additional ranges', async () => {
  const small = await withServer({ ...on, serviceRanges });
  await isReady(small, 'kubernetes');

  test('VER-5: a full range is extended by another, which its addresses protect', async () => {
    const namespace = await freshNamespace(small);
    for (let index = 0; index < 6; index += 1) {
      const made = await small.post(at(namespace), service(`s${index}`));
      expect(made.status, made.text).toBe(201);
    }
    const full = await small.post(at(namespace), service('full'));
    expect([full.status, full.body.message]).toEqual([
      500,
      'Internal error occurred: failed to allocate a serviceIP: range is full',
    ]);
    await small.post(ranges, range('more', '192.168.7.0/28', 'fd00:7::/112'));
    await isReady(small, 'more');
    const made = await small.post(at(namespace), service('seventh'));
    expect(made.status, made.text).toBe(201);
    expect(made.body.spec.clusterIP).toMatch(/^192\.168\.7\./);
    expect((await small.remove(`${ranges}/more`)).status).toBe(200);
    await eventually(async () => {
      const ready = readyOf(await small.get<ResponseOf<ServiceCIDR>>(`${ranges}/more`));
      return ready?.status === 'False' && ready.reason === 'Terminating';
    }, 'the range that is held');
    const later = await small.post(at(namespace), service('later'));
    expect(later.status).toBe(500);
    // Another range with the same addresses allows its deletion.
    await small.post(ranges, range('whole', '192.168.0.0/16', 'fd00:7::/64'));
    await isReady(small, 'whole');
    expect((await small.post(at(namespace), service('later'))).status).toBe(201);
    expect((await small.get(`${addresses}/${made.body.spec.clusterIP}`)).status).toBe(200);
  });
});

describe('VER-5: rules of ServiceCIDRs and IPAddresses', () => {
  const parent = { resource: 'services', namespace: 'default', name: 'a' };
  test.each<[JsonObject, string]>([
    [range('a'), 'spec.cidrs: Required value: at least one CIDR required'],
    [
      range('a', '10.0.0.0/24', '10.1.0.0/24'),
      'spec.cidrs: Invalid value: networking.ServiceCIDRSpec{CIDRs:[]string{"10.0.0.0/24", ' +
        '"10.1.0.0/24"}}: may specify no more than one IP for each IP family, i.e ' +
        '192.168.0.0/24 and 2001:db8::/64',
    ],
    [
      range('a', '10.0.0.1/24'),
      'spec.cidrs[0]: Invalid value: "10.0.0.1/24": wrong CIDR format, IP doesn\'t match ' +
        'network IP address',
    ],
    [
      range('a', '2001:DB8::/64'),
      'spec.cidrs[0]: Invalid value: "2001:DB8::/64": CIDR not in RFC 5952 canonical format',
    ],
    [
      range('a', '10.0.0.0'),
      'spec.cidrs[0]: Invalid value: "10.0.0.0": netip.ParsePrefix("10.0.0.0"): no \'/\'',
    ],
    [
      range('a', '10.0.0.0/33'),
      'spec.cidrs[0]: Invalid value: "10.0.0.0/33": netip.ParsePrefix("10.0.0.0/33"): ' +
        'prefix length out of range',
    ],
    [
      address('010.0.0.1', parent),
      'metadata.name: Invalid value: "010.0.0.1": ParseAddr("010.0.0.1"): IPv4 field has ' +
        'octet with leading zero',
    ],
    [
      address('2001:DB8::1', parent),
      'metadata.name: Invalid value: "2001:DB8::1": must be a canonical format IP address',
    ],
    [address('10.0.0.99'), 'spec.parentRef: Required value'],
    [address('10.0.0.99', { name: 'a' }), 'spec.parentRef.resource: Required value'],
  ])('VER-5: refused case %#', async (object, message) => {
    const path = object['kind'] === 'ServiceCIDR' ? ranges : addresses;
    const answer = await server.post(path, object);
    expect(answer.status, answer.text).toBe(422);
    expect(answer.body.message).toContain(message);
  });

  test('VER-5: every endpoint writes status, and status keeps its metadata', async () => {
    await server.post(ranges, range('written', '10.88.0.0/16'));
    const conditions = [
      {
        type: 'Custom',
        status: 'True',
        reason: 'R',
        message: 'm',
        lastTransitionTime: '2030-01-01T00:00:00Z',
      },
    ];
    const body = { metadata: { labels: { a: 'b' } }, status: { conditions } };
    const whole = await server.patch(`${ranges}/written?fieldManager=m`, body, 'merge');
    expect(whole.body).toMatchObject({ metadata: { labels: { a: 'b' } }, status: { conditions } });
    const { managedFields } = whole.body.metadata;
    expect(managedFields.find(({ manager }) => manager === 'm')?.fieldsV1).toMatchObject({
      'f:status': { 'f:conditions': { 'k:{"type":"Custom"}': { 'f:status': {} } } },
    });
    const changed = { metadata: { labels: { a: 'c' } }, spec: { cidrs: [] } };
    const status = await server.patch(`${ranges}/written/status`, changed, 'merge');
    expect([status.status, status.body]).toMatchObject([
      200,
      { metadata: { labels: { a: 'b' } }, spec: { cidrs: ['10.88.0.0/16'] } },
    ]);
  });

  test('VER-5: ranges and owners are immutable', async () => {
    await server.post(ranges, range('fixed', '172.16.0.0/24'));
    const spec = { cidrs: ['172.16.1.0/24'] };
    const moved = await server.patch(`${ranges}/fixed`, { spec }, 'merge');
    expect(moved.body.message).toContain('spec.cidrs: Invalid value');
    expect(moved.body.message).toContain('field is immutable');
    await server.post(addresses, address('172.16.0.9', parent));
    const parentRef = { name: 'b' };
    const transferred = await server.patch(
      `${addresses}/172.16.0.9`,
      { spec: { parentRef } },
      'merge',
    );
    expect(transferred.body.message).toContain('spec.parentRef: Invalid value');
  });
});

describe('VER-5: repair', () => {
  test('VER-5: a wrong IPAddress is recreated, and an orphaned one removed', async () => {
    const namespace = await freshNamespace(server);
    const { body } = await server.post(at(namespace), service('a'));
    const path = `${addresses}/${body.spec.clusterIP}`;
    await server.remove(path);
    const again = await eventually(async () => {
      const answer = await server.get(path);
      return answer.status === 200 ? answer : undefined;
    }, 'the record of the Service');
    expect(again.body.spec.parentRef).toMatchObject({ namespace, name: 'a' });
    await server.patch(path, { metadata: { labels: null } }, 'merge');
    await eventually(async () => {
      const { metadata } = (await server.get(path)).body;
      return metadata.labels?.['ipaddress.kubernetes.io/managed-by'] === 'ipallocator.k8s.io';
    }, 'the labels of the record');
    const own = (await server.get(path)).body.metadata.labels;
    const stray = address('10.0.0.7', { resource: 'services', namespace, name: 'a' });
    await server.post(addresses, { ...stray, metadata: { name: '10.0.0.7', labels: own } });
    await eventually(
      async () => (await server.get(`${addresses}/10.0.0.7`)).status === 404,
      'the removal of a record that no Service has',
    );
  });

  test('VER-5: Events report the repairs', async () => {
    const namespace = await freshNamespace(server);
    const { body } = await server.post<ResponseOf<Service>>(at(namespace), service('reported'));
    const { clusterIP, clusterIPs } = body.spec;
    expect(clusterIPs).toEqual([clusterIP]);
    await server.remove(`${addresses}/${clusterIP}`);
    const about = async (place: string, name: string) => {
      const fields = encodeURIComponent(`involvedObject.name=${name}`);
      const path = `/api/v1/namespaces/${place}/events?fieldSelector=${fields}`;
      const { items } = (await server.get<ResponseOf<EventList>>(path)).body;
      return items.length > 0 ? items : undefined;
    };
    const [event, ...more] = await eventually(() => about(namespace, 'reported'), 'an Event');
    expect(more).toEqual([]);
    expect(event).toMatchObject({
      metadata: { name: expect.stringMatching(/^reported\.[0-9a-f]+$/), namespace },
      involvedObject: {
        kind: 'Service',
        apiVersion: 'v1',
        namespace,
        name: 'reported',
        uid: body.metadata.uid,
      },
      type: 'Warning',
      reason: 'ClusterIPNotAllocated',
      action: 'ClusterIPAllocation',
      message: `Cluster IP [IPv4]: ${clusterIP} is not allocated; repairing`,
      reportingComponent: 'ipallocator-repair-controller',
      source: {},
    });
    const { labels } = (await server.get<ResponseOf<IPAddress>>(`${addresses}/${clusterIP}`)).body
      .metadata;
    const stray = address('10.0.0.8', { resource: 'services', namespace, name: 'reported' });
    await server.post(addresses, { ...stray, metadata: { name: '10.0.0.8', labels } });
    const [removal] = await eventually(() => about('default', '10.0.0.8'), 'an Event');
    expect(removal).toMatchObject({
      involvedObject: { kind: 'IPAddress', apiVersion: 'networking.k8s.io/v1beta1' },
      reason: 'IPAddressWrongReference',
      action: 'IPAddressAllocation',
      message: `IPAddress: 10.0.0.8 for Service ${namespace}/reported has a wrong reference; cleaning up`,
    });
  });
});
