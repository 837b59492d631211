import { expect, test } from 'vitest';
import { printsLikeKubectl } from '../clients/compare-with-kubectl.ts';
import type { TestServer } from '../support/harness.ts';
import { svcctlOn } from './svcctl-run.ts';

/** What distinguishes a Pod from the others of its workload. */
interface Traits {
  readonly nodeName?: string;
  readonly phase?: string;
  readonly readySince?: string;
  readonly restarts?: number;
  readonly sidecarRestarts?: number;
  readonly isDeleted?: boolean;
}

/** The Pods `NAME-0`, `NAME-1`, … of each workload; `none` has none. */
const workloads: Readonly<Record<string, readonly Traits[]>> = {
  none: [],
  assigned: [{ nodeName: '' }, {}],
  phases: [{ phase: 'Pending' }, { phase: 'Unknown' }, { phase: 'Running' }],
  ended: [{ phase: 'Pending' }, { phase: 'Succeeded' }],
  ready: [{}, { readySince: '2026-01-02T00:00:00Z' }, { readySince: '2026-01-01T00:00:00Z' }],
  restarts: [{ restarts: 1 }, {}, { restarts: 3 }],
  sidecars: [{ sidecarRestarts: 1 }, {}, { sidecarRestarts: 3 }],
  deleted: [{ isDeleted: true }, {}],
};

async function prepare(server: TestServer, namespace: string): Promise<void> {
  const pods = `/api/v1/namespaces/${namespace}/pods`;
  const containers = [{ name: 'c', image: 'i' }];
  const sets = `/apis/apps/v1/namespaces/${namespace}/replicasets`;
  for (const [name, members] of Object.entries(workloads)) {
    const labels = { app: name };
    const template = { metadata: { labels }, spec: { containers } };
    await server.post(sets, {
      metadata: { name },
      spec: { selector: { matchLabels: labels }, template },
    });
    for (const [at, traits] of members.entries()) {
      const { nodeName = 'nowhere', phase = 'Running', readySince, isDeleted } = traits;
      const pod = `${name}-${at}`;
      const initContainers = [{ name: 's', image: 'i', restartPolicy: 'Always' }];
      const spec = { containers, initContainers, ...(nodeName === '' ? {} : { nodeName }) };
      await server.post(pods, { metadata: { name: pod, labels }, spec });
      const restarts = (container: string, restartCount = 0) => [
        { name: container, image: 'i', imageID: '', ready: true, restartCount },
      ];
      const status = {
        phase,
        containerStatuses: restarts('c', traits.restarts),
        initContainerStatuses: restarts('s', traits.sidecarRestarts),
        ...(readySince === undefined
          ? {}
          : { conditions: [{ type: 'Ready', status: 'True', lastTransitionTime: readySince }] }),
      };
      const answer = await server.patch(`${pods}/${pod}/status`, { status }, 'merge');
      expect(answer.status, answer.text).toBe(200);
      if (isDeleted === true) await server.remove(`${pods}/${pod}`);
    }
  }
}

const named = Object.keys(workloads).filter((name) => name !== 'none');

printsLikeKubectl(
  'workload-pods',
  [
    // The error of `attach` names the Pod.
    ...named.map((name): [string] => [`attach rs/${name} -c none`]),
    ...named.map((name): [string] => [`logs rs/${name} -c none`]),
    ...['logs rs/none', 'attach rs/none', 'exec rs/none -- ls', 'port-forward rs/none 80'].flatMap(
      (line): [string][] => {
        const [words = '', command = ''] = line.split(' -- ');
        const timed = (timeout: string) =>
          `${words} --pod-running-timeout=${timeout}${command === '' ? '' : ` -- ${command}`}`;
        return [[timed('100ms')], [timed('0s')]];
      },
    ),
    ['run p --image=i --pod-running-timeout=-1s'],
    ['logs -l app=nothing --pod-running-timeout=0s'],
  ],
  { prepare },
);

const on = svcctlOn('kubernetes');

test('CLIENT-1: a command waits for the first Pod of a workload', async () => {
  await prepare(on.server, on.namespace);
  for (const command of ['attach rs/none -c other', 'logs rs/none -c other']) {
    const running = on.home.start(`${command} -v=6 -n ${on.namespace}`);
    await expect.poll(running.err).toContain('watch=true');
    const name = `late-${command.split(' ')[0]}`;
    const pods = `/api/v1/namespaces/${on.namespace}/pods`;
    const spec = { containers: [{ name: 'c', image: 'i' }] };
    await on.server.post(pods, { metadata: { name, labels: { app: 'none' } }, spec });
    await expect.poll(running.err).toMatch(new RegExp(`error: .*container other .* pod ${name}\n`));
    expect(await running.stop()).toBe(1);
    await on.server.remove(`${pods}/${name}?gracePeriodSeconds=0`);
  }
});
