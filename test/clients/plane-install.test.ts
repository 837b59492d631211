import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:https';
import { join } from 'node:path';
import type { CustomResourceDefinition } from '@wheelhouse/kinds/types/apiextensions/v1';
import {
  type ControlPlane,
  type ControlPlaneOptions,
  ManifestError,
  startControlPlane,
} from '@wheelhouse/server';
import { afterEach, beforeAll, expect, test } from 'vitest';
import { temporaryFolder } from '../support/cleanup.ts';
import { configMap, connect, type ResponseBody, type ResponseOf } from '../support/harness.ts';

const folder = temporaryFolder();
const started: ControlPlane[] = [];
afterEach(async () => {
  await Promise.all(started.splice(0).map((plane) => plane.stop()));
});

/** Starts a plane with the names of unmodified manifests, and a client. */
async function start(options: ControlPlaneOptions = {}) {
  const flags = ['--dialect=kubernetes', ...(options.flags ?? [])];
  const plane = await startControlPlane({ ...options, flags });
  started.push(plane);
  const client = connect(plane.url);
  const get = async <Body = ResponseBody>(path: string) => {
    const answer = await client.calls.get<Body>(path, { token: plane.token });
    client.close();
    return answer;
  };
  return { plane, get };
}

function write(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

function definition(kind: string, more = '') {
  const plural = `${kind.toLowerCase()}s`;
  return `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: ${plural}.example.com
spec:
  group: example.com
  scope: Namespaced
  names: { plural: ${plural}, singular: ${kind.toLowerCase()}, kind: ${kind} }
${more}  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema: { type: object, x-kubernetes-preserve-unknown-fields: true }
`;
}

const widget = (name: string) => ({
  apiVersion: 'example.com/v1',
  kind: 'Widget',
  metadata: { name },
  spec: { size: 1 },
});

beforeAll(() => {
  mkdirSync(join(folder, 'crds'));
  write('crds/b.yaml', `# two documents\n---\n${definition('Widget')}---\n${definition('Gadget')}`);
  write('crds/a.json', JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: {} }));
  write('crds/notes.txt', 'not a manifest: {');
});

test('PLANE-2: definitions are established and objects applied when the promise resolves', async () => {
  const { plane, get } = await start({
    crds: [join(folder, 'crds'), definition('Sprocket')],
    objects: [
      widget('first'),
      'apiVersion: v1\nkind: Namespace\nmetadata: { name: team }\n',
      write(
        'objects.yaml',
        `apiVersion: v1
kind: List
items:
- { apiVersion: example.com/v1, kind: Gadget, metadata: { name: second, namespace: team } }
- { apiVersion: v1, kind: ConfigMap, metadata: { name: third, namespace: team }, data: { a: b } }
---
apiVersion: v1
kind: ConfigMapList
items:
- { metadata: { name: fourth, namespace: team }, data: { c: d } }
`,
      ),
    ],
  });
  const { body } = await get('/apis/example.com/v1/namespaces/default/widgets/first');
  expect(body.spec).toEqual({ size: 1 });
  const team = { namespace: 'team' };
  const gadgets = await plane.client.list({
    apiVersion: 'example.com/v1',
    kind: 'Gadget',
    ...team,
  });
  expect(gadgets.map(({ metadata }) => metadata?.name)).toEqual(['second']);
  const map = { apiVersion: 'v1', kind: 'ConfigMap', name: 'third', ...team };
  expect((await plane.client.get(map)).data).toEqual({ a: 'b' });
  expect((await plane.client.get({ ...map, name: 'fourth' })).data).toEqual({ c: 'd' });
  const [applied] = await plane.apply({ ...widget('first'), spec: { size: 2 } });
  expect(applied?.spec).toEqual({ size: 2 });
  const sprockets = await get('/apis/example.com/v1/sprockets');
  expect(sprockets.status).toBe(200);
});

test('PLANE-2: a definition passed to `apply` serves the objects beside it', async () => {
  const { plane } = await start();
  const [made, crd] = await plane.apply(widget('early'), definition('Widget'));
  expect(made?.metadata?.namespace).toBe('default');
  expect(crd?.kind).toBe('CustomResourceDefinition');
  await plane.client.delete({ ...widget('early'), name: 'early' });
  const reference = { apiVersion: 'example.com/v1', kind: 'Widget', name: 'early' };
  await expect(plane.client.get(reference)).rejects.toMatchObject({ code: 404 });
});

test('PLANE-2: webhooks that name a Service are called at a trusted local address', async () => {
  const service = { name: 'hooks', namespace: 'default', path: '/validate' };
  const configuration = {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingWebhookConfiguration',
    metadata: { name: 'guard' },
    webhooks: [
      {
        name: 'guard.example.com',
        clientConfig: { service },
        rules: [
          {
            apiGroups: [''],
            apiVersions: ['v1'],
            operations: ['CREATE'],
            resources: ['configmaps'],
          },
        ],
        namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'default' } },
        admissionReviewVersions: ['v1'],
        sideEffects: 'None',
      },
    ],
  };
  const conversion = `  conversion:
    strategy: Webhook
    webhook:
      conversionReviewVersions: [v1]
      clientConfig: { service: { name: hooks, namespace: default, path: convert } }
`;
  const { plane, get } = await start({
    webhooks: { configurations: [configuration] },
    crds: [definition('Widget', conversion)],
  });
  const { webhooks } = plane;
  const stored = await get<ResponseOf<CustomResourceDefinition>>(
    '/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com',
  );
  expect(stored.body.spec.conversion.webhook.clientConfig).toEqual({
    url: `${webhooks?.url}/convert`,
    caBundle: Buffer.from(webhooks?.caPem ?? '').toString('base64'),
  });
  const certDir = webhooks?.certDir ?? '';
  expect(readFileSync(join(certDir, 'tls.crt'), 'utf8')).toBe(webhooks?.certificatePem);
  const paths: (string | undefined)[] = [];
  const hooks = createServer({ key: webhooks?.keyPem, cert: webhooks?.certificatePem });
  hooks.on('request', (request, response) => {
    paths.push(request.url);
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const review: { readonly request: { readonly uid: string } } = JSON.parse(
        Buffer.concat(chunks).toString(),
      );
      const answer = { uid: review.request.uid, allowed: false, status: { message: 'not today' } };
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify({ ...review, request: undefined, response: answer }));
    });
  });
  await new Promise<void>((resolve) => hooks.listen(webhooks?.port, webhooks?.host, resolve));
  try {
    const refused = plane.client.create({ ...configMap('a'), apiVersion: 'v1', kind: 'ConfigMap' });
    await expect(refused).rejects.toThrow('not today');
    expect(paths[0]).toMatch(/^\/validate(\?|$)/);
  } finally {
    hooks.closeAllConnections();
    await new Promise((resolve) => hooks.close(resolve));
  }
});

const converting = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: { name: boats.example.com }
spec:
  group: example.com
  scope: Namespaced
  names: { plural: boats, singular: boat, kind: Boat }
  conversion:
    strategy: Webhook
    webhook:
      conversionReviewVersions: [v1]
      clientConfig: { service: { name: hooks, namespace: default, path: convert } }
  versions:
  - { name: v1, served: true, storage: true, schema: { openAPIV3Schema: &open
      { type: object, x-kubernetes-preserve-unknown-fields: true } } }
  - { name: v2, served: true, storage: false, schema: { openAPIV3Schema: *open } }
`;

interface ConversionReview {
  readonly request: {
    readonly uid: string;
    readonly desiredAPIVersion: string;
    readonly objects: readonly { readonly spec: { readonly feet?: number; metres?: number } }[];
  };
}

/** Converts boats: version 1 has `metres`, version 2 has `feet`. */
function convert({ request }: ConversionReview) {
  const { uid, desiredAPIVersion: apiVersion } = request;
  const convertedObjects = request.objects.map((object) => {
    const { metres = 0, feet = 0 } = object.spec;
    const spec = apiVersion.endsWith('v2') ? { feet: metres * 3 } : { metres: feet / 3 };
    return { ...object, apiVersion, spec };
  });
  const response = { uid, result: { status: 'Success' }, convertedObjects };
  return { apiVersion: 'apiextensions.k8s.io/v1', kind: 'ConversionReview', response };
}

test('PLANE-2: a conversion webhook that names a Service converts at the local address', async () => {
  const { plane } = await start({ webhooks: {}, crds: [converting] });
  const { host, port, keyPem: key, certificatePem: cert } = plane.webhooks ?? {};
  const paths = new Set<string | undefined>();
  const hooks = createServer({ key, cert }, (request, response) => {
    paths.add(request.url?.split('?', 1)[0]);
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify(convert(JSON.parse(Buffer.concat(chunks).toString()))));
    });
  });
  const boat = { apiVersion: 'example.com/v2', kind: 'Boat' };
  const write = (name: string) =>
    plane.client.create({ ...boat, metadata: { name }, spec: { feet: 36 } });
  await new Promise<void>((resolve) => hooks.listen(port, host, resolve));
  try {
    await write('elisa');
    const stored = { apiVersion: 'example.com/v1', kind: 'Boat', name: 'elisa' };
    expect((await plane.client.get(stored)).spec).toEqual({ metres: 12 });
    const [listed] = await plane.client.list(boat);
    expect(listed).toMatchObject({ apiVersion: boat.apiVersion, spec: { feet: 36 } });
    expect([...paths]).toEqual(['/convert']);
  } finally {
    hooks.closeAllConnections();
    await new Promise((resolve) => hooks.close(resolve));
  }
  await expect(write('late')).rejects.toThrow('conversion webhook for example.com/v2, Kind=Boat');
  expect(await plane.client.list({ ...boat, apiVersion: 'example.com/v1' })).toHaveLength(1);
});

test('PLANE-2: users have a kubeconfig, a client, and the rights of their groups', async () => {
  const { plane } = await start({
    flags: ['--authorization-mode=RBAC'],
    objects: [
      {
        apiVersion: 'rbac.authorization.k8s.io/v1',
        kind: 'ClusterRoleBinding',
        metadata: { name: 'readers' },
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'view' },
        subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'Group', name: 'readers' }],
      },
    ],
  });
  const maps = { apiVersion: 'v1', kind: 'ConfigMap', namespace: 'default' };
  const map = { ...maps, metadata: { name: 'a' } };
  const outsider = plane.user('outsider');
  await expect(outsider.client.list(maps)).rejects.toMatchObject({ code: 403 });
  const reader = plane.user('a/reader', ['readers']);
  expect(await reader.client.list(maps)).toBeInstanceOf(Array);
  await expect(reader.client.create(map)).rejects.toThrow('User "a/reader" cannot create');
  const config: { readonly users: readonly { readonly user: { readonly token: string } }[] } =
    JSON.parse(readFileSync(reader.kubeconfig, 'utf8'));
  expect(config.users[0]?.user.token).toBe(reader.token);
  const again = plane.user('outsider', ['system:masters']);
  expect(again.token).toBe(outsider.token);
  expect((await outsider.client.create(map)).metadata?.name).toBe('a');
  expect(() => plane.user('')).toThrow('a user needs a name');
  const longName = 'x'.repeat(400);
  expect(readFileSync(plane.user(longName).kubeconfig, 'utf8')).toContain(longName);
  await plane.stop();
  expect(() => plane.user('late')).toThrow('the control plane has stopped');
});

test('PLANE-2: an unreadable manifest is reported with its file and line', async () => {
  const broken = write('broken.yaml', `${definition('Widget')}---\nkind: A\n b: [c\n`);
  const starting = start({ crds: [broken] });
  await expect(starting).rejects.toThrow(`${broken}:17: cannot be parsed`);
  await expect(starting).rejects.toMatchObject({ file: broken, line: 17 });
  const missing = join(folder, 'missing.yaml');
  await expect(start({ crds: [missing] })).rejects.toThrow(`${missing}: cannot be read: no such`);
  const foreign = definition('Widget').replaceAll('k8s.io', 'svc.io');
  await expect(start({ crds: [foreign] })).rejects.toThrow("flags: ['--dialect=svc']");
  const { plane } = await start();
  const invalid = write('invalid.yaml', `\n${definition('Widget').replace('Namespaced', 'Here')}`);
  const refused = plane.apply(invalid);
  await expect(refused).rejects.toBeInstanceOf(ManifestError);
  await expect(refused).rejects.toThrow(`${invalid}:2: CustomResourceDefinition widgets`);
  await expect(plane.apply('kind: A\n')).rejects.toThrow('line 1: is not an object of the API');
  await expect(plane.apply(widget('early'))).rejects.toThrow(
    'serves no kind Widget in example.com',
  );
  const taken = definition('Gadget').replace('kind: Gadget', 'kind: Widget');
  await plane.apply(definition('Widget'));
  await expect(plane.apply(taken)).rejects.toThrow('gadgets.example.com cannot be served');
  expect(await plane.apply(widget('late'))).toHaveLength(1);
});

/** Options as a JavaScript program may pass them, without types. */
function untyped(options: unknown): ControlPlaneOptions {
  return options as ControlPlaneOptions;
}

test.each([
  [
    'an unknown option',
    { crd: ['a.yaml'] },
    '"crd" is not one of the options of a plane, which are flags, crds',
  ],
  ['no options', null, 'the options of a plane must be an object'],
  ['a path instead of a list', { crds: 'crds' }, '"crds" of the options of a plane must be a list'],
  ['a manifest that is a number', { objects: [3] }, '"objects" of the options of a plane must be'],
  [
    'a flag instead of a list',
    { flags: '--v=1' },
    '"flags" of the options of a plane must be a list',
  ],
  ['a recordedMax of zero', { recordedMax: 0 }, '"recordedMax" of the options of a plane must be'],
  [
    'a seed that is not a number',
    { seed: 'x' },
    '"seed" of the options of a plane must be a number',
  ],
  [
    'webhooks that are not an object',
    { webhooks: true },
    '"webhooks" of the options of a plane must be',
  ],
  [
    'an unknown option of webhooks',
    { webhooks: { port: 1 } },
    '"port" is not one of the options of webhooks',
  ],
  ['an address without a port', { webhooks: { address: 'here' } }, '"here" is not host:port'],
  ['a port out of range', { webhooks: { address: 'a:70000' } }, 'a port from 1 to 65535'],
  ['port zero', { webhooks: { address: '127.0.0.1:0' } }, 'a port from 1 to 65535'],
  [
    'a malformed CA certificate',
    { webhooks: { caPem: 'x' } },
    '"caPem" of the options of webhooks contains no',
  ],
])('PLANE-2: a plane with %s is refused', async (_, options, message) => {
  await expect(startControlPlane(untyped(options))).rejects.toThrow(message);
});

test('PLANE-2: a reference without a name never addresses the whole collection', async () => {
  const { plane } = await start();
  const { client } = plane;
  const maps = { apiVersion: 'v1', kind: 'ConfigMap' };
  await client.create({ ...maps, metadata: { name: 'kept' } });
  await expect(client.delete({ ...maps, name: '' })).rejects.toThrow('the ConfigMap has no name');
  await expect(client.get({ ...maps, name: '' })).rejects.toThrow('the ConfigMap has no name');
  await expect(client.replace(maps)).rejects.toThrow('the ConfigMap has no metadata.name');
  await expect(client.create(maps)).rejects.toThrow('name or generateName is required');
  const listed = await client.list({ ...maps, namespace: 'default' });
  expect(listed.map(({ metadata }) => metadata?.name)).toContain('kept');
});

test('PLANE-2: `await using` stops it', async () => {
  const plane = await startControlPlane();
  await plane.apply('apiVersion: v1\nkind: Namespace\nmetadata: { name: short }\n');
  // Node 20 runs `await using` only after a compiler has replaced it with this call.
  await plane[Symbol.asyncDispose]();
  await expect(fetch(plane.url)).rejects.toThrow();
});
