import {
  type JsonObject,
  type Logger,
  type Random,
  randomOf,
  silentLogger,
} from '@wheelhouse/machinery';
import { describe, expect, test } from 'vitest';
import { type Answer, eventually } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';
import {
  type DefinitionResponse,
  definitionOf,
  definitions,
  untilGone,
  versionOf,
} from './custom-kinds.ts';

const logged: string[] = [];
const logger: Logger = {
  ...silentLogger,
  error: (message, fields) => void logged.push(`${message} ${JSON.stringify(fields)}`),
};
const server = await withServer({ logger });

const group = 'fuzz.example.com';
const nested = (depth: number, wrap: (inner: object) => object, inner: object): object => {
  let schema = inner;
  for (let level = 0; level < depth; level += 1) schema = wrap(schema);
  return schema;
};
const property = (schema: unknown) => ({ type: 'object', properties: { a: schema } });

/** What a test sends as a definition; the spec may be anything. */
interface Sent {
  readonly metadata: { readonly name: string };
  readonly spec: unknown;
}

/** The definition is either rejected, or accepted and then served; the server never fails. */
async function settles(body: Sent): Promise<Answer> {
  const answer = await server.post<DefinitionResponse>(definitions, body);
  expect([201, 400, 409, 413, 422], answer.text.slice(0, 500)).toContain(answer.status);
  if (answer.status !== 201) return answer;
  const { spec, metadata } = answer.body;
  const version = spec.versions.find(({ served }: { served: boolean }) => served)?.name;
  const path = `/apis/${spec.group}/${version}/${spec.names.plural}`;
  if (version !== undefined) {
    await eventually(async () => (await server.get(path)).status === 200, `${path} to be served`);
    const at =
      spec.scope === 'Cluster'
        ? path
        : `/apis/${spec.group}/${version}/namespaces/default/${spec.names.plural}`;
    const object = {
      apiVersion: `${spec.group}/${version}`,
      kind: spec.names.kind,
      metadata: { name: 'x' },
      a: 'text',
      spec: { a: 1, list: [1, 'x', null], replicas: 2 },
    };
    for (const sent of [object, { ...object, a: { b: [] }, spec: null }]) {
      expect((await server.post(at, sent)).status, answer.text.slice(0, 500)).toBeLessThan(500);
    }
    const table = 'application/json;as=Table;v=v1;g=meta.svc.io';
    expect((await server.get(at, { accept: table })).status).toBeLessThan(500);
    expect((await server.get(`/openapi/v3/apis/${spec.group}/${version}`)).status).toBe(200);
  }
  await server.remove(`${definitions}/${metadata.name}`);
  await untilGone(server, `${definitions}/${metadata.name}`);
  return answer;
}

describe('bad definitions', () => {
  const whole = (spec: unknown) => ({ ...definitionOf({ group, plural: 'ws', kind: 'W' }), spec });
  const parts = (versions: readonly object[], more: object = {}) =>
    definitionOf({ group, plural: 'ws', kind: 'W', versions, more });
  const schema = (content: unknown) =>
    parts([versionOf('v1', content as object, { storage: true })]);
  const text = (pattern: string) => schema(property({ type: 'string', pattern }));
  const only = versionOf('v1', { type: 'object' }, { storage: true });
  const nullConversion = parts([only], { conversion: null });
  const cases: readonly (readonly [string, Sent, number])[] = [
    ['no spec', whole(undefined), 422],
    ['a null spec', whole(null), 422],
    ['an empty spec', whole({}), 422],
    ['a text for a spec', whole('x'), 400],
    ['no versions', parts([]), 422],
    ['null versions', parts([], { versions: null }), 422],
    ['a null version', parts([null as never]), 422],
    ['null names', parts([], { names: null }), 422],
    ['a null schema', schema(null), 422],
    ['a null property', schema(property(null)), 422],
    ['a null dependency', schema(property({ type: 'object', dependencies: { a: null } })), 422],
    ['a null conversion', nullConversion, 201],
    ['deep properties', schema(nested(600, property, { type: 'string' })), 400],
    ['deep junctors', schema(property(nested(900, (inner) => ({ allOf: [inner] }), {}))), 400],
    ['nesting at ease', schema(nested(80, property, { type: 'string' })), 201],
    ['an invalid pattern', text('('), 422],
    ['a lookahead', text('(?=a)b'), 422],
    ['a pattern that grows', text('((a{1,100}){1,100}){1,100}'), 422],
    ['many groups', text('('.repeat(5000) + ')'.repeat(5000)), 422],
    ['a long pattern', text('a'.repeat(9_000)), 201],
    ['a pattern over the limit', text('a'.repeat(200_000)), 422],
    ['a default of the wrong type', schema(property({ type: 'string', default: 1 })), 422],
    ['a list of items', schema(property({ type: 'array', items: [{ type: 'string' }] })), 422],
    ['odd enums', schema(property({ type: 'string', enum: [null, {}, 1] })), 201],
    ['no multiples', schema(property({ type: 'number', multipleOf: 0 })), 201],
    ['null rules', schema(property({ type: 'object', 'x-kubernetes-validations': [null] })), 422],
  ];

  test.each(cases)('CRD-1: %s', async (_, body, status) => {
    expect((await settles(body)).status).toBe(status);
  });

  test('CRD-1: properties may be named like members of Object.prototype', async () => {
    const names = ['__proto__', 'constructor', 'toString', 'hasOwnProperty'];
    const text = JSON.stringify(schema(property({ type: 'string', default: 'd' })));
    for (const name of names) {
      const body = JSON.parse(text.replaceAll('"a":', `"${name}":`));
      expect((await settles(body)).status).toBe(201);
    }
  });
});

const scalars = [
  null,
  true,
  false,
  0,
  -1,
  1.5,
  1e300,
  2 ** 53,
  '',
  'x',
  '.spec.a',
  '.status',
  'object',
  'array',
  'string',
  'integer',
  'v1',
  'v2beta1',
  '(',
  'é\u0000',
  '../..',
  'a'.repeat(300),
  [],
  {},
  [null],
  [{}],
  { type: 'string' },
  { a: { type: 'integer' } },
];
const members = [
  'type format title default nullable enum pattern minimum maximum multipleOf minLength maxLength',
  'minItems maxItems uniqueItems required properties additionalProperties items allOf anyOf not',
  'oneOf dependencies definitions patternProperties $ref id x-kubernetes-embedded-resource',
  'x-kubernetes-list-type x-kubernetes-list-map-keys x-kubernetes-map-type __proto__ constructor',
  'x-kubernetes-int-or-string x-kubernetes-preserve-unknown-fields x-kubernetes-validations',
  'served storage subresources selectableFields additionalPrinterColumns deprecationWarning',
].flatMap((line) => line.split(' '));

function rich() {
  const spec = {
    type: 'object',
    required: ['a'],
    properties: {
      a: { type: 'integer', minimum: 0, default: 1 },
      any: { 'x-kubernetes-preserve-unknown-fields': true },
      either: { 'x-kubernetes-int-or-string': true },
      labels: { type: 'object', additionalProperties: { type: 'string', maxLength: 5 } },
      list: {
        type: 'array',
        'x-kubernetes-list-type': 'map',
        'x-kubernetes-list-map-keys': ['key'],
        items: { type: 'object', required: ['key'], properties: { key: { type: 'string' } } },
      },
      replicas: { type: 'integer', anyOf: [{ minimum: 1 }, { maximum: 9 }] },
      template: {
        type: 'object',
        'x-kubernetes-embedded-resource': true,
        'x-kubernetes-preserve-unknown-fields': true,
      },
      text: { type: 'string', pattern: '^[a-z]+$', format: 'date-time', nullable: true },
    },
  };
  const schema = { type: 'object', properties: { spec, status: { type: 'object' } } };
  const scale = { specReplicasPath: '.spec.replicas', statusReplicasPath: '.status.replicas' };
  const version = versionOf('v1', schema, {
    storage: true,
    subresources: { status: {}, scale },
    additionalPrinterColumns: [{ name: 'A', type: 'integer', jsonPath: '.spec.a' }],
    selectableFields: [{ jsonPath: '.spec.a' }],
  });
  const versions = [version, versionOf('v2', { type: 'object' })];
  const names = { shortNames: ['w'], categories: ['all'] };
  return definitionOf({ group, plural: 'ws', kind: 'W', names, versions });
}

function mutate(body: Sent, { chance, pick }: Random): void {
  const places: JsonObject[] = [];
  const collect = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return;
    places.push(value as JsonObject);
    for (const child of Object.values(value)) collect(child);
  };
  collect(body.spec);
  const place = pick(places);
  const names = Object.keys(place);
  const value = structuredClone(chance(0.2) ? pick(places) : pick(scalars));
  const name = chance(0.5) && names.length > 0 ? pick(names) : pick(members);
  if (chance(0.2)) delete place[name];
  else
    Object.defineProperty(place, name, {
      value,
      enumerable: true,
      configurable: true,
      writable: true,
    });
}

describe('random definitions', () => {
  const rounds = Number(process.env['FUZZ_ROUNDS'] ?? 800);

  test(`CRD-1: ${rounds} of them are refused or served without an internal error`, async () => {
    const seed = Number(process.env['FUZZ_SEED'] ?? Date.now() % 1_000_000_000);
    console.info(`seed ${seed}`);
    const random = randomOf(seed);
    let accepted = 0;
    for (let round = 0; round < rounds; round += 1) {
      const body = rich();
      for (let changes = 1 + random.below(3); changes > 0; changes -= 1) mutate(body, random);
      const dry = await server.post(`${definitions}?dryRun=All`, body);
      const note = `seed ${seed} round ${round}: ${dry.text.slice(0, 300)}`;
      expect([201, 400, 422], note).toContain(dry.status);
      if (dry.status !== 201) continue;
      accepted += 1;
      if (accepted % 10 === 0) await settles(body);
    }
    console.info(`${accepted} accepted`);
    expect(accepted).toBeGreaterThan(rounds / 20);
    expect(logged).toEqual([]);
  }, 300_000);
});
