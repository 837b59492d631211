import type { RequestSubject } from '@wheelhouse/machinery';

/**
 * What a URL and a method ask for, before anything is looked up (API-1, AUTHZ-1). Pure.
 */
export interface RequestInfo extends RequestSubject {
  /** `api` or `apis`; empty for other paths. */
  readonly apiPrefix: string;
  /** Empty for collections. A `fieldSelector=metadata.name=x` on list and watch fills it. */
  readonly name: string;
  /** Path segments after the version (and after `namespaces/<ns>` for namespaced resources). */
  readonly parts: readonly string[];
  readonly query: URLSearchParams;
}
