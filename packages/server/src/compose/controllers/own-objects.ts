import { hostname } from 'node:os';
import { defaultServiceRanges, readServiceRanges } from '@wheelhouse/kinds';
import type { ApiObject, Dialect } from '@wheelhouse/machinery';
import type { Store } from '@wheelhouse/store';
import { requiredKind } from '../../catalogue/catalogue.ts';
import {
  type ApiServicesOptions,
  createApiServices,
} from '../../controllers/aggregation/api-services.ts';
import { IdentityLease } from '../../controllers/identity/identity-lease.ts';
import {
  type LegacyTokenTracking,
  type RecordTokenUse,
  tokenUseRecorder,
} from '../../controllers/identity/legacy-tokens.ts';
import {
  createDefaultService,
  type ServerPeers,
  startDefaultService,
} from '../../controllers/services/default-service.ts';
import {
  type ControllerTools,
  controllerTools,
  createObjectWriter,
  type WriterIdentity,
} from '../../controllers/tools.ts';
import { defaultGates } from '../../flags/feature-gates.ts';
import { serverContext } from '../../registry/registry.ts';
import type { ServerConfig } from '../config.ts';
import type { Around } from '../context.ts';
import { reachableAddress } from '../serving/listen.ts';
import { runsController, runsManager } from './settings.ts';

/** This server's identity Lease; undefined if its gate or `--controllers` disables it. */
export function ownLease(around: Around): IdentityLease | undefined {
  const { config, dialect, api } = around;
  const { featureGates = defaultGates } = config;
  const leases = api.catalogue.snapshot().builtin(dialect.group('coordination'), 'leases');
  const isOn =
    featureGates.enabled('APIServerIdentity') &&
    runsController(config, 'identity-lease-controller');
  if (!isOn || leases === undefined) return undefined;
  return new IdentityLease({ ...ownTools(around), leases, dialect, hostname: hostname() });
}

/** The dependencies of legacy token tracking; undefined if `--controllers` disables it. */
export function tokenTracking(around: Around): LegacyTokenTracking | undefined {
  const { config, dialect, api } = around;
  const configMaps = api.catalogue.snapshot().builtin('', 'configmaps');
  const isOn = runsController(config, 'legacy-token-tracking-controller');
  if (!isOn || configMaps === undefined) return undefined;
  return { ...ownTools(around), configMaps, dialect };
}

/** Records uses of legacy tokens; undefined if `--controllers` disables it. */
export function tokenUse({ config, dialect, api }: Around): RecordTokenUse | undefined {
  if (!runsController(config, 'legacy-token-tracking-controller')) return undefined;
  const { clock, logger } = config;
  return tokenUseRecorder({
    secrets: () => api.catalogue.snapshot().builtin('', 'secrets'),
    writer: createObjectWriter({ registry: api.registry, ...ownUser(dialect) }),
    dialect,
    clock,
    logger,
  });
}

/** The user as whom the server writes its own records. */
const ownUser = (dialect: Dialect): WriterIdentity => ({
  controller: dialect.serverProgram,
  user: serverContext.user,
});

/** The tools of a controller of the server's own records. */
export const ownTools = (around: Around): ControllerTools =>
  controllerTools(around, ownUser(around.dialect));

/** The dependencies of the controller that maintains the APIServices of served group versions. */
export function wiredRegistration(around: Around): ApiServicesOptions {
  const { dialect } = around;
  const { catalogue } = around.api;
  const group = dialect.group('apiregistration');
  return {
    ...controllerTools(around, {
      controller: 'autoregister-controller',
      groups: ['system:masters'],
    }),
    apiServices: requiredKind(catalogue.snapshot(), group, 'apiservices'),
    catalogue,
    dialect,
  };
}

/** Creates missing APIServices unless `--controllers` disables it. */
export async function createOwnApiServices(
  options: Around & { readonly customKindsReady: () => Promise<void> },
): Promise<void> {
  if (!runsController(options.config, 'autoregister-controller')) return;
  await options.customKindsReady();
  await createApiServices(wiredRegistration(options));
}

interface OwnServiceOptions extends Around {
  /** The port that the server listens on. */
  readonly port: number;
  /** Other servers on the same store. */
  readonly peers?: ServerPeers | undefined;
}

/** Maintains the server's own Service; undefined for a server without TLS. */
export function startOwnService(
  options: OwnServiceOptions,
): { close(): Promise<void> } | undefined {
  const service = wiredService(options);
  return service === undefined ? undefined : startDefaultService(service);
}

/** Creates the server's own Service unless `--controllers` disables it. */
export async function createOwnService(options: OwnServiceOptions): Promise<void> {
  if (!runsController(options.config, 'default-service-controller')) return;
  const service = wiredService(options);
  if (service !== undefined) await createDefaultService(service);
}

function wiredService(options: OwnServiceOptions) {
  const { config, dialect, api, port, peers } = options;
  const ranges = readServiceRanges(config.serviceRanges ?? defaultServiceRanges);
  if (config.listen.tls === 'plaintext' || 'error' in ranges) return undefined;
  const def = (group: string, resource: string) =>
    requiredKind(api.catalogue.snapshot(), group, resource);
  const [{ family, addressOf }] = ranges.addresses;
  const { endpoints, nodePort } = config.ownService ?? { endpoints: 'kept' };
  const ip = endpoints === 'kept' ? reachableAddress(config, family) : undefined;
  return {
    ...controllerTools(options, {
      controller: 'default-service-controller',
      groups: ['system:masters'],
    }),
    defs: {
      services: def('', 'services'),
      endpoints: def('', 'endpoints'),
      endpointSlices: def(dialect.group('discovery'), 'endpointslices'),
    },
    dialect,
    place: {
      clusterIp: addressOf(0),
      port,
      ...(nodePort === undefined ? {} : { nodePort }),
      ...(ip === undefined ? {} : { ip }),
      ...(peers === undefined ? {} : { peers }),
    },
  };
}

/**
 * ComponentStatuses for the components that exist here: the store, and the controllers, which run
 * in this process. There is no scheduler.
 */
export async function componentStatuses(options: {
  readonly config: Pick<ServerConfig, 'controllers'>;
  readonly dialect: Dialect;
  readonly store: Pick<Store, 'ping'>;
}): Promise<readonly ApiObject[]> {
  const { config, dialect, store } = options;
  const hasControllers = runsManager(config.controllers ?? ['*']);
  const noControllers = hasControllers ? undefined : 'no controllers run in this server';
  const storeProblem = await store.ping().then(
    () => undefined,
    () => 'the store does not answer',
  );
  return [
    statusOf('controller-manager', noControllers),
    statusOf(`${dialect.storeCheck}-0`, storeProblem),
    statusOf('scheduler', 'no scheduler runs in this server'),
  ];
}

function statusOf(name: string, problem: string | undefined): ApiObject {
  const status = problem === undefined ? 'True' : 'False';
  return {
    apiVersion: 'v1',
    kind: 'ComponentStatus',
    metadata: { name, creationTimestamp: null },
    conditions: [{ type: 'Healthy', status, message: problem ?? 'ok' }],
  };
}
