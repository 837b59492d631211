// Runs a script in a network namespace where the addresses of Pods and Services are its own.
import { spawnSync } from 'node:child_process';

const marker = 'PEERS_NETWORK';
const setup = 'ip link set lo up && ip route add local 10.0.0.0/8 dev lo && exec "$@"';

/**
 * Whether this process is in such a network. Where it is not, the script runs again inside one, and
 * its exit code becomes this process's.
 */
export function inOwnNetwork() {
  if (process.env[marker] === 'own') return true;
  const separate = ['--map-root-user', '--net', '--pid', '--fork', '--kill-child'];
  const again = [process.execPath, ...process.argv.slice(1)];
  const ran = spawnSync('unshare', [...separate, 'sh', '-c', setup, 'sh', ...again], {
    stdio: 'inherit',
    env: { ...process.env, [marker]: 'own' },
  });
  if (ran.error !== undefined) console.log(`skipped: needs unshare and ip: ${ran.error.message}`);
  process.exitCode = ran.status ?? 1;
  return false;
}
