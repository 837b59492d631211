import { mustCreate } from '../authentication/token-users.ts';
import { temporaryFolder, untilEnd } from '../support/cleanup.ts';
import type { ConfigChange } from '../support/harness.ts';
import { startKubelet } from '../support/kubelet.ts';
import { playContainers } from '../support/played-containers.ts';
import { withServer } from '../support/with-server.ts';
import { svcctlFor } from './svcctl-run.ts';

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
