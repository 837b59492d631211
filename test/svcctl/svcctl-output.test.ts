import { dialectNames, dialectOf } from '@wheelhouse/machinery';
import { describe, expect, test } from 'vitest';
import { printsLikeKubectl } from '../clients/compare-with-kubectl.ts';
import { untilEnd } from '../support/cleanup.ts';
import { freshNamespace } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';
import { replaceIn, svcctlFor, svcctlOn } from './svcctl-run.ts';

const on = svcctlOn('kubernetes');

const map = (name: string, data: object, labels = {}) => {
  const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, labels }, data };
  return `---\n${JSON.stringify(object)}\n`;
};

printsLikeKubectl('output', [
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

const items = '{range.items[*]}{.metadata.name}';

printsLikeKubectl('jsonpath', [
  ['create -f -', map('a', { x: '1', y: '2' }, { tier: 'gold' }) + map('b', { x: '2' })],
  // Text without braces is not a path.
  ['get cm a -o jsonpath=.metadata.name'],
  ['get cm a -o jsonpath=.metadata.name}'],
  ['get cm a -o jsonpath={.}'],
  ['get cm a -o jsonpath={.data.x}{"\\n"}{1.50}{true}'],
  ["get cm a -o jsonpath={.data['x','y']}"],
  ['get cm -l tier -o jsonpath={.items[].data.x}'],
  [`get cm -l tier!=none -o jsonpath=${items}{","}{end}`],
  [`get cm -l tier!=none -o jsonpath=${items}`],
  ['get cm a -o jsonpath-as-json=a{.data.x}'],
  ['get cm -o jsonpath={.items[?(@.data.x=="2")].metadata.name}'],
  ['get cm a -o custom-columns=ALL:.data[*]'],
  ['get cm a -o custom-columns=A:.metadata.name,B:.data[?(@.x)]'],
  ['get cm a -o custom-columns=A:.data['],
  ['get cm a -o JSONPATH={.data}'],
  ['get cm a -o NAME'],
  ['get cm a -o YAML'],
  ['api-resources -o nope'],
  // Malformed templates.
  ['get cm a -o jsonpath={.data.x'],
  ['get cm a -o jsonpath={{.data.x}}'],
  ['get cm a -o jsonpath={.data.x,.data.y}'],
  ['get cm a -o jsonpath={.data]}'],
  ['get cm a -o jsonpath={.data[x]}'],
  ['get cm a -o jsonpath={"a}'],
  ['get cm a -o jsonpath={"\\q"}'],
  ['get cm a -o jsonpath={.data[?(@.x=="1"]}'],
  ['get cm a -o jsonpath={.data[?(@.x~"1")]}'],
  ['get cm a -o jsonpath-file=@files'],
  // Failures, without the object in the message.
  ['create secret generic s --from-literal=a=1'],
  ['get cm a --sort-by=.data[0]'],
  ['wait cm/a --for=jsonpath={.data[0]}=1 --timeout=1s'],
  ['wait cm/a --for=jsonpath={.data[*]} --timeout=1s'],
  ['wait cm/a --for=jsonpath={.data[ --timeout=1s'],
]);

test('CLIENT-1: templates that fail name the reason, but no values of Secrets', async () => {
  const { home, namespace } = on;
  const ctl = (line: string) => home.runIn(namespace, line);
  await ctl('create secret generic s --from-literal=pw=hunter2');
  await ctl('create cm c --from-literal=pw=public');
  const failures = [
    ['{end}', 'not in range, nothing to end'],
    ['{nope}', 'unrecognized identifier nope'],
    ['{.data[*]}', 'map[string]interface {} is not array or slice'],
    ['{.data.pw[0]}', 'string is not array or slice'],
  ];
  for (const [path = '', reason = ''] of failures) {
    const { code, err } = await ctl(`get cm c -o jsonpath=${path}`);
    expect(code).toBe(1);
    expect(err).toContain(
      `error executing jsonpath "${path}": Error executing template: ${reason}. `,
    );
    expect(err).toContain('"pw":"public"');
  }
  const filter = '{.data[?(@.pw)]}';
  const reason = 'is not array or slice and cannot be filtered';
  const shown = await ctl(`get cm c -o jsonpath=${filter}`);
  expect(shown.err).toContain(`Error executing template: map[pw:public] ${reason}. `);
  const hidden = await ctl(`get secret s -o jsonpath=${filter}`);
  expect(hidden.err).toContain(`Error executing template: *** ${reason}. `);
  const columns = await ctl('get secret s -o custom-columns=A:.data[?(@.pw)]');
  expect(columns).toEqual({ code: 1, out: 'A\n', err: `error: *** ${reason}\n` });
});

test('CLIENT-1: templates come from files, and errors never show Secrets', async () => {
  const server = await withServer();
  const home = untilEnd(svcctlFor(server));
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
});

const manifest = (name: string, data: object, more: object = {}) =>
  JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data, ...more });

describe.each(dialectNames)('CLIENT-1: printed values, dialect %s', (dialectName) => {
  const on = svcctlOn(dialectName);

  test('CLIENT-1: columns show long maps to their end', async () => {
    const long = 'x'.repeat(50_000);
    await on.ctl('create -f -', manifest('long', { first: long, second: long, third: 'end' }));
    const { out } = await on.ctl('get cm long -o custom-columns=D:.data --no-headers');
    expect(out).toBe(`map[first:${long} second:${long} third:end]\n`);
  });

  test('CLIENT-1: large integers stay exact', async () => {
    const group = dialectOf(dialectName).group('apiextensions');
    const plural = `things${on.namespace.replaceAll('-', '')}`;
    const crd = {
      apiVersion: `${group}/v1`,
      kind: 'CustomResourceDefinition',
      metadata: { name: `${plural}.big.example` },
      spec: {
        group: 'big.example',
        scope: 'Namespaced',
        names: { plural, kind: `K${plural}`, singular: plural.slice(0, -1) },
        versions: [
          {
            name: 'v1',
            served: true,
            storage: true,
            schema: {
              openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
            },
            additionalPrinterColumns: [{ name: 'Big', type: 'integer', jsonPath: '.big' }],
          },
        ],
      },
    };
    expect((await on.ctl('create -f -', JSON.stringify(crd))).code).toBe(0);
    await on.ctl(`wait crd/${plural}.big.example --for=condition=Established --timeout=10s`);
    const big = '9007199254740993';
    const object =
      `{"apiVersion":"big.example/v1","kind":"K${plural}",` +
      `"metadata":{"name":"x"},"big":${big},"text":"a"}`;
    expect((await on.ctl('create -f -', object)).err).toBe('');
    expect((await on.ctl(`get ${plural} x -o json`)).out).toContain(`"big": ${big},\n`);
    expect((await on.ctl(`get ${plural} x -o yaml`)).out).toContain(`big: ${big}\n`);
    expect((await on.ctl(`get ${plural} x -o jsonpath={.big}`)).out).toBe(big);
    expect((await on.ctl(`get ${plural} x --no-headers`)).out).toMatch(new RegExp(`^x +${big}\n$`));
    on.home.edit = (file) => replaceIn(file, 'text: a', 'text: b');
    expect((await on.ctl(`edit ${plural} x`)).code).toBe(0);
    expect((await on.ctl('apply --client-side -f -', object)).code).toBe(0);
    const path = `/apis/big.example/v1/namespaces/${on.namespace}/${plural}/x`;
    expect((await on.server.get(path)).text).toContain(`"big":${big}`);
  });

  test('CLIENT-1: JSON is ordered as by kubectl, and columns can omit headers', async () => {
    await on.ctl('create -f -', manifest('x', { z: '<&>', a: '1' }));
    const { out } = await on.ctl('get cm x -o json');
    expect(out).toMatch(/^\{\n {4}"apiVersion": "v1",\n {4}"data": \{\n {8}"a": "1",\n/);
    expect(out).toContain('"z": "\\u003c\\u0026\\u003e"');
    expect((await on.ctl('get cm -o custom-columns=N:.metadata.name --no-headers')).out).toBe(
      'x\n',
    );
    const range = ['get', 'cm', '-o', 'jsonpath={range.items[*]}{.metadata.name}{"\\n"}{end}'];
    expect((await on.ctl(range)).out).toBe('x\n');
  });
});

/** Text that erases the screen and returns to the start of the line. */
const control = 'red \u001b[2J\rtext';
const event = {
  apiVersion: 'v1',
  kind: 'Event',
  metadata: { name: 'e' },
  involvedObject: { apiVersion: 'v1', kind: 'ConfigMap', name: 'c', namespace: '@ns' },
  reason: 'Seen',
  message: `${control}\nmore`,
  type: 'Normal',
};
const annotated = {
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'c', annotations: { note: control } },
  data: { k: control },
};
const job = {
  apiVersion: 'batch/v1',
  kind: 'Job',
  metadata: { name: 'j', annotations: { note: control } },
  spec: {
    template: {
      spec: { restartPolicy: 'Never', containers: [{ name: 'c', image: 'i', args: [control] }] },
    },
  },
};

// An object's author must not control the terminals of those who look at it.
printsLikeKubectl('control-characters', [
  [
    'create -f -',
    [event, annotated, job].map((object) => `---\n${JSON.stringify(object)}\n`).join(''),
  ],
  ['describe cm c --show-events=false'],
  ['describe job j --show-events=false'],
  ['get events'],
  ['get cm -o custom-columns=NAME:.metadata.name,DATA:.data.k'],
  ['get cm -o custom-columns=NOTE:.metadata.annotations.note --no-headers'],
]);
