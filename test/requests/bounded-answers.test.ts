import { objectMembersMax, yamlBodyLimits } from '@wheelhouse/codec';
import { type JsonObject, listedBytesMax, listedMax } from '@wheelhouse/machinery';
import { beforeAll, describe, expect, test } from 'vitest';
import { defineThing, type ThingKind } from '../objects/apply-kinds.ts';
import { processCpuMs } from '../support/cpu-time.ts';
import { type Answer, freshNamespace } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';

let namespace: string;
let kind: ThingKind;
const server = await withServer({ cborServed: true });

beforeAll(async () => {
  namespace = await freshNamespace(server);
  const numbers = { type: 'array', items: { type: 'integer', maximum: 3 } };
  const set = { type: 'array', 'x-kubernetes-list-type': 'set', items: { type: 'string' } };
  const mapOf = (additionalProperties: JsonObject) => ({ type: 'object', additionalProperties });
  const spec = {
    type: 'object',
    properties: { sizes: numbers, many: mapOf(numbers), sets: mapOf(set) },
  };
  kind = await defineThing(server, [{ properties: { spec } }]);
});

/**
 * Maximum CPU time of these requests on any machine, in milliseconds; the attacks took 20 times as
 * much.
 */
const cpuMsMax = 3_000;

/** Sends a request and bounds the CPU time of the process meanwhile. */
async function bounded(send: () => Promise<Answer>): Promise<Answer> {
  const startMs = processCpuMs();
  const answer = await send();
  expect(processCpuMs() - startMs).toBeLessThan(cpuMsMax);
  return answer;
}

const reviews = '/apis/authorization.svc.io/v1/selfsubjectaccessreviews';
const pods = () => `/api/v1/namespaces/${namespace}/pods`;
const pod = (spec: object) => ({ metadata: { generateName: 'p-' }, spec });
const container = (more: object = {}) => ({ name: 'main', image: 'image', ...more });
const times = <T>(count: number, make: (index: number) => T) =>
  Array.from({ length: count }, (_, index) => make(index));

/**
 * Maximum size of a failure in bytes: message and causes, in which JSON may escape each character.
 */
const failureBytesMax = 2 * listedBytesMax + 4096;

describe('warnings', () => {
  test('TRUST-2, TRUST-3: a review has at most 100 warnings, in linear time', async () => {
    const odd = Object.fromEntries(times(16_000, (index) => [`u${index}`, 1]));
    const body = { spec: { resourceAttributes: { verb: 'get', resource: 'pods' } }, ...odd };
    const answer = await bounded(() => server.post(reviews, body));
    expect(answer.status).toBe(201);
    expect(answer.warnings.length).toBeLessThanOrEqual(listedMax + 1);
    expect(answer.warnings.join().length).toBeLessThan(listedBytesMax);
    expect(answer.warnings[0]).toBe('unknown field "u0"');
    expect(answer.warnings.at(-1)).toMatch(/^and \d+ more warnings$/);
    const shown = answer.warnings.length - 1;
    expect(answer.warnings.at(-1)).toBe(`and ${16_000 - shown} more warnings`);
  });

  test('TRUST-2, TRUST-3: duplicate ports, aliases, variables, and files', async () => {
    const ports = times(3_000, () => ({ containerPort: 80, hostIP: '127.0.0.1' }));
    const env = times(3_000, () => ({ name: 'A', value: 'a' }));
    const items = times(3_000, () => ({ key: 'a', path: 'b' }));
    const spec = {
      containers: [container({ ports, env })],
      hostAliases: times(3_000, () => ({ ip: '127.0.0.1', hostnames: ['a'] })),
      imagePullSecrets: times(3_000, () => ({ name: 'a' })),
      volumes: [{ name: 'a', configMap: { name: 'a', items } }],
    };
    const answer = await bounded(() => server.post(pods(), pod(spec)));
    expect(answer.status).toBe(201);
    expect(answer.warnings.length).toBeLessThanOrEqual(listedMax + 1);
    expect(answer.warnings.at(-1)).toMatch(/^and \d+ more warnings$/);
  });

  test('TRUST-3: a long name around many fields is not multiplied', async () => {
    const inner = Object.fromEntries(times(16_000, (index) => [`u${index}`, 1]));
    const body = { metadata: { labels: {}, ['x'.repeat(500_000)]: inner }, spec: {}, ...inner };
    const answer = await bounded(() => server.post(reviews, body));
    expect(answer.warnings.join().length).toBeLessThan(listedBytesMax);
  });
});

describe('errors', () => {
  test('TRUST-3: an answer lists 100 errors and counts the rest', async () => {
    const send = (count: number) =>
      server.post(pods(), pod({ containers: times(count, (index) => ({ name: `c${index}` })) }));
    const few = await send(listedMax);
    expect(few.status).toBe(422);
    expect(few.body.details.causes).toHaveLength(listedMax);
    expect(few.body.message).not.toContain('more error');
    const many = await bounded(() => send(6_000));
    expect(many.status).toBe(422);
    expect(many.body.details.causes).toEqual(few.body.details.causes);
    expect(many.body.message).toMatch(/, and 5900 more errors\]$/);
    expect(many.text.length).toBeLessThan(failureBytesMax);
  });

  test('TRUST-2: mounts and devices of one container take linear time', async () => {
    const volumeMounts = times(8_000, (index) => ({ name: 'a', mountPath: `/m${index}` }));
    const volumeDevices = times(8_000, (index) => ({ name: 'a', devicePath: `/d${index}` }));
    const containers = [container({ volumeMounts, volumeDevices })];
    const volumes = [{ name: 'a', emptyDir: {} }];
    const answer = await bounded(() => server.post(pods(), pod({ containers, volumes })));
    expect(answer.status).toBe(422);
    expect(answer.body.details.causes).toHaveLength(listedMax);
    expect(answer.body.message).toContain('must not already exist in volumeDevices');
  });

  test('TRUST-3: a long value is shown once and truncated', async () => {
    const name = '"'.repeat(500_000);
    const containers = times(2, () => container({ name }));
    const answer = await bounded(() => server.post(pods(), pod({ containers })));
    expect(answer.status).toBe(422);
    expect(answer.body.message).toContain('more characters)');
    expect(answer.text.length).toBeLessThan(failureBytesMax);
  });

  test('TRUST-3: strict decoding names the first fields and counts the rest', async () => {
    const odd = Object.fromEntries(times(16_000, (index) => [`u${index}`, 1]));
    const path = `${reviews}?fieldValidation=Strict`;
    const answer = await bounded(() => server.post(path, { spec: {}, ...odd }));
    expect(answer.status).toBe(400);
    expect(answer.body.message).toContain('strict decoding error: unknown field "u0", unknown');
    expect(answer.body.message).toMatch(/, unknown field "u99", and 15900 more errors$/);
  });

  test('TRUST-3: schema errors are bounded', async () => {
    const spec = { sizes: times(50_000, (index) => index + 4) };
    const body = { apiVersion: `${kind.group}/v1`, kind: 'Thing', metadata: { name: 'a' }, spec };
    const answer = await bounded(() => server.post(kind.path(namespace), body));
    expect(answer.status).toBe(422);
    expect(answer.body.details.causes).toHaveLength(listedMax);
    expect(answer.body.message).toMatch(/and 49900 more errors\]$/);
  });

  test('TRUST-2, TRUST-3: a long name around schema errors is not multiplied', async () => {
    const name = 'n'.repeat(1_400_000);
    const numbers = (value: unknown) => ({ many: { [name]: times(55_000, () => value) } });
    const bodies = [numbers(9), numbers('a'), { sets: { [name]: times(55_000, () => 'a') } }];
    for (const spec of bodies) {
      const body = { apiVersion: `${kind.group}/v1`, kind: 'Thing', metadata: { name: 'a' }, spec };
      const answer = await server.post(kind.path(namespace), body);
      expect(answer.status).toBe(422);
      expect(answer.body.message).toContain('nnn');
      expect(answer.text.length).toBeLessThan(failureBytesMax);
    }
  });

  test('TRUST-3: a long name is truncated in the details of a failure too', async () => {
    const path = `/api/v1/namespaces/${namespace}/configmaps`;
    const answer = await server.post(path, { metadata: { name: '\u0001'.repeat(400_000) } });
    expect([answer.status, answer.body.reason]).toEqual([422, 'Invalid']);
    expect(answer.text.length).toBeLessThan(failureBytesMax);
    const shown = `${'\u0001'.repeat(1536)}... (398464 more characters)`;
    expect(answer.body.details.name).toBe(shown);
  });

  test('TRUST-3: apply conflicts are bounded', async () => {
    const path = `/api/v1/namespaces/${namespace}/configmaps/contested`;
    const body = (value: string) => ({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'contested' },
      data: Object.fromEntries(times(5_000, (index) => [`k${index}`, value])),
    });
    const apply = (manager: string, value: string) =>
      server.patch(`${path}?fieldManager=${manager}`, body(value), 'apply');
    expect((await apply('one', 'a')).status).toBe(201);
    const answer = await bounded(() => apply('other', 'b'));
    expect(answer.status).toBe(409);
    expect(answer.body.details.causes).toHaveLength(listedMax);
    expect(answer.body.message).toMatch(/^Apply failed with 5000 conflicts: /);
    expect(answer.body.message).toMatch(/\nand 4900 more conflicts$/);
  });
});

describe('problems of an applied body', () => {
  const applyPod = (name: string, items: number, query = '') => {
    const containers = [{ name, args: times(items, () => ({})) }];
    const body = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'a' }, spec: { containers } };
    return server.patch(`${pods()}/a?fieldManager=m${query}`, body, 'apply');
  };

  test('TRUST-3: the answer lists 100 problems and counts the rest', async () => {
    const answer = await applyPod('c', 5_000);
    expect(answer.status).toBe(400);
    const [frame, ...lines] = answer.body.message.split('\n');
    expect(frame).toBe('failed to create typed patch object (/a; /v1, Kind=Pod): errors:');
    expect(lines).toHaveLength(listedMax + 1);
    expect(lines[0]).toContain('.spec.containers[name="c"].args[0]: expected string, got ');
    expect(lines.at(-1)).toBe('  and 4900 more errors');
  });

  test('TRUST-2, TRUST-3: a long name around the problems is not multiplied', async () => {
    for (const query of ['', '&fieldValidation=Strict']) {
      const answer = await applyPod('x'.repeat(66_000), 29_000, query);
      expect(answer.status).toBe(400);
      expect(answer.text.length).toBeLessThan(failureBytesMax);
    }
    const extra = { ['n'.repeat(1_400_000)]: times(29_000, () => ({})) };
    const apiVersion = 'certificates.svc.io/v1';
    const body = { apiVersion, kind: 'CertificateSigningRequest', metadata: { name: 'a' } };
    const path = `/apis/${apiVersion}/certificatesigningrequests/a?fieldManager=m`;
    const spec = { signerName: 'a.b/c', request: '', extra };
    const answer = await server.patch(path, { ...body, spec }, 'apply');
    expect(answer.status).toBe(400);
    expect(answer.body.message).toContain('.spec.extra.nnn');
    expect(answer.text.length).toBeLessThan(failureBytesMax);
  });
});

describe('bodies', () => {
  const cases: readonly [form: string, type: string, body: Buffer][] = [
    ['JSON', 'application/json', Buffer.from(`{"data":[${'1,'.repeat(400_000)}1]}`)],
    ['YAML', 'application/yaml', Buffer.from(`data:\n${'- 1\n'.repeat(60_000)}`)],
    ['CBOR', 'application/cbor', nestedLists(300)],
  ];
  const wide = Object.fromEntries(times(objectMembersMax + 1, (index) => [`k${index}`, '']));
  test('TRUST-2: an object with too many members is refused', async () => {
    const path = `/api/v1/namespaces/${namespace}/configmaps`;
    const { status, body } = await server.post(path, { metadata: { name: 'a' }, data: wide });
    expect([status, body.message]).toEqual([
      413,
      'Request entity too large: limit is 16384 members of one object',
    ]);
  });

  test('TRUST-2: patches and defaults cannot exceed the body limit', async () => {
    const path = `/api/v1/namespaces/${namespace}/configmaps`;
    const data = Object.fromEntries(times(10_000, (index) => [`k${index}`, '']));
    expect((await server.post(path, { metadata: { name: 'grown' }, data })).status).toBe(201);
    const more = Object.fromEntries(times(10_000, (index) => [`l${index}`, '']));
    const patches = { merge: { data: more }, strategic: { data: more } } as const;
    for (const type of ['merge', 'strategic'] as const) {
      const { status, body } = await server.patch(`${path}/grown`, patches[type], type);
      expect([status, body.reason]).toEqual([413, 'RequestEntityTooLarge']);
    }
    const applied = {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'grown' },
      data: more,
    };
    const apply = await server.patch(`${path}/grown?fieldManager=a`, applied, 'apply');
    expect(apply.status).toBe(413);
    expect((await server.get(`${path}/grown`)).body.data).toEqual(data);
    const containers = times(20_000, (index) => ({ name: `c${index}` }));
    const { status } = await server.post(pods(), pod({ containers }));
    expect(status).toBe(413);
  });

  test('TRUST-2: objects as large as the largest in practice are accepted', async () => {
    const path = `/api/v1/namespaces/${namespace}/configmaps`;
    const keys = Object.fromEntries(times(5_000, (index) => [`key-${index}`, 'x'.repeat(150)]));
    const made = await server.post(path, { metadata: { name: 'keys' }, data: keys });
    expect(made.status, made.text.slice(0, 300)).toBe(201);
    const replaced = await server.put(`${path}/keys`, made.body);
    expect(replaced.status, replaced.text.slice(0, 300)).toBe(200);
    const env = times(10, (index) => ({ name: `V${index}`, value: 'v' }));
    const containers = times(500, (index) => container({ name: `c${index}`, env }));
    const created = await server.post(pods(), pod({ containers }));
    expect(created.status, created.text.slice(0, 300)).toBe(201);
  });
  test.each(cases)('TRUST-2: too many values are refused in %s', async (_, type, body) => {
    const path = `/api/v1/namespaces/${namespace}/configmaps`;
    const answer = await bounded(() => server.post(path, body, { type }));
    expect(answer.status).toBe(413);
    expect(answer.body.reason).toBe('RequestEntityTooLarge');
  });

  const words = 'It is what it is, a "text": of words. '.repeat(25_000).trim();
  const listed = 'a line\n'.repeat(60_000);
  test.each([
    ['a plain text', words.replaceAll(': ', ':'), words.replaceAll(': ', ':')],
    ['a text in single quotes', `'${words.replaceAll("'", "''")}'`, words],
    ['a text in double quotes', JSON.stringify(words), words],
    ['a text in double quotes of many lines', `"${'a line\n    '.repeat(60_000)}"`, undefined],
    ['a block of many lines', `|\n    ${listed.trim().replaceAll('\n', '\n    ')}\n`, listed],
  ])('TRUST-2: YAML with %s is stored', async (_, text, expected) => {
    const path = `/api/v1/namespaces/${namespace}/configmaps`;
    const body = `metadata:\n  generateName: text-\ndata:\n  text: ${text}\n`;
    const answer = await bounded(() =>
      server.post(path, Buffer.from(body), { type: 'application/yaml' }),
    );
    expect(answer.status, answer.text.slice(0, 300)).toBe(201);
    const folded = expected ?? 'a line '.repeat(60_000);
    const stored = await server.get(`${path}/${answer.body.metadata.name}`);
    expect(stored.body.data.text === folded).toBe(true);
  });

  test('TRUST-2: YAML of too many lines is refused', async () => {
    const path = `/api/v1/namespaces/${namespace}/configmaps`;
    const text = `data:\n  text: |\n${'    a\n'.repeat(yamlBodyLimits.linesMax)}`;
    const options = { type: 'application/yaml' };
    const { status, body } = await server.post(path, Buffer.from(text), options);
    expect([status, body.message]).toEqual([413, 'Request entity too large: limit is 65536 lines']);
  });

  const bad: readonly [what: string, text: string][] = [
    ['closing brackets', '}'.repeat(1_000_000)],
    ['reserved characters', '- @\n'.repeat(20_000)],
    ['lines of a flow map', `{${'a b: [}\n'.repeat(5_000)}`],
  ];
  test.each(bad)('TRUST-3: YAML of %s stops at the first error', async (_, text) => {
    const path = `/api/v1/namespaces/${namespace}/configmaps`;
    const options = { type: 'application/yaml' };
    const answer = await bounded(() => server.post(path, Buffer.from(text), options));
    expect(answer.status).toBe(400);
    expect(answer.body.message).toMatch(/yaml: (did not find expected|found character) /);
    expect(answer.text.length).toBeLessThan(4096);
  });

  test('TRUST-3: only the first document of a YAML body is read', async () => {
    const path = `/api/v1/namespaces/${namespace}/configmaps`;
    const text = `metadata: {name: first-document}\n---\n${'}'.repeat(500_000)}`;
    const options = { type: 'application/yaml' };
    const answer = await bounded(() => server.post(path, Buffer.from(text), options));
    expect(answer.status, answer.text.slice(0, 300)).toBe(201);
  });
});

/** A CBOR list of lists of 1000 zeros. */
function nestedLists(count: number): Buffer {
  const zeros = Buffer.concat([Buffer.from([0x99, 0x03, 0xe8]), Buffer.alloc(1000)]);
  const head = Buffer.from([0x99, count >> 8, count & 0xff]);
  const member = Buffer.from([0xa1, 0x64, ...Buffer.from('data')]);
  return Buffer.concat([member, head, ...times(count, () => zeros)]);
}
