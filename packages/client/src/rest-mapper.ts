import { apiVersionOf, parseApiVersion } from '@wheelhouse/machinery';
import type { ApiResource, Discovery } from './discovery.ts';

/**
 * Finds resources by what people call them: plural, singular, short name or kind, in any case, each
 * optionally with `.group` or `.version.group`; and categories. The core group and preferred
 * versions come first.
 */
export class RestMapper {
  readonly #discovery: Discovery;

  constructor(discovery: Discovery) {
    this.#discovery = discovery;
  }

  /** The resource a word means; undefined when the server has none of that name. */
  byName(word: string): ApiResource | undefined {
    const lower = word.toLowerCase();
    const dot = lower.indexOf('.');
    if (dot < 0) return this.#find(lower, () => true);
    const name = lower.slice(0, dot);
    const rest = lower.slice(dot + 1);
    const exact = this.#find(name, (one) => one.group === rest);
    if (exact !== undefined) return exact;
    const versionDot = rest.indexOf('.');
    const version = versionDot < 0 ? rest : rest.slice(0, versionDot);
    const group = versionDot < 0 ? '' : rest.slice(versionDot + 1);
    return (
      this.#find(name, (one) => one.version === version && one.group === group) ??
      this.#find(name, (one) => one.group.startsWith(`${rest}.`) || one.group.startsWith(rest))
    );
  }

  /** The resources of a category that can be listed (`all`); empty when there is none. */
  byCategory(word: string): readonly ApiResource[] {
    return this.#discovery.resources.filter(
      (one) => one.preferred && one.categories.includes(word) && one.verbs.includes('list'),
    );
  }

  /** The resource that serves an object's apiVersion and kind. */
  byKind(apiVersion: string, kind: string): ApiResource | undefined {
    const gv = parseApiVersion(apiVersion);
    return this.#discovery.resources.find(
      (one) => one.kind === kind && one.group === gv?.group && one.version === gv.version,
    );
  }

  #find(name: string, accepts: (one: ApiResource) => boolean): ApiResource | undefined {
    const candidates = this.#discovery.resources.filter(accepts);
    const ways: readonly ((one: ApiResource) => boolean)[] = [
      (one) => one.resource === name,
      (one) => one.singular === name,
      (one) => one.shortNames.includes(name),
      (one) => one.kind.toLowerCase() === name,
    ];
    for (const way of ways) {
      const matching = candidates.filter(way);
      const found = matching.find((one) => one.preferred) ?? matching[0];
      if (found !== undefined) return found;
    }
    return undefined;
  }
}

/** The path of a collection, or of one object in it. */
export function resourcePath(
  resource: Pick<ApiResource, 'group' | 'version' | 'resource' | 'namespaced'>,
  options: { readonly namespace?: string; readonly name?: string; readonly subresource?: string },
): string {
  const segments = [
    resource.group === '' ? 'api' : 'apis',
    apiVersionOf(resource),
    ...(resource.namespaced && options.namespace !== undefined && options.namespace !== ''
      ? ['namespaces', encodeURIComponent(options.namespace)]
      : []),
    resource.resource,
    ...(options.name === undefined || options.name === ''
      ? []
      : [encodeURIComponent(options.name)]),
    ...(options.subresource === undefined || options.subresource === ''
      ? []
      : [options.subresource]),
  ];
  return `/${segments.join('/')}`;
}
