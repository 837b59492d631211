import { type Line, printsLikeKubectl } from '../clients/compare-with-kubectl.ts';
import { selecting } from '../support/harness.ts';

const map = (name: string, labels: object) => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, labels },
  data: { x: '1' },
});
const deployment = {
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: 'dep', labels: { app: 'dep' } },
  spec: {
    ...selecting({ app: 'dep' }, { name: 'c', image: 'i', env: [{ name: 'A', value: 'b' }] }),
  },
};
const maps = {
  apiVersion: 'v1',
  kind: 'List',
  items: [map('one', { a: 'b' }), map('two', { a: 'c' })],
};
const files = { 'one.json': map('one', { a: 'b' }), 'maps.json': maps, 'dep.json': deployment };

const workload = '-f @files/dep.json -l no=no';
const one = '-f @files/one.json';

printsLikeKubectl(
  'file-selectors',
  [
    ['create -f @files/maps.json -f @files/dep.json'],
    ['label cm one live=yes'],
    // commands that test the labels of the live object
    ...['no=no', 'live=yes', 'a=b'].flatMap((selector): Line[] => [
      [`get ${one} -l ${selector} -o name`],
      [`get ${one} -l ${selector} -o custom-columns=N:.metadata.name`],
      [`label ${one} -l ${selector} q=r --overwrite`],
      [`annotate -f @files/maps.json -l ${selector} q=r --overwrite`],
      [`wait ${one} -l ${selector} --for=jsonpath={.data.x}=1 --timeout=5s`],
    ]),
    [`get ${one} -l no=no`],
    [`get ${one} -l no=no -o yaml`],
    [`apply view-last-applied ${one} -l no=no`],
    [`wait ${one} -l no=no --for=delete --timeout=5s`],
    ['wait -f - -l no=no --for=delete --timeout=5s', JSON.stringify(map('absent', {}))],
    ...['status', 'restart', 'pause', 'resume', 'undo', 'history'].map(
      (command): Line => [`rollout ${command} ${workload}`],
    ),
    [`set env ${workload} X=Y`],
    [`set env ${workload} --list`],
    [`set image ${workload} c=d`],
    [`set resources ${workload} --limits=cpu=1`],
    [`set env ${workload} --local X=Y -o name`],
    [`label -f @files/maps.json -l no=no --local q=r -o name`],
    [`label ${one} -l no=no --list`],
    // commands that test the labels in the file
    ...['no=no', 'live=yes', 'a=b'].flatMap((selector): Line[] => [
      [`describe ${one} -l ${selector} --show-events=false`],
      [`diff ${one} -l ${selector}`],
      [`delete ${one} -l ${selector} --dry-run=client`],
      [`delete -f @files/maps.json -l ${selector} --dry-run=server -o name`],
    ]),
    [`scale ${workload} --replicas=2`],
    [`apply ${one} -l no=no`],
    [`create ${one} -l no=no`],
    // commands without selectors
    [`patch ${one} -l a=b -p {}`],
    [`edit ${one} -l a=b`],
    [`apply edit-last-applied ${one} -l a=b`],
  ],
  { files },
);

printsLikeKubectl(
  'unchanged-patches',
  [
    ['create -f @files/maps.json'],
    ['patch cm one -p {}'],
    ['patch cm one -p {} --dry-run=client'],
    [`patch ${one} -p {}`],
    [`patch ${one} -p {} --dry-run=server`],
    [`patch ${one} --type=json -p []`],
    [`patch ${one} -p {"data":{"x":"1"}} --dry-run=client`],
    [`patch ${one} -p {"data":{"x":"2"}} --dry-run=client`],
    ['patch -f - -p {"data":{"x":"2"}} --dry-run=client', JSON.stringify(map('absent', {}))],
    ['patch -f @files/maps.json -p {"data":{"x":"2"}}'],
  ],
  { files },
);

printsLikeKubectl(
  'usage',
  [
    ['create -f @files/dep.json'],
    // flags
    ['get --bogus'],
    ['get pods --watch=maybe'],
    ['get pods -L'],
    ['get pods --chunk-size=x'],
    ['get pods -v x'],
    ['create deployment x --image=a --replicas=some'],
    ['create deployment x --image'],
    ['scale --replicas=99999999999999999999 deploy/dep'],
    ['delete cm x --timeout=5'],
    ['delete cm x --timeout=5y'],
    ['rollout undo deploy/dep --to-revision=x'],
    ['patch cm x -p {} --validate'],
    ['describe cm --field-selector=x'],
    // arguments
    ['get'],
    ['get -w'],
    ['describe'],
    ['bogus'],
    ['set bogus x'],
    ['create svc bogus'],
    ['create cm'],
    ['completion'],
    ['completion bogus'],
    ['api-versions x'],
    ['api-resources x'],
    ['version x'],
    ['cluster-info x'],
    ['auth can-i get'],
    ['auth whoami x'],
    ['cp x'],
    ['config view x'],
    ['config current-context x'],
    ['config delete-user'],
    // set reads the objects before it checks what to set
    ['set image x=y'],
    ['set image deploy/nope'],
    ['set image deploy/dep'],
    ['set resources'],
    ['set resources deploy/nope'],
    ['set resources deploy/dep'],
    ['set subject'],
    ['set subject rolebinding/nope'],
    ['set env -e A-'],
    ['set env deploy/dep -e ZZZ-'],
    ['set env deploy/dep -e A- --dry-run=client'],
    ['set env deploy/dep -e A-'],
  ],
  { files },
);
