import { saysAsKubectl } from '../clients/beside-kubectl.ts';

const map = (name: string, data: object = {}) =>
  JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data });
const pod = JSON.stringify({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'p' },
  spec: { containers: [{ name: 'c', image: 'i' }] },
});

saysAsKubectl([
  ['create -f -', map('x', { a: '1' })],
  ['create -f -', map('y')],
  ['patch cm x --type=merge -p {"data":{"a":"2"}} --dry-run=client -o jsonpath={.data}'],
  ['patch cm x --type=merge -p {"data":{"a":"2"}} --dry-run=client'],
  ['patch --local -f - --type=merge -p {"data":{"a":"2"}} -o jsonpath={.data}', map('x')],
  [
    'patch --local -f - -p {"spec":{"containers":[{"name":"c","image":"j"}]}} -o jsonpath={.spec.containers[*].image}',
    pod,
  ],
  [
    'patch --local -f - --type=json -p [{"op":"add","path":"/data/b","value":"2"}] -o jsonpath={.data}',
    map('x', { a: '1' }),
  ],
  ['patch --local cm x --type=merge -p {}'],
  ['patch --local -f - --type=merge -p {} --dry-run=server', map('x')],
  ['label --local -f - a=b -o jsonpath={.metadata.labels}', map('x')],
  ['label --local cm x a=b'],
  ['annotate --local -f - a=b', map('x')],
  ['wait cm/x --for=jsonpath={.data.a}=1 -o name'],
  ['wait cm/x --for=jsonpath={.data.a}=1 -o jsonpath={.data}'],
  ['delete cm x y -i', 'n\n'],
  ['delete cm x y --interactive', 'y\n'],
  ['delete cm x -i --raw=/api'],
  ['create -f -', map('x')],
  ['delete --raw=/api/v1/namespaces/@ns/configmaps/x -o name'],
  ['delete --raw=/api/v1/namespaces/@ns/configmaps/nope'],
  ['delete cm x'],
]);
