import { execFile } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { stop } from 'esbuild';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { connect } from '../support/harness.ts';
import {
  buildPrograms,
  type Programs,
  type ServerProcess,
  startProcess,
} from '../support/program.ts';

const execute = promisify(execFile);
/** Some distributions build Node without room for another program. */
const isPossible = readFileSync(process.execPath).includes('NODE_SEA_FUSE_');

describe.skipIf(!isPossible)('the single executable', () => {
  const folder = mkdtempSync(join(tmpdir(), 'wheelhouse-executable-'));
  const program = join(folder, 'wheelhouse');
  const running: ServerProcess[] = [];
  let programs: Programs;

  beforeAll(async () => {
    programs = await buildPrograms();
    const script = JSON.stringify(new URL('../../scripts/executable.mjs', import.meta.url).href);
    const options = JSON.stringify({ outfile: program, built: dirname(programs.console) });
    const code = `import(${script}).then((script) => script.buildExecutable(${options}))`;
    // A process of its own, because the library that writes the file keeps 700 MB.
    await execute(process.execPath, ['-e', code]);
  }, 240_000);
  afterEach(async () => {
    for (const server of running.splice(0)) await server.remove();
  });
  afterAll(async () => {
    programs?.remove();
    rmSync(folder, { recursive: true, force: true });
    // Its service would keep its memory as long as the process, which runs more files.
    await stop();
  });

  async function start(options: { readonly flags?: readonly string[]; dataDir?: string } = {}) {
    // Uses only its own file: no Node on the path, no packages beside it, and an empty home
    // directory.
    const env = { PATH: '/nonexistent', HOME: folder, TMPDIR: folder };
    const server = await startProcess(programs, { ...options, program: [program], env });
    running.push(server);
    return server;
  }

  test('PLANE-7: it serves the API from a data directory until it is signaled', async () => {
    const dataDir = join(folder, 'data');
    const first = await start({ dataDir });
    const { calls, close } = connect(first.url);
    const map = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'kept' } };
    const path = '/api/v1/namespaces/default/configmaps';
    const created = await calls.post(path, map, { token: first.token });
    expect(created.status).toBe(201);
    close();
    first.child.kill('SIGTERM');
    expect(await first.exited).toBe(0);
    const second = await start({ dataDir });
    const after = connect(second.url);
    const read = await after.calls.get(`${path}/kept`, { token: second.token });
    expect(read.body.metadata).toMatchObject({ uid: created.body.metadata.uid });
    const page = await after.calls.get('/console/');
    expect(page.status).toBe(200);
    after.close();
    const refused = execute(program, ['serve', '--secure-port=0', `--data-dir=${dataDir}`]);
    await expect(refused).rejects.toMatchObject({ code: 1 });
    expect(readdirSync(folder).filter((name) => name.startsWith('wheelhouse-addon-'))).toEqual([]);
  }, 60_000);

  test('PLANE-7: it includes svcctl', async () => {
    const server = await start();
    const { stdout } = await execute(program, [
      'svcctl',
      `--kubeconfig=${server.kubeconfig}`,
      'get',
      'namespaces',
      '-o',
      'name',
    ]);
    expect(stdout).toContain('namespace/default\n');
    const unknown = execute(program, ['svcctl', 'frobnicate']);
    await expect(unknown).rejects.toMatchObject({
      code: 1,
      stderr: expect.stringContaining('unknown command "frobnicate"'),
    });
  }, 60_000);

  test('PLANE-7: the envtest programs that it writes start it', async () => {
    const assets = join(folder, 'assets');
    await execute(program, ['envtest-assets', assets]);
    const { stdout } = await execute(join(assets, 'kube-apiserver'), ['--version']);
    expect(stdout).toMatch(/^Kubernetes v1\.32\.|^Wheelhouse/);
    const client = await execute(join(assets, 'kubectl'), ['version', '--client']);
    expect(client.stdout).toContain('Client Version');
  }, 60_000);

  test('an unknown flag stops it with one line', async () => {
    const refused = execute(program, ['serve', '--no-such-flag']);
    await expect(refused).rejects.toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^error: .*no-such-flag.*\n$/),
    });
  });
});
