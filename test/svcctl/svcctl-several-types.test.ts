import { expect, test } from 'vitest';
import { printsLikeKubectl } from '../clients/compare-with-kubectl.ts';
import { svcctlOn } from './svcctl-run.ts';

const documents = (...objects: readonly object[]): string =>
  objects.map((object) => `---\n${JSON.stringify(object)}\n`).join('');
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
    spec: {
      replicas: 0,
      selector: { matchLabels: { name } },
      template: {
        metadata: { labels: { name } },
        spec: { containers: [{ name: 'c', image: 'i' }] },
      },
    },
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

test('CLIENT-1: help of an unknown topic succeeds and shows the commands', async () => {
  const { code, err } = await dev.home.run('help nope more');
  expect(code).toBe(0);
  expect(err).toMatch(
    /^Unknown help topic \[`nope` `more`\]\nsvcctl controls[\s\S]*Available Commands/,
  );
});
