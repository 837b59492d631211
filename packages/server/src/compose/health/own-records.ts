import { hostname } from 'node:os';
import { IdentityLease } from '../../controllers/identity/identity-lease.ts';
import type { LegacyTokenTracking } from '../../controllers/identity/legacy-token-tracking.ts';
import { controllerTools } from '../../controllers/inside.ts';
import { defaultGates } from '../apis/feature-gates.ts';
import type { Around } from '../context.ts';
import { ownUser, runs } from '../service-accounts/token-use.ts';

/** The Lease of this server; undefined where its gate or `--controllers` turns it off. */
export function ownLease(around: Around): IdentityLease | undefined {
  const { config, dialect, api } = around;
  const { featureGates = defaultGates } = config;
  const leases = api.catalogue.snapshot().builtin(dialect.group('coordination'), 'leases');
  const isOn =
    featureGates.enabled('APIServerIdentity') && runs(config, 'identity-lease-controller');
  if (!isOn || leases === undefined) return undefined;
  const tools = controllerTools(around, ownUser(dialect));
  return new IdentityLease({ ...tools, leases, dialect, hostname: hostname() });
}

/** What tracks legacy tokens works with; undefined where `--controllers` leaves it out. */
export function tokenTracking(around: Around): LegacyTokenTracking | undefined {
  const { config, dialect, api } = around;
  const configMaps = api.catalogue.snapshot().builtin('', 'configmaps');
  const isOn = runs(config, 'legacy-token-tracking-controller');
  if (!isOn || configMaps === undefined) return undefined;
  return { ...controllerTools(around, ownUser(dialect)), configMaps, dialect };
}
