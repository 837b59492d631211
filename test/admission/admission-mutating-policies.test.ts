import type { MutatingAdmissionPolicyBinding } from '@wheelhouse/kinds/types/admissionregistration/v1alpha1';
import type { Pod } from '@wheelhouse/kinds/types/core/v1';
import type { JsonObject } from '@wheelhouse/machinery';
import { readFeatureGates } from '@wheelhouse/server/testing';
import { beforeEach, describe, expect, test } from 'vitest';
import { establish } from '../custom-kinds/custom-kinds.ts';
import { countingClock } from '../support/counting-clock.ts';
import { configMap, type ResponseOf } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';
import { type PolicyKit, policyKit } from './admission-policies.ts';
import { registration } from './admission-service.ts';

let kit: PolicyKit;
const runtimeConfig = new Map([[`${registration}/v1alpha1`, true]]);

const clock = countingClock();
const server = await withServer({
  clock,
  runtimeConfig,
  featureGates: readFeatureGates(['MutatingAdmissionPolicy=true']).gates,
});
beforeEach(async () => {
  await kit?.clear();
  kit = await policyKit(server, 'Mutating');
});

const apply = (expression: string): JsonObject => ({
  patchType: 'ApplyConfiguration',
  applyConfiguration: { expression },
});
const jsonPatch = (expression: string): JsonObject => ({
  patchType: 'JSONPatch',
  jsonPatch: { expression },
});
const labels = (text: string) => apply(`Object{metadata: Object.metadata{labels: {${text}}}}`);
const create = (name = 'a', more: JsonObject = {}) => server.post(kit.maps, configMap(name, more));

const container = (name: string, more: JsonObject = {}) => ({ name, image: 'i', ...more });
const pod = (name: string, spec: JsonObject = {}): JsonObject => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name },
  spec: { containers: [container('c')], ...spec },
});
const pods = { operations: ['CREATE'], apiGroups: [''], apiVersions: ['v1'], resources: ['pods'] };
const aboutPods = { resourceRules: [pods] };
const createPod = (name: string, spec: JsonObject = {}) =>
  server.post<ResponseOf<Pod>>(`/api/v1/namespaces/${kit.namespace}/pods`, pod(name, spec));

describe('ADM-3: apply configurations', () => {
  test('ADM-3: an apply configuration changes only the fields it names', async () => {
    await kit.bound({ mutations: [labels('"added": object.data.a')] });
    const made = await create('a', { metadata: { name: 'a', labels: { mine: 'yes' } } });
    expect(made.status).toBe(201);
    expect(made.body.metadata.labels).toEqual({ mine: 'yes', added: '1' });
    expect(made.body.data).toEqual({ a: '1' });
  });

  test.each([
    ['Object{data: null}', '.data: expected map, got &{NULL_VALUE}'],
    ['Object{immutable: null}', '.immutable: expected boolean, got &{NULL_VALUE}'],
    [
      'Object{metadata: Object.metadata{finalizers: null}}',
      '.metadata.finalizers: expected list, got &{NULL_VALUE}',
    ],
    [
      'Object{metadata: Object.metadata{generation: null}}',
      '.metadata.generation: expected numeric (int or float), got structpb.NullValue',
    ],
    [
      'Object{data: {"a": null}}',
      '.data.a: expected string, got &value.valueUnstructured{Value:0}',
    ],
  ])('ADM-3: the apply configuration %s is refused, as it removes nothing', async (text, why) => {
    await kit.bound({ mutations: [apply(text)] });
    const refused = await create();
    expect([refused.status, refused.body.message]).toEqual([
      403,
      expect.stringContaining(`failed to convert patch object to typed object: ${why}`),
    ]);
  });

  test('ADM-3: a configuration that does not decode is refused by the failure policy', async () => {
    const mutations = [apply('Object{binaryData: {"b": "%"}}')];
    await kit.bound({ mutations });
    const refused = await create();
    expect([refused.status, refused.body.message]).toEqual([
      403,
      expect.stringContaining('unable to convert unstructured object to /v1, Kind=ConfigMap: '),
    ]);
    await kit.clear();
    await kit.bound({ mutations, failurePolicy: 'Ignore' });
    expect((await create()).status).toBe(201);
  });

  test('ADM-3: list items merge by key and get defaults', async () => {
    const expression =
      'Object{spec: Object.spec{containers: [Object.spec.containers{' +
      'name: "c", env: [Object.spec.containers.env{name: "E", value: "1"}]}]}}';
    await kit.bound({ mutations: [apply(expression)] }, {}, aboutPods);
    const made = await createPod('p', { containers: [container('c'), container('d')] });
    expect(made.status).toBe(201);
    const [first, second] = made.body.spec.containers;
    expect(first).toMatchObject({ name: 'c', env: [{ name: 'E', value: '1' }], image: 'i' });
    expect(second).toBeDefined();
    expect(second?.env).toBeUndefined();
  });

  test.each<[string, string, string]>([
    [
      'an atomic list',
      'Object{spec: Object.spec{containers: [Object.spec.containers{name: "c", args: ["x"]}]}}',
      'invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: ' +
        '.spec.containers[0].args',
    ],
    [
      'a field that there is not',
      'Object{spec: Object.spec{nothing: 1}}',
      'failed to convert patch object to typed object: .spec.nothing: field not declared in schema',
    ],
    [
      'an object of another place',
      'Object{spec: Object.other{}}',
      'type mismatch: unexpected type name "Object.other", expected "Object.spec", which matches ' +
        'field name path from root Object type',
    ],
    [
      'what fails',
      'Object{metadata: Object.metadata{labels: {"a": object.spec.none}}}',
      'resulted in error: no such key: none',
    ],
  ])('ADM-3: %s is refused', async (_, expression, why) => {
    const { policy, binding } = await kit.bound({ mutations: [apply(expression)] }, {}, aboutPods);
    const refused = await createPod('p');
    expect(refused.status).toBe(403);
    expect(refused.body.reason).toBe('Invalid');
    const head = `policy '${policy}' with binding '${binding}' denied request: `;
    expect(refused.body.message.slice(0, head.length)).toBe(head);
    expect(refused.body.message).toContain(why);
    expect(refused.body.details.causes).toEqual([{ message: refused.body.message }]);
    await kit.clear();
    await kit.bound({ mutations: [apply(expression)], failurePolicy: 'Ignore' }, {}, aboutPods);
    expect((await createPod('p')).status).toBe(201);
  });

  test('ADM-3: of many atomic values, the first hundred are named', async () => {
    const names = Array.from({ length: 130 }, (_, index) => `n${index}`).join(' ');
    const containers = `"${names}".split(" ").map(name, Object.spec.containers{name: name, args: ["x"]})`;
    const expression = `Object{spec: Object.spec{containers: ${containers}}}`;
    await kit.bound({ mutations: [apply(expression)] }, {}, aboutPods);
    const { status, body } = await createPod('p');
    expect(status).toBe(403);
    expect(body.message).toMatch(/\.spec\.containers\[99\]\.args, and 30 more paths$/);
  });

  test('ADM-3: an object with duplicates in a keyed list cannot be merged', async () => {
    await kit.bound({ mutations: [labels('"x": "y"')] }, {}, aboutPods);
    const twice = ['1', '2'].map((value) => ({ name: 'E', value }));
    const { status, body } = await createPod('p', { containers: [container('c', { env: twice })] });
    expect(status).toBe(403);
    expect(body.message).toContain(
      'error applying patch: failed to convert original object to typed object: ' +
        '.spec.containers[name="c"].env: duplicate entries for key [name="E"]',
    );
  });

  test('ADM-3: the mutated object is validated like client input', async () => {
    await kit.bound({ mutations: [labels('"a b": "c"')] });
    const refused = await create();
    expect(refused.status).toBe(422);
    expect(refused.body.message).toContain('metadata.labels');
  });
});

describe('ADM-3: JSON patches', () => {
  test('ADM-3: operations handle strings, objects, and escaped keys', async () => {
    const expression =
      '[JSONPatch{op: "test", path: "/spec/containers/0/name", value: "c"},' +
      'JSONPatch{op: "add", path: "/metadata/annotations", value: {}},' +
      'JSONPatch{op: "add", path: "/metadata/annotations/" + jsonpatch.escapeKey("x.com/y"), ' +
      'value: jsonpatch.escapeKey("a~b/c")},' +
      'JSONPatch{op: "add", path: "/spec/containers/-", value: Object.spec.containers{' +
      'name: "side", image: "i", ports: [Object.spec.containers.ports{containerPort: 80}]}},' +
      'JSONPatch{op: "copy", from: "/metadata/name", path: "/metadata/labels/name"}]';
    const mutations = [labels('"x": "y"'), jsonPatch(expression)];
    await kit.bound({ mutations }, {}, aboutPods);
    const made = await createPod('p');
    expect([made.status, made.body.message]).toEqual([201, undefined]);
    expect(made.body.metadata).toMatchObject({
      annotations: { 'x.com/y': 'a~0b~1c' },
      labels: { x: 'y', name: 'p' },
    });
    expect(made.body.spec.containers[1]).toMatchObject({
      name: 'side',
      ports: [{ containerPort: 80, protocol: 'TCP' }],
    });
  });

  test('ADM-3, ADM-2: unreadable managedFields are restored with a warning', async () => {
    const operation = 'op: "replace", path: "/metadata/managedFields/0/operation", value: "Odd"';
    await kit.bound({ mutations: [jsonPatch(`[JSONPatch{${operation}}]`)] });
    const made = await create();
    expect([made.status, made.body.metadata.managedFields[0].operation]).toEqual([201, 'Update']);
    expect(made.warnings).toEqual([
      '.metadata.managedFields was in an invalid state after admission; this could be caused by ' +
        'an outdated mutating admission controller; please fix your requests: operation must be ' +
        '`Apply` or `Update`',
    ]);
  });

  test('ADM-3: a failed test operation changes nothing', async () => {
    const expression =
      '[JSONPatch{op: "add", path: "/data/b", value: "2"},' +
      'JSONPatch{op: "test", path: "/data/a", value: "other"}]';
    await kit.bound({ mutations: [jsonPatch(expression)] });
    expect((await create()).body.data).toEqual({ a: '1' });
  });

  test('ADM-3: a test of an absent member fails, also for null', async () => {
    const operations = [
      '{op: "test", path: "/data/none", value: null}',
      '{op: "add", path: "/data/b", value: "1"}',
    ];
    const list = operations.map((operation) => `JSONPatch${operation}`).join(', ');
    await kit.bound({ mutations: [jsonPatch(`[${list}]`)] });
    expect((await create()).body.data).toEqual({ a: '1' });
  });

  test('ADM-3: a patch that does not apply is refused', async () => {
    await kit.bound({ mutations: [jsonPatch('[JSONPatch{op: "remove", path: "/data/none"}]')] });
    const refused = await create();
    expect(refused.status).toBe(403);
    expect(refused.body.message).toContain('denied request: JSON Patch: ');
  });

  test('ADM-3: a patch that adds an unknown field is a server error', async () => {
    await kit.bound({ mutations: [jsonPatch('[JSONPatch{op: "add", path: "/nope", value: 1}]')] });
    const refused = await create();
    expect(refused.status).toBe(500);
    expect(refused.body.message).toBe(
      'Internal error occurred: strict decoding error: unknown field "nope"',
    );
  });

  test.each([
    ['{op: "replace", path: "/spec/a", value: 1}', 'doc is missing path: /spec/a: missing value'],
    ['{op: "add", path: "/spec/a", value: 1}', 'doc is missing path: "/spec/a": missing value'],
    ['{op: "test", path: "/spec/a", value: 1}', 'is missing path: /spec/a: missing value'],
    [
      '{op: "copy", from: "/spec/a", path: "/b"}',
      'doc is missing from path: /spec/a: missing value',
    ],
    [
      '{op: "move", from: "/data/a", path: "/spec/b"}',
      'doc is missing destination path: /spec/b: missing value',
    ],
  ])('ADM-3: the operation %s is refused: %s', async (operation, why) => {
    await kit.bound({ mutations: [jsonPatch(`[JSONPatch${operation}]`)] });
    const refused = await create();
    expect(refused.body.message).toContain(` operation does not apply: ${why}`);
  });

  test('ADM-3: a patch that changes the type of the object is a server error', async () => {
    const expression = '[JSONPatch{op: "replace", path: "/data", value: 1}]';
    await kit.bound({ mutations: [jsonPatch(expression)], failurePolicy: 'Ignore' });
    expect((await create()).status).toBe(500);
  });

  test.each(['kind', 'apiVersion'])(
    'ADM-3: a patch that changes the %s of the object is a server error',
    async (member) => {
      const operation = `op: "replace", path: "/${member}", value: "Other"`;
      await kit.bound({ mutations: [jsonPatch(`[JSONPatch{${operation}}]`)] });
      expect((await create()).status).toBe(500);
      await kit.clear();
      const removal = jsonPatch(`[JSONPatch{op: "remove", path: "/${member}"}]`);
      await kit.bound({ mutations: [removal] });
      expect((await create()).status).toBe(201);
    },
  );

  test('ADM-3: a patch that removes the type of a custom object is a server error', async () => {
    const group = `typed-${kit.namespace}.example.com`;
    await establish(server, { group, plural: 'boxes', kind: 'Box' });
    const rule = { operations: ['*'], apiGroups: [group], apiVersions: ['*'], resources: ['*'] };
    for (const [member, name] of [
      ['kind', 'Kind'],
      ['apiVersion', 'apiVersion'],
    ] as const) {
      const removal = jsonPatch(`[JSONPatch{op: "remove", path: "/${member}"}]`);
      await kit.bound({ mutations: [removal] }, {}, { resourceRules: [rule] });
      const path = `/apis/${group}/v1/namespaces/${kit.namespace}/boxes`;
      const body = { apiVersion: `${group}/v1`, kind: 'Box', metadata: { name: 'a' } };
      const refused = await server.post(path, body);
      expect([refused.status, refused.body.message]).toEqual([
        500,
        `Internal error occurred: Object '${name}' is missing`,
      ]);
      await kit.clear();
    }
  });

  test('ADM-3: a value that JSON cannot express is refused', async () => {
    const operation = 'op: "add", path: "/data/b", value: quantity("1Gi")';
    await kit.bound({ mutations: [jsonPatch(`[JSONPatch{${operation}}]`)] });
    expect((await create()).body.message).toContain(
      'JSONPath valueExpression evaluated to a type that could not marshal to JSON: ',
    );
  });

  test('TRUST-2: a value that occurs any number of times in a result is refused', async () => {
    const variables = Array.from({ length: 9 }, (_, level) => ({
      name: `v${level}`,
      expression: `[${Array(10).fill(level === 0 ? '1' : `variables.v${level - 1}`)}]`,
    }));
    const value = 'Object.metadata{labels: dyn(variables.v8)}';
    const mutations = [jsonPatch(`[JSONPatch{op: "add", path: "/metadata", value: ${value}}]`)];
    await kit.bound({ variables, mutations });
    const { status, body } = await create();
    expect([status, body.message]).toEqual([
      403,
      expect.stringContaining('the value has more than 100000 values'),
    ]);
  });

  test('ADM-3: a mutation cannot change the namespace or the version of an object', async () => {
    expect((await create()).status).toBe(201);
    const set = (member: string, value: string) =>
      jsonPatch(`[JSONPatch{op: "add", path: "/metadata/${member}", value: "${value}"}]`);
    const update = () => server.patch(`${kit.maps}/a`, { data: { a: '2' } }, 'merge');
    await kit.bound({ mutations: [set('namespace', 'default')] });
    const moved = await update();
    expect([moved.status, moved.body.message]).toEqual([
      400,
      'the namespace of the provided object does not match the namespace sent on the request',
    ]);
    await kit.clear();
    await kit.bound({ mutations: [set('resourceVersion', '1')] });
    expect([(await update()).status, (await create('b')).status]).toEqual([409, 400]);
    expect((await server.get(`${kit.maps}/a`)).body.data).toEqual({ a: '1' });
  });
});

describe('large objects', () => {
  const count = 14_000;
  const data = Object.fromEntries(Array.from({ length: count }, (_, at) => [`k${at}`, `${at}`]));
  const accept = 'application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1';

  test.each([
    ['apply configurations', apply('Object{data: {"added": "1"}}')],
    ['JSON patches', jsonPatch('[JSONPatch{op: "add", path: "/data/added", value: "1"}]')],
  ])('TRUST-2: %s change them in steps', async (_, mutation) => {
    const create = async (name: string) => {
      const made = await server.post(kit.maps, configMap(name, { data }), { accept });
      expect(made.status, made.text.slice(0, 500)).toBe(201);
    };
    const readings = await clock.readingsOf(() => create('plain'));
    await kit.bound({ mutations: [mutation] });
    const readingsChanged = await clock.readingsOf(() => create('changed'));
    expect(readingsChanged - readings).toBeGreaterThan(count / 50);
    expect((await server.get(`${kit.maps}/changed`)).body.data).toEqual({ ...data, added: '1' });
  });
});

describe('ADM-3: mutating policies', () => {
  test('ADM-3: policies see parameters, variables, and earlier mutations', async () => {
    await server.post(`/api/v1/namespaces/${kit.params}/configmaps`, configMap('p'));
    const paramRef = { name: 'p', namespace: kit.params, parameterNotFoundAction: 'Deny' };
    await kit.bound(
      {
        paramKind: { apiVersion: 'v1', kind: 'ConfigMap' },
        variables: [{ name: 'wanted', expression: 'params.data.a' }],
        mutations: [labels('"first": string(variables.wanted)')],
      },
      { paramRef },
    );
    await kit.bound({ mutations: [labels('"second": object.metadata.labels.first + "2"')] });
    const made = await create();
    expect([made.body.message, made.body.metadata.labels]).toEqual([
      undefined,
      { first: '1', second: '12' },
    ]);
  });

  test('ADM-3: without parameterNotFoundAction missing parameters deny', async () => {
    const { binding } = await kit.bound(
      {
        paramKind: { apiVersion: 'v1', kind: 'ConfigMap' },
        mutations: [labels('"first": string(params.data.a)')],
      },
      { paramRef: { name: 'none', namespace: kit.params } },
    );
    const path = `/apis/${registration}/v1alpha1/mutatingadmissionpolicybindings/${binding}`;
    const { spec } = (await server.get<ResponseOf<MutatingAdmissionPolicyBinding>>(path)).body;
    expect(spec.paramRef.parameterNotFoundAction).toBe('Deny');
    const refused = await create();
    expect(refused.status).toBe(403);
    expect(refused.body.message).toContain('no params found for policy binding with `Deny`');
  });

  test('ADM-3: matchConditions skip a policy, and refuse the request when they fail', async () => {
    const mutations = [labels('"added": "yes"')];
    const conditions = (expression: string) => [{ name: 'c', expression }];
    await kit.bound({ mutations, matchConditions: conditions('object.data.a == "2"') });
    expect((await create('a')).body.metadata.labels).toBeUndefined();
    const two = await create('b', { data: { a: '2' } });
    expect(two.body.metadata.labels).toEqual({ added: 'yes' });
    await kit.clear();
    await kit.bound({ mutations, matchConditions: conditions('object.data.none == "1"') });
    expect((await create('c')).status).toBe(403);
  });

  test('ADM-3: reinvocationPolicy IfNeeded runs the policy again after later changes', async () => {
    const count = '"seen": string(has(object.data.late) ? object.data.late : "none")';
    const late = jsonPatch('[JSONPatch{op: "add", path: "/data/late", value: "yes"}]');
    await kit.bound({ mutations: [labels(count)], reinvocationPolicy: 'IfNeeded' });
    await kit.bound({ mutations: [late] });
    expect((await create('a')).body.metadata.labels).toEqual({ seen: 'yes' });
    await kit.clear();
    await kit.bound({ mutations: [labels(count)] });
    await kit.bound({ mutations: [late] });
    expect((await create('b')).body.metadata.labels).toEqual({ seen: 'none' });
  });

  test('ADM-3: reinvocationPolicy IfNeeded runs the policy again after its own change', async () => {
    const longer = apply('Object{data: {"a": object.data.a + "x"}}');
    await kit.bound({ mutations: [longer], reinvocationPolicy: 'IfNeeded' });
    expect((await create('a')).body.data).toEqual({ a: '1xx' });
    await kit.clear();
    await kit.bound({ mutations: [longer] });
    expect((await create('b')).body.data).toEqual({ a: '1x' });
  });

  test('ADM-3: an unknown parameter kind refuses the request in the policy’s name', async () => {
    const { policy } = await kit.bound({
      paramKind: { apiVersion: 'example.com/v1', kind: 'Missing' },
      mutations: [labels('"a": "b"')],
    });
    const refused = await create();
    expect([refused.status, refused.body.reason]).toEqual([403, 'Forbidden']);
    expect(refused.body.message).toBe(
      `policy "${policy}" denied request: failed to configure policy: failed to find resource ` +
        "referenced by paramKind: 'example.com/v1, Kind=Missing'",
    );
  });

  test('ADM-3: deletions are not mutated, and checks are counted', async () => {
    const { policy, binding } = await kit.bound({ mutations: [labels('"a": "b"')] });
    await create();
    expect((await server.remove(`${kit.maps}/a`)).status).toBe(200);
    const { text } = await server.get('/metrics');
    expect(text).toContain(
      'apiserver_mutating_admission_policy_check_total{' +
        `error_type="no_error",policy="${policy}",policy_binding="${binding}"} 1`,
    );
  });

  test.each<[string, JsonObject, string]>([
    ['no mutation', { mutations: [] }, 'spec.mutations: Required value: mutations must contain'],
    ['no patch type', { mutations: [{}] }, 'spec.mutations[0].patchType: Required value'],
    [
      'an unknown patch type',
      { mutations: [{ patchType: 'Odd' }] },
      'Unsupported value: "Odd": supported values: "ApplyConfiguration", "JSONPatch"',
    ],
    [
      'the patch of another type',
      { mutations: [{ ...jsonPatch('[]'), patchType: 'ApplyConfiguration' }] },
      'spec.mutations[0].applyConfiguration: Required value: must be specified when patchType is ' +
        'ApplyConfiguration, spec.mutations[0].jsonPatch: Invalid value: "{jsonPatch}": must not ' +
        'be specified when patchType is ApplyConfiguration',
    ],
    [
      'an expression of a text',
      { mutations: [apply('"x"')] },
      'must evaluate to Object but got string',
    ],
    [
      'an expression of an object',
      { mutations: [jsonPatch('Object{}')] },
      'must evaluate to list(JSONPatch) but got Object',
    ],
    [
      'an operation with a wrong field',
      { mutations: [jsonPatch('[JSONPatch{op: 1}]')] },
      "expected type of field 'op' is 'string' but provided type is 'int'",
    ],
    ['an unknown object', { mutations: [apply('Odd{}')] }, "undeclared reference to 'Odd'"],
    [
      'no reinvocationPolicy',
      { reinvocationPolicy: '' },
      'spec.reinvocationPolicy: Required value',
    ],
    [
      'an unknown reinvocationPolicy',
      { reinvocationPolicy: 'Odd' },
      'spec.reinvocationPolicy: Unsupported value: "Odd": supported values: "IfNeeded", "Never"',
    ],
    [
      'a variable that is not declared',
      { mutations: [labels('"a": variables.a')] },
      "undefined field 'a'",
    ],
    [
      'an expression between spaces',
      { mutations: [apply('  1 ')] },
      'Invalid value: "1": must evaluate to Object but got int',
    ],
    [
      'a deletion before a wrong condition',
      {
        matchConstraints: { resourceRules: [{ ...pods, operations: ['DELETE'] }] },
        matchConditions: [{ name: 'a', expression: '' }],
      },
      'supported values: "*", "CONNECT", "CREATE", "UPDATE", spec.matchConditions[0].expression: Required value',
    ],
  ])('ADM-3: %s is refused', async (_, spec, wanted) => {
    const whole = { mutations: [labels('"a": "b"')], ...spec };
    const message = await kit.policy(whole).catch((error: Error) => error.message);
    expect(JSON.parse(message.slice(message.indexOf('{'))).message).toContain(wanted);
  });

  test('ADM-3: with the gate off the kinds are served but have no effect', async () => {
    const plain = await withServer({ runtimeConfig });
    const plainKit = await policyKit(plain, 'Mutating');
    await plainKit.bound({ mutations: [labels('"a": "b"')] });
    const made = await plain.post(plainKit.maps, configMap('a'));
    expect(made.body.metadata.labels).toBeUndefined();
    const stable = await withServer();
    const path = `/apis/${registration}/v1alpha1/mutatingadmissionpolicies`;
    expect((await stable.get(path)).status).toBe(404);
  });
});
