import type { ResourceDef } from '@wheelhouse/kinds';
import { apiVersionOf, type Clock, type Dialect, type MetricRegistry } from '@wheelhouse/machinery';
import { type AdmissionPlugin, admissionChain, createChainMeter } from '../../admission/chain.ts';
import { closedKinds } from '../../admission/closed-kinds.ts';
import { createObjectReader } from '../../admission/objects.ts';
import { admissionPlugins, needsConfiguration } from '../../admission/plugin-list.ts';
import type { QuotaLedger } from '../../admission/quota/quota-ledger.ts';
import { ruleEngineLoader } from '../../admission/rule-engine.ts';
import type { AdmissionTools, ObjectReader } from '../../admission/tools.ts';
import type { WebhookPort } from '../../admission/webhooks/port.ts';
import type { Catalogue } from '../../catalogue/catalogue.ts';
import { defaultGates } from '../../flags/feature-gates.ts';
import { type EscalationPort, escalationCheck } from '../../gates/authz/rbac/escalation-check.ts';
import type { AdmissionPort } from '../../registry/contract.ts';
import type { Registry } from '../../registry/registry.ts';
import type { WebhookCredentials } from '../../webhooks/webhook-client.ts';
import type { ServerConfig } from '../config.ts';
import type { ReadingBase } from '../context.ts';
import type { Tracing } from '../observability/tracing.ts';
import type { OpenConfigurations } from './admission-configuration.ts';

/** A webhook caller whose code is loaded with the first call. */
export function lazyWebhooks(parts: {
  readonly clock: Clock;
  readonly dialect: Dialect;
  readonly objects: ObjectReader;
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
    /** Custom kinds that no longer accept new objects. */
    readonly closed: ReadonlySet<string>;
    readonly authorization: EscalationPort;
    readonly ledger: QuotaLedger;
    /** For the few plugins that write. */
    readonly registry: () => Registry;
  },
): AdmissionPort {
  const { config, dialect, catalogue, caches, authorization } = options;
  const { admission = {} } = config;
  const { snapshot } = catalogue;
  const objects = createObjectReader({ dialect, caches, snapshot });
  const { tracing, metrics } = options;
  const { clock } = config;
  const reaching = { clock, dialect, objects, registry: metrics.registry, tracing };
  const tools: AdmissionTools = {
    dialect,
    clock: config.clock,
    objects,
    settings: {
      notReadyTolerationSeconds: admission.notReadyTolerationSeconds ?? 300,
      unreachableTolerationSeconds: admission.unreachableTolerationSeconds ?? 300,
    },
    configurations: admission.configurations ?? {},
    decide: async (question) => {
      const { subresource = '', namespace = '', name = '' } = question;
      const attributes = { ...question, subresource, namespace, name };
      const about = { isResourceRequest: true, version: '*', path: '' };
      const { decision, reason } = await authorization.decide({ ...attributes, ...about });
      return { allowed: decision === 'allow', reason };
    },
    kindOf: (resource) => snapshot().builtin('', resource),
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
    closedKinds(options.closed),
    escalationCheck({ dialect, port: authorization, clock: config.clock }),
  ];
  const meter = createChainMeter(options.metrics.registry, () => config.clock.monotonic());
  return admissionChain(plugins, meter);
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
  return defs.find(
    (def) =>
      def.kind === kind &&
      def.versions.some(
        ({ version, served }) =>
          served && apiVersionOf({ group: def.group, version }) === apiVersion,
      ),
  );
}

/** Reads the plugins' configurations; loads the reader only if a file is given. */
export async function openConfigurations(config: ServerConfig): Promise<OpenConfigurations> {
  const { admission = {} } = config;
  if (admission.configFile === undefined && !needsConfiguration(admission)) {
    return { configurations: {}, close: () => {} };
  }
  const loaded = await import('./admission-configuration.ts');
  return loaded.openPluginConfigurations(config);
}
