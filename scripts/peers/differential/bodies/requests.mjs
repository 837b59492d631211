// The objects to which the bodies belong: a custom kind, and bodies of subresources, reviews, and
// deletions.
import { call, eventually } from '../../servers.mjs';

const core = '/api/v1/namespaces/default';
const apps = '/apis/apps/v1/namespaces/default';

const any = { 'x-kubernetes-preserve-unknown-fields': true };
const scalars = {
  text: { type: 'string' },
  bytes: { type: 'string', format: 'byte' },
  time: { type: 'string', format: 'date-time' },
  whole: { type: 'integer' },
  small: { type: 'integer', format: 'int32' },
  number: { type: 'number' },
  truth: { type: 'boolean' },
  maybe: { type: 'string', nullable: true },
  either: { 'x-kubernetes-int-or-string': true },
  anything: { ...any },
  free: { type: 'object', ...any },
  preset: { type: 'integer', default: 3 },
};
const spec = {
  type: 'object',
  properties: {
    ...scalars,
    texts: { type: 'array', items: { type: 'string' } },
    map: { type: 'object', additionalProperties: { type: 'integer' } },
    things: { type: 'array', items: { type: 'object', properties: scalars } },
    pod: { type: 'object', 'x-kubernetes-embedded-resource': true, ...any },
    replicas: { type: 'integer' },
  },
};
const definition = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'widgets.bodies.example.com' },
  spec: {
    group: 'bodies.example.com',
    names: { plural: 'widgets', kind: 'Widget' },
    scope: 'Namespaced',
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        schema: { openAPIV3Schema: { type: 'object', properties: { spec, status: spec } } },
        subresources: {
          status: {},
          scale: { specReplicasPath: '.spec.replicas', statusReplicasPath: '.status.whole' },
        },
      },
    ],
  },
};
const widgets = '/apis/bodies.example.com/v1/namespaces/default/widgets';
const widget = {
  apiVersion: 'bodies.example.com/v1',
  kind: 'Widget',
  metadata: {
    name: 'w',
    labels: { a: 'b' },
    finalizers: ['example.com/f'],
    annotations: { c: 'd' },
  },
  spec: {
    text: 'a',
    whole: 1,
    small: 2,
    number: 1.5,
    truth: true,
    either: 5,
    anything: { a: [1, 'x', null] },
    free: { b: 1 },
    texts: ['a', 'b'],
    map: { a: 1 },
    things: [{ text: 'a', whole: 1 }],
    pod: { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'x' } },
    replicas: 1,
  },
  status: { text: 'a' },
};
const pod = (name) => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, namespace: 'default', labels: { app: 'a' } },
  spec: { containers: [{ name: 'c', image: 'i', resources: { requests: { cpu: '1' } } }] },
});
const deployment = {
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: 'd', namespace: 'default' },
  spec: {
    replicas: 1,
    selector: { matchLabels: { app: 'a' } },
    template: { metadata: { labels: { app: 'a' } }, spec: pod('d').spec },
  },
};

/** Creates the objects that the requests need on both servers. */
export async function prepare(both) {
  for (const server of both) {
    const make = (path, body) => call(server, { method: 'POST', path, body });
    await make('/apis/apiextensions.k8s.io/v1/customresourcedefinitions', definition);
    await make(`${core}/pods`, pod('bodies'));
    await make(`${apps}/deployments`, deployment);
    await make(`${core}/serviceaccounts`, { metadata: { name: 'bodies' } });
    const isServed = async () => (await call(server, { path: widgets })).status === 200;
    await eventually(isServed, { withinMs: 20_000, everyMs: 50 });
    await make(widgets, widget);
  }
}

/** The custom kind as a subject. */
export async function customKind(reference) {
  const path = '/openapi/v3/apis/bodies.example.com/v1';
  const read = async () => {
    const { status, body } = await call(reference, { path });
    return status === 200 ? body.components.schemas : undefined;
  };
  const schemas = await eventually(read, { withinMs: 20_000, everyMs: 100 });
  const { status, ...object } = widget;
  object.status = status;
  const schema = schemas['com.example.bodies.v1.Widget'];
  return { name: 'Widget', path: widgets, object, schema, schemas, hasStatus: true };
}

const review = (group, kind, spec, path) => ({
  object: { apiVersion: `${group}/v1`, kind, metadata: {}, spec },
  request: { method: 'POST', path },
});
const access = { user: 'u', groups: ['g'], resourceAttributes: { verb: 'get', resource: 'pods' } };

const requests = [
  review(
    'authorization.k8s.io',
    'SubjectAccessReview',
    access,
    '/apis/authorization.k8s.io/v1/subjectaccessreviews',
  ),
  review(
    'authorization.k8s.io',
    'SelfSubjectAccessReview',
    { nonResourceAttributes: { path: '/x', verb: 'get' } },
    '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews',
  ),
  review(
    'authorization.k8s.io',
    'LocalSubjectAccessReview',
    { ...access, resourceAttributes: { ...access.resourceAttributes, namespace: 'default' } },
    '/apis/authorization.k8s.io/v1/namespaces/default/localsubjectaccessreviews',
  ),
  review(
    'authentication.k8s.io',
    'TokenReview',
    { token: 'x', audiences: ['a'] },
    '/apis/authentication.k8s.io/v1/tokenreviews',
  ),
  review(
    'authentication.k8s.io',
    'TokenRequest',
    { audiences: ['a'], expirationSeconds: 600 },
    `${core}/serviceaccounts/bodies/token?dryRun=All`,
  ),
  {
    object: {
      apiVersion: 'policy/v1',
      kind: 'Eviction',
      metadata: { name: 'bodies', namespace: 'default' },
      deleteOptions: { gracePeriodSeconds: 5, preconditions: { uid: 'x' } },
    },
    request: { method: 'POST', path: `${core}/pods/bodies/eviction?dryRun=All` },
  },
  {
    object: {
      apiVersion: 'v1',
      kind: 'Binding',
      metadata: { name: 'bodies', annotations: { a: 'b' } },
      target: { kind: 'Node', name: 'n' },
    },
    request: { method: 'POST', path: `${core}/pods/bodies/binding?dryRun=All` },
  },
  {
    object: {
      apiVersion: 'autoscaling/v1',
      kind: 'Scale',
      metadata: { name: 'd', namespace: 'default' },
      spec: { replicas: 2 },
    },
    request: { method: 'PUT', path: `${apps}/deployments/d/scale?dryRun=All` },
  },
  {
    object: {
      apiVersion: 'autoscaling/v1',
      kind: 'Scale',
      metadata: { name: 'w', namespace: 'default' },
      spec: { replicas: 2 },
    },
    request: { method: 'PUT', path: `${widgets}/w/scale?dryRun=All` },
  },
  {
    object: {
      ...pod('bodies'),
      status: { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] },
    },
    request: { method: 'PUT', path: `${core}/pods/bodies/status?dryRun=All` },
  },
  ...[`${core}/pods/bodies`, `${widgets}/w`, `${apps}/deployments/d`, `${core}/configmaps`].map(
    (path) => ({
      object: {
        apiVersion: 'v1',
        kind: 'DeleteOptions',
        gracePeriodSeconds: 5,
        propagationPolicy: 'Background',
        dryRun: ['All'],
        preconditions: { uid: 'x', resourceVersion: '1' },
      },
      request: { method: 'DELETE', path: `${path}?dryRun=All` },
    }),
  ),
];

const componentOf = (kind) => ({ DeleteOptions: /\.DeleteOptions$/, Scale: /\.Scale$/ })[kind];

/** The bodies that are no objects of a resource, each with its request and its schema. */
export async function otherBodies(reference) {
  const found = [];
  for (const { object, request } of requests) {
    const { body } = await call(reference, {
      path: `/openapi/v3${request.path.match(/^\/api\/v1|^\/apis\/[^/]+\/v1/)[0]}`,
    });
    const { schemas } = body.components;
    const named = componentOf(object.kind) ?? new RegExp(`\\.${object.kind}$`);
    const name = Object.keys(schemas).find((name) => named.test(name));
    const resource = request.path.split('?')[0].split('/').slice(-1)[0];
    found.push({
      name: `${object.kind} ${resource}`,
      object,
      request,
      schema: schemas[name] ?? {},
      schemas,
    });
  }
  return found;
}
