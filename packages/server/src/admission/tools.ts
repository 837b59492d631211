import type { CatalogueSnapshot, GateName, ResourceDef } from '@wheelhouse/kinds';
import {
  type ApiObject,
  type Clock,
  type Dialect,
  type FieldRequirement,
  forbidden,
  type LabelRequirement,
  type MaybePromise,
  type MetricRegistry,
  type StatusError,
  type UserInfo,
} from '@wheelhouse/machinery';
import type { CachePool } from '../registry/caches.ts';
import type { AdmissionCall } from '../registry/contract.ts';
import { groupResourceOf, type Registry } from '../registry/registry.ts';
import type { PluginConfigurations } from './configuration/plugins.ts';
import type { QuotaLedger } from './quota/quota-ledger.ts';
import type { WebhookPort } from './webhooks/port.ts';

/** Where an object is; the namespace is empty for cluster-scoped kinds. */
export interface Place {
  readonly namespace: string;
  readonly name: string;
}

/**
 * Reads objects for plugins, as new as the store has them. Resources are named `pods`, or
 * `priorityclasses.scheduling` with the stem of their group. What is given is shared: nobody
 * changes it.
 */
export interface ObjectReader {
  /** Undefined when there is none, or no such kind. */
  get(resource: string, at: Place): Promise<ApiObject | undefined>;
  /** All objects of a namespace; of all namespaces when it is empty. */
  list(resource: string, namespace: string): Promise<readonly ApiObject[]>;
}

/** What a plugin asks of authorization. */
export interface Question {
  readonly user: UserInfo;
  readonly verb: string;
  readonly group: string;
  readonly resource: string;
  readonly subresource?: string;
  readonly namespace?: string;
  readonly name?: string;
}

/** What administrators set of plugins, by flags. */
export interface PluginSettings {
  /** Seconds a pod stays on a node that is not ready. */
  readonly notReadyTolerationSeconds: number;
  /** Seconds a pod stays on a node that cannot be reached. */
  readonly unreachableTolerationSeconds: number;
}

/** What of an access authorization judges. */
export interface AccessAttributes extends Required<Question> {
  readonly isResourceRequest: boolean;
  readonly version: string;
  readonly path: string;
  readonly fieldSelector?: readonly FieldRequirement[];
  readonly labelSelector?: readonly LabelRequirement[];
}

/** What authorization says; `error` where it could not judge. */
export interface AccessVerdict {
  readonly decision: 'allow' | 'deny' | 'no-opinion';
  readonly reason: string;
  readonly error?: string;
}

/** What plugins work with; made once by `server/`. */
export interface AdmissionTools {
  readonly dialect: Dialect;
  readonly clock: Clock;
  readonly objects: ObjectReader;
  readonly settings: PluginSettings;
  /** What the configuration file says of plugins; empty without one. */
  readonly configurations: PluginConfigurations;
  /** Whether authorization allows something, and what it says of it. */
  readonly decide: (
    question: Question,
  ) => Promise<{ readonly allowed: boolean; readonly reason: string }>;
  /** A built-in kind of the core group, by its resource. */
  readonly kindOf: (resource: string) => ResourceDef | undefined;
  /** Any kind that is served, by its apiVersion and kind. */
  readonly defOfKind: (apiVersion: string, kind: string) => ResourceDef | undefined;
  /** Shared with whoever counts namespaces anew. */
  readonly ledger: QuotaLedger;
  /** A built-in kind, by the stem of its group. */
  readonly builtin: (stem: string, resource: string) => ResourceDef | undefined;
  /** All kinds served now. */
  readonly snapshot: () => CatalogueSnapshot;
  readonly caches: CachePool;
  /** What authorization says of anything; at once, where it can. */
  readonly authorize: (attributes: AccessAttributes) => MaybePromise<AccessVerdict>;
  readonly metrics: MetricRegistry;
  /** Whether a feature is on. */
  readonly isOn: (feature: GateName) => boolean;
  /** Calls webhooks. */
  readonly webhooks: WebhookPort;
  /** The same with the credentials that the configuration file gives a plugin. */
  readonly webhooksOf: (plugin: 'mutating' | 'validating') => WebhookPort;
  /** Logs a failure that nobody is told of. */
  readonly log: (message: string, error: unknown) => void;
  /** For the few plugins that write; made after the plugins, so asked for when needed. */
  readonly registry: () => Registry;
}

/** The name a refusal gives the object: its own, or what one is to be made from. */
export function nameOf(call: AdmissionCall): string {
  const { name = '', generateName = '' } = call.object?.metadata ?? {};
  return call.name || name || generateName || 'Unknown';
}

/** 403 in the frame that upstream gives what a plugin says. */
export function refusal(call: AdmissionCall, why: string): StatusError {
  return forbidden(groupResourceOf(call.target.def), nameOf(call), why);
}

/** The resource of a call as plugins name it: `pods`, `ingresses.networking.svc.io`. */
export function resourceOf({ target: { def } }: AdmissionCall): string {
  return def.group === '' ? def.resource : `${def.resource}.${def.group}`;
}
