import type { CatalogueSnapshot, ResourceDef, VersionDef } from '@wheelhouse/kinds';
import type { Dialect } from '@wheelhouse/machinery';
import type { AdmissionCall, Target } from '../../registry/contract.ts';

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

/** What rules and reviews say of a write, whatever its object. */
export interface RequestFacts {
  readonly operation: AdmissionCall['operation'];
  readonly resource: ResourceFact;
  /** Of the object that is judged: a sub-resource's own, where it has one. */
  readonly kind: KindFact;
  readonly subresource: string;
  readonly name: string;
  /** A Namespace is its own namespace here, as upstream. */
  readonly namespace: string;
}

/** Reads the facts off a call. */
export function factsOf(call: AdmissionCall): RequestFacts {
  const { target, operation, name } = call;
  const { def, version, subresource } = target;
  return {
    operation,
    resource: { group: def.group, version: version.version, resource: def.resource },
    kind: kindFor(def, version, subresource),
    subresource,
    name,
    namespace: isNamespaces(target) ? name : target.namespace,
  };
}

const isNamespaces = ({ def }: Target) => def.group === '' && def.resource === 'namespaces';

/** The kind of what is written through a resource or sub-resource. */
export function kindFor(def: ResourceDef, version: VersionDef, subresource: string): KindFact {
  const own = def.subresources.find(({ name }) => name === subresource)?.kind;
  return own ?? { group: def.group, version: version.version, kind: def.kind };
}

/** A resource that shows the same objects, and how it is served. */
export interface Equivalent {
  readonly resource: ResourceFact;
  readonly def: ResourceDef;
  readonly version: VersionDef;
}

/** Other resources and versions with the same objects and the same sub-resource, in their order. */
export function equivalentsOf(
  snapshot: CatalogueSnapshot,
  { def, version, subresource }: Target,
): readonly Equivalent[] {
  return snapshot.defs
    .filter((one) => one.storage.prefix === def.storage.prefix && one.isVirtual === def.isVirtual)
    .filter(
      (one) => subresource === '' || one.subresources.some(({ name }) => name === subresource),
    )
    .flatMap((one) =>
      one.versions
        .filter(({ served }) => served)
        .map((served) => ({
          resource: { group: one.group, version: served.version, resource: one.resource },
          def: one,
          version: served,
        })),
    )
    .filter((one) => one.def !== def || one.version.version !== version.version);
}

const exempt = new Set([
  'MutatingAdmissionPolicy',
  'MutatingAdmissionPolicyBinding',
  'MutatingWebhookConfiguration',
  'ValidatingAdmissionPolicy',
  'ValidatingAdmissionPolicyBinding',
  'ValidatingWebhookConfiguration',
]);

/**
 * Whether nobody outside judges this write: configurations of webhooks and policies, which could
 * otherwise keep themselves from being mended.
 */
export function isExempt({ target: { def } }: AdmissionCall, dialect: Dialect): boolean {
  return exempt.has(def.kind) && def.group === dialect.group('admissionregistration');
}

/** `group/version, Kind=kind`, as upstream prints a kind. */
export function showKind({ group, version, kind }: KindFact): string {
  return `${group}/${version}, Kind=${kind}`;
}
