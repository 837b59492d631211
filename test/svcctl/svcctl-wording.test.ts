import { printsLikeKubectl } from '../clients/compare-with-kubectl.ts';
import { eventually } from '../support/harness.ts';

const map = (name: string, more: object = {}) =>
  JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, ...more });

printsLikeKubectl('wording', [
  // unknown resources
  ['create role r --verb=get --resource=deployments.invalid-group'],
  ['create role r --verb=get --resource=nope'],
  ['create clusterrole r --verb=bind --resource=pods'],
  ['explain nope'],
  ['explain nope.spec'],
  ['events --for=nope/x'],
  ['events --for=nope.foo/x'],
  // delete
  ['create -f -', map('a')],
  ['create -f -', map('b')],
  ['delete ns nope'],
  ['delete ns nope nada'],
  ['delete ns nope -A'],
  ['delete cm --all -l a=b'],
  ['delete cm --all --field-selector metadata.name=b'],
  ['delete cm --all -l a=b --raw /api'],
  ['delete cm -l a=b --force'],
  ['delete cm a --force --dry-run=client'],
  ['delete cm a --force --dry-run=server'],
  ['delete cm a --now --force'],
  ['delete cm a --now --grace-period=3'],
  ['delete cm a --force --grace-period=2'],
  ['delete cm a -o yaml'],
  ['delete cm a --grace-period=0'],
  ['delete --raw /nope --force'],
  ['delete --raw /api -R'],
  ['delete cm b --now'],
]);

const pod = (name: string) => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, labels: { app: 'web' } },
  spec: { containers: [{ name: 'c', image: 'i', ports: [{ containerPort: 80 }] }] },
});
const kindless = { apiVersion: 'v1', ind: 'Pod', metadata: { name: 'k' } };
const both = `---\n${JSON.stringify(pod('p'))}\n---\n${JSON.stringify(kindless)}\n`;

printsLikeKubectl('wording-of-files', [
  // files: consecutive objects, objects without a kind, and objects that do not exist
  ['create -f -', `${map('a')}\n${map('b')}`],
  ['create -f -', both],
  ['get -f - -o name', both],
  ['label -f - a=b', both],
  ['annotate -f - a=b', both],
  ['patch -f - -p {"metadata":{"labels":{"x":"y"}}}', both],
  ['set image -f - c=j', both],
  ['describe cm -f - --show-events=false', both],
  ['label cm a nope c=d'],
  ['label -f - a=b', JSON.stringify(kindless)],
  ['expose -f - --port=80 --name=from-file', JSON.stringify(pod('absent'))],
  ['expose -f -', JSON.stringify(pod('absent'))],
  ['delete -f -', both],
  ['create -f - -f -', map('x')],
  ['set env -f - -', 'A=b'],
  ['create cm t --dry-run=true'],
  ['create cm t --dry-run=false'],
  ['label cm a e=f --dry-run=1'],
  ['get cm --cluster=nope'],
]);

const causeOf = (what: string) => `get ${what} -o jsonpath={.metadata.annotations}`;

printsLikeKubectl('record', [
  ['create -f - --record', map('r')],
  ['get cm r -o jsonpath={.metadata.managedFields[*].operation}'],
  ['label cm r a=b --record'],
  ['label cm r a=b --record=false'],
  ['annotate cm r c=d --record=true'],
  ['patch cm r --type=merge -p {"data":{"a":"1"}} --record --dry-run=server'],
  ['patch cm r --type=merge -p {"data":{"a":"1"}} --record -o jsonpath={.data}'],
  ['replace -f - --force', map('r', { metadata: { name: 'r', resourceVersion: '1' } })],
  ['create deployment d --image=i'],
  ['scale deployment d --replicas=0 --record'],
  ['set image deployment/d i=j --record'],
  ['run p --image=i --record --dry-run=server'],
  ['autoscale deployment d --max=3 --record'],
  ['expose deployment d --port=80 --record'],
  ...['cm r', 'deployment d', 'hpa d', 'svc d'].map((what) => [causeOf(what)] as const),
]);

const groups = { foos: 'bar.com', examples: 'test.com', zeds: 'zed.com' };

/** Definitions of resources in three groups that share a short name. */
const definitions = Object.entries(groups).map(([plural, group]) => ({
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: `${plural}.${group}` },
  spec: {
    group,
    scope: 'Namespaced',
    names: { plural, kind: `Kind${plural}`, shortNames: ['shared'] },
    versions: ['v1', 'v2'].map((name) => ({
      name,
      served: true,
      storage: name === 'v1',
      schema: { openAPIV3Schema: { type: 'object' } },
    })),
  },
}));

printsLikeKubectl(
  'shared-names',
  [
    ['get shared'],
    ['get shared.test.com'],
    ['get shared/x'],
    ['get shared,foos'],
    ['delete shared --all'],
    ['auth can-i get shared'],
    ['patch shared x -p {}'],
    ['events --for=shared/x'],
  ],
  {
    prepare: async (server) => {
      for (const definition of definitions) {
        // The second namespace finds them created.
        await server.post('/apis/apiextensions.k8s.io/v1/customresourcedefinitions', definition);
      }
      await eventually(async () => {
        const served = Object.values(groups).map((group) => server.get(`/apis/${group}/v2`));
        return (await Promise.all(served)).every(({ status }) => status === 200);
      }, 'the definitions');
    },
  },
);

const twice = (name: string) => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name },
  spec: {
    containers: [{ name: 'c', image: 'i', env: ['1', '2'].map((value) => ({ name: 'A', value })) }],
  },
});
const outdated = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'olds.@ns.example.com' },
  spec: {
    group: '@ns.example.com',
    scope: 'Namespaced',
    names: { plural: 'olds', kind: 'Old' },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        deprecated: true,
        deprecationWarning: 'größer ist älter',
        schema: { openAPIV3Schema: { type: 'object' } },
      },
    ],
  },
};
const old = (name: string) =>
  JSON.stringify({ apiVersion: '@ns.example.com/v1', kind: 'Old', metadata: { name } });

printsLikeKubectl('warnings', [
  ['create -f -', JSON.stringify(twice('a')) + JSON.stringify(twice('b'))],
  ['create -f -', JSON.stringify(outdated)],
  ['wait --for=condition=Established crd/olds.@ns.example.com'],
  ['apply -f - --server-side=false', old('x') + old('y')],
  ['get olds.@ns.example.com -o name'],
]);
