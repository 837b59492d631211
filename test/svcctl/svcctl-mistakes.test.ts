import { expect, test } from 'vitest';
import { printsLikeKubectl } from '../clients/compare-with-kubectl.ts';
import { svcctlOn } from './svcctl-run.ts';

const map = (metadata: unknown) =>
  JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata, data: {} });
const good = map({ name: 'good' });
const runtimeClass = JSON.stringify({
  apiVersion: 'node.k8s.io/v1',
  kind: 'RuntimeClass',
  metadata: { name: 'mistakes-@ns' },
  handler: 'h',
});
const malformed = 'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: x\ndata:\n  k: v: w\n';

printsLikeKubectl('mistakes', [
  // Metadata that is not quoted, or has the wrong form.
  ['create -f -', map({ name: 'a', labels: { a: true } })],
  ['apply --server-side -f -', map({ name: 'a', annotations: { a: 1 } })],
  ['apply --server-side=false -f -', map({ name: 'a', annotations: ['a'] })],
  ['create -f -', map({ name: 'a', labels: 'a' })],
  ['create -f -', map({ name: 5 })],
  ['create -f -', map({ name: ['a'] })],
  ['create -f -', map({ name: 'a', uid: 5 })],
  ['create -f -', map({ name: 'a', finalizers: 'a.b/c' })],
  ['create -f -', map({ name: 'a', finalizers: [{}] })],
  ['create -f -', map('a')],
  ['create -f -', map([])],
  ['create -f -', `---\n${map({ name: 'a', labels: { a: 1 } })}\n---\n${good}\n`],
  ['delete -f -', `---\n${map({ name: 'a', labels: { a: 1 } })}\n---\n${good}\n`],
  // YAML.
  ['create -f -', malformed],
  ['apply --server-side -f -', malformed],
  // JSON.
  ['create -f -', '{"apiVersion": "v1",}'],
  ['get -f -', '{"kind": '],
  ['delete -f -', '{"kind": "ConfigMap'],
  ['apply --server-side -f -', '{kind: ConfigMap}'],
  ['create --dry-run=client -o name -f -', `${good} ${good} x`],
  ['create --dry-run=client -o name -f -', `---\n${good}\n---x\n`],
  ['create --dry-run=client -o name -f -', `--- # comment\n${good}\n---\nb: 1\nc: d: e\n`],
  ...['get', 'describe', 'delete', 'label a=b', 'scale --replicas=1', 'diff'].map(
    (line): [string, string] => [`${line} -f -`, '{"data":{}}'],
  ),
  // A namespace that does not exist.
  ['create cm c --from-literal=a=1'],
  ['get cm none'],
  // Files without objects.
  ...['get', 'get -o name', 'describe', 'delete', 'label a=b', 'annotate a=b', 'replace'].map(
    (line): [string, string] => [`${line} -f -`, '# nothing'],
  ),
  ...['patch -p {}', 'scale --replicas=1', 'edit', 'create', 'set image c=i', 'diff'].map(
    (line): [string, string] => [`${line} -f -`, '# nothing'],
  ),
  ...['certificate approve', 'certificate deny', 'auth reconcile'].map((line): [string, string] => [
    `${line} -f -`,
    '# nothing',
  ]),
  ['logs none --since-time=yesterday'],
  // Waits for several objects, and without waiting.
  ['wait cm/c cm/none --for=jsonpath={.data.b} --timeout=1s'],
  ['wait cm/c --for=jsonpath={.data.b} --timeout=0'],
  ['wait cm/c --for=delete --timeout=0'],
  // Flags without effect, and refused values.
  ['get cm c --disable-compression --log-flush-frequency=1s -o name'],
  ['apply --server-side=false --openapi-patch=false -f -', good],
  ['top pod --use-protocol-buffers'],
  ['get cm c --request-timeout=-1'],
  ['events -o nope'],
  // Members beside the metadata are sorted with it.
  ['create -f -', runtimeClass],
  ['describe runtimeclass mistakes-@ns'],
  // Selectors and audiences.
  ['create pdb p --selector=a,b!=c --min-available=1'],
  ['create pdb p --selector=a>1 --min-available=1'],
  ['create pdb p --selector=a,!b,c=d --min-available=1 -o jsonpath={.spec.selector}'],
  ['create sa s'],
  ['create token s --audience=a,b --audience=c -o jsonpath={.spec.audiences}'],
]);

const on = svcctlOn('kubernetes');

test('CLIENT-1: a command names the namespace that does not exist', async () => {
  const lines = ['get cm c', 'label cm c a=b', 'patch cm c -p {}', 'describe cm c', 'edit cm c'];
  for (const line of lines) {
    expect(await on.home.run(`${line} -n nowhere`)).toEqual({
      code: 1,
      out: '',
      err: 'Error from server (NotFound): namespaces "nowhere" not found\n',
    });
  }
  const ignored = await on.home.run('get cm c --ignore-not-found -n nowhere');
  expect(ignored).toEqual({ code: 0, out: '', err: '' });
});
