import { dialectNames, dialectOf, systemClock } from '@wheelhouse/machinery';
import { beforeEach, describe, expect, test } from 'vitest';
import { documents, printsLikeKubectl } from '../clients/compare-with-kubectl.ts';
import { untilEnd } from '../support/cleanup.ts';
import { freshNamespace } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';
import { svcctlFor, svcctlOn } from './svcctl-run.ts';

const clientSide = 'apply --server-side=false';
const byServer = (manager: string) => `apply --server-side --field-manager=${manager}`;
const ownedBy = (manager: string) =>
  `{.metadata.managedFields[?(@.manager=="${manager}")].fieldsV1}`;
const oneKey = { a: '1' };
const map = (name: string, data: object | undefined, metadata: object = {}) => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, ...metadata },
  ...(data === undefined ? {} : { data }),
});
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

printsLikeKubectl('apply', [
  // Messages.
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
  // Fields of other managers stay; null removes a field.
  ['patch cm x --type=merge -p {"data":{"kept":"1"}}'],
  [`${clientSide} -f -`, documents(map('x', { a: null, d: '1' }))],
  [`${clientSide} -f -`, documents(map('x', { a: null, d: '1' }))],
  [`${clientSide} -f -`, documents(map('nulls', { a: null, d: '1' }, { labels: null }))],
  ['get cm x nulls -o yaml'],
  // The first apply to an existing object.
  ['create -f -', documents(map('bare', { a: '1' }))],
  [`${clientSide} -f -`, documents(map('bare', { a: '1' }))],
  [`${clientSide} -f -`, documents(map('bare', { a: '1' }))],
  ['get cm bare -o yaml'],
  // Merging lists, with their order.
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
  // Unions: $retainKeys.
  [
    `${clientSide} -f -`,
    documents(deployment([container('b')], { volumes: [{ name: 'v', emptyDir: {} }] })),
  ],
  [
    `${clientSide} -f -`,
    documents(deployment([container('b')], { volumes: [{ name: 'v', configMap: { name: 'x' } }] })),
  ],
  [shown],
  // Merging lists of scalars.
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
  // Ports with the same number and different protocols share a merge key.
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
  // Refusals.
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
  [
    `${clientSide} --force -f -`,
    documents(map('q', { a: '7' }, { resourceVersion: '1', labels: { forced: 'yes' } })),
  ],
  ['get cm q -o jsonpath={.metadata.labels}{.data}'],
  ['get deployment d -o jsonpath={.spec.selector}'],
  [`${clientSide} -f -`, documents({ ...map('', {}), metadata: { generateName: 'g-' } })],
  [`${clientSide} --force-conflicts -f -`, documents(map('x', {}))],
  [`${clientSide} --force --dry-run=server -f -`, documents(map('x', {}))],
  ['apply --server-side --force -f -', documents(map('x', {}))],
  ['apply --server-side --dry-run=client -f -', documents(map('x', {}))],
  [`${clientSide} --prune -f -`, documents(map('x', {}))],
  [`${clientSide} --prune --all -l a=b -f -`, documents(map('x', {}))],
  [`${clientSide} -f - extra`, documents(map('x', {}))],
  // A server-side apply takes over from client-side apply and removes omitted fields.
  [`${clientSide} -f -`, documents(map('m', { a: '1', b: '2' }))],
  [`${byServer('kubectl')} --dry-run=server -f - -o jsonpath={.data}`, documents(map('m', oneKey))],
  ['get cm m -o jsonpath={.metadata.managedFields[*].operation}{.data}'],
  [`${byServer('kubectl')} -f -`, documents(map('m', oneKey))],
  [`get cm m -o jsonpath=${ownedBy('kubectl')}${ownedBy('kubectl-last-applied')}`],
  ['get cm m -o jsonpath={.metadata.managedFields[*].operation}{.data}{.metadata.annotations}'],
  [`${byServer('kubectl')} -f -`, documents(map('m', { a: '3' }))],
  ['get cm m -o jsonpath={.data}{.metadata.annotations}'],
  [`${clientSide} -f -`, documents(map('n', { a: '1', b: '2' }))],
  [`${byServer('other')} -f -`, documents(map('n', oneKey))],
  [`get cm n -o jsonpath=${ownedBy('other')}{.data}{.metadata.annotations}`],
  [`${byServer('other')} -f -`, documents(map('n', oneKey))],
  [`${clientSide} -f -`, documents(map('k', { a: '1', b: '2' }))],
  ['patch cm k --type=merge -p {"metadata":{"managedFields":[{}]}}'],
  [`${byServer('kubectl')} -f -`, documents(map('k', oneKey))],
  ['get cm k -o jsonpath={.metadata.managedFields[*].operation}{.data}'],
  // Custom resources have no merge keys.
  ['apply --server-side -f -', documents(definition)],
  ['wait crd/gadgets.apply.example --for=condition=Established --timeout=10s'],
  [`${clientSide} -f -`, documents(gadget({ a: { b: 1, c: null }, list: [{ name: 'x', v: 1 }] }))],
  [`${clientSide} -f -`, documents(gadget({ a: { b: 1, c: null }, list: [{ name: 'x', v: 1 }] }))],
  ['patch gadget g --type=merge -p {"spec":{"kept":1,"list":[{"name":"y"}]}}'],
  [`${clientSide} -f - -o jsonpath={.spec}`, documents(gadget({ a: { d: 2.5 }, list: [] }))],
  ['get gadget g -o jsonpath={.spec}'],
  ['patch gadget g -p {"spec":{"kept":2}}'],
  ['patch gadget g --type=strategic -p {"spec":{"kept":2}} --dry-run=server'],
  // Pruning.
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

describe('CLIENT-1: client-side apply that the server refuses', async () => {
  let namespace: string;
  const apply = (object: object, flags = '') =>
    home.runIn(namespace, `apply --client-side -f - ${flags}`.trim(), JSON.stringify(object));
  const path = (name: string) => `/api/v1/namespaces/${namespace}/configmaps/${name}`;
  const map = (data: object, metadata: object = {}, more: object = {}) => ({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'x', ...metadata },
    data,
    ...more,
  });
  const server = await withServer();
  const home = untilEnd(svcctlFor(server));
  beforeEach(async () => {
    namespace = await freshNamespace(server);
    home.clock = undefined;
  });

  /** A clock that records delays and fires immediately. */
  function recordDelays(): number[] {
    const delaysMs: number[] = [];
    home.clock = {
      ...systemClock,
      after: (delayMs, task) => {
        delaysMs.push(delayMs);
        return systemClock.after(0, task);
      },
    };
    return delaysMs;
  }

  test('CLIENT-1: a conflicting apply is retried five times, a second apart', async () => {
    await apply(map({ a: '1' }));
    const delaysMs = recordDelays();
    const { code, out, err } = await apply(map({ a: '2' }, { resourceVersion: '1' }));
    expect({ code, out, delaysMs }).toEqual({
      code: 1,
      out: '',
      delaysMs: [1000, 1000, 1000, 1000],
    });
    expect(err).toMatch(
      /^Error from server \(Conflict\): error when applying patch:\n\{"data":\{"a":"2"\},"metadata":/,
    );
    expect(err).toContain(
      `\nto:\nResource: "/v1, Resource=configmaps", GroupVersionKind: "/v1, Kind=ConfigMap"\n` +
        `Name: "x", Namespace: "${namespace}"\nfor: "STDIN": error when patching "STDIN": ` +
        'Operation cannot be fulfilled on configmaps "x"',
    );
    expect((await server.get(path('x'))).body.data).toEqual({ a: '1' });
  });

  test('CLIENT-1: --force deletes and recreates a conflicting object', async () => {
    await apply(map({ a: '1', b: '1' }));
    const { uid } = (await server.get(path('x'))).body.metadata;
    recordDelays();
    const fixed = map({ a: '2' }, {}, { immutable: true });
    expect(await apply(fixed)).toMatchObject({ code: 0, out: 'configmap/x configured\n' });
    const refused = await apply(map({ a: '3' }));
    expect(refused.err).toMatch(/^The ConfigMap "x" is invalid: /);
    const forced = await apply(map({ a: '3' }), '--force');
    expect(forced).toEqual({ code: 0, out: 'configmap/x configured\n', err: '' });
    const { body } = await server.get(path('x'));
    expect(body.data).toEqual({ a: '3' });
    expect(body.metadata.uid).not.toBe(uid);
  });

  test('CLIENT-1: --force restores the old object when the new one is refused', async () => {
    await apply(map({ a: '1' }, {}, { immutable: true }));
    const refused = await apply(map({ a: '3' }, { labels: { 'not a label': '1' } }), '--force');
    expect(refused).toMatchObject({ code: 1, out: '' });
    expect(refused.err).toContain('not a label');
    expect((await server.get(path('x'))).body.data).toEqual({ a: '1' });
  });

  test('CLIENT-1: --overwrite=false keeps what others have changed', async () => {
    await apply(map({ a: '1', b: '1' }));
    const change = ['patch', 'cm', 'x', '--type=merge', '-p', '{"data":{"a":"theirs"}}'];
    await home.runIn(namespace, change);
    const refused = await apply(map({ a: '2', b: '1' }), '--overwrite=false');
    expect(refused).toMatchObject({ code: 1, out: '' });
    expect(refused.err).toContain(
      'conflicts with changes made from original to current:\ndata:\n  a: theirs\n',
    );
    expect((await server.get(path('x'))).body.data).toEqual({ a: 'theirs', b: '1' });
    const again = await apply(map({ a: '1', b: '2' }), '--overwrite=false');
    expect(again.err).toContain('conflicts with changes');
    expect((await apply(map({ a: '2', b: '2' }))).out).toBe('configmap/x configured\n');
    expect((await server.get(path('x'))).body.data).toEqual({ a: '2', b: '2' });
  });

  test('CLIENT-1: a record that is not a JSON object is reported', async () => {
    await apply(map({ a: '1' }));
    const { annotations } = (await server.get(path('x'))).body.metadata;
    const [name = ''] = Object.keys(annotations);
    await home.runIn(namespace, ['annotate', 'cm', 'x', '--overwrite', `${name}=[1`]);
    const { code, err } = await apply(map({ a: '2' }));
    expect(code).toBe(1);
    expect(err).toMatch(
      /^error: error when applying patch:\n\nto:\n[\s\S]*invalid JSON document\n$/,
    );
  });

  test('CLIENT-1: messages contain no values of Secrets', async () => {
    const secret = (pw: string, more: object = {}) => ({
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 's' },
      stringData: { pw },
      ...more,
    });
    await apply(secret('hunter2', { immutable: true }));
    recordDelays();
    const refused = await apply(
      secret('hunter3', { type: 'Other', metadata: { name: 's', resourceVersion: '1' } }),
    );
    const conflicting = await apply(secret('hunter4'), '--overwrite=false');
    for (const { code, out, err } of [refused, conflicting]) {
      expect(code).toBe(1);
      expect(out + err).not.toMatch(/hunter/);
      for (const value of ['hunter2', 'hunter3', 'hunter4']) {
        expect(out + err).not.toContain(Buffer.from(value).toString('base64'));
      }
    }
  });
});

const manifest = (name: string, data: object, more: object = {}) =>
  JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data, ...more });

describe.each(dialectNames)('CLIENT-1: earlier client-side applies, dialect %s', (dialectName) => {
  const on = svcctlOn(dialectName);

  test('CLIENT-1: apply takes over fields of earlier client-side applies', async () => {
    const { tool } = dialectOf(dialectName);
    const apply = (data: object) => on.ctl('apply -f -', manifest('x', data));
    const owners = async () => {
      const { managedFields } = (
        await on.server.get(`/api/v1/namespaces/${on.namespace}/configmaps/x`)
      ).body.metadata;
      return managedFields.map(({ manager, operation }) => `${manager} ${operation}`).sort();
    };
    await on.ctl('apply --client-side -f -', manifest('x', { a: '1', b: '2' }));
    expect(await owners()).toEqual([`${tool}-client-side-apply Update`]);
    // The fields that client-side apply recorded belong to the applier now, so b is removed.
    const expected = { code: 0, out: 'configmap/x serverside-applied\n', err: '' };
    expect(await apply({ a: '3' })).toEqual(expected);
    expect((await on.ctl('get cm x -o jsonpath={.data}')).out).toBe('{"a":"3"}');
    expect(await owners()).toEqual([`${tool} Apply`, `${tool}-last-applied Apply`]);
    expect((await on.ctl('apply view-last-applied cm x -o json')).out).toContain('"a": "3"');
    // A client-side apply, then a server-side apply again.
    await on.ctl('apply --client-side -f -', manifest('x', { a: '3', c: '4' }));
    expect(await apply({ c: '5' })).toEqual(expected);
    expect((await on.ctl('get cm x -o jsonpath={.data}')).out).toBe('{"c":"5"}');
  });

  test('CLIENT-1: a failed takeover is reported, and the object applied', async () => {
    const { tool, label } = dialectOf(dialectName);
    await on.ctl('apply --client-side -f -', manifest('x', { a: '1', b: '2' }));
    const { code, out, err } = await on.ctl(
      'apply --dry-run=server -f -',
      manifest('x', { a: '1' }),
    );
    expect({ code, out }).toEqual({
      code: 0,
      out: 'configmap/x serverside-applied (server dry run)\n',
    });
    const name = label('last-applied-configuration', tool);
    expect(err).toMatch(
      `Warning: failed to migrate ${name} for Server-Side Apply. This is non-fatal and will be ` +
        'retried next time you apply. Error: Apply failed with 1 conflict: ',
    );
    expect((await on.ctl('get cm x -o jsonpath={.data}')).out).toBe('{"a":"1","b":"2"}');
  });

  test('CLIENT-1: apply conflicts with what others changed after a client-side apply', async () => {
    const { tool } = dialectOf(dialectName);
    await on.ctl('apply --client-side -f -', manifest('x', { a: '1' }));
    await on.ctl(['patch', 'cm', 'x', '--type=merge', '-p', '{"data":{"a":"theirs"}}']);
    const refused = await on.ctl('apply -f -', manifest('x', { a: '2' }));
    expect(refused).toMatchObject({ code: 1, out: '' });
    expect(refused.err).toContain('Apply failed with 1 conflict: conflict with "svcctl-patch"');
    const taken = await on.ctl('apply --force-conflicts -f -', manifest('x', { a: '2' }));
    expect(taken).toEqual({ code: 0, out: 'configmap/x serverside-applied\n', err: '' });
    // Only the default manager takes over from client-side apply without a conflict.
    await on.ctl('apply --client-side -f -', manifest('x', { a: '3' }));
    const other = await on.ctl('apply --field-manager=other -f -', manifest('x', { a: '4' }));
    expect(other.err).toContain(`conflict with "${tool}-client-side-apply"`);
  });

  test('CLIENT-1: create --save-config records the object for a later apply', async () => {
    expect((await on.ctl('create sa robot --save-config -o name')).out).toBe(
      'serviceaccount/robot\n',
    );
    await on.ctl('create -f - --save-config', manifest('x', { a: '1', b: '2' }));
    const applied = await on.ctl('apply --client-side -f -', manifest('x', { a: '1' }));
    expect(applied).toEqual({ code: 0, out: 'configmap/x configured\n', err: '' });
    expect((await on.ctl('get cm x -o jsonpath={.data}')).out).toBe('{"a":"1"}');
    const tool = dialectName === 'kubernetes' ? 'kubectl' : 'svcctl';
    const name = dialectOf(dialectName).label('last-applied-configuration', tool);
    const account = `/api/v1/namespaces/${on.namespace}/serviceaccounts/robot`;
    const { annotations } = (await on.server.get(account)).body.metadata;
    expect(JSON.parse(annotations[name] ?? '').kind).toBe('ServiceAccount');
  });
});

describe('CLIENT-1: svcctl and kubectl apply the same object', () => {
  const on = svcctlOn('kubernetes');
  const annotation = 'kubectl.kubernetes.io/last-applied-configuration';
  const maps = () => `/api/v1/namespaces/${on.namespace}/configmaps`;
  const map = (data: object, metadata: object = {}) => ({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'x', ...metadata },
    data,
  });
  const live = async () => {
    const { data, metadata } = (await on.server.get(`${maps()}/x`)).body;
    const owners = metadata.managedFields.map((entry) => `${entry.manager} ${entry.operation}`);
    const last = JSON.parse(metadata.annotations?.[annotation] ?? '{}').data;
    return { data, last, owners: owners.sort() };
  };
  const applied = { code: 0, out: 'configmap/x serverside-applied\n', err: '' };

  test('CLIENT-1: svcctl apply takes over what kubectl apply wrote, without a conflict', async () => {
    // What kubectl apply sends for a new object.
    const last = `${JSON.stringify(map({ a: '1', b: '2' }))}\n`;
    const created = await on.server.post(
      `${maps()}?fieldManager=kubectl-client-side-apply`,
      map({ a: '1', b: '2' }, { annotations: { [annotation]: last } }),
    );
    expect(created.status).toBe(201);
    expect(await on.ctl('apply -f -', manifest('x', { a: '3' }))).toEqual(applied);
    const owners = ['kubectl Apply', 'kubectl-last-applied Apply'];
    expect(await live()).toEqual({ data: { a: '3' }, last: { a: '3' }, owners });
  });

  test('CLIENT-1: server-side applies of both programs have one manager', async () => {
    await on.ctl('apply -f -', manifest('x', { a: '1', b: '2' }));
    // What kubectl apply --server-side sends.
    const byKubectl = await on.server.patch(
      `${maps()}/x?fieldManager=kubectl&force=false`,
      map({ a: '2', c: '1' }),
      'apply',
    );
    expect(byKubectl.body.data).toEqual({ a: '2', c: '1' });
    expect(await on.ctl('apply -f -', manifest('x', { a: '3' }))).toEqual(applied);
    const owners = ['kubectl Apply'];
    expect(await live()).toEqual({ data: { a: '3' }, last: undefined, owners });
  });

  test('CLIENT-1: the first client-side apply after server-side applies removes nothing', async () => {
    await on.ctl('apply -f -', manifest('x', { a: '1', b: '2' }));
    const clientSide = await on.ctl('apply --client-side -f -', manifest('x', { a: '3' }));
    expect(clientSide).toMatchObject({ code: 0, out: 'configmap/x configured\n' });
    expect(clientSide.err).toContain(`missing the ${annotation} annotation`);
    const both = ['kubectl Apply', 'kubectl-client-side-apply Update'];
    expect(await live()).toEqual({ data: { a: '3', b: '2' }, last: { a: '3' }, owners: both });
    expect(await on.ctl('apply -f -', manifest('x', { a: '4' }))).toEqual(applied);
    const owners = ['kubectl Apply', 'kubectl-last-applied Apply'];
    expect(await live()).toEqual({ data: { a: '4' }, last: { a: '4' }, owners });
  });

  test('CLIENT-1: svcctl diff --server-side shows what such an apply changes', async () => {
    await on.ctl('apply --client-side -f -', manifest('x', { a: '1' }));
    const before = await live();
    const { code, out, err } = await on.ctl('diff -f -', manifest('x', { a: '2' }));
    expect({ code, err }).toEqual({ code: 1, err: '' });
    expect(out).toContain('-  a: "1"\n+  a: "2"\n');
    expect(await live()).toEqual(before);
  });
});
