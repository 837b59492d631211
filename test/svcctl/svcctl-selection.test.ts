import { saysAsKubectl } from '../clients/beside-kubectl.ts';

const pod = (name: string, labels = {}) => {
  const spec = { containers: [{ name: 'c', image: 'i' }] };
  const object = { apiVersion: 'v1', kind: 'Pod', metadata: { name, labels }, spec };
  return `---\n${JSON.stringify(object)}\n`;
};

saysAsKubectl([
  ['create -f -', pod('a', { x: '1' }) + pod('b', { x: '2' })],
  ['get pod/a pod/b'],
  ['get pods -l x=9 -o yaml'],
  ['get pods a -l x=1'],
  ['get pod/a -l x=1'],
  ['get pods --all-namespaces a'],
  ['get pods/a/b'],
  ['get pods/a b'],
  ['get pods.v2.apps'],
  ['get pods -f -', pod('a')],
  ['get -f - -o name', pod('a') + pod('zz') + pod('b')],
  ['get -f - --ignore-not-found', pod('zz')],
  ['label pods --all y=1'],
  ['label pods -l x=1 y=2'],
  ['label pods a b z=1'],
  ['label pods a z-'],
  ['label pods a z-'],
  ['label pods a z='],
  ['label -f - q=1', pod('a')],
  ['label pods a x=5 --dry-run=server --overwrite'],
  ['annotate pods a n=1 m=2'],
  ['annotate pods a n=2'],
  ['annotate pods a n- m-'],
  ['annotate pods a n-'],
  ['patch pod a -p {"metadata":{"labels":"x"}}'],
  ['patch pod a -p {"metadata":{"labels":{"x":"7"}}} --dry-run=server'],
  ['patch pod a -p {"metadata":{"labels":{"x":"7"}}} --dry-run=client'],
  ['patch pods -p {}'],
  ['patch pod a --type=json -p [{"op":"test","path":"/kind","value":"x"}]'],
  ['wait pod zz --for=condition=Ready --timeout=10ms'],
  ['wait pod zz --for=create --timeout=10ms'],
  ['wait pod a --for=create --timeout=1s'],
  ['delete pod a --all'],
  ['delete pod a -l x=1'],
  ['delete pod'],
  ['delete pod a zz'],
  ['delete pods --all --grace-period=0 --force'],
  ['delete -f - --ignore-not-found', pod('a')],
]);
