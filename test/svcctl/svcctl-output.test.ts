import { expect, test } from 'vitest';
import { saysAsKubectl } from '../clients/beside-kubectl.ts';
import { freshNamespace, startTestServer } from '../support/harness.ts';
import { svcctlFor } from './svcctl-run.ts';

const map = (name: string, data: object, labels = {}) => {
  const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, labels }, data };
  return `---\n${JSON.stringify(object)}\n`;
};

saysAsKubectl([
  ['create -f -', map('a', { x: '1', y: '<&>' }, { tier: 'gold' }) + map('b', { x: '2' })],
  ['get cm a -o go-template={{.metadata.name}}={{.data.x}}'],
  ['get cm -o go-template={{range.items}}{{.metadata.name}},{{end}}'],
  ['get cm a b -o go-template={{len.items}}{{.kind}}'],
  ['get cm a --template={{.kind}}'],
  ['get cm a -o go-template --template={{.kind}}'],
  ['get cm a -o template={{.data}}'],
  ['get cm a -o go-template={{.nope}}'],
  ['get cm a -o go-template={{.nope}} --allow-missing-template-keys=false --request-timeout=9s'],
  ['get cm a -o go-template={{.data.x.y}} --show-managed-fields'],
  ['get cm a -o go-template={{nope}}'],
  ['get cm a -o go-template='],
  ['get cm a -o go-template'],
  ['get cm a -o go-template-file=/nope/nope'],
  ['get cm a -o jsonpath-file=/nope/nope'],
  ['get cm a -o custom-columns-file=/nope/nope'],
  ['get cm a -o jsonpath-as-json={.data}'],
  ['get cm -o jsonpath-as-json={.items[*].data.x}'],
  ['get cm a -o jsonpath={.data}'],
  ['get cm a -o jsonpath={.data'],
  ['get cm a -o jsonpath='],
  ['get cm a -o nope'],
  ['get cm a -o custom-columns='],
  ['get cm a -o custom-columns=A'],
  ['get cm a -o custom-columns=D:.data,L:.metadata.labels.tier,N:.nope'],
  ['label cm a t=1 -o go-template={{.metadata.labels}}'],
  ['label cm a t=2 --overwrite -o wide'],
  ['label cm a t=3 --overwrite -o custom-columns=A:.kind'],
  ['annotate cm a t=1 -o jsonpath={.metadata.annotations}'],
  ['patch cm a -p {"data":{"x":"3"}} -o go-template={{.data.x}}'],
  ['replace -f - -o go-template={{.data.x}}', map('b', { x: '5' })],
  ['create -f - -o go-template={{.data.x}}', map('c', { x: '6' })],
  ['create cm d --from-literal=x=7 --dry-run=client -o go-template={{.data}}'],
  ['apply --server-side=false -f - -o go-template={{.data.x}}', map('c', { x: '8' })],
  ['apply --server-side=false -f - -o jsonpath={.items[*].data.x}', map('c', {}) + map('d', {})],
]);

test('CLIENT-1: templates come from files, and errors never show Secrets', async () => {
  const server = await startTestServer();
  const home = svcctlFor(server);
  try {
    const namespace = await freshNamespace(server);
    const ctl = (line: string) => home.runIn(namespace, line);
    await ctl('create cm a --from-literal=x=1');
    const file = (text: string) => home.write('template', text);
    expect((await ctl(`get cm a -o go-template-file=${file('{{.data.x}}!')}`)).out).toBe('1!');
    expect((await ctl(`get cm a -o templatefile=${file('{{.kind}}')}`)).out).toBe('ConfigMap');
    expect((await ctl(`get cm a -o jsonpath-file=${file('{.data.x}?')}`)).out).toBe('1?');
    const columns = file('NAME  X\n.metadata.name  .data.x\n');
    expect((await ctl(`get cm a -o custom-columns-file=${columns}`)).out).toMatch(
      /^NAME +X\na +1\n$/,
    );
    await ctl('create secret generic s --from-literal=pw=hunter2');
    const { code, out, err } = await ctl('get secret s -o go-template={{.data.pw.x}}');
    expect(code).toBe(1);
    expect(out + err).toContain("can't evaluate field x");
    expect(out + err).not.toContain(Buffer.from('hunter2').toString('base64'));
  } finally {
    home.remove();
    await server.stop();
  }
});
