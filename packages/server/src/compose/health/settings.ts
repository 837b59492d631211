import { flagsIn } from '../../flags/flags.ts';
import type { Feature } from '../feature.ts';

/** Settings of readiness and shutdown. Times are in milliseconds. */
export interface HealthSettings {
  readonly livezGracePeriodMs: number;
  readonly shutdownDelayMs: number;
  /**
   * How long readiness waits for the caches that every request needs; without limit when absent.
   */
  readonly storageWaitMs?: number;
}

/** Flags of readiness and shutdown. */
const healthFlags = flagsIn('Generic', {
  'livez-grace-period': {
    type: 'duration',
    range: 'not negative',
    help: 'How long startup may take before its unfinished parts fail /livez.',
  },
  'shutdown-delay-duration': {
    type: 'duration',
    range: 'not negative',
    help: 'How long to keep serving after a stop signal while /readyz fails, so that load balancers notice.',
  },
  'storage-initialization-timeout': {
    after: 'external-hostname',
    type: 'duration',
    range: 'not negative',
    default: '1m0s',
    help: 'How long readiness waits for the caches that every request needs. Without the flag, it waits without limit.',
  },
});

/** Health checks, start hooks, and shutdown. */
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
