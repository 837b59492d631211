import type { Deployment } from '@wheelhouse/kinds/types/apps/v1';
import { dialectNames, dialectOf } from '@wheelhouse/machinery';
import { beforeEach, describe, expect, test } from 'vitest';
import { printsLikeKubectl } from '../clients/compare-with-kubectl.ts';
import { untilEnd } from '../support/cleanup.ts';
import { freshNamespace, type ResponseOf } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';
import { playController } from './played-workloads.ts';
import { svcctlFor } from './svcctl-run.ts';

describe.each(dialectNames)('CLIENT-1: set, dialect %s', async (dialectName) => {
  const dialect = dialectOf(dialectName);
  let namespace: string;
  const ctl = (line: string, stdin?: string) => home.runIn(namespace, line, stdin);
  const server = await withServer({ dialect: dialectName });
  const home = untilEnd(svcctlFor(server));
  beforeEach(async () => {
    namespace = await freshNamespace(server);
    const { labelDomain } = dialect;
    await playController(server, { namespace, labelDomain }).create('Deployment', 'web');
  });

  test('CLIENT-1: set changes images and variables and keeps other managers’ fields', async () => {
    expect((await ctl('set image deploy/web main=web:3')).out).toBe(
      'deployment.apps/web image updated\n',
    );
    expect((await ctl('set env deploy/web A- NEW=1 -c main')).out).toBe(
      'deployment.apps/web env updated\n',
    );
    const { body } = await server.get<ResponseOf<Deployment>>(
      `/apis/apps/v1/namespaces/${namespace}/deployments/web`,
    );
    const [main, side] = body.spec.template.spec.containers;
    expect(main.image).toBe('web:3');
    expect(main.env.map(({ name }) => name)).toEqual(['B', 'C', 'NEW']);
    expect(main.command).toEqual(['serve', '--all']);
    expect(side).toBeDefined();
    expect(side?.env).toBeUndefined();
    const managers = body.metadata.managedFields.map((managedField) => managedField.manager);
    expect(managers).toContain('svcctl-set');
  });

  test("CLIENT-1: set subject uses the group of the server's dialect", async () => {
    await ctl('create rolebinding b --role=r --user=u');
    expect((await ctl('set subject rolebinding b --user=v')).code).toBe(0);
    const { out } = await ctl('get rolebinding b -o jsonpath={.subjects[*].apiGroup}');
    const group = dialect.group('rbac.authorization');
    expect(out).toBe(`${group} ${group}`);
  });

  test('CLIENT-1: --local changes files without a server', async () => {
    const { out: file } = await ctl('get deploy web -o yaml');
    const patch = '{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"web:9"}]}}}}';
    for (const [line, expected] of [
      ['set image --local -f - main=web:9', 'image: web:9'],
      [`patch --local -f - -p ${patch}`, 'image: web:9'],
      ['label --local -f - tier=gold', 'tier: gold'],
    ] as const) {
      const unreachable = '-o yaml --server=https://127.0.0.1:1';
      const { code, out, err } = await home.run(`${line} ${unreachable}`, file);
      expect({ line, code, err }).toEqual({ line, code: 0, err: '' });
      expect(out).toContain(expected);
      expect(out).toContain('image: sidecar:1');
    }
  });

  test('CLIENT-1: set reports invalid arguments and changes nothing', async () => {
    const absent =
      'one or more resources must be specified as <resource> <name> or <resource>/<name>';
    for (const [line, message] of [
      ['set env A=1', `error: ${absent}\n`],
      ['set image nope/x main=x', 'error: the server doesn\'t have a resource type "nope"\n'],
      [
        'set image deploy/web --field-manager',
        "Error: flag needs an argument: --field-manager\nSee 'svcctl set image --help' for usage.\n",
      ],
      [
        'set image deploy/web main=x --dry-run=server --local',
        'error: cannot specify --local and --dry-run=server - did you mean --dry-run=client?\n',
      ],
    ] as const) {
      const { code, err } = await home.run(line);
      expect({ line, code, err }).toEqual({ line, code: 1, err: message });
    }
    const refused = await ctl('set image deploy/web main=x --as=nobody');
    expect(refused.code).toBe(1);
    expect(refused.err).toContain(
      'Error from server (Forbidden): deployments.apps "web" is forbid',
    );
    const { out } = await ctl('get deploy web -o jsonpath={.metadata.generation}');
    expect(out).toBe('1');
  });
});

const pod = {
  containers: [
    { name: 'main', image: 'web:1' },
    { name: 'side', image: 'side:1' },
  ],
};
const deployment = (name: string, labels: object = {}) =>
  JSON.stringify({
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name, labels },
    spec: {
      selector: { matchLabels: { app: name } },
      template: {
        metadata: { labels: { app: name } },
        spec: { ...pod, initContainers: [{ name: 'init', image: 'init:1' }] },
      },
    },
  });
const cronJob = JSON.stringify({
  apiVersion: 'batch/v1',
  kind: 'CronJob',
  metadata: { name: 'nightly' },
  spec: {
    schedule: '0 0 * * *',
    jobTemplate: { spec: { template: { spec: { ...pod, restartPolicy: 'Never' } } } },
  },
});
const service = JSON.stringify({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name: 'web' },
  spec: { ports: [{ port: 80 }], selector: { app: 'web' } },
});
const images = 'get deploy web -o jsonpath={.spec.template.spec.containers[*].image}';
const env = 'get deploy web -o jsonpath={.spec.template.spec.containers[*].env}';

printsLikeKubectl('set', [
  ['create -f -', deployment('web', { tier: 'gold' })],
  ['create -f -', deployment('other')],
  ['create -f -', cronJob],
  ['create -f -', service],
  ['create cm c --from-literal=a-b=1 --from-literal=C=2'],
  ['create secret generic s --from-literal=pw=hunter2'],
  ['set image deploy/web main=web:2'],
  ['set image deploy web main=web:2'],
  ['set image deployment web side=side:2 init=init:2'],
  [images],
  ['set image deploy/web *=all:1'],
  [images],
  ['set image deploy/web *=all:1 main=x'],
  ['set image deploy/web nope=x'],
  ['set image deploy/web main=web:3 nope=x'],
  ['set image deploy/web'],
  ['set image deploy/web main=x deploy/other'],
  ['set image deploy/web main-'],
  ['set image deploy main=x'],
  ['set image deploy --all main=web:4'],
  ['set image deploy -l tier=gold main=web:5'],
  ['set image deploy --all -l tier=gold main=web:5'],
  ['set image cronjob/nightly main=web:5'],
  ['set image cm/c main=web:5'],
  ['set image deploy/nope main=web:5'],
  ['set image deploy/web main=web:6 --dry-run=client'],
  ['set image deploy/web main=web:6 --dry-run=server'],
  ['set image deploy/web main=web:6 --dry-run=client -o name'],
  ['set image deploy/web main=web:7 -o jsonpath={.spec.template.spec.containers[0].image}'],
  ['set image -f - main=web:8', deployment('web')],
  ['set image --local -f - main=web:8', deployment('web')],
  ['set image --local deploy/web main=web:8'],
  ['set env deploy/web A=1 B=two'],
  ['set env deploy/web A=1 B=two'],
  ['set env deploy/web A=2 B- C=3'],
  [env],
  ['set env deploy/web --list'],
  ['set env deploy/web -c main D=4'],
  ['set env deploy/web -c m* E=5'],
  ['set env deploy/web -c x* E=5'],
  ['set env deploy/web A=3 --overwrite=false'],
  ['set env deploy/web F=3 --overwrite=false'],
  ['set env deploy/web -e G=7 -e H=8'],
  ['set env deploy/web A=1 A-'],
  ['set env deploy/web 1A=1'],
  ['set env deploy/web A=1 deploy/other'],
  ['set env A=1'],
  ['set env deploy/web'],
  ['set env deploy/web -', '# a comment\nI=9\nJ=10 # more\n'],
  ['set env deploy/web --from=configmap/c'],
  ['set env deploy/web --from=secret/s --prefix=DB_'],
  ['set env deploy/web --from=cm/c --keys=C --prefix=ONLY_'],
  ['set env deploy/web --keys=C'],
  ['set env deploy/web --from=svc/web'],
  ['set env deploy/web --from=cm/nope'],
  [env],
  ['set env deploy/web --list -c main'],
  ['set env deploy/web --list --resolve -c main'],
  ['set env deploy/web --list -o name'],
  ['set env deploy --all K=1'],
  ['set env deploy/web K=2 --dry-run=server'],
  ['delete secret s'],
  ['set env deploy/web --list --resolve -c main'],
  ['set resources deploy/web --limits=cpu=1000m,memory=64Mi --requests=cpu=100m'],
  ['get deploy web -o jsonpath={.spec.template.spec.containers[*].resources}'],
  ['set resources deploy/web -c side --limits=cpu=2'],
  ['set resources deploy/web -c nope --limits=cpu=2'],
  ['set resources deploy/web --limits=cpu'],
  ['set resources deploy/web --limits=cpu=x'],
  ['set resources deploy/web'],
  ['set resources deploy/web --requests=cpu=9'],
  ['set serviceaccount deploy/web robot'],
  ['set sa deploy/web robot'],
  ['set sa'],
  ['set sa cm/c robot'],
  ['get deploy web -o jsonpath={.spec.template.spec.serviceAccountName}'],
  ['set selector svc web tier=front,app=x'],
  ['set selector svc/web tier=front --resource-version=1'],
  ['get svc web -o jsonpath={.spec.selector}'],
  ['set selector svc/web tier=front --dry-run=client'],
  ['set selector deploy/web a=b'],
  ['set selector'],
  ['create rolebinding b --role=r --user=u'],
  ['set subject rolebinding b --user=v --group=g --serviceaccount=x:y'],
  ['set subject rolebinding b --user=v'],
  ['get rolebinding b -o jsonpath={.subjects}'],
  ['set subject rolebinding b --serviceaccount=x'],
  ['set subject rolebinding b'],
  ['set subject cm c --user=v'],
]);
