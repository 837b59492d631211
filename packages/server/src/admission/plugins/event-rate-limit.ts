import { type Stored, textAt } from '@wheelhouse/kinds';
import type { Event } from '@wheelhouse/kinds/types/core/v1';
import { aggregateText, type Clock, StatusError } from '@wheelhouse/machinery';
import type { AdmissionCall } from '../../registry/contract.ts';
import type { AdmissionPlugin } from '../chain.ts';
import type { EventLimit } from '../configuration/plugins.ts';
import type { AdmissionTools } from '../tools.ts';

/**
 * Rejects Events beyond the configured rates (ADM-1). Events of the newer group are not limited, as
 * in kube-apiserver.
 */
export function eventRateLimit({ clock, configurations }: AdmissionTools): AdmissionPlugin {
  const limits = (configurations.eventLimits ?? []).map((limit) => ({
    type: limit.type,
    buckets: new Buckets(limit, clock),
  }));
  return {
    name: 'EventRateLimit',
    validate(call) {
      if (call.operation === 'DELETE' || call.context.dryRun) return undefined;
      const problems = limits.flatMap(({ type, buckets }) => {
        const key = keyOf(type, call);
        return buckets.take(key) ? [] : [`limit reached on type ${type} for key ${key}`];
      });
      if (problems.length > 0) throw tooManyEvents(problems);
      return undefined;
    },
  };
}

function tooManyEvents(problems: readonly string[]): StatusError {
  return new StatusError({
    code: 429,
    reason: 'TooManyRequests',
    message: `Too many requests: ${aggregateText(problems)}`,
  });
}

/** The bucket key of an Event. */
function keyOf(type: EventLimit['type'], { target, context, object }: AdmissionCall): string {
  switch (type) {
    case 'Server':
      return '';
    case 'Namespace':
      return target.namespace;
    case 'User':
      return context.user.name;
    case 'SourceAndObject':
      return object === undefined ? '' : sourceAndObject(object);
  }
}

const involved = ['kind', 'namespace', 'name', 'uid', 'apiVersion'] as const;

function sourceAndObject(event: Stored<Event>): string {
  return [
    event.source?.component ?? '',
    event.source?.host ?? '',
    ...involved.map((name) => textAt(event, 'involvedObject', name)),
  ].join('');
}

interface Bucket {
  tokens: number;
  atMs: number;
}

/**
 * A token bucket for each key; the least recently used buckets are evicted and start full again.
 */
class Buckets {
  readonly #limit: EventLimit;
  readonly #clock: Clock;
  readonly #buckets = new Map<string, Bucket>();

  constructor(limit: EventLimit, clock: Clock) {
    this.#limit = limit;
    this.#clock = clock;
  }

  take(key: string): boolean {
    const { perSecond, burst, keysMax, type } = this.#limit;
    const nowMs = this.#clock.monotonic();
    const bucket = this.#buckets.get(key) ?? { tokens: burst, atMs: nowMs };
    this.#buckets.delete(key);
    this.#buckets.set(key, bucket);
    const [oldest] = this.#buckets.keys();
    if (type !== 'Server' && this.#buckets.size > keysMax && oldest !== undefined) {
      this.#buckets.delete(oldest);
    }
    const gained = ((nowMs - bucket.atMs) / 1000) * perSecond;
    bucket.tokens = Math.min(burst, bucket.tokens + gained);
    bucket.atMs = nowMs;
    if (bucket.tokens < 1) return false;
    bucket.tokens -= 1;
    return true;
  }
}
