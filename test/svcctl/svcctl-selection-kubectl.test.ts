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
    template: { metadata: { labels: { name } }, spec: { containers: [{ name: 'c', image: 'i' }] } },
  },
}));

printsLikeKubectl('sort', [
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

const [deployment = {}] = replicas;
const absent = { ...deployment, metadata: { name: 'absent' } };
const renumbered = { ...deployment, metadata: { name: 'a', labels: { in: 'file' } } };
const template = '--template={{.metadata.labels}}{{.spec.replicas}}{{.metadata.namespace}}';

printsLikeKubectl('scale', [
  ['create -f -', stream(replicas)],
  ['create cm x'],
  ...['--dry-run=client', '--dry-run=server', '--dry-run=none'].flatMap((dryRun): Line[] => [
    [`scale -f - --replicas=3 ${dryRun}`, stream([renumbered])],
    [`scale -f - --replicas=4 ${dryRun} ${template}`, stream([renumbered])],
    [`scale -f - --replicas=5 ${dryRun} -o name`, stream([renumbered])],
    [`scale -f - --replicas=5 ${dryRun} -o yaml`, stream([renumbered])],
    [`scale -f - --replicas=5 ${dryRun} -o jsonpath={.spec.replicas}`, stream([renumbered])],
    [`scale deploy a --replicas=6 ${dryRun} ${template}`],
    [`scale -f - --replicas=5 ${dryRun}`, stream([absent])],
    [`scale deploy/a deploy/absent deploy/b --replicas=7 ${dryRun}`],
    [`scale deploy/absent --replicas=7 ${dryRun}`],
    [`scale deploy/absent deploy/missing --replicas=7 ${dryRun}`],
    [`scale deploy/a cm/x deploy/b --replicas=8 ${dryRun}`],
    ['get deploy -o custom-columns=N:.metadata.name,R:.spec.replicas'],
  ]),
  ['scale -f - -l in=none --replicas=2', stream([renumbered])],
  ['scale deploy -l in=none --replicas=2'],
  ['scale deploy/a --replicas=-1'],
  ['scale deploy/a --replicas=1 --current-replicas=-2'],
]);

printsLikeKubectl('malformed-selectors', [
  ['get pods -l ,,'],
  ['get pods -l ,, -o name'],
  ['get deploy --field-selector=x'],
  ['get deploy -l a=b --field-selector=spec.replicas=1'],
  ['delete pods -l ,,'],
  ['label pods -l ,, a=b'],
  ['annotate deploy --field-selector=x a=b'],
  ['scale deploy -l ,, --replicas=1'],
  ['describe cm -l ,,'],
  ['cordon -l ,,'],
]);

printsLikeKubectl('set-standard-input', [
  ['set env -f - -', stream([deployment])],
  ['set env -f - -e -', stream([deployment])],
  ['set env -f - A=B -e -', stream([deployment])],
  ['set env -f - -f - A=B', stream([deployment])],
  ['set env -f - - --local -o yaml', stream([deployment])],
  ['create -f -', stream([deployment])],
  ['set env deploy/a -e -', 'A=1\n# B=2\nC==3 # c\n'],
  ['set env deploy/a --list'],
]);

const several = [map('one'), map('two')];

printsLikeKubectl('several', [
  ['replace --force -f -', stream(several)],
  ['replace --force -f -', stream(several)],
  ['get -f - --watch', stream(several)],
  ['get cm one two --watch'],
  ['get -f - --watch', stream([...several, deployment])],
  ['create -f -', stream([deployment])],
  ['get -f - --watch', stream([...several, deployment])],
  ['get cm one nope --watch'],
  ['get cm/one deploy/x --watch'],
  ['get cm,deploy --watch'],
  ['get -k x -R'],
  ['create --raw=/x -f - --edit', stream(several)],
  ['create sa'],
  ['create sa a b'],
  ['create secret generic'],
  ['create deploy a b --image=i -- c'],
]);

printsLikeKubectl('cordon', [
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
