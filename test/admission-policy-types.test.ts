import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { JsonObject } from '../src/base/json.ts';
import { type PolicyKit, policies, policyKit } from './admission-policies.ts';
import { eventually, startTestServer, type TestServer } from './harness.ts';

let server: TestServer;
let kit: PolicyKit;

beforeAll(async () => {
  server = await startTestServer({
    controllers: ['namespace-controller', 'validatingadmissionpolicy-status-controller'],
  });
});
afterAll(() => server.stop());
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

/** The status that the controller gives a policy. */
async function checked(name: string, generation = 1) {
  return eventually(async () => {
    const { status } = (await server.get(`${policies}/${name}`)).body;
    return status?.observedGeneration === generation ? status : undefined;
  }, 'the types were not checked');
}

test('ADM-3: types that fit are told by an empty typeChecking and the generation', async () => {
  const validations = [
    {
      expression: 'object.spec.replicas <= 5 && object.metadata.name.startsWith("a")',
      messageExpression: '"wrong: " + string(object.spec.replicas)',
    },
  ];
  const name = await kit.policy({ validations }, { resourceRules: [rule('apps', 'deployments')] });
  expect(await checked(name)).toEqual({ observedGeneration: 1, typeChecking: {} });
});

test('ADM-3: fields that a kind has not are warned of, for each kind', async () => {
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

test('ADM-3: parameters and variables have types, too', async () => {
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
  expect(second.warning).toContain(
    "found no matching overload for '_==_' applied to '(int, string)'",
  );
});

test('ADM-3: wildcards and kinds that refer to themselves are not judged by types', async () => {
  const validations = [{ expression: 'object.nothing > 1' }];
  const any = await kit.policy({ validations }, { resourceRules: [rule('*', 'deployments')] });
  expect((await checked(any)).typeChecking).toEqual({});
  const crds = rule('apiextensions.svc.io', 'customresourcedefinitions');
  const own = await kit.policy({ validations }, { resourceRules: [crds] });
  expect((await checked(own)).typeChecking.expressionWarnings).toHaveLength(1);
});

test('ADM-3: a changed policy is checked again', async () => {
  const validations = [{ expression: 'object.nothing > 1' }];
  const name = await kit.policy({ validations }, { resourceRules: [rule('apps', 'deployments')] });
  expect((await checked(name)).typeChecking.expressionWarnings).toHaveLength(1);
  const change = { spec: { validations: [{ expression: 'object.spec.replicas > 1' }] } };
  await server.patch(`${policies}/${name}`, change, 'merge');
  expect(await checked(name, 2)).toEqual({ observedGeneration: 2, typeChecking: {} });
});
