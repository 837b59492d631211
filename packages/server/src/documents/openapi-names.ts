import { capitalize, type Dialect } from '@wheelhouse/machinery';

/** The packages of types that are not in `api.<group>`. */
const packages: readonly (readonly [start: string, place: string])[] = [
  ['meta.', 'apimachinery.pkg.apis.'],
  ['resource.Quantity', 'apimachinery.pkg.api.'],
  ['intstr.', 'apimachinery.pkg.util.'],
  ['runtime.', 'apimachinery.pkg.'],
  ['version.', 'apimachinery.pkg.'],
  ['apiextensions.', 'apiextensions-apiserver.pkg.apis.'],
  ['apiregistration.', 'kube-aggregator.pkg.apis.'],
];

/** Reverses a domain: `k8s.io` -> `io.k8s`. */
function reverseDomain(name: string): string {
  return name.split('.').reverse().join('.');
}

/**
 * The name of a built-in type in documents: `core.v1.Pod` -> `io.k8s.api.core.v1.Pod`. The dialect
 * determines the first two parts.
 */
export function definitionName(dialect: Dialect, typeName: string): string {
  const place = packages.find(([start]) => typeName.startsWith(start))?.[1] ?? 'api.';
  return `${reverseDomain(dialect.groupSuffix)}.${place}${typeName}`;
}

/**
 * The name of a custom kind's schema: `stable.example.com`, `v1`, `Tab` ->
 * `com.example.stable.v1.Tab`.
 */
export function customDefinitionName(group: string, version: string, kind: string): string {
  return `${reverseDomain(group)}.${version}.${kind}`;
}

/** A group in operation IDs: `rbac.authorization.k8s.io` -> `RbacAuthorization`, core -> `Core`. */
export function operationGroup(dialect: Dialect, group: string): string {
  if (group === '') return 'Core';
  const suffix = `.${dialect.groupSuffix}`;
  const stem = group.endsWith(suffix) ? group.slice(0, -suffix.length) : group;
  return stem.split(/[.-]/).map(capitalize).join('');
}
