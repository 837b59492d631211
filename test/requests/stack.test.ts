import { afterAll, beforeAll, expect, test } from 'vitest';
import { definitionOf, definitions } from '../custom-kinds/custom-kinds.ts';
import { type Answer, connect, eventually, type RequestOptions } from '../support/harness.ts';
import {
  buildPrograms,
  type Programs,
  type ServerProcess,
  startProcess,
} from '../support/program.ts';

/**
 * Input at the limits on depth needs at most three quarters of the 984 KB of stack that Node has
 * by default, even in code that V8 has not optimized, whose calls need the most.
 */
const nodeFlags = ['--stack-size=736', '--no-opt', '--no-sparkplug'];
/** Managed fields are nested four levels deeper than the fields that they describe. */
const levelsMax = 500;

const group = 'stack.example.com';
const collectionOf = (plural: string) => `/apis/${group}/v1/namespaces/default/${plural}`;

let programs: Programs;
let server: ServerProcess;
let client: ReturnType<typeof connect>;

beforeAll(async () => {
  programs = await buildPrograms();
  server = await startProcess(programs, {
    program: [process.execPath, ...nodeFlags, programs.wheelhouse],
    flags: ['--storage-backend=memory', '--feature-gates=CBORServingAndStorage=true'],
  });
  client = connect(server.url);
});

afterAll(async () => {
  client?.close();
  await server?.remove();
  programs?.remove();
});

const send = (method: string, path: string, options: RequestOptions = {}): Promise<Answer> =>
  client.calls.request(method, path, { token: server.token, ...options });

const define = (plural: string, schema: object) =>
  send('POST', definitions, { body: definitionOf({ group, plural, kind: plural, schema }) });

/** Defines a kind whose objects have a `spec` of this schema. */
async function serve(plural: string, spec: object): Promise<string> {
  const { status, text } = await define(plural, { type: 'object', properties: { spec } });
  expect([plural, status, status === 201 ? '' : text]).toEqual([plural, 201, '']);
  const path = collectionOf(plural);
  await eventually(async () => (await send('GET', path)).status === 200, `${plural} to be served`);
  return path;
}

const nested = (open: string, inner: string, close: string, times: number) =>
  `${open.repeat(times)}${inner}${close.repeat(times)}`;

const objectOf = (plural: string, spec: string) =>
  `{"apiVersion":"${group}/v1","kind":"${plural}","metadata":{"name":"x"},"spec":${spec}}`;

const patched = (path: string, type: string, body: string) =>
  send('PATCH', path, { type: `application/${type}`, body });

test.each([
  ['maps', '{"a":', '}', levelsMax - 6],
  ['lists', '[', ']', levelsMax - 6],
  ['mixed', '{"a":[', ']}', levelsMax / 2 - 4],
  ['wide', '{"z":[1,2,3,4,5,6],"a":', '}', levelsMax - 6],
])('TRUST-1: objects of the greatest depth, made of %s, fit the stack', async (...shape) => {
  const [plural, open, close, times] = shape;
  const free = { 'x-kubernetes-preserve-unknown-fields': true };
  const path = await serve(plural, { type: 'object', properties: { in: free } });
  const specOf = (leaf: string) => `{"in":${nested(open, leaf, close, times - 1)}}`;
  const one = specOf('1');
  const two = specOf('2');
  const item = `${path}/x`;
  const apply = (manager: string, spec = '{}') =>
    patched(`${item}?fieldManager=${manager}&force=true`, 'apply-patch+yaml', spec);

  expect((await send('POST', path, { body: objectOf(plural, one) })).status).toBe(201);
  for (const type of [
    'json',
    'json;pretty=1',
    'yaml',
    'cbor',
    'json;as=Table;v=v1;g=meta.k8s.io',
  ]) {
    const accept = `application/${type}`;
    for (const read of [item, path]) {
      const { status } = await send('GET', read, { accept });
      expect([read, accept, status]).toEqual([read, accept, 200]);
    }
  }
  const statuses = {
    merge: await patched(item, 'merge-patch+json', `{"spec":${two}}`),
    json: await patched(
      item,
      'json-patch+json',
      `[{"op":"test","path":"/spec","value":${two}},{"op":"replace","path":"/spec","value":${one}},
        {"op":"copy","from":"/spec/in","path":"/spec/in"}]`,
    ),
    apply: await apply('a', objectOf(plural, two)),
    applyBeside: await apply('b', objectOf(plural, two)),
    applyOver: await apply('b', objectOf(plural, one)),
    release: await apply('a', objectOf(plural, '{}')),
    delete: await send('DELETE', item),
  };
  for (const [what, { status, text }] of Object.entries(statuses)) {
    expect([what, status, status === 200 ? '' : text]).toEqual([what, 200, '']);
  }
});

test.each([
  ['properties', (inner: object) => ({ type: 'object', properties: { a: inner } }), 240],
  ['items', (inner: object) => ({ type: 'array', items: inner }), 480],
  ['values', (inner: object) => ({ type: 'object', additionalProperties: inner }), 480],
])('TRUST-1: schemas of the greatest depth, made of %s, fit the stack', async (...shape) => {
  const [kind, around, levels] = shape;
  const plural = `deep${kind}`;
  let spec: object = { type: 'string' };
  for (let level = 0; level < levels; level += 1) spec = around(spec);
  const path = await serve(plural, spec);
  const [open, close] = kind === 'items' ? ['[', ']'] : ['{"a":', '}'];
  const body = objectOf(plural, nested(open ?? '', '"a"', close ?? '', levels));
  for (const [manager, status] of [
    ['a', 201],
    ['b', 200],
  ] as const) {
    const answer = await patched(`${path}/x?fieldManager=${manager}`, 'apply-patch+yaml', body);
    expect([answer.status, answer.status === status ? '' : answer.text]).toEqual([status, '']);
  }
  for (const document of ['/openapi/v2', `/openapi/v3/apis/${group}/v1`]) {
    expect((await send('GET', document)).status).toBe(200);
  }
});

test.each(['allOf', 'anyOf'])(
  'TRUST-1: nested %s of the greatest depth fits the stack',
  async (of) => {
    let rules: object = { pattern: 'a' };
    for (let level = 0; level < 150; level += 1) rules = { [of]: [rules] };
    const path = await serve(of.toLowerCase(), { type: 'string', ...rules });
    const statuses: number[] = [];
    for (const value of ['"b"', '"a"']) {
      const body = objectOf(of.toLowerCase(), value);
      statuses.push((await send('POST', path, { body })).status);
    }
    expect(statuses).toEqual([422, 201]);
  },
);

test.each([
  ['flow', nested('{a: ', '1', '}', 246)],
  ['lists', nested('[', '1', ']', 246)],
  ['blocks', `\n${Array.from({ length: 246 }, (_, at) => `${' '.repeat(at + 2)}a:\n`).join('')}`],
])('TRUST-1: YAML of the greatest depth, made of %s, fits the stack', async (shape, spec) => {
  const plural = `yaml${shape}`;
  const path = await serve(plural, { 'x-kubernetes-preserve-unknown-fields': true });
  const head = `apiVersion: ${group}/v1\nkind: ${plural}\nmetadata:\n  name: x\n`;
  const body = `${head}spec: ${spec}`;
  const made = await send('POST', path, { type: 'application/yaml', body });
  expect([made.status, made.status === 201 ? '' : made.text]).toEqual([201, '']);
  const applied = await patched(`${path}/x?fieldManager=a&force=true`, 'apply-patch+yaml', body);
  expect([applied.status, applied.status === 200 ? '' : applied.text]).toEqual([200, '']);
});

test.each([
  ['groups', nested('(?:', 'a', ')', 990)],
  ['captures', nested('(', 'a', ')', 990)],
  ['repetitions', nested('(?:', 'a', '?)', 900)],
])('TRUST-1: patterns of the greatest depth, made of %s, fit the stack', async (shape, pattern) => {
  const path = await serve(`pattern${shape}`, { type: 'string', pattern });
  const { status, text } = await send('POST', path, { body: objectOf(`pattern${shape}`, '"a"') });
  expect([status, status === 201 ? '' : text]).toEqual([201, '']);
});

const sum = (levels: number) => {
  let source = '1';
  for (let left = levels; left > 0; left -= 199) {
    source = `(${source}${'+1'.repeat(Math.min(left, 199))})`;
  }
  return `${source} > 0`;
};

test.each([
  ['parentheses', nested('(', 'true', ')', 249)],
  ['lists', `${nested('[', '', ']', 248)} != []`],
  ['conditions', nested('false ? true : ', 'true', '', 248)],
  ['macros', nested('[1].all(i, ', 'true', ')', 248)],
  ['optionals', `${nested('optional.of(1).optMap(v, ', '1', ').orValue(1)', 240)} == 1`],
  ['sums', sum(597)],
])('TRUST-1: expressions of the greatest depth, made of %s, fit the stack', async (name, rule) => {
  const rules = { 'x-kubernetes-validations': [{ rule }] };
  const path = await serve(`rule${name}`, { type: 'object', ...rules });
  const { status, text } = await send('POST', path, { body: objectOf(`rule${name}`, '{}') });
  expect([status, status === 201 ? '' : text]).toEqual([201, '']);
});

test('TRUST-1: an expression that would not fit the stack is refused', async () => {
  const rules = { 'x-kubernetes-validations': [{ rule: sum(990) }] };
  const { status, text } = await define('refused', { type: 'object', ...rules });
  expect([status, text]).toEqual([422, expect.stringContaining('recursion limit exceeded: 600')]);
});
