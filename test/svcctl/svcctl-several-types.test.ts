import { expect, test } from 'vitest';
import { documents, printsLikeKubectl } from '../clients/compare-with-kubectl.ts';
import { selecting } from '../support/harness.ts';
import { svcctlOn } from './svcctl-run.ts';

const map = (name: string, data: object = { x: '1' }) => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name },
  data,
});
const maps = documents(map('one'), map('two'));
const deployments = documents(
  ...['d1', 'd2'].map((name) => ({
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name },
    spec: { replicas: 0, ...selecting({ name }) },
  })),
);

printsLikeKubectl('several-types', [
  ['create -f - -o yaml', maps],
  ['create -f - --dry-run=client -o yaml', documents(map('three'), map('four'))],
  // several types with names
  ['get cm,secret one'],
  ['get cm,secret one two'],
  ['get cm,secret one/two'],
  ['get cm,secret one -l a=b'],
  ['get cm,configmaps one'],
  ['get cm,configmaps'],
  ['get all nope'],
  ['get all,cm nope'],
  ['get cm,'],
  ['get cm,,secret'],
  ['get cm, one'],
  ['get '],
  ['get cm '],
  ['get cm/one -A'],
  ['get deploy,nodes'],
  ['get nodes,deploy'],
  ['delete all nope'],
  ['delete cm,secret nope --all'],
  ['edit cm,secret nope'],
  ['label cm one y=z --all'],
  // objects that do not exist
  ['get cm nope nada -o yaml'],
  ['get cm nope nada -o yaml --ignore-not-found'],
  ['get cm nope one -o name'],
  ['describe cm,secret one'],
  ['describe cm on --show-events=false'],
  ['describe cm o --show-events=false'],
  ['describe cm nope'],
  ['describe cm on nope'],
  ['describe cm/on'],
  // YAML documents
  ['annotate -f - a=b -o yaml', maps],
  ['replace -f - -o yaml', maps],
  ['wait --for=create cm one two -o yaml'],
  ['create -f - -o yaml', deployments],
  ['set image deploy d1 d2 c=j -o yaml'],
  ['set env deploy d1 d2 A=B -o yaml'],
  ['scale deploy d1 d2 --replicas=1 -o yaml'],
  ['get cm,deploy --no-headers'],
  // flags
  ['get --raw nope'],
  ['get --raw /api cm'],
  ['get --raw /api -o yaml'],
  ['get --raw /api -w'],
  ['get cm --show-labels -o yaml'],
  ['get cm --output-watch-events'],
  ['set selector svc/x'],
  ['set selector svc x'],
  // configurations
  ['apply view-last-applied -f -', maps],
  ['apply set-last-applied'],
  ['apply set-last-applied -f -', maps],
  ['apply set-last-applied --create-annotation -f -', documents(map('one'), map('nope'))],
  ['apply view-last-applied cm one'],
  ['run p --image=i --expose --port=80'],
  ['run q --image=i --expose --port=80 -o name'],
  ['run q --image=i --expose --port=81'],
  // templates and columns
  ['get cm one -o jsonpath={.data[0]}'],
  ['get cm one -o jsonpath={.kind[0]}'],
  ['get cm one -o jsonpath={.metadata.managedFields[9].manager}'],
  ['get cm one -o jsonpath={.metadata.managedFields[-9].manager}'],
  ['get cm one -o jsonpath={.metadata.managedFields[0:9].operation}'],
  ['get cm one -o jsonpath={.nope[9]}'],
  ['get cm one -o jsonpath={.nope} --allow-missing-template-keys=false'],
  ['get cm one -o custom-columns=N:,M:.metadata.name'],
  // the patch
  ['patch cm one -p '],
  ['patch cm one -p {} --patch-file nope'],
  ['cluster-info dump --namespaces=@ns -o jsonpath={.kind}{.items[*].metadata.name}'],
]);

const dev = svcctlOn('kubernetes');

test('CLIENT-1: get prints the objects it finds before the errors', async () => {
  await dev.ctl('create -f -', documents(map('a')));
  const printed: string[] = [];
  dev.home.onOutput = (chunk) => printed.push(chunk);
  expect((await dev.ctl('get cm nope a -o name')).code).toBe(1);
  expect((await dev.ctl('get cm nope a --no-headers')).code).toBe(1);
  const missing = 'Error from server (NotFound): configmaps "nope" not found\n';
  expect(printed).toEqual(['configmap/a\n', missing, expect.stringMatching(/^a +1 /), missing]);
});

test('CLIENT-1: cluster-info dump keeps the order of members, and has null for no items', async () => {
  const dump = await dev.ctl(`cluster-info dump --namespaces=${dev.namespace}`);
  const [nodes = ''] = dump.out.split('\n}\n');
  expect(nodes.replace(/"\d+"/, '"N"')).toBe(
    '{\n    "kind": "NodeList",\n    "apiVersion": "v1",\n    "metadata": {\n' +
      '        "resourceVersion": "N"\n    },\n    "items": null',
  );
});

test('CLIENT-1: events of a watch have a column, or lines of JSON', async () => {
  await dev.ctl('create -f -', documents(map('a')));
  const watch = 'get cm a -w --output-watch-events --request-timeout=1s';
  expect((await dev.ctl(watch)).out).toMatch(/^EVENT {6}NAME +DATA +AGE\nADDED {6}a +1 +\d+s\n/);
  const [line = ''] = (await dev.ctl(`${watch} -o json`)).out.split('\n');
  expect(line).toMatch(/^{"type":"ADDED","object":{"apiVersion":"v1","data":{"x":"1"},"kind":/);
  expect((await dev.ctl(`${watch} -o name`)).out).toMatch(/^configmap\/a\n/);
});

test('CLIENT-1: the namespace of a context does not become part of new objects', async () => {
  const { home } = dev;
  await home.run('config set-context --current --namespace=other');
  const line = 'create secret generic s --dry-run=client -o jsonpath={.metadata.namespace}';
  expect((await home.run(line)).out).toBe('');
  expect((await home.run(`${line} -n one`)).out).toBe('one');
  await home.run('config unset contexts.admin.namespace');
});

test('CLIENT-1: set env - leaves no standard input to a credential plugin', async () => {
  const { home } = dev;
  const exec = {
    apiVersion: 'client.authentication.k8s.io/v1',
    command: 'no-such-plugin',
    interactiveMode: 'Always',
  };
  const config = {
    clusters: [{ name: 'c', cluster: { server: dev.server.server.url } }],
    users: [{ name: 'u', user: { exec } }],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
    'current-context': 'x',
  };
  home.env = { KUBECONFIG: home.write('plugin.json', JSON.stringify(config)) };
  home.terminal = { stdinIsTerminal: true };
  const { err } = await home.run('set env deploy/d -', 'A=B');
  home.env = {};
  home.terminal = {};
  expect(err).toContain('used by stdin resource manifest reader');
});

test('CLIENT-1: a certificate for other names is refused with the names it is for', async () => {
  const { err } = await dev.ctl('get cm --tls-server-name=elsewhere');
  expect(err).toMatch(
    /^Unable to connect to the server: tls: failed to verify certificate: x509: /,
  );
  expect(err).toMatch(/: certificate is valid for .*localhost.*, not elsewhere\n$/);
});

test('CLIENT-1: a cell without a value is empty', async () => {
  const name = `widgets.${dev.namespace}.com`;
  const [plural, ...group] = name.split('.');
  const definition = {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name },
    spec: {
      group: group.join('.'),
      scope: 'Namespaced',
      names: { plural, kind: 'Widget' },
      versions: [
        {
          name: 'v1',
          served: true,
          storage: true,
          additionalPrinterColumns: [{ name: 'Size', type: 'integer', jsonPath: '.size' }],
          schema: {
            openAPIV3Schema: { type: 'object', properties: { size: { type: 'integer' } } },
          },
        },
      ],
    },
  };
  await dev.ctl('create -f -', documents(definition));
  await dev.ctl(`wait --for=condition=Established crd/${name}`);
  const widget = { apiVersion: `${group.join('.')}/v1`, kind: 'Widget', metadata: { name: 'w' } };
  await dev.ctl('create -f -', documents(widget));
  expect((await dev.ctl(`get ${name} --no-headers`)).out).toMatch(/^w +\n$/);
});

test('CLIENT-1: incomplete objects are refused with everything that they lack', async () => {
  const errorOf = async (text: string) => (await dev.ctl('create -f -', text)).err;
  const refusal = (problem: string) =>
    `error: error validating "STDIN": error validating data: ${problem}; ` +
    'if you choose to ignore these errors, turn validation off with --validate=false\n';
  expect(await errorOf('a: b')).toBe(refusal('[apiVersion not set, kind not set]'));
  expect(await errorOf('apiVersion: v1')).toBe(refusal('kind not set'));
  expect(await errorOf('[]')).toBe(refusal('invalid object to validate'));
  expect(await errorOf('x')).toBe(refusal('invalid object to validate'));
});

test('CLIENT-1: autoscale takes the objects of files, which need not exist', async () => {
  const [first = ''] = deployments.split('---\n').slice(1);
  const line = 'autoscale -f - --max=3 --dry-run=client';
  expect(await dev.ctl(line, first)).toEqual({
    code: 0,
    out: 'horizontalpodautoscaler.autoscaling/d1 created (dry run)\n',
    err: '',
  });
  expect((await dev.ctl('autoscale -f - --max=3', first)).code).toBe(0);
});

test('CLIENT-1: wait names the group of an absent object, and create token its usage', async () => {
  expect((await dev.ctl('wait deploy/nope --for=condition=x --timeout=1s')).err).toBe(
    'Error from server (NotFound): deployments.apps "nope" not found\n',
  );
  expect((await dev.ctl('create token x --duration=y')).err).toBe(
    'Error: invalid argument "y" for "--duration" flag: time: invalid duration "y"\n' +
      "See 'svcctl create token --help' for usage.\n",
  );
});

test('CLIENT-1: help of an unknown topic succeeds and shows the commands', async () => {
  const { code, err } = await dev.home.run('help nope more');
  expect(code).toBe(0);
  expect(err).toMatch(
    /^Unknown help topic \[`nope` `more`\]\nsvcctl controls[\s\S]*Available Commands/,
  );
});
