import type { CatalogueSnapshot, GateName, ResourceDef } from '@wheelhouse/kinds';
import {
  type ApiObject,
  type Clock,
  type Dialect,
  forbidden,
  type MaybePromise,
  type MetricRegistry,
  type StatusError,
} from '@wheelhouse/machinery';
import type { CachePool } from '../registry/caches.ts';
import type { AdmissionCall } from '../registry/contract.ts';
import type { Attributes, AuthorizationResult } from '../registry/permit.ts';
import { groupResourceOf, type Registry } from '../registry/registry.ts';
import type { PluginConfigurations } from './configuration/plugins.ts';
import type { QuotaLedger } from './quota/quota-ledger.ts';
import type { WebhookPort } from './webhooks/port.ts';

/** The position of an object; the namespace is empty for cluster-scoped kinds. */
interface Place {
  readonly namespace: string;
  readonly name: string;
}

/**
 * Reads objects for plugins, as new as the store. Resources are named `pods`, or
 * `priorityclasses.scheduling` with the stem of their group. Returned objects are shared and must
 * not be changed.
 */
export interface ObjectReader {
  /** Undefined if the object or the kind does not exist. */
  get(resource: string, at: Place): Promise<ApiObject | undefined>;
  /** All objects of a namespace; of all namespaces when it is empty. */
  list(resource: string, namespace: string): MaybePromise<readonly ApiObject[]>;
  /** The objects that `list` returns, one after the other: for kinds of which there are many. */
  each(resource: string, namespace: string): AsyncIterable<ApiObject>;
}

/** An access that a plugin checks; absent parts are empty. */
type CheckedAccess = Pick<Attributes, 'user' | 'verb' | 'group' | 'resource'> &
  Partial<Pick<Attributes, 'subresource' | 'namespace' | 'name'>>;

/** Plugin settings from flags. */
interface PluginSettings {
  /** Seconds that a pod tolerates a node that is not ready. */
  readonly notReadyTolerationSeconds: number;
  /** Seconds that a pod tolerates an unreachable node. */
  readonly unreachableTolerationSeconds: number;
}

/** The dependencies of plugins, created once per server. */
export interface AdmissionTools {
  readonly dialect: Dialect;
  readonly clock: Clock;
  readonly objects: ObjectReader;
  readonly settings: PluginSettings;
  /** Plugin settings from the configuration file; empty without one. */
  readonly configurations: PluginConfigurations;
  /** Any kind that is served, by its apiVersion and kind. */
  readonly defOfKind: (apiVersion: string, kind: string) => ResourceDef | undefined;
  /** Shared with the controller that recounts namespaces. */
  readonly ledger: QuotaLedger;
  /** A built-in kind, by the stem of its group, which is empty for the core group. */
  readonly builtin: (stem: string, resource: string) => ResourceDef | undefined;
  /** All kinds served now. */
  readonly snapshot: () => CatalogueSnapshot;
  readonly caches: CachePool;
  /** The decision on any access; synchronous if possible. */
  readonly authorize: (attributes: Attributes) => MaybePromise<AuthorizationResult>;
  readonly metrics: MetricRegistry;
  /** Whether a feature gate is on. */
  readonly isOn: (feature: GateName) => boolean;
  /** Calls webhooks. */
  readonly webhooks: WebhookPort;
  /** The same with the credentials that the configuration file has for a plugin. */
  readonly webhooksOf: (plugin: 'mutating' | 'validating') => WebhookPort;
  /** Logs a failure that no client is informed of. */
  readonly log: (message: string, error: unknown) => void;
  /** For the few plugins that write; built after the plugins, hence a function. */
  readonly registry: () => Registry;
}

/** Whether authorization allows an access, and its reason. */
export async function checkAccess(
  tools: Pick<AdmissionTools, 'authorize'>,
  access: CheckedAccess,
): Promise<{ readonly allowed: boolean; readonly reason: string }> {
  const { subresource = '', namespace = '', name = '' } = access;
  const about = { isResourceRequest: true, version: '*', path: '' };
  const attributes = { ...access, subresource, namespace, name, ...about };
  const { decision, reason } = await tools.authorize(attributes);
  return { allowed: decision === 'allow', reason };
}

/** The object's name in a refusal: its own, or the prefix of the generated one. */
export function nameOf(call: AdmissionCall): string {
  const { name = '', generateName = '' } = call.object?.metadata ?? {};
  return call.name || name || generateName || 'Unknown';
}

/** A 403 with kube-apiserver's frame around a plugin's message. */
export function refusal(call: AdmissionCall, why: string): StatusError {
  return forbidden(groupResourceOf(call.target.def), nameOf(call), why);
}
