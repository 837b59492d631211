import { dialectNames, dialectOf } from '@wheelhouse/machinery';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { printsLikeKubectl } from '../clients/compare-with-kubectl.ts';
import { untilEnd } from '../support/cleanup.ts';
import { freshNamespace, selecting } from '../support/harness.ts';
import { quickClock } from '../support/quick-clock.ts';
import { withServer } from '../support/with-server.ts';
import { svcctlFor } from './svcctl-run.ts';

describe.each(dialectNames)('CLIENT-1: cordon, drain, and taint, dialect %s', async (dialect) => {
  let namespace: string;
  let node: string;
  const pods = () => `/api/v1/namespaces/${namespace}/pods`;
  let owner: object;

  async function startPod(name: string, metadata: object = {}): Promise<void> {
    const { status } = await server.post(pods(), {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name, labels: { app: name }, ownerReferences: [owner], ...metadata },
      spec: {
        nodeName: node,
        terminationGracePeriodSeconds: 0,
        containers: [{ name: 'c', image: 'i' }],
      },
    });
    expect(status).toBe(201);
    const running = {
      status: { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] },
    };
    await server.patch(`${pods()}/${name}/status`, running, 'merge');
  }

  /** A PodDisruptionBudget that allows no disruptions, with its status. */
  async function forbidDisruption(app: string): Promise<void> {
    const path = `/apis/policy/v1/namespaces/${namespace}/poddisruptionbudgets`;
    await server.post(path, {
      apiVersion: 'policy/v1',
      kind: 'PodDisruptionBudget',
      metadata: { name: 'budget' },
      spec: { minAvailable: 1, selector: { matchLabels: { app } } },
    });
    const status = {
      observedGeneration: 1,
      disruptionsAllowed: 0,
      currentHealthy: 1,
      desiredHealthy: 1,
      expectedPods: 1,
    };
    expect((await server.patch(`${path}/budget/status`, { status }, 'merge')).status).toBe(200);
  }

  const server = await withServer({ dialect });
  const home = untilEnd(svcctlFor(server));
  /** Creates the controller of the Pods, without which they are garbage-collected. */
  async function startOwner(): Promise<void> {
    const labels = { app: 'r' };
    const { body } = await server.post(`/apis/apps/v1/namespaces/${namespace}/replicasets`, {
      apiVersion: 'apps/v1',
      kind: 'ReplicaSet',
      metadata: { name: 'r' },
      spec: {
        selector: { matchLabels: labels },
        template: { metadata: { labels }, spec: { containers: [{ name: 'c', image: 'i' }] } },
      },
    });
    const { uid } = body.metadata;
    owner = { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'r', uid, controller: true };
  }
  beforeEach(async () => {
    namespace = await freshNamespace(server);
    await startOwner();
    node = `node-${namespace}`;
    await server.post('/api/v1/nodes', {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name: node },
    });
    await server.post(`/api/v1/namespaces/${namespace}/serviceaccounts`, {
      apiVersion: 'v1',
      kind: 'ServiceAccount',
      metadata: { name: 'default' },
    });
  });
  afterEach(() => {
    home.clock = undefined;
  });

  test('CLIENT-1: drain retries an eviction that a PodDisruptionBudget forbids', async () => {
    await startPod('guarded');
    await forbidDisruption('guarded');
    const clock = quickClock(100);
    home.clock = clock;
    const draining = home.start(`drain ${node}`);
    await expect.poll(() => clock.waits.filter((ms) => ms === 5000).length).toBeGreaterThan(1);
    expect(draining.err()).toContain(
      `error when evicting pods/"guarded" -n "${namespace}" (will retry after 5s): ` +
        "Cannot evict pod as it would violate the pod's disruption budget.\n",
    );
    await server.remove(`/apis/policy/v1/namespaces/${namespace}/poddisruptionbudgets/budget`);
    await expect.poll(() => draining.out()).toContain(`node/${node} drained\n`);
    expect(draining.out()).toContain('pod/guarded evicted\n');
    expect((await server.get(`${pods()}/guarded`)).status).toBe(404);
    await draining.stop();
  });

  test('CLIENT-1: drain --disable-eviction deletes despite budgets', async () => {
    await startPod('guarded');
    await forbidDisruption('guarded');
    const { code, out, err } = await home.run(`drain ${node} --disable-eviction`);
    expect({ code, out, err }).toEqual({
      code: 0,
      out: `node/${node} cordoned\npod/guarded deleted\nnode/${node} drained\n`,
      err: '',
    });
  });

  test('CLIENT-1: drain stops at its timeout and lists the remaining Pods', async () => {
    await startPod('guarded');
    await forbidDisruption('guarded');
    await startPod('stuck', { finalizers: ['example.com/stay'] });
    home.clock = quickClock(20);
    const { code, out, err } = await home.run(`drain ${node} --timeout=1s`);
    expect(code).toBe(1);
    expect(out).toContain(`evicting pod ${namespace}/stuck\n`);
    expect(out).not.toContain('drained');
    expect(err).toContain(
      `error when evicting pods/"guarded" -n "${namespace}": global timeout reached: 1s`,
    );
    expect(err).toContain(
      `error when waiting for pod "stuck" in namespace "${namespace}" to terminate: ` +
        'context deadline exceeded',
    );
    expect(err).toContain(`There are pending pods in node "${node}" when an error occurred: `);
    expect(err).toContain('pod/guarded\npod/stuck\n');
    expect(err).toContain(`There are pending nodes to be drained:\n ${node}\n`);
  });

  test('CLIENT-1: drain skips Pods that have been terminating for long', async () => {
    await startPod('stuck', { finalizers: ['example.com/stay'] });
    await server.remove(`${pods()}/stuck`);
    const clock = quickClock(1);
    clock.skip(60_000);
    home.clock = clock;
    const line = `drain ${node} --skip-wait-for-delete-timeout=30`;
    expect(await home.run(line)).toEqual({
      code: 0,
      out: `node/${node} cordoned\nnode/${node} drained\n`,
      err: '',
    });
  });

  test("CLIENT-1: drain skips mirror Pods of the server's dialect", async () => {
    const mirror = dialectOf(dialect).label('config.mirror');
    await startPod('mirror', { annotations: { [mirror]: 'x' }, ownerReferences: [] });
    expect((await home.run(`drain ${node}`)).out).toBe(
      `node/${node} cordoned\nnode/${node} drained\n`,
    );
    expect((await server.get(`${pods()}/mirror`)).status).toBe(200);
  });

  test('CLIENT-1: an interrupt ends a waiting drain', async () => {
    await startPod('stuck', { finalizers: ['example.com/stay'] });
    const draining = home.start(`drain ${node}`);
    await expect.poll(() => draining.out()).toContain('evicting pod');
    expect(await draining.stop()).toBe(130);
  });

  test('CLIENT-1: invalid flag values are refused before anything happens', async () => {
    for (const [line, message] of [
      [
        `drain ${node} --timeout=soon`,
        'invalid argument "soon" for "--timeout" flag: time: invalid duration "soon"',
      ],
      [
        `drain ${node} --grace-period=x`,
        'invalid argument "x" for "--grace-period" flag: ' +
          'strconv.ParseInt: parsing "x": invalid syntax',
      ],
      [
        `drain ${node} -v 0x2`,
        'invalid argument "0x2" for "-v, --v" flag: strconv.ParseInt: parsing "0x2": invalid syntax',
      ],
      [`drain ${node} --timeout`, 'flag needs an argument: --timeout'],
    ] as const) {
      const err = `Error: ${message}\nSee 'svcctl drain --help' for usage.\n`;
      expect(await home.run(line)).toEqual({ code: 1, out: '', err });
    }
    expect((await server.get(`/api/v1/nodes/${node}`)).body.spec.unschedulable).toBeUndefined();
  });

  test('CLIENT-1: a missing permission is reported for each node', async () => {
    const { code, err } = await home.run(`taint node ${node} a:NoSchedule --as=nobody`);
    expect({ code, err }).toEqual({
      code: 1,
      err:
        `Error from server (Forbidden): nodes "${node}" is forbidden: User "nobody" cannot get ` +
        'resource "nodes" in API group "" at the cluster scope\n',
    });
    await home.run('create clusterrole reads-nodes --verb=get --resource=nodes');
    await home.run('create clusterrolebinding reads-nodes --clusterrole=reads-nodes --user=reader');
    const cordoned = await home.run(`cordon ${node} --as=reader`);
    expect(cordoned).toMatchObject({ code: 0, out: '' });
    expect(cordoned.err).toContain(
      `error: unable to cordon node "${node}": nodes "${node}" is forb`,
    );
    expect((await home.run(`drain ${node} --as=reader`)).err).toContain(
      'cannot list resource "pods"',
    );
  });

  test('CLIENT-1: node names complete', async () => {
    expect((await home.run(['__complete', 'cordon', node.slice(0, 8)])).out).toContain(node);
    expect((await home.run(['__complete', 'drain', '--ignore'])).out).toContain(
      '--ignore-daemonsets',
    );
  });
});

const node = (name: string, labels: object = {}) =>
  JSON.stringify({
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name, labels: { set: '@ns', ...labels } },
  });
const owner = (kind: string, name: string) => ({
  apiVersion: 'apps/v1',
  kind,
  name,
  uid: '1b4e28ba-2fa1-11d2-883f-0016d3cca427',
  controller: true,
});
const pod = (
  name: string,
  more: { readonly owners?: object[]; readonly volumes?: object[] } = {},
) =>
  JSON.stringify({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, ownerReferences: more.owners ?? [], labels: { app: name } },
    spec: {
      nodeName: '@ns-one',
      terminationGracePeriodSeconds: 0,
      containers: [{ name: 'c', image: 'i' }],
      ...(more.volumes === undefined ? {} : { volumes: more.volumes }),
    },
  });
const daemonSet = JSON.stringify({
  apiVersion: 'apps/v1',
  kind: 'DaemonSet',
  metadata: { name: 'ds' },
  spec: selecting({ app: 'd' }),
});

printsLikeKubectl('drain', [
  ['create -f -', node('@ns-one')],
  ['create -f -', node('@ns-two', { extra: 'y' })],
  ['create sa default'],
  ['taint nodes @ns-one dedicated=special:NoSchedule'],
  ['taint nodes @ns-one dedicated=special:NoSchedule'],
  ['taint nodes @ns-one dedicated=other:NoSchedule --overwrite'],
  ['taint nodes @ns-one k:NoExecute dedicated:NoSchedule-'],
  ['taint no @ns-one k:NoExecute a=b:PreferNoSchedule --dry-run=server'],
  ['taint nodes @ns-one b:PreferNoSchedule --dry-run=client'],
  ['get node @ns-one -o jsonpath={.spec.taints}'],
  ['taint nodes -l set=@ns x=y:PreferNoSchedule'],
  ['taint node @ns-one x-'],
  ['taint node @ns-one x-'],
  ['taint node @ns-one x:NoSchedule- z-'],
  ['taint node @ns-one x:NoSchedule x-'],
  ['taint node @ns-one x=y:Never'],
  ['taint node @ns-one x=y=z:NoSchedule'],
  ['taint node @ns-one x=y'],
  ['taint node @ns-one a:b:NoSchedule'],
  ['taint node @ns-one -a:NoSchedule'.replace(' -a', ' $a')],
  ['taint node @ns-one x:NoSchedule x=1:NoSchedule'],
  ['taint node @ns-one'],
  ['taint x:NoSchedule'],
  ['taint node x:NoSchedule @ns-one'],
  ['taint node x:NoSchedule'],
  ['taint pods a x:NoSchedule'],
  ['taint node --all -l a=b x:NoSchedule'],
  ['taint node nope x:NoSchedule'],
  ['cordon @ns-one --dry-run=client'],
  ['cordon @ns-one --dry-run=server'],
  ['cordon @ns-one'],
  ['cordon @ns-one'],
  ['cordon -l set=@ns'],
  ['uncordon node/@ns-one'],
  ['uncordon @ns-one'],
  ['uncordon nope'],
  ['uncordon'],
  ['uncordon @ns-one -l a=b'],
  ['cordon pod/x'],
  ['drain @ns-two'],
  ['create -f -', daemonSet],
  ['create -f -', pod('daemon', { owners: [owner('DaemonSet', 'ds')] })],
  ['drain @ns-one'],
  ['drain @ns-one --ignore-daemonsets --dry-run=client'],
  ['uncordon @ns-one'],
  ['create -f -', pod('lost', { owners: [owner('DaemonSet', 'gone')] })],
  ['drain @ns-one --ignore-daemonsets --dry-run=client'],
  ['drain @ns-one --ignore-daemonsets --dry-run=client --force'],
  ['delete pod lost'],
  ['create -f -', pod('bare')],
  ['drain @ns-one --ignore-daemonsets'],
  ['drain @ns-one --ignore-daemonsets --force --dry-run=server'],
  ['drain @ns-one --ignore-daemonsets --force --pod-selector=app=none'],
  ['drain @ns-one --ignore-daemonsets --force --pod-selector=,,'],
  ['drain @ns-one --ignore-daemonsets --force'],
  [
    'create -f -',
    pod('local', { owners: [owner('ReplicaSet', 'r')], volumes: [{ name: 'v', emptyDir: {} }] }),
  ],
  ['drain -l set=@ns --ignore-daemonsets'],
  ['drain @ns-one --ignore-daemonsets --delete-emptydir-data --grace-period=0'],
  ['create -f -', pod('last', { owners: [owner('ReplicaSet', 'r')] })],
  ['drain @ns-one --ignore-daemonsets --disable-eviction --timeout=5s'],
  ['drain'],
]);
