import { expect, test } from 'vitest';
import {
  type Changes,
  changed,
  created,
  createErrors,
  plainPod,
  updated,
} from '../rules/rules.suite.ts';

const pod = (changes: Changes) => created(changed(plainPod(), changes));
const annotation = 'container.apparmor.security.beta.kubernetes.io/a';

test('profiles are copied to annotations for nodes that read only those', () => {
  const local = { type: 'Localhost', localhostProfile: 'x' };
  const profile = (name: string, value: Changes[string]) =>
    pod({ [`spec.${name}securityContext.appArmorProfile`]: value }).metadata.annotations;
  expect(profile('', { type: 'Unconfined' })).toEqual({ [annotation]: 'unconfined' });
  expect(profile('containers[0].', local)).toEqual({ [annotation]: 'localhost/x' });
  expect(profile('', { type: 'RuntimeDefault' })).toEqual({ [annotation]: 'runtime/default' });
  expect(profile('', { type: 'Localhost' })).toBeUndefined();
});

test('image volumes are dropped together with their mounts', () => {
  const changes = {
    'spec.volumes': [{ name: 'v', image: { reference: 'r' } }, { name: 'w' }],
    'spec.containers[0].volumeMounts': [
      { name: 'v', mountPath: '/v' },
      { name: 'w', mountPath: '/w' },
    ],
  };
  expect(createErrors(changed(plainPod(), changes))).toEqual([]);
  expect(pod(changes)['spec']).toMatchObject({
    volumes: [{ name: 'w', emptyDir: {} }],
    containers: [{ volumeMounts: [{ name: 'w', mountPath: '/w' }] }],
  });
});

test('a gated pod has a condition with its time, and the class that a client sets is kept', () => {
  const gated = pod({ 'spec.schedulingGates': [{ name: 'g' }], 'status.qosClass': 'Burstable' });
  expect(gated['status']).toMatchObject({
    qosClass: 'Burstable',
    conditions: [{ lastProbeTime: null, lastTransitionTime: '2030-01-01T00:00:00Z' }],
  });
});

test('adding an ephemeral container changes no managed fields', () => {
  const old = created(plainPod());
  old.metadata.managedFields = [];
  const next = changed(old, {
    'metadata.managedFields': [{ manager: 'm', operation: 'Update' }],
    'spec.ephemeralContainers': [{ name: 'e', image: 'i' }],
  });
  const object = updated(old, next, 'ephemeralcontainers');
  expect(object.metadata.managedFields).toEqual([]);
  expect(object['spec']).toHaveProperty('ephemeralContainers[0].name', 'e');
});
