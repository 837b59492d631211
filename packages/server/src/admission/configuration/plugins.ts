import { isAbsolute } from 'node:path';
import {
  ConfigurationError,
  type ConfigurationFormat,
  decodeConfiguration,
  listType,
  structType,
  textType,
} from '@wheelhouse/codec';
import { schemaOf, validateTolerations } from '@wheelhouse/kinds';
import {
  type Dialect,
  errorText,
  type FieldError,
  invalid,
  isObject,
  type JsonObject,
  type JsonValue,
  member,
  notSupported,
  objectOf,
  objectsOf,
  required,
  runInOnePiece,
  textOf,
  textsOf,
  type Webhook,
} from '@wheelhouse/machinery';
import { printGoDuration, type Schema } from '@wheelhouse/schema';
import type { ScopeRequirement } from '../quota/quota-usage.ts';
import { decodePlain, type PluginTexts, refuse } from './file.ts';
import { type PodSecuritySettings, readPodSecurity } from './pod-security.ts';

const limitTypes = ['Server', 'Namespace', 'User', 'SourceAndObject'] as const;

/** Allowed Events per second, and burst, for each key of the limit's type. */
export interface EventLimit {
  readonly type: (typeof limitTypes)[number];
  readonly perSecond: number;
  readonly burst: number;
  /** Maximum number of keys with a bucket of their own. */
  readonly keysMax: number;
}

const defaultKeysMax = 4096;
const numberType: Schema = { type: 'integer', format: 'int32' };
const eventRateLimitType = structType('Configuration', {
  limits: listType(
    structType('Limit', {
      type: textType,
      qps: numberType,
      burst: numberType,
      cacheSize: numberType,
    }),
  ),
});

/** The configuration of EventRateLimit: token buckets for the events of clients. */
export const eventRateLimitFormat = {
  kind: 'Configuration',
  of: 'EventRateLimit',
  group: 'eventratelimit.admission',
  versions: { v1alpha1: eventRateLimitType },
} as const satisfies ConfigurationFormat;

/**
 * Reads the limits of EventRateLimit, which requires at least one. Rejects with ConfigurationError.
 */
async function readEventLimits(
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

/** Tolerations for namespaces that define none. */
interface ClusterTolerations {
  readonly defaults: readonly JsonObject[];
  /** Tolerations that pods may have; any when empty. */
  readonly allowed: readonly JsonObject[];
}

/**
 * The configuration of PodTolerationRestriction. Creates the schema on each call, since only
 * configured plugins need it.
 */
export const podTolerationFormat = (): ConfigurationFormat => {
  const tolerations: Schema = listType(schemaOf('core.v1.Toleration'));
  const type = structType('Configuration', { default: tolerations, whitelist: tolerations });
  return {
    kind: 'Configuration',
    of: 'PodTolerationRestriction',
    group: 'podtolerationrestriction.admission',
    versions: { v1alpha1: type },
  };
};

/** Reads the configuration of PodTolerationRestriction. Rejects with ConfigurationError. */
async function readClusterTolerations(text: string, dialect: Dialect): Promise<ClusterTolerations> {
  const format = podTolerationFormat();
  const group = dialect.group(format.group);
  const { object } = await decodeConfiguration(text, { ...format, group });
  const defaults = objectsOf(member(object, 'default'));
  const allowed = objectsOf(member(object, 'whitelist'));
  const path = 'podtolerationrestriction';
  const errors = [
    ...runInOnePiece(validateTolerations(defaults, `${path}.default`)),
    ...runInOnePiece(validateTolerations(allowed, `${path}.whitelist`)),
  ];
  if (errors.length === 0) return { defaults, allowed };
  const messages = errors.map(({ field, message }) => `${field}: ${message}`);
  throw new ConfigurationError(`invalid config: [${messages.join(', ')}]`);
}

/** Selectors by namespace, and the default for other namespaces. */
type NodeSelectors = ReadonlyMap<string, string>;

/** The key of the default selector. */
export const clusterDefaultSelector = 'clusterDefaultNodeSelector';

/** Reads the configuration of PodNodeSelector. Rejects with ConfigurationError. */
async function readNodeSelectors(text: string): Promise<NodeSelectors> {
  const whole = await decodePlain(text);
  const selectors = member(whole, 'podNodeSelectorPluginConfig') ?? {};
  if (!isObject(selectors))
    throw new ConfigurationError('podNodeSelectorPluginConfig must be a map');
  const entries = Object.entries(selectors).map(([name, value]): [string, string] => {
    if (typeof value === 'string') return [name, value];
    throw new ConfigurationError(`podNodeSelectorPluginConfig.${name} must be a string`);
  });
  return new Map(entries);
}

/** A resource that may be used only if a quota covers it. */
export interface LimitedResource {
  readonly group: string;
  readonly resource: string;
  /** Substrings of the names of limited amounts. */
  readonly matchContains: readonly string[];
  readonly matchScopes: readonly ScopeRequirement[];
}

const textList = listType(textType);
const resourceQuotaType = structType('ResourceQuotaConfiguration', {
  limitedResources: listType(
    structType('LimitedResource', {
      apiGroup: textType,
      resource: textType,
      matchContains: textList,
      matchScopes: listType(
        structType('ScopedResourceSelectorRequirement', {
          scopeName: textType,
          operator: textType,
          values: textList,
        }),
      ),
    }),
  ),
});

/**
 * The configuration of ResourceQuota: resources that may be used only where a quota counts them.
 */
export const resourceQuotaFormat = {
  kind: 'ResourceQuotaConfiguration',
  group: 'apiserver.config',
  versions: { v1: resourceQuotaType },
} as const satisfies ConfigurationFormat;

/**
 * Reads the configuration of ResourceQuota under its current or former name. Rejects with
 * ConfigurationError.
 */
async function readLimitedResources(
  text: string,
  dialect: Dialect,
): Promise<readonly LimitedResource[]> {
  const isOlder = text.includes(`${dialect.group('resourcequota.admission')}/`);
  const { object } = await decodeConfiguration(
    text,
    isOlder
      ? {
          kind: 'Configuration',
          group: dialect.group('resourcequota.admission'),
          versions: { v1beta1: resourceQuotaType, v1alpha1: resourceQuotaType },
        }
      : { ...resourceQuotaFormat, group: dialect.group(resourceQuotaFormat.group) },
  );
  const limited = objectsOf(member(object, 'limitedResources')).map((limitedResource) => ({
    group: textOf(member(limitedResource, 'apiGroup')),
    resource: textOf(member(limitedResource, 'resource')),
    matchContains: textsOf(member(limitedResource, 'matchContains')),
    matchScopes: objectsOf(member(limitedResource, 'matchScopes')).map((scope) => ({
      scopeName: textOf(member(scope, 'scopeName')),
      operator: textOf(member(scope, 'operator')),
      values: textsOf(member(scope, 'values')),
    })),
  }));
  refuse(
    limited.flatMap(({ resource }, index) =>
      resource === '' ? [required(`limitedResources[${index}].resource`)] : [],
    ),
  );
  return limited;
}

const webhookAdmissionType = structType('WebhookAdmissionConfiguration', {
  kubeConfigFile: textType,
});

/**
 * The configuration of both webhook plugins: the kubeconfig with the credentials for webhooks
 * (ADM-2).
 */
export const webhookAdmissionFormat = {
  kind: 'WebhookAdmissionConfiguration',
  group: 'apiserver.config',
  versions: { v1: webhookAdmissionType },
} as const satisfies ConfigurationFormat;

/**
 * Reads the configuration of the webhook plugins: the path of a kubeconfig with client credentials.
 * Rejects with ConfigurationError.
 */
async function readWebhookKubeconfig(text: string, dialect: Dialect): Promise<string> {
  const group = dialect.group('apiserver.config');
  const isOlder = text.includes(`${group}/v1alpha1`);
  const older = { kind: 'WebhookAdmission', versions: { v1alpha1: webhookAdmissionType } };
  const format = isOlder ? older : webhookAdmissionFormat;
  const { object } = await decodeConfiguration(text, { ...format, group });
  const path = textOf(member(object, 'kubeConfigFile'));
  if (!isAbsolute(path)) refuse([invalid('kubeConfigFile', path, 'must be an absolute file path')]);
  return path;
}

/** Settings of ImagePolicyWebhook; times are in milliseconds. */
interface ImagePolicySettings {
  readonly kubeConfigFile: string;
  /** How long verdicts are cached; 0 disables the cache. */
  readonly allowTtlMs: number;
  readonly denyTtlMs: number;
  readonly retryBackoffMs: number;
  /** The verdict on pods if the service does not answer. */
  readonly onFailure: 'allow' | 'deny';
}

const second = 1000;
const minute = 60_000;
const limits = {
  allowTTL: { unitMs: second, min: second, max: 30 * minute, initial: 5 * minute },
  denyTTL: { unitMs: second, min: second, max: 30 * minute, initial: 30 * second },
  retryBackoff: { unitMs: 1, min: 1e-6, max: 5 * minute, initial: 500 },
} as const;

/** Reads the required configuration of ImagePolicyWebhook. Rejects with ConfigurationError. */
async function readImagePolicy(text: string | undefined): Promise<ImagePolicySettings> {
  if (text === undefined) throw new ConfigurationError('no config specified');
  const whole = await decodePlain(text);
  const policy = objectOf(member(whole, 'imagePolicy'));
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

/** -1 means never, 0 the default. */
function timeOf(
  value: JsonValue | undefined,
  limit: { unitMs: number; min: number; max: number; initial: number },
): number {
  const units = value ?? 0;
  if (typeof units !== 'number' || !Number.isInteger(units)) {
    throw new ConfigurationError(
      `${JSON.stringify(value)} must be a whole number of units of time`,
    );
  }
  if (units === -1) return 0;
  if (units === 0) return limit.initial;
  const ms = units * limit.unitMs;
  if (ms >= limit.min && ms <= limit.max) return ms;
  const [low, high, shown] = [limit.min, limit.max, ms].map((durationMs) =>
    printGoDuration(BigInt(Math.round(durationMs * 1e6))),
  );
  throw new ConfigurationError(`valid value is between ${low} and ${high}, got ${shown}`);
}

/** The settings that the configuration file contains for the plugins that run (ADM-1). */
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

/** The settings as the file contains them, before webhooks are connected. */
interface ReadConfigurations extends Omit<PluginConfigurations, 'imagePolicy'> {
  readonly imagePolicy?: ImagePolicySettings;
  /** Kubeconfigs with client credentials for webhooks. */
  readonly mutatingWebhooks?: string;
  readonly validatingWebhooks?: string;
}

type Read = (text: string | undefined, dialect: Dialect) => Promise<ReadConfigurations>;

/** Reads nothing if there is no text. */
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
  MutatingAdmissionWebhook: ifPresent(async (text, dialect) => ({
    mutatingWebhooks: await readWebhookKubeconfig(text, dialect),
  })),
  ValidatingAdmissionWebhook: ifPresent(async (text, dialect) => ({
    validatingWebhooks: await readWebhookKubeconfig(text, dialect),
  })),
};

/**
 * Reads the configurations of the plugins that run; texts for other plugins are ignored, as in
 * kube-apiserver. Rejects with an error that names the plugin for an invalid configuration, and for
 * a missing one that is required.
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
