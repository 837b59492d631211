import { readFileSync } from 'node:fs';
import { dirname, isAbsolute, resolve } from 'node:path';
import { dialectOf, errorText } from '@wheelhouse/machinery';
import { readPluginTexts } from '../../admission/configuration/file.ts';
import {
  type PluginConfigurations,
  readConfigurations,
} from '../../admission/configuration/plugins.ts';
import { chosenPlugins } from '../../admission/plugin-list.ts';
import {
  createWebhook,
  readWebhookCredentials,
  webhookOfKubeconfig,
} from '../../webhooks/webhook-client.ts';
import type { ServerConfig } from '../config.ts';

/** Time limit for one pod review by the image policy service, in milliseconds. */
const imagePolicyTimeoutMs = 30_000;

/** Plugin configurations and what must be closed with the server. */
export interface OpenConfigurations {
  readonly configurations: PluginConfigurations;
  readonly webhookCredentials?: NonNullable<ServerConfig['admission']>['webhookCredentials'];
  close(): void;
}

/**
 * Reads `--admission-control-config-file` for the plugins that run (ADM-1). Rejects with a one-line
 * error when the file, or one it names, is unusable, or when a plugin lacks a configuration it
 * requires.
 */
export async function openPluginConfigurations(config: ServerConfig): Promise<OpenConfigurations> {
  const { clock, admission = {} } = config;
  const dialect = dialectOf(config.dialect);
  const file = admission.configFile;
  const texts = file === undefined ? new Map<string, string>() : await textsOf(file, config);
  const running = chosenPlugins(admission);
  const read = await readConfigurations(texts, { dialect, running });
  const { imagePolicy, mutatingWebhooks, validatingWebhooks, ...configurations } = read;
  const credentials = {
    ...(mutatingWebhooks === undefined
      ? {}
      : { mutating: await readWebhookCredentials(mutatingWebhooks) }),
    ...(validatingWebhooks === undefined
      ? {}
      : { validating: await readWebhookCredentials(validatingWebhooks) }),
  };
  const opened = { configurations, webhookCredentials: credentials, close: () => {} };
  if (imagePolicy === undefined) return opened;
  const { kubeConfigFile, retryBackoffMs: firstPauseMs, ...settings } = imagePolicy;
  const client = await webhookOfKubeconfig(kubeConfigFile);
  const webhook = createWebhook({ client, timeoutMs: imagePolicyTimeoutMs, clock, firstPauseMs });
  const withWebhook = { ...configurations, imagePolicy: { ...settings, webhook } };
  return { ...opened, configurations: withWebhook, close: webhook.close };
}

/** Reads the configuration texts; relative paths are resolved against the file's folder. */
async function textsOf(file: string, config: ServerConfig): Promise<ReadonlyMap<string, string>> {
  const folder = dirname(file);
  const absolute = (path: string) => (isAbsolute(path) ? path : resolve(folder, path));
  const readFile = (path: string) => read(absolute(path), 'admission plugin configuration');
  const text = read(file, 'admission control configuration');
  try {
    return await readPluginTexts(text, { dialect: dialectOf(config.dialect), readFile });
  } catch (error) {
    const why = errorText(error);
    throw new Error(`failed to read plugin config: ${why}`);
  }
}

function read(path: string, what: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    const why = errorText(error);
    throw new Error(`unable to read ${what} from ${JSON.stringify(path)} [${why}]`);
  }
}
