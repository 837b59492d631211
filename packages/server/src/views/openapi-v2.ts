import { jsonText } from '@wheelhouse/codec';
import { objectText } from './json-text.ts';
import { rootDiscovery } from './openapi-discovery.ts';
import { type OpenApiSource, type OperationForm, openApiBuilder } from './openapi-document.ts';
import { queryParametersText } from './openapi-parameters.ts';

/**
 * The OpenAPI 2 document of all served APIs (API-12) as JSON, in steps; a pure function of the
 * snapshot.
 */
export function* openApiV2(source: OpenApiSource): Generator<void, string> {
  const { snapshot, dialect, release } = source;
  const builder = openApiBuilder(source, { form: 'v2', operations, api: 'own' });
  for (const path of rootDiscovery(source)) builder.addDiscovery(path);
  for (const group of snapshot.groups()) {
    for (const version of snapshot.groupVersions(group)) {
      builder.add({ group, version });
      yield;
    }
  }
  const { paths, definitions } = yield* builder.finish();
  yield;
  const securityDefinitions = {
    BearerToken: { type: 'apiKey', name: 'authorization', in: 'header' },
  };
  return objectText({
    swagger: '"2.0"',
    info: jsonText({ title: dialect.productName, version: release }),
    paths,
    definitions,
    securityDefinitions: jsonText(securityDefinitions),
    security: '[{"BearerToken":[]}]',
  });
}

const operations: OperationForm = {
  ownMembers({ body, produces, query, takes = ['*/*'] }, schema) {
    const parameters = query.length === 0 ? '' : queryParametersText('v2', query).slice(1, -1);
    const sent =
      body === undefined
        ? ''
        : objectText({
            name: '"body"',
            in: '"body"',
            required: body.required ? 'true' : undefined,
            schema: schema(body.schema),
          });
    const all = [sent, parameters].filter((text) => text !== '');
    const consumes = body?.types ?? takes;
    return {
      consumes: consumes.length === 0 ? undefined : jsonText(consumes),
      produces: jsonText(produces),
      schemes: '["https"]',
      parameters: all.length === 0 ? undefined : `[${all.join()}]`,
    };
  },
  answerMember: (_route, schema) => `"schema":${schema}`,
};
