import {
  decodeMessage,
  decodeMessageSteps,
  encodeCbor,
  encodeCborSteps,
  encodeEnvelope,
  encodeEnvelopeSteps,
  encodeMessage,
  encodeMessageSteps,
} from '@wheelhouse/codec';
import { type ApiObject, dialectOf, type JsonObject, type JsonValue } from '@wheelhouse/machinery';
import { copyDecodedSteps, decodeTyped, decodeTypedSteps, FoundPaths } from '@wheelhouse/schema';
import { expect, test } from 'vitest';
import { storageVersion } from './apiserverinternal/storage-version.ts';
import { builtinKinds } from './builtin-kinds.ts';
import { withoutPrivileged } from './pod/privileged.ts';
import { resourceClaim } from './resource/resource-claim.ts';
import { resourceSlice } from './resource/resource-slice.ts';
import { errorSteps } from './rules/checks.ts';
import { created, plainPod } from './rules/rules.suite.ts';

const dialect = dialectOf('kubernetes');
const kinds = builtinKinds(dialect);

function schemaOf(kind: string) {
  const version = kinds.find((def) => def.kind === kind)?.versions[0];
  if (version === undefined) throw new Error(`no kind ${kind}`);
  return version.schema;
}

const repeated = <Item>(count: number, make: (at: number) => Item): Item[] =>
  Array.from({ length: count }, (_, at) => make(at));

const props = (depth: number): JsonObject => ({
  type: 'object',
  properties: Object.fromEntries(
    repeated(9, (at) => [`p${at}`, depth === 0 ? { type: 'string' } : props(depth - 1)]),
  ),
});

const objects: Readonly<Record<string, JsonObject>> = {
  ConfigMap: {
    metadata: { name: 'wide', labels: Object.fromEntries(repeated(400, (at) => [`l${at}`, ''])) },
    data: Object.fromEntries(repeated(6_000, (at) => [`k${(at * 7919) % 6_000}é`, 'v'])),
    binaryData: Object.fromEntries(repeated(900, (at) => [`b${at}`, 'YQ=='])),
    unknown: 1,
  },
  Pod: {
    metadata: { name: 'wide', annotations: { a: 'x'.repeat(10_000) } },
    spec: {
      containers: [
        {
          name: 'a',
          env: repeated(4_000, (at) => ({ name: `v${at}`, value: `${at}`, more: at })),
          resources: { limits: { cpu: '0.5' } },
        },
        ...repeated(700, (at) => ({ name: `c${at}`, ports: [{ containerPort: at }], Image: 'b' })),
      ],
      volumes: [],
      tolerations: null,
    },
    status: { conditions: repeated(300, () => null) },
  },
  CustomResourceDefinition: {
    metadata: { name: 'wide' },
    spec: {
      versions: [
        {
          name: 'v1',
          schema: {
            openAPIV3Schema: {
              ...props(3),
              items: { ...props(2) },
              additionalProperties: { type: 'array', items: props(2), what: true },
              anyOf: repeated(300, () => ({ minimum: 1.5, enum: [1, 'a'] })),
            },
          },
        },
      ],
    },
  },
};

/** The result of a generator and its number of steps. */
function stepped<Result>(work: Generator<void, Result>): { result: Result; steps: number } {
  for (let steps = 1; ; steps += 1) {
    const step = work.next();
    if (step.done === true) return { result: step.value, steps };
  }
}

const outcomeOf = (work: () => JsonValue): unknown => {
  try {
    return work();
  } catch (error) {
    return error;
  }
};

test.each(Object.entries(objects))(
  'TRUST-2: decoding a large %s in steps gives the same object',
  (kind, object) => {
    const schema = schemaOf(kind);
    const unknown = new FoundPaths();
    const decoded = decodeTyped(schema)(object, unknown);
    const unknownInSteps = new FoundPaths();
    const { result, steps } = stepped(
      decodeTypedSteps(schema, object, { unknown: unknownInSteps }),
    );
    expect(JSON.stringify(result)).toBe(JSON.stringify(decoded));
    expect(unknownInSteps).toEqual(unknown);
    expect(steps).toBeGreaterThan(10);
    expect(stepped(copyDecodedSteps(decoded)).result).toEqual(decoded);
  },
);

test.each(Object.entries(objects))(
  'TRUST-2: validating a large %s in steps gives the same errors',
  (kind, object) => {
    const schema = schemaOf(kind);
    for (const source of ['text', 'map', 'patched'] as const) {
      const wrong = { ...object, metadata: { name: 7 } };
      const atOnce = outcomeOf(() => decodeTyped(schema)(wrong, undefined, source));
      expect(atOnce).toBeInstanceOf(Error);
      expect(outcomeOf(() => stepped(decodeTypedSteps(schema, wrong, { source })).result)).toEqual(
        atOnce,
      );
    }
  },
);

test.each(Object.entries(objects))(
  'TRUST-2: encoding a large %s in steps gives the same bytes',
  (kind, object) => {
    const schema = schemaOf(kind);
    const decoded = { ...decodeTyped(schema)(object), apiVersion: 'v1', kind };
    const cbor = stepped(encodeCborSteps(decoded));
    expect(cbor.result.equals(encodeCbor(decoded))).toBe(true);
    expect(cbor.steps).toBeGreaterThan(10);
    const message = encodeMessage(schema, decoded);
    const encoded = stepped(encodeMessageSteps(schema, decoded));
    expect(encoded.result.equals(message)).toBe(true);
    expect(encoded.steps).toBeGreaterThan(10);
    const envelope = stepped(encodeEnvelopeSteps(schema, decoded)).result;
    expect(envelope.equals(encodeEnvelope(schema, decoded))).toBe(true);
    const read = stepped(decodeMessageSteps(schema, message));
    expect(JSON.stringify(read.result)).toBe(JSON.stringify(decodeMessage(schema, message)));
    expect(read.steps).toBeGreaterThan(10);
  },
);

test('TRUST-2: interleaved decoders count the values of their messages separately', () => {
  const schema = schemaOf('ConfigMap');
  const bytes = encodeMessage(schema, objects['ConfigMap'] as JsonObject);
  const valuesMax = 30_000;
  const first = decodeMessageSteps(schema, bytes, { valuesMax });
  const second = decodeMessageSteps(schema, bytes, { valuesMax });
  for (let isOver = false; !isOver; ) {
    isOver = first.next().done === true;
    isOver = second.next().done === true || isOver;
  }
  expect(() => stepped(decodeMessageSteps(schema, bytes, { valuesMax: 9_000 }))).toThrow(
    'too many values',
  );
});

const amounts = (count: number, name: string) =>
  Object.fromEntries(repeated(count, (at) => [`${name}/${at}`, at % 2 === 0 ? '1' : '100u']));
const rounded = (count: number, name: string) =>
  Object.fromEntries(repeated(count, (at) => [`${name}/${at}`, at % 2 === 0 ? '1' : '1m']));

test('the defaults of large objects are filled in steps', () => {
  const filled = (kind: string, body: JsonObject) => {
    const [version] = kinds.find((def) => def.kind === kind)?.versions ?? [];
    if (version === undefined) throw new Error(`no kind ${kind}`);
    const { defaultSteps, defaults, schema } = version;
    const object = (): JsonObject => decodeTyped(schema)({ metadata: { name: 'wide' }, ...body });
    const [inSteps, runInOnePiece] = [object(), object()] as [ApiObject, ApiObject];
    defaults?.(runInOnePiece);
    if (defaultSteps === undefined) throw new Error(`${kind} has no steps`);
    const { steps } = stepped(defaultSteps(inSteps));
    expect(JSON.stringify(inSteps)).toBe(JSON.stringify(runInOnePiece));
    return { object: inSteps, steps };
  };
  const max = { ...amounts(4_000, 'a.io'), cpu: '2' };
  const limits = { type: 'Container', max, min: amounts(3_000, 'b.io'), default: { cpu: '1' } };
  const range = filled('LimitRange', { spec: { limits: [limits] } });
  const filledMax = { ...rounded(4_000, 'a.io'), cpu: '2' };
  const filledDefault = { ...filledMax, cpu: '1' };
  expect(range.object['spec']).toEqual({
    limits: [
      {
        type: 'Container',
        max: filledMax,
        min: rounded(3_000, 'b.io'),
        default: filledDefault,
        defaultRequest: { ...filledDefault, ...rounded(3_000, 'b.io') },
      },
    ],
  });
  expect(range.steps).toBeGreaterThan(15);

  const containers = [{ name: 'a', resources: { limits: amounts(4_000, 'a.io') } }];
  const pod = filled('Pod', { spec: { containers } });
  expect(pod.object['spec']).toMatchObject({
    containers: [
      { resources: { limits: rounded(4_000, 'a.io'), requests: rounded(4_000, 'a.io') } },
    ],
  });
  expect(pod.steps).toBeGreaterThan(10);

  const service = filled('Service', { spec: { ports: repeated(4_000, (port) => ({ port })) } });
  expect(service.object['spec']).toMatchObject({
    ports: repeated(4_000, (port) => ({ port, protocol: 'TCP', targetPort: port })),
  });
  expect(service.steps).toBeGreaterThan(8);

  const containers4 = repeated(4_000, (at) => ({ name: `c${at}` }));
  const deployment = filled('Deployment', {
    spec: { template: { spec: { containers: containers4 } } },
  });
  expect(deployment.object['spec']).toMatchObject({
    template: {
      spec: { containers: repeated(4_000, () => ({ imagePullPolicy: 'IfNotPresent' })) },
    },
  });
  expect(deployment.steps).toBeGreaterThan(40);

  const stringData = Object.fromEntries(repeated(4_000, (at) => [`k${at}`, 'a']));
  const secret = filled('Secret', { stringData });
  expect(secret.object['data']).toEqual(
    Object.fromEntries(repeated(4_000, (at) => [`k${at}`, 'YQ=='])),
  );
  expect(secret.steps).toBeGreaterThan(3);

  const node = filled('Node', { status: { capacity: amounts(4_000, 'a.io') } });
  expect(node.object['status']).toMatchObject({ allocatable: rounded(4_000, 'a.io') });
  expect(node.steps).toBeGreaterThan(8);
});

const user = { name: 'tester', uid: '', groups: [], extra: {} };
const context = { user, nowMs: 0, dryRun: false, subresource: '' };

/** The errors of an object under its kind, and the number of steps. */
function findingsOf(
  object: ApiObject,
  of: { readonly old?: ApiObject; readonly defs?: Defs; readonly subresource?: string } = {},
) {
  const { subresource = '' } = of;
  const { strategy } = (of.defs ?? kinds).find(({ kind }) => kind === object.kind) ?? {};
  const findings =
    of.old === undefined
      ? strategy?.validateCreate?.(context, object)
      : strategy?.validateUpdate?.({ ...context, subresource }, object, of.old);
  const { result, steps } = stepped(errorSteps(findings));
  return { errors: result.map(({ field, message }) => `${field}: ${message}`), steps };
}
type Defs = typeof kinds;

const podOf = (spec: JsonObject) =>
  created({ ...plainPod(), spec: { containers: [{ name: 'a', image: 'i' }], ...spec } });

test('TRUST-2: a forbidden change of a large Pod is rejected in steps', () => {
  const pod = (value: string) => {
    const env = repeated(4_000, (at) => ({ name: `v${at}`, value }));
    return podOf({ containers: [{ name: 'a', image: 'i', env }] });
  };
  const { errors, steps } = findingsOf(pod('other'), { old: pod('one') });
  expect(errors.at(-1)).toMatch(/^spec: Forbidden: pod updates may not change fields other than/);
  expect(steps).toBeGreaterThan(20);
});

test('TRUST-2: the resources of a LimitRange are validated in steps', () => {
  const min = Object.fromEntries(repeated(2_000, (at) => [`a-${at}`, '1']));
  const { errors, steps } = findingsOf(
    created({
      apiVersion: 'v1',
      kind: 'LimitRange',
      metadata: { name: 'wide' },
      spec: { limits: [{ type: 'Container', min, max: { cpu: '1' }, default: { cpu: '2' } }] },
    }),
  );
  expect(errors.length).toBeGreaterThan(2_000);
  expect(steps).toBeGreaterThan(60);
});

test('TRUST-2: the resources of a Node are validated in steps', () => {
  const capacity = Object.fromEntries(repeated(2_000, (at) => [`a.io/${at}`, '500m']));
  const metadata = { name: 'wide' };
  const node = created({ apiVersion: 'v1', kind: 'Node', metadata, status: { capacity } });
  const { errors, steps } = findingsOf(node);
  // A node's allocatable resources are its capacity by default.
  expect(errors).toHaveLength(4_000);
  expect(errors[0]).toMatch(/^status\.capacity\.a\.io\/0: .* must be an integer$/);
  expect(steps).toBeGreaterThan(20);
});

test('TRUST-2: the tolerations of a Pod and of a template are validated in steps', () => {
  const tolerations = repeated(2_000, (at) => ({ key: `k${at}`, operator: 'a', effect: 'a' }));
  const { errors, steps } = findingsOf(podOf({ tolerations }));
  expect(errors).toHaveLength(4_000);
  expect(steps).toBeGreaterThan(20);
  const template = { spec: { containers: [{ name: 'a', image: 'i' }], tolerations } };
  const ofTemplate = findingsOf(
    created({ apiVersion: 'v1', kind: 'PodTemplate', metadata: { name: 'wide' }, template }),
  );
  expect(ofTemplate.errors).toHaveLength(4_000);
  expect(ofTemplate.steps).toBeGreaterThan(20);
});

const wrong = (count: number) => repeated(count, (at) => ({ key: `-${at}`, operator: 'a' }));
const names = repeated(500, (at) => `-${at}`);
const selectorOf = (values: string[]) => ({
  matchExpressions: [{ key: 'a', operator: 'In', values }],
});
const placements: Readonly<Record<string, JsonObject>> = {
  'preferred node affinity': {
    affinity: {
      nodeAffinity: {
        preferredDuringSchedulingIgnoredDuringExecution: repeated(500, () => ({
          weight: 1,
          preference: { matchExpressions: wrong(1) },
        })),
      },
    },
  },
  'expressions of node affinity': {
    affinity: {
      nodeAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: {
          nodeSelectorTerms: [{ matchExpressions: wrong(250), matchFields: wrong(250) }],
        },
      },
    },
  },
  'values of a node field': {
    affinity: {
      nodeAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: {
          nodeSelectorTerms: [
            { matchFields: [{ key: 'metadata.name', operator: 'In', values: names }] },
          ],
        },
      },
    },
  },
  'selectors of spread constraints': {
    topologySpreadConstraints: repeated(10, () => ({ labelSelector: selectorOf(names) })),
  },
  'selectors of pod affinity': {
    affinity: {
      podAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: repeated(10, () => ({
          topologyKey: 'z',
          labelSelector: selectorOf(names),
        })),
      },
    },
  },
  'pod affinity': {
    affinity: {
      podAntiAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: [
          { topologyKey: 'z', namespaces: names, labelSelector: {}, matchLabelKeys: names },
        ],
      },
    },
  },
  'node selector': { nodeSelector: Object.fromEntries(names.map((name) => [name, ''])) },
  'readiness gates': { readinessGates: names.map((conditionType) => ({ conditionType })) },
  'scheduling gates': { schedulingGates: names.map((name) => ({ name })) },
  'spread constraints': { topologySpreadConstraints: names.map((name) => ({ topologyKey: name })) },
  'host aliases': { hostAliases: [{ ip: '::1', hostnames: names }] },
  'supplemental groups': { securityContext: { supplementalGroups: repeated(500, () => -1) } },
  sysctls: { securityContext: { sysctls: repeated(500, () => ({ name: '-', value: '' })) } },
  'DNS searches': { dnsConfig: { nameservers: names, searches: names } },
};

test.each(Object.entries(placements))('the %s of a large Pod are validated in steps', (_, spec) => {
  const { errors, steps } = findingsOf(podOf(spec));
  expect(errors.length).toBeGreaterThanOrEqual(500);
  expect(steps).toBeGreaterThan(findingsOf(podOf({})).steps + 3);
});

const deprecated = 'beta.kubernetes.io/os';
const files = repeated(500, (at) => ({ key: 'k', path: `p${at % 250}` }));
const variables = repeated(500, () => ({ name: 'a', value: 'b' }));
const warned: Readonly<Record<string, JsonObject>> = {
  containers: {
    containers: repeated(500, (at) => ({
      name: `c${at}`,
      image: 'i',
      resources: { limits: { memory: '1500m' } },
    })),
  },
  'variables of a container': { containers: [{ name: 'a', image: 'i', env: variables }] },
  'ports of a container': {
    containers: [
      {
        name: 'a',
        image: 'i',
        ports: repeated(500, (at) => ({ containerPort: at, hostIP: '::1' })),
      },
    ],
  },
  volumes: { volumes: names.map((name) => ({ name, gitRepo: { repository: 'r' } })) },
  'files of a volume': { volumes: [{ name: 'v', configMap: { name: 'c', items: files } }] },
  'host aliases': { hostAliases: names.map(() => ({ ip: '::1' })) },
  'spread constraints': { topologySpreadConstraints: names.map(() => ({ topologyKey: 'z' })) },
  'expressions of node affinity': {
    affinity: {
      nodeAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: {
          nodeSelectorTerms: [
            { matchExpressions: names.map(() => ({ key: deprecated, operator: 'Exists' })) },
          ],
        },
      },
    },
  },
  'terms of pod affinity': {
    affinity: {
      podAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: names.map(() => ({ topologyKey: 'z' })),
      },
    },
  },
};

test.each(Object.entries(warned))(
  'TRUST-2: warnings about the %s of a large Pod are found in steps',
  (_, spec) => {
    const { strategy } = kinds.find(({ kind }) => kind === 'Pod') ?? {};
    const found = strategy?.warnings?.(podOf(spec), undefined);
    if (found === undefined || !('next' in found)) throw new Error('no steps');
    const { result, steps } = stepped(found);
    expect(result.length).toBeGreaterThanOrEqual(200);
    expect(steps).toBeGreaterThan(4);
  },
);

const jobOf = (spec: JsonObject): ApiObject => {
  const template = { spec: { containers: [{ name: 'a', image: 'i' }], restartPolicy: 'Never' } };
  const metadata = { name: 'wide' };
  const filled = { template, manualSelector: true, ...spec };
  return created({ apiVersion: 'batch/v1', kind: 'Job', metadata, spec: filled });
};
const autoscalerOf = (spec: JsonObject): ApiObject => {
  const metadata = { name: 'wide' };
  return created({ apiVersion: 'autoscaling/v2', kind: 'HorizontalPodAutoscaler', metadata, spec });
};
const networkPolicyOf = (rule: JsonObject): ApiObject => {
  const metadata = { name: 'wide', namespace: 'default' };
  const spec = { podSelector: {}, ingress: [rule] };
  return created({ apiVersion: 'networking.k8s.io/v1', kind: 'NetworkPolicy', metadata, spec });
};
const endpointSliceOf = (members: JsonObject): ApiObject => {
  const metadata = { name: 'wide', namespace: 'default' };
  const head = { apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice', metadata };
  return created({ ...head, addressType: 'IPv4', ...members });
};
const inStorage = (kind: string, members: JsonObject): ApiObject =>
  created({ apiVersion: 'storage.k8s.io/v1', kind, metadata: { name: 'wide' }, ...members });
const many = repeated(1_000, () => ({}));
const wrongPorts = many.map(() => ({ protocol: '-', port: 0 }));
const lists: Readonly<Record<string, ApiObject>> = {
  'failure rules of a Job': jobOf({ podFailurePolicy: { rules: many } }),
  'patterns of a failure rule': jobOf({ podFailurePolicy: { rules: [{ onPodConditions: many }] } }),
  'success rules of a Job': jobOf({
    completionMode: 'Indexed',
    completions: 1,
    successPolicy: { rules: many },
  }),
  'metrics of an autoscaler': autoscalerOf({ metrics: many }),
  'ports of a NetworkPolicy': networkPolicyOf({ ports: wrongPorts }),
  'peers of a NetworkPolicy': networkPolicyOf({ from: many }),
  'blocks of a NetworkPolicy': networkPolicyOf({
    from: [{ ipBlock: { cidr: '10.0.0.0/8', except: many.map(() => '-') } }],
  }),
  'addresses of an EndpointSlice': endpointSliceOf({
    endpoints: [{ addresses: many.map(() => '-') }],
  }),
  'endpoints of an EndpointSlice': endpointSliceOf({ endpoints: many }),
  'ports of an EndpointSlice': endpointSliceOf({ endpoints: [], ports: wrongPorts }),
  'drivers of a CSINode': inStorage('CSINode', { spec: { drivers: many } }),
  'expressions of a StorageClass': inStorage('StorageClass', {
    provisioner: 'a.io/b',
    allowedTopologies: [{ matchLabelExpressions: many }],
  }),
  'scaling policies of an autoscaler': autoscalerOf({
    behavior: { scaleDown: { policies: many } },
  }),
};

test.each(Object.entries(lists))('TRUST-2: the %s are validated in steps', (_, object) => {
  const { errors, steps } = findingsOf(object);
  expect(errors.length).toBeGreaterThanOrEqual(1_000);
  expect(steps).toBeGreaterThan(10);
});

test('TRUST-2: lists that are each shorter than a step are validated in steps', () => {
  const endpoints = repeated(90, () => ({ addresses: repeated(90, () => '-') }));
  const { errors, steps } = findingsOf(endpointSliceOf({ endpoints }));
  expect(errors.length).toBeGreaterThanOrEqual(8_100);
  expect(steps).toBeGreaterThan(90);
});

test.each<[string, JsonObject]>([
  ['servers', { storageVersions: many }],
  ['conditions', { conditions: many }],
])('TRUST-2: the %s of a StorageVersion are validated in steps', (_, status) => {
  const old: ApiObject = {
    apiVersion: 'internal.apiserver.k8s.io/v1alpha1',
    kind: 'StorageVersion',
    metadata: { name: 'core.pods' },
  };
  const defs = [storageVersion(dialect)];
  const { errors, steps } = findingsOf({ ...old, status }, { defs, old, subresource: 'status' });
  expect(errors.length).toBeGreaterThanOrEqual(1_000);
  expect(steps).toBeGreaterThan(10);
});

const objectOf = (type: string, members: JsonObject): ApiObject => {
  const at = type.lastIndexOf('/');
  const head = { apiVersion: type.slice(0, at), kind: type.slice(at + 1) };
  const object = { ...head, metadata: { name: 'a' }, ...members };
  return optional.some(({ kind }) => kind === object.kind) ? object : created(object);
};
const optional = [resourceSlice(dialect), resourceClaim(dialect, {})];
const defs = [...kinds, ...optional];
const quantities = Object.fromEntries(repeated(1_000, (at) => [`!${at}`, '1']));
const terms = { nodeSelectorTerms: [{ matchExpressions: many }] };

test.each<[string, JsonObject]>([
  ['rbac.authorization.k8s.io/v1/Role', { rules: many }],
  ['rbac.authorization.k8s.io/v1/ClusterRole', { rules: many }],
  ['rbac.authorization.k8s.io/v1/RoleBinding', { subjects: many }],
  ['v1/ResourceQuota', { spec: { hard: quantities } }],
  ['v1/ResourceQuota', { spec: { scopeSelector: { matchExpressions: many } } }],
  ['v1/ResourceQuota', { spec: { scopes: many.map(() => '!') } }],
  [
    'v1/PersistentVolume',
    { spec: { capacity: Object.fromEntries(names.map((name) => [name, '-1'])) } },
  ],
  ['v1/PersistentVolume', { spec: { nodeAffinity: { required: terms } } }],
  ['v1/Service', { spec: { ports: many } }],
  ['v1/Service', { spec: { externalIPs: many.map(() => '!') } }],
  ['node.k8s.io/v1/RuntimeClass', { overhead: { podFixed: quantities } }],
  ['node.k8s.io/v1/RuntimeClass', { scheduling: { nodeSelector: quantities } }],
  ['node.k8s.io/v1/RuntimeClass', { scheduling: { tolerations: many } }],
  [
    'admissionregistration.k8s.io/v1/ValidatingWebhookConfiguration',
    { webhooks: [{ admissionReviewVersions: many.map(() => '!') }] },
  ],
  [
    'admissionregistration.k8s.io/v1/MutatingWebhookConfiguration',
    { webhooks: [{ rules: [{ resources: many.map(() => '') }] }] },
  ],
  [
    'admissionregistration.k8s.io/v1/ValidatingAdmissionPolicyBinding',
    { spec: { validationActions: many.map(() => '!') } },
  ],
  ['resource.k8s.io/v1beta1/ResourceSlice', { spec: { devices: many } }],
  [
    'resource.k8s.io/v1beta1/ResourceSlice',
    { spec: { devices: [{ basic: { capacity: Object.fromEntries(names.map((k) => [k, {}])) } }] } },
  ],
  [
    'resource.k8s.io/v1beta1/ResourceClaim',
    { spec: { devices: { constraints: [{ requests: many.map(() => '!') }] } } },
  ],
])('TRUST-2: lists of %s are validated in steps (%#)', (type, members) => {
  const { errors, steps } = findingsOf(objectOf(type, members), { defs });
  expect(errors.length).toBeGreaterThanOrEqual(500);
  expect(steps).toBeGreaterThan(4);
});

test.each<[string, JsonObject]>([
  ['v1/ResourceQuota', { hard: quantities }],
  ['v1/PersistentVolumeClaim', { allocatedResourceStatuses: quantities }],
  ['v1/PersistentVolumeClaim', { allocatedResources: quantities }],
  ['v1/PersistentVolumeClaim', { capacity: amounts(1_000, 'a') }],
  ['networking.k8s.io/v1/Ingress', { loadBalancer: { ingress: many.map(() => ({ ip: '!' })) } }],
  ['policy/v1/PodDisruptionBudget', { conditions: many }],
  ['admissionregistration.k8s.io/v1/ValidatingAdmissionPolicy', { conditions: many }],
  ['resource.k8s.io/v1beta1/ResourceClaim', { devices: many }],
])('TRUST-2: lists in the status of %s are validated in steps (%#)', (type, status) => {
  const old = objectOf(type, {});
  const { steps } = findingsOf({ ...old, status }, { defs, old, subresource: 'status' });
  expect(steps).toBeGreaterThan(8);
});

test('TRUST-2: the specs of a changed claim are copied in steps', () => {
  const claim = (value: string) => {
    const matchLabels = Object.fromEntries(names.map((name) => [`a${name}`, value]));
    return objectOf('v1/PersistentVolumeClaim', { spec: { selector: { matchLabels } } });
  };
  const { errors, steps } = findingsOf(claim('a'), { old: claim('b') });
  expect(errors.at(-1)).toMatch(/^spec: Forbidden: spec is immutable after creation/);
  expect(steps).toBeGreaterThan(3);
});

test('TRUST-2: rules around those of a kind run for large objects, too', () => {
  const containers = repeated(1_000, (at) => ({
    name: `c${at}`,
    image: 'i',
    securityContext: { privileged: at === 500 },
  }));
  const { errors, steps } = findingsOf(podOf({ containers }), { defs: withoutPrivileged(kinds) });
  const field = 'spec.containers[500].securityContext.privileged';
  expect(errors).toEqual([`${field}: Forbidden: disallowed by cluster policy`]);
  expect(steps).toBeGreaterThan(5);
});

test('TRUST-2: the expressions and rules of a policy are validated in steps', () => {
  const auditAnnotations = repeated(1_500, (at) => ({ key: `k${at}`, valueExpression: '' }));
  const resourceRules = repeated(1_500, () => ({ operations: ['CREATE'] }));
  const { errors, steps } = findingsOf(
    created({
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind: 'ValidatingAdmissionPolicy',
      metadata: { name: 'wide' },
      spec: { matchConstraints: { resourceRules }, auditAnnotations },
    }),
  );
  expect(errors).toContain(
    'spec.auditAnnotations[1499].valueExpression: Required value: valueExpression is not specified',
  );
  expect(errors).toContain('spec.matchConstraints.resourceRules[1499].apiGroups: Required value');
  expect(steps).toBeGreaterThan(25);
});

const wrongLabels = Object.fromEntries(repeated(900, (at) => [`!${at}`, '']));
const template = { metadata: { labels: wrongLabels } };

test.each<[string, JsonObject]>([
  ['v1/Endpoints', { subsets: [{ addresses: repeated(900, () => ({ ip: '!' })) }] }],
  ['v1/Endpoints', { subsets: repeated(900, () => ({ ports: [{ port: -1 }] })) }],
  ['v1/Service', { spec: { ports: [{ port: 1 }], selector: wrongLabels } }],
  ['apps/v1/StatefulSet', { spec: { selector: { matchLabels: { a: 'b' } }, template } }],
  ['apps/v1/Deployment', { spec: { selector: { matchLabels: { a: 'b' } }, template } }],
])('TRUST-2: many invalid items of %s are validated in steps', (type, parts) => {
  const at = type.lastIndexOf('/');
  const [apiVersion, kind] = [type.slice(0, at), type.slice(at + 1)];
  const { errors, steps } = findingsOf(
    created({ apiVersion, kind, metadata: { name: 'a' }, ...parts }),
  );
  expect(errors.length).toBeGreaterThanOrEqual(900);
  expect(steps).toBeGreaterThan(8);
});
