import { readOptions } from '@wheelhouse/server/testing';
import { afterEach, expect, test, vi } from 'vitest';
import { withServer } from '../support/with-server.ts';

const variable = 'KUBE_APISERVER_SERVE_REMOVED_APIS_FOR_ONE_RELEASE';
const all = new Map([['api/all', true]]);
const usual = await withServer({ runtimeConfig: all });
const longer = await withServer({ runtimeConfig: all, removal: 'one release later' });

afterEach(() => vi.unstubAllEnvs());

const removed = [
  'admissionregistration.svc.io/v1alpha1/validatingadmissionpolicies',
  'admissionregistration.svc.io/v1alpha1/validatingadmissionpolicybindings',
  'flowcontrol.apiserver.svc.io/v1beta3/flowschemas',
  'flowcontrol.apiserver.svc.io/v1beta3/prioritylevelconfigurations',
];

test.each(removed)('VER-3: %s can be served for one more release', async (name) => {
  expect((await usual.get(`/apis/${name}`)).status).toBe(404);
  expect((await longer.get(`/apis/${name}`)).status).toBe(200);
});

test('VER-3: versions removed earlier cannot', async () => {
  for (const name of ['flowcontrol.apiserver.svc.io/v1beta2/flowschemas', 'batch/v1beta1/jobs']) {
    expect((await longer.get(`/apis/${name}`)).status).toBe(404);
  }
});

test('VER-3: objects of a removed version are written and read', async () => {
  const path = '/apis/flowcontrol.apiserver.svc.io/v1beta3/flowschemas';
  const spec = { priorityLevelConfiguration: { name: 'catch-all' }, matchingPrecedence: 9000 };
  const made = await longer.post(path, {
    apiVersion: 'flowcontrol.apiserver.svc.io/v1beta3',
    kind: 'FlowSchema',
    metadata: { name: 'old' },
    spec,
  });
  expect(made.status).toBe(201);
  const current = await longer.get('/apis/flowcontrol.apiserver.svc.io/v1/flowschemas/old');
  expect(current.body.spec).toMatchObject(spec);
});

function optionsOf() {
  const outcome = readOptions(['--etcd-servers=http://127.0.0.1:1']);
  if (outcome.kind !== 'options') throw new Error('no options were read');
  return outcome.options;
}

test('VER-3: an environment variable enables them', () => {
  expect(optionsOf().config.removal).toBe('at once');
  vi.stubEnv(variable, 'true');
  expect(optionsOf().config.removal).toBe('one release later');
  vi.stubEnv(variable, '0');
  expect(optionsOf().config.removal).toBe('at once');
  vi.stubEnv(variable, 'maybe');
  expect(optionsOf).toThrow(`${variable}: strconv.ParseBool: parsing "maybe": invalid syntax`);
});
