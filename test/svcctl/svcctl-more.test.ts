import type { ManagedFieldsEntry } from '@wheelhouse/kinds/types/meta/v1';
import { dialectNames, dialectOf } from '@wheelhouse/machinery';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { freshNamespace, startTestServer, type TestServer } from '../support/harness.ts';
import { replaceIn, type SvcctlHome, svcctlFor } from './svcctl-run.ts';

describe.each(dialectNames)('CLIENT-1: svcctl, dialect %s', (dialectName) => {
  let server: TestServer;
  let home: SvcctlHome;
  let namespace: string;
  const ctl = (line: string | readonly string[], stdin?: string) =>
    home.runIn(namespace, line, stdin);
  const map = (name: string, data: object, more: object = {}) =>
    JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data, ...more });
  beforeAll(async () => {
    server = await startTestServer({ dialect: dialectName });
    home = svcctlFor(server);
  });
  beforeEach(async () => {
    namespace = await freshNamespace(server);
  });
  afterAll(async () => {
    home.remove();
    await server.stop();
  });

  test('CLIENT-1: --warnings-as-errors makes warnings fail', async () => {
    const line = 'create --validate=warn --warnings-as-errors -f -';
    const { code, out, err } = await ctl(line, map('x', {}, { more: 1, most: 2 }));
    expect({ code, out }).toEqual({ code: 1, out: 'configmap/x created\n' });
    expect(err).toMatch(/^Warning: .*\nWarning: .*\nerror: 2 warnings received\n$/);
    expect((await ctl('get cm x -o name --warnings-as-errors')).code).toBe(0);
  });

  test('CLIENT-1: apply takes over fields of earlier client-side applies', async () => {
    const { tool } = dialectOf(dialectName);
    const apply = (data: object) => ctl(`apply --field-manager=${tool} -f -`, map('x', data));
    const owners = async () => {
      const { managedFields } = (await server.get(`/api/v1/namespaces/${namespace}/configmaps/x`))
        .body.metadata;
      return managedFields
        .map(({ manager, operation }: ManagedFieldsEntry) => `${manager} ${operation}`)
        .sort();
    };
    await ctl('apply --client-side -f -', map('x', { a: '1', b: '2' }));
    expect(await owners()).toEqual(['svcctl-client-side-apply Update']);
    // The last applied fields belong to the applier.
    const expected = { code: 0, out: 'configmap/x serverside-applied\n', err: '' };
    expect(await apply({ a: '3' })).toEqual(expected);
    expect((await ctl('get cm x -o jsonpath={.data}')).out).toBe('{"a":"3"}');
    expect(await owners()).toEqual([`${tool} Apply`, `${tool}-last-applied Apply`]);
    expect((await ctl('apply view-last-applied cm x -o json')).out).toContain('"a": "3"');
    // And back, and forth again.
    await ctl('apply --client-side -f -', map('x', { a: '3', c: '4' }));
    expect(await apply({ c: '5' })).toEqual(expected);
    expect((await ctl('get cm x -o jsonpath={.data}')).out).toBe('{"c":"5"}');
  });

  test('CLIENT-1: a failed takeover is reported, and the object applied', async () => {
    const { tool, label } = dialectOf(dialectName);
    await ctl('apply --client-side -f -', map('x', { a: '1', b: '2' }));
    const { code, out, err } = await ctl(
      `apply --field-manager=${tool} --dry-run=server -f -`,
      map('x', { a: '1' }),
    );
    expect({ code, out }).toEqual({
      code: 0,
      out: 'configmap/x serverside-applied (server dry run)\n',
    });
    const name = label('last-applied-configuration', tool);
    expect(err).toMatch(
      `Warning: failed to migrate ${name} for Server-Side Apply. This is non-fatal and will be ` +
        'retried next time you apply. Error: Apply failed with 1 conflict: ',
    );
    expect((await ctl('get cm x -o jsonpath={.data}')).out).toBe('{"a":"1","b":"2"}');
  });

  test('CLIENT-1: replace writes the whole object, which must exist', async () => {
    await ctl('create -f -', map('x', { a: '1', b: '2' }));
    expect((await ctl('replace -f -', map('x', { c: '3' }))).out).toBe('configmap/x replaced\n');
    expect((await ctl('get cm x -o jsonpath={.data}')).out).toBe('{"c":"3"}');
    const absent = await ctl('replace -f -', map('y', {}));
    expect(absent).toMatchObject({ code: 1, out: '' });
    expect(absent.err).toContain('configmaps "y" not found');
  });

  test('CLIENT-1: convert prints a file in another version', async () => {
    const file = home.write(
      `scaler-${dialectName}.json`,
      JSON.stringify({
        apiVersion: 'autoscaling/v2',
        kind: 'HorizontalPodAutoscaler',
        metadata: { name: 'h' },
        spec: {
          maxReplicas: 3,
          scaleTargetRef: { kind: 'Deployment', name: 'd', apiVersion: 'apps/v1' },
          metrics: [
            {
              type: 'Resource',
              resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization: 70 } },
            },
          ],
        },
      }),
    );
    const made = await ctl(`convert -f ${file} --output-version=autoscaling/v1 -o json`);
    expect(made.err).toBe('');
    expect(JSON.parse(made.out)).toMatchObject({
      apiVersion: 'autoscaling/v1',
      spec: { maxReplicas: 3, targetCPUUtilizationPercentage: 70 },
    });
  });

  test('CLIENT-1: large integers stay exact', async () => {
    const group = dialectOf(dialectName).group('apiextensions');
    const plural = `things${namespace.replaceAll('-', '')}`;
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
    expect((await ctl('create -f -', JSON.stringify(crd))).code).toBe(0);
    await ctl(`wait crd/${plural}.big.example --for=condition=Established --timeout=10s`);
    const big = '9007199254740993';
    const object =
      `{"apiVersion":"big.example/v1","kind":"K${plural}",` +
      `"metadata":{"name":"x"},"big":${big},"text":"a"}`;
    expect((await ctl('create -f -', object)).err).toBe('');
    expect((await ctl(`get ${plural} x -o json`)).out).toContain(`"big": ${big},\n`);
    expect((await ctl(`get ${plural} x -o yaml`)).out).toContain(`big: ${big}\n`);
    expect((await ctl(`get ${plural} x -o jsonpath={.big}`)).out).toBe(big);
    expect((await ctl(`get ${plural} x --no-headers`)).out).toMatch(new RegExp(`^x +${big}\n$`));
    home.edit = (file) => replaceIn(file, 'text: a', 'text: b');
    expect((await ctl(`edit ${plural} x`)).code).toBe(0);
    expect((await ctl('apply --client-side -f -', object)).code).toBe(0);
    const path = `/apis/big.example/v1/namespaces/${namespace}/${plural}/x`;
    expect((await server.get(path)).text).toContain(`"big":${big}`);
  });

  test('CLIENT-1: JSON is ordered as by kubectl, and columns can omit headers', async () => {
    await ctl('create -f -', map('x', { z: '<&>', a: '1' }));
    const { out } = await ctl('get cm x -o json');
    expect(out).toMatch(/^\{\n {4}"apiVersion": "v1",\n {4}"data": \{\n {8}"a": "1",\n/);
    expect(out).toContain('"z": "\\u003c\\u0026\\u003e"');
    expect((await ctl('get cm -o custom-columns=N:.metadata.name --no-headers')).out).toBe('x\n');
    const range = ['get', 'cm', '-o', 'jsonpath={range.items[*]}{.metadata.name}{"\\n"}{end}'];
    expect((await ctl(range)).out).toBe('x\n');
  });

  test('CLIENT-1: wait succeeds for deleted objects, and an invalid patch is reported', async () => {
    const gone = await ctl('wait cm/nope --for=delete --timeout=1s');
    expect(gone).toEqual({ code: 0, out: '', err: '' });
    await ctl('create -f -', map('x', {}));
    const patch = '[{"op":"remove","path":"/data/nope"}]';
    const { code, err } = await ctl(['patch', 'cm', 'x', '--type=json', '-p', patch]);
    expect(code).toBe(1);
    expect(err).toBe(
      'The request is invalid: the server rejected our request due to an error in our request\n',
    );
  });

  test('CLIENT-1: create --save-config records the object for a later apply', async () => {
    expect((await ctl('create sa noted --save-config -o name')).out).toBe('serviceaccount/noted\n');
    await ctl('create -f - --save-config', map('x', { a: '1', b: '2' }));
    const applied = await ctl('apply --client-side -f -', map('x', { a: '1' }));
    expect(applied).toEqual({ code: 0, out: 'configmap/x configured\n', err: '' });
    expect((await ctl('get cm x -o jsonpath={.data}')).out).toBe('{"a":"1"}');
    const tool = dialectName === 'kubernetes' ? 'kubectl' : 'svcctl';
    const name = dialectOf(dialectName).label('last-applied-configuration', tool);
    const account = `/api/v1/namespaces/${namespace}/serviceaccounts/noted`;
    const { annotations } = (await server.get(account)).body.metadata;
    expect(JSON.parse(annotations[name] ?? '').kind).toBe('ServiceAccount');
  });
});
