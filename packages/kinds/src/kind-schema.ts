import { type Dialect, parseApiVersion } from '@wheelhouse/machinery';
import type { Schema } from '@wheelhouse/schema';
import { crdSchema } from './apiextensions/crd-schema.ts';
import { directoryOfGroup, hasStructFacts } from './facts.ts';
import { schemaOf } from './schema-of.ts';

/** Kinds of the `meta` group that any apiVersion may name: options, statuses, lists of metadata. */
const metaKinds = new Set([
  'Status',
  'DeleteOptions',
  'CreateOptions',
  'UpdateOptions',
  'PatchOptions',
  'GetOptions',
  'ListOptions',
]);

/** Kinds of the `meta` group whose `v1beta1` equals their `v1`. */
const v1beta1MetaKinds = new Set(['PartialObjectMetadata']);

/** Kinds of the `meta` group in `v1` only: the responses of discovery. */
const discoveryKinds = new Set(['APIVersions', 'APIGroup', 'APIGroupList', 'APIResourceList']);

/**
 * The schema of a built-in kind by the apiVersion and kind in its envelope; undefined for custom
 * kinds and for those without a table, which have no protobuf form.
 */
export function schemaOfKind(
  dialect: Dialect,
  type: { readonly apiVersion: string; readonly kind: string },
): Schema | undefined {
  // APIGroupList and APIVersions have the apiVersion `v1`, or none.
  const isPlain = type.apiVersion === 'v1' || type.apiVersion === '';
  const isDiscovery = isPlain && discoveryKinds.has(type.kind);
  if (isDiscovery || metaKinds.has(type.kind)) return schemaOf(`meta.v1.${type.kind}`);
  const parsed = parseApiVersion(type.apiVersion);
  const directory = parsed === undefined ? undefined : directoryOfGroup(dialect, parsed.group);
  if (parsed === undefined || directory === undefined) return undefined;
  if (directory === 'apiextensions') return definitionSchema(parsed.version, type.kind);
  const isFirst = directory === 'meta' && v1beta1MetaKinds.has(type.kind);
  const typeName = `${directory}.${isFirst ? 'v1' : parsed.version}.${type.kind}`;
  return hasStructFacts(typeName) ? schemaOf(typeName) : undefined;
}

/** CustomResourceDefinitions have a schema of their own instead of facts. */
function definitionSchema(version: string, kind: string): Schema | undefined {
  if (kind !== 'CustomResourceDefinition') return undefined;
  return version === 'v1' || version === 'v1beta1' ? crdSchema(version) : undefined;
}
