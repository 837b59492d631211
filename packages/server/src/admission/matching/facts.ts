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
