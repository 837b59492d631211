import type { JsonObject } from '@wheelhouse/machinery';
import { beforeEach, describe, expect, test } from 'vitest';
import { auditFolder, named } from '../audit/audit-run.ts';
import { untilEnd } from '../support/cleanup.ts';
import { configMap, eventually } from '../support/harness.ts';
import { onceWithin } from '../support/once-within.ts';
import { withServer } from '../support/with-server.ts';
import { type PolicyKit, policies, policyKit } from './admission-policies.ts';
import { configMapRule } from './admission-service.ts';

let kit: PolicyKit;

const folder = untilEnd(auditFolder({ rules: [{ level: 'Metadata' }] }));
const server = await withServer({ audit: folder.settings });
beforeEach(async () => {
  await kit?.clear();
  kit = await policyKit(server);
});

const create = (name = 'a', more: JsonObject = {}) => server.post(kit.maps, configMap(name, more));
const noTwo = { expression: 'object.data.a != "2"' };
const two = { data: { a: '2' } };

describe('ADM-3: validations', () => {
  test('ADM-3: a failed validation is 422, other objects pass', async () => {
    const { policy, binding } = await kit.bound({ validations: [noTwo] });
    expect((await create('a')).status).toBe(201);
    const refused = await create('b', two);
    const message =
      `ValidatingAdmissionPolicy '${policy}' with binding '${binding}' denied request: ` +
      'failed expression: object.data.a != "2"';
    expect(refused.status).toBe(422);
    expect(refused.body).toEqual({
      kind: 'Status',
      apiVersion: 'v1',
      metadata: {},
      status: 'Failure',
      message: `configmaps "b" is forbidden: ${message}`,
      reason: 'Invalid',
      details: { name: 'b', kind: 'configmaps', causes: [{ message }] },
      code: 422,
    });
    expect((await server.get(`${kit.maps}/b`)).status).toBe(404);
  });

  test('ADM-3: unusable policies are reported in the order of their names, too', async () => {
    const denying = await kit.bound({ validations: [noTwo] });
    const paramKind = { apiVersion: 'example.com/v1', kind: 'Missing' };
    const unusable = await kit.bound({ paramKind, validations: [noTwo] });
    const { policy: first } = [denying, unusable].sort((a, b) =>
      a.policy < b.policy ? -1 : 1,
    )[0]!;
    const why = first === denying.policy ? 'failed expression' : 'failed to configure policy';
    const { message } = (await create('a', two)).body;
    expect([message.includes(`'${first}'`), message.includes(why)]).toEqual([true, true]);
  });

  test.each<[string, JsonObject, string]>([
    ['a message', { message: ' no two ' }, 'no two'],
    ['an expression of one', { messageExpression: '"not " + object.data.a' }, 'not 2'],
    ['an expression over a message', { message: 'x', messageExpression: '"y"' }, 'y'],
    [
      'a message behind one that fails',
      { message: 'x', messageExpression: 'string(object.none)' },
      'x',
    ],
    ['a message behind an empty one', { message: 'x', messageExpression: '" "' }, 'x'],
    ['a message behind one of two lines', { message: 'x', messageExpression: '"a\\nb"' }, 'x'],
    [
      'a message behind one too long',
      { message: 'x', messageExpression: `"${'y'.repeat(5121)}"` },
      'x',
    ],
  ])('ADM-3: a refusal with %s', async (_, more, wanted) => {
    await kit.bound({ validations: [{ ...noTwo, ...more }] });
    const { body } = await create('a', two);
    expect(body.message.endsWith(`denied request: ${wanted}`)).toBe(true);
  });

  test.each<[string, number]>([
    ['Forbidden', 403],
    ['RequestEntityTooLarge', 413],
    ['Invalid', 422],
  ])('ADM-3: the reason %s is the answer’s', async (reason, code) => {
    await kit.bound({ validations: [{ ...noTwo, reason }] });
    const { status, body } = await create('a', two);
    expect([status, body.code, body.reason]).toEqual([code, code, reason]);
  });

  test('ADM-3: the object of a token request is complete', async () => {
    const resourceRules = [
      {
        apiGroups: [''],
        apiVersions: ['v1'],
        operations: ['CREATE'],
        resources: ['serviceaccounts/token'],
      },
    ];
    const members = [
      'object.metadata.name',
      'object.metadata.namespace',
      'string(has(object.metadata.creationTimestamp))',
      'string(object.spec.audiences.size())',
      'object.status.token',
    ].join(' + " " + ');
    const noToken = { expression: 'false', messageExpression: members };
    await kit.bound({ validations: [noToken] }, {}, { resourceRules });
    const path = `/api/v1/namespaces/${kit.namespace}/serviceaccounts`;
    await server.post(path, { metadata: { name: 'robot' } });
    const refused = await server.post(`${path}/robot/token`, { spec: {} });
    expect(refused.body.message).toMatch(`denied request: robot ${kit.namespace} true 1`);
  });

  test('ADM-3: the first failed validation is reported, for every operation', async () => {
    await kit.bound({
      validations: [
        { expression: 'request.operation != "DELETE"', message: 'stays' },
        { expression: 'object == null || object.data.a != "2"', message: 'no two' },
        { expression: 'oldObject == null || object == null || object.data.a >= oldObject.data.a' },
      ],
    });
    expect((await create('a')).status).toBe(201);
    const path = `${kit.maps}/a`;
    expect((await server.remove(path)).body.message).toContain('denied request: stays');
    const patch = (a: string) => server.patch(path, { data: { a } }, 'merge');
    expect((await patch('2')).body.message).toContain('no two');
    expect((await patch('3')).status).toBe(200);
    expect((await patch('1')).body.message).toContain('failed expression: oldObject == null');
  });

  test.each<[string, string]>([
    ['request', 'request.resource.resource == "configmaps" && request.userInfo.groups.size() > 1'],
    ['namespaceObject', 'namespaceObject.metadata.name == request.namespace'],
    ['labels', 'namespaceObject.metadata.labels["svc.io/metadata.name"] == request.namespace'],
    ['the phase', 'namespaceObject.status.phase == "Active"'],
    ['times as texts', 'type(namespaceObject.metadata.creationTimestamp) == string'],
    ['times', 'timestamp(namespaceObject.metadata.creationTimestamp).getFullYear() > 2000'],
    ['no params', 'has(object.data)'],
    [
      'authorizer',
      'authorizer.group("apps").resource("deployments").namespace("x").name("y").check("get").allowed()',
    ],
    ['its reason', 'authorizer.requestResource.check("create").reason() == ""'],
    [
      'selectors',
      'authorizer.group("").resource("pods").labelSelector("a=b").check("list").allowed()',
    ],
  ])('ADM-3: expressions see %s', async (_, expression) => {
    await kit.bound({ validations: [{ expression }] });
    const made = await create();
    expect([made.status, made.body.message]).toEqual([201, undefined]);
    await kit.clear();
    await kit.bound({ validations: [{ expression: `!(${expression})` }] });
    expect((await create('b')).status).toBe(422);
  });

  test('ADM-3: failurePolicy decides what an evaluation error means', async () => {
    const validations = [{ expression: 'object.data.none == "1"' }];
    await kit.bound({ validations });
    const refused = await create();
    expect(refused.status).toBe(422);
    expect(refused.body.message).toContain(
      'denied request: expression \'object.data.none == "1"\' resulted in error: no such key: none',
    );
    await kit.clear();
    await kit.bound({ validations, failurePolicy: 'Ignore' });
    expect((await create()).status).toBe(201);
    await kit.clear();
    await kit.bound({ validations: [noTwo], failurePolicy: 'Ignore' });
    expect((await create('b', two)).status).toBe(422);
  });

  test('ADM-3: variables are evaluated on demand and see earlier ones', async () => {
    await kit.bound({
      variables: [
        { name: 'a', expression: 'object.data.a' },
        { name: 'broken', expression: 'object.data.none' },
        { name: 'isTwo', expression: 'variables.a == "2"' },
      ],
      validations: [
        {
          expression: '!variables.isTwo || variables.broken == ""',
          messageExpression: '"a is " + variables.a',
        },
      ],
    });
    expect((await create('a')).status).toBe(201);
    const { body } = await create('b', two);
    expect(body.message).toContain(
      'composited variable "broken" fails to evaluate: no such key: none',
    );
  });

  test('ADM-3: a variable may be null or, in the other branch, of any type', async () => {
    await kit.bound({
      variables: [{ name: 'a', expression: '!has(object.data) ? null : object.data' }],
      validations: [{ expression: 'variables.a.a != "2"', message: 'not two' }],
    });
    expect((await create('a')).status).toBe(201);
    expect((await create('b', two)).body.message).toContain('not two');
  });

  test('ADM-3: all problems of an expression are reported, also after an invalid element', async () => {
    const expression = "[true ? 1 : 'a', duration('1s')].exists(x, x == [1])";
    const refused = expect(kit.policy({ validations: [{ expression }] }));
    await refused.rejects.toThrow(/'_==_' applied to '\(duration, list\(int\)\)'/);
  });

  test('ADM-3: expressions have a cost limit', async () => {
    const list = `[${Array.from({ length: 100 }, (_, index) => index).join(',')}]`;
    const dear = { expression: `${list}.all(a, ${list}.all(b, ${list}.all(c, a + b + c >= 0)))` };
    await kit.bound({ validations: [dear] });
    expect((await create()).body.message).toContain('actual cost limit exceeded');
    await kit.clear();
    await kit.bound({ validations: Array.from({ length: 12 }, () => dear) });
    const refused = await create();
    expect(refused.status).toBe(422);
    expect(refused.body.message).toContain(
      'denied request: validation failed due to running out of cost budget, no further ' +
        'validation rules will be run',
    );
  });
});

describe('ADM-3: matching', () => {
  const never = [{ expression: 'false' }];
  const rule = (more: JsonObject) => ({ ...configMapRule, ...more });

  test.each<[string, JsonObject, number]>([
    ['its rules', { resourceRules: [rule({ resources: ['secrets'] })] }, 201],
    ['a name of its rules', { resourceRules: [rule({ resourceNames: ['a'] })] }, 422],
    ['other names of its rules', { resourceRules: [rule({ resourceNames: ['b'] })] }, 201],
    ['what it excludes', { excludeResourceRules: [rule({ operations: ['CREATE'] })] }, 201],
    ['what it excludes by name', { excludeResourceRules: [rule({ resourceNames: ['b'] })] }, 422],
    ['objects by labels', { objectSelector: { matchLabels: { x: 'y' } } }, 201],
    ['namespaces by labels', { namespaceSelector: { matchLabels: { x: 'y' } } }, 201],
  ])('ADM-3: %s', async (_, match, status) => {
    await kit.bound({ validations: never }, {}, match);
    expect((await create()).status).toBe(status);
  });

  test('ADM-3: a binding narrows the match further', async () => {
    const matchResources = { objectSelector: { matchLabels: { checked: 'yes' } } };
    await kit.bound({ validations: never }, { matchResources });
    expect((await create('a')).status).toBe(201);
    const labels = { metadata: { name: 'b', labels: { checked: 'yes' } } };
    expect((await create('b', labels)).status).toBe(422);
  });

  test('ADM-3: equivalent versions are converted to the version in the rules', async () => {
    const scalers = {
      operations: ['*'],
      apiGroups: ['autoscaling'],
      apiVersions: ['v2'],
      resources: ['horizontalpodautoscalers'],
    };
    const validations = [
      {
        expression:
          'object.spec.metrics[0].resource.target.averageUtilization < 60 && ' +
          'request.kind.version == "v2" && request.requestKind.version == "v1"',
      },
    ];
    const path = `/apis/autoscaling/v1/namespaces/${kit.namespace}/horizontalpodautoscalers`;
    const scaler = (name: string, percentage: number) => ({
      apiVersion: 'autoscaling/v1',
      kind: 'HorizontalPodAutoscaler',
      metadata: { name },
      spec: {
        maxReplicas: 3,
        targetCPUUtilizationPercentage: percentage,
        scaleTargetRef: { kind: 'Deployment', name: 'd', apiVersion: 'apps/v1' },
      },
    });
    await kit.bound({ validations }, {}, { resourceRules: [scalers] });
    expect((await server.post(path, scaler('a', 50))).status).toBe(201);
    expect((await server.post(path, scaler('b', 70))).status).toBe(422);
    await kit.clear();
    await kit.bound({ validations }, {}, { resourceRules: [scalers], matchPolicy: 'Exact' });
    expect((await server.post(path, scaler('c', 70))).status).toBe(201);
  });

  test('ADM-3: a policy needs a binding, which takes effect within a second', async () => {
    const round = async (index: number) => {
      const policy = await kit.policy({ validations: never });
      expect((await create(`a${index}`)).status).toBe(201);
      await kit.binding({ policyName: policy });
      const startMs = performance.now();
      await eventually(async () => (await create(`b${index}`)).status === 422);
      const tookMs = performance.now() - startMs;
      await kit.clear();
      return tookMs;
    };
    expect(await onceWithin(1000, round)).toBe(true);
    expect((await create('c')).status).toBe(201);
  });

  test('ADM-3: matchConditions run first and fail by failurePolicy', async () => {
    const conditions = (expression: string) => [{ name: 'c', expression }];
    await kit.bound({ validations: never, matchConditions: conditions('object.data.a == "2"') });
    expect((await create('a')).status).toBe(201);
    expect((await create('b', two)).status).toBe(422);
    await kit.clear();
    const broken = { validations: never, matchConditions: conditions('object.data.none == "1"') };
    await kit.bound(broken);
    expect((await create('c')).body.message).toContain('denied request: expression');
    await kit.clear();
    await kit.bound({ ...broken, failurePolicy: 'Ignore' });
    expect((await create('c')).status).toBe(201);
  });

  test('ADM-3: matchConditions see the requested resource but no namespaceObject', async () => {
    const matchConditions = [
      { name: 'alone', expression: 'namespaceObject == null' },
      { name: 'asked', expression: 'request.resource == request.requestResource' },
    ];
    await kit.bound({ matchConditions, validations: [{ expression: 'false' }] });
    expect((await create()).status).toBe(422);
  });

  test('ADM-3: policies do not apply to authentication and authorization reviews', async () => {
    const everything = {
      operations: ['*'],
      apiGroups: ['authentication.svc.io', 'authorization.svc.io'],
      apiVersions: ['*'],
      resources: ['*'],
    };
    const all = { resourceRules: [everything], namespaceSelector: {} };
    await kit.bound({ validations: never }, {}, all);
    const spec = { nonResourceAttributes: { path: '/', verb: 'get' } };
    const asked: [string, string, JsonObject][] = [
      ['authentication', 'TokenReview', { token: 'x' }],
      ['authentication', 'SelfSubjectReview', {}],
      ['authorization', 'SubjectAccessReview', { ...spec, user: 'a' }],
      ['authorization', 'SelfSubjectAccessReview', spec],
      ['authorization', 'SelfSubjectRulesReview', { namespace: 'default' }],
    ];
    for (const [stem, kind, given] of asked) {
      const apiVersion = `${stem}.svc.io/v1`;
      const path = `/apis/${apiVersion}/${kind.toLowerCase()}s`;
      expect((await server.post(path, { apiVersion, kind, spec: given })).status).toBe(201);
    }
  });

  test('ADM-3: policies do not apply to policies', async () => {
    const everything = {
      operations: ['*'],
      apiGroups: ['admissionregistration.svc.io'],
      apiVersions: ['*'],
      resources: ['*'],
    };
    const all = { resourceRules: [everything], namespaceSelector: {} };
    await kit.bound({ validations: never }, {}, all);
    const { policy } = await kit.bound({ validations: never });
    expect((await server.remove(`${policies}/${policy}`)).status).toBe(200);
  });
});

describe('ADM-3: parameters', () => {
  const paramKind = { apiVersion: 'v1', kind: 'ConfigMap' };
  const validations = [
    {
      expression: 'object.data.a == params.data.wanted',
      messageExpression: 'string(params.data.wanted)',
    },
  ];
  const withParams = { paramKind, validations };
  const param = (name: string, wanted: string, labels: JsonObject = {}) =>
    server.post(`/api/v1/namespaces/${kit.params}/configmaps`, {
      ...configMap(name),
      metadata: { name, labels },
      data: { wanted },
    });
  const deny = { parameterNotFoundAction: 'Deny' };
  const at = (more: JsonObject) => ({ paramRef: { namespace: kit.params, ...deny, ...more } });

  test('ADM-3: a parameter object by name, in its current state', async () => {
    await param('p', '2');
    await kit.bound(withParams, at({ name: 'p' }));
    expect((await create('a')).status).toBe(422);
    expect((await create('a', two)).status).toBe(201);
    const path = `/api/v1/namespaces/${kit.params}/configmaps/p`;
    await server.patch(path, { data: { wanted: '1' } }, 'merge');
    expect((await create('b')).status).toBe(201);
  });

  test('ADM-3: every parameter object that a selector matches must pass', async () => {
    await param('p', '1', { use: 'yes' });
    await param('q', '2', { use: 'yes' });
    await param('r', '3', { use: 'no' });
    await kit.bound(withParams, at({ selector: { matchLabels: { use: 'yes' } } }));
    expect((await create('a')).body.message).toContain('denied request: 2');
    await server.remove(`/api/v1/namespaces/${kit.params}/configmaps/q`);
    expect((await create('a')).status).toBe(201);
  });

  test('ADM-3: parameters come from the request’s namespace when none is named', async () => {
    const own = { ...configMap('own'), data: { wanted: '1', a: '1' } };
    await server.post(kit.maps, own);
    await kit.bound(withParams, { paramRef: { name: 'own', ...deny } });
    expect((await create('a')).status).toBe(201);
    expect((await create('b', two)).status).toBe(422);
  });

  test('ADM-3: parameterNotFoundAction Deny refuses, Allow passes', async () => {
    const { policy, binding } = await kit.bound(withParams, at({ name: 'none' }));
    expect((await create('a')).body.message).toBe(
      `configmaps "a" is forbidden: ValidatingAdmissionPolicy '${policy}' with binding ` +
        `'${binding}' denied request: failed to configure binding: no params found for policy ` +
        'binding with `Deny` parameterNotFoundAction',
    );
    await kit.clear();
    await kit.bound(withParams, at({ name: 'none', parameterNotFoundAction: 'Allow' }));
    expect((await create('a')).status).toBe(201);
  });

  test('ADM-3: an unknown parameter kind is an error', async () => {
    const unknown = { apiVersion: 'example.com/v1', kind: 'Missing' };
    const { policy } = await kit.bound(
      { paramKind: unknown, validations: [{ expression: 'params != null' }] },
      at({ name: 'p' }),
    );
    expect((await create('a')).body.message).toContain(
      `ValidatingAdmissionPolicy '${policy}' denied request: failed to configure policy: failed ` +
        "to find resource referenced by paramKind: 'example.com/v1, Kind=Missing'",
    );
  });

  test('ADM-3: a parameter kind without stored objects refuses', async () => {
    const review = { apiVersion: 'v1', kind: 'Binding' };
    const onNone = { parameterNotFoundAction: 'Allow' };
    const validations = [{ expression: 'true' }];
    await kit.bound({ paramKind: review, validations }, at({ name: 'p', ...onNone }));
    expect((await create('a')).body.message).toContain(
      'failed to configure binding: paramKind kind `&ParamKind{APIVersion:v1,Kind:Binding,}` not ' +
        'yet synced to use for admission',
    );
  });

  test('ADM-3: a binding without paramRef leaves params null', async () => {
    await kit.bound({ paramKind, validations: [{ expression: 'params == null' }] });
    expect((await create('a')).status).toBe(201);
  });

  test('ADM-3: request and namespaceObject have the members of their Go types', async () => {
    const validations = [
      "dyn(request).object == null && dyn(request).oldObject == null && dyn(request).uid == ''",
      '!has(dyn(namespaceObject).kind) && !has(dyn(namespaceObject).apiVersion)',
      'has(namespaceObject.spec) && has(namespaceObject.status)',
    ].map((expression) => ({ expression }));
    await kit.bound({ validations });
    const created = await create('a');
    expect(created.status, created.text).toBe(201);
  });

  test('ADM-3: an unconditional update has the current resourceVersion when validated', async () => {
    const created = await create('a');
    const { resourceVersion } = created.body.metadata;
    const messageExpression = 'string(object.metadata.resourceVersion)';
    const validations = [{ expression: 'false', messageExpression }];
    const rule = { ...configMapRule, operations: ['UPDATE'] };
    await kit.bound({ validations }, {}, { resourceRules: [rule] });
    const refused = await server.put(`${kit.maps}/a`, { ...configMap('a'), data: { b: 'c' } });
    expect(refused.body.message).toContain(`denied request: ${resourceVersion}`);
  });

  test('ADM-3: a request for a collection names none of its objects', async () => {
    await create('a');
    const rule = { ...configMapRule, operations: ['DELETE'] };
    const messageExpression = 'string(has(request.name)) + " " + oldObject.metadata.name';
    const validations = [{ expression: 'false', messageExpression }];
    await kit.bound({ validations }, {}, { resourceRules: [rule] });
    const refused = await server.remove(kit.maps);
    expect(refused.status).toBe(422);
    expect(refused.body.message).toContain('configmaps "Unknown" is forbidden: ');
    expect(refused.body.message).toContain('denied request: false a');
    const alone = await server.remove(`${kit.maps}/a`);
    expect(alone.body.message).toContain('configmaps "a" is forbidden: ');
    expect(alone.body.message).toContain('denied request: true a');
  });

  test('ADM-3: reading or testing members of null params is an error', async () => {
    await kit.bound({ paramKind, validations: [{ expression: 'has(params.data)' }] });
    expect((await create('a')).body.message).toContain('failed expression: has(params.data)');
    await kit.clear();
    await kit.bound({ paramKind, validations: [{ expression: "params.data.wanted == '1'" }] });
    expect((await create('a')).body.message).toContain('resulted in error: no such key: data');
  });

  test('ADM-3: custom objects are parameters until their kind is removed', async () => {
    const group = `params-${kit.namespace}.example.com`;
    const definitions = '/apis/apiextensions.svc.io/v1/customresourcedefinitions';
    const properties = { limit: { type: 'integer' } };
    await server.post(definitions, {
      apiVersion: 'apiextensions.svc.io/v1',
      kind: 'CustomResourceDefinition',
      metadata: { name: `limits.${group}` },
      spec: {
        group,
        scope: 'Namespaced',
        names: { plural: 'limits', singular: 'limit', kind: 'Limit', listKind: 'LimitList' },
        versions: [
          {
            name: 'v1',
            served: true,
            storage: true,
            schema: { openAPIV3Schema: { type: 'object', properties } },
          },
        ],
      },
    });
    const limits = `/apis/${group}/v1/namespaces/${kit.params}/limits`;
    await eventually(async () => (await server.get(limits)).status === 200);
    const kind = { apiVersion: `${group}/v1`, kind: 'Limit' };
    await server.post(limits, { ...kind, metadata: { name: 'p' }, limit: 1 });
    const smaller = [{ expression: 'int(object.data.a) <= params.limit' }];
    await kit.bound({ paramKind: kind, validations: smaller }, at({ name: 'p' }));
    expect((await create('a')).status).toBe(201);
    expect((await create('b', two)).status).toBe(422);
    await server.remove(`${definitions}/limits.${group}`);
    const refusal = async () => (await create('c')).body.message ?? '';
    await eventually(async () => (await refusal()).includes('referenced by paramKind'));
  });

  test('ADM-3: cluster-scoped parameters take no namespace', async () => {
    const namespaces = { apiVersion: 'v1', kind: 'Namespace' };
    const spec = {
      paramKind: namespaces,
      validations: [{ expression: 'params.metadata.name == request.namespace' }],
    };
    await kit.bound(spec, { paramRef: { name: kit.namespace, ...deny } });
    expect((await create('a')).status).toBe(201);
    await kit.clear();
    await kit.bound(spec, at({ name: kit.namespace }));
    expect((await create('b')).body.message).toContain(
      'paramRef.namespace must not be provided for a cluster-scoped `paramKind`',
    );
  });
});

describe('ADM-3: actions', () => {
  const validations = [{ ...noTwo, message: 'no two' }];

  test('ADM-3: Warn passes the request with a warning', async () => {
    const actions = { validationActions: ['Warn'] };
    const { policy, binding } = await kit.bound({ validations }, actions);
    const made = await create('a', two);
    expect(made.status).toBe(201);
    expect(made.warnings).toEqual([
      `Validation failed for ValidatingAdmissionPolicy '${policy}' with binding '${binding}': no two`,
    ]);
  });

  test('ADM-3: Audit adds audit annotations, beside auditAnnotations', async () => {
    const { policy, binding } = await kit.bound(
      {
        validations,
        auditAnnotations: [
          { key: 'value', valueExpression: '"a is " + object.data.a' },
          { key: 'nothing', valueExpression: 'null' },
          { key: 'empty', valueExpression: '" "' },
        ],
      },
      { validationActions: ['Audit', 'Warn'] },
    );
    const { id, headers } = named();
    const made = await server.post(kit.maps, configMap('a', two), { headers });
    expect(made.status).toBe(201);
    const done = (await folder.of(id)).find(({ stage }) => stage === 'ResponseComplete');
    const failure = {
      message: 'no two',
      policy,
      binding,
      expressionIndex: 0,
      validationActions: ['Audit', 'Warn'],
    };
    const annotations = done?.annotations ?? {};
    const found = annotations['validation.policy.admission.svc.io/validation_failure'] ?? '';
    expect(JSON.parse(found)).toEqual([failure]);
    expect(annotations[`${policy}/value`]).toBe('a is 2');
    expect(annotations).not.toHaveProperty([`${policy}/nothing`]);
    expect(annotations).not.toHaveProperty([`${policy}/empty`]);
  });

  test('ADM-3: a failing audit annotation refuses unless failures are ignored', async () => {
    const auditAnnotations = [{ key: 'k', valueExpression: 'string(object.data.none)' }];
    await kit.bound({ auditAnnotations }, { validationActions: ['Audit'] });
    const refused = await create('a');
    expect(refused.status).toBe(422);
    expect(refused.body.message).toContain(
      "expression 'string(object.data.none)' resulted in error",
    );
    await kit.clear();
    await kit.bound({ auditAnnotations, failurePolicy: 'Ignore' });
    expect((await create('a')).status).toBe(201);
  });

  test('ADM-3: annotations and messages cannot use the authorizer', async () => {
    const may = 'authorizer.path("/").check("get").allowed()';
    const variables = [{ name: 'may', expression: may }];
    const valueExpression = 'variables.may ? "yes" : "no"';
    await kit.bound({ variables, auditAnnotations: [{ key: 'may', valueExpression }] });
    expect((await create()).body.message).toContain(
      `expression '${valueExpression}' resulted in error: composited variable "may" fails to ` +
        'evaluate: no such attribute(s): authorizer',
    );
    await kit.clear();
    const validations = [
      { expression: '!variables.may', message: 'plain', messageExpression: valueExpression },
    ];
    await kit.bound({ variables, validations });
    expect((await create()).body.message).toMatch(/denied request: plain$/);
  });

  test('ADM-3: checks are counted under kube-apiserver’s metric names', async () => {
    const { policy, binding } = await kit.bound({ validations });
    await create('a', two);
    const { text } = await server.get('/metrics');
    expect(text).toContain(
      'apiserver_validating_admission_policy_check_total{' +
        'enforcement_action="deny",error_type="invalid_error",' +
        `policy="${policy}",policy_binding="${binding}"} 1`,
    );
  });
});
