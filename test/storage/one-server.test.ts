import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, expect, test } from 'vitest';
import { temporaryFolder, untilEnd } from '../support/cleanup.ts';
import { configMap, connect } from '../support/harness.ts';
import { buildPrograms, run, startProcess } from '../support/program.ts';

/** Like a container: the server is process 1 of its own PID namespace, with its own host name. */
const container = (host: string): string[] => [
  ...['unshare', '--pid', '--uts', '--fork', '--mount-proc', '--kill-child'],
  ...['sh', '-c', `hostname ${host} && exec "$@"`, 'sh'],
];

const programs = await untilEnd(buildPrograms());
let dataDir: string;
beforeEach(() => {
  dataDir = temporaryFolder();
});

const start = (host: string) =>
  untilEnd(startProcess(programs, { dataDir, within: container(host) }));

test('CLIENT-2: a data directory of the other dialect is rejected and not changed', async () => {
  const first = await untilEnd(startProcess(programs, { dataDir }));
  first.child.kill('SIGTERM');
  await first.exited;
  const flags = ['--dialect=kubernetes'];
  const problem = `data directory ${dataDir} contains objects of --dialect=svc: use that dialect or another --data-dir`;
  await expect(startProcess(programs, { dataDir, flags })).rejects.toThrow(problem);
  const again = await untilEnd(startProcess(programs, { dataDir }));
  await again.logged('ready');
});

test('TRUST-7: two containers cannot share a directory, and a crash needs no cleanup', async ({
  skip,
}) => {
  const [command = '', ...args] = container('probe');
  if (spawnSync(command, [...args, 'true']).status !== 0) {
    skip('this user may not create PID and UTS namespaces here');
  }
  const first = await start('first');
  const client = connect(first.url);
  const path = '/api/v1/namespaces/default/configmaps';
  const options = { token: first.token, body: configMap('kept') };
  expect((await client.calls.request('POST', path, options)).status).toBe(201);
  client.close();
  const second = start('second');
  await expect(second).rejects.toThrow(/is in use by process 1 on host first since /);
  const to = join(dataDir, 'backup');
  const backup = await run(programs.wheelhouse, ['backup', `--data-dir=${dataDir}`, `--to=${to}`]);
  expect(backup.stderr).toContain('is in use by process 1 on host first');
  const restoreArgs = [`--data-dir=${dataDir}`, `--from=${to}`];
  writeFileSync(to, '');
  const restore = await run(programs.wheelhouse, ['restore', ...restoreArgs]);
  expect(restore.stderr).toContain('is in use by process 1 on host first');

  first.child.kill('SIGKILL');
  await first.exited;
  // The name of the dead process remains but says nothing about the lock.
  expect(readFileSync(join(dataDir, 'store', 'lock'), 'utf8')).toContain('"host":"first"');
  const third = await start('third');
  const again = connect(third.url);
  const found = await again.calls.get(`${path}/kept`, { token: third.token });
  expect(found.status).toBe(200);
  again.close();
}, 60_000);
