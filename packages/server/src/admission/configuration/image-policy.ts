import { ConfigurationError } from '@wheelhouse/codec';
import { isObject, type JsonValue, member } from '@wheelhouse/machinery';
import { printGoDuration } from '@wheelhouse/schema';
import { decodePlain, textOf } from './file.ts';

/** The settings of ImagePolicyWebhook; times are in milliseconds. */
export interface ImagePolicySettings {
  readonly kubeConfigFile: string;
  /** How long a verdict is kept; 0: not at all. */
  readonly allowTtlMs: number;
  readonly denyTtlMs: number;
  readonly retryBackoffMs: number;
  /** What becomes of pods while nobody answers. */
  readonly onFailure: 'allow' | 'deny';
}

const second = 1000;
const minute = 60_000;
const limits = {
  allowTTL: { unitMs: second, min: second, max: 30 * minute, initial: 5 * minute },
  denyTTL: { unitMs: second, min: second, max: 30 * minute, initial: 30 * second },
  retryBackoff: { unitMs: 1, min: 1e-6, max: 5 * minute, initial: 500 },
} as const;

/** Reads the configuration of ImagePolicyWebhook, which must be. Rejects with ConfigurationError. */
export async function readImagePolicy(text: string | undefined): Promise<ImagePolicySettings> {
  if (text === undefined) throw new ConfigurationError('no config specified');
  const whole = await decodePlain(text);
  const found = member(whole, 'imagePolicy');
  const policy = isObject(found) ? found : {};
  const time = (name: keyof typeof limits) => timeOf(member(policy, name), limits[name]);
  const retryBackoffMs = time('retryBackoff');
  return {
    kubeConfigFile: textOf(member(policy, 'kubeConfigFile')),
    retryBackoffMs,
    allowTtlMs: time('allowTTL'),
    denyTtlMs: time('denyTTL'),
    onFailure: member(policy, 'defaultAllow') === true ? 'allow' : 'deny',
  };
}

/** -1 is never, 0 what is usual. */
function timeOf(
  value: JsonValue | undefined,
  limit: { unitMs: number; min: number; max: number; initial: number },
): number {
  const units = value ?? 0;
  if (typeof units !== 'number' || !Number.isInteger(units)) {
    throw new ConfigurationError(`${JSON.stringify(value)} is no number of units of time`);
  }
  if (units === -1) return 0;
  if (units === 0) return limit.initial;
  const ms = units * limit.unitMs;
  if (ms >= limit.min && ms <= limit.max) return ms;
  const [low, high, shown] = [limit.min, limit.max, ms].map((one) =>
    printGoDuration(BigInt(Math.round(one * 1e6))),
  );
  throw new ConfigurationError(`valid value is between ${low} and ${high}, got ${shown}`);
}
