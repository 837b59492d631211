import type { JsonObject } from '@wheelhouse/machinery';
import { expect, test } from 'vitest';
import { same } from './checks.ts';
import {
  type Changes,
  changed,
  created,
  createErrors,
  createWarnings,
  plainPod,
  updated,
  updateErrors,
  updateWarnings,
} from './rules.suite.ts';

/** Rules of many kinds that are too small for a file of their own. */

const of = (apiVersion: string, kind: string, more: object): JsonObject => ({
  apiVersion,
  kind,
  metadata: { name: 'x', namespace: 'default' },
  ...more,
});

const zone = 'failure-domain.beta.kubernetes.io/zone';
const useZone = 'deprecated since v1.17; use "topology.kubernetes.io/zone" instead';

test.each([
  [
    of('storage.k8s.io/v1', 'StorageClass', {
      allowedTopologies: [{ matchLabelExpressions: [{ key: zone, values: ['a'] }] }],
    }),
    `allowedTopologies[0].matchLabelExpressions[0].key: ${useZone}`,
  ],
  [
    of('storage.k8s.io/v1', 'CSIStorageCapacity', {
      nodeTopology: { matchLabels: { [zone]: 'a' } },
    }),
    `nodeTopology.matchLabels.${zone}: ${useZone}`,
  ],
  [
    of('storage.k8s.io/v1', 'CSIStorageCapacity', {
      nodeTopology: { matchExpressions: [{ key: zone, operator: 'Exists' }] },
    }),
    `nodeTopology.matchExpressions[0].key: ${zone} is ${useZone}`,
  ],
  [
    of('node.k8s.io/v1', 'RuntimeClass', { scheduling: { nodeSelector: { [zone]: 'a' } } }),
    `scheduling.nodeSelector: ${useZone}`,
  ],
  [
    of('v1', 'Node', { spec: { externalID: 'e' } }),
    'spec.externalID: this field is deprecated, and is unused by Kubernetes',
  ],
  [
    of('discovery.k8s.io/v1', 'EndpointSlice', { addressType: 'FQDN' }),
    'spec.addressType: FQDN endpoints are deprecated',
  ],
])('%j causes a warning', (object, warning) => {
  expect(createWarnings(object)).toEqual([warning]);
});

test('only new EndpointSlices with FQDN addresses cause a warning', () => {
  const slice = created(of('discovery.k8s.io/v1', 'EndpointSlice', { addressType: 'FQDN' }));
  expect(updateWarnings(slice, changed(slice, { 'metadata.labels': { a: 'b' } }))).toEqual([]);
});

const service = (spec: object) => of('v1', 'Service', { spec: { ports: [{ port: 80 }], ...spec } });

test('ignored members of a Service and ambiguous addresses cause warnings', () => {
  const lasts = 'was accepted, but will be invalid in a future Kubernetes release';
  const balanced = { type: 'LoadBalancer', loadBalancerIP: '010.0.0.1' };
  const ranges = ['010.0.0.0/8', ' 10.0.0.0/8', '2001:DB8::/32', '::ffff:192.0.2.0/120'];
  const mapped = { externalIPs: ['::ffff:192.0.2.1', '::ffff:c000:201'] };
  const spec = { ...balanced, ...mapped, loadBalancerSourceRanges: ranges, externalName: 'e' };
  expect(createWarnings(service(spec))).toEqual([
    'spec.externalIPs[1]: IPv6 address "::ffff:c000:201" is not in RFC 5952 canonical format ("::ffff:192.0.2.1"), which may cause controller apply-loops',
    `spec.loadBalancerIP: IP address ${lasts}: ParseAddr("010.0.0.1"): IPv4 field has octet with leading zero`,
    `spec.loadBalancerSourceRanges[0]: IP prefix ${lasts}: netip.ParsePrefix("010.0.0.0/8"): ParseAddr("010.0.0.0"): IPv4 field has octet with leading zero`,
    `spec.loadBalancerSourceRanges[1]: IP prefix ${lasts}: netip.ParsePrefix(" 10.0.0.0/8"): ParseAddr(" 10.0.0.0"): unexpected character (at " 10.0.0.0")`,
    'spec.loadBalancerSourceRanges[2]: IPv6 prefix "2001:DB8::/32" is not in RFC 5952 canonical format ("2001:db8::/32"), which may cause controller apply-loops',
    'spec.externalName is ignored when spec.type is not "ExternalName"',
  ]);
});

test('an ExternalName has no internalTrafficPolicy, and a balancer cannot expose the kubelet', () => {
  const named = { type: 'ExternalName', externalName: 'a.b' };
  const policy = (internalTrafficPolicy: string) =>
    created(service({ ...named, internalTrafficPolicy }))['spec'];
  expect(policy('Local')).not.toHaveProperty('internalTrafficPolicy');
  expect(policy('Odd')).toHaveProperty('internalTrafficPolicy', 'Odd');
  expect(createErrors(service({ type: 'LoadBalancer', ports: [{ port: 10250 }] }))).toContain(
    'spec.ports[0]: Invalid value: 10250: may not expose port 10250 externally since it is used by kubelet',
  );
});

test('an image pull credential must be a JSON object', () => {
  const secret = (text: string) =>
    of('v1', 'Secret', { type: 'kubernetes.io/dockercfg', data: { '.dockercfg': btoa(text) } });
  const field = 'data[.dockercfg]: Invalid value: "<secret contents redacted>"';
  expect(createErrors(secret('null'))).toEqual([]);
  expect(createErrors(secret(''))).toEqual([`${field}: unexpected end of JSON input`]);
  expect(createErrors(secret('[]'))).toEqual([
    `${field}: json: cannot unmarshal array into Go value of type map[string]interface {}`,
  ]);
});

test('the data of a ControllerRevision must be an object', () => {
  const revision = (data: Changes[string]) =>
    createErrors(of('apps/v1', 'ControllerRevision', { revision: 1, data }));
  expect(revision({})).toEqual([]);
  expect(revision(true)).toEqual(['data: Required value: data must be a valid JSON object']);
});

test('the data of a ControllerRevision is immutable, even the spelling of quantities', () => {
  const data = (memory: string) => ({ resources: { limits: { memory } } });
  const old = created(of('apps/v1', 'ControllerRevision', { revision: 1, data: data('1Gi') }));
  expect(updateErrors(old, changed(old, { data: data('1Gi') }))).toEqual([]);
  expect(updateErrors(old, changed(old, { data: data('1073741824') }))).toEqual([
    expect.stringMatching(/^data: Invalid value: .*: field is immutable$/),
  ]);
});

test('a LimitRange without a name is named by a UUID', () => {
  const range = changed(of('v1', 'LimitRange', { spec: {} }), { 'metadata.name': undefined });
  expect(created(range).metadata.name).toMatch(/^[0-9a-f-]{36}$/);
});

test('a Job without labels copies those of its template', () => {
  const template = { metadata: { labels: { app: 'a' } }, ...plainPod() };
  const job = of('batch/v1', 'Job', {
    spec: { template: { ...template, metadata: { labels: { app: 'a' } } } },
  });
  const { metadata } = created(job);
  expect(metadata.labels).toMatchObject({ app: 'a', 'job-name': 'x' });
  expect(created(changed(job, { 'metadata.labels': { app: 'a' } })).metadata.labels).toEqual({
    app: 'a',
  });
  const old = created(job);
  const next = updated(old, changed(job, { 'metadata.labels': undefined }));
  expect(next.metadata.labels).not.toBe((next['spec'] as JsonObject)['template']);
});

test('changes of a PriorityClass do not increment its generation', () => {
  const old = created(of('scheduling.k8s.io/v1', 'PriorityClass', { value: 1 }));
  expect(old.metadata.generation).toBe(1);
  expect(updated(old, changed(old, { description: 'd' })).metadata.generation).toBe(1);
});

test('non-convertible fields of a ReplicationController are immutable', () => {
  const controller = (annotation: string): JsonObject =>
    changed(
      of('v1', 'ReplicationController', {
        spec: {
          selector: { a: 'b' },
          template: { metadata: { labels: { a: 'b', c: 'd' } }, spec: plainPod()['spec'] ?? {} },
        },
      }),
      { 'metadata.annotations': { [`non-convertible.kubernetes.io/${annotation}`]: 'v' } },
    );
  const errors = (annotation: string, selector: JsonObject) => {
    const old = created(controller(annotation));
    return updateErrors(old, changed(old, { 'spec.selector': selector }));
  };
  expect(errors('spec.selector', { a: 'b' })).toEqual([]);
  expect(errors('spec.selector', { c: 'd' })).toEqual([
    'spec.selector: Invalid value: map[string]string{"c":"d"}: cannot update non-convertible selector',
  ]);
  expect(errors('other', { a: 'b' })).toEqual([
    'other: Not found: "v": unknown non-convertible field',
  ]);
});

test('a zone in the hints of an EndpointSlice must be a label value', () => {
  const slice = of('discovery.k8s.io/v1', 'EndpointSlice', {
    addressType: 'IPv4',
    endpoints: [{ addresses: ['10.0.0.1'], hints: { forZones: [{ name: 'a@b' }] } }],
  });
  expect(createErrors(slice)[0]).toContain('a valid label must be an empty string or consist of');
});

test('claims, users, and devices in the status of a pod are validated', () => {
  const old = created(plainPod());
  const health = [
    { name: 'r', resources: [{ resourceID: 'i' }, { resourceID: 'i', health: 'Healthy' }] },
  ];
  const next = changed(old, {
    'status.resourceClaimStatuses': [{ name: 'c' }, { name: 'c' }],
    'status.containerStatuses': [
      { name: 'a', allocatedResourcesStatus: health, user: { linux: { uid: -1, gid: 1 } } },
    ],
    'status.ephemeralContainerStatuses': [{ name: 'e', allocatedResourcesStatus: health }],
  });
  const claim = 'status.resourceClaimStatuses';
  const allocated = 'status.containerStatuses[0].allocatedResourcesStatus[0]';
  const unknown = 'Invalid value: "c": must match the name of an entry in `spec.resourceClaims`';
  expect(updateErrors(old, next, 'status')).toEqual([
    `${claim}[0].name: ${unknown}`,
    `${claim}[1].name: ${unknown}`,
    `${claim}[1].name: Duplicate value: "c"`,
    'status.containerStatuses[0].linux.uid: Invalid value: -1: must be between 0 and 2147483647, inclusive',
    `${allocated}.name: Invalid value: r: must match one of the container's resource requests`,
    `${allocated}.resources[0].health: Unsupported value: "": supported values: "Healthy", "Unhealthy", "Unknown"`,
    `${allocated}.resources[1].resourceID: Duplicate value: "i"`,
    'status.ephemeralContainerStatuses[0].allocatedResourcesStatus: Forbidden: must not be specified in container status',
  ]);
});

test.each([
  [of('rbac.authorization.k8s.io/v1', 'Role', { rules: [] }), { rules: null }],
  [
    of('discovery.k8s.io/v1', 'EndpointSlice', { addressType: 'IPv4', endpoints: [], ports: [] }),
    { endpoints: null, ports: null },
  ],
  [of('storage.k8s.io/v1', 'CSINode', { spec: { drivers: [] } }), { spec: { drivers: null } }],
  [
    of('storage.k8s.io/v1', 'CSINode', {
      spec: { drivers: [{ name: 'a', nodeID: 'b', topologyKeys: [] }] },
    }),
    { spec: { drivers: [{ topologyKeys: null }] } },
  ],
  [of('v1', 'LimitRange', { spec: { limits: [] } }), { spec: { limits: null } }],
])('empty lists in %j become null', (object, expected) => {
  expect(created(object)).toMatchObject(expected);
});

test('the error in the name of an Event is reported last', () => {
  expect(
    createErrors(of('v1', 'Event', { metadata: { name: 'A', namespace: 'default' } })),
  ).toEqual([]);
});

test('empty topology terms count as equal', () => {
  const terms = of('storage.k8s.io/v1', 'StorageClass', {
    provisioner: 'p',
    allowedTopologies: [{}],
  });
  expect(createErrors(terms)).toEqual([
    'allowedTopologies[0].matchLabelExpressions: Duplicate value: ""',
  ]);
});

test('a Deployment cannot be rolled back to a negative revision', () => {
  const template = { metadata: { labels: { a: 'b' } }, spec: plainPod()['spec'] };
  const deployment = changed(
    of('apps/v1', 'Deployment', { spec: { selector: { matchLabels: { a: 'b' } }, template } }),
    { 'metadata.annotations': { 'deprecated.deployment.rollback.to': '-1' } },
  );
  expect(createErrors(deployment)).toEqual([
    'spec.rollback.version: Invalid value: -1: must be greater than or equal to 0',
  ]);
});

test('an update reports the errors of a new object and those of the change', () => {
  const capacity = created(
    of('storage.k8s.io/v1', 'CSIStorageCapacity', { storageClassName: 'c' }),
  );
  const selector = { matchLabels: { a: 'b' } };
  const next = changed(capacity, {
    capacity: '-1',
    nodeTopology: selector,
    maximumVolumeSize: '-1',
  });
  expect(updateErrors(capacity, next)).toEqual([
    'capacity: Invalid value: "-1": must be greater than or equal to 0',
    'nodeTopology: Invalid value: v1.LabelSelector{MatchLabels:map[string]string{"a":"b"}, MatchExpressions:[]v1.LabelSelectorRequirement(nil)}: field is immutable',
  ]);
  const runtime = created(of('node.k8s.io/v1', 'RuntimeClass', { handler: 'h' }));
  expect(updateErrors(runtime, changed(runtime, { handler: 'H' }))).toEqual([
    expect.stringContaining('a lowercase RFC 1123 label must consist of'),
    'handler: Invalid value: "H": field is immutable',
  ]);
  const role = created(of('rbac.authorization.k8s.io/v1', 'Role', { rules: [] }));
  const missing = 'rules[0].verbs: Required value: verbs must contain at least one value';
  const rules = [{ verbs: [], apiGroups: [''], resources: ['pods'] }];
  expect(updateErrors(role, changed(role, { rules }))).toEqual([missing, missing]);
});

test.each<[JsonObject, JsonObject, boolean]>([
  [{ a: undefined }, {}, true],
  [{}, { a: undefined }, true],
  [{ a: undefined }, { b: undefined }, true],
  [{ a: 1, b: undefined }, { a: 1, c: 2 }, false],
  [{ a: null }, {}, false],
  [{}, { a: null }, false],
  [{ a: 1 }, { b: 1 }, false],
  [{}, { constructor: undefined }, true],
  [JSON.parse('{"constructor": {}}'), {}, false],
  [JSON.parse('{"__proto__": 1}'), JSON.parse('{"__proto__": 1}'), true],
  [{ a: [1, { b: 2 }] }, { a: [1, { b: 2 }] }, true],
  [{ a: [1] }, { a: { 0: 1 } }, false],
  [{ limits: { cpu: '1' } }, { limits: { cpu: '1000m' } }, true],
  [{ labels: { cpu: '1' } }, { labels: { cpu: '1000m' } }, false],
])('%j and %j are the same: %s', (left, right, expected) => {
  expect(same(left, right)).toBe(expected);
  expect(same(right, left)).toBe(expected);
});
