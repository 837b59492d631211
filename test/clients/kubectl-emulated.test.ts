import { expect, test } from 'vitest';
import { untilEnd } from '../support/cleanup.ts';
import { kubectlIsHere, kubectlOf } from '../support/kubectl.ts';
import { withServer } from '../support/with-server.ts';

const server = await withServer({ dialect: 'kubernetes', emulatedMinor: 21 });
const client = untilEnd(kubectlOf(server));

const kubectl = (line: string, stdin = '') => client.run(line.split(' '), { stdin });

test.skipIf(!kubectlIsHere)(
  'VER-2: kubectl applies an old manifest to an emulated release and reads the new version',
  async () => {
    const manifest = {
      apiVersion: 'extensions/v1beta1',
      kind: 'Ingress',
      metadata: { name: 'old' },
      spec: { backend: { serviceName: 'a', servicePort: 80 } },
    };
    const applied = await kubectl('apply -f -', JSON.stringify(manifest));
    expect(applied.stdout).toContain('ingress.extensions/old created');
    expect(applied.stderr).toContain(
      'Warning: extensions/v1beta1 Ingress is deprecated in v1.14+, unavailable in v1.22+; use networking.k8s.io/v1 Ingress',
    );
    const path = '{.spec.defaultBackend.service.port.number}';
    const read = await kubectl(`get ingresses.v1.networking.k8s.io old -o jsonpath=${path}`);
    expect(read).toEqual({ code: 0, stdout: '80', stderr: '' });
    const again = await kubectl(
      'apply --server-side --force-conflicts -f -',
      JSON.stringify(manifest),
    );
    expect(again.stdout).toContain('ingress.extensions/old serverside-applied');
    const versions = (await kubectl('api-versions')).stdout.split('\n');
    expect(versions).toContain('policy/v1beta1');
    expect(versions).not.toContain('apps/v1beta1');
  },
  60_000,
);
