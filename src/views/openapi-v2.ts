import type { JsonObject } from '../base/json.ts';
import { rootDiscovery } from './openapi-discovery.ts';
import { type OpenApiSource, type OperationWriter, openApiBuilder } from './openapi-document.ts';
import { queryParameters } from './openapi-parameters.ts';

/** The OpenAPI 2 document of all that is served (API-12); a pure function of the snapshot. */
export function openApiV2(source: OpenApiSource): JsonObject {
  const { snapshot, dialect, release } = source;
  const builder = openApiBuilder(source, { form: 'v2', writeOperation });
  for (const path of rootDiscovery(snapshot, dialect)) builder.addDiscovery(path);
  for (const group of snapshot.groups()) {
    for (const version of snapshot.groupVersions(group)) builder.add({ group, version });
  }
  const { paths, definitions } = builder.finish();
  return {
    swagger: '2.0',
    info: { title: dialect.productName, version: release },
    paths,
    definitions,
    securityDefinitions: {
      BearerToken: { type: 'apiKey', name: 'authorization', in: 'header' },
    },
    security: [{ BearerToken: [] }],
  };
}

const texts = { 200: 'OK', 201: 'Created', 202: 'Accepted' } as const;

const writeOperation: OperationWriter = (route, { schema, tag }) => {
  const responses = route.responses.map(([status, answer]) => [
    status,
    { description: texts[status], schema: schema(answer) },
  ]);
  const { body, action, kind } = route;
  const parameters = queryParameters('v2', route.query);
  if (body !== undefined) {
    const required = body.required ? { required: true } : {};
    parameters.unshift({ name: 'body', in: 'body', ...required, schema: schema(body.schema) });
  }
  return {
    tags: [tag],
    description: route.description,
    operationId: route.operationId,
    consumes: [...(body?.types ?? ['*/*'])],
    produces: [...route.produces],
    schemes: ['https'],
    ...(parameters.length === 0 ? {} : { parameters }),
    responses: { ...Object.fromEntries(responses), 401: { description: 'Unauthorized' } },
    ...(action === undefined ? {} : { 'x-kubernetes-action': action }),
    ...(kind === undefined ? {} : { 'x-kubernetes-group-version-kind': { ...kind } }),
  };
};
