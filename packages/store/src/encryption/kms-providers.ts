import type { EncryptionRule } from './configuration.ts';
import type { KmsOptions } from './kms-service.ts';
import { KmsV1Provider } from './kms-v1.ts';
import { KmsV2Provider } from './kms-v2.ts';
import type { KmsSettings } from './providers.ts';
import type { Prefixed } from './transformer.ts';

/** The running KMS providers of a configuration. */
export interface KmsProviders {
  /** The provider of an entry of the configuration that these were opened for; throws for another. */
  of(settings: KmsSettings): Prefixed;
  /** In the order of the configuration; each rejects when its plugin is not well. */
  readonly checks: readonly (() => Promise<void>)[];
  /** The versions of the KMS protocol that are in use. */
  readonly versions: ReadonlySet<KmsSettings['apiVersion']>;
  /** How long what is under way when the configuration changes may take, in milliseconds. */
  readonly graceMs: number;
  close(): void;
}

/**
 * Connects to the KMS plugins that rules name. One that does not answer fails its check, and does not
 * fail this. Rejects where a rule names KMS v1 and it is not `allowed`.
 */
export async function openKmsProviders(
  rules: readonly EncryptionRule[],
  options: KmsOptions & { readonly v1: 'allowed' | 'refused' },
): Promise<KmsProviders> {
  const all = rules
    .flatMap(({ providers }) => providers)
    .filter((provider) => provider.type === 'kms');
  const versions = new Set(all.map(({ apiVersion }) => apiVersion));
  if (versions.has('v1') && options.v1 === 'refused') {
    throw new Error(
      'KMSv1 is deprecated and will only receive security updates going forward. Use KMSv2 instead. Set --feature-gates=KMSv1=true to use the deprecated KMSv1 feature.',
    );
  }
  const opened = new Map(
    all.map((settings) => {
      const Provider = settings.apiVersion === 'v1' ? KmsV1Provider : KmsV2Provider;
      return [settings, new Provider(settings, options)] as const;
    }),
  );
  const running = [...opened.values()];
  await Promise.all(running.map((provider) => provider.start()));
  const timeouts = all.map(
    ({ apiVersion, timeoutMs }) => timeoutMs * (apiVersion === 'v1' ? 2 : 1),
  );
  return {
    of(settings) {
      const provider = opened.get(settings);
      if (provider === undefined) throw new Error(`no KMS provider ${settings.name} is open`);
      return provider.prefixed;
    },
    checks: running.map((provider) => () => provider.check()),
    versions,
    graceMs: 2 * timeouts.reduce((sum, one) => sum + one, 0),
    close() {
      for (const provider of running) provider.close();
    },
  };
}
