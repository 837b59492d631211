// Runs a script in a network namespace of its own, whose addresses of Pods and Services are local.
import { spawnSync } from 'node:child_process';

const marker = 'PEERS_NETWORK';
/** Programs in other namespaces reach each other through this one. */
const setup = `
sysctl=/proc/sys/net/ipv4
echo 1 > $sysctl/ip_forward && echo 1 > $sysctl/conf/all/proxy_arp && ip link set lo up || exit 1
for range in $1; do ip route add local $range dev lo || exit 1; done
shift; exec "$@"
`;

/**
 * Whether this process runs in such a namespace. If not, runs the script again inside one and exits
 * with its exit code.
 * @param options.addresses ranges of addresses that are local; the others lead nowhere
 */
export function inOwnNetwork({ addresses = ['10.0.0.0/8'] } = {}) {
  if (process.env[marker] === 'own') return true;
  const separate = ['--map-root-user', '--net', '--pid', '--fork', '--kill-child', '--mount-proc'];
  const again = [process.execPath, ...process.argv.slice(1)];
  const ran = spawnSync(
    'unshare',
    [...separate, 'sh', '-c', setup, 'sh', addresses.join(' '), ...again],
    {
      stdio: 'inherit',
      env: { ...process.env, [marker]: 'own' },
    },
  );
  if (ran.error !== undefined) console.log(`skipped: needs unshare and ip: ${ran.error.message}`);
  process.exitCode = ran.status ?? 1;
  return false;
}
