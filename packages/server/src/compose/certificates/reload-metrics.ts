import { createHash } from 'node:crypto';
import { hostname } from 'node:os';
import type { Clock, MetricRegistry } from '@wheelhouse/machinery';

/** Counts one reload of a file; made once for each controller of a registry. */
export type CountReload = (status: 'success' | 'failure') => void;

/**
 * The metrics of reloads of a file of configuration (AUTHN-8), named by what upstream calls its
 * controller: `authentication_config_controller`. `what` stands in their help.
 */
export function createReloadMetrics(
  registry: MetricRegistry,
  options: { readonly controller: string; readonly what: string; readonly clock: Clock },
): CountReload {
  const { controller, what, clock } = options;
  const labels = ['status', 'apiserver_id_hash'];
  const split = `of ${what} split by status and apiserver identity.`;
  const total = registry.counter({
    name: `apiserver_${controller}_automatic_reloads_total`,
    help: `Total number of automatic reloads ${split}`,
    stability: 'ALPHA',
    labels,
  });
  const last = registry.gauge({
    name: `apiserver_${controller}_automatic_reload_last_timestamp_seconds`,
    help: `Timestamp of the last automatic reload ${split}`,
    stability: 'ALPHA',
    labels,
  });
  const identity = identityHash();
  return (status) => {
    total.of(status, identity).add(1);
    last.of(status, identity).set(clock.now() / 1000);
  };
}

/** Which server of several the numbers are of: a digest of the host's name, as upstream has it. */
function identityHash(): string {
  const host = createHash('sha256').update(hostname()).digest().subarray(0, 16);
  const identity = `apiserver-${base32(host)}`;
  return `sha256:${createHash('sha256').update(identity).digest('hex')}`;
}

const base32Digits = 'abcdefghijklmnopqrstuvwxyz234567';

function base32(bytes: Buffer): string {
  const bits = [...bytes].map((byte) => byte.toString(2).padStart(8, '0')).join('');
  const groups = bits.match(/.{1,5}/g) ?? [];
  return groups.map((group) => base32Digits[Number.parseInt(group.padEnd(5, '0'), 2)]).join('');
}
