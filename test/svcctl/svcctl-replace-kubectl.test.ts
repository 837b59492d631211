import { saysAsKubectl } from '../clients/beside-kubectl.ts';

const map = (data: object) =>
  JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'x' }, data });

saysAsKubectl([
  ['replace -f -', map({ a: '1' })],
  ['replace --force -f -', map({ a: '1' })],
  ['replace --force -f -', map({ a: '2' })],
  ['get cm x -o jsonpath={.data}'],
  ['replace -f - --dry-run=server', map({ a: '3' })],
  ['replace -f - --grace-period=3', map({ a: '3' })],
  ['replace -f - --timeout=3s', map({ a: '3' })],
  ['replace -f - --force --dry-run=server', map({ a: '3' })],
  ['replace -f - -o name', map({ a: '4' })],
  ['replace --raw=/api/v1/namespaces/@ns/configmaps/x -f - -o name', map({ a: '5' })],
  ['replace'],
  ['certificate approve'],
  ['certificate approve nope'],
  ['certificate deny nope'],
]);
