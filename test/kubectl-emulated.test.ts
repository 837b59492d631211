import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { writeAdminKubeconfig } from '../src/server/admin-kubeconfig.ts';
import { adminToken, startTestServer, type TestServer } from './harness.ts';

const kubectlIsHere = spawnSync('kubectl', ['version', '--client']).status === 0;

let server: TestServer;
let directory: string;
beforeAll(async () => {
  if (!kubectlIsHere) return;
  directory = mkdtempSync(join(tmpdir(), 'wheelhouse-kubectl-emulated-'));
  server = await startTestServer({ dialect: 'kubernetes', emulatedMinor: 21 });
  const { url, caPem } = server.server;
  writeAdminKubeconfig({
    path: join(directory, 'config'),
    server: url,
    ...(caPem === undefined ? {} : { caPem }),
    credential: { token: adminToken },
    context: 'test',
  });
});
afterAll(async () => {
  if (!kubectlIsHere) return;
  await server.stop();
  rmSync(directory, { recursive: true, force: true });
});

function kubectl(line: string, stdin = ''): Promise<{ code: number | null; out: string }> {
  const env = {
    ...process.env,
    HOME: directory,
    KUBECONFIG: join(directory, 'config'),
    KUBECACHEDIR: join(directory, 'cache'),
  };
  const child = spawn('kubectl', line.split(' '), { env });
  let out = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk) => {
      out += chunk;
    });
  }
  child.stdin.end(stdin);
  return new Promise((resolve) => {
    child.on('close', (code) => resolve({ code, out }));
  });
}

test.skipIf(!kubectlIsHere)(
  'VER-2: kubectl applies an old manifest to an emulated release, and reads it as the new',
  async () => {
    const manifest = {
      apiVersion: 'extensions/v1beta1',
      kind: 'Ingress',
      metadata: { name: 'old' },
      spec: { backend: { serviceName: 'a', servicePort: 80 } },
    };
    const applied = await kubectl('apply -f -', JSON.stringify(manifest));
    expect(applied.out).toContain('ingress.extensions/old created');
    expect(applied.out).toContain(
      'Warning: extensions/v1beta1 Ingress is deprecated in v1.14+, unavailable in v1.22+; use networking.k8s.io/v1 Ingress',
    );
    const path = '{.spec.defaultBackend.service.port.number}';
    const read = await kubectl(`get ingresses.v1.networking.k8s.io old -o jsonpath=${path}`);
    expect(read).toEqual({ code: 0, out: '80' });
    const again = await kubectl(
      'apply --server-side --force-conflicts -f -',
      JSON.stringify(manifest),
    );
    expect(again.out).toContain('ingress.extensions/old serverside-applied');
    const versions = (await kubectl('api-versions')).out.split('\n');
    expect(versions).toContain('policy/v1beta1');
    expect(versions).not.toContain('apps/v1beta1');
  },
  60_000,
);
