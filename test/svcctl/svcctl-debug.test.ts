import type { Pod } from '@wheelhouse/kinds/types/core/v1';
import { afterEach, describe, expect, test } from 'vitest';
import { type Line, printsLikeKubectl } from '../clients/compare-with-kubectl.ts';
import { eventually, type ResponseOf, type TestServer } from '../support/harness.ts';
import { bothClients, withPlayedNode } from './played-node.ts';

const pods = '/api/v1/namespaces/default/pods';

const { server, kubelet, home } = await withPlayedNode({ dialect: 'kubernetes' });
const { clients, ours } = bothClients({ server, home });
afterEach(() => {
  home.terminal = {};
});

async function makePod(name: string): Promise<void> {
  const spec = { nodeName: 'n', containers: [{ name: 'p', image: 'i' }] };
  expect((await server.post(pods, { metadata: { name }, spec })).status).toBe(201);
}

type State = Readonly<Record<string, object>>;
const started: State = { running: { startedAt: '2026-01-01T00:00:00Z' } };
const ended: State = {
  terminated: { exitCode: 0, reason: 'Completed', finishedAt: '2026-01-01T00:00:00Z' },
};

/** Waits until the Pod has the container, then reports its states in order, like a kubelet. */
async function playDebugger(
  pod: () => Promise<string>,
  container: string,
  { list, states }: { readonly list: 'containers' | 'ephemeralContainers'; states: State[] },
): Promise<void> {
  let name = '';
  await eventually(async () => {
    name = await pod();
    const { body } = await server.get<ResponseOf<Pod>>(`${pods}/${name}`);
    const containers: { name: string }[] = body.spec?.[list] ?? [];
    return containers.some(({ name: listed }) => listed === container);
  }, container);
  const statuses = list === 'containers' ? 'containerStatuses' : 'ephemeralContainerStatuses';
  for (const state of states) {
    const isReady = state === started;
    const containerStatus = {
      name: container,
      image: 'i',
      imageID: '',
      ready: isReady,
      restartCount: 0,
      state,
    };
    const status = { phase: 'Running', [statuses]: [containerStatus] };
    const answer = await server.patch(`${pods}/${name}/status`, { status }, 'merge');
    expect(answer.status).toBe(200);
  }
}

const prompt = "If you don't see a command prompt, try pressing enter.\n";
const noTerminal = 'Unable to use a TTY - input is not a terminal or the right kind of file\n';

describe('debug with attach', () => {
  test('CLIENT-1: debug -i attaches to the ephemeral container once it runs', async () => {
    for (const [at, run] of clients.entries()) {
      const name = `e${at}`;
      await makePod(name);
      const playing = playDebugger(async () => name, 'd', {
        list: 'ephemeralContainers',
        states: [{ waiting: { reason: 'Pulling', message: 'the registry is slow' } }, started],
      });
      const outcome = await run(`debug ${name} --image=i -c d -i --profile=general`, 'hello\n');
      await playing;
      expect({ ...outcome, err: outcome.err.replace(/^Warning: .*\n/, '') }).toEqual({
        ...{ code: 0, out: 'hello\n', err: prompt },
      });
      expect(kubelet.requests.at(-1)).toContain(`/attach/default/${name}/d?`);
    }
  });

  test('CLIENT-1: debug -it needs a terminal and continues without one', async () => {
    for (const [at, run] of clients.entries()) {
      const name = `t${at}`;
      await makePod(name);
      const playing = playDebugger(async () => name, 'd', {
        list: 'ephemeralContainers',
        states: [started],
      });
      const outcome = await run(`debug ${name} --image=i -c d -it --profile=general`, 'hello\n');
      await playing;
      expect(outcome).toEqual({ code: 0, out: 'hello\n', err: `${noTerminal}${prompt}` });
    }
  });

  test('CLIENT-1: the terminal is raw meanwhile; a hint explains how to attach again', async () => {
    const calls: string[] = [];
    home.terminal = {
      terminal: {
        size: () => ({ columns: 100, rows: 40 }),
        setRaw: (isRaw) => void calls.push(`raw ${isRaw}`),
        onResize: () => () => {},
      },
    };
    await makePod('raw');
    const playing = playDebugger(async () => 'raw', 'd', {
      list: 'ephemeralContainers',
      states: [started],
    });
    const outcome = await ours('debug raw --image=i -c d -it --profile=general', 'typed');
    await playing;
    expect(outcome).toEqual({
      code: 0,
      out:
        'typedSession ended, the ephemeral container will not be restarted but may be ' +
        "reattached using 'svcctl attach raw -c d -i -t' if it is still running\n",
      err: prompt,
    });
    expect(calls).toEqual(['raw true', 'raw false']);
    expect(kubelet.requests.at(-1)).toContain('tty=1');
  });

  test('CLIENT-1: the log of an ended container is printed', async () => {
    for (const [at, run] of clients.entries()) {
      const name = `l${at}`;
      await makePod(name);
      const playing = playDebugger(async () => name, 'd', {
        list: 'ephemeralContainers',
        states: [ended],
      });
      const outcome = await run(`debug ${name} --image=i -c d --attach -q --profile=general`);
      await playing;
      expect(outcome).toEqual({ code: 0, out: 'a line\n', err: '' });
      expect(kubelet.requests.at(-1)).toContain(`/containerLogs/default/${name}/d`);
    }
  });

  test('CLIENT-1: debug attaches to a new or existing container of a copy', async () => {
    for (const [at, run] of clients.entries()) {
      await makePod(`c${at}`);
      for (const container of ['p', 'new']) {
        const copy = `copy-${container}-${at}`;
        const playing = playDebugger(async () => copy, container, {
          list: 'containers',
          states: [started],
        });
        const line = `debug c${at} -i -q --profile=general --image=i --same-node`;
        const outcome = await run(`${line} --copy-to=${copy} -c ${container}`, 'x\n');
        await playing;
        expect(outcome).toEqual({ code: 0, out: 'x\n', err: '' });
        expect(kubelet.requests.at(-1)).toContain(`/attach/default/${copy}/${container}?`);
      }
    }
  });

  test('CLIENT-1: debug node/x attaches to the Pod that it creates', async () => {
    for (const run of clients) {
      const nodePods = async () => {
        const { body } = await server.get(pods);
        const items: { metadata: { name: string } }[] = body.items;
        return items.map(({ metadata }) => metadata.name).filter((name) => /^node-deb/.test(name));
      };
      const playing = playDebugger(async () => (await nodePods())[0] ?? '', 'debugger', {
        list: 'containers',
        states: [started],
      });
      const { code, out, err } = await run('debug node/n -i --image=i --profile=general', 'x\n');
      await playing;
      expect({ code, err }).toEqual({ code: 0, err: prompt });
      const [name = ''] = await nodePods();
      expect(out).toBe(`Creating debugging pod ${name} with container debugger on node n.\nx\n`);
      const path = `${pods}/${name}?gracePeriodSeconds=0`;
      expect((await server.remove(path)).status).toBe(200);
    }
  });

  test('CLIENT-1: debug ends when the Pod is deleted before its container runs', async () => {
    // kubectl keeps waiting if its watch starts after the deletion.
    await makePod('gone');
    const debugging = ours('debug gone --image=i -c d -i -q --profile=general');
    await playDebugger(async () => 'gone', 'd', { list: 'ephemeralContainers', states: [] });
    expect((await server.remove(`${pods}/gone?gracePeriodSeconds=0`)).status).toBe(200);
    const { code, out, err } = await debugging;
    expect({ code, out }).toEqual({ code: 1, out: '' });
    expect(err).toMatch(/pods "gone" not found/);
  });
});

describe('arguments of debug', () => {
  test('CLIENT-1: the message names an invalid value or file', async () => {
    const text = home.write('text.json', '"text"');
    const broken = home.write('broken.yaml', 'a: [');
    const folder = home.folder;
    const failures = [
      ['--env=A', 'Error: invalid argument "A" for "--env" flag: A must be formatted as key=value'],
      [
        '--set-image=copy --copy-to=q',
        'Error: invalid argument "copy" for "--set-image" flag: copy must be formatted as key=value',
      ],
      [
        `--custom=${text}`,
        `error: ${text} does not contain a valid container spec: it is not an object`,
      ],
      [`--custom=${broken}`, `error: ${broken} does not contain a valid container spec: `],
      [
        `--custom=${folder}`,
        `error: must pass a container spec json file for custom profile: read ${folder}: is a directory`,
      ],
      ['--profile=', 'error: unknown profile: '],
    ] as const;
    for (const [flags, message] of failures) {
      const { code, out, err } = await ours(`debug p --image=i ${flags}`);
      expect({ code, out }).toEqual({ code: 1, out: '' });
      expect(err).toContain(message);
    }
  });
});

const spec = { containers: [{ name: 'p', image: 'i' }] };
/** Files that both clients read. */
const files = {
  'custom.json': {
    ...{ name: '', command: [], lifecycle: null },
    env: [{ name: 'B', value: '2' }],
    securityContext: { runAsUser: 7, capabilities: { add: ['SYS_TIME'] } },
  },
  'fixed.json': { image: 'other' },
  'empty.json': {},
  'pod.json': { ...{ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p' } }, spec },
};
const nodeFields =
  '{.spec.nodeName} {.spec.containers} {.spec.volumes} {.spec.tolerations} {.spec.restartPolicy} ' +
  '{.spec.hostPID} {.spec.hostIPC} {.spec.hostNetwork}';
/**
 * Creates a node debug Pod and prints its fields. Its name is random, so earlier ones are deleted
 * first.
 */
const nodePod = (flags: string): readonly Line[] => [
  ['delete pods -l none!=x --field-selector=spec.nodeName=@ns-node --grace-period=0 --force'],
  [`debug node/@ns-node -q --image=i ${flags}`],
  [
    `get pods --field-selector=spec.nodeName=@ns-node -o jsonpath=${nodeFields.replaceAll(/\{\.([^}]*)\}/g, '{.items[0].$1}').replaceAll(' ', '')}`,
  ],
];

const lines: readonly Line[] = [
  ['debug'],
  ['debug p'],
  ['debug p --image=UPPER!'],
  ['debug p --image=i --profile=none'],
  ['debug p --image=i --image-pull-policy=Sometimes'],
  ['debug p --image=i -t'],
  ['debug p --image=i --replace'],
  ['debug p --image=i --same-node'],
  ['debug p --set-image=a=b'],
  ['debug p --copy-to=q'],
  ['debug p --copy-to=q -- sh'],
  ['debug p --copy-to=q --image=i --target=p'],
  ['debug p --attach --copy-to=q --set-image=*=i'],
  ['debug none --image=i'],
  ['debug deployment/none --image=i'],
  ['debug p --image=i --custom=none.json'],
  ['debug configmap/m --image=i --profile=general'],
  ['debug p --image=i -c one --profile=general --env=A=1 -- sh -c true'],
  ['debug p --image=i -c two --profile=restricted --target=p --arguments-only -- a'],
  ['debug p --image=i -c three --profile=netadmin -q'],
  ['debug p --image=i -c four'],
  ['get pod p -o jsonpath={.spec.ephemeralContainers}'],
  ['debug p --image=i -c copy --copy-to=q1 --profile=general --same-node'],
  ['debug p --copy-to=q2 --set-image=*=other --keep-labels --profile=baseline'],
  ['debug p --copy-to=q3 -c p --profile=restricted -- sleep 1'],
  ['debug p --image=i -c copy --copy-to=q4 --share-processes=false'],
  ['get pods q1 q2 q3 q4 -o jsonpath={.items[*].spec.containers}'],
  ['get pods q1 q2 q3 q4 -o jsonpath={.items[*].spec.shareProcessNamespace}'],
  ['get pods q1 q2 q3 q4 -o jsonpath={.items[*].metadata.labels}'],
  ['debug p --image=i -c copy --copy-to=q5 --replace --profile=general'],
  ['get pod p'],
  ['debug q1 --image=i -c p -q --profile=general'],
  ['debug q1 --image=i -c a -q --profile=general'],
  ['debug q1 --image=i -c a -q --profile=general'],
  ['debug q1 --image=i -c b -q --profile=baseline --env=A=1 --image-pull-policy=Always'],
  ['debug q1 --image=i -c c -q --profile=sysadmin -i --attach=false'],
  ['debug q1 --image=i -c d -q --profile=general --env="A=1,B=2"'],
  ['debug q1 --image=i -c f -q --profile=general --env=B=1 --custom=@files/custom.json'],
  ['debug q1 --image=i -c g -q --profile=restricted --custom=@files/custom.json'],
  ['get pod q1 -o jsonpath={.spec.ephemeralContainers}'],
  ['debug q1 --image=i -q --custom=@files/fixed.json'],
  ['debug q1 --image=i -q --profile=general --custom=@files/empty.json --copy-to=q6 -c x'],
  ['debug q1 -q --profile=sysadmin --copy-to=q7 -c init --custom=@files/custom.json -- sh'],
  ['debug q1 --image=i -q --profile=general --copy-to=q1 -c x'],
  ['debug q1 -q --profile=general --copy-to=q8 --set-image=copy=UPPER!'],
  ['debug q1 -q --profile=general --copy-to=q8 --set-image=none=other'],
  ['debug q1 -q --profile=general --copy-to=q9 --set-image=copy=x,p=y'],
  ['debug q1 -q --profile=general --copy-to=q10 --image=z -c copy --arguments-only -- a b'],
  ['debug q1 -q --profile=netadmin --copy-to=q11 --image=z -c n --keep-annotations'],
  ['debug q1 -q --profile=sysadmin --copy-to=q12 --image=z -c n --keep-init-containers=false'],
  [
    'debug q0 -q --profile=general --copy-to=q13 --image=z -c n --keep-liveness ' +
      '--keep-readiness --keep-startup --keep-labels --same-node --share-processes',
  ],
  [
    'get pods q6 q8 q9 q10 q11 q12 q13 -o jsonpath={range.items[*]}{.metadata.labels}' +
      '{.metadata.annotations}{.spec.containers}{.spec.initContainers}{.spec.nodeName}{end}',
  ],
  ['debug -f @files/pod.json -q --image=i -c file --profile=general'],
  ['debug -f @files/pod.json -q --image=i -c file --profile=general --copy-to=q14'],
  ['get pod q14 -o jsonpath={.metadata.namespace}{.spec.containers}'],
  ['debug p -f @files/pod.json -q --image=i'],
  ['debug -f @files/none.json -q --image=i'],
  ['debug q0 q1 -q --image=i -c both --profile=general'],
  ['debug pod/q0 none -q --image=i -c more --profile=general'],
  ['debug service/s -q --image=i'],
  ['debug node/none -q --image=i'],
  ['debug node/@ns-node -q --image=i --copy-to=x'],
  ...nodePod('--profile=legacy'),
  ...nodePod('--profile=general -c shell --env=A=1 -- sh -c true'),
  ...nodePod('--profile=baseline --arguments-only -- a'),
  ...nodePod('--profile=restricted -i --attach=false -t'),
  ...nodePod('--profile=netadmin --image-pull-policy=Never'),
  ...nodePod('--profile=sysadmin --custom=@files/custom.json'),
];

const probe = { httpGet: { path: '/', port: 80 } };

async function prepare(server: TestServer, namespace: string): Promise<void> {
  const inside = `/api/v1/namespaces/${namespace}`;
  const pod = {
    metadata: { name: 'p', labels: { a: 'b' }, annotations: { c: 'd' } },
    spec: {
      containers: [
        { name: 'p', image: 'i', args: ['x'], livenessProbe: probe, readinessProbe: probe },
      ],
    },
  };
  const node = { metadata: { name: `${namespace}-node` } };
  expect((await server.post('/api/v1/nodes', node)).status).toBe(201);
  expect((await server.post(`${inside}/pods`, pod)).status).toBe(201);
  const rich = {
    metadata: { name: 'q0', labels: { a: 'b' }, annotations: { c: 'd' } },
    spec: {
      nodeName: node.metadata.name,
      initContainers: [{ name: 'init', image: 'i' }],
      containers: [
        {
          ...{ name: 'p', image: 'i', args: ['x'] },
          ...{ livenessProbe: probe, readinessProbe: probe, startupProbe: probe },
          securityContext: { runAsUser: 3, capabilities: { add: ['SYS_ADMIN'] } },
        },
      ],
    },
  };
  expect((await server.post(`${inside}/pods`, rich)).status).toBe(201);
  const service = { metadata: { name: 's' }, spec: { ports: [{ port: 80 }] } };
  expect((await server.post(`${inside}/services`, service)).status).toBe(201);
  expect((await server.post(`${inside}/configmaps`, { metadata: { name: 'm' } })).status).toBe(201);
}

printsLikeKubectl('debug', lines, { prepare, files });
