import { type Line, printsLikeKubectl } from '../clients/compare-with-kubectl.ts';

/** A stream of objects, which begins with a separator so that kubectl reads it as YAML. */
const stream = (objects: readonly object[]): string =>
  objects.map((object) => `---\n${JSON.stringify(object)}\n`).join('');

const nodes = ['1', '2'].map((name) => ({
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name: `@ns-${name}`, labels: { group: '@ns' } },
}));

const map = (name: string, data: object = {}) => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, labels: { sorted: '' } },
  data,
});
const maps = [
  map('a', { count: '10', size: '1Gi', mixed: '10' }),
  map('b'),
  map('c', { count: '9', size: '500Mi', mixed: 'zeta' }),
  map('d'),
  map('e', { count: '9', size: '1024Mi', mixed: '9' }),
  map('f', { count: '010', size: '3', mixed: '100m' }),
  map('g', { count: '1e1', size: '0.5Gi', mixed: '1Gi' }),
];
const replicas = ['a', 'b', 'c'].map((name, index) => ({
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name },
  spec: {
    replicas: [10, 9, 9][index],
    ...(name === 'b' ? { paused: true } : {}),
    selector: { matchLabels: { name } },
    template: {
      metadata: { labels: { name } },
      spec: { containers: [{ name: 'c', image: 'i' }] },
    },
  },
}));

printsLikeKubectl([
  ['create -f -', stream([...maps, ...replicas])],
  ...['count', 'size', 'mixed'].flatMap((key): Line[] => [
    [`get cm -l sorted --sort-by=.data.${key}`],
    [`get cm -l sorted --sort-by={data.${key}} -o name`],
    [`get cm -l sorted --sort-by={.data.${key}} --server-print=false`],
    [`get cm -l sorted --sort-by=data.${key} -o custom-columns=N:{metadata.name}`],
    [`get cm -l sorted --sort-by=data.${key} --chunk-size=2`],
  ]),
  ['get deploy --sort-by=.spec.replicas'],
  ['get deploy --sort-by=.spec.replicas -o name'],
  ['get deploy --sort-by=.spec.paused'],
  ['get deploy --sort-by=.spec.template.spec.containers[0].image'],
  ['get cm -l sorted --sort-by=.nope -o name'],
  ['get cm -l sorted --sort-by={.metadata -o name'],
  ['get cm -l sorted -o custom-columns=N:{.metadata'],
  ['get cm -l sorted=no --sort-by=.nope'],
  ['get cm a --sort-by=.nope'],
  ['get cm -l sorted --server-print=false -L sorted'],
  ['get deploy a --server-print=false -o wide --show-labels'],
  ['get deploy,cm --server-print=false'],
]);

printsLikeKubectl([
  ['create -f -', stream(nodes)],
  ['create cm x'],
  ...['cordon', 'drain', 'uncordon'].flatMap((command): Line[] => [
    [command],
    [`${command} -l group=@ns --dry-run=client`],
    [`${command} -l group=@ns --dry-run=server`],
    [`${command} -l group=none`],
    [`${command} -l group=@ns`],
    [`${command} --selector=`],
    [`${command} @ns-1 --selector=`],
    [`${command} @ns-1 -l group=@ns`],
    [`${command} @ns-1 node/@ns-2`],
    [`${command} node/@ns-1 cm/x`],
    [`${command} cm/x`],
    ['get nodes -l group=@ns -o jsonpath={.items[*].spec.unschedulable}'],
  ]),
  ['delete nodes -l group=@ns'],
]);
