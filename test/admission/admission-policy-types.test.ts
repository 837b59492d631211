import type { ValidatingAdmissionPolicy } from '@wheelhouse/kinds/types/admissionregistration/v1';
import type { JsonObject } from '@wheelhouse/machinery';
import { beforeEach, expect, test } from 'vitest';
import { causesOf, establish } from '../custom-kinds/custom-kinds.ts';
import { eventually, type ResponseOf } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';
import { type PolicyKit, policies, policyKit } from './admission-policies.ts';

let kit: PolicyKit;

const server = await withServer({
  controllers: ['namespace-controller', 'validatingadmissionpolicy-status-controller'],
});
beforeEach(async () => {
  await kit?.clear();
  kit = await policyKit(server);
});

const rule = (group: string, ...resources: string[]): JsonObject => ({
  operations: ['*'],
  apiGroups: [group],
  apiVersions: ['v1'],
  resources,
});

/** The status that the controller writes to a policy. */
async function checked(name: string, generation = 1) {
  return eventually(async () => {
    const { status } = (
      await server.get<ResponseOf<ValidatingAdmissionPolicy>>(`${policies}/${name}`)
    ).body;
    return status?.observedGeneration === generation ? status : undefined;
  }, 'the types were not checked');
}

test('ADM-3: a policy without type errors gets an empty typeChecking and its generation', async () => {
  const validations = [
    {
      expression: 'object.spec.replicas <= 5 && object.metadata.name.startsWith("a")',
      messageExpression: '"wrong: " + string(object.spec.replicas)',
    },
  ];
  const name = await kit.policy({ validations }, { resourceRules: [rule('apps', 'deployments')] });
  expect(await checked(name)).toEqual({ observedGeneration: 1, typeChecking: {} });
});

test('ADM-3: undeclared fields produce a warning for each kind', async () => {
  const resourceRules = [rule('apps', 'deployments', 'daemonsets')];
  const validations = [
    { expression: 'object.spec.replicas > 1' },
    { expression: 'true', messageExpression: 'object.nothing' },
  ];
  await expect(kit.policy({ validations }, { resourceRules })).rejects.toThrow(/but got dyn/);
  const messages = [{ ...validations[1], messageExpression: 'string(object.nothing)' }];
  const name = await kit.policy(
    { validations: [validations[0], ...messages] as JsonObject[] },
    { resourceRules },
  );
  const { typeChecking } = await checked(name);
  expect(typeChecking.expressionWarnings).toEqual([
    {
      fieldRef: 'spec.validations[0].expression',
      warning:
        "apps/v1, Kind=DaemonSet: ERROR: <input>:1:12: undefined field 'replicas'\n" +
        ' | object.spec.replicas > 1\n' +
        ' | ...........^\n',
    },
    {
      fieldRef: 'spec.validations[1].messageExpression',
      warning: expect.stringMatching(
        /^apps\/v1, Kind=DaemonSet: .*undefined field 'nothing'[\s\S]*apps\/v1, Kind=Deployment: /,
      ),
    },
  ]);
});

test('TRUST-2: a rule with hundreds of groups, versions, and resources is checked soon', async () => {
  const many = (name: string, stem: string) => [
    ...Array.from({ length: 300 }, (_, index) => `${stem}${index}`),
    name,
  ];
  const large = {
    operations: ['*'],
    apiGroups: many('apps', 'group'),
    apiVersions: many('v1', 'v'),
    resources: many('daemonsets', 'resource'),
  };
  const known = { ...large, apiGroups: Array(50).fill('apps'), apiVersions: Array(50).fill('v1') };
  const unserved = { ...known, resources: Array(500).fill('pods') };
  const name = await kit.policy(
    { validations: [{ expression: 'object.spec.replicas > 1' }] },
    { resourceRules: [large, unserved] },
  );
  const { typeChecking } = await checked(name);
  expect(typeChecking.expressionWarnings).toEqual([
    {
      fieldRef: 'spec.validations[0].expression',
      warning: expect.stringMatching(/^apps\/v1, Kind=DaemonSet: /),
    },
  ]);
});

test('ADM-3: parameters and variables are typed', async () => {
  const name = await kit.policy(
    {
      paramKind: { apiVersion: 'v1', kind: 'ConfigMap' },
      variables: [{ name: 'count', expression: 'object.spec.replicas' }],
      validations: [
        { expression: 'string(variables.count) == params.data.wanted' },
        { expression: 'params.spec.x == variables.count' },
        { expression: 'variables.count == "x"' },
      ],
    },
    { resourceRules: [rule('apps', 'deployments')] },
  );
  const { typeChecking } = await checked(name);
  const [first, second] = typeChecking.expressionWarnings;
  expect(first).toMatchObject({ fieldRef: 'spec.validations[1].expression' });
  expect(first.warning).toContain("undefined field 'spec'");
  expect(second?.warning).toContain(
    "found no matching overload for '_==_' applied to '(int, string)'",
  );
});

test('ADM-3: parameters of a missing kind are undeclared', async () => {
  const name = await kit.policy(
    {
      paramKind: { apiVersion: 'example.com/v1', kind: 'Nothing' },
      validations: [{ expression: 'params.x == 1' }],
    },
    { resourceRules: [rule('apps', 'deployments')] },
  );
  const { typeChecking } = await checked(name);
  expect(typeChecking.expressionWarnings[0].warning).toContain("undeclared reference to 'params'");
});

test('ADM-3: the authorizer is typed, except for the request’s resource', async () => {
  const validations = [
    { expression: "authorizer.group('').resource('pods').check('get').allowed()" },
    { expression: "authorizer.requestResource.check('get').allowed()" },
  ];
  const name = await kit.policy({ validations }, { resourceRules: [rule('apps', 'deployments')] });
  expect((await checked(name)).typeChecking.expressionWarnings).toEqual([
    {
      fieldRef: 'spec.validations[1].expression',
      warning: expect.stringContaining(
        "unexpected failed resolution of 'kubernetes.authorization.Authorizer'",
      ),
    },
  ]);
});

/** The type errors in an expression about kinds, without their positions. */
async function complaintsOf(expression: string, resourceRules: JsonObject[]) {
  const validations = [{ expression }];
  const name = await kit.policy({ validations }, { resourceRules });
  const { typeChecking } = await checked(name);
  const [{ warning = '' } = {}] = typeChecking.expressionWarnings ?? [];
  const lines = warning.matchAll(/^(.*?, Kind=\w+): ERROR: <input>:\d+:\d+: (.*)$/gm);
  return [...lines].map(([, kind, complaint]) => `${kind}: ${complaint}`);
}

test.each<[string, string, string, ...string[]]>([
  ['times', 'pods', "object.metadata.creationTimestamp > timestamp('2020-01-01T00:00:00Z')"],
  ['labels', 'pods', "object.metadata.labels['a'] == 'b'"],
  ['an integer or a text', 'services', 'object.spec.ports.all(p, p.targetPort == 80)'],
  ['bytes', 'secrets', "object.data['a'] == b'1'"],
  [
    // Published with alternative types, so expressions cannot access them.
    'quantities',
    'pods',
    "object.spec.containers.all(c, c.resources.limits['cpu'] != '')",
    "/v1, Kind=Pod: undefined field 'limits'",
  ],
  [
    'a list as an object',
    'pods',
    'object.spec.containers.name == 1',
    "/v1, Kind=Pod: type 'list(Pod.spec.containers.@idx)' does not support field selection",
  ],
])('ADM-3: built-in kinds are seen with %s', async (_, resource, expression, ...wanted) => {
  expect(await complaintsOf(expression, [rule('', resource)])).toEqual(wanted);
});

test('ADM-3: rules match plural or singular names, and empty groups match all', async () => {
  expect(await complaintsOf('object.no == 1', [rule('', 'events')])).toEqual([
    "/v1, Kind=Event: undefined field 'no'",
    "events.svc.io/v1, Kind=Event: undefined field 'no'",
  ]);
  const named = [rule('apps', 'Deployment', 'deployments/scale')];
  expect(await complaintsOf('object.no == 1', named)).toEqual([
    "apps/v1, Kind=Deployment: undefined field 'no'",
  ]);
});

test('ADM-3: at most ten kinds are checked', async () => {
  const many = 'configmaps endpoints events limitranges namespaces nodes pods podtemplates secrets';
  const rules = [rule('', ...many.split(' '), 'serviceaccounts'), rule('apps', 'deployments')];
  const complaints = await complaintsOf('object.no == 1', rules);
  expect(complaints).toHaveLength(10);
  expect(complaints.join()).not.toContain('apps/');
  const few = [rule('', 'pods'), rule('apps', 'deployments')];
  expect(await complaintsOf('object.no == 1', few)).toEqual([
    "/v1, Kind=Pod: undefined field 'no'",
    "apps/v1, Kind=Deployment: undefined field 'no'",
  ]);
});

test('ADM-3: wildcards are not type-checked, and recursive kinds end', async () => {
  expect(await complaintsOf('object.no == 1', [rule('*', 'deployments')])).toEqual([]);
  const crds = [rule('apiextensions.svc.io', 'customresourcedefinitions')];
  const schema = 'object.spec.versions.all(v, v.schema.openAPIV3Schema';
  expect(await complaintsOf(`${schema}.nullable)`, crds)).toEqual([]);
  expect(await complaintsOf(`${schema}.not.nullable)`, crds)).toEqual([
    "apiextensions.svc.io/v1, Kind=CustomResourceDefinition: undefined field 'nullable'",
  ]);
});

test('ADM-3: custom kinds have their schema’s types and full metadata', async () => {
  const size = { type: 'object', properties: { size: { type: 'integer' } } };
  await establish(server, {
    group: 'types.example.com',
    plural: 'sizes',
    kind: 'Size',
    schema: { type: 'object', properties: { spec: size } },
  });
  const own = [rule('types.example.com', 'sizes')];
  const fits = "object.spec.size > 1 && object.metadata.labels['a'] == ''";
  expect(await complaintsOf(fits, own)).toEqual([]);
  const shown = 'types.example.com/v1, Kind=Size';
  expect(await complaintsOf("object.spec.size == 'x'", own)).toEqual([
    `${shown}: found no matching overload for '_==_' applied to '(int, string)'`,
  ]);
  expect(await complaintsOf('object.spec.none == 1', own)).toEqual([
    `${shown}: undefined field 'none'`,
  ]);
});

test('ADM-3: the controller applies the status with its field manager', async () => {
  const validations = [{ expression: 'object.nothing > 1' }];
  const name = await kit.policy({ validations }, { resourceRules: [rule('apps', 'deployments')] });
  await checked(name);
  const { metadata } = (await server.get(`${policies}/${name}`)).body;
  const manager = 'validatingadmissionpolicy-status-controller';
  const entry = metadata.managedFields.find((managedField) => managedField.manager === manager);
  const fields = { 'f:observedGeneration': {}, 'f:typeChecking': { 'f:expressionWarnings': {} } };
  expect(entry).toMatchObject({
    operation: 'Apply',
    subresource: 'status',
    fieldsV1: { 'f:status': fields },
  });
});

test.each<[string, object, string]>([
  ['no warning', { fieldRef: 'spec.validations[0].expression' }, 'warning: Required value'],
  ['no field', { fieldRef: ' ', warning: 'x' }, 'fieldRef: Required value'],
  [
    'no path',
    { fieldRef: 'spec[foo]', warning: 'x' },
    'fieldRef: Invalid value: "spec[foo]": invalid JSONPath: invalid array index foo',
  ],
])('ADM-3: a status with %s is refused', async (_, warning, wanted) => {
  const name = await kit.policy({ validations: [{ expression: 'true' }] });
  await checked(name);
  const change = { status: { typeChecking: { expressionWarnings: [warning] } } };
  const answer = await server.patch(`${policies}/${name}/status`, change, 'merge');
  expect(answer.status).toBe(422);
  expect(causesOf(answer)).toEqual([`status.typeChecking.expressionWarnings[0].${wanted}`]);
});

test('ADM-3: a changed policy is checked again', async () => {
  const validations = [{ expression: 'object.nothing > 1' }];
  const name = await kit.policy({ validations }, { resourceRules: [rule('apps', 'deployments')] });
  expect((await checked(name)).typeChecking.expressionWarnings).toHaveLength(1);
  const change = { spec: { validations: [{ expression: 'object.spec.replicas > 1' }] } };
  await server.patch(`${policies}/${name}`, change, 'merge');
  // The applied field disappears with its last member.
  expect(await checked(name, 2)).toEqual({ observedGeneration: 2 });
});
