import { jsonText } from '@wheelhouse/codec';
import { isObject } from '@wheelhouse/machinery';
import { objectPieces, objectText } from './json-text.ts';
import { rootDiscovery } from './openapi-discovery.ts';
import { type OpenApiSource, type OperationForm, openApiBuilder } from './openapi-document.ts';
import { queryParametersText } from './openapi-parameters.ts';
import type { FieldType, MessageDescriptor, MessageDescriptors } from './openapi-proto.ts';

/**
 * Creates the JSON of the OpenAPI 2 document of all served APIs (API-12), in steps. The result is in
 * pieces, because the whole document can exceed a hundred megabytes.
 */
export function* openApiV2(source: OpenApiSource): Generator<void, readonly string[]> {
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
  return objectPieces({
    swagger: '"2.0"',
    info: jsonText({ title: dialect.documentTitle, version: release }),
    paths,
    definitions: definitions ?? '{}',
    securityDefinitions: jsonText(securityDefinitions),
    security: '[{"BearerToken":[]}]',
  });
}

const operations: OperationForm = {
  ownMembers({ body, produces, query, consumes = ['*/*'] }, schema) {
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
    const types = body?.types ?? consumes;
    return {
      consumes: types.length === 0 ? undefined : jsonText(types),
      produces: jsonText(produces),
      schemes: '["https"]',
      parameters: all.length === 0 ? undefined : `[${all.join()}]`,
    };
  },
  responseMember: (_route, schema) => `"schema":${schema}`,
};

const refOr =
  (type: FieldType): NonNullable<MessageDescriptor['wrap']> =>
  (value) =>
    isObject(value) && value['$ref'] !== undefined ? [2, 'JsonReference'] : [1, type];

const parameterFields = {
  required: [1, 'bool'],
  in: [2, 'string'],
  description: [3, 'string'],
  name: [4, 'string'],
} as const;

/** The messages of `openapi.v2`, with the members that the documents use. */
export const openApiV2Messages: MessageDescriptors = {
  Document: {
    fields: {
      swagger: [1, 'string'],
      info: [2, 'Info'],
      paths: [8, 'Paths'],
      definitions: [9, 'Definitions'],
      security: [12, 'SecurityRequirement*'],
      securityDefinitions: [13, 'SecurityDefinitions'],
    },
    extensions: 16,
  },
  Info: { fields: { title: [1, 'string'], version: [2, 'string'], description: [3, 'string'] } },
  Paths: { named: [2, 'PathItem'], extensions: 1 },
  PathItem: {
    fields: {
      get: [2, 'Operation'],
      put: [3, 'Operation'],
      post: [4, 'Operation'],
      delete: [5, 'Operation'],
      options: [6, 'Operation'],
      head: [7, 'Operation'],
      patch: [8, 'Operation'],
      parameters: [9, 'ParametersItem*'],
    },
    extensions: 10,
  },
  Operation: {
    fields: {
      tags: [1, 'string*'],
      description: [3, 'string'],
      operationId: [5, 'string'],
      produces: [6, 'string*'],
      consumes: [7, 'string*'],
      parameters: [8, 'ParametersItem*'],
      responses: [9, 'Responses'],
      schemes: [10, 'string*'],
      deprecated: [11, 'bool'],
    },
    extensions: 13,
  },
  ParametersItem: { wrap: refOr('Parameter') },
  JsonReference: { fields: { $ref: [1, 'string'], description: [2, 'string'] } },
  Parameter: {
    wrap: (value) =>
      isObject(value) && value['in'] === 'body' ? [1, 'BodyParameter'] : [2, 'NonBodyParameter'],
  },
  BodyParameter: {
    fields: {
      description: [1, 'string'],
      name: [2, 'string'],
      in: [3, 'string'],
      required: [4, 'bool'],
      schema: [5, 'Schema'],
    },
    extensions: 6,
  },
  NonBodyParameter: {
    wrap: (value) =>
      isObject(value) && value['in'] === 'path' ? [4, 'PathParameter'] : [3, 'QueryParameter'],
  },
  QueryParameter: {
    fields: {
      ...parameterFields,
      type: [6, 'string'],
      format: [7, 'string'],
      uniqueItems: [20, 'bool'],
    },
    extensions: 23,
  },
  PathParameter: {
    fields: {
      ...parameterFields,
      type: [5, 'string'],
      format: [6, 'string'],
      uniqueItems: [19, 'bool'],
    },
    extensions: 22,
  },
  Responses: { named: [1, 'ResponseValue'], extensions: 2 },
  ResponseValue: { wrap: refOr('Response') },
  Response: { fields: { description: [1, 'string'], schema: [2, 'SchemaItem'] }, extensions: 5 },
  SchemaItem: { wrap: () => [1, 'Schema'] },
  Definitions: { named: [1, 'Schema'] },
  Properties: { named: [1, 'Schema'] },
  Schema: {
    fields: {
      $ref: [1, 'string'],
      format: [2, 'string'],
      title: [3, 'string'],
      description: [4, 'string'],
      default: [5, 'any'],
      multipleOf: [6, 'double'],
      maximum: [7, 'double'],
      exclusiveMaximum: [8, 'bool'],
      minimum: [9, 'double'],
      exclusiveMinimum: [10, 'bool'],
      maxLength: [11, 'int'],
      minLength: [12, 'int'],
      pattern: [13, 'string'],
      maxItems: [14, 'int'],
      minItems: [15, 'int'],
      uniqueItems: [16, 'bool'],
      maxProperties: [17, 'int'],
      minProperties: [18, 'int'],
      required: [19, 'string*'],
      enum: [20, 'any*'],
      additionalProperties: [21, 'AdditionalPropertiesItem'],
      type: [22, 'TypeItem'],
      items: [23, 'ItemsItem'],
      properties: [25, 'Properties'],
    },
    extensions: 31,
  },
  AdditionalPropertiesItem: {
    wrap: (value) => (typeof value === 'boolean' ? [2, 'bool'] : [1, 'Schema']),
  },
  TypeItem: { wrap: () => [1, 'string'] },
  ItemsItem: { wrap: () => [1, 'Schema'] },
  SecurityRequirement: { named: [1, 'StringArray'] },
  StringArray: { wrap: () => [1, 'string*'] },
  SecurityDefinitions: { named: [1, 'SecurityDefinitionsItem'] },
  SecurityDefinitionsItem: { wrap: () => [2, 'ApiKeySecurity'] },
  ApiKeySecurity: {
    fields: {
      type: [1, 'string'],
      name: [2, 'string'],
      in: [3, 'string'],
      description: [4, 'string'],
    },
    extensions: 5,
  },
};
