import type { CatalogueSnapshot, ResourceDef, VersionDef } from '@wheelhouse/kinds';
import {
  type ApiObject,
  compileLabelSelector,
  cut,
  type Dialect,
  type JsonValue,
  type LabelSelection,
  notFound,
  objectOf,
  objectsOf,
  stringsOf,
} from '@wheelhouse/machinery';
import type { AdmissionCall, Target } from '../../registry/contract.ts';
import type { ObjectReader } from '../tools.ts';

/** A resource in a version, as rules name it. */
export interface ResourceFact {
  readonly group: string;
  readonly version: string;
  readonly resource: string;
}

/** A kind in a version. */
export interface KindFact {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
}

/** The attributes of a write that rules and reviews refer to. */
export interface RequestFacts {
  readonly operation: AdmissionCall['operation'];
  readonly resource: ResourceFact;
  /** The kind of the validated object: that of the subresource, if it has its own. */
  readonly kind: KindFact;
  readonly subresource: string;
  readonly name: string;
  /** A Namespace counts as its own namespace unless its name is generated, as in kube-apiserver. */
  readonly namespace: string;
}

/** Derives the facts from a call. */
export function factsOf(call: AdmissionCall): RequestFacts {
  const { target, operation, name, hasGeneratedName } = call;
  const { def, version, subresource } = target;
  return {
    operation,
    resource: { group: def.group, version: version.version, resource: def.resource },
    kind: kindFor(def, version, subresource),
    subresource,
    name,
    namespace: isNamespaces(target) ? (hasGeneratedName ? '' : name) : target.namespace,
  };
}

const isNamespaces = ({ def }: Target) => def.group === '' && def.resource === 'namespaces';

/** The kind that is written through a resource or subresource. */
export function kindFor(def: ResourceDef, version: VersionDef, subresource: string): KindFact {
  const own = def.subresources.find(({ name }) => name === subresource)?.kind;
  return own ?? { group: def.group, version: version.version, kind: def.kind };
}

/** A resource that exposes the same objects, and how it is served. */
interface Equivalent {
  readonly resource: ResourceFact;
  readonly def: ResourceDef;
  readonly version: VersionDef;
}

/**
 * Other resources and versions of the same objects with the same subresource, in catalogue order.
 * The versions of a definition include those that it does not serve, as in kube-apiserver.
 */
export function equivalentsOf(
  snapshot: CatalogueSnapshot,
  { def, version, subresource }: Target,
): readonly Equivalent[] {
  return snapshot.defs
    .filter(
      ({ storage, isVirtual }) =>
        storage.prefix === def.storage.prefix && isVirtual === def.isVirtual,
    )
    .filter(
      ({ subresources }) =>
        subresource === '' || subresources.some(({ name }) => name === subresource),
    )
    .flatMap((candidate) =>
      candidate.versions
        .filter(({ served }) => served || candidate.behavior.lifetime === 'definition')
        .map((served) => ({
          resource: {
            group: candidate.group,
            version: served.version,
            resource: candidate.resource,
          },
          def: candidate,
          version: served,
        })),
    )
    .filter(
      (equivalent) => equivalent.def !== def || equivalent.version.version !== version.version,
    );
}

const policyKinds = new Set([
  'MutatingAdmissionPolicy',
  'MutatingAdmissionPolicyBinding',
  'ValidatingAdmissionPolicy',
  'ValidatingAdmissionPolicyBinding',
]);
const webhookKinds = new Set(['MutatingWebhookConfiguration', 'ValidatingWebhookConfiguration']);

/**
 * Whether webhooks or policies skip this write. Their own configurations are exempt, since they
 * could otherwise prevent their own repair; policies apply to webhook configurations.
 */
export function isExempt(
  { target: { def } }: AdmissionCall,
  { from, dialect }: { readonly from: 'policies' | 'webhooks'; readonly dialect: Dialect },
): boolean {
  const { kind, group } = def;
  const isListed = policyKinds.has(kind) || (from === 'webhooks' && webhookKinds.has(kind));
  return isListed && group === dialect.group('admissionregistration');
}

/** `group/version, Kind=kind`, as kube-apiserver prints a kind. */
export function showKind({ group, version, kind }: KindFact): string {
  return `${group}/${version}, Kind=${kind}`;
}

/** One rule of a webhook or policy: operations and resources that it matches. */
export interface OperationRule {
  readonly operations: readonly string[];
  readonly apiGroups: readonly string[];
  readonly apiVersions: readonly string[];
  /** `pods`, `pods/status`, `pods/*`, `*`, or `*` with a subresource. */
  readonly resources: readonly string[];
  readonly scope: string;
  /** Names that it is limited to; empty for any. */
  readonly resourceNames: readonly string[];
}

/** Reads a list of rules from a validated object. */
export function rulesOf(list: JsonValue | undefined): readonly OperationRule[] {
  return objectsOf(list).map((rule) => ({
    operations: stringsOf(rule['operations']),
    apiGroups: stringsOf(rule['apiGroups']),
    apiVersions: stringsOf(rule['apiVersions']),
    resources: stringsOf(rule['resources']),
    scope: typeof rule['scope'] === 'string' ? rule['scope'] : '*',
    resourceNames: stringsOf(rule['resourceNames']),
  }));
}

const everything = '*';
const lists = (items: readonly string[], item: string) =>
  items.includes(everything) || items.includes(item);

/** Whether a rule matches a request as one for `resource`, its own or an equivalent one. */
export function matchesRule(
  rule: OperationRule,
  facts: RequestFacts,
  resource: ResourceFact = facts.resource,
): boolean {
  return (
    fitsScope(rule, facts, resource) &&
    lists(rule.operations, facts.operation) &&
    lists(rule.apiGroups, resource.group) &&
    lists(rule.apiVersions, resource.version) &&
    rule.resources.some((pattern) => fitsResource(pattern, resource, facts.subresource)) &&
    (rule.resourceNames.length === 0 || rule.resourceNames.includes(facts.name))
  );
}

/** Namespaces are cluster-scoped, although their requests name a namespace. */
function fitsScope(
  { scope }: OperationRule,
  { namespace }: RequestFacts,
  resource: ResourceFact,
): boolean {
  if (scope === everything) return true;
  const isNamespace = resource.group === '' && resource.resource === 'namespaces';
  const isNamespaced = namespace !== '' && !isNamespace;
  return scope === 'Namespaced' ? isNamespaced : scope === 'Cluster' && !isNamespaced;
}

function fitsResource(pattern: string, { resource }: ResourceFact, subresource: string): boolean {
  const [name, part = ''] = cut(pattern, '/');
  return (
    (name === everything || name === resource) && (part === everything || part === subresource)
  );
}

/** Reads a selector from an object; an absent one selects everything. */
export function selectorOf(value: JsonValue | undefined): LabelSelection {
  return compileLabelSelector(objectOf(value));
}

const isEmpty = ({ requirements }: LabelSelection) => requirements.length === 0;

/**
 * Whether the selector matches the new or the old object. The options of a stream have no metadata,
 * so only an empty selector matches them.
 */
export function selectsObject(selector: LabelSelection, call: AdmissionCall): boolean {
  if (isEmpty(selector)) return true;
  if (call.operation === 'CONNECT') return false;
  return [call.object, call.old].some(
    (object) => object !== undefined && selector.matches(labelsOf(object)),
  );
}

/**
 * Whether the selector matches the namespace of a request; for a Namespace that is created or
 * updated, its own new labels. Always true for cluster-scoped objects. Throws 404 when the
 * namespace does not exist.
 */
export async function selectsNamespace(
  selector: LabelSelection,
  at: {
    readonly call: AdmissionCall;
    readonly facts: RequestFacts;
    readonly objects: ObjectReader;
  },
): Promise<boolean> {
  const { call, facts, objects } = at;
  const isNamespace = facts.resource.group === '' && facts.resource.resource === 'namespaces';
  if (isEmpty(selector) || (facts.namespace === '' && !isNamespace)) return true;
  const isOwn = isNamespace && facts.subresource === '' && call.operation !== 'DELETE';
  if (isOwn) return selector.matches(labelsOf(call.object));
  const object = await objects.get('namespaces', { namespace: '', name: facts.namespace });
  if (object === undefined) throw notFound({ group: '', resource: 'namespaces' }, facts.namespace);
  return selector.matches(labelsOf(object));
}

function labelsOf(object: ApiObject | undefined): Readonly<Record<string, string>> {
  return object?.metadata?.labels ?? {};
}
