import { dialectNames, dialectOf } from '@wheelhouse/machinery';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { freshNamespace, startTestServer, type TestServer } from '../support/harness.ts';
import { playController } from './played-workloads.ts';
import { type SvcctlHome, svcctlFor } from './svcctl-run.ts';

describe.each(dialectNames)('CLIENT-1: set, dialect %s', (dialectName) => {
  const dialect = dialectOf(dialectName);
  let server: TestServer;
  let home: SvcctlHome;
  let namespace: string;
  const ctl = (line: string, stdin?: string) => home.runIn(namespace, line, stdin);
  beforeAll(async () => {
    server = await startTestServer({ dialect: dialectName });
    home = svcctlFor(server);
  });
  beforeEach(async () => {
    namespace = await freshNamespace(server);
    const { labelDomain } = dialect;
    await playController(server, { namespace, labelDomain }).create('Deployment', 'web');
  });
  afterAll(async () => {
    home.remove();
    await server.stop();
  });

  test('CLIENT-1: set changes images and variables and keeps other managers’ fields', async () => {
    expect((await ctl('set image deploy/web main=web:3')).out).toBe(
      'deployment.apps/web image updated\n',
    );
    expect((await ctl('set env deploy/web A- NEW=1 -c main')).out).toBe(
      'deployment.apps/web env updated\n',
    );
    const { body } = await server.get(`/apis/apps/v1/namespaces/${namespace}/deployments/web`);
    const [main, side] = body.spec.template.spec.containers;
    expect(main.image).toBe('web:3');
    expect(main.env.map((one: { name: string }) => one.name)).toEqual(['B', 'C', 'NEW']);
    expect(main.command).toEqual(['serve', '--all']);
    expect(side.env).toBeUndefined();
    const managers = body.metadata.managedFields.map((one: { manager: string }) => one.manager);
    expect(managers).toContain('svcctl-set');
  });

  test("CLIENT-1: set subject names the group of the server's dialect", async () => {
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

  test('CLIENT-1: set reports what it cannot do and changes nothing', async () => {
    const absent =
      'one or more resources must be specified as <resource> <name> or <resource>/<name>';
    for (const [line, message] of [
      ['set image main=x', `error: ${absent}\n`],
      ['set env A=1', `error: ${absent}\n`],
      ['set image nope/x main=x', 'error: the server doesn\'t have a resource type "nope"\n'],
      ['set image deploy/web --field-manager', 'error: flag needs an argument: --field-manager\n'],
      ['set volume deploy/web', 'error: unknown command "volume" for "svcctl set"\n'],
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
