import { hostname } from 'node:os';
import { IdentityLease } from '../../controllers/identity/identity-lease.ts';
import type { LegacyTokenTracking } from '../../controllers/identity/legacy-token-tracking.ts';
import { defaultGates } from '../apis/feature-gates.ts';
import type { Around } from '../context.ts';
import { insideAs, runs } from '../service-accounts/token-use.ts';

/** The Lease of this server; undefined where its gate or `--controllers` turns it off. */
export function ownLease({ config, dialect, api }: Around): IdentityLease | undefined {
  const { clock, logger, featureGates = defaultGates } = config;
  const leases = api.catalogue.snapshot().builtin(dialect.group('coordination'), 'leases');
  const isOn =
    featureGates.enabled('APIServerIdentity') && runs(config, 'identity-lease-controller');
  if (!isOn || leases === undefined) return undefined;
  const { caches } = api.registry;
  const inside = insideAs({ dialect, registry: api.registry });
  return new IdentityLease({
    leases,
    caches,
    inside,
    dialect,
    clock,
    logger,
    hostname: hostname(),
  });
}

/** What tracks legacy tokens works with; undefined where `--controllers` leaves it out. */
export function tokenTracking({ config, dialect, api }: Around): LegacyTokenTracking | undefined {
  const { clock, logger } = config;
  const configMaps = api.catalogue.snapshot().builtin('', 'configmaps');
  const isOn = runs(config, 'legacy-token-tracking-controller');
  if (!isOn || configMaps === undefined) return undefined;
  const { caches } = api.registry;
  const { queues } = api;
  return {
    configMaps,
    caches,
    inside: insideAs({ dialect, registry: api.registry }),
    dialect,
    clock,
    logger,
    queues,
  };
}
