import type { Deployment } from '@wheelhouse/kinds/types/apps/v1';
import { dialectNames, dialectOf } from '@wheelhouse/machinery';
import { beforeEach, describe, expect, test } from 'vitest';
import { printsLikeKubectl } from '../clients/compare-with-kubectl.ts';
import { untilEnd } from '../support/cleanup.ts';
import { freshNamespace, type ResponseOf, selecting } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';
import { type PlayedController, playController } from './played-workloads.ts';
import { svcctlFor } from './svcctl-run.ts';

describe.each(dialectNames)('CLIENT-1: rollout, dialect %s', async (dialectName) => {
  const dialect = dialectOf(dialectName);
  let namespace: string;
  let controller: PlayedController;
  const ctl = (line: string) => home.runIn(namespace, line);
  const web = () => `/apis/apps/v1/namespaces/${namespace}/deployments/web`;
  const full = { replicas: 3, updatedReplicas: 3, readyReplicas: 3, availableReplicas: 3 };
  const server = await withServer({ dialect: dialectName });
  const home = untilEnd(svcctlFor(server));
  beforeEach(async () => {
    namespace = await freshNamespace(server);
    controller = playController(server, { namespace, labelDomain: dialect.labelDomain });
  });

  test('CLIENT-1: rollout status follows a rollout to its end', async () => {
    const deployment = await controller.create('Deployment', 'web');
    await controller.report(deployment, { replicas: 3, updatedReplicas: 1 });
    const status = home.start(`rollout status deploy/web -n ${namespace}`);
    const label = 'Waiting for deployment "web" rollout to finish: ';
    await expect.poll(() => status.out()).toContain(`${label}1 out of 3 new replicas have been`);
    await controller.report(deployment, { ...full, availableReplicas: 1 });
    await expect
      .poll(() => status.out())
      .toContain(`${label}1 of 3 updated replicas are available`);
    await controller.report(deployment, full);
    await expect.poll(() => status.out()).toContain('deployment "web" successfully rolled out\n');
    expect(await status.stop()).toBe(0);
  });

  test('CLIENT-1: scale --timeout waits for replicas and names late objects', async () => {
    const deployment = await controller.create('Deployment', 'web');
    await controller.report(deployment, full);
    const late = await ctl('scale deploy web --replicas=5 --timeout=1ms');
    expect(late).toEqual({
      code: 1,
      out: '',
      err: 'error: timed out waiting for "web" to be synced\n',
    });
    const scaling = home.start(`scale deploy web --replicas=4 --timeout=1m -n ${namespace}`);
    await controller.report(deployment, { ...full, replicas: 4 });
    await expect
      .poll(() => scaling.out(), { timeout: 10_000 })
      .toMatch(/^deployment.*web scaled\n$/);
    expect(await scaling.stop()).toBe(0);
  });

  test('CLIENT-1: rollout status fails when the object is deleted or the deadline passes', async () => {
    const deployment = await controller.create('Deployment', 'web');
    const late = home.start(`rollout status deploy/web -n ${namespace}`);
    await expect.poll(() => late.out()).toContain('spec update to be observed...\n');
    await controller.report(deployment, {
      conditions: [{ type: 'Progressing', status: 'False', reason: 'ProgressDeadlineExceeded' }],
    });
    await expect
      .poll(() => late.err())
      .toBe('error: deployment "web" exceeded its progress deadline\n');
    await controller.report(deployment, { conditions: [] });
    const gone = home.start(`rollout status deploy/web -n ${namespace}`);
    await expect.poll(() => gone.out()).toContain('Waiting for deployment');
    await server.remove(web());
    await expect.poll(() => gone.err()).toBe('error: object has been deleted\n');
    expect(await gone.stop()).toBe(1);
  });

  test("CLIENT-1: restart sets the annotation of the server's dialect", async () => {
    await controller.create('Deployment', 'web');
    expect((await ctl('rollout restart deploy/web')).out).toBe('deployment.apps/web restarted\n');
    const { body } = await server.get<ResponseOf<Deployment>>(web());
    const name = dialect.label('restartedAt', dialect.tool);
    expect(body.spec.template.metadata.annotations[name]).toMatch(/^\d{4}-.*:\d\dZ$/);
    expect(
      body.metadata.managedFields.map((managedField: { manager: string }) => managedField.manager),
    ).toContain('svcctl-rollout');
  });

  test('CLIENT-1: undo returns to an earlier template and keeps other fields', async () => {
    const deployment = await controller.create('Deployment', 'web');
    await controller.recordRevision(deployment, 1, 'web:1', 'at first');
    await controller.recordRevision(deployment, 2, 'web:2');
    const { out } = await ctl('rollout history deploy/web');
    expect(out).toBe(
      'deployment.apps/web \nREVISION  CHANGE-CAUSE\n1         at first\n2         <none>\n\n',
    );
    expect((await ctl('rollout undo deploy/web')).out).toBe('deployment.apps/web rolled back\n');
    const { body } = await server.get<ResponseOf<Deployment>>(web());
    expect(body.spec.template.spec.containers[0].image).toBe('web:1');
    expect(body.spec.template.metadata.labels).toEqual({ app: 'web' });
    expect(body.metadata.annotations).toEqual({
      [dialect.label('revision', 'deployment')]: '2',
      [dialect.label('change-cause')]: 'at first',
    });
  });

  test('CLIENT-1: a missing permission is reported', async () => {
    await controller.create('Deployment', 'web');
    const { code, err } = await ctl('rollout restart deploy/web --as=nobody');
    expect({ code, err }).toEqual({
      code: 1,
      err:
        'Error from server (Forbidden): deployments.apps "web" is forbidden: User "nobody" cannot ' +
        `get resource "deployments" in API group "apps" in the namespace "${namespace}"\n`,
    });
  });

  test('CLIENT-1: unknown subcommands and invalid values are reported', async () => {
    for (const [line, message] of [
      [
        'rollout restrat deploy/web',
        'error: unknown command "restrat deploy/web"\n' +
          "See 'svcctl rollout -h' for help and examples\n",
      ],
      [
        'rollout status deploy/web --timeout=soon',
        'Error: invalid argument "soon" for "--timeout" flag: time: invalid duration "soon"\n' +
          "See 'svcctl rollout status --help' for usage.\n",
      ],
      [
        'rollout history deploy/web --revision',
        "Error: flag needs an argument: --revision\nSee 'svcctl rollout history --help' for usage.\n",
      ],
    ] as const) {
      const { code, err } = await home.run(line);
      expect({ line, code, err }).toEqual({ line, code: 1, err: message });
    }
    expect((await home.run('rollout')).out).toContain('rollout SUBCOMMAND [options]');
    expect((await home.run(['__complete', 'rollout', 're'])).out).toContain('restart\t');
  });
});

const replicaSet = JSON.stringify({
  apiVersion: 'apps/v1',
  kind: 'ReplicaSet',
  metadata: { name: 'alone' },
  spec: selecting({ a: 'b' }),
});

printsLikeKubectl(
  'rollout',
  [
    ['rollout status deployment/web --watch=false'],
    ['rollout status deploy web --watch=false --revision=3'],
    ['rollout status deploy web --revision=-1'],
    ['rollout status deploy/done'],
    ['rollout status deploy done --revision=2'],
    ['rollout status deploy/late'],
    ['rollout status deploy/old -w=false'],
    ['rollout status deploy/unready -w=false'],
    ['rollout status deploy/unseen -w=false'],
    ['rollout status deploy/web --timeout=300ms'],
    ['rollout status ds/agent'],
    ['rollout status ds/manual'],
    ['rollout status sts/db -w=false'],
    ['rollout status sts/ready'],
    ['rollout status sts/plain'],
    ['rollout status deploy nope'],
    ['rollout status'],
    ['rollout status cm'],
    ['create -f -', replicaSet],
    ['rollout status rs/alone'],
    ['rollout history deploy/web'],
    ['rollout history deploy web --revision=1'],
    ['rollout history deploy web --revision=9'],
    ['rollout history deploy web --revision=-1'],
    ['rollout history deploy web -o name'],
    ['rollout history deploy/done'],
    ['rollout history ds agent'],
    ['rollout history ds agent --revision=1'],
    ['rollout history ds agent --revision=1 -o jsonpath={.spec.template.spec.containers[0].image}'],
    ['rollout history sts db'],
    ['rollout history rs alone'],
    ['rollout history'],
    ['rollout undo deploy/web --dry-run=client'],
    ['rollout undo deploy/web --dry-run=server'],
    ['rollout undo deploy/web --to-revision=2'],
    ['rollout undo deploy/web --to-revision=9'],
    ['rollout undo deploy/web --to-revision=-1'],
    ['rollout undo deploy/web'],
    ['get deploy web -o jsonpath={.spec.template.spec.containers[0].image}{.metadata.annotations}'],
    ['rollout undo deploy/done'],
    ['rollout undo ds agent --dry-run=client'],
    ['rollout undo ds agent'],
    ['get ds agent -o jsonpath={.spec.template.spec.containers[0].image}'],
    ['rollout undo ds agent --to-revision=7'],
    ['rollout undo sts/db'],
    ['rollout undo sts/ready'],
    ['rollout undo rs alone'],
    ['rollout undo'],
    ['rollout pause deploy/web'],
    ['rollout pause deploy/web'],
    ['rollout undo deploy/web --to-revision=2'],
    ['rollout restart deploy/web'],
    ['rollout resume deploy web'],
    ['rollout resume deploy web'],
    ['rollout restart deploy/web ds/agent sts/db'],
    ['rollout restart rs alone'],
    ['rollout restart deploy/done rs/alone deploy/nope'],
    ['rollout pause ds agent'],
    ['rollout resume sts -l a=b'],
    ['rollout restart deploy -l a=b'],
    ['rollout pause nope/x'],
    ['rollout restart'],
    ['rollout restart -f -', replicaSet],
    ['rollout pause deploy/done -o name'],
  ],
  {
    prepare: async (server, namespace) => {
      const controller = playController(server, { namespace, labelDomain: 'kubernetes.io' });
      const { create, recordRevision, report } = controller;
      const web = await create('Deployment', 'web');
      await recordRevision(web, 1, 'web:1', 'first of all');
      await recordRevision(web, 2, 'web:2');
      await report(web, { replicas: 3, updatedReplicas: 1 });
      const full = { replicas: 3, updatedReplicas: 3, readyReplicas: 3, availableReplicas: 3 };
      await report(await create('Deployment', 'done'), full);
      await report(await create('Deployment', 'late'), {
        conditions: [{ type: 'Progressing', status: 'False', reason: 'ProgressDeadlineExceeded' }],
      });
      await report(await create('Deployment', 'old'), { ...full, replicas: 4 });
      await report(await create('Deployment', 'unready'), {
        ...full,
        readyReplicas: 2,
        availableReplicas: 2,
      });
      await create('Deployment', 'unseen');
      const agent = await create('DaemonSet', 'agent');
      await recordRevision(agent, 1, 'web:1');
      await recordRevision(agent, 2, 'web:2');
      const scheduled = {
        currentNumberScheduled: 2,
        desiredNumberScheduled: 2,
        numberMisscheduled: 0,
      };
      await report(agent, {
        ...scheduled,
        numberReady: 2,
        updatedNumberScheduled: 2,
        numberAvailable: 2,
      });
      await create('DaemonSet', 'manual', { updateStrategy: { type: 'OnDelete' } });
      const db = await create('StatefulSet', 'db');
      await recordRevision(db, 1, 'web:1');
      await recordRevision(db, 2, 'web:2');
      await report(db, { replicas: 3, readyReplicas: 1 });
      await report(await create('StatefulSet', 'ready'), full);
      await report(await create('StatefulSet', 'plain'), {
        ...full,
        currentReplicas: 3,
        updateRevision: 'r1',
        currentRevision: 'r1',
      });
    },
  },
);
