import type { JsonObject } from '@wheelhouse/machinery/browser';
import { objectOf, objectsOf, textOf, textsOf } from './failure.ts';

/** A resource the server serves now, in one version. */
export interface Kind {
  /** Empty for the core group. */
  readonly group: string;
  readonly version: string;
  /** `deployments` */
  readonly resource: string;
  /** `Deployment` */
  readonly kind: string;
  readonly scope: 'Namespaced' | 'Cluster';
  readonly verbs: readonly string[];
  readonly shortNames: readonly string[];
  readonly categories: readonly string[];
  readonly subresources: readonly Subresource[];
  /** Whether the server prefers this version to all others of its group that have the resource. */
  readonly preferred: boolean;
}

export interface Subresource {
  /** `scale` */
  readonly name: string;
  readonly kind: string;
  readonly verbs: readonly string[];
}

/** `v1`, `apps/v1` */
export function apiVersionOf({ group, version }: Pick<Kind, 'group' | 'version'>): string {
  return group === '' ? version : `${group}/${version}`;
}

/** How people and command lines name a resource: `deployments.apps`, `pods`. */
export function resourceName({ group, resource }: Pick<Kind, 'group' | 'resource'>): string {
  return group === '' ? resource : `${resource}.${group}`;
}

/** Whether a kind's objects are something to browse; what only takes reviews is not. */
export function isBrowsable({ verbs }: Kind): boolean {
  return verbs.includes('list') || verbs.includes('get');
}

/** The path of a kind's objects, all or those of a namespace. */
export function collectionPath(kind: Kind, namespace?: string): string {
  const { group, version, resource, scope } = kind;
  const root = group === '' ? '/api' : `/apis/${encodeURIComponent(group)}`;
  const within =
    scope === 'Namespaced' && namespace !== undefined
      ? `/namespaces/${encodeURIComponent(namespace)}`
      : '';
  return `${root}/${encodeURIComponent(version)}${within}/${encodeURIComponent(resource)}`;
}

/** Which object of a kind. */
export interface ObjectName {
  readonly kind: Kind;
  /** Undefined for a kind without namespaces. */
  readonly namespace: string | undefined;
  readonly name: string;
}

/** The path of one object, or of a subresource of it. */
export function objectPath({ kind, namespace, name }: ObjectName, subresource?: string): string {
  const path = `${collectionPath(kind, namespace)}/${encodeURIComponent(name)}`;
  return subresource === undefined ? path : `${path}/${subresource}`;
}

/** The kinds of an aggregated discovery document, in its order. */
export function kindsOf(document: JsonObject): Kind[] {
  return objectsOf(document, 'items').flatMap((item) => {
    const group = textOf(objectOf(item, 'metadata'), 'name');
    const seen = new Set<string>();
    return objectsOf(item, 'versions').flatMap((served) =>
      objectsOf(served, 'resources').map((resource): Kind => {
        const name = textOf(resource, 'resource');
        const preferred = !seen.has(name);
        seen.add(name);
        return { group, version: textOf(served, 'version'), preferred, ...partsOf(resource) };
      }),
    );
  });
}

function partsOf(resource: JsonObject): Omit<Kind, 'group' | 'version' | 'preferred'> {
  return {
    resource: textOf(resource, 'resource'),
    kind: textOf(objectOf(resource, 'responseKind'), 'kind'),
    scope: resource.scope === 'Namespaced' ? 'Namespaced' : 'Cluster',
    verbs: textsOf(resource, 'verbs'),
    shortNames: textsOf(resource, 'shortNames'),
    categories: textsOf(resource, 'categories'),
    subresources: objectsOf(resource, 'subresources').map((subresource) => ({
      name: textOf(subresource, 'subresource'),
      kind: textOf(objectOf(subresource, 'responseKind'), 'kind'),
      verbs: textsOf(subresource, 'verbs'),
    })),
  };
}
