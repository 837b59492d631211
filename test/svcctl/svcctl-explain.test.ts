import { dialectNames, dialectOf } from '@wheelhouse/machinery';
import { describe, expect, test } from 'vitest';
import { type Line, printsLikeKubectl } from '../clients/compare-with-kubectl.ts';
import { untilEnd } from '../support/cleanup.ts';
import { eventually, freshNamespace, type TestServer } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';
import { svcctlFor } from './svcctl-run.ts';

describe.each(dialectNames)('CLIENT-1: svcctl, dialect %s', async (dialectName) => {
  const dialect = dialectOf(dialectName);
  const server = await withServer({ dialect: dialectName });
  const home = untilEnd(svcctlFor(server));
  const namespace = await freshNamespace(server);

  test('CLIENT-1: explain describes a kind and its fields', async () => {
    const { code, out, err } = await home.run('explain deploy');
    expect({ code, err }).toEqual({ code: 0, err: '' });
    expect(out).toMatch(/^GROUP: {6}apps\nKIND: {7}Deployment\nVERSION: {4}v1\n\nDESCRIPTION:\n/);
    const fields = out.slice(out.indexOf('FIELDS:\n'));
    expect(fields.match(/^ {2}\S.*$/gm)).toEqual([
      '  apiVersion\t<string>',
      '  kind\t<string>',
      '  metadata\t<ObjectMeta>',
      '  spec\t<DeploymentSpec>',
      '  status\t<DeploymentStatus>',
    ]);
    const spec = (await home.run('explain deployments.apps.spec')).out;
    expect(spec).toContain('FIELD: spec <DeploymentSpec>\n');
    expect(spec).toContain('  selector\t<LabelSelector> -required-\n');
    const labels = (await home.run('explain pods.metadata.labels')).out;
    expect(labels).toContain('FIELD: labels <map[string]string>\n');
    expect(labels).not.toContain('FIELDS:');
    const port = (await home.run('explain pod.spec.containers.ports')).out;
    expect(port).toContain('FIELD: ports <[]ContainerPort>\n');
    expect(port).toContain('  containerPort\t<integer> -required-\n');
  });

  test('CLIENT-1: explain --recursive descends all levels', async () => {
    const role = dialect.group('rbac.authorization');
    const { out } = await home.run(`explain clusterroles.${role} --recursive`);
    expect(out).toContain('  rules\t<[]PolicyRule>\n    apiGroups\t<[]string>\n');
    const definition = await home.run('explain crd.spec.versions --recursive');
    expect(definition.code, definition.err).toBe(0);
    expect(definition.out).toContain('FIELD: versions ');
    const older = await home.run('explain hpa.spec --api-version=autoscaling/v1');
    expect(older.out).toContain('  targetCPUUtilizationPercentage\t<integer>\n');
  });

  test('CLIENT-1: explain of an unknown kind or field', async () => {
    expect(await home.run('explain pods.spec.nothing')).toEqual({
      code: 1,
      out: '',
      err: 'error: field "nothing" does not exist\n',
    });
    expect((await home.run('explain nothings')).err).toBe(
      'the server doesn\'t have a resource type "nothings"\n',
    );
    expect((await home.run('explain hpa --api-version=apps/v1')).code).toBe(1);
    expect((await home.run('explain')).code).toBe(1);
  });

  test('CLIENT-1: api-versions lists served versions', async () => {
    const lines = (await home.run('api-versions')).out.split('\n');
    expect(lines).toContain('v1');
    expect(lines).toContain(`${dialect.group('certificates')}/v1`);
  });

  test('CLIENT-1: get --sort-by and custom columns from a file', async () => {
    for (const [name, size] of [
      ['b', 'x10'],
      ['c', 'x9'],
      ['a', 'x100'],
    ] as const) {
      const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data: { size } };
      await server.post(`/api/v1/namespaces/${namespace}/configmaps`, object);
    }
    const get = (rest: string) => home.run(`get cm -n ${namespace} ${rest}`);
    const names = (out: string) => out.match(/^\S+/gm);
    expect(names((await get('--sort-by=.data.size --no-headers')).out)).toEqual(['b', 'a', 'c']);
    expect((await get('--sort-by={.metadata.name} -o name')).out).toBe(
      'configmap/a\nconfigmap/b\nconfigmap/c\n',
    );
    expect((await get('--sort-by=.spec.nothing')).err).toBe(
      'error: couldn\'t find any field with path "{.spec.nothing}" in the list of objects\n',
    );
    const file = home.write('columns.txt', 'NAME        SIZE\n.metadata.name  .data.size\n');
    const columns = await get(`--sort-by=.metadata.name -o custom-columns-file=${file}`);
    expect(columns.out).toMatch(/^NAME +SIZE\na +x100\nb +x10\nc +x9\n$/);
    const wrong = home.write('wrong.txt', 'NAME SIZE\n.metadata.name\n');
    expect((await get(`-o custom-columns-file=${wrong}`)).err).toBe(
      "error: number of headers (2) and field specifications (1) don't match\n",
    );
  });

  test('CLIENT-1: get --sort-by asks for tables of whole objects, and warns in watches', async () => {
    const own = await freshNamespace(server);
    for (const [name, size] of Object.entries({ a: '2', b: '1' })) {
      await home.run(`create cm ${name} --from-literal=size=${size} -n ${own}`);
    }
    const get = `get cm -n ${own} --field-selector=metadata.name!=kube-root-ca.crt --no-headers`;
    const sorted = `${get} --sort-by=.data.size`;
    const { err } = await home.run(`${sorted} -v=7`);
    expect(err).toMatch(/configmaps\?fieldSelector=[^&]*&includeObject=Object 200 OK/);
    expect(err).toMatch(/^ {4}Accept: application\/json;as=Table;/m);
    expect((await home.run(`${sorted} -v=6`)).err).not.toContain('Accept');
    const plain = (await home.run(`${sorted} -v=7 --server-print=false`)).err;
    expect(plain).toContain('    Accept: application/json\n');
    expect(plain).not.toMatch(/Table|includeObject/);
    await home.run(`create cm c -n ${own}`);
    let changes = 0;
    for (const [flag, warning] of [
      ['-w', '--watch requested, --sort-by will be ignored for watch events received'],
      ['--watch-only', '--watch-only requested, --sort-by will be ignored'],
    ] as const) {
      const watch = home.start(`${sorted} ${flag}`);
      // Changes that precede the watch are not seen.
      await eventually(async () => {
        changes += 1;
        await home.run(`annotate cm c changes=${changes} --overwrite -n ${own}`);
        return /^c /m.test(watch.out());
      }, 'an event');
      expect(watch.err()).toBe(`warning: ${warning}\n`);
      await watch.stop();
      const names = watch.out().match(/^\S+/gm) ?? [];
      expect(names.filter((name) => name !== 'c')).toEqual(flag === '-w' ? ['b', 'a'] : []);
    }
  });

  test('CLIENT-1: get --sort-by refuses values without an order', async () => {
    const own = await freshNamespace(server);
    const group = `${own}.example.com`;
    const path = `/apis/${dialect.group('apiextensions')}/v1/customresourcedefinitions`;
    const names = { plural: 'things', kind: 'Thing', singular: 'thing' };
    const schema = {
      openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
    };
    const versions = [{ name: 'v1', served: true, storage: true, schema }];
    const created = await server.post(path, {
      apiVersion: `${dialect.group('apiextensions')}/v1`,
      kind: 'CustomResourceDefinition',
      metadata: { name: `things.${group}` },
      spec: { group, names, scope: 'Namespaced', versions },
    });
    expect(created.status).toBe(201);
    const things = `/apis/${group}/v1/namespaces/${own}/things`;
    const create = (name: string, values: object) =>
      server.post(things, {
        apiVersion: `${group}/v1`,
        kind: 'Thing',
        metadata: { name },
        ...values,
      });
    await eventually(
      async () => (await create('a', { flag: true, any: 1, none: null })).status === 201,
      'a',
    );
    await create('b', { flag: false, any: 'x', one: true });
    const sort = (field: string) =>
      home.run(`get things.${group} -n ${own} -o name --sort-by=.${field}`);
    expect((await sort('flag')).err).toBe('error: field {.flag} is an unsortable type: boolean\n');
    expect((await sort('any')).err).toBe(
      'error: field {.any} has both texts and numbers as values\n',
    );
    expect((await sort('one')).out).toBe(`thing.${group}/a\nthing.${group}/b\n`);
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
    const made = await home.run(`convert -f ${file} --output-version=autoscaling/v1 -o json`);
    expect(made.err).toBe('');
    expect(JSON.parse(made.out)).toMatchObject({
      apiVersion: 'autoscaling/v1',
      spec: { maxReplicas: 3, targetCPUUtilizationPercentage: 70 },
    });
  });

  test('VER-8: convert writes files in another version', async () => {
    const scaler = {
      apiVersion: 'autoscaling/v1',
      kind: 'HorizontalPodAutoscaler',
      metadata: { name: 'h' },
      spec: { maxReplicas: 3, scaleTargetRef: { kind: 'Deployment', name: 'd' } },
    };
    const file = home.write('h.json', JSON.stringify(scaler));
    const { code, out, err } = await home.run(`convert -f ${file} --output-version autoscaling/v2`);
    expect({ code, err }).toEqual({ code: 0, err: '' });
    expect(out).toMatch(/^apiVersion: autoscaling\/v2\nkind: HorizontalPodAutoscaler\n/);
    const json = await home.run(`convert -f ${file} -o json`);
    expect(JSON.parse(json.out).apiVersion).toBe('autoscaling/v2');
    const refused = await home.run(`convert -f ${file} --output-version apps/v1`);
    expect(refused.err).toBe(
      'autoscaling.HorizontalPodAutoscaler is not suitable for converting to "apps/v1" in scheme "builtin"\n',
    );
    expect(refused.code).toBe(1);
    expect(refused.out).toBe('apiVersion: v1\nitems: []\nkind: List\nmetadata: {}\n');
  });

  test('VER-8: convert contacts the server only with --local=false', async () => {
    const deployment = {
      apiVersion: 'extensions/v1beta1',
      kind: 'Deployment',
      metadata: { name: 'd' },
    };
    const file = home.write('old.json', JSON.stringify(deployment));
    const local = await home.run(`convert --local -f ${file} -o json --server=http://127.0.0.1:1`);
    expect({ code: local.code, err: local.err }).toEqual({ code: 0, err: '' });
    expect(JSON.parse(local.out)).toMatchObject({ apiVersion: 'apps/v1', kind: 'Deployment' });
    const remote = await home.run(`convert --local=false -f ${file}`);
    expect(remote.code).toBe(1);
    expect(remote.err).toContain(
      'no matches for kind "Deployment" in version "extensions/v1beta1"',
    );
  });

  test('VER-8: convert reports an object without its kind as undecodable', async () => {
    const file = home.write('kindless.json', '{"apiVersion":"v1","metadata":{"name":"x"}}');
    const { code, err } = await home.run(`convert -f ${file}`);
    expect(code).toBe(1);
    expect(err).toMatch(/^error: unable to decode ".*": Object 'Kind' is missing in '\{.*\}'\n$/);
  });
});

const kinds = [
  ...['pods', 'pod.spec', 'pods.metadata', 'pods.spec.containers', 'pods.metadata.labels'],
  ...['pods.spec.containers.imagePullPolicy', 'pods.spec.containers.ports.containerPort'],
  ...['pods.spec.containers.resources.limits', 'pods.metadata.managedFields.fieldsV1'],
  ...['pods.spec.containers.livenessProbe.httpGet.port', 'pods.metadata.creationTimestamp'],
  ...['pods.spec.restartPolicy', 'pods.spec.volumes.emptyDir', 'configmaps.data', 'secret'],
  ...['deploy', 'deployments.apps', 'deployments.apps.spec.strategy'],
  ...['deploy.spec.strategy.rollingUpdate.maxSurge', 'networkpolicies.spec.policyTypes'],
  ...['hpa.spec.metrics', 'crd.spec.versions.schema.openAPIV3Schema', 'clusterroles.rules'],
  ...['svc.spec', 'svc.spec.type', 'svc.spec.ports.protocol', 'pv.spec.claimRef', 'events.series'],
  ...['harbors', 'harbors.spec', 'harbors.spec.size', 'harbors.spec.tides'],
  ...['harbors.spec.depth', 'harbors.spec.free', 'harbors.spec.berths', 'harbors.status'],
  ...['harbors.spec.berths.name', 'harbors.spec.extra', 'harbors.spec.few', 'harbors.metadata'],
];

const lines: readonly Line[] = [
  ...kinds.flatMap((kind): Line[] => [
    [`explain ${kind}`],
    [`explain ${kind} --output=plaintext-openapiv2`],
  ]),
  ...['pods', 'crd', 'harbors', 'deploy.spec.template', 'networkpolicies.spec'].flatMap(
    (kind): Line[] => [
      [`explain ${kind} --recursive`],
      [`explain ${kind} --recursive -o plaintext-openapiv2`],
    ],
  ),
  ['explain hpa.spec --api-version=autoscaling/v1'],
  ['explain hpa.spec --api-version=autoscaling/v1 -o plaintext-openapiv2'],
  ['explain'],
  ['explain pods services'],
  ['explain pods.spec.nothing -o plaintext-openapiv2'],
  ['explain pods -o xml'],
];

const text = `Where ships lie.

Berths:
- one
- two

    verbatim text that is indented and much longer than the eighty columns of a line of a terminal
${'A long text that has to be broken into lines. '.repeat(6)}`;

async function prepare(server: TestServer): Promise<void> {
  const group = 'explain.example.com';
  const spec = {
    type: 'object',
    required: ['size'],
    properties: {
      size: { type: 'string', enum: ['', 'a', 'b', 'c', 'd', 'e'], description: 'How large.' },
      few: { type: 'integer', enum: [1, 2] },
      free: { type: 'boolean', description: text },
      depth: { 'x-kubernetes-int-or-string': true },
      tides: { type: 'object', additionalProperties: { type: 'number', description: 'A tide.' } },
      extra: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
      berths: {
        type: 'array',
        description: 'All berths.',
        items: {
          type: 'object',
          description: 'A berth.',
          required: ['name'],
          properties: { name: { type: 'string', enum: ['north', 'south'] } },
        },
      },
    },
  };
  const definition = {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `harbors.${group}` },
    spec: {
      group,
      scope: 'Namespaced',
      names: { plural: 'harbors', kind: 'Harbor' },
      versions: [
        {
          ...{ name: 'v1', served: true, storage: true },
          schema: {
            openAPIV3Schema: {
              type: 'object',
              description: text,
              properties: { spec, status: { type: 'object' } },
            },
          },
        },
      ],
    },
  };
  const path = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
  expect([201, 409]).toContain((await server.post(path, definition)).status);
  await eventually(async () => (await server.get(`/openapi/v3/apis/${group}/v1`)).status === 200);
  await eventually(async () => {
    const { body } = await server.get('/openapi/v2');
    return body.definitions['com.example.explain.v1.Harbor'] !== undefined;
  });
}

printsLikeKubectl('explain', lines, { prepare });
