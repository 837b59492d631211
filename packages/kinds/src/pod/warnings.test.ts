import { expect, test } from 'vitest';
import { type Changes, changed, created, createWarnings, plainPod } from '../rules/rules.suite.ts';

type Row = readonly [changes: Changes, ...warnings: string[]];

const first = 'spec.containers[0]';
const must = 'requiredDuringSchedulingIgnoredDuringExecution';
const rows: readonly Row[] = [
  [{}],
  [
    { 'metadata.name': 'a.b' },
    "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is recommended: [must not contain dots]",
  ],
  [
    { 'spec.nodeSelector': { 'beta.kubernetes.io/os': 'linux' } },
    'spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use "kubernetes.io/os" instead',
  ],
  [
    {
      [`spec.affinity.nodeAffinity.${must}.nodeSelectorTerms`]: [
        {
          matchExpressions: [{ key: 'failure-domain.beta.kubernetes.io/zone', operator: 'Exists' }],
        },
      ],
    },
    `spec.affinity.nodeAffinity.${must}.nodeSelectorTerms[0].matchExpressions[0].key: failure-domain.beta.kubernetes.io/zone is deprecated since v1.17; use "topology.kubernetes.io/zone" instead`,
  ],
  [
    {
      'spec.topologySpreadConstraints': [
        { maxSkew: 1, topologyKey: 'z', whenUnsatisfiable: 'DoNotSchedule' },
      ],
    },
    'spec.topologySpreadConstraints[0].labelSelector: a null labelSelector results in matching no pod',
  ],
  [
    { 'metadata.annotations["scheduler.alpha.kubernetes.io/critical-pod"]': '' },
    'metadata.annotations[scheduler.alpha.kubernetes.io/critical-pod]: non-functional in v1.16+; use the "priorityClassName" field instead',
  ],
  [
    { 'metadata.annotations["seccomp.security.alpha.kubernetes.io/pod"]': 'unconfined' },
    'metadata.annotations[seccomp.security.alpha.kubernetes.io/pod]: non-functional in v1.27+; use the "seccompProfile" field instead',
  ],
  [
    { 'metadata.annotations["container.apparmor.security.beta.kubernetes.io/a"]': 'unconfined' },
    'metadata.annotations[container.apparmor.security.beta.kubernetes.io/a]: deprecated since v1.30; use the "appArmorProfile" field instead',
  ],
  [
    { 'spec.volumes': [{ name: 'v', gitRepo: { repository: 'r' } }] },
    'spec.volumes[0].gitRepo: deprecated in v1.11',
  ],
  [
    { 'spec.hostAliases': [{ ip: '1.1.1.1' }, { ip: '1.1.1.1' }] },
    'spec.hostAliases[1].ip: duplicate ip "1.1.1.1"',
  ],
  [
    { 'spec.imagePullSecrets': [{ name: 'a' }, { name: 'a' }, {}] },
    'spec.imagePullSecrets[1].name: duplicate name "a"',
    'spec.imagePullSecrets[2].name: invalid empty name ""',
  ],
  [
    { [`${first}.resources`]: { requests: { memory: '100m' } } },
    `${first}.resources.requests[memory]: fractional byte value "100m" is invalid, must be an integer`,
  ],
  [
    { [`${first}.resources`]: { requests: { memory: '1Ei' } } },
    `${first}.resources.requests[memory]: fractional byte value "1Ei" is invalid, must be an integer`,
  ],
  [
    {
      [`${first}.env`]: [
        { name: 'A', value: '1' },
        { name: 'A', value: '$(A)2' },
        { name: 'A', value: '3' },
      ],
    },
    `${first}.env[2]: hides previous definition of "A", which may be dropped when using apply`,
  ],
  [
    {
      [`${first}.ports`]: [
        { containerPort: 80 },
        { containerPort: 80 },
        { containerPort: 81, hostIP: '1.1.1.1' },
      ],
    },
    `${first}.ports[1]: duplicate port definition with ${first}.ports[0]`,
    `${first}.ports[2]: hostIP set without hostPort: {Name: HostPort:0 ContainerPort:81 Protocol:TCP HostIP:1.1.1.1}`,
  ],
  // For a Pod, defaulting has changed this value to 1.
  [{ 'spec.terminationGracePeriodSeconds': -1 }],
  [
    { [`spec.affinity.podAffinity.${must}`]: [{ topologyKey: 'z' }] },
    `spec.affinity.podAffinity.${must}[0].labelSelector: a null labelSelector results in matching no pod`,
  ],
];

test.each(rows.map(([changes, ...warnings]) => [changes, warnings] as const))(
  '%j',
  (changes, warnings) => {
    expect(createWarnings(changed(plainPod(), changes))).toEqual(warnings);
  },
);

test('warnings about a template have its path', () => {
  const { spec } = changed(plainPod(), { 'spec.terminationGracePeriodSeconds': -1 });
  const deployment = {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'd', namespace: 'default' },
    spec: {
      selector: { matchLabels: { a: 'b' } },
      template: {
        metadata: {
          labels: { a: 'b' },
          annotations: { 'container.apparmor.security.beta.kubernetes.io/a': 'unconfined' },
        },
        spec,
      },
    },
  };
  expect(createWarnings(deployment as never)).toEqual([
    'spec.template.metadata.annotations[container.apparmor.security.beta.kubernetes.io/a]: deprecated since v1.30; use the "appArmorProfile" field instead',
    'spec.template.spec.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as 1',
  ]);
});

test('an AppArmor annotation is copied to the field', () => {
  const annotation = 'metadata.annotations["container.apparmor.security.beta.kubernetes.io/a"]';
  expect(created(changed(plainPod(), { [annotation]: 'localhost/x' }))).toMatchObject({
    spec: {
      containers: [
        { securityContext: { appArmorProfile: { type: 'Localhost', localhostProfile: 'x' } } },
      ],
    },
  });
});
