// A session of the JavaScript client: prints the answer to every step, for comparison. CLIENT_NODE
// names the folder in which @kubernetes/client-node is installed.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { pathToFileURL } from 'node:url';

const folder = join(process.env.CLIENT_NODE ?? '', 'node_modules', '@kubernetes', 'client-node');
const { version } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
if (process.argv.includes('--version')) {
  console.log(version);
  process.exit(0);
}
const loaded = await import(pathToFileURL(join(folder, 'dist', 'index.js')).href);
const k8s = loaded.KubeConfig === undefined ? loaded.default : loaded;
const isOld = version.startsWith('0.');
const namespace = 'peers-javascript';
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

const config = new k8s.KubeConfig();
config.loadFromDefault();
const core = config.makeApiClient(k8s.CoreV1Api);

const sorted = (value) =>
  JSON.stringify(
    value,
    (_key, member) =>
      member && typeof member === 'object' && !Array.isArray(member)
        ? Object.fromEntries(Object.entries(member).sort(([a], [b]) => (a < b ? -1 : 1)))
        : member,
    1,
  );

/** Calls a method with named parameters; versions before 1.0 take them by position. */
async function invoke(api, method, parameters = {}, contentType = undefined) {
  if (!isOld) {
    const options = contentType && k8s.setHeaderOptions('Content-Type', contentType);
    return api[method](parameters, options);
  }
  const [, names] = /\(([^)]*)\)/.exec(api[method].toString());
  const order = names.split(',').map((name) => name.trim().split(/\s*=/)[0].replace(/^_/, ''));
  const values = order.map((name) => parameters[name]);
  const options = order.findIndex((name) => name.startsWith('options'));
  values[options] = contentType ? { headers: { 'Content-Type': contentType } } : { headers: {} };
  return (await api[method](...values)).body;
}

function errorText(error) {
  const body = error.body ?? error.response?.body;
  const code = error.code ?? error.statusCode;
  let parsed = body;
  try {
    parsed = JSON.parse(body);
  } catch {
    // Not every version leaves the body as text.
  }
  return body === undefined ? `${error}` : `error ${code}\n${sorted(parsed)}`;
}

async function step(title, action) {
  console.log(`## ${title}`);
  try {
    const value = await action();
    console.log(typeof value === 'string' ? value : sorted(value));
    return value;
  } catch (error) {
    console.log(errorText(error));
    return undefined;
  }
}

const configMap = (name, data) => ({ metadata: { name, labels: { a: 'b' } }, data });
const pod = (name) => ({
  metadata: { name, labels: { app: name } },
  spec: { containers: [{ name: 'main', image: 'example.test/app:1' }] },
});
const merge = 'application/merge-patch+json';
const at = (name) => ({ name, namespace });

async function playCore() {
  await step('namespace', () =>
    invoke(core, 'createNamespace', { body: { metadata: { name: namespace } } }),
  );
  const create = (body) => invoke(core, 'createNamespacedConfigMap', { namespace, body });
  const made = await step('create', () => create(configMap('one', { a: '1' })));
  await step('create again', () => create(configMap('one')));
  await step('read', () => invoke(core, 'readNamespacedConfigMap', at('one')));
  await step('read missing', () => invoke(core, 'readNamespacedConfigMap', at('none')));
  const replace = () =>
    invoke(core, 'replaceNamespacedConfigMap', {
      ...at('one'),
      body: { ...made, data: { a: '2' } },
    });
  await step('replace', replace);
  await step('replace stale', replace);
  const patch = (body, type) =>
    invoke(core, 'patchNamespacedConfigMap', { ...at('one'), body }, type);
  await step('merge patch', () => patch({ data: { a: null, b: '3' } }, merge));
  const operations = [{ op: 'add', path: '/data/c', value: '4' }];
  await step('json patch', () => patch(operations, 'application/json-patch+json'));
  const strategic = 'application/strategic-merge-patch+json';
  await step('strategic patch', () => patch({ data: { $patch: 'replace', d: '5' } }, strategic));
  await step('patch of an unknown type', () => patch({}, 'application/json'));
  await step('invalid', () =>
    invoke(core, 'createNamespacedPod', { namespace, body: pod('Not A Name') }),
  );
  await step('dry run', () =>
    invoke(core, 'createNamespacedPod', { namespace, body: pod('dry'), dryRun: 'All' }),
  );
  await step('strict', () =>
    invoke(core, 'createNamespacedPod', {
      namespace,
      body: { ...pod('strict'), nosuch: 1 },
      fieldValidation: 'Strict',
    }),
  );
  const list = (more) => invoke(core, 'listNamespacedConfigMap', { namespace, ...more });
  for (const number of [1, 2, 3]) await create(configMap(`page-${number}`, {}));
  const first = await list({ limit: 2 });
  await step('first page', () => first.items.map(({ metadata }) => metadata.name));
  const token = first.metadata._continue ?? first.metadata.continue;
  await step('second page', async () =>
    (await list({ _continue: token, continue: token })).items.map(({ metadata }) => metadata.name),
  );
  await step(
    'field selector',
    async () => (await list({ fieldSelector: 'metadata.name=one' })).items.length,
  );
  await step('bad selector', () => list({ fieldSelector: 'data.x=1' }));
  await step('delete', () => invoke(core, 'deleteNamespacedConfigMap', at('one')));
}

/** The events of a watch until it ends. */
function watched(path, options, change) {
  const watch = new k8s.Watch(config);
  const seen = [];
  return new Promise((resolve) => {
    const onEvent = (type, object) => {
      const text = object.kind === 'Status' ? object.message : sorted(object.data ?? {});
      if (type !== 'BOOKMARK') seen.push(`${type} ${text}`);
    };
    const onEnd = (error) => resolve(`${seen.join('\n')}\nend: ${error?.message ?? 'none'}`);
    watch.watch(path, options, onEvent, onEnd).then(change, (error) => resolve(`${error}`));
  });
}

async function change(name) {
  const create = { namespace, body: configMap(name, { n: '0' }) };
  await invoke(core, 'createNamespacedConfigMap', create);
  const body = { data: { n: '1' } };
  await invoke(core, 'patchNamespacedConfigMap', { ...at(name), body }, merge);
  await invoke(core, 'deleteNamespacedConfigMap', at(name));
}

async function playWatches() {
  const path = `/api/v1/namespaces/${namespace}/configmaps`;
  const { metadata } = await invoke(core, 'listNamespacedConfigMap', { namespace });
  const { resourceVersion } = metadata;
  const timeoutSeconds = 3;
  await step('watch', () =>
    watched(path, { resourceVersion, timeoutSeconds }, () => change('seen')),
  );
  const nothing = () => {};
  await step('watch again', () => watched(path, { resourceVersion, timeoutSeconds }, nothing));
  await step('too old', () => watched(path, { resourceVersion: '1', timeoutSeconds }, nothing));
  await step('no such path', () => watched('/api/v1/nosuch', { timeoutSeconds }, nothing));
  const streamed = {
    sendInitialEvents: true,
    resourceVersionMatch: 'NotOlderThan',
    allowWatchBookmarks: true,
    timeoutSeconds,
  };
  await step('streamed list', () => watched(path, streamed, nothing));
}

async function playInformer() {
  const list = async () => {
    const found = await (isOld
      ? core.listNamespacedConfigMap(namespace)
      : core.listNamespacedConfigMap({ namespace }));
    return found;
  };
  const path = `/api/v1/namespaces/${namespace}/configmaps`;
  const informer = k8s.makeInformer(config, path, list);
  const seen = [];
  for (const event of ['add', 'update', 'delete']) {
    informer.on(event, (object) => seen.push(`${event} ${object.metadata.name}`));
  }
  informer.on('error', (error) => seen.push(`error ${error.message}`));
  await step('informer', async () => {
    await informer.start();
    await change('informed');
    for (let tries = 0; tries < 50 && !seen.includes('delete informed'); tries++) await pause(100);
    await informer.stop();
    return seen.join('\n');
  });
}

/** Opens a stream to a Pod; returns the message of the refusal. */
function refused(open) {
  return new Promise((resolve, reject) => {
    const outcome = open();
    outcome.then(
      (socket) => {
        socket?.on?.('close', (code) => resolve(`closed ${code}`));
        socket?.on?.('error', (error) => resolve(`${error.message}`));
      },
      (error) => (error?.message ? resolve(error.message) : reject(error)),
    );
  });
}

async function playPods() {
  await step('pod', () => invoke(core, 'createNamespacedPod', { namespace, body: pod('solo') }));
  await step('log', () => invoke(core, 'readNamespacedPodLog', at('solo')));
  const [input, output] = [new PassThrough(), new PassThrough()];
  await step('exec', () =>
    refused(() =>
      new k8s.Exec(config).exec(namespace, 'solo', 'main', ['true'], output, output, input, false),
    ),
  );
  await step('attach', () =>
    refused(() =>
      new k8s.Attach(config).attach(namespace, 'solo', 'main', output, output, input, false),
    ),
  );
  await step('exec in a missing Pod', () =>
    refused(() =>
      new k8s.Exec(config).exec(namespace, 'none', 'main', ['true'], output, output, input, false),
    ),
  );
  await step('log stream', () =>
    new k8s.Log(config).log(namespace, 'solo', 'main', output, { follow: true }),
  );
  const eviction = { metadata: { name: 'solo' } };
  await step('eviction', () =>
    invoke(core, 'createNamespacedPodEviction', { ...at('solo'), body: eviction }),
  );
  const metrics = new k8s.Metrics(config);
  await step('metrics', () => metrics.getNodeMetrics());
}

async function playObjects() {
  const objects = k8s.KubernetesObjectApi.makeApiClient(config);
  const unwrapped = async (answer) => (isOld ? (await answer).body : answer);
  const spec = { apiVersion: 'v1', kind: 'Secret', metadata: at('generic') };
  await step('object create', () => unwrapped(objects.create({ ...spec, stringData: { a: 'b' } })));
  await step('object read', () => unwrapped(objects.read(spec)));
  await step('object patch', () => unwrapped(objects.patch({ ...spec, stringData: { c: 'd' } })));
  await step(
    'object list',
    async () => (await unwrapped(objects.list('v1', 'Secret', namespace))).items.length,
  );
  await step('object delete', () => unwrapped(objects.delete(spec)));
  await step('object of no kind', () => unwrapped(objects.read({ ...spec, kind: 'Nonsense' })));
  const definition = {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: 'dials.peers.test' },
    spec: {
      group: 'peers.test',
      scope: 'Namespaced',
      names: { plural: 'dials', singular: 'dial', kind: 'Dial' },
      versions: [
        {
          name: 'v1',
          served: true,
          storage: true,
          subresources: { status: {} },
          schema: {
            openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
          },
        },
      ],
    },
  };
  await step('define', () => unwrapped(objects.create(definition)));
  const custom = config.makeApiClient(k8s.CustomObjectsApi);
  const place = { group: 'peers.test', version: 'v1', namespace, plural: 'dials' };
  const dial = {
    apiVersion: 'peers.test/v1',
    kind: 'Dial',
    metadata: { name: 'one' },
    spec: { a: 1 },
  };
  for (let tries = 0; tries < 100; tries++) {
    const found = await invoke(custom, 'listNamespacedCustomObject', place).catch(() => undefined);
    if (found !== undefined) break;
    await pause(100);
  }
  await step('custom create', () =>
    invoke(custom, 'createNamespacedCustomObject', { ...place, body: dial }),
  );
  const body = { spec: { a: 2 } };
  const name = 'one';
  await step('custom patch', () =>
    invoke(custom, 'patchNamespacedCustomObject', { ...place, name, body }, merge),
  );
  const status = { status: { ready: true } };
  await step('custom status', () =>
    invoke(custom, 'patchNamespacedCustomObjectStatus', { ...place, name, body: status }, merge),
  );
  await step(
    'custom list',
    async () => (await invoke(custom, 'listNamespacedCustomObject', place)).items.length,
  );
  await step('custom delete', () =>
    invoke(custom, 'deleteNamespacedCustomObject', { ...place, name }),
  );
  await step('undefine', async () => (await unwrapped(objects.delete(definition))).status);
}

async function playKinds() {
  const names = Object.keys(k8s).filter(
    (name) => /^[A-Z].*V\d\w*Api$/.test(name) && name !== 'ObjectApi',
  );
  await step('lists', async () => {
    const lines = [];
    for (const name of names.sort()) {
      const api = config.makeApiClient(k8s[name]);
      const methods = Object.getOwnPropertyNames(Object.getPrototypeOf(api));
      const lists = methods.filter((method) => /^list(?!.*Custom)/.test(method));
      for (const method of lists.filter((list) => !list.endsWith('WithHttpInfo')).sort()) {
        const found = await invoke(api, method, { namespace }).catch((error) => error);
        lines.push(
          `${name}.${method}: ${found.items?.length ?? found.code ?? found.statusCode ?? found}`,
        );
      }
    }
    return lines.join('\n');
  });
  await step('anonymous', () => {
    const stranger = new k8s.KubeConfig();
    stranger.loadFromClusterAndUser(config.getCurrentCluster(), { name: 'nobody' });
    return invoke(stranger.makeApiClient(k8s.CoreV1Api), 'listNode');
  });
  await step(
    'version',
    async () => (await invoke(config.makeApiClient(k8s.VersionApi), 'getCode')).major,
  );
}

await playCore();
await playWatches();
await playInformer();
await playPods();
await playObjects();
await playKinds();
await step(
  'delete namespace',
  async () => (await invoke(core, 'deleteNamespace', { name: namespace })).kind,
);
process.exit(0);
