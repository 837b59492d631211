import { saysAsKubectl } from '../clients/beside-kubectl.ts';

const clientSide = 'apply --server-side=false';
const byServer = (manager: string) => `apply --server-side --field-manager=${manager}`;
const ownedBy = (manager: string) =>
  `{.metadata.managedFields[?(@.manager=="${manager}")].fieldsV1}`;
const one = { a: '1' };
const map = (name: string, data: object | undefined, metadata: object = {}) => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, ...metadata },
  ...(data === undefined ? {} : { data }),
});
const documents = (...objects: object[]) =>
  objects.map((object) => `---\n${JSON.stringify(object)}\n`).join('');
const labels = { app: 'd' };
const deployment = (containers: object[], spec: object = {}, more: object = {}) => ({
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: 'd', ...more },
  spec: {
    selector: { matchLabels: labels },
    template: { metadata: { labels }, spec: { containers, ...spec } },
  },
});
const container = (name: string, more: object = {}) => ({ name, image: 'i', ...more });
const env = (...names: string[]) => names.map((name) => ({ name, value: name.toUpperCase() }));
const service = (name: string, ports: object[]) => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name },
  spec: { selector: labels, ports },
});
const definition = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'gadgets.apply.example' },
  spec: {
    group: 'apply.example',
    scope: 'Namespaced',
    names: { plural: 'gadgets', kind: 'Gadget', singular: 'gadget' },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        schema: {
          openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
        },
      },
    ],
  },
};
const gadget = (spec: object) => ({
  apiVersion: 'apply.example/v1',
  kind: 'Gadget',
  metadata: { name: 'g' },
  spec,
});
const set = { labels: { set: 'one' } };
const shown = 'get deployment d -o jsonpath={.spec.template.spec}';

saysAsKubectl([
  // The words for what happens.
  [`${clientSide} -f -`, documents(map('x', { a: '1', b: '<&>' }))],
  [`${clientSide} -f -`, documents(map('x', { a: '1', b: '<&>' }))],
  [`${clientSide} -f - --dry-run=client`, documents(map('x', { a: '1', b: '<&>' }))],
  [`${clientSide} -f - --dry-run=server`, documents(map('x', { a: '1', b: '<&>' }))],
  [`${clientSide} -f - --dry-run=server`, documents(map('x', { a: '2' }))],
  [`${clientSide} -f - --dry-run=client`, documents(map('new', { a: '2' }))],
  [`${clientSide} -f - --dry-run=server`, documents(map('new', { a: '2' }))],
  [`${clientSide} -f - -o name`, documents(map('x', { a: '2' }))],
  [`${clientSide} -f - -o yaml`, documents(map('x', { a: '3', c: '1' }))],
  [`${clientSide} -f - -o json`, documents(map('x', { a: '3' }), map('y', {}))],
  [`${clientSide} -f - -o json --dry-run=client`, documents(map('zz', { b: '3', a: '<' }))],
  ['get cm x y -o yaml'],
  // What others have set stays; null takes away.
  ['patch cm x --type=merge -p {"data":{"kept":"1"}}'],
  [`${clientSide} -f -`, documents(map('x', { a: null, d: '1' }))],
  [`${clientSide} -f -`, documents(map('x', { a: null, d: '1' }))],
  [`${clientSide} -f -`, documents(map('nulls', { a: null, d: '1' }, { labels: null }))],
  ['get cm x nulls -o yaml'],
  // An object that was not applied before.
  ['create -f -', documents(map('bare', { a: '1' }))],
  [`${clientSide} -f -`, documents(map('bare', { a: '1' }))],
  [`${clientSide} -f -`, documents(map('bare', { a: '1' }))],
  ['get cm bare -o yaml'],
  // Lists that merge, in order.
  [`${clientSide} -f -`, documents(deployment([container('a', { env: env('x', 'y') })]))],
  [`${clientSide} -f -`, documents(deployment([container('a', { env: env('x', 'y') })]))],
  [
    'patch deployment d -p {"spec":{"template":{"spec":{"containers":[{"name":"side","image":"s"}]}}}}',
  ],
  [`${clientSide} -f -`, documents(deployment([container('a', { env: env('y', 'z') })]))],
  [shown],
  [
    `${clientSide} -f -`,
    documents(deployment([container('b'), container('a', { env: env('z', 'y'), args: ['1'] })])),
  ],
  [shown],
  [`${clientSide} -f -`, documents(deployment([container('b', { args: ['2', '1'] })]))],
  [shown],
  // Members that are to be alone in their object.
  [
    `${clientSide} -f -`,
    documents(deployment([container('b')], { volumes: [{ name: 'v', emptyDir: {} }] })),
  ],
  [
    `${clientSide} -f -`,
    documents(deployment([container('b')], { volumes: [{ name: 'v', configMap: { name: 'x' } }] })),
  ],
  [shown],
  // Lists of scalars that merge.
  [
    `${clientSide} -f -`,
    documents(deployment([container('b')], {}, { finalizers: ['b/y', 'a/x'] })),
  ],
  [
    `${clientSide} -f -`,
    documents(deployment([container('b')], {}, { finalizers: ['b/y', 'a/x'] })),
  ],
  [
    `${clientSide} -f -`,
    documents(deployment([container('b')], {}, { finalizers: ['c/z', 'a/x'] })),
  ],
  ['get deployment d -o jsonpath={.metadata.finalizers}'],
  [`${clientSide} -f -`, documents(deployment([container('b')]))],
  ['get deployment d -o jsonpath={.metadata.finalizers}{.spec}'],
  // One port number for two protocols is what their key cannot tell apart.
  [
    `${clientSide} -f -`,
    documents(
      service('s', [
        { name: 'dns', port: 53, protocol: 'UDP' },
        { name: 'dns-tcp', port: 53, protocol: 'TCP' },
      ]),
    ),
  ],
  [
    `${clientSide} -f -`,
    documents(
      service('s', [
        { name: 'dns-tcp', port: 53, protocol: 'TCP' },
        { name: 'web', port: 80 },
      ]),
    ),
  ],
  ['get service s -o jsonpath={.spec.ports}'],
  // What is refused.
  [`${clientSide} -f -`, documents(map('Q', {}), map('q', { a: '1' }))],
  [`${clientSide} -f -`, documents(map('q', { a: '1' }, { labels: { 'a b': 'c' } }))],
  [`${clientSide} -f -`, documents({ ...map('q', undefined), data: ['a'] })],
  [
    `${clientSide} -f -`,
    documents({ ...deployment([container('b')]), spec: { selector: { matchLabels: { a: 'b' } } } }),
  ],
  [
    `${clientSide} --force -f -`,
    documents({
      ...deployment([container('b')]),
      spec: {
        selector: { matchLabels: { a: 'b' } },
        template: { metadata: { labels: { a: 'b' } }, spec: { containers: [container('b')] } },
      },
    }),
  ],
  ['get deployment d -o jsonpath={.spec.selector}'],
  [`${clientSide} -f -`, documents({ ...map('', {}), metadata: { generateName: 'g-' } })],
  [`${clientSide} --force-conflicts -f -`, documents(map('x', {}))],
  [`${clientSide} --force --dry-run=server -f -`, documents(map('x', {}))],
  ['apply --server-side --force -f -', documents(map('x', {}))],
  ['apply --server-side --dry-run=client -f -', documents(map('x', {}))],
  [`${clientSide} --prune -f -`, documents(map('x', {}))],
  [`${clientSide} --prune --all -l a=b -f -`, documents(map('x', {}))],
  [`${clientSide} -f - extra`, documents(map('x', {}))],
  // What a client-side apply owned goes to the server-side one, which removes what it leaves out.
  [`${clientSide} -f -`, documents(map('m', { a: '1', b: '2' }))],
  [`${byServer('kubectl')} --dry-run=server -f - -o jsonpath={.data}`, documents(map('m', one))],
  ['get cm m -o jsonpath={.metadata.managedFields[*].operation}{.data}'],
  [`${byServer('kubectl')} -f -`, documents(map('m', one))],
  [`get cm m -o jsonpath=${ownedBy('kubectl')}${ownedBy('kubectl-last-applied')}`],
  ['get cm m -o jsonpath={.metadata.managedFields[*].operation}{.data}{.metadata.annotations}'],
  [`${byServer('kubectl')} -f -`, documents(map('m', { a: '3' }))],
  ['get cm m -o jsonpath={.data}{.metadata.annotations}'],
  [`${clientSide} -f -`, documents(map('n', { a: '1', b: '2' }))],
  [`${byServer('other')} -f -`, documents(map('n', one))],
  [`get cm n -o jsonpath=${ownedBy('other')}{.data}{.metadata.annotations}`],
  [`${byServer('other')} -f -`, documents(map('n', one))],
  [`${clientSide} -f -`, documents(map('k', { a: '1', b: '2' }))],
  ['patch cm k --type=merge -p {"metadata":{"managedFields":[{}]}}'],
  [`${byServer('kubectl')} -f -`, documents(map('k', one))],
  ['get cm k -o jsonpath={.metadata.managedFields[*].operation}{.data}'],
  // A kind of the server's own has no keys for its lists.
  ['apply --server-side -f -', documents(definition)],
  ['wait crd/gadgets.apply.example --for=condition=Established --timeout=10s'],
  [`${clientSide} -f -`, documents(gadget({ a: { b: 1, c: null }, list: [{ name: 'x', v: 1 }] }))],
  [`${clientSide} -f -`, documents(gadget({ a: { b: 1, c: null }, list: [{ name: 'x', v: 1 }] }))],
  ['patch gadget g --type=merge -p {"spec":{"kept":1,"list":[{"name":"y"}]}}'],
  [`${clientSide} -f - -o jsonpath={.spec}`, documents(gadget({ a: { d: 2.5 }, list: [] }))],
  ['get gadget g -o jsonpath={.spec}'],
  // What is no longer given.
  [
    `${clientSide} -f -`,
    documents(map('p', {}, set), map('q', {}, set), service('p', [{ port: 1 }])),
  ],
  ['label service p set=one'],
  ['create -f -', documents(map('bystander', {}, set))],
  [`${clientSide} --prune -l set=one --dry-run=client -f -`, documents(map('p', {}, set))],
  [`${clientSide} --prune -l set=one --dry-run=server -f -`, documents(map('p', {}, set))],
  [`${clientSide} --prune -l set=one --prune-allowlist=v1 -f -`, documents(map('p', {}, set))],
  [
    `${clientSide} --prune -l set=one --prune-allowlist=core/v1/Service -f -`,
    documents(map('p', {}, set)),
  ],
  [`${clientSide} --prune -l set=one -f -`, documents(map('p', {}, set))],
  ['get cm,service -l set=one -o name'],
]);
