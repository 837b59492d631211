import { readFileSync } from 'node:fs';
import { dirname, isAbsolute, resolve } from 'node:path';
import { type ResourceDef, versionNamed } from '@wheelhouse/kinds';
import {
  type Clock,
  type Dialect,
  dialectOf,
  errorText,
  type MetricRegistry,
  StatusError,
} from '@wheelhouse/machinery';
import { type AdmissionPlugin, admissionChain, createChainMeter } from '../../admission/chain.ts';
import type { PluginConfigurations } from '../../admission/configuration/plugins.ts';
import { createObjectReader } from '../../admission/objects.ts';
import {
  admissionPlugins,
  chosenPlugins,
  needsConfiguration,
} from '../../admission/plugin-list.ts';
import type { QuotaLedger } from '../../admission/quota/quota-ledger.ts';
import { ruleEngineLoader } from '../../admission/rule-engine.ts';
import type { AdmissionTools, ObjectReader } from '../../admission/tools.ts';
import type { WebhookPort } from '../../admission/webhooks/port.ts';
import type { Catalogue } from '../../catalogue/catalogue.ts';
import type { AggregationSlot } from '../../endpoints/call.ts';
import { defaultGates } from '../../flags/feature-gates.ts';
import { type EscalationPort, escalationCheck } from '../../gates/authz/rbac/escalation-check.ts';
import type { AdmissionCall, AdmissionPort } from '../../registry/contract.ts';
import type { Registry } from '../../registry/registry.ts';
import type { WebhookCredentials } from '../../webhooks/webhook-client.ts';
import type { ServerConfig } from '../config.ts';
import type { ReadingBase } from '../context.ts';
import type { Tracing } from '../observability/tracing.ts';

/** A webhook caller whose code is loaded with the first call. */
export function lazyWebhooks(parts: {
  readonly clock: Clock;
  readonly dialect: Dialect;
  readonly objects: ObjectReader;
  readonly aggregation: AggregationSlot;
  readonly credentials?: WebhookCredentials | undefined;
  readonly registry: MetricRegistry;
  readonly tracing: Tracing | undefined;
}): WebhookPort {
  const load = async (): Promise<WebhookPort> => {
    const [{ createAdmissionWebhooks }, { createServiceResolver }, { clientMeter }] =
      await Promise.all([
        import('./admission-webhooks.ts'),
        import('../../webhooks/service-address.ts'),
        import('../../webhooks/client-metrics.ts'),
      ]);
    const resolve = createServiceResolver(parts);
    const meter = clientMeter(parts.registry, parts.clock);
    const webhooks = createAdmissionWebhooks({ ...parts, resolve, meter });
    return parts.tracing?.webhooks(webhooks) ?? webhooks;
  };
  let loading: Promise<WebhookPort> | undefined;
  return {
    async post(request) {
      loading ??= load();
      return (await loading).post(request);
    },
  };
}

/**
 * Creates the chain that writes pass: the configured plugins (ADM-1), followed by the built-in
 * checks that no flag can disable.
 */
export function createAdmission(
  options: ReadingBase & {
    readonly authorization: EscalationPort;
    readonly aggregation: AggregationSlot;
    readonly ledger: QuotaLedger;
    /** For the few plugins that write. */
    readonly registry: () => Registry;
  },
): AdmissionPort {
  const { config, dialect, catalogue, caches, authorization } = options;
  const { admission = {} } = config;
  const { snapshot } = catalogue;
  const { tracing, metrics, aggregation } = options;
  const { clock } = config;
  const objects = createObjectReader({ dialect, caches, clock, snapshot });
  const reaching = { clock, dialect, objects, aggregation, registry: metrics.registry, tracing };
  const tools: AdmissionTools = {
    dialect,
    clock: config.clock,
    objects,
    settings: {
      notReadyTolerationSeconds: admission.notReadyTolerationSeconds ?? 300,
      unreachableTolerationSeconds: admission.unreachableTolerationSeconds ?? 300,
    },
    configurations: admission.configurations ?? {},
    builtin: (stem, resource) => snapshot().builtin(dialect.group(stem), resource),
    snapshot,
    caches,
    authorize: (attributes) => authorization.decide(attributes),
    metrics: options.metrics.registry,
    isOn: (feature) => (config.featureGates ?? defaultGates).enabled(feature),
    webhooks: lazyWebhooks(reaching),
    webhooksOf: (plugin) =>
      lazyWebhooks({ ...reaching, credentials: admission.webhookCredentials?.[plugin] }),
    log: (message, error) => config.logger.warn(message, { error: String(error) }),
    defOfKind: (apiVersion, kind) => defOfKind(catalogue, apiVersion, kind),
    ledger: options.ledger,
    registry: options.registry,
  };
  const plugins = [
    ruleEngineLoader,
    paramAccess(tools),
    ...admissionPlugins(admission, tools),
    refuseClosedKinds(snapshot),
    escalationCheck({ dialect, port: authorization, clock: config.clock }),
  ];
  const meter = createChainMeter(options.metrics.registry, config.clock);
  return admissionChain(plugins, meter);
}

/**
 * Rejects new objects of custom kinds that are being deleted, which could otherwise prevent the
 * deletion from ending. Runs again right before the write, since other plugins may take time.
 */
function refuseClosedKinds(snapshot: AdmissionTools['snapshot']): AdmissionPlugin {
  const check = ({ operation, target }: AdmissionCall): undefined => {
    const { group, resource, behavior } = target.def;
    if (operation !== 'CREATE' || !snapshot().closedKinds.has(behavior.definitionName)) return;
    throw new StatusError({
      code: 405,
      reason: 'MethodNotAllowed',
      message: 'create not allowed while custom resource definition is terminating',
      details: { group, kind: resource },
    });
  };
  return { name: 'CustomKindTermination', isInternal: true, mutate: check, validate: check };
}

/** Checks access to the parameters of policies; no flag disables it. */
function paramAccess(tools: AdmissionTools): AdmissionPlugin {
  const group = tools.dialect.group('admissionregistration');
  const leading = /^(?:validating|mutating)admissionpolic(?:ies|ybindings)$/;
  return {
    name: 'ParamAccess',
    isInternal: true,
    concerns: (def) => def.group === group && leading.test(def.resource),
    async validate(call) {
      const { checkParamAccess } = await import('../../admission/param-access.ts');
      await checkParamAccess(call, tools);
    },
  };
}

function defOfKind(
  catalogue: Catalogue,
  apiVersion: string,
  kind: string,
): ResourceDef | undefined {
  const { defs } = catalogue.snapshot();
  return defs.find((def) => def.kind === kind && versionNamed(def, apiVersion)?.served === true);
}

/** Time limit for one pod review by the image policy service, in milliseconds. */
const imagePolicyTimeoutMs = 30_000;

/** Plugin configurations and what must be closed with the server. */
interface OpenConfigurations {
  readonly configurations: PluginConfigurations;
  readonly webhookCredentials?: NonNullable<ServerConfig['admission']>['webhookCredentials'];
  close(): void;
}

/**
 * Reads `--admission-control-config-file` for the plugins that run (ADM-1); loads the reader only
 * if a plugin can be configured. Rejects with a one-line error when the file, or one it names, is
 * unusable, or when a plugin lacks a configuration it requires.
 */
export async function openConfigurations(config: ServerConfig): Promise<OpenConfigurations> {
  const { clock, admission = {} } = config;
  if (admission.configFile === undefined && !needsConfiguration(admission)) {
    return { configurations: {}, close: () => {} };
  }
  const [{ readConfigurations }, webhooks] = await Promise.all([
    import('../../admission/configuration/plugins.ts'),
    import('../../webhooks/webhook-client.ts'),
  ]);
  const { createWebhook, readWebhookCredentials, webhookOfKubeconfig } = webhooks;
  const dialect = dialectOf(config.dialect);
  const file = admission.configFile;
  const running = chosenPlugins(admission);
  const texts =
    file === undefined ? new Map<string, string>() : await textsOf(file, { config, running });
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
async function textsOf(
  file: string,
  { config, running }: { readonly config: ServerConfig; readonly running: ReadonlySet<string> },
): Promise<ReadonlyMap<string, string>> {
  const { readPluginTexts } = await import('../../admission/configuration/file.ts');
  const folder = dirname(file);
  const absolute = (path: string) => (isAbsolute(path) ? path : resolve(folder, path));
  const readFile = (path: string) => readNamed(absolute(path), 'admission plugin configuration');
  const text = readNamed(file, 'admission control configuration');
  try {
    const dialect = dialectOf(config.dialect);
    return await readPluginTexts(text, { dialect, running, readFile });
  } catch (error) {
    const why = errorText(error);
    throw new Error(`failed to read plugin config: ${why}`);
  }
}

function readNamed(path: string, what: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    const why = errorText(error);
    throw new Error(`unable to read ${what} from ${JSON.stringify(path)} [${why}]`);
  }
}
