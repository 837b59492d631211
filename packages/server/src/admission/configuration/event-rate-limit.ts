import {
  type ConfigurationFormat,
  decodeConfiguration,
  listType,
  structType,
  textType,
} from '@wheelhouse/codec';
import {
  type Dialect,
  type FieldError,
  invalid,
  member,
  notSupported,
} from '@wheelhouse/machinery';
import type { Schema } from '@wheelhouse/schema';
import { objectsOf, refuse, textOf } from './file.ts';

const limitTypes = ['Server', 'Namespace', 'User', 'SourceAndObject'] as const;

/** So many Events a second, and so many at once, for each of what the type tells apart. */
export interface EventLimit {
  readonly type: (typeof limitTypes)[number];
  readonly perSecond: number;
  readonly burst: number;
  /** Of how many it keeps count. */
  readonly keysMax: number;
}

const defaultKeysMax = 4096;
const numberType: Schema = { type: 'integer', format: 'int32' };
const configurationType = structType('Configuration', {
  limits: listType(
    structType('Limit', {
      type: textType,
      qps: numberType,
      burst: numberType,
      cacheSize: numberType,
    }),
  ),
});

export const eventRateLimitFormat = {
  kind: 'Configuration',
  of: 'EventRateLimit',
  group: 'eventratelimit.admission',
  versions: { v1alpha1: configurationType },
} as const satisfies ConfigurationFormat;

/** Reads the limits of EventRateLimit, of which there must be one. Rejects with ConfigurationError. */
export async function readEventLimits(
  text: string | undefined,
  dialect: Dialect,
): Promise<readonly EventLimit[]> {
  const limits = text === undefined ? [] : await decodeLimits(text, dialect);
  const errors: FieldError[] = [];
  if (limits.length === 0) errors.push(invalid('limits', [], 'must not be empty'));
  limits.forEach(({ type, perSecond, burst, keysMax }, index) => {
    const path = `limits[${index}]`;
    if (!limitTypes.includes(type)) errors.push(notSupported(`${path}.type`, type, limitTypes));
    if (burst <= 0) errors.push(invalid(`${path}.burst`, burst, 'must be positive'));
    if (perSecond <= 0) errors.push(invalid(`${path}.qps`, perSecond, 'must be positive'));
    if (type !== 'Server' && keysMax < 0) {
      errors.push(invalid(`${path}.cacheSize`, keysMax, 'must not be negative'));
    }
  });
  refuse(errors);
  return limits;
}

async function decodeLimits(text: string, dialect: Dialect): Promise<EventLimit[]> {
  const { object } = await decodeConfiguration(text, {
    ...eventRateLimitFormat,
    group: dialect.group(eventRateLimitFormat.group),
  });
  return objectsOf(member(object, 'limits')).map((limit) => ({
    type: textOf(member(limit, 'type')) as EventLimit['type'],
    perSecond: Number(member(limit, 'qps') ?? 0),
    burst: Number(member(limit, 'burst') ?? 0),
    keysMax: Number(member(limit, 'cacheSize') ?? 0) || defaultKeysMax,
  }));
}
