import type { Feature } from '../feature.ts';
import type { FlagTable } from '../flags/flags.ts';

/** How the server becomes ready and how it stops. Times in milliseconds. */
export interface HealthSettings {
  readonly livezGracePeriodMs: number;
  readonly shutdownDelayMs: number;
  /** How long readiness waits for the caches that every request needs; for ever when absent. */
  readonly storageWaitMs?: number;
}

/** Flags of readiness and of the stop. */
export const healthFlags = {
  'livez-grace-period': {
    group: 'Generic',
    type: 'duration',
    range: 'not negative',
    default: '0s',
    help: 'How long the start may take before unfinished parts of it fail /livez.',
  },
  'shutdown-delay-duration': {
    group: 'Generic',
    type: 'duration',
    range: 'not negative',
    default: '0s',
    help: 'How long to go on serving after a signal to stop, /readyz failing meanwhile, so that load balancers notice.',
  },
  'storage-initialization-timeout': {
    group: 'Generic',
    after: 'external-hostname',
    type: 'duration',
    range: 'not negative',
    default: '1m0s',
    help: 'When given: how long the start waits for the caches that every request needs, before readiness does without them.',
  },
} as const satisfies FlagTable;

/** Health checks, what is done before the server is ready, and the stop. */
export const healthFeature: Feature<typeof healthFlags, HealthSettings> = {
  flags: healthFlags,
  settings: (values, { specifiedFlags }) => ({
    livezGracePeriodMs: values['livez-grace-period'],
    shutdownDelayMs: values['shutdown-delay-duration'],
    ...(specifiedFlags.has('storage-initialization-timeout')
      ? { storageWaitMs: values['storage-initialization-timeout'] }
      : {}),
  }),
};
