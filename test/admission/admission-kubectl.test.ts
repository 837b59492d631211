import { expect, test } from 'vitest';
import { untilEnd } from '../support/cleanup.ts';
import { freshNamespace } from '../support/harness.ts';
import { kubectlIsHere, kubectlOf } from '../support/kubectl.ts';
import { withServer } from '../support/with-server.ts';
import { startAdmissionService } from './admission-service.ts';

const service = await untilEnd(startAdmissionService());
const server = await withServer({ dialect: 'kubernetes' });
const client = untilEnd(kubectlOf(server));
const namespace = await freshNamespace(server);

const kubectl = (args: readonly string[], stdin = '') =>
  client.run([`--namespace=${namespace}`, ...args], { stdin });

const policy = () => `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: few-replicas}
spec:
  matchConstraints:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: ${namespace}}}
    resourceRules:
    - {apiGroups: [apps], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [deployments]}
  validations:
  - expression: object.spec.replicas <= 5
    messageExpression: "'too many: ' + string(object.spec.replicas)"
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: few-replicas-here}
spec: {policyName: few-replicas, validationActions: [Deny]}
`;

test.runIf(kubectlIsHere)('ADM-3: kubectl applies a policy and prints its denial', async () => {
  const applied = await kubectl(['apply', '-f', '-'], policy());
  expect(applied.stdout).toContain(
    'validatingadmissionpolicy.admissionregistration.k8s.io/few-replicas created',
  );
  const many = await kubectl(['create', 'deployment', 'd', '--image=i', '--replicas=6']);
  expect(many.code).toBe(1);
  expect(many.stderr.trim()).toBe(
    'error: failed to create deployment: deployments.apps "d" is forbidden: ' +
      "ValidatingAdmissionPolicy 'few-replicas' with binding 'few-replicas-here' denied " +
      'request: too many: 6',
  );
  expect((await kubectl(['create', 'deployment', 'd', '--image=i', '--replicas=5'])).code).toBe(0);
  const shown = await kubectl(['get', 'validatingadmissionpolicies']);
  expect(shown.stdout).toMatch(/few-replicas +1 +<unset>/);
});

test.runIf(kubectlIsHere)('ADM-2: kubectl prints a webhook’s denial and warnings', async () => {
  const configuration = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: check}
webhooks:
- name: check.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: ${namespace}}}
  clientConfig: {url: "${service.url}/v", caBundle: ${service.caBundle}}
  rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]
`;
  expect((await kubectl(['apply', '-f', '-'], configuration)).code).toBe(0);
  service.answer('/v', ({ name }) => ({
    allowed: name !== 'b',
    warnings: ['look out'],
    status: { code: 403, reason: 'Forbidden', message: 'no b' },
  }));
  const taken = await kubectl(['create', 'configmap', 'a']);
  expect([taken.code, taken.stderr.trim()]).toEqual([0, 'Warning: look out']);
  expect(service.at('/v')[0]?.apiVersion).toBe('admission.k8s.io/v1');
  const denied = await kubectl(['create', 'configmap', 'b']);
  expect(denied.code).toBe(1);
  expect(denied.stderr.trim().split('\n')).toEqual([
    'Warning: look out',
    'error: failed to create configmap: admission webhook "check.example.com" denied the request: no b',
  ]);
});
