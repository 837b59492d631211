import { isObject, type JsonValue } from '@wheelhouse/machinery';
import type { FieldType, MessageShape, MessageShapes } from './openapi-proto.ts';

type Wrap = NonNullable<MessageShape['wrap']>;

const refOr =
  (number: number, type: FieldType): Wrap =>
  (value) =>
    isObject(value) && value['$ref'] !== undefined ? [2, 'Reference'] : [number, type];

/** A default is a number, a boolean, or a string; the message has no field for others. */
function defaultField(value: JsonValue): readonly [number: number, type: FieldType] | undefined {
  if (typeof value === 'number') return [1, 'double'];
  if (typeof value === 'boolean') return [2, 'bool'];
  return typeof value === 'string' ? [3, 'string'] : undefined;
}

/** The messages of `openapi.v3`, with the members that the documents use. */
export const openApiV3Shapes: MessageShapes = {
  Document: {
    fields: {
      openapi: [1, 'string'],
      info: [2, 'Info'],
      paths: [4, 'Paths'],
      components: [5, 'Components'],
    },
    extensions: 9,
  },
  Info: { fields: { title: [1, 'string'], version: [6, 'string'] } },
  Components: { fields: { schemas: [1, 'Schemas'], securitySchemes: [7, 'SecuritySchemes'] } },
  Schemas: { named: [1, 'SchemaOrReference'] },
  SecuritySchemes: { named: [1, 'SecuritySchemeOrReference'] },
  SecuritySchemeOrReference: { wrap: refOr(1, 'SecurityScheme') },
  SecurityScheme: {
    fields: { type: [1, 'string'], name: [3, 'string'], in: [4, 'string'] },
    extensions: 9,
  },
  Paths: { named: [1, 'PathItem'], extensions: 2 },
  PathItem: {
    fields: {
      get: [4, 'Operation'],
      put: [5, 'Operation'],
      post: [6, 'Operation'],
      delete: [7, 'Operation'],
      options: [8, 'Operation'],
      head: [9, 'Operation'],
      patch: [10, 'Operation'],
      parameters: [13, 'ParameterOrReference*'],
    },
    extensions: 14,
  },
  Operation: {
    fields: {
      tags: [1, 'string*'],
      description: [3, 'string'],
      operationId: [5, 'string'],
      parameters: [6, 'ParameterOrReference*'],
      requestBody: [7, 'RequestBodyOrReference'],
      responses: [8, 'Responses'],
      deprecated: [10, 'bool'],
    },
    extensions: 13,
  },
  ParameterOrReference: { wrap: refOr(1, 'Parameter') },
  Parameter: {
    fields: {
      name: [1, 'string'],
      in: [2, 'string'],
      description: [3, 'string'],
      required: [4, 'bool'],
      schema: [10, 'SchemaOrReference'],
    },
    extensions: 14,
  },
  RequestBodyOrReference: { wrap: refOr(1, 'RequestBody') },
  RequestBody: {
    fields: { description: [1, 'string'], content: [2, 'MediaTypes'], required: [3, 'bool'] },
    extensions: 4,
  },
  MediaTypes: { named: [1, 'MediaType'] },
  MediaType: { fields: { schema: [1, 'SchemaOrReference'] }, extensions: 5 },
  Responses: { named: [2, 'ResponseOrReference'], extensions: 3 },
  ResponseOrReference: { wrap: refOr(1, 'Response') },
  Response: {
    fields: { description: [1, 'string'], content: [3, 'MediaTypes'] },
    extensions: 5,
  },
  SchemaOrReference: { wrap: refOr(1, 'Schema') },
  Reference: { fields: { $ref: [1, 'string'] } },
  Schema: {
    fields: {
      nullable: [1, 'bool'],
      title: [9, 'string'],
      multipleOf: [10, 'double'],
      maximum: [11, 'double'],
      exclusiveMaximum: [12, 'bool'],
      minimum: [13, 'double'],
      exclusiveMinimum: [14, 'bool'],
      maxLength: [15, 'int'],
      minLength: [16, 'int'],
      pattern: [17, 'string'],
      maxItems: [18, 'int'],
      minItems: [19, 'int'],
      uniqueItems: [20, 'bool'],
      maxProperties: [21, 'int'],
      minProperties: [22, 'int'],
      required: [23, 'string*'],
      enum: [24, 'any*'],
      type: [25, 'string'],
      allOf: [26, 'SchemaOrReference*'],
      oneOf: [27, 'SchemaOrReference*'],
      anyOf: [28, 'SchemaOrReference*'],
      not: [29, 'Schema'],
      items: [30, 'ItemsItem'],
      properties: [31, 'Properties'],
      additionalProperties: [32, 'AdditionalPropertiesItem'],
      default: [33, 'DefaultType'],
      description: [34, 'string'],
      format: [35, 'string'],
    },
    extensions: 36,
  },
  DefaultType: { wrap: defaultField },
  ItemsItem: { wrap: () => [1, 'SchemaOrReference'] },
  Properties: { named: [1, 'SchemaOrReference'] },
  AdditionalPropertiesItem: {
    wrap: (value) => (typeof value === 'boolean' ? [2, 'bool'] : [1, 'SchemaOrReference']),
  },
};
