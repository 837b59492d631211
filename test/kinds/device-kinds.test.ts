import { readFileSync } from 'node:fs';
import type { ResourceClaim } from '@wheelhouse/kinds/types/resource/v1beta1';
import type { JsonObject } from '@wheelhouse/machinery';
import { readFeatureGates } from '@wheelhouse/server/testing';
import { describe, expect, test } from 'vitest';
import { type Answer, itemNames, type ResponseOf } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';

/** The reference's answer to a create of an object of these kinds. */
interface ReferenceAnswer {
  readonly resource: keyof typeof kinds;
  readonly object: { readonly metadata: JsonObject; readonly spec: JsonObject };
  readonly status: number;
  /** The errors; only their fields if another compiler words them. */
  readonly causes?: readonly string[];
  readonly fields?: readonly string[];
}

const resource = '/apis/resource.k8s.io/v1beta1';
const within = `${resource}/namespaces/default`;
const certificates = '/apis/certificates.k8s.io/v1alpha1';
const kinds = {
  deviceclasses: { kind: 'DeviceClass', at: resource },
  resourceslices: { kind: 'ResourceSlice', at: resource },
  resourceclaims: { kind: 'ResourceClaim', at: within },
  resourceclaimtemplates: { kind: 'ResourceClaimTemplate', at: within },
  clustertrustbundles: { kind: 'ClusterTrustBundle', at: certificates },
} as const;

const answers: readonly ReferenceAnswer[] = JSON.parse(
  readFileSync(new URL('device-kinds.json', import.meta.url), 'utf8'),
);

const gates = [
  'ClusterTrustBundle',
  'DynamicResourceAllocation',
  'DRAResourceClaimDeviceStatus',
].map((name) => `${name}=true`);

const server = await withServer({
  dialect: 'kubernetes',
  runtimeConfig: new Map([['api/all', true]]),
  featureGates: readFeatureGates(gates).gates,
});

const pathOf = (name: keyof typeof kinds) => `${kinds[name].at}/${name}`;

function body(name: keyof typeof kinds, object: JsonObject): JsonObject {
  const { kind, at } = kinds[name];
  return { apiVersion: at.split('/').slice(2, 4).join('/'), kind, ...object };
}

/** The causes of an answer, in the format of the reference's. */
const causesOf = (answer: Answer): string[] =>
  (answer.body.details?.causes ?? [])
    .map(({ field, message }: { field: string; message: string }) => `${field}: ${message}`)
    .sort();

const cases = answers.map((answer, index) => [`${index}: ${answer.resource}`, answer] as const);

test.each(cases)('VER-5: create %s is validated as by the reference', async (_, expected) => {
  const made = body(expected.resource, expected.object);
  const answer = await server.post(`${pathOf(expected.resource)}?dryRun=All`, made);
  expect([answer.status, answer.text]).toEqual([expected.status, expect.any(String)]);
  if (expected.causes !== undefined) expect(causesOf(answer)).toEqual(expected.causes);
  if (expected.fields !== undefined) {
    expect(answer.body.details.causes.map(({ field }: { field: string }) => field)).toEqual(
      expected.fields,
    );
  }
});

describe('claims of devices', () => {
  const request = { name: 'r', deviceClassName: 'c' };
  const create = async (name: string) => {
    const spec = { devices: { requests: [request] } };
    const made = body('resourceclaims', { metadata: { name }, spec });
    const answer = await server.post<ResponseOf<ResourceClaim>>(pathOf('resourceclaims'), made);
    expect(answer.status).toBe(201);
    return answer.body;
  };
  const result = (device: string) => ({ request: 'r', driver: 'd.example.com', pool: 'p', device });
  const allocation = (...devices: string[]) => ({ devices: { results: devices.map(result) } });
  const statusOf = (name: string) => `${pathOf('resourceclaims')}/${name}/status`;
  const change = (name: string, status: JsonObject) =>
    server.patch(statusOf(name), { status }, 'merge');

  test('VER-5: a request is for one device by default', async () => {
    const { spec } = await create('defaults');
    expect(spec.devices.requests).toEqual([{ ...request, allocationMode: 'ExactCount', count: 1 }]);
    const first = `${pathOf('resourceclaims').replace('v1beta1', 'v1alpha3')}/defaults`;
    expect((await server.get(first)).body.spec).toEqual(spec);
  });

  test('VER-5, CODEC-8: opaque parameters keep large integers', async () => {
    const opaque = { driver: 'd.example.com', parameters: { serial: 'large' } };
    const spec = { devices: { requests: [request], config: [{ opaque }] } };
    const made = body('resourceclaims', { metadata: { name: 'exact' }, spec });
    const text = JSON.stringify(made).replace('"large"', '9007199254740993');
    const answer = await server.post(`${pathOf('resourceclaims')}?dryRun=All`, text);
    expect([answer.status, answer.text]).toEqual([
      201,
      expect.stringContaining('"serial":9007199254740993'),
    ]);
  });

  test('VER-5: the spec of a claim and of a template is immutable', async () => {
    await create('kept');
    const otherSpec = { spec: { devices: { requests: [{ ...request, name: 's' }] } } };
    const claim = await server.patch(`${pathOf('resourceclaims')}/kept`, otherSpec, 'merge');
    expect([claim.status, claim.body.message]).toEqual([
      422,
      expect.stringContaining('field is immutable'),
    ]);
    const path = pathOf('resourceclaimtemplates');
    const spec = { spec: { devices: { requests: [request] } } };
    await server.post(path, body('resourceclaimtemplates', { metadata: { name: 't' }, spec }));
    const template = await server.patch(`${path}/t`, { spec: otherSpec }, 'merge');
    expect(template.body.message).toContain('field is immutable');
    const labels = { metadata: { labels: { a: 'b' } } };
    expect((await server.patch(`${path}/t`, labels, 'merge')).status).toBe(200);
  });

  test('VER-5: an allocation must match the claim’s requests and is immutable', async () => {
    await create('allocated');
    const strange = { devices: { results: [{ ...result('d'), request: 'q' }] } };
    expect(causesOf(await change('allocated', { allocation: strange }))).toEqual([
      'status.allocation.devices.results[0].request: Invalid value: "q": must be the name of a request in the claim',
    ]);
    const config = [{ source: 'FromElsewhere', opaque: { driver: 'd', parameters: {} } }];
    const wrong = { devices: { ...allocation('d').devices, config } };
    expect(causesOf(await change('allocated', { allocation: wrong }))).toEqual([
      'status.allocation.devices.config[0].source: Unsupported value: "FromElsewhere": supported values: "FromClaim", "FromClass"',
    ]);
    expect((await change('allocated', { allocation: allocation('d') })).status).toBe(200);
    const moved = await change('allocated', { allocation: allocation('e') });
    expect(moved.body.message).toContain('status.allocation: Invalid value');
  });

  test('VER-5: consumers reserve an allocated claim, each once', async () => {
    await create('reserved');
    const pod = { resource: 'pods', name: 'p', uid: 'u' };
    expect(causesOf(await change('reserved', { reservedFor: [pod] }))).toEqual([
      'status.reservedFor: Forbidden: may not be specified when `allocated` is not set',
    ]);
    const twice = { allocation: allocation('d'), reservedFor: [pod, { ...pod, name: '' }] };
    expect(causesOf(await change('reserved', twice))).toEqual([
      'status.reservedFor[1].name: Required value',
      'status.reservedFor[1].uid: Duplicate value: "u"',
    ]);
    const status = { allocation: allocation('d'), reservedFor: [pod] };
    expect((await change('reserved', status)).status).toBe(200);
  });

  test('VER-5: a write to the status of a claim keeps its metadata', async () => {
    await create('labeled');
    const metadata = { labels: { a: 'b' }, annotations: { a: 'b' }, finalizers: ['a.b/c'] };
    const patch = { metadata, status: { allocation: allocation('d') } };
    const answer = await server.patch(statusOf('labeled'), patch, 'merge');
    expect([answer.status, answer.body.status.allocation]).toMatchObject([200, allocation('d')]);
    for (const member of Object.keys(metadata)) {
      expect(answer.body.metadata).not.toHaveProperty(member);
    }
  });

  test('VER-5: a claim that is being deleted accepts no consumers but its own', async () => {
    await create('ending');
    const pod = { resource: 'pods', name: 'p', uid: 'u' };
    await change('ending', { allocation: allocation('d'), reservedFor: [pod] });
    const path = `${pathOf('resourceclaims')}/ending`;
    await server.patch(path, { metadata: { finalizers: ['a.b/c'] } }, 'merge');
    await server.remove(path);
    const renamed = await change('ending', { reservedFor: [{ ...pod, name: 'q' }] });
    expect(causesOf(renamed)).toEqual([
      'status.reservedFor: Forbidden: new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set',
    ]);
    expect((await change('ending', { reservedFor: [] })).status).toBe(200);
  });

  test('VER-5: an update validates claims and classes as new objects too', async () => {
    await create('changed');
    const parameters = { text: 'x'.repeat(11_000) };
    const config = [{ opaque: { driver: 'd.example.com', parameters } }];
    const claim = `${pathOf('resourceclaims')}/changed`;
    const changed = await server.patch(claim, { spec: { devices: { config } } }, 'merge');
    const tooLong = 'Too long: may not be more than 10240 bytes';
    expect(causesOf(changed)).toContain(`spec.devices.config[0].opaque.parameters: ${tooLong}`);
    const path = pathOf('deviceclasses');
    await server.post(path, body('deviceclasses', { metadata: { name: 'c' }, spec: {} }));
    const causes = causesOf(await server.patch(`${path}/c`, { spec: { config } }, 'merge'));
    expect(causes).toEqual(Array(2).fill(`spec.config[0].opaque.parameters: ${tooLong}`));
  });

  test('VER-5: the spec of a claim is immutable, even if names spell the same quantity', async () => {
    const spec = (name: string) => ({ devices: { requests: [{ ...request, name }] } });
    const metadata = { name: 'numbered' };
    await server.post(
      pathOf('resourceclaims'),
      body('resourceclaims', { metadata, spec: spec('1k') }),
    );
    const path = `${pathOf('resourceclaims')}/numbered`;
    const renamed = await server.patch(path, { spec: spec('1000') }, 'merge');
    expect(causesOf(renamed)).toEqual([expect.stringMatching(/^spec: .*: field is immutable$/)]);
  });

  test('VER-5: addresses of devices are compared including their host part', async () => {
    await create('addressed');
    const { request: _, ...device } = result('d');
    const networkData = { ips: ['10.0.0.1/24', '10.0.0.2/24', '10.0.0.1/24'] };
    const status = { allocation: allocation('d'), devices: [{ ...device, networkData }, device] };
    expect(causesOf(await change('addressed', status))).toEqual([
      'status.devices[0].networkData.ips[2]: Duplicate value: "10.0.0.1/24"',
      'status.devices[1].deviceID: Duplicate value: d.example.com/p/d',
    ]);
  });

  test('VER-5: device status is removed on deallocation', async () => {
    await create('reported');
    const { request: _, ...device } = result('d');
    const networkData = { interfaceName: 'eth0', ips: ['10.0.0.1/24'] };
    const devices = [{ ...device, networkData }];
    const early = await change('reported', { devices });
    expect(causesOf(early)).toEqual([
      'status.devices[0]: Invalid value: d.example.com/p/d: must be an allocated device in the claim',
    ]);
    const bad = [{ ...device, networkData: { ips: ['10.0.0.1'] }, data: [1] }];
    const refused = causesOf(
      await change('reported', { allocation: allocation('d'), devices: bad }),
    );
    expect(refused.map((cause) => cause.split(': ')[0])).toEqual([
      'status.devices[0].data',
      'status.devices[0].networkData.ips[0]',
    ]);
    const reported = await change('reported', { allocation: allocation('d'), devices });
    expect(reported.body.status.devices).toMatchObject(devices);
    const freed = await change('reported', { allocation: null });
    expect([freed.status, freed.body.status]).toEqual([200, {}]);
  });
});

describe('ResourceSlices', () => {
  const slice = (name: string, nodeName: string, driver: string) =>
    body('resourceslices', {
      metadata: { name },
      spec: { driver, nodeName, pool: { name: 'p', generation: 1, resourceSliceCount: 1 } },
    });
  const path = pathOf('resourceslices');

  test('VER-5: slices are selected by node and driver, in both versions', async () => {
    await server.post(path, slice('one', 'n1', 'a.example.com'));
    await server.post(path, slice('two', 'n1', 'b.example.com'));
    await server.post(path, slice('three', 'n2', 'b.example.com'));
    const select = (selector: string, at = path) =>
      server.get(`${at}?fieldSelector=${encodeURIComponent(selector)}`);
    expect(itemNames(await select('spec.nodeName=n1'))).toEqual(['one', 'two']);
    expect(itemNames(await select('spec.driver=b.example.com,spec.nodeName!=n1'))).toEqual([
      'three',
    ]);
    const first = path.replace('v1beta1', 'v1alpha3');
    expect(itemNames(await select('spec.nodeName=n2', first))).toEqual(['three']);
    const removed = await server.remove(`${path}?fieldSelector=spec.nodeName%3Dn1`);
    expect(removed.status).toBe(200);
    expect(itemNames(await server.get(path))).toEqual(['three']);
    const unknown = await select('spec.pool.name=p', first);
    expect([unknown.status, unknown.body.message]).toEqual([
      400,
      'field label not supported for resource.k8s.io/v1alpha3, Kind=ResourceSlice: spec.pool.name',
    ]);
  });

  test('VER-5: a slice keeps its driver, pool, and node, and its generation grows', async () => {
    await server.post(path, slice('kept', 'n', 'a.example.com'));
    const change = (spec: JsonObject) => server.patch(`${path}/kept`, { spec }, 'merge');
    const moved = await change({ driver: 'b.example.com', nodeName: 'm', pool: { name: 'q' } });
    expect(causesOf(moved)).toEqual([
      'spec.driver: Invalid value: "b.example.com": field is immutable',
      'spec.nodeName: Invalid value: "m": field is immutable',
      'spec.pool.name: Invalid value: "q": field is immutable',
    ]);
    const grown = await change({ pool: { generation: 2 } });
    expect([grown.status, grown.body.metadata.generation]).toEqual([200, 2]);
  });

  test('VER-5: an attribute has exactly one value', async () => {
    const made = slice('attributes', 'n', 'a.example.com');
    const devices = [{ name: 'd', basic: { attributes: { a: { int: 1, bool: true } } } }];
    Object.assign(made['spec'] as object, { devices });
    expect((await server.post(path, made)).body.message).toContain(
      'exactly one value must be specified',
    );
  });

  test('VER-5: device selectors are compiled only when they are new', async () => {
    const selectors = [{ cel: { expression: `device.driver == "${'a'.repeat(10 * 1024)}"` } }];
    const made = body('deviceclasses', { metadata: { name: 'x' }, spec: { selectors } });
    const long = await server.post(pathOf('deviceclasses'), made);
    expect(causesOf(long)).toEqual([
      'spec.selectors[0].cel.expression: Too long: may not be more than 10240 bytes',
    ]);
  });

  test('VER-5: a device selector may bind values', async () => {
    const select = (expression: string) => {
      const spec = { selectors: [{ cel: { expression } }] };
      const made = body('deviceclasses', { metadata: { name: 'named' }, spec });
      return server.post(`${pathOf('deviceclasses')}?dryRun=All`, made);
    };
    expect(causesOf(await select(''))[0]).toMatch(
      /ERROR: <input>:1:0: Syntax error: .*IDENTIFIER}$/,
    );
    const named = 'cel.bind(dra, device.attributes["dra.example.com"], dra.one && dra.other)';
    expect((await select(named)).status).toBe(201);
    expect(causesOf(await select('cel.bind(x.y, 1, true)')).join('')).toContain(
      'cel.bind() variable names must be simple identifiers',
    );
  });
});

test('VER-5: trust bundles are selected by their signer, which is immutable', async () => {
  const path = pathOf('clustertrustbundles');
  const { spec } = answers.find(
    ({ resource: name, status }) => name === 'clustertrustbundles' && status === 201,
  )?.object ?? { spec: {} };
  const signerName = 'example.com/s';
  const make = (name: string, more: JsonObject) =>
    server.post(
      path,
      body('clustertrustbundles', { metadata: { name }, spec: { ...spec, ...more } }),
    );
  expect((await make('free', {})).status).toBe(201);
  expect((await make('example.com:s:x', { signerName })).status).toBe(201);
  const bySigner = await server.get(`${path}?fieldSelector=spec.signerName%3D${signerName}`);
  expect(itemNames(bySigner)).toEqual(['example.com:s:x']);
  const moved = await server.patch(`${path}/free`, { spec: { signerName } }, 'merge');
  expect(causesOf(moved)).toContainEqual(
    `spec.signerName: Invalid value: "${signerName}": field is immutable`,
  );
  const { trustBundle } = spec as { trustBundle: string };
  const tooLarge = await make('large', { trustBundle: trustBundle + '\n'.repeat(1024 * 1024) });
  expect(causesOf(tooLarge)).toEqual([
    'spec.trustBundle: Too long: may not be more than 1048576 bytes',
  ]);
  const start = (metadata: JsonObject) =>
    server.post(path, body('clustertrustbundles', { metadata, spec: { ...spec, signerName } }));
  expect(causesOf(await start({}))).toEqual([
    'metadata.name: Required value: name or generateName is required',
  ]);
  expect((await start({ generateName: 'example.com:s:x-' })).status).toBe(201);
  const misnamed = await start({ name: 'a/b', labels: { a: '-' } });
  expect(misnamed.body.details.causes.map(({ field }) => field)).toEqual([
    'metadata.name',
    'metadata.labels',
  ]);
  expect(causesOf(await start({ generateName: 'x-' }))[0]).toBe(
    'metadata.generateName: Invalid value: "x-": ClusterTrustBundle for signerName ' +
      `${signerName} must be named with prefix example.com:s:`,
  );
});
