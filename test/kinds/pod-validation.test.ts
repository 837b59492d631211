import type { Pod } from '@wheelhouse/kinds/types/core/v1';
import type { APIResource } from '@wheelhouse/kinds/types/meta/v1';
import type { JsonObject } from '@wheelhouse/machinery';
import { beforeAll, describe, expect, test } from 'vitest';
import type { ResponseOf } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';

const ns = '/api/v1/namespaces/pods';
const pods = `${ns}/pods`;

const server = await withServer({ dialect: 'kubernetes' });

beforeAll(async () => {
  await server.post('/api/v1/namespaces', { metadata: { name: 'pods' } });
});

const pod = (name: string, spec: object = {}, metadata: object = {}) => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, ...metadata },
  spec: { containers: [{ name: 'a', image: 'i:1' }], ...spec },
});

async function made(
  name: string,
  spec: JsonObject = {},
  metadata: JsonObject = {},
): Promise<ResponseOf<Pod>> {
  const answer = await server.post<ResponseOf<Pod>>(pods, pod(name, spec, metadata));
  expect(answer.status, answer.text).toBe(201);
  return answer.body;
}

describe('creating a Pod', () => {
  test('API-10: lists every error in the message and as causes', async () => {
    const answer = await server.post(
      pods,
      pod('bad', {
        containers: [{ name: 'A', image: '', livenessProbe: {}, ports: [{ containerPort: 0 }] }],
        restartPolicy: 'Sometimes',
      }),
    );
    expect(answer.status).toBe(422);
    expect(answer.body).toMatchObject({
      kind: 'Status',
      reason: 'Invalid',
      code: 422,
      details: { name: 'bad', kind: 'Pod' },
    });
    const { causes } = answer.body.details;
    expect(
      causes.map(({ reason, field }: { reason: string; field: string }) => [reason, field]),
    ).toEqual([
      ['FieldValueInvalid', 'spec.containers[0].name'],
      ['FieldValueRequired', 'spec.containers[0].image'],
      ['FieldValueRequired', 'spec.containers[0].ports[0].containerPort'],
      ['FieldValueRequired', 'spec.containers[0].livenessProbe'],
      ['FieldValueNotSupported', 'spec.restartPolicy'],
    ]);
    expect(causes[3]?.message).toBe('Required value: must specify a handler type');
    expect(answer.body.message).toMatch(/^Pod "bad" is invalid: \[spec\.containers\[0\]\.name: /);
    expect(answer.body.message).toContain(
      'spec.restartPolicy: Unsupported value: "Sometimes": supported values: "Always", "OnFailure", "Never"]',
    );
  });

  test('API-10: reports a single error without brackets', async () => {
    const answer = await server.post(pods, pod('bad', { containers: [] }));
    expect(answer.body.message).toBe('Pod "bad" is invalid: spec.containers: Required value');
  });

  test('sets defaults', async () => {
    const body = await made('filled', {
      hostNetwork: true,
      containers: [
        {
          name: 'a',
          image: 'i',
          ports: [{ containerPort: 80 }],
          resources: { limits: { cpu: '1' } },
          readinessProbe: { httpGet: { port: 80 } },
        },
      ],
    });
    expect(body.spec).toMatchObject({
      dnsPolicy: 'ClusterFirst',
      restartPolicy: 'Always',
      schedulerName: 'default-scheduler',
      terminationGracePeriodSeconds: 30,
      enableServiceLinks: true,
      securityContext: {},
      containers: [
        {
          imagePullPolicy: 'Always',
          terminationMessagePath: '/dev/termination-log',
          terminationMessagePolicy: 'File',
          ports: [{ containerPort: 80, hostPort: 80, protocol: 'TCP' }],
          resources: { limits: { cpu: '1' }, requests: { cpu: '1' } },
          readinessProbe: {
            httpGet: { path: '/', port: 80, scheme: 'HTTP' },
            timeoutSeconds: 1,
            periodSeconds: 10,
            successThreshold: 1,
            failureThreshold: 3,
          },
        },
      ],
    });
    expect(body.status).toMatchObject({ phase: 'Pending', qosClass: 'Burstable' });
  });

  test('drops fields of disabled features', async () => {
    const body = await made('dropped', {
      hostUsers: false,
      resources: { limits: { cpu: '1' } },
      containers: [
        {
          name: 'a',
          image: 'i:1',
          resizePolicy: [{ resourceName: 'cpu', restartPolicy: 'NotRequired' }],
        },
      ],
    });
    expect(body.spec).not.toHaveProperty('hostUsers');
    expect(body.spec).not.toHaveProperty('resources');
    expect(body.spec.containers[0]).not.toHaveProperty('resizePolicy');
  });

  test('returns warnings for accepted pods', async () => {
    const answer = await server.post(
      pods,
      pod('warned.name', {
        containers: [
          {
            name: 'a',
            image: 'i:1',
            env: [
              { name: 'A', value: '1' },
              { name: 'A', value: '2' },
            ],
          },
        ],
        nodeSelector: { 'beta.kubernetes.io/os': 'linux' },
      }),
    );
    expect(answer.status).toBe(201);
    expect(answer.warnings).toEqual([
      "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is recommended: [must not contain dots]",
      'spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use "kubernetes.io/os" instead',
      'spec.containers[0].env[1]: hides previous definition of "A", which may be dropped when using apply',
    ]);
  });

  test('turns an AppArmor annotation into the field, with a warning', async () => {
    const key = 'container.apparmor.security.beta.kubernetes.io/a';
    const answer = await server.post<ResponseOf<Pod>>(
      pods,
      pod('armored', {}, { annotations: { [key]: 'runtime/default' } }),
    );
    expect(answer.body.spec.containers[0].securityContext).toEqual({
      appArmorProfile: { type: 'RuntimeDefault' },
    });
    expect(answer.warnings).toEqual([
      `metadata.annotations[${key}]: deprecated since v1.30; use the "appArmorProfile" field instead`,
    ]);
  });
});

describe('changing a Pod', () => {
  test('API-10: immutable fields are refused with a diff', async () => {
    const body = await made('fixed');
    const answer = await server.put(`${pods}/fixed`, {
      ...body,
      spec: { ...body.spec, hostname: 'h' },
    });
    expect(answer.status).toBe(422);
    const [cause, ...more] = answer.body.details.causes;
    expect(more).toEqual([]);
    expect(cause).toMatchObject({ reason: 'FieldValueForbidden', field: 'spec' });
    expect(cause.message).toContain(
      'Forbidden: pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)\n',
    );
    expect(cause.message).toContain('+ \tHostname: "h",');
  });

  test('images may change, and tolerations may be added', async () => {
    const body = await made('changing');
    body.spec.containers[0].image = 'i:2';
    const tolerations = [...(body.spec.tolerations ?? []), { operator: 'Exists' }];
    const changed = { ...body, spec: { ...body.spec, tolerations } };
    const answer = await server.put<ResponseOf<Pod>>(`${pods}/changing`, changed);
    expect(answer.status, answer.text).toBe(200);
    expect(answer.body.spec.containers[0].image).toBe('i:2');
    const fewer = await server.patch(
      `${pods}/changing`,
      { spec: { tolerations: [{ key: 'other', operator: 'Exists' }] } },
      'merge',
    );
    expect(fewer.body.message).toContain(
      'spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds',
    );
  });

  test('scheduling gates may be removed but not added', async () => {
    const gates = [{ name: 'one' }, { name: 'two' }];
    const body = await made('gated', { schedulingGates: gates });
    expect(body.status.conditions).toMatchObject([
      { type: 'PodScheduled', status: 'False', reason: 'SchedulingGated' },
    ]);
    const come = await server.put(`${pods}/gated`, {
      ...body,
      spec: { ...body.spec, schedulingGates: [...gates, { name: 'three' }] },
    });
    expect(come.body.details.causes).toMatchObject([
      { reason: 'FieldValueForbidden', field: 'spec.schedulingGates[2].name' },
    ]);
    const bound = await server.post(`${pods}/gated/binding`, binding('gated'));
    expect(bound.status).toBe(409);
    expect(bound.body.message).toBe(
      'Operation cannot be fulfilled on pods/binding "gated": pod gated has non-empty .spec.schedulingGates',
    );
    const { schedulingGates: _, ...spec } = body.spec;
    const go = await server.put(`${pods}/gated`, { ...body, spec });
    expect(go.status, go.text).toBe(200);
    expect(go.body.spec.schedulingGates).toBeUndefined();
  });
});

const binding = (name: string, target: JsonObject = { kind: 'Node', name: 'n1' }) => ({
  apiVersion: 'v1',
  kind: 'Binding',
  metadata: { name },
  target,
});

describe('subresources', () => {
  test('API-6: a Binding names a Node and its own pod', async () => {
    const { metadata } = await made('bound');
    const at = `${pods}/bound/binding`;
    const wrong = await server.post(at, binding('bound', { kind: 'Rack' }));
    expect([wrong.status, wrong.body.message]).toEqual([
      422,
      'Binding "bound" is invalid: [target.kind: Unsupported value: "Rack": supported values: "Node", "<empty>", target.name: Required value]',
    ]);
    const misnamed = await server.post(at, binding('other'));
    expect([misnamed.status, misnamed.body.message]).toEqual([
      400,
      'name in URL does not match name in Binding object',
    ]);
    const stale = binding('bound');
    const old = await server.post(at, { ...stale, metadata: { name: 'bound', uid: 'other' } });
    expect(old.status).toBe(409);
    expect(old.body.message).toContain(
      `Precondition failed: UID in precondition: other, UID in object meta: ${metadata.uid}`,
    );
    expect((await server.post(at, stale)).status).toBe(201);
    const { body } = await server.get(`${pods}/bound`);
    expect(body.spec.nodeName).toBe('n1');
    expect(body.status.conditions).toEqual([
      {
        type: 'PodScheduled',
        status: 'True',
        lastProbeTime: null,
        lastTransitionTime: expect.any(String),
      },
    ]);
    const again = await server.post(at, stale);
    expect(again.body.message).toBe(
      'Operation cannot be fulfilled on pods/binding "bound": pod bound is already assigned to node "n1"',
    );
  });

  test('API-6: an Eviction names its own pod', async () => {
    await made('evicted');
    const eviction = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name: 'x' } };
    const answer = await server.post(`${pods}/evicted/eviction`, eviction);
    expect([answer.status, answer.body.message]).toEqual([
      400,
      'name in URL does not match name in Eviction object',
    ]);
  });

  test('ephemeral containers can be added, and nothing else changes', async () => {
    const body = await made('debugged');
    const at = `${pods}/debugged/ephemeralcontainers`;
    const debug = { name: 'd', image: 'i:1', targetContainerName: 'a' };
    const spec = { ...body.spec, ephemeralContainers: [debug], hostname: 'h' };
    const added = await server.put(at, { ...body, spec });
    expect(added.status, added.text).toBe(200);
    expect(added.body.spec.hostname).toBeUndefined();
    expect(added.body.spec.ephemeralContainers).toMatchObject([
      { name: 'd', terminationMessagePolicy: 'File', imagePullPolicy: 'IfNotPresent' },
    ]);
    const changed = await server.patch(
      at,
      { spec: { ephemeralContainers: [{ name: 'd', image: 'other' }] } },
      'strategic',
    );
    expect(changed.status).toBe(422);
    expect(changed.body.message).toContain(
      'spec.ephemeralContainers: Forbidden: existing ephemeral containers "d" may not be changed\n',
    );
    const refused = await server.patch(
      at,
      {
        spec: { ephemeralContainers: [{ name: 'a', image: 'i:1', ports: [{ containerPort: 1 }] }] },
      },
      'strategic',
    );
    expect(refused.body.details.causes).toMatchObject([
      { reason: 'FieldValueDuplicate' },
      {
        reason: 'FieldValueForbidden',
        message: expect.stringContaining('cannot be set for an Ephemeral Container'),
      },
    ]);
  });

  test('a status is validated and keeps other fields', async () => {
    const body = await made('reported', { restartPolicy: 'Never' });
    const at = `${pods}/reported/status`;
    const ended = { name: 'a', state: { terminated: { exitCode: 0 } } };
    const owned = { ...body.metadata, labels: { a: 'b' } };
    const done = await server.put(at, {
      ...body,
      metadata: owned,
      spec: { ...body.spec, hostname: 'h' },
      status: { phase: 'Succeeded', podIP: '10.0.0.1', containerStatuses: [ended] },
    });
    expect(done.status, done.text).toBe(200);
    expect(done.body.status).toMatchObject({
      qosClass: 'BestEffort',
      podIPs: [{ ip: '10.0.0.1' }],
    });
    expect(done.body.spec.hostname).toBeUndefined();
    const running = { ...ended, state: { running: {} } };
    const revived = await server.put(at, {
      ...done.body,
      status: { ...done.body.status, qosClass: 'Guaranteed', containerStatuses: [running] },
    });
    expect(revived.body.details.causes).toEqual([
      {
        reason: 'FieldValueInvalid',
        message: 'Invalid value: "Guaranteed": field is immutable',
        field: 'status.qosClass',
      },
      {
        reason: 'FieldValueForbidden',
        message: 'Forbidden: may not be transitioned to non-terminated state',
        field: 'status.containerStatuses[0].state',
      },
    ]);
  });

  test('resizing is not served while its gate is off', async () => {
    await made('sized');
    expect((await server.get(`${pods}/sized/resize`)).status).toBe(404);
    const { body } = await server.get('/api/v1');
    const names = body.resources.map((resource: APIResource) => resource.name);
    expect(names).toContain('pods/ephemeralcontainers');
    expect(names).not.toContain('pods/resize');
  });
});

describe('a PodTemplate', () => {
  test('is validated under its own path, with slightly looser rules', async () => {
    const template = (name: string, spec: object) => ({
      apiVersion: 'v1',
      kind: 'PodTemplate',
      metadata: { name },
      template: { spec },
    });
    const at = `${ns}/podtemplates`;
    const bad = await server.post(at, template('t', { containers: [] }));
    expect(bad.body.details.causes).toMatchObject([{ field: 'template.spec.containers' }]);
    const spaced = { containers: [{ name: 'a', image: ' i' }], terminationGracePeriodSeconds: -1 };
    const answer = await server.post(at, template('t', spaced));
    expect(answer.status, answer.text).toBe(201);
    expect(answer.warnings).toEqual([
      'template.spec.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as 1',
    ]);
  });
});

test('API-10: privileged containers are rejected if the flag forbids them', async () => {
  const strict = await withServer({ privilegedContainers: 'refused' });
  const containers = [{ name: 'a', image: 'x', securityContext: { privileged: true } }];
  const metadata = { name: 'p', namespace: 'default' };
  const pod = { apiVersion: 'v1', kind: 'Pod', metadata, spec: { containers } };
  const path = '/api/v1/namespaces/default/pods';
  const { status, body } = await strict.post(path, pod);
  expect([status, body.message]).toEqual([
    422,
    'Pod "p" is invalid: spec.containers[0].securityContext.privileged: ' +
      'Forbidden: disallowed by cluster policy',
  ]);
  expect((await server.post(path, pod)).status).toBe(201);
});
