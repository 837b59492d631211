// Starts kube-controller-manager and kube-scheduler against a server.
import { join } from 'node:path';
import { programPath, startProgram } from './servers.mjs';

const manager = programPath({
  variable: 'KUBE_CONTROLLER_MANAGER',
  name: 'kube-controller-manager',
});
const scheduler = programPath({ variable: 'KUBE_SCHEDULER', name: 'kube-scheduler' });

/** Whether kube-controller-manager is installed. */
export const haveManager = manager !== undefined;
/** Whether both programs are installed. */
export const haveControllers = haveManager && scheduler !== undefined;

/** Starts kube-controller-manager with a server's credentials and additional flags. */
export function startManager(server, { flags = [] } = {}) {
  const at = (name) => join(server.directory, name);
  const signing = [
    `--service-account-private-key-file=${at('sa.key')}`,
    `--root-ca-file=${at('ca.crt')}`,
    `--cluster-signing-cert-file=${at('ca.crt')}`,
    `--cluster-signing-key-file=${at('ca.key')}`,
    '--use-service-account-credentials=true',
    // A controller of one vendor's build only, for which other servers have no role.
    '--controllers=*,-service-ca-certificate-publisher-controller',
  ];
  const args = [...commonFlags(server), ...signing, ...flags];
  return startProgram({ command: manager, args, log: at('manager.log') });
}

function commonFlags({ kubeconfig }) {
  return [
    `--kubeconfig=${kubeconfig}`,
    `--authentication-kubeconfig=${kubeconfig}`,
    `--authorization-kubeconfig=${kubeconfig}`,
    '--bind-address=127.0.0.1',
    '--secure-port=0',
  ];
}

/**
 * Starts both programs with a server's credentials.
 *
 * @param options.flags additional flags of kube-controller-manager
 * @param options.election `off` for programs that must continue when a busy machine keeps them from
 * renewing their leases
 * @returns the programs, the paths of their logs, and `stop`
 */
export function startControllers(server, { flags = [], election = 'on' } = {}) {
  const at = (name) => join(server.directory, name);
  const logs = { manager: at('manager.log'), scheduler: at('scheduler.log') };
  const elected = `--leader-elect=${election === 'on'}`;
  const args = [...commonFlags(server), elected];
  const programs = [
    startManager(server, { flags: [elected, ...flags] }),
    startProgram({ command: scheduler, args, log: logs.scheduler }),
  ];
  const stop = async () => {
    for (const program of programs) await program.stop();
  };
  return { programs, logs, stop };
}
