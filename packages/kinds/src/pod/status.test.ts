import { expect, test } from 'vitest';
import {
  type Changes,
  changed,
  created,
  plainPod,
  updated,
  updateErrors,
} from '../rules/rules.suite.ts';

type Row = readonly [before: Changes, after: Changes, ...errors: string[]];

const ended = (exitCode: number) => ({ name: 'a', state: { terminated: { exitCode } } });
const running = { name: 'a', state: { running: {} } };
const revived = 'Forbidden: may not be transitioned to non-terminated state';

const rows: readonly Row[] = [
  [{}, { 'status.phase': 'Running', 'status.podIP': '10.0.0.1' }],
  [
    {},
    { 'status.conditions': [{ type: 'Ready' }, { type: 'a b' }] },
    "metadata.conditions[1].Type: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
  ],
  [
    {},
    { 'status.qosClass': 'Guaranteed' },
    'status.qosClass: Invalid value: "Guaranteed": field is immutable',
  ],
  [
    { 'spec.restartPolicy': 'Never', 'status.containerStatuses': [ended(1)] },
    { 'status.containerStatuses': [running] },
    `status.containerStatuses[0].state: ${revived}`,
  ],
  [
    { 'spec.restartPolicy': 'OnFailure', 'status.containerStatuses': [ended(1)] },
    { 'status.containerStatuses': [running] },
  ],
  [
    { 'spec.restartPolicy': 'OnFailure', 'status.containerStatuses': [ended(0)] },
    { 'status.containerStatuses': [running] },
    `status.containerStatuses[0].state: ${revived}`,
  ],
  [
    {
      'spec.restartPolicy': 'Never',
      'spec.initContainers': [{ name: 'b', image: 'i', restartPolicy: 'Always' }],
      'status.initContainerStatuses': [{ ...ended(0), name: 'b' }],
    },
    { 'status.initContainerStatuses': [{ ...running, name: 'b' }] },
  ],
  [
    { 'status.ephemeralContainerStatuses': [ended(0)] },
    { 'status.ephemeralContainerStatuses': [running] },
    `status.ephemeralContainerStatuses[0].state: ${revived}`,
  ],
  [
    {},
    { 'status.podIPs': [{ ip: '10.0.0.1' }, { ip: '10.0.0.2' }] },
    'status.podIPs: Invalid value: []core.PodIP{core.PodIP{IP:"10.0.0.1"}, core.PodIP{IP:"10.0.0.2"}}: may specify no more than one IP for each IP family',
  ],
  [
    {},
    { 'status.podIPs': [{ ip: 'x' }] },
    'status.podIPs[0]: Invalid value: "x": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)',
  ],
  [
    {},
    { 'status.hostIP': '10.0.0.9', 'status.hostIPs': [{ ip: '10.0.0.1' }, { ip: '10.0.0.1' }] },
    'status.hostIPs[0].ip: Invalid value: "10.0.0.1": must be equal to `hostIP`',
    'status.hostIPs[1]: Duplicate value: core.HostIP{IP:"10.0.0.1"}',
    'status.hostIPs: Invalid value: []core.HostIP{core.HostIP{IP:"10.0.0.1"}, core.HostIP{IP:"10.0.0.1"}}: may specify no more than one IP for each IP family',
  ],
  [{}, { 'status.podIPs': [{ ip: '10.0.0.1' }, { ip: 'fd00::1' }] }],
];

test.each(rows.map(([before, after, ...errors]) => [before, after, errors] as const))(
  '%j to %j',
  (before, after, errors) => {
    const pod = changed(plainPod(), before);
    const old = changed(created(pod), before);
    expect(updateErrors(old, changed(old, after), 'status')).toEqual(errors);
  },
);

test('a status without a class keeps the old one, and podIP equals the first of podIPs', () => {
  const old = created(plainPod());
  const next = changed(old, {
    'status.qosClass': undefined,
    'status.podIP': '10.0.0.1',
    'status.containerStatuses': [{ name: 'a', allocatedResources: { cpu: '1' } }],
    'spec.hostname': 'other',
  });
  const pod = updated(old, next, 'status');
  expect(pod['status']).toMatchObject({
    qosClass: 'BestEffort',
    podIP: '10.0.0.1',
    podIPs: [{ ip: '10.0.0.1' }],
  });
});

test('a write to the rest of a pod drops members of disabled features from its status', () => {
  const reported = {
    name: 'a',
    allocatedResources: { cpu: '1' },
    allocatedResourcesStatus: [{ name: 'cpu' }],
    resources: { limits: { cpu: '100u' } },
    user: { linux: { uid: 1, gid: 1 } },
    volumeMounts: [{ name: 'v', mountPath: '/v' }],
  };
  const next = changed(created(plainPod()), {
    'status.containerStatuses': [reported],
    'status.ephemeralContainerStatuses': [reported],
    'status.resize': 'Proposed',
    'status.resourceClaimStatuses': [{ name: 'c' }],
  });
  const old = updated(created(plainPod()), next, 'status');
  expect(old['status']).toMatchObject({
    resize: 'Proposed',
    resourceClaimStatuses: [{ name: 'c' }],
    containerStatuses: [{ ...reported, resources: { limits: { cpu: '1m' } } }],
  });
  for (const subresource of ['', 'ephemeralcontainers']) {
    const { status } = updated(old, old, subresource) as { status?: object };
    const kept = { name: 'a', volumeMounts: reported.volumeMounts };
    expect(status).toMatchObject({ containerStatuses: [kept], ephemeralContainerStatuses: [kept] });
    expect(Object.keys(status ?? {})).not.toContain('resize');
    expect(Object.keys(status ?? {})).not.toContain('resourceClaimStatuses');
    for (const name of ['allocatedResources', 'allocatedResourcesStatus', 'resources', 'user']) {
      expect(status).not.toHaveProperty(`containerStatuses[0].${name}`);
    }
  }
});
