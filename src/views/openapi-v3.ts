import type { JsonObject } from '../base/json.ts';
import type { GroupVersion } from '../meta/types.ts';
import { type OpenApiSource, type OperationWriter, openApiBuilder } from './openapi-document.ts';
import { queryParameters } from './openapi-parameters.ts';

/** The OpenAPI 3 document of one group and version (API-12); a pure function of the snapshot. */
export function openApiV3(source: OpenApiSource, at: GroupVersion): JsonObject {
  const builder = openApiBuilder(source, { form: 'v3', writeOperation });
  builder.add(at);
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

/** The name a document has in the index: `api/v1`, `apis/apps/v1`. */
export function documentName({ group, version }: GroupVersion): string {
  return group === '' ? `api/${version}` : `apis/${group}/${version}`;
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
