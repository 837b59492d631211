import { expect, test } from 'vitest';
import { sample } from '../operations/metric-samples.ts';
import { eventually } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';

const server = await withServer();
const group = '/apis/admissionregistration.svc.io/v1';

test('ADM-3: policies apply to the writes of the server’s own controllers', async () => {
  const rule = { apiGroups: [''], apiVersions: ['v1'], resources: ['namespaces/finalize'] };
  const matchConstraints = { resourceRules: [{ ...rule, operations: ['UPDATE'] }] };
  const variable = 'request.userInfo.username';
  await server.post(`${group}/validatingadmissionpolicies`, {
    metadata: { name: 'hold' },
    spec: { matchConstraints, validations: [{ expression: 'false', messageExpression: variable }] },
  });
  const binding = `${group}/validatingadmissionpolicybindings`;
  await server.post(binding, {
    metadata: { name: 'hold' },
    spec: { policyName: 'hold', validationActions: ['Deny'] },
  });
  await server.post('/api/v1/namespaces', { metadata: { name: 'held' } });
  const finalize = '/api/v1/namespaces/held/finalize';
  const live = (await server.get('/api/v1/namespaces/held')).body;
  await eventually(async () => (await server.put(finalize, live)).status === 422, 'the policy');
  await server.request('DELETE', '/api/v1/namespaces/held');
  const labels = { name: 'namespace' };
  const retries = async () =>
    sample((await server.get('/metrics')).text, 'workqueue_retries_total', labels);
  await eventually(async () => (await retries()) >= 1, 'the controller is refused');
  expect((await server.get('/api/v1/namespaces/held')).status).toBe(200);
  await server.request('DELETE', `${binding}/hold`);
  await eventually(async () => (await server.get('/api/v1/namespaces/held')).status === 404);
});
