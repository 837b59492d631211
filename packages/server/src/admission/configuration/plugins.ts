import { isAbsolute } from 'node:path';
import {
  ConfigurationError,
  type ConfigurationFormat,
  decodeConfiguration,
  structType,
  textType,
} from '@wheelhouse/codec';
import {
  type Dialect,
  errorText,
  invalid,
  isObject,
  type JsonValue,
  member,
  type Webhook,
} from '@wheelhouse/machinery';
import { printGoDuration } from '@wheelhouse/schema';
import { type EventLimit, readEventLimits } from './event-rate-limit.ts';
import { decodePlain, type PluginTexts, refuse, textOf } from './file.ts';
import { type PodSecuritySettings, readPodSecurity } from './pod-security.ts';
import {
  type ClusterTolerations,
  type NodeSelectors,
  readClusterTolerations,
  readNodeSelectors,
} from './pods.ts';
import { type LimitedResource, readLimitedResources } from './resource-quota.ts';

const configurationType = structType('WebhookAdmissionConfiguration', {
  kubeConfigFile: textType,
});

export const webhookAdmissionFormat = {
  kind: 'WebhookAdmissionConfiguration',
  group: 'apiserver.config',
  versions: { v1: configurationType },
} as const satisfies ConfigurationFormat;

/**
 * Reads the configuration of the plugins that call webhooks: the path of a kubeconfig with who this
 * server is to them; undefined where it names none. Rejects with ConfigurationError.
 */
async function readWebhookKubeconfig(text: string, dialect: Dialect): Promise<string | undefined> {
  const group = dialect.group('apiserver.config');
  const isOlder = text.includes(`${group}/v1alpha1`);
  const older = { kind: 'WebhookAdmission', versions: { v1alpha1: configurationType } };
  const format = isOlder ? older : webhookAdmissionFormat;
  const { object } = await decodeConfiguration(text, { ...format, group });
  const path = textOf(member(object, 'kubeConfigFile'));
  if (path === '') return undefined;
  if (!isAbsolute(path)) refuse([invalid('kubeConfigFile', path, 'must be an absolute file path')]);
  return path;
}

/** The settings of ImagePolicyWebhook; times are in milliseconds. */
interface ImagePolicySettings {
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
async function readImagePolicy(text: string | undefined): Promise<ImagePolicySettings> {
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

/** The settings that the configuration file has for the plugins that run (ADM-1). */
export interface PluginConfigurations {
  readonly eventLimits?: readonly EventLimit[];
  readonly imagePolicy?: Omit<ImagePolicySettings, 'kubeConfigFile' | 'retryBackoffMs'> & {
    readonly webhook: Webhook;
  };
  readonly podSecurity?: PodSecuritySettings;
  readonly limitedResources?: readonly LimitedResource[];
  readonly tolerations?: ClusterTolerations;
  readonly nodeSelectors?: NodeSelectors;
}

/** The same as the file has it, before webhooks are connected. */
export interface ReadConfigurations extends Omit<PluginConfigurations, 'imagePolicy'> {
  readonly imagePolicy?: ImagePolicySettings;
  /** Kubeconfigs with who this server is to webhooks. */
  readonly mutatingWebhooks?: string;
  readonly validatingWebhooks?: string;
}

type Read = (text: string | undefined, dialect: Dialect) => Promise<ReadConfigurations>;

/** Reads nothing and sets nothing when there is no text. */
function ifPresent(read: (text: string, dialect: Dialect) => Promise<ReadConfigurations>): Read {
  return async (text, dialect) => (text === undefined ? {} : read(text, dialect));
}

const readers: Readonly<Record<string, Read>> = {
  EventRateLimit: async (text, dialect) => ({ eventLimits: await readEventLimits(text, dialect) }),
  ImagePolicyWebhook: async (text) => ({ imagePolicy: await readImagePolicy(text) }),
  PodSecurity: ifPresent(async (text, dialect) => ({
    podSecurity: await readPodSecurity(text, dialect),
  })),
  ResourceQuota: ifPresent(async (text, dialect) => ({
    limitedResources: await readLimitedResources(text, dialect),
  })),
  PodTolerationRestriction: ifPresent(async (text, dialect) => ({
    tolerations: await readClusterTolerations(text, dialect),
  })),
  PodNodeSelector: ifPresent(async (text) => ({ nodeSelectors: await readNodeSelectors(text) })),
  MutatingAdmissionWebhook: ifPresent(async (text, dialect) => {
    const file = await readWebhookKubeconfig(text, dialect);
    return file === undefined ? {} : { mutatingWebhooks: file };
  }),
  ValidatingAdmissionWebhook: ifPresent(async (text, dialect) => {
    const file = await readWebhookKubeconfig(text, dialect);
    return file === undefined ? {} : { validatingWebhooks: file };
  }),
};

/**
 * Reads what the plugins that run are told; texts for others are not looked at, as upstream. Rejects,
 * naming the plugin, for what is wrong, and for a plugin that needs a configuration and has none.
 */
export async function readConfigurations(
  texts: PluginTexts,
  { dialect, running }: { readonly dialect: Dialect; readonly running: ReadonlySet<string> },
): Promise<ReadConfigurations> {
  let all: ReadConfigurations = {};
  for (const [name, read] of Object.entries(readers)) {
    if (!running.has(name)) continue;
    try {
      all = { ...all, ...(await read(texts.get(name), dialect)) };
    } catch (error) {
      const why = errorText(error);
      throw new Error(`couldn't init admission plugin ${JSON.stringify(name)}: ${why}`);
    }
  }
  return all;
}
