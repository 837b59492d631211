import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import { eventually } from '../support/harness.ts';
import { kubectlIsHere } from '../support/kubectl.ts';
import { bothClients, withPlayedNode } from './played-node.ts';
import { replaceIn } from './svcctl-run.ts';

const pods = '/api/v1/namespaces/default/pods';

const { server, kubelet, inside, played, home } = await withPlayedNode({ dialect: 'kubernetes' });
const { client, clients, ours, theirs } = bothClients({ server, home });
afterEach(() => {
  played.failing.isCutOff = false;
  home.edit = () => {};
});

const ready = { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] };
const ended = (exitCode: number) => ({
  phase: exitCode === 0 ? 'Succeeded' : 'Failed',
  conditions: [{ type: 'Ready', status: 'False' }],
  containerStatuses: [
    {
      ...{ name: 'p', image: 'i', imageID: '', ready: false, restartCount: 0 },
      state: { terminated: { exitCode, reason: 'Error', message: 'disk full' } },
    },
  ],
});

/** Binds the Pod to the node once it exists, then reports its statuses in order, like a kubelet. */
async function playPod(name: string, ...states: readonly object[]): Promise<void> {
  await eventually(async () => (await server.get(`${pods}/${name}`)).status === 200, name);
  const binding = { metadata: { name }, target: { kind: 'Node', name: 'n' } };
  expect((await server.post(`${pods}/${name}/binding`, binding)).status).toBe(201);
  for (const [at, status] of states.entries()) {
    // The next state follows after the client attaches.
    const path = `/attach/default/${name}/`;
    const isAttached = () => kubelet.requests.some((request) => request.includes(path));
    if (at > 0) await eventually(async () => isAttached(), `a client of ${name}`);
    const { status: code } = await server.patch(`${pods}/${name}/status`, { status }, 'merge');
    expect(code).toBe(200);
  }
}

const prompt = "If you don't see a command prompt, try pressing enter.\n";

describe('run with attach', () => {
  test('CLIENT-1: run -i forwards standard input, and --rm deletes the Pod', async () => {
    for (const run of clients) {
      kubelet.requests.length = 0;
      const playing = playPod('p', ready, ended(0));
      const outcome = await run('run p --image=i -i --rm --restart=Never', 'hello\n');
      await playing;
      expect(outcome).toEqual({ code: 0, out: 'hello\npod "p" deleted\n', err: prompt });
      expect((await server.get(`${pods}/p`)).status).toBe(404);
    }
  });

  test('CLIENT-1: run --attach exits with the code of a failed Pod', async () => {
    for (const [at, run] of clients.entries()) {
      kubelet.requests.length = 0;
      const playing = playPod(`f${at}`, ready, ended(3));
      const outcome = await run(`run f${at} --image=i --attach --restart=Never`);
      await playing;
      const err = `${prompt}pod default/f${at} terminated (Error)\ndisk full\n`;
      expect(outcome).toEqual({ code: 3, out: '', err });
    }
  });

  test('CLIENT-1: run --rm succeeds if an object is already gone', async () => {
    const service = '/api/v1/namespaces/default/services/g';
    const playing = (async () => {
      await eventually(async () => (await server.get(service)).status === 200, service);
      await server.remove(service);
      await playPod('g', ended(0));
    })();
    const outcome = await ours('run g --image=i --attach --rm --restart=Never --expose --port=80');
    await playing;
    const out = 'service/g created\na line\npod "g" deleted\n';
    expect(outcome).toEqual({ code: 0, out, err: '' });
  });

  test('CLIENT-1: the log of a Pod that already ended is printed', async () => {
    for (const [at, run] of clients.entries()) {
      const playing = playPod(`e${at}`, ended(0));
      const outcome = await run(`run e${at} --image=i --attach --quiet --restart=OnFailure`);
      await playing;
      expect(outcome).toEqual({ code: 0, out: 'a line\n', err: '' });
    }
  });

  test('CLIENT-1: run --attach reports late Pods and conflicting flags', async () => {
    for (const [at, run] of clients.entries()) {
      const late = `run l${at} --image=i --attach --rm --pod-running-timeout=300ms`;
      expect(await run(late)).toEqual({
        code: 1,
        out: `pod "l${at}" deleted\n`,
        err: 'error: timed out waiting for the condition\n',
      });
      expect((await server.get(`${pods}/l${at}`)).status).toBe(404);
      const { code, err } = await run('run x --image=i --attach --dry-run=server');
      expect(code).toBe(1);
      expect(err).toContain("error: --dry-run=[server|client] can't be used with attached");
      const alone = await run('run x --image=i --rm');
      expect(alone.err).toContain('error: --rm should only be used for attached containers\n');
    }
  });
});

describe('cp and exec', () => {
  beforeAll(async () => {
    const spec = { nodeName: 'n', containers: [{ name: 'p', image: 'i' }] };
    await server.post(pods, { metadata: { name: 'box' }, spec });
    await server.patch(`${pods}/box/status`, { status: ready }, 'merge');
  });

  test.runIf(kubectlIsHere)('CLIENT-2: unmodified kubectl copies both ways', async () => {
    const [source, back] = ['source', 'back'].map((name) => join(client.directory, name));
    const large = Buffer.alloc(2_000_000, 'wheelhouse');
    writeFileSync(source ?? '', large);
    expect(await theirs(`cp ${source} box:copied`)).toMatchObject({ code: 0, err: '' });
    expect(readFileSync(join(inside, 'copied')).equals(large)).toBe(true);
    expect(await theirs(`cp box:copied ${back}`)).toMatchObject({ code: 0, err: '' });
    expect(readFileSync(back ?? '').equals(large)).toBe(true);
    expect(await theirs('exec box -- sh -c exit_3')).toMatchObject({ code: 127 });
  });

  test('CLIENT-1: cp --retries resumes an interrupted copy', async () => {
    const text = 'a line of the ship’s log\n'.repeat(4000);
    writeFileSync(join(inside, "ship's log"), text);
    played.failing.isCutOff = true;
    const copying = home.run(['cp', "box:ship's log", 'log', '--retries=2']);
    const { code, out, err } = await copying;
    expect(out).toMatch(/^Resuming copy at \d+ bytes, retry 1\/2\nResuming copy at \d+ bytes, re/);
    expect(out).toMatch(/Dropping out copy after 2 retries\n$/);
    expect({ code, err }).toMatchObject({ code: 1, err: expect.stringContaining('container') });
    // Every byte arrived exactly once.
    expect(readFileSync(join(home.folder, 'log'), 'utf8')).toBe(text);
    played.failing.isCutOff = false;
    expect(await home.run(['cp', "box:ship's log", 'again', '--retries=-1'])).toEqual({
      ...{ code: 0, out: '', err: '' },
    });
    expect(readFileSync(join(home.folder, 'again'), 'utf8')).toBe(text);
  });
});

describe('create --edit and diff --prune', () => {
  const map = (name: string, data: object) => ({
    ...{ apiVersion: 'v1', kind: 'ConfigMap' },
    metadata: { name, labels: { app: 'prune' } },
    data,
  });
  const maps = '/api/v1/namespaces/default/configmaps';

  test('CLIENT-1: create --edit creates the edited file', async () => {
    const text = JSON.stringify(map('edited', { a: 'before' }));
    home.edit = (file) => replaceIn(file, 'before', 'after');
    expect(await home.run('create --edit -f -', text)).toEqual({
      code: 0,
      out: 'configmap/edited created\n',
      err: '',
    });
    expect((await server.get(`${maps}/edited`)).body.data).toEqual({ a: 'after' });
    const again = await home.run('create --edit -f -', text);
    expect(again.code).toBe(1);
    expect(again.err).toMatch(
      /^A copy of your changes has been stored to "\S+"\n.*already exists/s,
    );
    rmSync(/"(\S+)\/[^/]+"/.exec(again.err)?.[1] ?? '', { recursive: true });
    home.edit = () => {};
    const unchanged = await home.run('create --edit -f -', JSON.stringify(map('kept', {})));
    expect(unchanged).toEqual({ code: 0, out: '', err: 'Edit cancelled, no changes made.\n' });
    expect((await server.get(`${maps}/kept`)).status).toBe(404);
  });

  test('CLIENT-1: diff --prune shows what apply --prune would delete', async () => {
    const two = JSON.stringify(map('two', {}));
    const one = JSON.stringify(map('one', { a: '1' }));
    const both = `---\n${one}\n---\n${two}`;
    const apply = 'apply --server-side=false -f -';
    const diff = 'diff --server-side=false --prune -l app=prune';
    const kind = '--prune-allowlist=core/v1/ConfigMap';
    expect((await ours(apply, both)).code).toBe(0);
    for (const run of clients) {
      const { code, out } = await run(`${diff} ${kind} -f -`, one);
      expect(code).toBe(1);
      expect(out).toMatch(/^-\s+name: two$/m);
      expect(out).not.toContain('name: one');
      expect(await run(`${diff} ${kind} -f -`, both)).toEqual({ code: 0, out: '', err: '' });
    }
    const { code, err } = await ours(`${diff} --prune-allowlist=v1/ConfigMap -f -`, one);
    expect({ code, err }).toEqual({
      code: 2,
      err: 'error: invalid GroupVersionKind format: v1/ConfigMap, please follow <group/version/kind>\n',
    });
    expect((await server.get(`${maps}/two`)).status).toBe(200);
  });
});
