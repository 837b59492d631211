import type { JsonObject } from '@wheelhouse/machinery';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { policies } from '../admission/admission-policies.ts';
import { cpuMsOf } from '../support/cpu-time.ts';
import {
  type Answer,
  eventually,
  freshNamespace,
  startTestServer,
  type TestServer,
} from '../support/harness.ts';

/** Long expressions, and functions over long values, do not block other requests (TRUST-2). */

let server: TestServer;
let namespace: string;
let maps: string;

beforeAll(async () => {
  server = await startTestServer();
  namespace = await freshNamespace(server);
  maps = `/api/v1/namespaces/${namespace}/configmaps`;
});
afterAll(() => server.stop());

/** Turns of the event loop during a request, and its answer. */
async function turnsDuring(request: Promise<Answer>): Promise<{ turns: number; answer: Answer }> {
  let isOver = false;
  let turns = 0;
  const turn = () => {
    if (isOver) return;
    turns += 1;
    setImmediate(turn);
  };
  turn();
  const answer = await request;
  isOver = true;
  return { turns, answer };
}

/** More requests than any test needs; sending them throughout would take most of the CPU. */
const othersMax = 20;

/** Other requests, up to a number, that are answered during a request, and its answer. */
async function othersDuring(request: Promise<Answer>): Promise<{ others: number; answer: Answer }> {
  let answer: Answer | undefined;
  const done = request.then((received) => {
    answer = received;
  });
  let others = 0;
  while (answer === undefined && others < othersMax) {
    const concurrent = server.get(maps).then(({ status }) => expect(status).toBe(200));
    await Promise.race([concurrent, done]);
    if (answer === undefined) others += 1;
    await concurrent;
  }
  await done;
  return { others, answer: await request };
}

/** Terms in groups, because a chain of operators has a maximum length. */
function longCondition(term: string, length: number): string {
  const group = Array(300).fill(term).join(' && ');
  const count = Math.floor(length / (group.length + 1));
  return `[${Array(count).fill(group).join(',')}].all(b, b)`;
}

const bindings = `${policies.slice(0, -'ies'.length)}ybindings`;
let plurals = 0;

/** Creates a definition whose `text` has rules. */
function define(rules: readonly string[]) {
  const text = {
    type: 'string',
    maxLength: 200_000,
    'x-kubernetes-validations': rules.map((rule) => ({ rule, message: 'violated' })),
  };
  return defineWith({ text });
}

function defineWith(properties: JsonObject): { plural: string; request: () => Promise<Answer> } {
  plurals += 1;
  const plural = `longs${plurals}`;
  const openAPIV3Schema = { type: 'object', properties };
  const body: JsonObject = {
    metadata: { name: `${plural}.steps.io` },
    spec: {
      group: 'steps.io',
      scope: 'Namespaced',
      names: { plural, singular: plural, kind: plural, listKind: `${plural}List` },
      versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema } }],
    },
  };
  const path = '/apis/apiextensions.svc.io/v1/customresourcedefinitions';
  return { plural, request: () => server.post(path, body) };
}

const create = (plural: string, text: string) =>
  server.post(`/apis/steps.io/v1/namespaces/${namespace}/${plural}`, {
    apiVersion: 'steps.io/v1',
    kind: plural,
    metadata: { name: 'a' },
    text,
  });

describe('long expressions', () => {
  test('TRUST-2: rules are compiled in steps, when they are created and at first use', async () => {
    const { plural, request } = define([longCondition("self != ''", 95_000)]);
    const made = await othersDuring(request());
    expect(made.answer.status, made.answer.text.slice(0, 500)).toBe(201);
    expect(made.others).toBeGreaterThan(2);
    const first = await othersDuring(create(plural, 'a'));
    expect(first.answer.status, first.answer.text.slice(0, 500)).toBe(201);
    expect(first.others).toBeGreaterThan(2);
  });

  test('TRUST-2: many short rules of a small definition are compiled in steps', async () => {
    const rules = Array.from({ length: 200 }, (_, index) => `self.matches('^a{${index + 500}}')`);
    const { turns, answer } = await turnsDuring(define(rules).request());
    expect(answer.status, answer.text.slice(0, 500)).toBe(201);
    expect(turns).toBeGreaterThan(5);
  });

  test('TRUST-2: a policy is compiled in steps, at its creation and at first use', async () => {
    const rule = {
      apiGroups: [''],
      apiVersions: ['v1'],
      operations: ['CREATE'],
      resources: ['configmaps'],
    };
    const name = 'long-policy';
    const expressions = Array.from({ length: 8 }, (_, index) =>
      longCondition(`object.metadata.name != '${index}'`, 60_000),
    );
    const spec = {
      matchConstraints: {
        resourceRules: [rule],
        namespaceSelector: { matchLabels: { 'svc.io/metadata.name': namespace } },
      },
      validations: [...expressions, "object.metadata.name != 'refused'"].map((expression) => ({
        expression,
      })),
    };
    const made = await othersDuring(server.post(policies, { metadata: { name }, spec }));
    expect(made.answer.status, made.answer.text.slice(0, 500)).toBe(201);
    expect(made.others).toBeGreaterThan(5);
    const binding = { metadata: { name }, spec: { policyName: name, validationActions: ['Deny'] } };
    expect((await server.post(bindings, binding)).status).toBe(201);
    const attempts: { status: number; others: number }[] = [];
    await eventually(async () => {
      const { others, answer } = await othersDuring(
        server.post(`${maps}?dryRun=All`, { metadata: { name: 'refused' } }),
      );
      attempts.push({ status: answer.status, others });
      return answer.status === 422;
    });
    expect(attempts.at(-1)?.others).toBeGreaterThan(5);
    await server.remove(`${policies}/${name}`);
  });

  test('TRUST-2: match conditions of a webhook are compiled in steps', async () => {
    const expression = longCondition("object.metadata.name != 'a'", 95_000);
    const webhook = {
      name: 'a.steps.io',
      admissionReviewVersions: ['v1'],
      sideEffects: 'None',
      clientConfig: { url: 'https://127.0.0.1:1/' },
      matchConditions: [{ name: 'long', expression }],
    };
    const made = await othersDuring(
      server.post('/apis/admissionregistration.svc.io/v1/validatingwebhookconfigurations', {
        metadata: { name: 'long' },
        webhooks: [webhook],
      }),
    );
    expect(made.answer.status, made.answer.text.slice(0, 500)).toBe(201);
    expect(made.others).toBeGreaterThan(2);
  });

  test('TRUST-2: patterns of a definition are compiled in steps', async () => {
    const properties = Object.fromEntries(
      Array.from({ length: 500 }, (_, index) => [
        `p${index}`,
        { type: 'string', pattern: `^(?:[a-z]?${index}){400}$` },
      ]),
    );
    const { others, answer } = await othersDuring(defineWith(properties).request());
    expect(answer.status, answer.text.slice(0, 500)).toBe(201);
    expect(others).toBeGreaterThan(5);
  });

  test('TRUST-2: a pattern whose classes take long to compile is refused', async () => {
    const wide = { type: 'string', pattern: `(?i)${'[B-\\x{1e900}]'.repeat(1000)}` };
    const { status, text } = await defineWith({ wide }).request();
    expect([status, text]).toEqual([422, expect.stringContaining('at most 9000 parts')]);
  });

  test('TRUST-1: types of exponential size and trees of any height are refused', async () => {
    const doubled = `[1]${'.map(v, {v: v})'.repeat(40)}.size() == 1`;
    let nested = '1';
    for (let level = 0; level < 20; level += 1) nested = `(${nested}${'+1'.repeat(190)})`;
    for (const [rule, detail] of [
      [doubled, 'the types of the expression are too large'],
      [`${nested} > 0`, 'expression recursion limit exceeded: 600'],
    ] as const) {
      const { status, text } = await define([rule]).request();
      expect([status, text]).toEqual([422, expect.stringContaining(detail)]);
    }
  });
});

describe('functions over long values', () => {
  const repeated = (expression: string, times: number) =>
    `lists.range(${times}).all(i, ${expression})`;

  const manyLists = 'lists.range(15000).map(x, [x])';

  test.each([
    ['contains', 2, Array(10).fill(`!self.contains('${'a'.repeat(450)}b')`)],
    ['lastIndexOf', 5, Array(10).fill(repeated("self.lastIndexOf('b') < i", 40))],
    ['format', 2, Array(10).fill(repeated("'%s'.format([self]).size() == 200000", 4))],
    ['lists', 5, Array(10).fill(`${manyLists} == ${manyLists}`)],
  ])('TRUST-2: %s does not block other requests', async (_, least, rules) => {
    const { plural, request } = define(rules);
    const made = await request();
    expect(made.status, made.text.slice(0, 800)).toBe(201);
    const { others, answer } = await othersDuring(create(plural, 'a'.repeat(200_000)));
    expect(answer.status, answer.text.slice(0, 800)).toBe(201);
    expect(others).toBeGreaterThan(least);
  });

  test.each([
    ['double(self) > 0.0', `${'1'.repeat(199_999)}x`],
    ['double(self) > 0.0', `0x${'1'.repeat(199_997)}x`],
    ['int(self) > 0', '1'.repeat(200_000)],
    ['uint(self) > 0u', '1'.repeat(200_000)],
  ])('TRUST-2: %s takes linear time', async (rule, text) => {
    const { plural, request } = define([rule]);
    const made = await request();
    expect(made.status, made.text).toBe(201);
    let answer: Answer | undefined;
    const cpuMs = await cpuMsOf(async () => {
      answer = await create(plural, text);
    });
    expect(answer?.status).toBe(422);
    expect(answer?.body.message).toContain('type conversion error');
    // Quadratic conversions of texts to floats take minutes.
    expect(cpuMs).toBeLessThan(2000);
  });
});
