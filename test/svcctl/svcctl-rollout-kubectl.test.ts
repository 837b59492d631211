import { saysAsKubectl } from '../clients/beside-kubectl.ts';
import { playController } from './played-workloads.ts';

const replicaSet = JSON.stringify({
  apiVersion: 'apps/v1',
  kind: 'ReplicaSet',
  metadata: { name: 'alone' },
  spec: {
    selector: { matchLabels: { a: 'b' } },
    template: {
      metadata: { labels: { a: 'b' } },
      spec: { containers: [{ name: 'c', image: 'i' }] },
    },
  },
});

saysAsKubectl(
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
  async (server, namespace) => {
    const controller = playController(server, { namespace, labelDomain: 'kubernetes.io' });
    const { create, keep, report } = controller;
    const web = await create('Deployment', 'web');
    await keep(web, 1, 'web:1', 'first of all');
    await keep(web, 2, 'web:2');
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
    await keep(agent, 1, 'web:1');
    await keep(agent, 2, 'web:2');
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
    await keep(db, 1, 'web:1');
    await keep(db, 2, 'web:2');
    await report(db, { replicas: 3, readyReplicas: 1 });
    await report(await create('StatefulSet', 'ready'), full);
    await report(await create('StatefulSet', 'plain'), {
      ...full,
      currentReplicas: 3,
      updateRevision: 'r1',
      currentRevision: 'r1',
    });
  },
);
