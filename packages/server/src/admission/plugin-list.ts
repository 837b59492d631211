import type { ResourceDef } from '@wheelhouse/kinds';
import type { Dialect } from '@wheelhouse/machinery';
import type { AdmissionCall } from '../registry/contract.ts';
import type { AdmissionPlugin } from './chain.ts';
import { type AdmissionTools, refusal } from './tools.ts';

/** A plugin that administrators select by name. */
interface PluginEntry {
  readonly name: string;
  readonly byDefault: 'on' | 'off';
  /** The only phase of the plugin; absent if it has both. */
  readonly phase?: 'mutate' | 'validate';
  /** Resources that it handles, with the stem of their groups; absent for all. */
  readonly on?: readonly string[];
  /** Also handles streams, not only writes. */
  readonly connects?: true;
  /** Requires a configuration. */
  readonly needsConfiguration?: true;
  readonly load: (tools: AdmissionTools) => Promise<AdmissionPlugin>;
}

/** Rejects every write, for tests. */
const alwaysDeny: AdmissionPlugin = {
  name: 'AlwaysDeny',
  mutate(call) {
    throw refusal(call, 'admission control is denying all modifications');
  },
};

/**
 * Every plugin of release 1.32 in execution order, with its default (ADM-1). Each is loaded at the
 * first write that concerns it.
 */
const plugins: readonly PluginEntry[] = [
  {
    name: 'AlwaysAdmit',
    byDefault: 'off',
    connects: true,
    load: async () => ({ name: 'AlwaysAdmit' }),
  },
  {
    name: 'NamespaceAutoProvision',
    byDefault: 'off',
    phase: 'mutate',
    load: async (tools) => (await import('./plugins/namespaces.ts')).namespaceAutoProvision(tools),
  },
  {
    name: 'NamespaceLifecycle',
    byDefault: 'on',
    phase: 'mutate',
    load: async (tools) => (await import('./plugins/namespaces.ts')).namespaceLifecycle(tools),
  },
  {
    name: 'NamespaceExists',
    byDefault: 'off',
    phase: 'validate',
    load: async (tools) => (await import('./plugins/namespaces.ts')).namespaceExists(tools),
  },
  {
    name: 'LimitPodHardAntiAffinityTopology',
    byDefault: 'off',
    phase: 'validate',
    on: ['pods'],
    load: async (tools) =>
      (
        await import('./plugins/limit-pod-hard-anti-affinity-topology.ts')
      ).limitPodHardAntiAffinityTopology(tools),
  },
  {
    name: 'LimitRanger',
    byDefault: 'on',
    on: ['pods', 'persistentvolumeclaims'],
    load: async (tools) => (await import('./plugins/limit-ranger.ts')).limitRanger(tools),
  },
  {
    name: 'ServiceAccount',
    byDefault: 'on',
    on: ['pods'],
    load: async (tools) => (await import('./plugins/service-account.ts')).serviceAccount(tools),
  },
  {
    name: 'NodeRestriction',
    byDefault: 'off',
    phase: 'mutate',
    load: async (tools) => (await import('./plugins/node-restriction.ts')).nodeRestriction(tools),
  },
  {
    name: 'TaintNodesByCondition',
    byDefault: 'on',
    phase: 'mutate',
    on: ['nodes'],
    load: async (tools) =>
      (await import('./plugins/taint-nodes-by-condition.ts')).taintNodesByCondition(tools),
  },
  {
    name: 'AlwaysPullImages',
    byDefault: 'off',
    on: ['pods'],
    load: async () => (await import('./plugins/always-pull-images.ts')).alwaysPullImages,
  },
  {
    name: 'ImagePolicyWebhook',
    byDefault: 'off',
    phase: 'validate',
    needsConfiguration: true,
    on: ['pods'],
    load: async (tools) =>
      (await import('./plugins/image-policy-webhook.ts')).imagePolicyWebhook(tools),
  },
  {
    name: 'PodSecurity',
    byDefault: 'on',
    phase: 'validate',
    on: [
      'namespaces',
      'pods',
      'podtemplates',
      'replicationcontrollers',
      'replicasets.apps',
      'deployments.apps',
      'statefulsets.apps',
      'daemonsets.apps',
      'jobs.batch',
      'cronjobs.batch',
    ],
    load: async (tools) => (await import('./pod-security/pod-security.ts')).podSecurity(tools),
  },
  {
    name: 'PodNodeSelector',
    byDefault: 'off',
    on: ['pods'],
    load: async (tools) => (await import('./plugins/pod-node-selector.ts')).podNodeSelector(tools),
  },
  {
    name: 'Priority',
    byDefault: 'on',
    on: ['pods', 'priorityclasses.scheduling'],
    load: async (tools) => (await import('./plugins/priority.ts')).priority(tools),
  },
  {
    name: 'DefaultTolerationSeconds',
    byDefault: 'on',
    phase: 'mutate',
    on: ['pods'],
    load: async (tools) =>
      (await import('./plugins/tolerations.ts')).defaultTolerationSeconds(tools),
  },
  {
    name: 'PodTolerationRestriction',
    byDefault: 'off',
    on: ['pods'],
    load: async (tools) =>
      (await import('./plugins/tolerations.ts')).podTolerationRestriction(tools),
  },
  {
    name: 'EventRateLimit',
    byDefault: 'off',
    phase: 'validate',
    needsConfiguration: true,
    on: ['events'],
    load: async (tools) => (await import('./plugins/event-rate-limit.ts')).eventRateLimit(tools),
  },
  {
    name: 'ExtendedResourceToleration',
    byDefault: 'off',
    phase: 'mutate',
    on: ['pods'],
    load: async (tools) =>
      (await import('./plugins/tolerations.ts')).extendedResourceToleration(tools),
  },
  {
    name: 'DefaultStorageClass',
    byDefault: 'on',
    phase: 'mutate',
    on: ['persistentvolumeclaims'],
    load: async (tools) =>
      (await import('./plugins/default-classes.ts')).defaultStorageClass(tools),
  },
  {
    name: 'StorageObjectInUseProtection',
    byDefault: 'on',
    phase: 'mutate',
    on: ['persistentvolumes', 'persistentvolumeclaims'],
    load: async (tools) =>
      (await import('./plugins/persistent-volumes.ts')).storageObjectInUseProtection(tools),
  },
  {
    name: 'OwnerReferencesPermissionEnforcement',
    byDefault: 'off',
    phase: 'validate',
    load: async (tools) =>
      (
        await import('./plugins/owner-references-permission-enforcement.ts')
      ).ownerReferencesPermissionEnforcement(tools),
  },
  {
    name: 'PersistentVolumeClaimResize',
    byDefault: 'on',
    phase: 'validate',
    on: ['persistentvolumeclaims'],
    load: async (tools) =>
      (await import('./plugins/persistent-volumes.ts')).persistentVolumeClaimResize(tools),
  },
  {
    name: 'RuntimeClass',
    byDefault: 'on',
    on: ['pods'],
    load: async (tools) => (await import('./plugins/runtime-class.ts')).runtimeClass(tools),
  },
  {
    name: 'CertificateApproval',
    byDefault: 'on',
    phase: 'validate',
    on: ['certificatesigningrequests.certificates'],
    load: async (tools) => (await import('./plugins/certificates.ts')).certificateApproval(tools),
  },
  {
    name: 'CertificateSigning',
    byDefault: 'on',
    phase: 'validate',
    on: ['certificatesigningrequests.certificates'],
    load: async (tools) => (await import('./plugins/certificates.ts')).certificateSigning(tools),
  },
  {
    name: 'ClusterTrustBundleAttest',
    byDefault: 'on',
    phase: 'validate',
    on: ['clustertrustbundles.certificates'],
    load: async (tools) =>
      (await import('./plugins/certificates.ts')).clusterTrustBundleAttest(tools),
  },
  {
    name: 'CertificateSubjectRestriction',
    byDefault: 'on',
    phase: 'validate',
    on: ['certificatesigningrequests.certificates'],
    load: async (tools) =>
      (await import('./plugins/certificates.ts')).certificateSubjectRestriction(tools),
  },
  {
    name: 'DefaultIngressClass',
    byDefault: 'on',
    phase: 'mutate',
    on: ['ingresses.networking'],
    load: async (tools) =>
      (await import('./plugins/default-classes.ts')).defaultIngressClass(tools),
  },
  {
    name: 'DenyServiceExternalIPs',
    byDefault: 'off',
    phase: 'validate',
    on: ['services'],
    load: async () =>
      (await import('./plugins/deny-service-external-ips.ts')).denyServiceExternalIps,
  },
  {
    name: 'MutatingAdmissionPolicy',
    byDefault: 'on',
    phase: 'mutate',
    connects: true,
    load: async (tools) => (await import('./policies/plugin.ts')).mutatingPolicies(tools),
  },
  {
    name: 'MutatingAdmissionWebhook',
    byDefault: 'on',
    phase: 'mutate',
    connects: true,
    load: async (tools) =>
      (await import('./webhooks/plugin.ts')).mutatingWebhooks({
        ...tools,
        webhooks: tools.webhooksOf('mutating'),
      }),
  },
  {
    name: 'ValidatingAdmissionPolicy',
    byDefault: 'on',
    phase: 'validate',
    connects: true,
    load: async (tools) => (await import('./policies/plugin.ts')).validatingPolicies(tools),
  },
  {
    name: 'ValidatingAdmissionWebhook',
    byDefault: 'on',
    phase: 'validate',
    connects: true,
    load: async (tools) =>
      (await import('./webhooks/plugin.ts')).validatingWebhooks({
        ...tools,
        webhooks: tools.webhooksOf('validating'),
      }),
  },
  {
    name: 'ResourceQuota',
    byDefault: 'on',
    phase: 'validate',
    load: async (tools) => (await import('./quota/resource-quota.ts')).resourceQuota(tools),
  },
  {
    name: 'AlwaysDeny',
    byDefault: 'off',
    phase: 'mutate',
    connects: true,
    load: async () => alwaysDeny,
  },
];

const names = new Set(plugins.map(({ name }) => name));

/** The values of `--enable-admission-plugins` and `--disable-admission-plugins`. */
interface PluginChoice {
  readonly enabled?: readonly string[] | undefined;
  readonly disabled?: readonly string[] | undefined;
  /** Runs only the enabled plugins, without the defaults (`--admission-control`). */
  readonly only?: boolean | undefined;
}

/** Whether a plugin has this name. */
export function isPlugin(name: string): boolean {
  return names.has(name);
}

/** Plugin names for the help of the flags. */
export function pluginNames(byDefault: 'on' | 'off'): readonly string[] {
  return plugins.filter((entry) => entry.byDefault === byDefault).map(({ name }) => name);
}

/** Names of the selected plugins. */
export function chosenPlugins(choice: PluginChoice): ReadonlySet<string> {
  return new Set(plugins.filter((entry) => isChosen(entry, choice)).map(({ name }) => name));
}

/** Whether a selected plugin requires a configuration. */
export function needsConfiguration(choice: PluginChoice): boolean {
  return plugins.some((entry) => entry.needsConfiguration === true && isChosen(entry, choice));
}

/** The selected plugins in execution order. */
export function admissionPlugins(
  choice: PluginChoice,
  tools: AdmissionTools,
): readonly AdmissionPlugin[] {
  return plugins.filter((entry) => isChosen(entry, choice)).map((entry) => lazily(entry, tools));
}

/** Enabling by name takes precedence over disabling, as in kube-apiserver. */
function isChosen(
  entry: PluginEntry,
  { enabled = [], disabled = [], only }: PluginChoice,
): boolean {
  if (enabled.includes(entry.name)) return true;
  return only !== true && entry.byDefault === 'on' && !disabled.includes(entry.name);
}

const otherPhase = { mutate: 'validate', validate: 'mutate' } as const;

/** Loads the plugin with the first call that concerns it. */
function lazily(entry: PluginEntry, tools: AdmissionTools): AdmissionPlugin {
  let plugin: AdmissionPlugin | undefined;
  let loading: Promise<AdmissionPlugin> | undefined;
  const run = (phase: 'mutate' | 'validate', call: AdmissionCall): Promise<void> | undefined => {
    if (call.operation === 'CONNECT' && entry.connects !== true) return undefined;
    if (plugin !== undefined) return plugin[phase]?.(call);
    loading ??= entry.load(tools);
    return loading.then((loaded) => {
      if (entry.phase !== undefined && loaded[otherPhase[entry.phase]] !== undefined) {
        throw new Error(`${entry.name} has more phases than its entry says`);
      }
      plugin = loaded;
      return loaded[phase]?.(call);
    });
  };
  return {
    name: entry.name,
    concerns: concernOf(entry, tools.dialect),
    ...(entry.phase === 'validate' ? {} : { mutate: (call) => run('mutate', call) }),
    ...(entry.phase === 'mutate' ? {} : { validate: (call) => run('validate', call) }),
  };
}

function concernOf({ on }: PluginEntry, dialect: Dialect): (def: ResourceDef) => boolean {
  if (on === undefined) return () => true;
  const groups = new Map<string, Set<string>>();
  for (const resource of on) {
    const [name = '', stem = ''] = resource.split('.', 2);
    const group = dialect.group(stem);
    groups.set(group, (groups.get(group) ?? new Set()).add(name));
  }
  return ({ group, resource }) => groups.get(group)?.has(resource) === true;
}
