import type { StatefulSet } from '@wheelhouse/kinds/types/apps/v1';
import type { PodTemplate } from '@wheelhouse/kinds/types/core/v1';
import type { JsonObject } from '@wheelhouse/machinery';
import { beforeAll, describe, expect, test } from 'vitest';
import { causes, freshNamespace, type ResponseOf } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';

/**
 * Updates of built-in kinds whose validation depends on how they are decoded, stored, and written.
 */

let namespace: string;
const server = await withServer({ dialect: 'kubernetes' });

beforeAll(async () => {
  namespace = await freshNamespace(server);
});

const at = (group: string, resource: string) => `${group}/namespaces/${namespace}/${resource}`;
const rbac = '/apis/rbac.authorization.k8s.io/v1';

describe('empty lists', () => {
  const role = (name: string) => ({ metadata: { name }, rules: [] });

  test('API-4: they are stored as absent, but their writer owns them', async () => {
    const made = await server.post(at(rbac, 'roles'), role('a'));
    expect(made.body.rules).toBeNull();
    expect(made.body.metadata.managedFields[0].fieldsV1).toEqual({ 'f:rules': {} });
    const path = `${at(rbac, 'roles')}/a`;
    const rules = [{ verbs: ['get'], apiGroups: [''], resources: ['pods'] }];
    expect((await server.put(path, { ...role('a'), rules })).body.rules).toEqual(rules);
    expect((await server.put(path, role('a'))).body.rules).toBeNull();
    expect((await server.patch(path, { rules: [] }, 'merge')).body.rules).toBeNull();
  });

  test('API-4: nested ones as well', async () => {
    const template = { metadata: { labels: { a: 'b' } }, spec: { containers: [] } };
    const selector = { matchLabels: { a: 'b' } };
    const made = await server.post<ResponseOf<StatefulSet>>(at('/apis/apps/v1', 'statefulsets'), {
      metadata: { name: 'a' },
      spec: { serviceName: 's', selector, template },
    });
    expect(made.status, made.text).toBe(201);
    expect(made.body.spec.template.spec.containers).toBeNull();
  });
});

describe('v1 autoscalers', () => {
  test('MF-2: the writer owns what kube-apiserver converts to annotations', async () => {
    const made = await server.post(at('/apis/autoscaling/v1', 'horizontalpodautoscalers'), {
      metadata: { name: 'a' },
      spec: { maxReplicas: 2, scaleTargetRef: { kind: 'Deployment', name: 'd' } },
      status: { currentReplicas: 1, desiredReplicas: 1, currentCPUUtilizationPercentage: 3 },
    });
    expect(made.status, made.text).toBe(201);
    expect(made.body.status).toEqual({ currentReplicas: 0, desiredReplicas: 0 });
    expect(made.body.metadata.annotations).toBeUndefined();
    const [{ fieldsV1 }] = made.body.metadata.managedFields;
    expect(fieldsV1['f:spec']).toHaveProperty('f:targetCPUUtilizationPercentage');
    expect(fieldsV1['f:metadata']?.['f:annotations']).toHaveProperty([
      'f:autoscaling.alpha.kubernetes.io/current-metrics',
    ]);
  });
});

describe('status', () => {
  test('SSA-10: of a VolumeAttachment does not change metadata', async () => {
    const path = '/apis/storage.k8s.io/v1/volumeattachments';
    const made = await server.post(path, {
      metadata: { name: 'a', labels: { kept: 'yes' } },
      spec: { attacher: 'a.example.com', nodeName: 'n', source: { persistentVolumeName: 'v' } },
    });
    expect(made.status, made.text).toBe(201);
    const changed = structuredClone(made.body);
    changed.metadata.labels = { kept: 'a b' };
    changed.status = { attached: true };
    const answer = await server.put(`${path}/a/status`, changed);
    expect(answer.status, answer.text).toBe(200);
    expect(answer.body.metadata.labels).toEqual({ kept: 'yes' });
    expect(answer.body.status.attached).toBe(true);
  });

  test('API-4: of a Namespace defaults to Active', async () => {
    const path = `/api/v1/namespaces/${namespace}`;
    const now = (await server.get(path)).body;
    const answer = await server.put(`${path}/status`, { ...now, status: {} });
    expect(answer.status, answer.text).toBe(200);
    expect(answer.body.status).toEqual({ phase: 'Active' });
  });
});

describe('wording', () => {
  const dryRun = '?dryRun=All';
  const refusals: readonly (readonly [string, () => string, JsonObject, readonly string[]])[] = [
    [
      'the namespace of a webhook is missed when its name is',
      () => '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations',
      {
        webhooks: [
          {
            name: 'a.b.c',
            admissionReviewVersions: ['v1'],
            sideEffects: 'None',
            clientConfig: { service: { namespace: 'n', name: '' } },
          },
        ],
      },
      ['webhooks[0].clientConfig.service.namespace: Required value: service namespace is required'],
    ],
    [
      'a class of storage says when it binds',
      () => '/apis/storage.k8s.io/v1/storageclasses',
      { provisioner: 'C:\\x', volumeBindingMode: '' },
      [
        "provisioner: Invalid value: \"c:\\\\x\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
        'volumeBindingMode: Unsupported value: "": supported values: "Immediate", "WaitForFirstConsumer"',
      ],
    ],
    [
      'ranges of a node are read, and read once more',
      () => '/api/v1/nodes',
      { spec: { podCIDRs: ['10.0.0.0/24', 'x'] } },
      [
        'spec.podCIDRs[1]: Invalid value: "x": must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)',
        'spec.podCIDRs: Internal error: invalid PodCIDRs. failed to check with dual stack with error:invalid CIDR[1]: <nil> (invalid CIDR address: x)',
        'spec.podCIDRs: Invalid value: []string{"10.0.0.0/24", "x"}: may specify no more than one CIDR for each IP family',
      ],
    ],
    [
      'a selector that selects nothing aggregates nothing',
      () => `${rbac}/clusterroles`,
      { aggregationRule: { clusterRoleSelectors: [{ matchLabels: { a: 'b c' } }] }, rules: [] },
      [
        "aggregationRule.clusterRoleSelectors[0].matchLabels: Invalid value: \"b c\": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
        'aggregationRule.clusterRoleSelectors[0]: Invalid value: "null": invalid label selector.',
      ],
    ],
  ];

  test.each(refusals)('API-4: %s', async (_, path, body, wanted) => {
    const refused = await server.post(`${path()}${dryRun}`, { metadata: { name: 'x' }, ...body });
    expect(refused.status, refused.text).toBe(422);
    expect(causes(refused.body)).toEqual(wanted);
  });

  test('API-4: an invalid address produces a warning where it is not validated', async () => {
    const made = await server.post(`${at('/api/v1', 'services')}${dryRun}`, {
      metadata: { name: 'x' },
      spec: { type: 'LoadBalancer', ports: [{ port: 80 }], loadBalancerIP: 'a.b' },
    });
    expect(made.status, made.text).toBe(201);
    expect(made.headers['warning']).toContain(
      'IP address was accepted, but will be invalid in a future Kubernetes release: ' +
        'ParseAddr(\\"a.b\\"): unexpected character (at \\"a.b\\")',
    );
  });

  test('API-4: an unchanged invalid image is not validated', async () => {
    const images = ['a', 'a:latest', 'localhost:5000/a', '*', 'A', 'a:1', 'a b', 'A.b/c', 'a/../b'];
    const containers = images.map((image, index) => ({ name: `c${index}`, image }));
    const path = `${at('/api/v1', 'podtemplates')}${dryRun}`;
    const made = await server.post<PodTemplate>(path, {
      metadata: { name: 'x' },
      template: { spec: { containers } },
    });
    expect(made.status, made.text).toBe(201);
    const policies = made.body.template?.spec?.containers.map(
      (container) => container.imagePullPolicy,
    );
    const [always, unlessThere] = ['Always', 'IfNotPresent'];
    expect(policies).toEqual([
      ...[always, always, always, unlessThere, unlessThere, unlessThere, unlessThere],
      ...[always, unlessThere],
    ]);
  });

  test('META-5: built-in finalizers need no domain', async () => {
    const post = (finalizers: string[]) =>
      server.post(`${at('/api/v1', 'configmaps')}${dryRun}`, {
        metadata: { name: 'x', finalizers },
      });
    expect((await post(['kubernetes', 'orphan'])).status).toBe(201);
    expect(causes((await post(['other'])).body)).toEqual([
      'metadata.finalizers[0]: Invalid value: "other": name is neither a standard finalizer name nor is it fully qualified',
    ]);
    const lease = { metadata: { name: 'x', finalizers: ['other'] } };
    const path = `${at('/apis/coordination.k8s.io/v1', 'leases')}${dryRun}`;
    expect((await server.post(path, lease)).status).toBe(201);
  });
});
