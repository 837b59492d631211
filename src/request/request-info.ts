/**
 * What a URL and a method ask for, before anything is looked up (API-1, AUTHZ-1). Pure.
 */
export interface RequestInfo {
  /** Lower-case service verb for resource requests; the lower-case HTTP method otherwise. */
  readonly verb: string;
  readonly path: string;
  readonly isResourceRequest: boolean;
  /** `api` or `apis`; empty for other paths. */
  readonly apiPrefix: string;
  readonly group: string;
  readonly version: string;
  readonly namespace: string;
  readonly resource: string;
  readonly subresource: string;
  /** Empty for collections. A `fieldSelector=metadata.name=x` on list and watch fills it. */
  readonly name: string;
  /** Path segments after the version (and after `namespaces/<ns>` for namespaced resources). */
  readonly parts: readonly string[];
  readonly query: URLSearchParams;
}
