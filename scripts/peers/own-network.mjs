// Runs a script in a network namespace of its own, whose addresses of Pods and Services are local.
import { spawnSync } from 'node:child_process';

const marker = 'PEERS_NETWORK';
const setup = 'ip link set lo up && ip route add local 10.0.0.0/8 dev lo && exec "$@"';

/**
 * Whether this process runs in such a namespace. If not, runs the script again inside one and exits
 * with its exit code.
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
