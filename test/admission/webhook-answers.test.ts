import { gzipSync } from 'node:zlib';
import { beforeEach, describe, expect, test } from 'vitest';
import { untilEnd } from '../support/cleanup.ts';
import { countingClock } from '../support/counting-clock.ts';
import { configMap, freshNamespace } from '../support/harness.ts';
import type { Received, Reply } from '../support/webhook-service.ts';
import { withServer } from '../support/with-server.ts';
import { hooksOf, patching, startAdmissionService } from './admission-service.ts';

let namespace: string;
let maps: string;
const { hooked, unhook } = hooksOf(() => ({ server, service, namespace }));
const service = await untilEnd(startAdmissionService());
const clock = countingClock();
const server = await withServer({ clock });
beforeEach(async () => {
  await unhook();
  service.forget();
  namespace = await freshNamespace(server);
  maps = `/api/v1/namespaces/${namespace}/configmaps`;
});

const create = () => server.post(maps, configMap('a'));

/** The text of a review's answer that denies the request. */
const denial = ({ body: { apiVersion, kind, request } }: Received, more: object = {}) => {
  const response = { uid: request?.uid ?? '', allowed: false, status: { message: 'no' } };
  return JSON.stringify({ apiVersion, kind, response, ...more });
};
const denied = 'admission webhook "a.example.com" denied the request: no';

/** The message of a request that a webhook with this reply validates. */
async function messageAfter(
  reply: (call: Received) => Reply,
  options: { readonly timeoutSeconds?: number } = {},
): Promise<string> {
  await hooked('validating', { path: '/w', ...options });
  service.reply('/w', reply);
  const { message } = (await create()).body;
  return message.replace(
    'Internal error occurred: failed calling webhook "a.example.com": failed to call webhook: ',
    '',
  );
}

const unreadable = 'unexpected error when reading response body. Please retry. Original error: ';

describe('ADM-2: compressed answers', () => {
  const zipped = (bytes: Buffer, status = 200, end?: 'stall'): Reply => ({
    ...(end === undefined ? {} : { end }),
    status,
    headers: { 'content-encoding': 'GZIP', 'content-type': 'text/plain' },
    text: bytes,
  });

  test('ADM-2: are requested and accepted', async () => {
    expect(await messageAfter((call) => zipped(gzipSync(denial(call))))).toBe(denied);
    expect(service.received[0]?.headers['accept-encoding']).toBe('gzip');
  });

  test.each<[string, (call: Received) => Reply, string]>([
    [
      'several members',
      (call) => {
        const text = denial(call);
        return zipped(Buffer.concat([gzipSync(text.slice(0, 9)), gzipSync(text.slice(9))]));
      },
      denied,
    ],
    ['an error', () => zipped(gzipSync('it broke'), 500), 'an error on the server ("it broke")'],
    ['no gzip', (call) => zipped(Buffer.from(denial(call))), `${unreadable}gzip: invalid header`],
    [
      'a part',
      (call) => zipped(gzipSync(denial(call)).subarray(0, -9)),
      `${unreadable}unexpected EOF`,
    ],
    ['nothing', () => zipped(Buffer.alloc(0)), '0-length response with status code: 200'],
  ])('ADM-2: of %s', async (_, reply, expected) => {
    expect((await messageAfter(reply)).slice(0, expected.length)).toBe(expected);
  });

  test.each([
    ['is no gzip', Buffer.alloc(64, 'x')],
    ['is followed by more', Buffer.concat([gzipSync('{}'), Buffer.alloc(64, 'x')])],
    ['is too long', gzipSync(Buffer.alloc(16 * 1024 * 1024))],
  ])('ADM-2, TRUST-4: end with the connection if what arrives %s', async (_, bytes) => {
    const gone = new Promise<void>((resolve) => service.onGone(resolve));
    await messageAfter(() => zipped(bytes, 200, 'stall'));
    await gone;
  });

  test('ADM-2, TRUST-4: are limited by their length without compression', async () => {
    const bomb = gzipSync(Buffer.alloc(16 * 1024 * 1024, ' '));
    expect(bomb.length).toBeLessThan(100_000);
    const message = await messageAfter(() => zipped(bomb));
    expect(message).toBe('the answer is longer than 8388608 bytes');
  });
});

describe('ADM-2: interrupted answers', () => {
  test('ADM-2: a body that ends early', async () => {
    const message = await messageAfter(() => ({ status: 200, text: '{"a":', end: 'reset' }));
    expect(message).toBe(`${unreadable}unexpected EOF`);
  });

  test('ADM-2: a body that takes longer than the call may', async () => {
    const reply = (): Reply => ({ status: 200, text: '{"a":', end: 'stall' });
    const message = await messageAfter(reply, { timeoutSeconds: 1 });
    expect(message).toBe(`${unreadable}context deadline exceeded`);
  });
});

describe('ADM-2: redirects', () => {
  test.each([301, 302, 303])(
    'ADM-2: %s to the same server is followed with a GET',
    async (status) => {
      service.reply('/get', ({ method, text }) => ({ status: 500, text: `${method}${text}` }));
      const message = await messageAfter(() => ({ status, headers: { location: '/get?a' } }));
      expect(message).toBe(
        'an error on the server ("GET") has prevented the request from succeeding',
      );
      expect(service.received.map(({ path }) => path)).toEqual(['/w?timeout=10s', '/get?a']);
    },
  );

  test('ADM-2, TRUST-4: an address of another scheme on the same server is not followed', async () => {
    await messageAfter(() => ({ status: 307, headers: { location: `blob:${service.url}/get` } }));
    expect(service.received.map(({ path }) => path)).toEqual(['/w?timeout=10s']);
  });

  test('ADM-2: a malformed one fails the call', async () => {
    const message = await messageAfter(() => ({
      status: 307,
      headers: { location: 'http://%zz' },
    }));
    const why = 'parse "http://%zz": invalid URL escape "%zz"';
    const url = `${service.url}/w?timeout=10s`;
    expect(message).toBe(`Post "${url}": failed to parse Location header "http://%zz": ${why}`);
  });
});

describe('ADM-2: statuses and types of answers', () => {
  const text = (status: number, contentType: string, body = 'text'): Reply => ({
    status,
    headers: { 'content-type': contentType },
    text: body,
  });
  const noMore = (status: number) =>
    `the server responded with the status code ${status} but did not return more information`;

  test.each<[string, (call: Received) => Reply, string]>([
    ['206', (call) => ({ status: 206, text: denial(call) }), denied],
    ['207', (call) => ({ status: 207, text: denial(call) }), noMore(207)],
    ['299', (call) => ({ status: 299, text: denial(call) }), noMore(299)],
    ['a text 403', () => text(403, 'text/plain'), 'text'],
    ['a text 406', () => text(406, 'text/plain'), 'text'],
    [
      'a 406 in JSON',
      () => text(406, 'application/json', '{}'),
      'the server was unable to respond with a content type that the client supports',
    ],
    ['a text 415', () => text(415, 'text/plain'), 'text'],
    ['a 415 in JSON', () => text(415, 'application/json', '{}'), 'unknown'],
    [
      'a Status in YAML',
      () => text(500, 'text/plain', 'kind: Status\nstatus: Failure\nmessage: as YAML'),
      'as YAML',
    ],
    [
      'no type',
      (call) => text(200, ';', denial(call)),
      'Internal error occurred: mime: no media type',
    ],
    [
      'a malformed type',
      (call) => text(200, 'a/b/c', denial(call)),
      'Internal error occurred: mime: unexpected content after media subtype',
    ],
    [
      'a malformed parameter',
      (call) => text(200, 'application/json; a', denial(call)),
      'Internal error occurred: mime: invalid media parameter',
    ],
    [
      'parameters of one name',
      (call) => text(200, 'application/json; a=b; A="c"', denial(call)),
      'Internal error occurred: mime: duplicate parameter name',
    ],
    ['another type', (call) => text(200, 'text/html; a="b;c";', denial(call)), denied],
  ])('ADM-2: %s', async (_, reply, expected) => {
    expect(await messageAfter(reply)).toBe(expected);
  });
});

test('ADM-2, TRUST-2: an answer in YAML is decoded up to a length', async () => {
  const long = (length: number) => (call: Received) => ({
    status: 200,
    text: `# ${'-'.repeat(length)}\n${denial(call)}`,
  });
  expect(await messageAfter(long(3_000_000))).toBe(denied);
  expect(await messageAfter(long(3_145_728))).toBe('limit is 3145728 bytes of an answer in YAML');
});

test('ADM-2, TRUST-2: patches change large objects in steps', async () => {
  const count = 14_000;
  const data = Object.fromEntries(Array.from({ length: count }, (_, at) => [`k${at}`, `${at}`]));
  const create = async (name: string) => {
    const made = await server.post(maps, configMap(name, { data }), {
      accept: 'application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1',
    });
    expect(made.status, made.text.slice(0, 500)).toBe(201);
  };
  const readings = await clock.readingsOf(() => create('plain'));
  await hooked('mutating', { path: '/w' });
  service.answer('/w', () => patching([{ op: 'add', path: '/data/added', value: '1' }]));
  const readingsHooked = await clock.readingsOf(() => create('hooked'));
  expect(readingsHooked - readings).toBeGreaterThan(count / 50);
  expect((await server.get(`${maps}/hooked`)).body.data).toEqual({ ...data, added: '1' });
});

describe('ADM-2: kinds of answers', () => {
  const unregistered = (kind: string, version: string) =>
    `no kind "${kind}" is registered for version "${version}" in scheme ` +
    '"svc.io/apiserver/pkg/util/webhook/client.go:71"';

  test.each<[string, object, string]>([
    [
      'an unknown version',
      { apiVersion: 'admission.svc.io/v2' },
      unregistered('AdmissionReview', 'admission.svc.io/v2'),
    ],
    ['an unknown kind', { kind: 'Foo' }, unregistered('Foo', 'admission.svc.io/v1')],
    ['a malformed version', { apiVersion: 'a/b/c' }, 'unexpected GroupVersion string: a/b/c'],
    [
      'a number as version',
      { apiVersion: 1 },
      "couldn't get version/kind; json parse error: json: cannot unmarshal number into Go struct field .apiVersion of type string",
    ],
    [
      'a Status',
      { apiVersion: 'v1', kind: 'Status' },
      'converting (v1.Status) to (v1.AdmissionReview): unknown conversion',
    ],
  ])('ADM-2: %s', async (_, type, expected) => {
    expect(await messageAfter((call) => ({ status: 200, text: denial(call, type) }))).toBe(
      expected,
    );
  });
});

const long = 'x'.repeat(200_000);

const status = {
  message: 'no',
  details: { name: long, uid: long, causes: Array(2_000).fill({ message: 'c'.repeat(999) }) },
};

test.each<[string, object]>([
  ['another uid', { uid: long }],
  ['a long reason', { allowed: false, status: { reason: long, code: 403 } }],
  ['many causes and long names', { allowed: false, status }],
])('TRUST-3: the error after %s is bounded', async (_, response) => {
  await hooked('validating', { path: '/a' });
  service.answer('/a', () => ({ ...response }));
  const answer = await create();
  expect(answer.status).toBeGreaterThanOrEqual(400);
  expect(answer.body.message).toMatch(/failed calling webhook|denied the request/);
  expect(answer.text.length).toBeLessThan(150_000);
});

test('ADM-2: a patch that removes what a default restores is a change', async () => {
  const rule = { operations: ['CREATE'], apiGroups: [''], apiVersions: ['v1'] };
  const rules = [{ ...rule, resources: ['pods'] }];
  await hooked(
    'mutating',
    { name: 'a.example.com', path: '/a', rules, reinvocationPolicy: 'IfNeeded' },
    { name: 'b.example.com', path: '/b', rules },
  );
  const pods = `/api/v1/namespaces/${namespace}/pods`;
  const create = (name: string) =>
    server.post(pods, { metadata: { name }, spec: { containers: [{ name: 'c', image: 'i' }] } });
  service.answer('/b', () => patching([{ op: 'remove', path: '/spec/dnsPolicy' }]));
  const made = await create('one');
  expect([made.status, made.body.spec?.dnsPolicy]).toEqual([201, 'ClusterFirst']);
  expect(service.at('/a')).toHaveLength(2);
  service.answer('/b', () => patching([{ op: 'add', path: '/spec/unknown', value: 'dropped' }]));
  expect((await create('two')).status).toBe(201);
  expect(service.at('/a')).toHaveLength(3);
});
