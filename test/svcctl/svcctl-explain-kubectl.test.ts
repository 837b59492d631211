import { expect } from 'vitest';
import { type Line, saysAsKubectl } from '../clients/beside-kubectl.ts';
import { eventually, type TestServer } from '../support/harness.ts';

const kinds = [
  ...['pods', 'pod.spec', 'pods.metadata', 'pods.spec.containers', 'pods.metadata.labels'],
  ...['pods.spec.containers.imagePullPolicy', 'pods.spec.containers.ports.containerPort'],
  ...['pods.spec.containers.resources.limits', 'pods.metadata.managedFields.fieldsV1'],
  ...['pods.spec.containers.livenessProbe.httpGet.port', 'pods.metadata.creationTimestamp'],
  ...['pods.spec.restartPolicy', 'pods.spec.volumes.emptyDir', 'configmaps.data', 'secret'],
  ...['deploy', 'deployments.apps', 'deployments.apps.spec.strategy'],
  ...['deploy.spec.strategy.rollingUpdate.maxSurge', 'networkpolicies.spec.policyTypes'],
  ...['hpa.spec.metrics', 'crd.spec.versions.schema.openAPIV3Schema', 'clusterroles.rules'],
  ...['svc.spec', 'svc.spec.type', 'svc.spec.ports.protocol', 'pv.spec.claimRef', 'events.series'],
  ...['harbors', 'harbors.spec', 'harbors.spec.size', 'harbors.spec.tides'],
  ...['harbors.spec.depth', 'harbors.spec.free', 'harbors.spec.berths', 'harbors.status'],
  ...['harbors.spec.berths.name', 'harbors.spec.extra', 'harbors.spec.few', 'harbors.metadata'],
];

const lines: readonly Line[] = [
  ...kinds.flatMap((kind): Line[] => [
    [`explain ${kind}`],
    [`explain ${kind} --output=plaintext-openapiv2`],
  ]),
  ...['pods', 'crd', 'harbors', 'deploy.spec.template', 'networkpolicies.spec'].flatMap(
    (kind): Line[] => [
      [`explain ${kind} --recursive`],
      [`explain ${kind} --recursive -o plaintext-openapiv2`],
    ],
  ),
  ['explain hpa.spec --api-version=autoscaling/v1'],
  ['explain hpa.spec --api-version=autoscaling/v1 -o plaintext-openapiv2'],
  ['explain'],
  ['explain pods services'],
  ['explain pods.spec.nothing -o plaintext-openapiv2'],
  ['explain pods -o xml'],
];

const text = `Where ships lie.

Berths:
- one
- two

    verbatim text that is indented and much longer than the eighty columns of a line of a terminal
${'A long text that has to be broken into lines. '.repeat(6)}`;

saysAsKubectl(lines, async (server: TestServer) => {
  const group = 'explain.example.com';
  const spec = {
    type: 'object',
    required: ['size'],
    properties: {
      size: { type: 'string', enum: ['', 'a', 'b', 'c', 'd', 'e'], description: 'How large.' },
      few: { type: 'integer', enum: [1, 2] },
      free: { type: 'boolean', description: text },
      depth: { 'x-kubernetes-int-or-string': true },
      tides: { type: 'object', additionalProperties: { type: 'number', description: 'A tide.' } },
      extra: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
      berths: {
        type: 'array',
        description: 'All berths.',
        items: {
          type: 'object',
          description: 'A berth.',
          required: ['name'],
          properties: { name: { type: 'string', enum: ['north', 'south'] } },
        },
      },
    },
  };
  const definition = {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `harbors.${group}` },
    spec: {
      group,
      scope: 'Namespaced',
      names: { plural: 'harbors', kind: 'Harbor' },
      versions: [
        {
          ...{ name: 'v1', served: true, storage: true },
          schema: {
            openAPIV3Schema: {
              type: 'object',
              description: text,
              properties: { spec, status: { type: 'object' } },
            },
          },
        },
      ],
    },
  };
  const path = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
  expect([201, 409]).toContain((await server.post(path, definition)).status);
  await eventually(async () => (await server.get(`/openapi/v3/apis/${group}/v1`)).status === 200);
  await eventually(async () => {
    const { body } = await server.get('/openapi/v2');
    return body.definitions['com.example.explain.v1.Harbor'] !== undefined;
  });
});
