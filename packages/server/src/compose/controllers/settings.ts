import { type FlagDefinition, FlagError, type FlagValues, flagsIn } from '../../flags/flags.ts';
import type { Feature } from '../feature.ts';

/**
 * A controller that `--controllers` selects, by its name in kube-controller-manager or
 * kube-apiserver and its former name. Work that kube-apiserver always does is not listed: custom
 * kinds, the system's namespaces and default roles, and the expiry of Events.
 */
interface SelectableController {
  readonly name: string;
  readonly alias: string;
  /** Whether `*` includes it. */
  readonly byDefault: 'on' | 'off';
}

const selectable = [
  { name: 'garbage-collector-controller', alias: 'garbagecollector', byDefault: 'on' },
  { name: 'namespace-controller', alias: 'namespace', byDefault: 'on' },
  { name: 'clusterrole-aggregation-controller', alias: 'clusterrole-aggregation', byDefault: 'on' },
  { name: 'serviceaccount-controller', alias: 'serviceaccount', byDefault: 'on' },
  {
    name: 'root-ca-certificate-publisher-controller',
    alias: 'root-ca-cert-publisher',
    byDefault: 'on',
  },
  { name: 'serviceaccount-token-controller', alias: 'serviceaccount-token', byDefault: 'on' },
  {
    name: 'validatingadmissionpolicy-status-controller',
    alias: 'validatingadmissionpolicy-status',
    byDefault: 'on',
  },
  { name: 'autoregister-controller', alias: 'autoregister', byDefault: 'on' },
  { name: 'default-service-controller', alias: 'default-service', byDefault: 'on' },
  { name: 'identity-lease-controller', alias: 'identity-lease', byDefault: 'on' },
  { name: 'legacy-token-tracking-controller', alias: 'legacy-token-tracking', byDefault: 'on' },
  { name: 'persistentvolumeclaim-protection-controller', alias: 'pvc-protection', byDefault: 'on' },
  { name: 'persistentvolume-protection-controller', alias: 'pv-protection', byDefault: 'on' },
  { name: 'resourcequota-controller', alias: 'resourcequota', byDefault: 'on' },
  // Effective only if MultiCIDRServiceAllocator is on.
  { name: 'service-cidr-controller', alias: 'service-cidr', byDefault: 'on' },
  { name: 'bootstrap-signer-controller', alias: 'bootstrapsigner', byDefault: 'off' },
  { name: 'token-cleaner-controller', alias: 'tokencleaner', byDefault: 'off' },
] as const satisfies readonly SelectableController[];

/**
 * The name of a controller as `--controllers` takes it and metrics show it; aliases are not among
 * them.
 */
export type ControllerName = (typeof selectable)[number]['name'];

/**
 * The item of `--controllers` that selects the controllers of kube-apiserver without those of
 * kube-controller-manager (PLANE-1).
 */
const apiServerItem = 'api-server';
const ofApiServer: readonly ControllerName[] = [
  'autoregister-controller',
  'default-service-controller',
  'identity-lease-controller',
  'legacy-token-tracking-controller',
];

/**
 * Selects controllers by the items of `--controllers` (AUTHN-4): `*` selects the defaults,
 * `api-server` those of kube-apiserver, `name` and `-name` one controller. Of several items for one
 * name the first wins, as in kube-controller-manager.
 */
export function controllerSelection(items: readonly string[]): (name: ControllerName) => boolean {
  return (name) => {
    const controller = selectable.find((candidate) => candidate.name === name);
    if (controller === undefined) return false;
    for (const item of items) {
      if (item === name || item === controller.alias) return true;
      if (item === `-${name}` || item === `-${controller.alias}`) return false;
    }
    if (items.includes(apiServerItem) && ofApiServer.includes(name)) return true;
    return items.includes('*') && controller.byDefault === 'on';
  };
}

/** Whether the configuration lets a controller run. */
export function runsController(
  { controllers = ['*'] }: Pick<ControllerSettings, 'controllers'>,
  name: ControllerName,
): boolean {
  return controllerSelection(controllers)(name);
}

/** Whether any controller of kube-controller-manager is selected. */
export function runsManager(items: readonly string[]): boolean {
  const runs = controllerSelection(items);
  return selectable.some(({ name }) => !ofApiServer.includes(name) && runs(name));
}

/** The first item that names no controller; undefined if all do. */
export function unknownController(items: readonly string[]): string | undefined {
  const names = new Set(selectable.flatMap(({ name, alias }) => [name, alias] as string[]));
  const groups = ['*', apiServerItem];
  return items.find((item) => !groups.includes(item) && !names.has(item.replace(/^-/, '')));
}

/** Names for the help text of the flag. */
const controllerNames: readonly string[] = selectable.map(({ name }) => name);

/** Leader election among servers that share a store. */
export interface LeaderElectionSettings {
  readonly leaseDurationMs: number;
  readonly renewDeadlineMs: number;
  readonly retryPeriodMs: number;
  /** Name of the Lease. */
  readonly name: string;
  /** The system namespace when absent. */
  readonly namespace?: string;
}

/** Settings of the background work. Times are in milliseconds. */
export interface ControllerSettings {
  /** Items of `--controllers`; `['*']` when absent. */
  readonly controllers?: readonly string[];
  /** Delay after readiness that leaves the first clients undisturbed by controllers. */
  readonly controllersPauseMs?: number;
  /** Present if other servers may run the controllers. */
  readonly leaderElection?: LeaderElectionSettings;
}

/** Flags of leader election. */
const leaderElectionFlags = flagsIn('Leader election', {
  'leader-elect': {
    type: 'bool',
    default: 'true',
    help: 'Run the controllers in only one of the servers that share an etcd; otherwise each server runs them.',
  },
  'leader-elect-lease-duration': {
    type: 'duration',
    default: '15s',
    help: 'How long other servers wait for a renewal by the leader before one of them takes over.',
  },
  'leader-elect-renew-deadline': {
    type: 'duration',
    default: '10s',
    help: 'How long the leader tries to renew before it gives up leadership.',
  },
  'leader-elect-retry-period': {
    type: 'duration',
    default: '2s',
    help: 'How often a server tries to acquire or renew leadership.',
  },
  'leader-elect-resource-lock': {
    type: 'string',
    default: 'leases',
    help: 'The kind of the lock object; only leases is supported.',
  },
  'leader-elect-resource-name': {
    type: 'string',
    default: 'wheelhouse-controllers',
    help: 'The name of the leader election Lease.',
  },
  'leader-elect-resource-namespace': {
    type: 'string',
    help: 'The namespace of the leader election Lease; the system namespace when empty.',
  },
});

/** Flags of controllers. */
const controllerFlags = flagsIn('Controllers', {
  ...leaderElectionFlags,
  controllers: {
    type: 'list',
    default: '*',
    help: `Controllers to run: * selects the defaults, api-server those of kube-apiserver itself (for use with a controller manager, or without one), name and -name one controller. Known controllers: ${controllerNames.join(', ')}; the last two do not run by default.`,
  },
});

/**
 * Lets clients that poll for readiness get their first answers before controllers occupy the loop.
 */
const controllersPauseMs = 50;

/** The flag by which servers share a store, and so the controllers. */
type SharedStoreFlag = { readonly 'etcd-servers': FlagDefinition & { readonly type: 'list' } };

/** The controllers, and the election among servers that share a store. */
export const controllerFeature: Feature<
  typeof controllerFlags,
  ControllerSettings,
  SharedStoreFlag
> = {
  flags: controllerFlags,
  settings(values, { specifiedFlags }) {
    const unknownName = unknownController(values.controllers);
    if (unknownName !== undefined) {
      const name = JSON.stringify(unknownName.replace(/^-/, ''));
      throw new FlagError(`--controllers: ${name} is not in the list of known controllers`);
    }
    const isShared = values['etcd-servers'].length > 0;
    const leaderElection = leaderElectionOf(values, { specifiedFlags, isShared });
    return {
      controllers: values.controllers,
      controllersPauseMs,
      ...(leaderElection === undefined ? {} : { leaderElection }),
    };
  },
};

type Values = FlagValues<typeof leaderElectionFlags>;

/**
 * Retries wait up to this factor longer, so that candidates do not run in step;
 * kube-controller-manager's figure.
 */
const jitterFactor = 1.2;

/**
 * Leader election for a shared store; undefined otherwise. Throws FlagError in
 * kube-controller-manager's wording for durations that contradict each other.
 */
function leaderElectionOf(
  values: Values,
  {
    specifiedFlags,
    isShared,
  }: { readonly specifiedFlags: ReadonlySet<string>; readonly isShared: boolean },
): LeaderElectionSettings | undefined {
  if (!isShared) {
    const uselessFlag = Object.keys(leaderElectionFlags).find((name) => specifiedFlags.has(name));
    if (uselessFlag !== undefined)
      throw new FlagError(`--${uselessFlag} has no effect without --etcd-servers`);
    return undefined;
  }
  if (!values['leader-elect']) return undefined;
  const lock = values['leader-elect-resource-lock'];
  if (lock !== 'leases') {
    throw new FlagError(`--leader-elect-resource-lock ${JSON.stringify(lock)} is not leases`);
  }
  const leaseDurationMs = values['leader-elect-lease-duration'];
  const renewDeadlineMs = values['leader-elect-renew-deadline'];
  const retryPeriodMs = values['leader-elect-retry-period'];
  for (const name of [
    'leader-elect-lease-duration',
    'leader-elect-renew-deadline',
    'leader-elect-retry-period',
  ] as const) {
    if (values[name] <= 0) throw new FlagError(`--${name} must be greater than zero`);
  }
  if (leaseDurationMs <= renewDeadlineMs) {
    throw new FlagError(
      '--leader-elect-lease-duration must be greater than --leader-elect-renew-deadline',
    );
  }
  if (renewDeadlineMs <= jitterFactor * retryPeriodMs) {
    throw new FlagError(
      `--leader-elect-renew-deadline must be greater than --leader-elect-retry-period*${jitterFactor}`,
    );
  }
  const name = values['leader-elect-resource-name'];
  if (name === '') throw new FlagError('--leader-elect-resource-name must not be empty');
  const namespace = values['leader-elect-resource-namespace'];
  const times = { leaseDurationMs, renewDeadlineMs, retryPeriodMs };
  return { ...times, name, ...(namespace === '' ? {} : { namespace }) };
}
