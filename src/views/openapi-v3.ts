import type { JsonObject } from '../base/json.ts';
import type { ResourceDef } from '../catalogue/resource-def.ts';
import { apiVersionOf } from '../meta/types.ts';
import { rootDiscovery } from './openapi-discovery.ts';
import {
  type OpenApiBuilder,
  type OpenApiSource,
  type OperationWriter,
  openApiBuilder,
} from './openapi-document.ts';
import { queryParameters } from './openapi-parameters.ts';

/** One document of OpenAPI 3, made when it is wanted. */
export interface DocumentPlace {
  /** Its name in the index: `api/v1`, `apis/apps/v1`, `apis/apps`. */
  readonly name: string;
  /** The kinds in it: while they are the same, so is the document. */
  readonly defs: readonly ResourceDef[];
  make(): JsonObject;
}

/** The documents of a snapshot (API-12); each is a pure function of it. */
export function openApiV3Places(source: OpenApiSource): DocumentPlace[] {
  const { snapshot, dialect } = source;
  const roots = rootDiscovery(snapshot, dialect).map((path) => ({
    name: path.path.slice(1),
    defs: [],
    make: () => documentOf(source, (builder) => builder.addDiscovery(path)),
  }));
  const versions = snapshot.groups().flatMap((group) => {
    const defs = snapshot.defs.filter((def) => def.group === group);
    return snapshot.groupVersions(group).map((version) => ({
      name: `${group === '' ? 'api' : 'apis'}/${apiVersionOf({ group, version })}`,
      defs,
      make: () => documentOf(source, (builder) => builder.add({ group, version })),
    }));
  });
  return [...roots, ...versions];
}

function documentOf(source: OpenApiSource, fill: (builder: OpenApiBuilder) => void): JsonObject {
  const builder = openApiBuilder(source, { form: 'v3', writeOperation });
  fill(builder);
  const { paths, definitions } = builder.finish();
  return {
    openapi: '3.0.0',
    info: { title: source.dialect.productName, version: source.release },
    paths,
    components: {
      schemas: definitions,
      securitySchemes: {
        BearerToken: { type: 'apiKey', in: 'header', name: 'authorization' },
      },
    },
  };
}

/** Where a document is, by the digest of its bytes: what is there never changes (API-12). */
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

const texts = { 200: 'OK', 201: 'Created', 202: 'Accepted' } as const;

const writeOperation: OperationWriter = (route, { schema, tag }) => {
  const content = (types: readonly string[], held: JsonObject) =>
    Object.fromEntries(types.map((type) => [type, { schema: held }]));
  const responses = route.responses.map(([status, answer]) => [
    status,
    { description: texts[status], content: content(route.produces, schema(answer)) },
  ]);
  const { body, action, kind } = route;
  return {
    tags: [tag],
    description: route.description,
    operationId: route.operationId,
    ...(route.query.length === 0 ? {} : { parameters: queryParameters('v3', route.query) }),
    ...(body === undefined
      ? {}
      : {
          requestBody: {
            content: content(body.types, schema(body.schema)),
            ...(body.required ? { required: true } : {}),
          },
        }),
    responses: { ...Object.fromEntries(responses), 401: { description: 'Unauthorized' } },
    ...(action === undefined ? {} : { 'x-kubernetes-action': action }),
    ...(kind === undefined ? {} : { 'x-kubernetes-group-version-kind': { ...kind } }),
  };
};
