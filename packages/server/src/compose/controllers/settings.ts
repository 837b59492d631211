import type { Feature } from '../feature.ts';
import { type FlagDefinition, FlagError, type FlagTable, type FlagValues } from '../flags/flags.ts';
import { controllerNames, unknownController } from './controller-selection.ts';

/** Which of several servers runs the controllers, told by a Lease. */
export interface LeaderElectionSettings {
  readonly leaseDurationMs: number;
  readonly renewDeadlineMs: number;
  readonly retryPeriodMs: number;
  /** Of the Lease. */
  readonly name: string;
  /** The system namespace when absent. */
  readonly namespace?: string;
}

/** What runs beside the requests. Times in milliseconds. */
export interface ControllerSettings {
  /** Items of `--controllers`; `['*']` when absent. */
  readonly controllers?: readonly string[];
  /** How long whoever waited for the server has it to himself, before controllers write. */
  readonly controllersPauseMs?: number;
  /** Where others may run them too; when absent they run in this server. */
  readonly leaderElection?: LeaderElectionSettings;
}

/** Flags about which of several servers runs the controllers. */
const leaderElectionFlags = {
  'leader-elect': {
    group: 'Leader election',
    type: 'bool',
    default: 'true',
    help: 'Run the controllers in one of the servers that share an etcd. Without it each server runs them.',
  },
  'leader-elect-lease-duration': {
    group: 'Leader election',
    type: 'duration',
    default: '15s',
    help: 'How long other servers wait for a sign of life of the one that leads before one of them takes its place.',
  },
  'leader-elect-renew-deadline': {
    group: 'Leader election',
    type: 'duration',
    default: '10s',
    help: 'How long the server that leads tries to give such a sign before it stops to lead.',
  },
  'leader-elect-retry-period': {
    group: 'Leader election',
    type: 'duration',
    default: '2s',
    help: 'How often a server tries to lead, or to go on leading.',
  },
  'leader-elect-resource-lock': {
    group: 'Leader election',
    type: 'string',
    default: 'leases',
    help: 'The kind of object that says who leads: leases is all there is.',
  },
  'leader-elect-resource-name': {
    group: 'Leader election',
    type: 'string',
    default: 'wheelhouse-controllers',
    help: 'The name of the Lease that says who leads.',
  },
  'leader-elect-resource-namespace': {
    group: 'Leader election',
    type: 'string',
    default: '',
    help: 'The namespace of that Lease. The system namespace when empty.',
  },
} as const satisfies FlagTable;

/** Flags of controllers. */
const controllerFlags = {
  ...leaderElectionFlags,
  controllers: {
    group: 'Controllers',
    type: 'list',
    default: '*',
    help: `Controllers to run: * is all that run by default, api-server those that a kube-apiserver runs itself, for use with a controller manager or with none, name or -name is that one or all but it. Known are ${controllerNames.join(', ')}; the last two do not run by default.`,
  },
} as const satisfies FlagTable;

/** Whoever polls a server that starts gets its first answers before controllers take the loop. */
const controllersPauseMs = 50;

/** Servers that share a store share the controllers. */
type SharedStoreFlag = { readonly 'etcd-servers': FlagDefinition & { readonly type: 'list' } };

/** The controllers, and which of several servers runs them. */
export const controllerFeature: Feature<
  typeof controllerFlags,
  ControllerSettings,
  SharedStoreFlag
> = {
  flags: controllerFlags,
  settings(values, { specifiedFlags }) {
    const stranger = unknownController(values.controllers);
    if (stranger !== undefined) {
      const name = JSON.stringify(stranger.replace(/^-/, ''));
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

/** A retry waits up to this share longer, so that candidates do not keep step; as upstream. */
const jitterFactor = 1.2;

/**
 * How controllers are led where a store is shared; undefined where they just run. Throws FlagError
 * for times that do not fit together, in upstream's words.
 */
function leaderElectionOf(
  values: Values,
  {
    specifiedFlags,
    isShared,
  }: { readonly specifiedFlags: ReadonlySet<string>; readonly isShared: boolean },
): LeaderElectionSettings | undefined {
  if (!isShared) {
    const idle = Object.keys(leaderElectionFlags).find((name) => specifiedFlags.has(name));
    if (idle !== undefined) throw new FlagError(`--${idle} has no use without --etcd-servers`);
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
