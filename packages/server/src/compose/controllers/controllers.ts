import { hostname } from 'node:os';
import { appendAll, type JsonObject, randomUuid } from '@wheelhouse/machinery';
import type { QuotaLedger } from '../../admission/quota/quota-ledger.ts';
import { requiredKind } from '../../catalogue/catalogue.ts';
import { startApiServices } from '../../controllers/aggregation/api-services.ts';
import { startEventExpiry } from '../../controllers/event-expiry.ts';
import { startGarbageCollector } from '../../controllers/garbage-collector.ts';
import {
  clusterInfoName,
  startBootstrapSigner,
  startTokenCleaner,
} from '../../controllers/identity/bootstrap-tokens.ts';
import { startClusterRoleAggregation } from '../../controllers/identity/cluster-role-aggregation.ts';
import type { IdentityLease } from '../../controllers/identity/identity-lease.ts';
import {
  startLegacyTokens,
  startLegacyTokenTracking,
} from '../../controllers/identity/legacy-tokens.ts';
import {
  startRootCaPublisher,
  startServiceAccounts,
} from '../../controllers/identity/service-accounts.ts';
import { startNamespaceDeletion, startSystemNamespaces } from '../../controllers/namespaces.ts';
import { startPolicyTypeChecking } from '../../controllers/policy-type-checking.ts';
import { startResourceQuotas } from '../../controllers/resource-quota.ts';
import type { ServerPeers } from '../../controllers/services/default-service.ts';
import { startServiceCidrs } from '../../controllers/services/service-addresses.ts';
import { controllerTools, createObjectWriter } from '../../controllers/tools.ts';
import {
  startClaimProtection,
  startVolumeProtection,
} from '../../controllers/volume-protection.ts';
import { defaultGates } from '../../flags/feature-gates.ts';
import type { TokenIssuer } from '../../gates/authn/contract.ts';
import type { Around } from '../context.ts';
import { beginAfter, type LateBackground } from '../parts.ts';
import { addressKinds } from '../service-network/service-numbers.ts';
import { ownAddress } from '../serving/listen.ts';
import type { Presence } from '../storage/etcd.ts';
import { ownTools, startOwnService, tokenTracking, wiredRegistration } from './own-objects.ts';
import { controllerSelection, type LeaderElectionSettings, runsController } from './settings.ts';

/** Milliseconds between full recounts of quotas; kube-controller-manager's default. */
const quotaResyncMs = 300_000;

/**
 * Starts the selected controllers that complete what admission began: they release unused volumes
 * and claims, count the usage of namespaces, and protect address ranges.
 */
function startResourceControllers(
  options: Around & Pick<ControllerOptions, 'quotaLedger'>,
): { close(): Promise<void> }[] {
  const { config, dialect, api } = options;
  const { catalogue } = api;
  const runs = controllerSelection(config.controllers ?? ['*']);
  const core = (resource: string) => requiredKind(catalogue.snapshot(), '', resource);
  const tools = (controller: string) => controllerTools(options, { controller });
  const started: { close(): Promise<void> }[] = [];
  if (runs('persistentvolumeclaim-protection-controller')) {
    const [claims, pods] = [core('persistentvolumeclaims'), core('pods')];
    const finalizer = dialect.label('pvc-protection');
    const shared = tools('pvc-protection-controller');
    started.push(startClaimProtection({ ...shared, finalizer, claims, pods }));
  }
  if (runs('persistentvolume-protection-controller')) {
    const finalizer = dialect.label('pv-protection');
    const shared = tools('pv-protection-controller');
    const volumes = core('persistentvolumes');
    started.push(startVolumeProtection({ ...shared, finalizer, volumes }));
  }
  if (runs('resourcequota-controller')) {
    started.push(
      startResourceQuotas({
        ...tools('resourcequota-controller'),
        quotas: core('resourcequotas'),
        catalogue,
        dialect,
        ledger: options.quotaLedger,
        resyncMs: quotaResyncMs,
      }),
    );
  }
  const gates = config.featureGates ?? defaultGates;
  if (gates.enabled('MultiCIDRServiceAllocator') && runs('service-cidr-controller')) {
    const shared = tools('service-cidrs-controller');
    const kinds = addressKinds(catalogue, dialect);
    started.push(startServiceCidrs({ ...shared, kinds, dialect }));
  }
  return started;
}

/** Starts the selected controllers of accounts, tokens, and trust. */
function startIdentityControllers(
  options: Around & Pick<ControllerOptions, 'caPem' | 'tokens'>,
): { close(): Promise<void> }[] {
  const { config, dialect, api, caPem } = options;
  const runs = controllerSelection(config.controllers ?? ['*']);
  const core = (resource: string) => requiredKind(api.catalogue.snapshot(), '', resource);
  const namespaces = core('namespaces');
  const tools = (controller: string) => controllerTools(options, { controller });
  const started: { close(): Promise<void> }[] = [];
  if (runs('serviceaccount-controller')) {
    const serviceAccounts = core('serviceaccounts');
    started.push(
      startServiceAccounts({ ...tools('service-account-controller'), namespaces, serviceAccounts }),
    );
  }
  if (caPem !== undefined && runs('root-ca-certificate-publisher-controller')) {
    const configMaps = core('configmaps');
    started.push(
      startRootCaPublisher({
        ...tools('root-ca-cert-publisher'),
        namespaces,
        configMaps,
        dialect,
        caPem,
      }),
    );
  }
  const { issueLegacy } = options.tokens;
  if (runs('serviceaccount-token-controller') && issueLegacy !== undefined) {
    started.push(
      startLegacyTokens({
        ...tools('tokens-controller'),
        secrets: core('secrets'),
        serviceAccounts: core('serviceaccounts'),
        dialect,
        issue: issueLegacy,
        caPem,
      }),
    );
  }
  const bootstrap = { secrets: core('secrets'), dialect };
  if (runs('token-cleaner-controller')) {
    started.push(startTokenCleaner({ ...tools('token-cleaner'), ...bootstrap }));
  }
  if (runs('bootstrap-signer-controller')) {
    const configMaps = core('configmaps');
    const signer = tools('bootstrap-signer');
    started.push(startBootstrapSigner({ ...signer, ...bootstrap, configMaps }));
    started.push(openClusterInfo({ config, dialect, api }));
  }
  return started;
}

/** Lets all users read the ConfigMap that nodes need to join (AUTHN-5). */
function openClusterInfo(options: Around): { close(): Promise<void> } {
  const { config, dialect, api } = options;
  if (!config.authorizationModes.includes('RBAC')) return { close: async () => {} };
  const group = dialect.group('rbac.authorization');
  const namespace = dialect.systemNamespace('public');
  const name = 'system:cluster-info-reader';
  const controller = 'bootstrap-signer';
  const writer = createObjectWriter({
    registry: api.registry,
    controller,
    groups: ['system:masters'],
  });
  const create = async (resource: string, kind: string, more: JsonObject) => {
    const def = requiredKind(api.catalogue.snapshot(), group, resource);
    const object = { apiVersion: `${group}/v1`, kind, metadata: { name, namespace }, ...more };
    await writer.create({ def, namespace, name }, object);
  };
  const rule = { verbs: ['get'], apiGroups: [''], resources: ['configmaps'] };
  const created = Promise.all([
    create('roles', 'Role', { rules: [{ ...rule, resourceNames: [clusterInfoName] }] }),
    create('rolebindings', 'RoleBinding', {
      roleRef: { apiGroup: group, kind: 'Role', name },
      subjects: [{ kind: 'User', apiGroup: group, name: 'system:anonymous' }],
    }),
  ]).catch((error: unknown) =>
    config.logger.error('cannot make cluster-info public', { error: String(error) }),
  );
  return { close: () => created.then(() => {}) };
}

/**
 * Starts the selected controllers that follow up on requests: deletions, aggregated roles, checks
 * of policies, and APIServices.
 */
function startFollowUps(options: Around): { close(): Promise<void> }[] {
  const { config, dialect, api } = options;
  const { catalogue } = api;
  const runs = controllerSelection(config.controllers ?? ['*']);
  const builtin = (group: string, resource: string) =>
    requiredKind(catalogue.snapshot(), group, resource);
  const tools = (controller: string) => controllerTools(options, { controller });
  const gates = config.featureGates ?? defaultGates;
  const started: { close(): Promise<void> }[] = [];
  if (runs('clusterrole-aggregation-controller')) {
    started.push(
      startClusterRoleAggregation({
        ...controllerTools(options, {
          controller: 'clusterrole-aggregation-controller',
          // RBAC lets it write rules that it does not hold through its own role.
          groups: ['system:masters'],
        }),
        clusterRoles: builtin(dialect.group('rbac.authorization'), 'clusterroles'),
      }),
    );
  }
  if (runs('validatingadmissionpolicy-status-controller')) {
    started.push(
      startPolicyTypeChecking({
        ...tools('validatingadmissionpolicy-status-controller'),
        policies: builtin(dialect.group('admissionregistration'), 'validatingadmissionpolicies'),
        snapshot: catalogue.snapshot,
      }),
    );
  }
  if (runs('autoregister-controller')) started.push(startApiServices(wiredRegistration(options)));
  if (runs('namespace-controller')) {
    started.push(
      startNamespaceDeletion({
        ...tools('namespace-controller'),
        catalogue,
        namespaces: builtin('', 'namespaces'),
        finalizer: dialect.productName,
        order: gates.enabled('OrderedNamespaceDeletion') ? 'pods first' : 'any',
      }),
    );
  }
  if (runs('garbage-collector-controller')) {
    const collector = tools('generic-garbage-collector');
    started.push(startGarbageCollector({ ...collector, catalogue }));
  }
  return started;
}

/** The dependencies of the controllers. */
interface ControllerOptions extends Around {
  readonly tokens: Pick<TokenIssuer, 'issueLegacy'>;
  readonly quotaLedger: QuotaLedger;
  /** The CA certificate to publish; undefined unless the server generated one. */
  readonly caPem: string | undefined;
  /** The port that the server listens on. */
  readonly port: number;
  /** Other servers on the same store. */
  readonly peers?: ServerPeers | undefined;
}

/** Starts the loops that finish work after a request is answered. */
export function startControllers(options: ControllerOptions): { close(): Promise<void> } {
  const { config, api } = options;
  const { clock, logger } = config;
  const { catalogue, registry } = api;
  const started = startFollowUps(options);
  const events = catalogue.snapshot().builtin('', 'events');
  // Etcd expires Events itself.
  if (events !== undefined && config.eventTtlMs > 0 && config.store.type !== 'etcd') {
    const ttlMs = config.eventTtlMs;
    started.push(startEventExpiry({ events, registry, clock, logger, ttlMs }));
  }
  if (runsController(config, 'default-service-controller')) {
    const own = startOwnService(options);
    if (own !== undefined) started.push(own);
  }
  const { dialect } = options;
  const namespaces = requiredKind(catalogue.snapshot(), '', 'namespaces');
  started.push(startSystemNamespaces({ ...ownTools(options), namespaces, dialect }));
  const tracking = tokenTracking(options);
  if (tracking !== undefined) started.push(startLegacyTokenTracking(tracking));
  appendAll(started, startIdentityControllers(options));
  appendAll(started, startResourceControllers(options));
  return {
    async close() {
      await Promise.all(started.map((controller) => controller.close()));
    },
  };
}

type ElectedOptions = Omit<ControllerOptions, 'peers'> & {
  /** Where servers on one store announce themselves. */
  readonly presence: Presence | undefined;
  readonly lease: IdentityLease | undefined;
};

/**
 * Starts the controllers, in the leader only if servers share the store (STORE-2). Each server that
 * may run them stays in the endpoints of its own Service while it runs.
 */
async function startElectedControllers(
  around: ElectedOptions,
): Promise<{ close(): Promise<void> }> {
  const { config, presence, lease } = around;
  const settings = config.leaderElection;
  const isAnnounced = runsController(config, 'default-service-controller');
  const address = isAnnounced ? ownAddress(config) : undefined;
  const announcement = address === undefined ? undefined : presence?.announce(address);
  lease?.start();
  const work =
    settings === undefined
      ? startControllers({ ...around, peers: presence })
      : await elect(around, settings);
  return {
    async close() {
      await announcement?.close();
      await lease?.close();
      await work.close();
    },
  };
}

/** Starts the controllers once the server is ready; `close` stops them, started or not. */
export function controllersAfter(ready: Promise<void>, around: ElectedOptions): LateBackground {
  const { clock, logger, controllersPauseMs: pauseMs } = around.config;
  return beginAfter(ready, { clock, logger, pauseMs }, () => startElectedControllers(around));
}

async function elect(
  around: ElectedOptions,
  settings: LeaderElectionSettings,
): Promise<{ close(): Promise<void> }> {
  const { config, dialect, api, presence } = around;
  const { startLeaderElection } = await import('../../controllers/leader-election.ts');
  const leases = requiredKind(api.catalogue.snapshot(), dialect.group('coordination'), 'leases');
  return startLeaderElection({
    ...settings,
    leases,
    registry: api.registry,
    clock: config.clock,
    logger: config.logger,
    namespace: settings.namespace ?? dialect.systemNamespace('system'),
    identity: `${hostname()}_${randomUuid()}`,
    startWork: () => startControllers({ ...around, peers: presence }),
  });
}
