import http2 from 'node:http2';
import {
  decodeCbor,
  decodeMessage,
  encodeCbor,
  encodeEnvelope,
  openEnvelope,
  seal,
  WireReader,
} from '@wheelhouse/codec';
import { schemaOf } from '@wheelhouse/kinds';
import type { JsonObject } from '@wheelhouse/machinery';
import { decodeTyped } from '@wheelhouse/schema';
import { beforeAll, describe, expect, test } from 'vitest';
import { adminToken, configMap, eventually, freshNamespace } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';

const protobuf = 'application/vnd.svc.protobuf';
const cbor = 'application/cbor';

const server = await withServer({ cborServed: true });

beforeAll(async () => {
  await server.post('/apis/apiextensions.svc.io/v1/customresourcedefinitions', widgets);
  await eventually(async () => (await server.get('/apis/example.com/v1/widgets')).status === 200);
});

const widgets = {
  apiVersion: 'apiextensions.svc.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'widgets.example.com' },
  spec: {
    group: 'example.com',
    scope: 'Namespaced',
    names: { plural: 'widgets', kind: 'Widget' },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        schema: {
          openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
        },
      },
    ],
  },
};

interface RawAnswer {
  readonly status: number;
  readonly type: string;
  readonly bytes: Buffer;
}

/** Sends a request with a binary answer; a watch is aborted once `enough` of it has arrived. */
function raw(
  call: { method?: string; path: string; accept: string; type?: string; body?: Buffer },
  enough: (bytes: Buffer) => boolean = () => false,
): Promise<RawAnswer> {
  return new Promise((resolve, reject) => {
    const session = http2.connect(server.url, { rejectUnauthorized: false });
    const headers = {
      ':method': call.method ?? 'GET',
      ':path': call.path,
      authorization: `Bearer ${adminToken}`,
      accept: call.accept,
      ...(call.type === undefined ? {} : { 'content-type': call.type }),
    };
    const stream = session.request(headers, { endStream: false });
    let status = 0;
    let type = '';
    let bytes: Buffer = Buffer.alloc(0);
    const done = () => {
      session.destroy();
      resolve({ status, type, bytes });
    };
    stream.on('response', (headers) => {
      status = Number(headers[':status']);
      type = String(headers['content-type']);
    });
    stream.on('data', (chunk: Buffer) => {
      bytes = Buffer.concat([bytes, chunk]);
      if (enough(bytes)) done();
    });
    stream.on('end', done);
    stream.on('error', reject);
    stream.end(call.body);
  });
}

/** Whether the first frame of a protobuf watch is complete. */
const isWholeFrame = (bytes: Buffer) =>
  bytes.length >= 4 && bytes.length >= 4 + bytes.readUInt32BE();

function openAs(typeName: string, body: Buffer) {
  const { apiVersion, kind, raw: message } = openEnvelope(body);
  const schema = schemaOf(typeName);
  return decodeTyped(schema)({ ...decodeMessage(schema, message), apiVersion, kind });
}

/** The object of a protobuf watch's first frame, an ADDED one. */
function openAdded(typeName: string, frames: Buffer) {
  const event = new WireReader(frames.subarray(4, 4 + frames.readUInt32BE()));
  expect(event.key()).toEqual({ number: 1, wireType: 2 });
  expect(event.bytes().toString()).toBe('ADDED');
  event.key();
  const extension = new WireReader(event.bytes());
  extension.key();
  return openAs(typeName, extension.bytes());
}

describe('bytes', () => {
  test('are returned in one line and without the unused bits of their last character', async () => {
    const path = `/api/v1/namespaces/${await freshNamespace(server)}/configmaps`;
    const body = configMap('a', { binaryData: { b: 'YW\nFhYW\r\nF=', c: 'YR==' } });
    const made = await server.post(path, body);
    expect(made.body).toMatchObject({ binaryData: { b: 'YWFhYWE=', c: 'YQ==' } });
    // The stored object is the same, so this changes nothing.
    const put = await server.put(`${path}/a`, { ...made.body, binaryData: body.binaryData });
    expect(put.body.metadata.resourceVersion).toBe(made.body.metadata.resourceVersion);
  });

  test.each([
    ['YQ=a', 2],
    ['Y\nQ', 1],
    ['YQ==\n\nx', 6],
  ])('%j is malformed at byte %d', async (text, at) => {
    const body = configMap('a', { binaryData: { b: text } });
    const refused = await server.post('/api/v1/namespaces/default/configmaps', body);
    expect(refused.status).toBe(400);
    expect(refused.body.message).toMatch(new RegExp(`: illegal base64 data at input byte ${at}$`));
  });
});

describe('protobuf', () => {
  test('CODEC-3: an object round-trips and equals its JSON', async () => {
    const path = `/api/v1/namespaces/${await freshNamespace(server)}/configmaps`;
    const object = configMap('a', { binaryData: { b: 'AAH/' } });
    const body = encodeEnvelope(schemaOf('core.v1.ConfigMap'), object);
    const made = await raw({ method: 'POST', path, accept: protobuf, type: protobuf, body });
    expect(made).toMatchObject({ status: 201, type: protobuf });
    const inJson = (await server.get(`${path}/a`)).body;
    expect(inJson).toMatchObject({ data: { a: '1' }, binaryData: { b: 'AAH/' } });
    expect(openAs('core.v1.ConfigMap', made.bytes)).toEqual(inJson);
    const again = await raw({ path: `${path}/a`, accept: protobuf });
    expect(again.bytes.equals(made.bytes)).toBe(true);
  });

  test('CODEC-3: a body without a type takes the type of the path', async () => {
    const path = `/api/v1/namespaces/${await freshNamespace(server)}`;
    const send = (method: string, at: string, [type, object]: [string, JsonObject]) =>
      raw({
        method,
        path: `${path}/${at}`,
        accept: 'application/json',
        type: protobuf,
        body: encodeEnvelope(schemaOf(type), object),
      });
    const map = { metadata: { name: 'a' }, data: { k: 'v' } };
    expect(await send('POST', 'configmaps', ['core.v1.ConfigMap', map])).toMatchObject({
      status: 201,
    });
    const next = { ...map, data: { k: 'w' } };
    const replaced = await send('PUT', 'configmaps/a', ['core.v1.ConfigMap', next]);
    expect(JSON.parse(replaced.bytes.toString())).toMatchObject({ kind: 'ConfigMap', ...next });
    await server.post(`${path}/serviceaccounts`, { metadata: { name: 's' } });
    const request = { spec: { expirationSeconds: 600 } };
    const tokens = 'serviceaccounts/s/token';
    const token = await send('POST', tokens, ['authentication.v1.TokenRequest', request]);
    expect(token.status, token.bytes.toString()).toBe(201);
    const options = { preconditions: { uid: 'other' } };
    const refused = await send('DELETE', 'configmaps/a', ['meta.v1.DeleteOptions', options]);
    expect(refused.status, refused.bytes.toString()).toBe(409);
  });

  test('CODEC-3: an unreadable object is 400 and named by its kind, if that is readable', async () => {
    const path = '/api/v1/namespaces/default/configmaps';
    const unrecognized = 'the object provided is unrecognized (must be of type ConfigMap): ';
    const unfit = 'ConfigMap in version "v1" cannot be handled as a ConfigMap: ';
    const type = { apiVersion: 'v1', kind: 'ConfigMap' };
    for (const [body, message] of [
      [Buffer.alloc(0), `${unrecognized}empty data (<empty>)`],
      [Buffer.from('k8s\0'), `${unrecognized}empty body (6b387300)`],
      [seal(type, Buffer.from([0xff])), `${unfit}unexpected EOF`],
      [
        seal({ ...type, kind: 'Nothing' }, Buffer.from([0xff])),
        'Nothing in version "v1" cannot be handled as a ConfigMap: no kind "Nothing" is registered ' +
          'for version "v1" in scheme "pkg/api/legacyscheme/scheme.go:30"',
      ],
    ] as const) {
      const answer = await server.request('POST', path, { body, type: protobuf });
      expect([answer.status, answer.body.message]).toEqual([400, message]);
    }
  });

  test('CODEC-3: a list is available in protobuf, also for a JSON request', async () => {
    const path = `/api/v1/namespaces/${await freshNamespace(server)}/configmaps`;
    for (const name of ['a', 'b']) {
      const body = Buffer.from(JSON.stringify(configMap(name)));
      const type = 'application/json';
      const made = await raw({ method: 'POST', path, accept: protobuf, type, body });
      expect(made).toMatchObject({ status: 201, type: protobuf });
    }
    const list = await raw({ path, accept: protobuf });
    expect(list).toMatchObject({ status: 200, type: protobuf });
    const decoded = openAs('core.v1.ConfigMapList', list.bytes);
    const inJson = (await server.get(path)).body;
    expect(decoded.kind).toBe('ConfigMapList');
    expect(decoded.metadata).toEqual(inJson.metadata);
    expect(decoded.items).toEqual(inJson.items);
  });

  test('CODEC-3, WATCH-9: a watch is a stream of length-prefixed frames', async () => {
    const path = `/api/v1/namespaces/${await freshNamespace(server)}/configmaps`;
    await server.post(path, configMap('a'));
    const accept = `${protobuf};stream=watch`;
    const answer = await raw({ path: `${path}?watch=1`, accept }, isWholeFrame);
    expect(answer).toMatchObject({ status: 200, type: accept });
    expect(openAdded('core.v1.ConfigMap', answer.bytes)).toEqual(
      (await server.get(`${path}/a`)).body,
    );
  });

  test('CODEC-3: failures are a Status in protobuf', async () => {
    const answer = await raw({
      path: '/api/v1/namespaces/default/configmaps/none',
      accept: protobuf,
    });
    expect(answer).toMatchObject({ status: 404, type: protobuf });
    const status = openAs('meta.v1.Status', answer.bytes);
    expect(status).toMatchObject({ reason: 'NotFound', code: 404, status: 'Failure' });
  });

  test('CODEC-3: custom kinds have no protobuf: 406, 415, or JSON if Accept lists it', async () => {
    const path = '/apis/example.com/v1/namespaces/default/widgets';
    const refused = await server.get(path, { accept: protobuf });
    expect(refused.status).toBe(406);
    const both = await server.get(path, { accept: `${protobuf}, application/json` });
    expect(both).toMatchObject({ status: 200, body: { kind: 'WidgetList' } });
    const posted = await server.request('POST', path, {
      body: Buffer.from('k8s\0'),
      type: protobuf,
    });
    expect(posted.status).toBe(415);
  });

  test('CODEC-3, CODEC-6, WATCH-9: metadata of custom kinds has protobuf', async () => {
    const path = `/apis/example.com/v1/namespaces/${await freshNamespace(server)}/widgets`;
    const widget = { apiVersion: 'example.com/v1', kind: 'Widget', metadata: { name: 'a' } };
    const { metadata } = (await server.post(path, widget)).body;
    const as = (kind: string) => `${protobuf};as=${kind};v=v1;g=meta.svc.io`;
    const single = await raw({ path: `${path}/a`, accept: as('PartialObjectMetadata') });
    expect(single).toMatchObject({ status: 200, type: protobuf });
    const decoded = openAs('meta.v1.PartialObjectMetadata', single.bytes);
    expect(decoded).toMatchObject({ kind: 'PartialObjectMetadata', metadata: { name: 'a' } });
    expect((decoded.metadata as JsonObject)['uid']).toBe(metadata.uid);
    const list = await raw({ path, accept: as('PartialObjectMetadataList') });
    expect(list).toMatchObject({ status: 200, type: protobuf });
    const { items } = openAs('meta.v1.PartialObjectMetadataList', list.bytes);
    expect(items).toMatchObject([{ metadata: { uid: metadata.uid } }]);
    const watch = await raw(
      { path: `${path}?watch=1`, accept: as('PartialObjectMetadata') },
      isWholeFrame,
    );
    expect(watch).toMatchObject({ status: 200, type: `${protobuf};stream=watch` });
    const table = await raw({ path, accept: as('Table') });
    expect(table.status).toBe(406);
  });

  test('CODEC-3, CODEC-6, WATCH-9: metadata of the older version is the same', async () => {
    const path = `/api/v1/namespaces/${await freshNamespace(server)}/configmaps`;
    const { metadata } = (await server.post(path, configMap('a'))).body;
    const accept = `${protobuf};as=PartialObjectMetadata;v=v1beta1;g=meta.svc.io`;
    const single = await raw({ path: `${path}/a`, accept });
    expect(single).toMatchObject({ status: 200, type: protobuf });
    const expected = {
      apiVersion: 'meta.svc.io/v1beta1',
      kind: 'PartialObjectMetadata',
      metadata: { uid: metadata.uid, resourceVersion: metadata.resourceVersion },
    };
    expect(openAs('meta.v1.PartialObjectMetadata', single.bytes)).toMatchObject(expected);
    const watch = await raw({ path: `${path}?watch=1`, accept }, isWholeFrame);
    expect(watch).toMatchObject({ status: 200, type: `${protobuf};stream=watch` });
    expect(openAdded('meta.v1.PartialObjectMetadata', watch.bytes)).toMatchObject(expected);
  });

  test('CODEC-3: a body that is not protobuf is 400', async () => {
    const path = '/api/v1/namespaces/default/configmaps';
    for (const body of [Buffer.from('{}'), Buffer.from('k8s\0\xff', 'latin1'), Buffer.alloc(0)]) {
      const answer = await server.request('POST', path, { body, type: protobuf });
      expect(answer.status, body.toString('hex')).toBe(400);
      expect(answer.body.reason).toBe('BadRequest');
    }
  });

  /** A ConfigMap with a name and one entry, followed by other fields, in its envelope. */
  const mapWith = (hex: string) => {
    const metadata = Buffer.from('0a040a026d31', 'hex');
    const data = Buffer.from('12060a016112016212060a016312016412060a016512017a', 'hex');
    const type = { apiVersion: 'v1', kind: 'ConfigMap' };
    return seal(type, Buffer.concat([metadata, data, Buffer.from(hex, 'hex')]));
  };

  test.each([
    ['a group', '93039403'],
    ['groups in a group', '93039b0308029c039403'],
    ['the highest field number', 'faffffff0f0161'],
    ['a field number beyond 29 bits', '82808080100161'],
  ])('CODEC-3: %s of an unknown field is skipped', async (_, hex) => {
    const path = '/api/v1/namespaces/default/configmaps?dryRun=All';
    const answer = await server.request('POST', path, { body: mapWith(hex), type: protobuf });
    expect([answer.status, answer.body.data]).toEqual([201, { a: 'b', c: 'd', e: 'z' }]);
  });

  test.each([
    ['an open group', '9303', 'unexpected EOF'],
    ['the end of a group', '9403', 'proto: ConfigMap: wiretype end group for non-group'],
    ['a length beyond the end', '12808080808020', 'unexpected EOF'],
    [
      'a negative field number',
      '92ffffffffffffffff01',
      'proto: ConfigMap: illegal tag -14 (wire type 18446744073709551506)',
    ],
  ])('CODEC-3: %s is 400', async (_, hex, message) => {
    const path = '/api/v1/namespaces/default/configmaps?dryRun=All';
    const answer = await server.request('POST', path, { body: mapWith(hex), type: protobuf });
    const unfit = 'ConfigMap in version "v1" cannot be handled as a ConfigMap: ';
    expect([answer.status, answer.body.message]).toEqual([400, unfit + message]);
  });

  test('CODEC-3: a message that occurs twice adds to its first occurrence', async () => {
    const path = '/api/v1/namespaces/default/configmaps?dryRun=All';
    const labels = ['0a085a060a016112016c', '0a085a060a016212016d'];
    const body = mapWith(labels.join(''));
    const answer = await server.request('POST', path, { body, type: protobuf });
    expect(answer.status, answer.text).toBe(201);
    expect(answer.body.metadata).toMatchObject({ name: 'm1', labels: { a: 'l', b: 'm' } });
  });

  test.each([
    ['0805', 'TypeMeta'],
    ['0a020805', 'APIVersion'],
    ['1001', 'Raw'],
  ])('CODEC-3: an envelope with an integer for a text (%s) is 400', async (hex, field) => {
    const body = Buffer.from(`6b387300${hex}`, 'hex');
    const path = '/api/v1/namespaces/default/configmaps';
    const answer = await server.request('POST', path, { body, type: protobuf });
    expect(answer.status).toBe(400);
    expect(answer.body.message).toContain(`: proto: wrong wireType = 0 for field ${field} (`);
  });

  test('CODEC-3: nanoseconds of a time may exceed a second', async () => {
    const path = '/apis/coordination.svc.io/v1/namespaces/default/leases?dryRun=All';
    // spec.renewTime: 1,700,000,000 seconds and 2,000,005,000 nanoseconds
    const time = '0880e2cfaa061088cfd6b907';
    const raw = Buffer.from(`0a030a016c120e220c${time}`, 'hex');
    const body = seal({ apiVersion: 'coordination.svc.io/v1', kind: 'Lease' }, raw);
    const answer = await server.request('POST', path, { body, type: protobuf });
    expect(answer.status, answer.text).toBe(201);
    expect(answer.body.spec.renewTime).toBe('2023-11-14T22:13:22.000005Z');
  });

  test('CODEC-8: 64-bit integers and microseconds survive every encoding', async () => {
    const namespace = await freshNamespace(server);
    const path = `/apis/coordination.svc.io/v1/namespaces/${namespace}/leases`;
    const renewTime = '2024-05-06T07:08:09.123456Z';
    const spec = { leaseDurationSeconds: 2147483647, renewTime };
    const lease = {
      apiVersion: 'coordination.svc.io/v1',
      kind: 'Lease',
      metadata: { name: 'l' },
      spec,
    };
    expect((await server.post(path, lease)).status).toBe(201);
    const answer = await raw({ path: `${path}/l`, accept: protobuf });
    expect(openAs('coordination.v1.Lease', answer.bytes).spec).toEqual(spec);
    const inCbor = await raw({ path: `${path}/l`, accept: cbor });
    expect(decodeCbor(inCbor.bytes)).toMatchObject({ spec });
  });
});

describe('numbers in YAML', () => {
  test('CODEC-2: decimal integers beyond 64 bits are floats, and others strings', async () => {
    const path = `/apis/example.com/v1/namespaces/${await freshNamespace(server)}/widgets`;
    const spec = [
      'big: 18446744073709551615',
      'decimal: 18446744073709551616',
      'hex: 0x10000000000000000',
      'small: 0.00001',
      'large: 1234567.5',
      '-9223372036854775809: a',
    ];
    const head = 'apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: numbers}\nspec:\n  ';
    const body = head + spec.join('\n  ');
    const made = await server.request('POST', path, { body, type: 'application/yaml' });
    expect(made.status, made.text).toBe(201);
    const yaml = await server.get(`${path}/numbers`, { accept: 'application/yaml' });
    const shown = [
      '"-9.223372e+18": a',
      'big: 18446744073709551615',
      'decimal: 1.8446744073709552e+19',
      'hex: 0x10000000000000000',
      'large: 1.2345675e+06',
      'small: 1e-05',
    ];
    for (const line of shown) expect(yaml.text).toContain(`\n  ${line}\n`);
  });
});

describe('CBOR', () => {
  test('CODEC-4: built-in and custom objects round-trip as CBOR', async () => {
    const namespace = await freshNamespace(server);
    const kinds = [
      [`/api/v1/namespaces/${namespace}/configmaps`, configMap('c')],
      [
        `/apis/example.com/v1/namespaces/${namespace}/widgets`,
        {
          apiVersion: 'example.com/v1',
          kind: 'Widget',
          metadata: { name: 'c' },
          spec: { big: 9007199254740993n, list: [1.5, null, true] },
        },
      ],
    ] as const;
    for (const [path, object] of kinds) {
      const body = encodeCbor(object as JsonObject);
      const made = await raw({ method: 'POST', path, accept: cbor, type: cbor, body });
      expect(made, path).toMatchObject({ status: 201, type: cbor });
      expect(decodeCbor(made.bytes)).toMatchObject(object);
      const list = decodeCbor((await raw({ path, accept: cbor })).bytes);
      const { apiVersion, kind, ...item } = object;
      expect(list).toMatchObject({ items: [kind === 'Widget' ? object : item] });
    }
  });

  test('CODEC-4: an integer of 64 bits without a sign is a float in CBOR', async () => {
    const path = `/apis/example.com/v1/namespaces/${await freshNamespace(server)}/widgets`;
    const text = '{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"u"},"spec":1}';
    const body = text.replace(/1}$/, '{"a":9223372036854775807,"b":9223372036854775808}}');
    expect((await server.post(path, body)).status).toBe(201);
    const { bytes } = await raw({ path: `${path}/u`, accept: cbor });
    expect(decodeCbor(bytes)).toMatchObject({ spec: { a: 2n ** 63n - 1n, b: 2 ** 63 } });
  });

  test('CODEC-4, WATCH-9: a watch is a sequence of CBOR items', async () => {
    const path = `/api/v1/namespaces/${await freshNamespace(server)}/configmaps`;
    await server.post(path, configMap('a'));
    const answer = await raw(
      { path: `${path}?watch=1`, accept: cbor },
      (bytes) => bytes.length > 0,
    );
    expect(answer).toMatchObject({ status: 200, type: 'application/cbor-seq' });
    expect(decodeCbor(answer.bytes)).toMatchObject({
      type: 'ADDED',
      object: { metadata: { name: 'a' } },
    });
  });

  test('CODEC-4, CODEC-5, WATCH-9: tables in CBOR have their columns once', async () => {
    const path = `/api/v1/namespaces/${await freshNamespace(server)}/configmaps`;
    for (const name of ['a', 'b']) await server.post(path, configMap(name));
    const accept = `${cbor};as=Table;v=v1;g=meta.svc.io`;
    const tag = Buffer.from([0xd9, 0xd9, 0xf7]);
    const second = (bytes: Buffer) => bytes.indexOf(tag, tag.length);
    const answer = await raw(
      { path: `${path}?watch=1`, accept },
      (bytes) => bytes.subarray(second(bytes)).includes('"b"') || second(bytes) > 0,
    );
    const at = second(answer.bytes);
    const [first, next] = [answer.bytes.subarray(0, at), answer.bytes.subarray(at)].map(
      (bytes) => decodeCbor(bytes) as { object: JsonObject },
    );
    const cells = ['a', 1, expect.stringMatching(/^\d+s$/)];
    expect(first?.object).toMatchObject({ kind: 'Table', rows: [{ cells }] });
    expect(first?.object['columnDefinitions']).toHaveLength(3);
    expect(next?.object).toMatchObject({ kind: 'Table', columnDefinitions: null });
  });

  /** An object in CBOR with one additional member that our encoder would not write. */
  const withMember = (object: JsonObject, hex: string) => {
    const body = Buffer.concat([encodeCbor(object), Buffer.from(hex, 'hex')]);
    // After the tag of three bytes, the map's head counts its members.
    body[3] = (body[3] as number) + 1;
    return body;
  };

  test.each([
    ['a2616101616102', 'cbor: found duplicate map key "a" at map element index 1'],
    [
      'f97e00',
      'cbor: data item of cbor type primitives is not accepted by protocol: floating-point NaN',
    ],
    ['ff', 'cbor: unexpected "break" code'],
    ['9affffffff', 'cbor: exceeded max number of elements 1024 for CBOR array'],
    ['a001', 'cbor: 1 bytes of extraneous data starting at index 1'],
  ])('CODEC-4: duplicates and values that JSON lacks are 400: %s', async (hex, why) => {
    const path = '/api/v1/namespaces/default/configmaps';
    const problem = `unable to determine group/version/kind: ${why}`;
    const body = Buffer.from(hex, 'hex');
    const answer = await server.request('POST', path, { body, type: cbor });
    expect(answer).toMatchObject({
      status: 400,
      body: {
        reason: 'BadRequest',
        message: `the object provided is unrecognized (must be of type ConfigMap): ${problem} (${hex})`,
      },
    });
    const removed = await server.request('DELETE', `${path}/none`, { body, type: cbor });
    expect(removed).toMatchObject({ status: 400, body: { message: problem } });
    const apply = await server.request('PATCH', `${path}/none?fieldManager=me`, {
      body,
      type: 'application/apply-patch+cbor',
    });
    expect(apply.status).toBe(400);
    expect(apply.body.message).toMatch(/^error decoding YAML: cbor: /);
  });

  test('CODEC-4: a value that does not fit its Go type is reported with its CBOR type', async () => {
    const path = '/api/v1/namespaces/default/configmaps';
    const post = (body: Buffer) => server.request('POST', path, { body, type: cbor });
    const frame = 'ConfigMap in version "v1" cannot be handled as a ConfigMap: ';
    // "data": ["a"], "binaryData": {"a": "YQ=="} as text, "immutable": 1
    const misfits = [
      ['6464617461816161', 'array', 'data of type map[string]string'],
      ['6a62696e61727944617461a161616459513d3d', 'UTF-8 text string', 'binaryData of type []uint8'],
      ['69696d6d757461626c6501', 'positive integer', 'immutable of type bool'],
    ] as const;
    for (const [more, item, field] of misfits) {
      const { data: _, ...bare } = configMap('misfit');
      const answer = await post(withMember(bare, more));
      expect(answer.status).toBe(400);
      expect(answer.body.message).toBe(
        `${frame}cbor: cannot unmarshal ${item} into Go struct field v1.ConfigMap.${field}`,
      );
    }
    const options = Buffer.from('a1726772616365506572696f645365636f6e6473f93c00', 'hex');
    const removed = await server.request('DELETE', `${path}/none`, { body: options, type: cbor });
    expect(removed).toMatchObject({
      status: 400,
      body: {
        message:
          'cbor: cannot unmarshal primitives into Go struct field ' +
          'v1.DeleteOptions.gracePeriodSeconds of type int64',
      },
    });
  });

  test('CODEC-4, FV-2: unknown fields of a built-in kind are named', async () => {
    const path = `/api/v1/namespaces/${await freshNamespace(server)}/configmaps`;
    const owner = { apiVersion: 'v1', kind: 'ConfigMap', name: 'x', uid: 'u', topp: 1 };
    const post = (name: string, query = '') =>
      server.request('POST', `${path}${query}`, {
        body: encodeCbor({
          ...configMap(name, { metadata: { name, ownerReferences: [owner] } }),
          odd: 1,
        }),
        type: cbor,
      });
    const problems = ['unknown field "metadata.ownerReferences[0].topp"', 'unknown field "odd"'];
    const warned = await post('warned');
    expect(warned.status).toBe(201);
    for (const text of problems) {
      expect(warned.headers['warning']).toContain(`299 - "${text.replaceAll('"', '\\"')}"`);
    }
    expect(warned.body).not.toHaveProperty('odd');
    const strict = await post('strict', '?fieldValidation=Strict');
    expect(strict).toMatchObject({
      status: 400,
      body: {
        message:
          'ConfigMap in version "v1" cannot be handled as a ConfigMap: ' +
          `strict decoding error: ${problems.join(', ')}`,
      },
    });
    const ignored = await post('ignored', '?fieldValidation=Ignore');
    expect(ignored.status).toBe(201);
    expect(ignored.headers['warning']).toBeUndefined();
  });

  test('CODEC-4, API-7: a custom object without a type is shown as it was sent', async () => {
    const path = '/apis/example.com/v1/namespaces/default/widgets';
    const post = (value: JsonObject) =>
      server.request('POST', path, { body: encodeCbor(value), type: cbor });
    const nameless = await post({ spec: { a: [1.5, null] } });
    expect(nameless.status).toBe(400);
    expect(nameless.body.message).toContain(
      "(must be of type Widget): Object 'Kind' is missing in " +
        "'55799({'spec': {'a': [1.5, null]}})' (d9d9f7a1447370",
    );
    const unversioned = await post({ kind: 'Widget' });
    expect(unversioned).toMatchObject({
      status: 400,
      body: {
        message:
          'Widget in version "" cannot be handled as a Widget: ' +
          "Object 'apiVersion' is missing in '55799({'kind': 'Widget'})'",
      },
    });
  });

  test('CODEC-4, SSA-1: an apply may be CBOR, other patches may not', async () => {
    const path = `/api/v1/namespaces/${await freshNamespace(server)}/configmaps/applied`;
    const type = 'application/apply-patch+cbor';
    const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'applied' } };
    const send = (body: Buffer, contentType = type) =>
      server.request('PATCH', `${path}?fieldManager=me`, { body, type: contentType });
    expect((await send(encodeCbor({ ...object, data: { a: '1' } }))).status).toBe(201);
    const again = await send(encodeCbor({ ...object, data: { a: '2' } }));
    expect(again).toMatchObject({ status: 200, body: { data: { a: '2' } } });
    expect(again.body.metadata.managedFields[0]).toMatchObject({
      manager: 'me',
      operation: 'Apply',
    });
    expect((await send(Buffer.from('ff', 'hex'))).status).toBe(400);
    expect((await send(encodeCbor([1]))).status).toBe(400);
    const merge = await send(encodeCbor({}), 'application/merge-patch+cbor');
    expect(merge.status).toBe(415);
    expect(merge.body.message).toContain(
      'application/apply-patch+yaml, application/apply-patch+cbor',
    );
  });

  test('CODEC-4: without the gate CBOR is 406 and 415', async () => {
    const plain = await withServer();
    const path = '/api/v1/namespaces/default/configmaps';
    expect((await plain.get(path, { accept: cbor })).status).toBe(406);
    const body = encodeCbor(configMap('x'));
    expect((await plain.request('POST', path, { body, type: cbor })).status).toBe(415);
  });
});
