import { systemClock } from '@wheelhouse/machinery';
import { beforeEach, describe, expect, test } from 'vitest';
import { policyKit } from '../admission/admission-policies.ts';
import {
  configure,
  patching,
  startAdmissionService,
  webhook,
} from '../admission/admission-service.ts';
import { untilEnd } from '../support/cleanup.ts';
import {
  type Answer,
  eventually,
  freshNamespace,
  itemNames,
  type ResponseBody,
} from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';
import {
  type Converted,
  conversionBy,
  establishMulti,
  type MultiKind,
  startConversionService,
  storeAs,
  swap,
} from './conversion-service.ts';
import { definitions, redefine, untilGone } from './custom-kinds.ts';

const served = ['v1alpha1', 'v1beta1', 'v1beta2'];

let multi: MultiKind;
let namespace: string;
const at = (version: string) => multi.at(version, namespace);
const service = await untilEnd(startConversionService());
const server = await withServer();
beforeEach(async () => {
  namespace = await freshNamespace(server);
  multi = await establishMulti(server, conversionBy(service));
  service.reset();
});

async function create(version: string, name: string, more: object = {}): Promise<ResponseBody> {
  const answer = await server.post(at(version), multi.object(version, name, more));
  expect(answer.status).toBe(201);
  return answer.body;
}

const broken = () => {
  throw new Error('broken');
};

describe('another storage version', () => {
  test('CRD-4: objects stored in several versions read the same in each', async () => {
    for (const version of served) {
      await storeAs(server, multi, version);
      await create(version, `in-${version}`);
    }
    for (const version of served) {
      const { body } = await server.get(at(version));
      expect(body.items).toHaveLength(3);
      for (const { metadata, ...rest } of body.items) {
        const { metadata: _, ...wanted } = multi.object(version, metadata.name);
        expect(rest).toMatchObject(wanted);
      }
    }
    service.forget();
    const list = await server.get(`${at('v1beta2')}?labelSelector=!none`);
    expect(itemNames(list)).toEqual(served.map((written) => `in-${written}`));
    const byField = await server.get(`${at('v1beta2')}?fieldSelector=spec.contentv2.key=value`);
    expect(itemNames(byField)).toHaveLength(3);
    expect(service.asked()).toEqual([]);
  });

  test('CRD-4: the webhook is called only for objects stored in the earlier version', async () => {
    await create('v1beta1', 'a');
    await storeAs(server, multi, 'v1beta2');
    await create('v1beta2', 'b');
    service.convert = broken;
    expect((await server.get(`${at('v1beta1')}/a`)).status).toBe(200);
    expect((await server.get(`${at('v1beta2')}/b`)).status).toBe(200);
    expect((await server.get(`${at('v1beta2')}/a`)).body.message).toContain(': broken');
    expect((await server.get(`${at('v1beta1')}/b`)).body.message).toContain(': broken');
    expect((await server.get(at('v1beta2'))).body.message).toContain(': broken');
  });

  test('CRD-4: an unchanged write moves an object to the current storage version', async () => {
    const made = await create('v1beta1', 'a');
    await storeAs(server, multi, 'v1beta2');
    const moved = await server.patch(`${at('v1beta2')}/a`, {}, 'merge');
    expect(moved.status).toBe(200);
    expect(moved.body.spec.contentv2).toEqual({ key: 'value' });
    expect(moved.body.metadata.resourceVersion).not.toBe(made.metadata.resourceVersion);
    const again = await server.patch(`${at('v1beta2')}/a`, {}, 'merge');
    expect(again.body.metadata.resourceVersion).toBe(moved.body.metadata.resourceVersion);
    service.convert = broken;
    expect((await server.get(`${at('v1beta2')}/a`)).status).toBe(200);
    expect((await server.get(`${at('v1beta1')}/a`)).status).toBe(500);
  });

  test('CRD-4: unserved versions are 404 but still convert', async () => {
    await create('v1alpha1', 'a');
    await redefine(server, multi.name, (spec) => {
      for (const version of spec.versions) if (version.name === 'v1beta1') version.served = false;
    });
    await untilGone(server, `${at('v1beta1')}/a`);
    const { body } = await server.get(`${at('v1beta2')}/a`);
    expect(body.spec.contentv2).toEqual({ key: 'value' });
    const made = await create('v1beta2', 'b');
    expect(made.spec.contentv2).toEqual({ key: 'value' });
  });

  test('CRD-4: a list asks again as soon as the definition names another webhook', async () => {
    // On this clock, no answer of a webhook becomes outdated.
    const clock = { ...systemClock, monotonic: () => systemClock.monotonic() / 1000 };
    const young = await withServer({ clock });
    const kind = await establishMulti(young, conversionBy(service));
    const path = kind.at('v1beta2', 'default');
    await young.post(kind.at('v1beta1', 'default'), kind.object('v1beta1', 'a'));
    const list = async () => (await young.get<{ items: Converted[] }>(path)).body.items[0]?.spec;
    service.convert = (object, desired) => ({ ...swap(object, desired), spec: { numv2: {} } });
    expect(await list()).toEqual({ numv2: {} });
    service.convert = swap;
    expect(await list()).toEqual({ numv2: {} });
    await redefine(young, kind.name, (spec) => {
      spec.conversion.webhook!.clientConfig.url = `${service.url}/other`;
    });
    await eventually(async () => {
      const spec = await list();
      return spec?.contentv2?.key === 'value';
    }, 'the other webhook to be asked');
    expect(service.received.at(-1)?.path).toContain('/other');
  });

  test('CRD-4: with strategy None only apiVersion differs', async () => {
    await create('v1beta1', 'a');
    await redefine(server, multi.name, (spec) => {
      spec.conversion = { strategy: 'None' };
    });
    await eventually(async () => {
      const { status, body } = await server.get<Converted>(`${at('v1alpha1')}/a`);
      return status === 200 && body.spec.content.key === 'value';
    }, 'the definition to be followed');
    service.forget();
    expect((await server.get(`${at('v1beta2')}/a`)).body.spec).toEqual({});
    expect(service.received).toEqual([]);
  });
});

describe('controllers while the webhook is broken', () => {
  test('DEL-4, CRD-4: a namespace is deleted with its objects of all stored versions', async () => {
    await create('v1beta1', 'a');
    await create('v1beta1', 'held', { metadata: { name: 'held', finalizers: ['x.io/y'] } });
    await storeAs(server, multi, 'v1beta2');
    await create('v1beta2', 'b');
    service.convert = broken;
    await server.remove(`/api/v1/namespaces/${namespace}`);
    await untilGone(server, `${at('v1beta1')}/a`);
    await untilGone(server, `${at('v1beta2')}/b`);
    const held = await server.get(`${at('v1beta1')}/held`);
    expect(held.body.metadata.deletionTimestamp).toBeDefined();
    const patch = { metadata: { finalizers: null } };
    expect((await server.patch(`${at('v1beta1')}/held`, patch, 'merge')).status).toBe(200);
    await untilGone(server, `/api/v1/namespaces/${namespace}`);
  });

  test('DEL-5, CRD-4: dependents are collected', async () => {
    const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'owner' } };
    const owner = await server.post(`/api/v1/namespaces/${namespace}/configmaps`, body);
    const { uid } = owner.body.metadata;
    const ownerReferences = [{ apiVersion: 'v1', kind: 'ConfigMap', name: 'owner', uid }];
    await create('v1beta1', 'a', { metadata: { name: 'a', ownerReferences } });
    await storeAs(server, multi, 'v1beta2');
    await create('v1beta2', 'b', { metadata: { name: 'b', ownerReferences } });
    service.convert = broken;
    await server.remove(`/api/v1/namespaces/${namespace}/configmaps/owner`);
    await untilGone(server, `${at('v1beta1')}/a`);
    await untilGone(server, `${at('v1beta2')}/b`);
  });

  test('DEL-5, CRD-4: dependents are orphaned', async () => {
    const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'owner' } };
    const owner = await server.post(`/api/v1/namespaces/${namespace}/configmaps`, body);
    const { uid } = owner.body.metadata;
    const ownerReferences = [{ apiVersion: 'v1', kind: 'ConfigMap', name: 'owner', uid }];
    await create('v1beta1', 'a', { metadata: { name: 'a', ownerReferences } });
    await storeAs(server, multi, 'v1beta2');
    service.convert = broken;
    const options = { propagationPolicy: 'Orphan' };
    await server.remove(`/api/v1/namespaces/${namespace}/configmaps/owner`, options);
    await eventually(async () => {
      const { body: now } = await server.get<Converted>(`${at('v1beta1')}/a`);
      return now.metadata?.ownerReferences === undefined && now.spec.content.key === 'value';
    }, 'the owner to be forgotten');
  });

  test('CRD-3, CRD-4: a definition is deleted with its objects', async () => {
    await create('v1beta1', 'a');
    await storeAs(server, multi, 'v1beta2');
    await create('v1beta2', 'b');
    service.convert = broken;
    await server.remove(`${definitions}/${multi.name}`);
    await untilGone(server, `${definitions}/${multi.name}`);
    await untilGone(server, at('v1beta2'));
  });
});

describe('field ownership', () => {
  const managersOf = ({ body }: Answer) =>
    (body.metadata.managedFields ?? []).map(
      (managedField: { apiVersion: string; manager: string; operation: string }) =>
        `${managedField.manager} ${managedField.operation} ${managedField.apiVersion.split('/')[1]}`,
    );
  const apply = (version: string, manager: string, spec: object, query = '') => {
    const body = { apiVersion: `${multi.group}/${version}`, kind: 'Multi', spec };
    const path = `${at(version)}/a?fieldManager=${manager}${query}`;
    return server.patch(path, { ...body, metadata: { name: 'a' } }, 'apply');
  };

  test('SSA-5, CRD-4: owners in another version conflict', async () => {
    const made = await apply('v1beta1', 'one', { content: { key: 'x' } });
    expect(made.status).toBe(201);
    const same = await apply('v1beta2', 'two', { contentv2: { key: 'x' } });
    expect(same.status, same.text).toBe(200);
    expect(managersOf(same).sort()).toEqual(['one Apply v1beta1', 'two Apply v1beta2']);
    const refused = await apply('v1beta2', 'two', { contentv2: { key: 'y' } });
    expect(refused.status).toBe(409);
    expect(refused.body.message).toContain('conflict with "one"');
    const forced = await apply('v1beta2', 'two', { contentv2: { key: 'y' } }, '&force=true');
    expect(managersOf(forced)).toEqual(['two Apply v1beta2']);
    expect(forced.body.spec.contentv2).toEqual({ key: 'y' });
    const { body } = await server.get(`${at('v1beta1')}/a`);
    expect(body.spec.content).toEqual({ key: 'y' });
  });

  test('SSA-3, CRD-4: a field that is no longer applied in another version is released', async () => {
    await apply('v1beta1', 'one', { content: { key: 'x' }, num: { num1: 1 } });
    const moved = await apply('v1beta2', 'one', { contentv2: { key: 'x' } });
    expect(moved.body).toMatchObject({ spec: {} });
    expect(moved.body.spec).toEqual({ contentv2: { key: 'x' } });
    expect(managersOf(moved)).toEqual(['one Apply v1beta2']);
  });

  test('MF-2, CRD-4: an update in one version takes fields from owners in another', async () => {
    await apply('v1beta1', 'one', { content: { key: 'x' }, num: { num1: 1 } });
    const path = `${at('v1beta2')}/a?fieldManager=two`;
    const put = await server.patch(path, { spec: { contentv2: { key: 'y' } } }, 'merge');
    expect(managersOf(put)).toEqual(['one Apply v1beta1', 'two Update v1beta2']);
    const [first, second] = put.body.metadata.managedFields;
    expect(first.fieldsV1).toEqual({ 'f:spec': { 'f:num': { 'f:num1': {} } } });
    expect(second?.fieldsV1).toEqual({ 'f:spec': { 'f:contentv2': { 'f:key': {} } } });
  });

  test('MF-2, CRD-4: managedFields that cannot be converted are dropped', async () => {
    await apply('v1beta1', 'one', { content: { key: 'x' } });
    await apply('v1beta2', 'two', { numv2: { num1: 1 } });
    service.convert = broken;
    const path = `${at('v1beta1')}/a?fieldManager=three`;
    const patched = await server.patch(path, { spec: { content: { key: 'z' } } }, 'merge');
    expect(patched.status).toBe(200);
    expect(patched.body.metadata.managedFields).toBeUndefined();
    service.convert = swap;
    await apply('v1beta2', 'two', { numv2: { num1: 1 } });
    service.convert = broken;
    const applied = await apply('v1beta1', 'one', { content: { key: 'q' } });
    expect(applied.status).toBe(500);
    expect(applied.body.message).toContain('failed: broken');
  });
});

describe('admission', () => {
  test('ADM-2, CRD-4: a mutating webhook changes the version in its rules', async () => {
    const admission = await startAdmissionService();
    const rule = {
      operations: ['CREATE', 'UPDATE'],
      apiGroups: [multi.group],
      apiVersions: ['v1beta2'],
      resources: ['multis'],
    };
    admission.answer('/mutate', () =>
      patching([{ op: 'replace', path: '/spec/contentv2/key', value: 'mutated' }]),
    );
    const hook = webhook(admission, { path: '/mutate', namespace, rules: [rule] });
    const { remove } = await configure(server, 'mutating', [hook]);
    try {
      const probe = `${at('v1beta1')}?dryRun=All`;
      await eventually(async () => {
        const { body } = await server.post<Converted>(probe, multi.object('v1beta1', 'a'));
        return body.spec?.content?.key === 'mutated';
      }, 'the webhook to be asked');
      const made = await create('v1beta1', 'a');
      expect(made.spec).toEqual({ content: { key: 'mutated' }, num: { num1: 1, num2: 1000000 } });
      const patch = { spec: { content: { key: 'x' } } };
      await server.patch(`${at('v1alpha1')}/a`, patch, 'merge');
      const request = admission.at('/mutate').at(-1)?.request;
      expect(request?.object.apiVersion).toBe(`${multi.group}/v1beta2`);
      expect(request?.object['spec']).toHaveProperty('contentv2.key', 'x');
      expect(request?.oldObject['spec']).toHaveProperty('contentv2.key', 'mutated');
      expect((await server.get<Converted>(`${at('v1beta2')}/a`)).body.spec.contentv2.key).toBe(
        'mutated',
      );
    } finally {
      await remove();
      await admission.stop();
    }
  });

  test('ADM-3, CRD-4: policies and parameters use the versions that they name', async () => {
    const kit = await policyKit(server);
    service.convert = (object, desired) => {
      const made = swap(object, desired);
      const labels = desired.endsWith('v1beta2') ? { chosen: 'yes' } : {};
      return { ...made, metadata: { ...made.metadata, labels } };
    };
    const rule = {
      operations: ['CREATE'],
      apiGroups: [multi.group],
      apiVersions: ['v1beta2'],
      resources: ['multis'],
    };
    const param = multi.object('v1beta1', 'param', { spec: { content: { key: 'bad' } } });
    expect((await server.post(multi.at('v1beta1', kit.params), param)).status).toBe(201);
    const expression = 'object.spec.contentv2.key != params.spec.contentv2.key';
    await kit.bound(
      {
        paramKind: { apiVersion: `${multi.group}/v1beta2`, kind: 'Multi' },
        validations: [{ expression, message: 'so it is' }],
      },
      {
        paramRef: {
          namespace: kit.params,
          selector: { matchLabels: { chosen: 'yes' } },
          parameterNotFoundAction: 'Deny',
        },
      },
      { resourceRules: [rule] },
    );
    try {
      const path = `${multi.at('v1beta1', kit.namespace)}?dryRun=All`;
      const bad = multi.object('v1beta1', 'a', { spec: { content: { key: 'bad' } } });
      const refused = await eventually(async () => {
        const answer = await server.post(path, bad);
        return answer.status === 201 ? undefined : answer;
      }, 'the policy to be asked');
      expect(refused.body.message).toContain('denied request: so it is');
      expect((await server.post(path, multi.object('v1beta1', 'a'))).status).toBe(201);
    } finally {
      await kit.clear();
    }
  });
});
