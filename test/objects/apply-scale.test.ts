import type { ApiObject } from '@wheelhouse/machinery';
import { beforeAll, describe, expect, test } from 'vitest';
import { freshNamespace, selecting } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';
import { apply, defineThing, managersOf, ownedBy } from './apply-kinds.ts';

let namespace: string;
let deployments: string;
const server = await withServer();

beforeAll(async () => {
  namespace = await freshNamespace(server);
  deployments = `/apis/apps/v1/namespaces/${namespace}/deployments`;
});

let count = 0;
const fresh = () => {
  count += 1;
  return `d${count}`;
};

function deployment(name: string, replicas?: number) {
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name },
    spec: {
      ...(replicas === undefined ? {} : { replicas }),
      ...selecting({ app: name }),
    },
  };
}

const scaleBody = (name: string, replicas: number) => ({
  apiVersion: 'autoscaling/v1',
  kind: 'Scale',
  metadata: { name },
  spec: { replicas },
});

describe('of a workload', () => {
  test('PATCH-1: a JSON patch replaces 0 replicas, which a Scale omits', async () => {
    const name = fresh();
    const path = `${deployments}/${name}/scale`;
    await server.post(deployments, deployment(name, 0));
    expect((await server.get(path)).body.spec).toEqual({});
    const none = [{ op: 'replace', path: '/spec/replicas', value: 0 }];
    const kept = await server.patch(path, none, 'json');
    expect([kept.status, kept.body.spec], kept.text).toEqual([200, {}]);
    const ops = [{ op: 'replace', path: '/spec/replicas', value: 3 }];
    const scaled = await server.patch(path, ops, 'json');
    expect([scaled.status, scaled.body.spec]).toEqual([200, { replicas: 3 }]);
  });

  test('SSA-10: GET returns the Scale, and 404 for a missing object', async () => {
    const name = fresh();
    const { body } = await server.post(deployments, deployment(name, 2));
    const { uid, resourceVersion, creationTimestamp } = body.metadata;
    const answer = await server.get(`${deployments}/${name}/scale`);
    expect(answer.body).toEqual({
      kind: 'Scale',
      apiVersion: 'autoscaling/v1',
      metadata: { name, namespace, uid, resourceVersion, creationTimestamp },
      spec: { replicas: 2 },
      status: { replicas: 0, selector: `app=${name}` },
    });
    const absent = await server.get(`${deployments}/nobody/scale`);
    expect(absent.status).toBe(404);
    expect(absent.body.message).toBe('deployments/scale.apps "nobody" not found');
    const details = { name: 'nobody', group: 'apps', kind: 'deployments/scale' };
    expect(absent.body.details).toEqual(details);
    const controllers = `/api/v1/namespaces/${namespace}/replicationcontrollers`;
    expect((await server.get(`${controllers}/nobody/scale`)).body.message).toBe(
      'replicationcontrollers/scale.autoscaling "nobody" not found',
    );
    expect(
      (await server.get(`${deployments.replace('deployments', 'statefulsets')}/nobody/scale`)).body
        .message,
    ).toBe('statefulsets.apps "nobody" not found');
    const written = await server.patch(`${deployments}/nobody/scale`, {}, 'merge');
    expect(written.body.message).toBe('deployments.apps "nobody" not found');
  });

  test('SSA-10, LIST-4: GET reads the Scale at the requested resourceVersion', async () => {
    const name = fresh();
    const { body } = await server.post(deployments, deployment(name, 2));
    const path = `${deployments}/${name}/scale?resourceVersion=`;
    for (const version of ['0', body.metadata.resourceVersion]) {
      expect((await server.get(path + version)).body.spec).toEqual({ replicas: 2 });
    }
    const refused = await server.get(`${path}x`);
    expect([refused.status, refused.body.reason]).toEqual([400, 'BadRequest']);
  });

  test('SSA-10: PUT sets the replicas, which the writer of the scale then owns', async () => {
    const name = fresh();
    await apply(server, `${deployments}/${name}`, deployment(name, 2));
    const path = `${deployments}/${name}/scale`;
    const put = await server.put(`${path}?fieldManager=scaler`, scaleBody(name, 5));
    expect(put.status).toBe(200);
    expect(put.body.spec).toEqual({ replicas: 5 });
    const whole = await server.get(`${deployments}/${name}`);
    expect(whole.body.spec.replicas).toBe(5);
    expect(whole.body.metadata.generation).toBe(2);
    expect(ownedBy(whole, 'scaler', 'Update')).toEqual({ 'f:spec': { 'f:replicas': {} } });
    expect(managersOf(whole)).toEqual(['alice/Apply', 'scaler/Update/scale']);
    expect(ownedBy(whole, 'alice')).toHaveProperty(['f:spec']);
    expect(ownedBy(whole, 'alice')).not.toHaveProperty(['f:spec', 'f:replicas']);
    const refused = await apply(server, `${deployments}/${name}`, deployment(name, 2));
    expect(refused.status).toBe(409);
    expect(refused.body.details.causes).toEqual([
      {
        reason: 'FieldManagerConflict',
        message: expect.stringContaining('conflict with "scaler" with subresource "scale"'),
        field: '.spec.replicas',
      },
    ]);
  });

  test('SSA-10: every patch type goes through the Scale', async () => {
    const name = fresh();
    await server.post(deployments, deployment(name, 2));
    const path = `${deployments}/${name}/scale`;
    const merged = await server.patch(path, { spec: { replicas: 3 } }, 'merge');
    expect(merged.body.spec.replicas).toBe(3);
    const strategic = await server.patch(path, { spec: { replicas: 4 } }, 'strategic');
    expect(strategic.body.spec.replicas).toBe(4);
    const ops = [{ op: 'replace', path: '/spec/replicas', value: 5 }];
    const json = await server.patch(path, ops, 'json');
    expect(json.body.spec.replicas).toBe(5);
    const none = await server.patch(path, { spec: { replicas: 0 } }, 'merge');
    expect(none.body.spec).toEqual({});
    expect((await server.get(`${deployments}/${name}`)).body.spec.replicas).toBe(0);
  });

  test.each(['merge', 'strategic', 'json'] as const)(
    'SSA-10: a %s patch of the scale from 0 replicas to 0 changes no owner',
    async (type) => {
      const name = fresh();
      const applied = await apply(server, `${deployments}/${name}`, deployment(name, 0));
      const path = `${deployments}/${name}/scale?fieldManager=scaler`;
      const to = (replicas: number) =>
        type === 'json'
          ? [{ op: 'replace', path: '/spec/replicas', value: replicas }]
          : { spec: { replicas } };
      const same = await server.patch(path, to(0), type);
      expect(same.status).toBe(200);
      expect((await server.get(`${deployments}/${name}`)).text).toBe(applied.text);
      await server.patch(path, to(2), type);
      const scaled = await server.get(`${deployments}/${name}`);
      expect(scaled.body.spec.replicas).toBe(2);
      expect(managersOf(scaled)).toEqual(['alice/Apply', 'scaler/Update/scale']);
      const refused = await apply(server, `${deployments}/${name}`, deployment(name, 0));
      expect(refused.status).toBe(409);
    },
  );

  test('SSA-10: an apply of the scale conflicts with the owner of the replicas', async () => {
    const name = fresh();
    await apply(server, `${deployments}/${name}`, deployment(name, 2));
    const path = `${deployments}/${name}/scale`;
    const refused = await apply(server, path, scaleBody(name, 3), { manager: 'bob' });
    expect(refused.status).toBe(409);
    expect(refused.body.details.causes).toEqual([
      { reason: 'FieldManagerConflict', message: 'conflict with "alice"', field: '.spec.replicas' },
    ]);
    const forced = await apply(server, path, scaleBody(name, 3), { manager: 'bob', force: true });
    expect(forced.status).toBe(200);
    const whole = await server.get(`${deployments}/${name}`);
    // The owner that came from the scale has no time, and so precedes the others.
    expect(managersOf(whole)).toEqual(['bob/Apply/scale', 'alice/Apply']);
    const again = await apply(server, path, scaleBody(name, 3), { manager: 'bob' });
    expect(again.text).toBe(forced.text);
  });

  test('SSA-10: a Scale takes name and namespace from the path', async () => {
    const name = fresh();
    const { text } = await server.post(deployments, deployment(name, 2));
    const path = `${deployments}/${name}/scale`;
    const misnamed = `the name of the object (other) does not match the name on the URL (${name})`;
    const put = await server.put(path, scaleBody('other', 3));
    expect([put.status, put.body.message]).toEqual([400, misnamed]);
    const patched = await server.patch(path, { metadata: { name: 'other' } }, 'merge');
    expect([patched.status, patched.body.message]).toEqual([400, misnamed]);
    const nameless = await server.put(path, { ...scaleBody(name, 3), metadata: {} });
    expect([nameless.status, nameless.body.message]).toEqual([
      400,
      `the name of the object (${name} based on URL) was undeterminable: name must be provided`,
    ]);
    const away = await server.patch(path, { metadata: { namespace: 'elsewhere' } }, 'merge');
    expect(away.status).toBe(400);
    expect(away.body.message).toMatch(/^the namespace of the provided object does not match/);
    expect((await server.get(`${deployments}/${name}`)).text).toBe(text);
  });

  test('SSA-10: a Scale must be valid, current, and of the same object', async () => {
    const name = fresh();
    const { body } = await server.post(deployments, deployment(name, 2));
    const path = `${deployments}/${name}/scale`;
    const negative = await server.put(path, scaleBody(name, -1));
    expect(negative.status).toBe(422);
    expect(negative.body.message).toBe(
      `Scale.autoscaling "${name}" is invalid: spec.replicas: Invalid value: -1: must be greater than or equal to 0`,
    );
    const stale = scaleBody(name, 3) as ApiObject;
    stale.metadata.resourceVersion = '1';
    expect((await server.put(path, stale)).status).toBe(409);
    const foreign = scaleBody(name, 3) as ApiObject;
    foreign.metadata.uid = 'other';
    const uid = body.metadata.uid;
    const put = await server.put(path, foreign);
    expect([put.status, put.body.message]).toEqual([
      409,
      `Operation cannot be fulfilled on deployments.apps "${name}": StorageError: invalid object, ` +
        `Code: 4, Key: /registry/deployments/${namespace}/${name}, ResourceVersion: 0, ` +
        'AdditionalErrorMsg: Precondition failed: UID in precondition: other, ' +
        `UID in object meta: ${uid}`,
    ]);
    const patched = await server.patch(path, { metadata: { uid: 'other' } }, 'merge');
    expect([patched.status, patched.body.message]).toEqual([
      409,
      `Operation cannot be fulfilled on deployments/scale.apps "${name}": Precondition failed: ` +
        `UID in precondition: other, UID in object meta: ${uid}`,
    ]);
    const wrong = await server.put(path, deployment(name, 3));
    expect(wrong.status).toBe(400);
    const text = await server.put(path, { ...scaleBody(name, 3), spec: { replicas: 'many' } });
    expect(text.status).toBe(400);
    expect((await server.get(`${deployments}/${name}`)).text).toBe(`${JSON.stringify(body)}\n`);
  });
});

describe('of a custom kind', () => {
  const scale = {
    specReplicasPath: '.spec.size.count',
    statusReplicasPath: '.status.count',
    labelSelectorPath: '.status.selector',
  };
  const loose = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };

  test('SSA-10: the definition names the path of the replicas', async () => {
    const properties = { spec: loose, status: loose };
    const kind = await defineThing(server, [{ properties, subresources: { scale, status: {} } }]);
    const path = `${kind.path(namespace)}/one`;
    await apply(server, path, kind.body('one', { spec: { size: { count: 2 } } }));
    const counted = { status: { count: 1, selector: 'a=b' } };
    await server.patch(`${path}/status`, counted, 'merge');
    const seen = await server.get(`${path}/scale`);
    expect(seen.body.spec).toEqual({ replicas: 2 });
    expect(seen.body.status).toEqual({ replicas: 1, selector: 'a=b' });
    const put = await server.put(`${path}/scale?fieldManager=scaler`, scaleBody('one', 7));
    expect(put.status).toBe(200);
    const whole = await server.get(path);
    expect(whole.body.spec).toEqual({ size: { count: 7 } });
    expect(ownedBy(whole, 'scaler', 'Update')).toEqual({
      'f:spec': { 'f:size': { 'f:count': {} } },
    });
    const strategic = await server.patch(`${path}/scale`, {}, 'strategic');
    expect(strategic.status).toBe(415);
  });

  test('SSA-10: a write creates the path of the replicas when it is missing', async () => {
    const properties = { spec: loose };
    const kind = await defineThing(server, [{ properties, subresources: { scale } }]);
    const path = `${kind.path(namespace)}/one`;
    await apply(server, path, kind.body('one', { spec: { x: 1 } }));
    const unset = await server.patch(
      `${path}/scale`,
      { metadata: { labels: { a: 'b' } } },
      'merge',
    );
    expect([unset.status, unset.body.message]).toEqual([
      400,
      'the spec replicas field ".spec.size.count" cannot be empty',
    ]);
    const negative = await server.put(`${path}/scale`, scaleBody('one', -1));
    expect([negative.status, negative.body.details.causes]).toEqual([
      422,
      [
        {
          reason: 'FieldValueInvalid',
          message: 'Invalid value: -1: should be a non-negative integer',
          field: '.spec.size.count',
        },
      ],
    ]);
    const put = await server.put(`${path}/scale`, scaleBody('one', 7));
    expect(put.status).toBe(200);
    expect((await server.get(path)).body.spec).toEqual({ x: 1, size: { count: 7 } });
  });
});

describe('status', () => {
  test('SSA-10: applies to status and to the object own separately', async () => {
    const properties = {
      spec: { type: 'object', additionalProperties: { type: 'string' } },
      status: { type: 'object', additionalProperties: { type: 'string' } },
    };
    const kind = await defineThing(server, [{ properties, subresources: { status: {} } }]);
    const path = `${kind.path(namespace)}/one`;
    const both = kind.body('one', { spec: { a: '1' }, status: { s: '1' } });
    expect((await apply(server, `${path}/status`, both)).status).toBe(404);
    const object = await apply(server, path, both);
    expect(object.body.status).toBeUndefined();
    expect(ownedBy(object, 'alice')).toEqual({ 'f:spec': { 'f:a': {} } });
    const status = await apply(server, `${path}/status`, both);
    expect(status.status).toBe(200);
    expect(status.body.status).toEqual({ s: '1' });
    expect(managersOf(status).sort()).toEqual(['alice/Apply', 'alice/Apply/status']);
    const entries = status.body.metadata.managedFields;
    expect(entries.find((entry) => entry.subresource === 'status')?.fieldsV1).toEqual({
      'f:status': { 'f:s': {} },
    });
    const again = await apply(server, path, kind.body('one', { spec: { b: '1' } }));
    expect(again.body.status).toEqual({ s: '1' });
    expect(again.body.spec).toEqual({ b: '1' });
  });
});
