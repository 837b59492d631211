import { type Dialect, errorText, type Webhook } from '@wheelhouse/machinery';
import { type EventLimit, readEventLimits } from './event-rate-limit.ts';
import type { PluginTexts } from './file.ts';
import { type ImagePolicySettings, readImagePolicy } from './image-policy.ts';
import { type PodSecuritySettings, readPodSecurity } from './pod-security.ts';
import {
  type ClusterTolerations,
  type NodeSelectors,
  readClusterTolerations,
  readNodeSelectors,
} from './pods.ts';
import { type LimitedResource, readLimitedResources } from './resource-quota.ts';
import { readWebhookKubeconfig } from './webhooks.ts';

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
