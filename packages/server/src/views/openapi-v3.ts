import { jsonText } from '@wheelhouse/codec';
import type { ResourceDef } from '@wheelhouse/kinds';
import { apiVersionOf, type JsonObject } from '@wheelhouse/machinery';
import { objectText } from './json-text.ts';
import { isBuiltIn, rootDiscovery } from './openapi-discovery.ts';
import {
  type DescribedApi,
  type OpenApiBuilder,
  type OpenApiSource,
  type OperationForm,
  openApiBuilder,
} from './openapi-document.ts';
import { queryParametersText } from './openapi-parameters.ts';

/** One OpenAPI 3 document, created on demand. */
export interface DocumentPlace {
  /** Its name in the index: `api/v1`, `apis/apps/v1`, `apis/apps`. */
  readonly name: string;
  /** Its kinds: the document is unchanged while they are. */
  readonly defs: readonly ResourceDef[];
  /** Its JSON, in steps. */
  make(): Generator<void, string>;
}

/** The documents of a snapshot (API-12); each is a pure function of it. */
export function openApiV3Places(source: OpenApiSource): DocumentPlace[] {
  const { snapshot } = source;
  const roots = rootDiscovery(source).map((path) => ({
    name: path.path.slice(1),
    defs: [],
    make: () => documentOf(source, { api: 'own', fill: (to) => to.addDiscovery(path) }),
  }));
  const versions = snapshot.groups().flatMap((group) => {
    const defs = snapshot.defs.filter((def) => def.group === group);
    const api = isBuiltIn(snapshot, group) ? 'own' : 'defined';
    return snapshot.groupVersions(group).map((version) => ({
      name: `${group === '' ? 'api' : 'apis'}/${apiVersionOf({ group, version })}`,
      defs,
      make: () => documentOf(source, { api, fill: (to) => to.add({ group, version }) }),
    }));
  });
  return [...roots, ...versions];
}

/** Parts that kube-apiserver omits from documents of custom APIs. */
function* documentOf(
  source: OpenApiSource,
  { api, fill }: { readonly api: DescribedApi; readonly fill: (to: OpenApiBuilder) => void },
): Generator<void, string> {
  const builder = openApiBuilder(source, { form: 'v3', operations, api });
  fill(builder);
  const { productName } = source.dialect;
  yield;
  const { paths, definitions } = yield* builder.finish();
  yield;
  const securitySchemes =
    api === 'defined'
      ? undefined
      : { BearerToken: { type: 'apiKey', in: 'header', name: 'authorization' } };
  return objectText({
    openapi: '"3.0.0"',
    info: jsonText(
      api === 'defined'
        ? { title: `${productName} CRD Swagger`, version: 'v0.1.0' }
        : { title: productName, version: source.release },
    ),
    paths,
    components: objectText({
      schemas: definitions === '{}' ? undefined : definitions,
      securitySchemes: securitySchemes && jsonText(securitySchemes),
    }),
  });
}

/** The URL of a document with its digest, so that the content never changes (API-12). */
export function documentUrl(name: string, digest: string): string {
  return `/openapi/v3/${name}?hash=${digest}`;
}

/** The index `/openapi/v3`. */
export function openApiV3Index(digests: ReadonlyMap<string, string>): JsonObject {
  const names = [...digests.keys()].sort();
  const paths = names.map((name) => {
    const serverRelativeURL = documentUrl(name, digests.get(name) ?? '');
    return [name, { serverRelativeURL }] as const;
  });
  return { paths: Object.fromEntries(paths) };
}

/** `{"application/json":{"schema":…},…}`. */
function contentText(types: readonly string[], schema: string): string {
  return `{${types.map((type) => `"${type}":{"schema":${schema}}`).join()}}`;
}

const operations: OperationForm = {
  ownMembers({ query, body }, schema) {
    return {
      parameters: query.length === 0 ? undefined : queryParametersText('v3', query),
      requestBody:
        body &&
        objectText({
          content: contentText(body.types, schema(body.schema)),
          required: body.required ? 'true' : undefined,
        }),
    };
  },
  answerMember: ({ produces }, schema) => `"content":${contentText(produces, schema)}`,
};
