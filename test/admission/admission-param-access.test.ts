import type { JsonObject } from '@wheelhouse/machinery';
import { beforeAll, beforeEach, expect, test } from 'vitest';
import { rbacGroup, rbacPath } from '../authentication/token-users.ts';
import { causesOf } from '../custom-kinds/custom-kinds.ts';
import { withServer } from '../support/with-server.ts';
import { type PolicyKit, policies, policyKit } from './admission-policies.ts';
import { registration } from './admission-service.ts';

let kit: PolicyKit;
const bindings = `/apis/${registration}/v1/validatingadmissionpolicybindings`;
const jane = { headers: { 'impersonate-user': 'jane', 'impersonate-group': 'devs' } };
const shown = '&{jane  [devs system:authenticated] map[]}';

const server = await withServer();

beforeAll(async () => {
  await allow('writer', {
    apiGroups: [registration],
    resources: ['validatingadmissionpolicies', 'validatingadmissionpolicybindings'],
    verbs: ['create', 'update', 'patch', 'delete', 'get'],
  });
});
beforeEach(async () => {
  await kit?.clear();
  kit = await policyKit(server);
});

/** Grants jane a permission in all namespaces. */
async function allow(name: string, rule: JsonObject): Promise<() => Promise<void>> {
  const apiVersion = `${rbacGroup}/v1`;
  const role = { apiVersion, kind: 'ClusterRole', metadata: { name }, rules: [rule] };
  const binding = {
    apiVersion,
    kind: 'ClusterRoleBinding',
    metadata: { name },
    roleRef: { apiGroup: rbacGroup, kind: 'ClusterRole', name },
    subjects: [{ apiGroup: rbacGroup, kind: 'User', name: 'jane' }],
  };
  const paths = [`${rbacPath}/clusterroles`, `${rbacPath}/clusterrolebindings`];
  expect((await server.post(paths[0] as string, role)).status).toBe(201);
  expect((await server.post(paths[1] as string, binding)).status).toBe(201);
  return async () => {
    for (const path of paths) await server.remove(`${path}/${name}`);
  };
}

let made = 0;
const policy = (paramKind: JsonObject): JsonObject => {
  made += 1;
  const rule = { apiGroups: [''], apiVersions: ['v1'], operations: ['*'], resources: ['pods'] };
  return {
    apiVersion: `${registration}/v1`,
    kind: 'ValidatingAdmissionPolicy',
    metadata: { name: `secretive-${made}` },
    spec: {
      paramKind,
      matchConstraints: { resourceRules: [rule] },
      validations: [{ expression: 'params == null' }],
    },
  };
};
const secrets = { apiVersion: 'v1', kind: 'Secret' };
const readSecrets = { apiGroups: [''], resources: ['secrets'], verbs: ['get'] };

test('ADM-3: a policy cannot name parameters that its author may not read', async () => {
  const refused = await server.post(policies, policy(secrets), jane);
  expect(refused.status).toBe(422);
  expect(causesOf(refused)).toEqual([
    `spec.paramKind: Forbidden: user ${shown} must have "get" permission on all objects of the ` +
      'referenced paramKind (kind=Secret, apiVersion=v1)',
  ]);
  const withdraw = await allow('reader', readSecrets);
  const body = policy(secrets);
  const created = await server.post(policies, body, jane);
  expect(created.status).toBe(201);
  await withdraw();
  const path = `${policies}/${(body['metadata'] as JsonObject)['name']}`;
  // A policy that already refers to the parameters may be changed in other ways.
  const otherChange = { spec: { validations: [{ expression: 'params != null' }] } };
  expect((await server.patch(path, otherChange, 'merge', jane)).status).toBe(200);
  const elsewhere = { spec: { paramKind: { apiVersion: 'v1', kind: 'ConfigMap' } } };
  const moved = await server.patch(path, elsewhere, 'merge', jane);
  expect(causesOf(moved)[0]).toContain('(kind=ConfigMap, apiVersion=v1)');
  await server.remove(path);
});

test('ADM-3: an unknown parameter kind requires read access to its whole group version', async () => {
  const unknown = { apiVersion: 'example.com/v1', kind: 'Nothing' };
  expect((await server.post(policies, policy(unknown), jane)).status).toBe(422);
  const withdraw = await allow('all-of-group', {
    apiGroups: ['example.com'],
    resources: ['*'],
    verbs: ['get'],
  });
  expect((await server.post(policies, policy(unknown), jane)).status).toBe(201);
  await withdraw();
  expect((await server.post(policies, policy(unknown))).status).toBe(201);
});

test('ADM-3: a binding cannot name parameters that its author may not read', async () => {
  const policyName = await kit.policy({
    paramKind: secrets,
    validations: [{ expression: 'true' }],
  });
  const binding = (name: string) => ({
    apiVersion: `${registration}/v1`,
    kind: 'ValidatingAdmissionPolicyBinding',
    metadata: { name },
    spec: {
      policyName,
      validationActions: ['Deny'],
      paramRef: { name: 'a', namespace: 'default', parameterNotFoundAction: 'Deny' },
    },
  });
  const refused = await server.post(bindings, binding('leading'), jane);
  expect(refused.status).toBe(422);
  expect(causesOf(refused)).toEqual([
    `spec.paramRef: Forbidden: user ${shown} does not have "get" permission on the object ` +
      'referenced by paramRef',
  ]);
  const withdraw = await allow('reader', { ...readSecrets, resourceNames: ['a'] });
  expect((await server.post(bindings, binding('leading'), jane)).status).toBe(201);
  await withdraw();
  const change = { spec: { validationActions: ['Warn'] } };
  const changed = await server.patch(`${bindings}/leading`, change, 'merge', jane);
  expect(changed.status).toBe(422);
  expect((await server.patch(`${bindings}/leading`, change, 'merge')).status).toBe(200);
  await server.remove(`${bindings}/leading`);
});

test('ADM-3: a binding that selects parameters requires permission to list them', async () => {
  const policyName = await kit.policy({
    paramKind: secrets,
    validations: [{ expression: 'true' }],
  });
  const lost = { paramKind: { apiVersion: 'example.com/v1', kind: 'Nothing' } };
  const lostName = await kit.policy({ ...lost, validations: [{ expression: 'true' }] });
  const bind = (of: string) =>
    server.post(
      bindings,
      {
        metadata: { name: 'selecting' },
        spec: {
          policyName: of,
          validationActions: ['Deny'],
          paramRef: { selector: {}, parameterNotFoundAction: 'Deny' },
        },
      },
      jane,
    );
  const lacks = `user ${shown} does not have "list" permission`;
  const lacksAll =
    `to determine minimum required permissions and ${lacks} ` +
    'for all groups, versions and resources';
  const withdraw = await allow('reader', readSecrets);
  const causes = async (of: string) => causesOf(await bind(of));
  expect(await causes(policyName)).toEqual([
    `spec.paramRef: Forbidden: ${lacks} on the object referenced by paramRef`,
  ]);
  expect(await causes('missing')).toEqual([
    `spec.paramRef: Forbidden: unable to get policy missing ${lacksAll}`,
  ]);
  expect(await causes(lostName)).toEqual([
    `spec.paramRef: Forbidden: unable to resolve paramKind &{example.com/v1 Nothing} ${lacksAll}`,
  ]);
  await withdraw();
  const withdrawList = await allow('lister', { ...readSecrets, verbs: ['list'] });
  expect((await bind(policyName)).status).toBe(201);
  await withdrawList();
  await server.remove(`${bindings}/selecting`);
});
