// The manifests of kubectl-session.txt, by name.
const pods = {
  metadata: { labels: { app: 'web' } },
  spec: { containers: [{ name: 'main', image: 'example.test/app:1' }] },
};
const settings = (data) => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'settings' },
  data,
});

const schema = {
  type: 'object',
  properties: {
    spec: {
      type: 'object',
      description: 'What the widget should be.',
      required: ['size'],
      properties: {
        size: { type: 'integer', minimum: 1, maximum: 5, description: 'How large it is.' },
        color: { type: 'string', enum: ['red', 'blue'], default: 'red' },
      },
      'x-kubernetes-validations': [
        { rule: "self.color != 'blue' || self.size < 5", message: 'blue widgets are small' },
      ],
    },
  },
};

const widget = (spec) => ({
  apiVersion: 'peers.test/v1',
  kind: 'Widget',
  metadata: { name: 'one' },
  spec,
});

const version = {
  name: 'v1',
  served: true,
  storage: true,
  schema: { openAPIV3Schema: schema },
  subresources: { scale: { specReplicasPath: '.spec.size', statusReplicasPath: '.status.size' } },
  additionalPrinterColumns: [{ name: 'Size', type: 'integer', jsonPath: '.spec.size' }],
};

/** The manifests by the names that the session uses; kubectl reads them from its standard input. */
export const manifests = {
  web: {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'web', labels: { app: 'web' } },
    spec: { replicas: 3, selector: { matchLabels: { app: 'web' } }, template: pods },
  },
  role: {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'Role',
    metadata: { name: 'reader' },
    rules: [{ apiGroups: [''], resources: ['pods', 'secrets'], verbs: ['get', 'list', 'watch'] }],
  },
  node: { apiVersion: 'v1', kind: 'Node', metadata: { name: 'peer' } },
  settings: settings({ a: '1', b: '2' }),
  'settings-two': settings({ a: '2' }),
  'unknown-field': { ...settings({ a: '3' }), nosuch: 1 },
  'invalid-pod': {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'Bad Name' },
    spec: { restartPolicy: 'Sometimes', containers: [{ name: 'a', image: '' }, { name: 'a' }] },
  },
  crd: {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: 'widgets.peers.test' },
    spec: {
      group: 'peers.test',
      scope: 'Namespaced',
      names: { plural: 'widgets', singular: 'widget', kind: 'Widget', shortNames: ['wg'] },
      versions: [version],
    },
  },
  widget: widget({ size: 2 }),
  'widget-bad': widget({ size: 9, color: 'green' }),
  policy: {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingAdmissionPolicy',
    metadata: { name: 'peers' },
    spec: {
      matchConstraints: {
        resourceRules: [
          { apiGroups: [''], apiVersions: ['v1'], operations: ['*'], resources: ['pods'] },
        ],
      },
      validations: [{ expression: 'object.nosuch == 1 &&' }],
    },
  },
};
