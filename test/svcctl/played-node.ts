import { mustCreate } from '../authentication/token-users.ts';
import { temporaryFolder, untilEnd } from '../support/cleanup.ts';
import type { ConfigChange, TestServer } from '../support/harness.ts';
import { kubectlIsHere, kubectlOf } from '../support/kubectl.ts';
import { startKubelet } from '../support/kubelet.ts';
import { playContainers } from '../support/played-containers.ts';
import { withServer } from '../support/with-server.ts';
import { type Outcome, type SvcctlHome, svcctlFor } from './svcctl-run.ts';

/**
 * Starts a server with a node `n`, whose kubelet runs commands of containers as local processes in
 * the folder `inside`, until the test or file ends.
 */
export async function withPlayedNode(change?: ConfigChange) {
  const inside = temporaryFolder();
  const [server, kubelet] = await Promise.all([withServer(change), untilEnd(startKubelet())]);
  const played = playContainers(kubelet, inside);
  await mustCreate(server, '/api/v1/nodes', {
    metadata: { name: 'n' },
    status: {
      addresses: [{ type: 'InternalIP', address: '127.0.0.1' }],
      daemonEndpoints: { kubeletEndpoint: { Port: kubelet.port } },
    },
  });
  return { server, kubelet, inside, played, home: untilEnd(svcctlFor(server)) };
}

/** svcctl and, where it is installed, kubectl, which run lines in the same way. */
export function bothClients(on: { readonly server: TestServer; readonly home: SvcctlHome }) {
  const client = untilEnd(kubectlOf(on.server));
  const ours = (line: string, stdin = '') => on.home.run(line.split(' '), stdin);
  const theirs = async (line: string, stdin = ''): Promise<Outcome> => {
    const { code, stdout, stderr } = await client.run(line.split(' '), { stdin });
    return { code: code ?? 1, out: stdout, err: stderr };
  };
  return { client, ours, theirs, clients: kubectlIsHere ? [ours, theirs] : [ours] };
}
