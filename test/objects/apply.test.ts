import type { Deployment } from '@wheelhouse/kinds/types/apps/v1';
import type { HorizontalPodAutoscaler } from '@wheelhouse/kinds/types/autoscaling/v2';
import { describe, expect, test } from 'vitest';
import { as, bindingOf, mustCreate, rbacPath, roleOf } from '../authentication/token-users.ts';

import {
  configMap,
  eventually,
  freshNamespace,
  type ResponseOf,
  selecting,
} from '../support/harness.ts';
import { withUsers } from '../support/with-server.ts';
import { apply, dataMap, defineThing, freshName, managersOf, ownedBy } from './apply-kinds.ts';

const server = await withUsers([{ name: 'patcher' }, { name: 'creator' }]);
const namespace = await freshNamespace(server);
const maps = `/api/v1/namespaces/${namespace}/configmaps`;

describe('the request', () => {
  test('SSA-1: creates a missing object with 201 and patches an existing one with 200', async () => {
    const name = freshName();
    const created = await apply(server, `${maps}/${name}`, dataMap(name, { a: '1' }));
    expect(created.status).toBe(201);
    expect(created.body.data).toEqual({ a: '1' });
    const changed = await apply(server, `${maps}/${name}`, dataMap(name, { a: '2' }));
    expect(changed.status).toBe(200);
    expect(changed.body.data).toEqual({ a: '2' });
    expect(changed.body.metadata.uid).toBe(created.body.metadata.uid);
  });

  test('SSA-1: a body with a uid never creates', async () => {
    const name = freshName();
    const uid = '88e00824-7f0e-11e8-94a1-c8d3ffb15800';
    const path = `${maps}/${name}`;
    const refused = await apply(server, path, configMap(name, { metadata: { name, uid } }));
    expect(refused.status).toBe(409);
    expect(refused.body.message).toBe(
      `Operation cannot be fulfilled on configmaps "${name}": uid mismatch: the provided object ` +
        `specified uid ${uid}, and no existing object was found`,
    );
    expect((await server.get(path)).status).toBe(404);
    // A storage version migrator identifies an object by its uid and revision only.
    const nameless = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { uid } };
    const migrated = await apply(server, path, nameless);
    expect([migrated.status, migrated.body.message]).toEqual([409, refused.body.message]);
    const unidentified = await apply(server, path, { ...nameless, metadata: {} });
    expect([unidentified.status, unidentified.body.message]).toEqual([
      400,
      `the name of the object (${name} based on URL) was undeterminable: name must be provided`,
    ]);
  });

  test('SSA-1: the body may be YAML', async () => {
    const name = freshName();
    const yaml = `apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: ${name}\ndata:\n  a: "1"\n`;
    const answer = await apply(server, `${maps}/${name}`, yaml);
    expect(answer.status).toBe(201);
    expect(answer.body.data).toEqual({ a: '1' });
  });

  test('SSA-1: a missing field manager is 422', async () => {
    const name = freshName();
    const answer = await server.patch(`${maps}/${name}`, configMap(name), 'apply');
    expect(answer.status).toBe(422);
    expect(answer.body.message).toBe(
      'PatchOptions.meta.svc.io "" is invalid: fieldManager: Required value: is required for apply patch',
    );
    expect((await server.get(`${maps}/${name}`)).status).toBe(404);
  });

  test.each([
    ['a list', '[1]', 'array'],
    ['a text', '"x"', 'string'],
    ['a number', '1', 'number'],
    ['a boolean', 'true', 'bool'],
  ])('SSA-1: %s is not a valid apply body', async (_, body, type) => {
    const answer = await apply(server, `${maps}/x`, body);
    expect(answer.status).toBe(400);
    expect(answer.body.message).toBe(
      'error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal ' +
        `${type} into Go value of type map[string]interface {}`,
    );
  });

  test('SSA-1: invalid YAML is 400', async () => {
    const answer = await apply(server, `${maps}/x`, 'a: [1');
    expect(answer.status).toBe(400);
    expect(answer.body.message).toBe(
      'error decoding YAML: error converting YAML to JSON: ' +
        "yaml: line 1: did not find expected ',' or ']'",
    );
  });

  test('SSA-2: apiVersion and kind are required and must match the path', async () => {
    const message = async (body: object) => {
      const answer = await apply(server, `${maps}/x`, body as never);
      expect(answer.status).toBe(400);
      expect(answer.body.reason).toBe('BadRequest');
      return answer.body.message;
    };
    const metadata = { name: 'x' };
    expect(await message({ kind: 'ConfigMap', metadata })).toBe(
      'invalid object type: /, Kind=ConfigMap',
    );
    expect(await message({ apiVersion: 'v1', metadata })).toBe('invalid object type: /v1, Kind=');
    expect(await message({ apiVersion: 'v1', kind: 'Secret', metadata })).toBe(
      'invalid object type: /v1, Kind=Secret',
    );
    expect(await message({ apiVersion: 'apps/v1', kind: 'ConfigMap', metadata })).toBe(
      'invalid object type: apps/v1, Kind=ConfigMap',
    );
    expect(await message({})).toBe('invalid object type: /, Kind=');
  });

  test('SSA-2: name and namespace must match the path', async () => {
    const name = freshName();
    await apply(server, `${maps}/${name}`, configMap(name));
    const misnamed = await apply(server, `${maps}/${name}`, configMap('other'));
    expect(misnamed.status).toBe(400);
    expect(misnamed.body.message).toBe(
      `the name of the object (other) does not match the name on the URL (${name})`,
    );
    const away = configMap(name, { metadata: { name, namespace: 'elsewhere' } });
    expect((await apply(server, `${maps}/${name}`, away)).status).toBe(400);
  });

  test('SSA-2: the merged object must be valid; otherwise 422 and nothing changes', async () => {
    const name = freshName();
    const path = `/api/v1/namespaces/${namespace}/services/${name}`;
    const body = (port: number) => ({
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name },
      spec: { ports: [{ port }] },
    });
    expect((await apply(server, path, body(80))).status).toBe(201);
    const before = await server.get(path);
    const refused = await apply(server, path, body(70_000));
    expect(refused.status).toBe(422);
    expect(refused.body.details.causes[0].field).toContain('port');
    expect((await server.get(path)).text).toBe(before.text);
  });

  test.each([
    ['a wrong type', { data: { a: 1 } }, '.data.a: expected string, got &value.valueUnstructured'],
    ['an unknown field', { date: {} }, '.date: field not declared in schema'],
    ['a list for a map', { data: [] }, '.data: expected map, got &{[]}'],
  ])('SSA-2: %s is 400 in the words of the typed patch', async (_, more, why) => {
    const answer = await apply(server, `${maps}/typed`, configMap('typed', more));
    expect(answer.status).toBe(400);
    expect(answer.body.reason).toBe('BadRequest');
    expect(answer.body.message).toContain(
      'failed to create typed patch object (/typed; /v1, Kind=ConfigMap): ',
    );
    expect(answer.body.message).toContain(why);
  });

  test('SSA-2: overly deep bodies are 400', async () => {
    const deep = `${'{"a":'.repeat(5000)}1${'}'.repeat(5000)}`;
    const answer = await apply(server, `${maps}/deep`, deep);
    expect(answer.status).toBe(400);
    const { path } = await defineThing(server, [{ preserve: true }]);
    const custom = await apply(server, `${path(namespace)}/deep`, deep);
    expect(custom.status).toBe(400);
  });

  test('SSA-6: force is only for apply', async () => {
    const name = freshName();
    await server.post(maps, configMap(name));
    for (const type of ['json', 'merge', 'strategic'] as const) {
      const body = type === 'json' ? [] : {};
      const answer = await server.patch(`${maps}/${name}?force=true`, body, type);
      expect(answer.status).toBe(422);
      expect(answer.body.message).toBe(
        'PatchOptions.meta.svc.io "" is invalid: force: Forbidden: may not be specified for non-apply patch',
      );
    }
  });

  test('SSA-7: needs the verb patch, and create as well for a missing object', async () => {
    const name = freshName();
    const rules = (verbs: string[]) => [{ apiGroups: [''], resources: ['configmaps'], verbs }];
    const grant = async (user: string, verbs: string[]) => {
      const path = `${rbacPath}/namespaces/${namespace}`;
      await mustCreate(server, `${path}/roles`, roleOf('Role', user, { rules: rules(verbs) }));
      const binding = bindingOf('RoleBinding', user, {
        role: user,
        roleKind: 'Role',
        subjects: [user],
      });
      await mustCreate(server, `${path}/rolebindings`, binding);
    };
    await grant('patcher', ['patch']);
    await grant('creator', ['create', 'patch']);
    const path = `${maps}/${name}?fieldManager=m`;
    const send = (user: string) => server.patch(path, configMap(name), 'apply', as(user));
    const refused = await eventually(async () => {
      const answer = await send('patcher');
      return answer.body.message?.includes('cannot create') ? answer : undefined;
    }, 'patcher may patch');
    expect(refused.status).toBe(403);
    expect(refused.body.message).toBe(
      `configmaps "${name}" is forbidden: User "patcher" cannot create resource "configmaps" in API group "" in the namespace "${namespace}"`,
    );
    const created = await eventually(async () => {
      const answer = await send('creator');
      return answer.status === 403 ? undefined : answer;
    }, 'creator may create');
    expect(created.status).toBe(201);
    expect((await send('patcher')).status).toBe(200);
  });
});

describe('conflicts', () => {
  test('SSA-3: another value for an owned field is 409 with a cause per field', async () => {
    const name = freshName();
    const path = `${maps}/${name}`;
    await apply(server, path, dataMap(name, { a: '1', b: '1', c: '1' }));
    await server.patch(`${path}?fieldManager=editor`, { data: { d: '1' } }, 'merge');
    const before = await server.get(path);
    const theirs = dataMap(name, { a: '2', b: '2', c: '1', d: '2' });
    const refused = await apply(server, path, theirs, { manager: 'bob' });
    expect(refused.status).toBe(409);
    expect(refused.body.reason).toBe('Conflict');
    const [, time] = /using v1 at (\S+):/.exec(refused.body.message) ?? [];
    const causes = refused.body.details.causes;
    expect(causes).toEqual([
      { reason: 'FieldManagerConflict', message: 'conflict with "alice"', field: '.data.a' },
      { reason: 'FieldManagerConflict', message: 'conflict with "alice"', field: '.data.b' },
      {
        reason: 'FieldManagerConflict',
        message: expect.stringMatching(/^conflict with "editor" using v1( at \S+)?$/),
        field: '.data.d',
      },
    ]);
    expect(refused.body.message).toContain('Apply failed with 3 conflicts: ');
    expect(time === undefined || !Number.isNaN(Date.parse(time))).toBe(true);
    expect((await server.get(path)).text).toBe(before.text);
  });

  test('SSA-3: force takes over exactly the conflicting fields', async () => {
    const name = freshName();
    const path = `${maps}/${name}`;
    await apply(server, path, dataMap(name, { a: '1', b: '1' }));
    const forced = await apply(server, path, dataMap(name, { a: '2' }), {
      manager: 'bob',
      force: true,
    });
    expect(forced.status).toBe(200);
    expect(forced.body.data).toEqual({ a: '2', b: '1' });
    expect(ownedBy(forced, 'alice')).toEqual({ 'f:data': { 'f:b': {} } });
    expect(ownedBy(forced, 'bob')).toEqual({ 'f:data': { 'f:a': {} } });
  });

  test('SSA-6: a manager without fields is removed', async () => {
    const name = freshName();
    const path = `${maps}/${name}`;
    await apply(server, path, dataMap(name, { a: '1' }));
    const forced = await apply(server, path, dataMap(name, { a: '2' }), {
      manager: 'bob',
      force: true,
    });
    expect(managersOf(forced)).toEqual(['bob/Apply']);
  });

  test('SSA-4: a PUT never conflicts and takes over what it changes', async () => {
    const name = freshName();
    const path = `${maps}/${name}`;
    const applied = await apply(server, path, dataMap(name, { a: '1', b: '1' }));
    const body = { ...applied.body, data: { a: '2', b: '1' } };
    const put = await server.put(`${path}?fieldManager=editor`, body);
    expect(put.status).toBe(200);
    expect(ownedBy(put, 'alice')).toEqual({ 'f:data': { 'f:b': {} } });
    expect(ownedBy(put, 'editor', 'Update')).toEqual({ 'f:data': { 'f:a': {} } });
  });

  test('SSA-5: an equal value is shared, and a later change of it conflicts', async () => {
    const name = freshName();
    const path = `${maps}/${name}`;
    await apply(server, path, dataMap(name, { a: '1' }));
    const shared = await apply(server, path, dataMap(name, { a: '1' }), { manager: 'bob' });
    expect(shared.status).toBe(200);
    // As in kube-apiserver, an apply that changes no value gets no time, and so precedes the
    // others.
    expect(managersOf(shared)).toEqual(['bob/Apply', 'alice/Apply']);
    expect((await apply(server, path, dataMap(name, { a: '2' }))).status).toBe(409);
    expect((await apply(server, path, dataMap(name, { a: '2' }), { manager: 'bob' })).status).toBe(
      409,
    );
  });

  test('SSA-5: omitting a shared field releases it, and a sole-owned one is removed', async () => {
    const name = freshName();
    const path = `${maps}/${name}`;
    await apply(server, path, dataMap(name, { a: '1', b: '1' }));
    await apply(server, path, dataMap(name, { a: '1' }), { manager: 'bob' });
    const less = await apply(server, path, dataMap(name, { c: '1' }));
    expect(less.body.data).toEqual({ a: '1', c: '1' });
    expect(ownedBy(less, 'bob')).toEqual({ 'f:data': { 'f:a': {} } });
    expect(ownedBy(less, 'alice')).toEqual({ 'f:data': { 'f:c': {} } });
  });

  test('SSA-5: an omitted field with a default returns to it', async () => {
    const properties = {
      spec: {
        type: 'object',
        properties: { size: { type: 'integer', default: 3 }, color: { type: 'string' } },
      },
    };
    const kind = await defineThing(server, [{ properties }]);
    const path = `${kind.path(namespace)}/one`;
    const first = await apply(server, path, kind.body('one', { spec: { size: 7, color: 'red' } }));
    expect(first.body.spec).toEqual({ size: 7, color: 'red' });
    const second = await apply(server, path, kind.body('one', { spec: { color: 'red' } }));
    expect(second.body.spec).toEqual({ size: 3, color: 'red' });
    expect(ownedBy(second, 'alice')).toEqual({ 'f:spec': { 'f:color': {} } });
  });
});

describe('repeated applies', () => {
  test('SSA-9: an identical body changes nothing', async () => {
    const name = freshName();
    const path = `${maps}/${name}`;
    const first = await apply(server, path, dataMap(name, { a: '1' }));
    const watch = await server.watch(
      `${maps}?watch=1&resourceVersion=${first.body.metadata.resourceVersion}`,
    );
    const second = await apply(server, path, dataMap(name, { a: '1' }));
    expect(second.status).toBe(200);
    expect(second.text).toBe(first.text);
    const byBob = await apply(server, path, dataMap(name, { a: '1' }), { manager: 'bob' });
    await watch.until((events) => events.length > 0, 'the next change');
    expect(watch.events[0]?.object.metadata.resourceVersion).toBe(
      byBob.body.metadata.resourceVersion,
    );
    watch.close();
  });

  test('SSA-9: a workload with defaults, applied twice, is written once', async () => {
    const name = freshName();
    const path = `/apis/apps/v1/namespaces/${namespace}/deployments/${name}`;
    const body = {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name, labels: { app: name } },
      spec: {
        ...selecting({ app: name }, { name: 'c', image: 'i', ports: [{ containerPort: 80 }] }),
      },
    };
    const first = await apply<ResponseOf<Deployment>>(server, path, body);
    expect(first.status).toBe(201);
    expect(first.body.spec.template.spec.restartPolicy).toBe('Always');
    expect((await apply(server, path, body)).text).toBe(first.text);
  });

  test('SSA-8: fields are tracked in the version they were applied in', async () => {
    const spec = { spec: { type: 'object', additionalProperties: { type: 'string' } } };
    const kind = await defineThing(server, [
      { name: 'v1', properties: spec },
      { name: 'v1beta1', properties: spec },
    ]);
    const body = (version: string, values: Record<string, string>) =>
      kind.body('one', { spec: values }, version);
    const old = `${kind.path(namespace, 'v1beta1')}/one`;
    const current = `${kind.path(namespace, 'v1')}/one`;
    const first = await apply(server, old, body('v1beta1', { a: '1', b: '1' }));
    expect(first.status).toBe(201);
    const versions = (answer: typeof first) =>
      answer.body.metadata.managedFields.map((entry: { apiVersion: string }) => entry.apiVersion);
    expect(versions(first)).toEqual([`${kind.group}/v1beta1`]);
    const refused = await apply(server, current, body('v1', { a: '2' }), { manager: 'bob' });
    expect(refused.status).toBe(409);
    const moved = await apply(server, current, body('v1', { a: '1' }));
    expect(moved.body.spec).toEqual({ a: '1' });
    expect(versions(moved)).toEqual([`${kind.group}/v1`]);
    expect(managersOf(moved)).toEqual(['alice/Apply']);
  });

  test('SSA-8: an autoscaler moves to a version whose new fields get defaults', async () => {
    const name = freshName();
    const scaleTargetRef = { apiVersion: 'apps/v1', kind: 'Deployment', name: 'd' };
    const applied = (version: string, spec: object) =>
      apply<ResponseOf<HorizontalPodAutoscaler>>(
        server,
        `/apis/autoscaling/${version}/namespaces/${namespace}/horizontalpodautoscalers/${name}`,
        {
          apiVersion: `autoscaling/${version}`,
          kind: 'HorizontalPodAutoscaler',
          metadata: { name },
          spec: { scaleTargetRef, maxReplicas: 5, ...spec },
        },
      );
    await applied('v1', { minReplicas: 3, targetCPUUtilizationPercentage: 50 });
    const moved = await applied('v2', { behavior: { scaleUp: { selectPolicy: 'Min' } } });
    expect(moved.status, moved.text).toBe(200);
    expect(moved.body.spec).toMatchObject({ minReplicas: 1, maxReplicas: 5 });
    expect(moved.body.spec.behavior).toEqual({
      scaleUp: {
        selectPolicy: 'Min',
        stabilizationWindowSeconds: 0,
        policies: [
          { type: 'Pods', value: 4, periodSeconds: 15 },
          { type: 'Percent', value: 100, periodSeconds: 15 },
        ],
      },
      scaleDown: {
        selectPolicy: 'Max',
        policies: [{ type: 'Percent', value: 100, periodSeconds: 15 }],
      },
    });
    expect(managersOf(moved)).toEqual(['alice/Apply']);
  });
});
