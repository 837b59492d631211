import { jsonText } from '@wheelhouse/codec';
import type { ResourceDef } from '@wheelhouse/kinds';
import {
  apiVersionOf,
  type GroupVersion,
  isObject,
  type JsonObject,
  type JsonValue,
} from '@wheelhouse/machinery';
import { objectPieces, objectText } from './json-text.ts';
import { isBuiltIn, rootDiscovery } from './openapi-discovery.ts';
import {
  type DescribedApi,
  type OpenApiBuilder,
  type OpenApiSource,
  type OperationForm,
  openApiBuilder,
} from './openapi-document.ts';
import { queryParametersText } from './openapi-parameters.ts';
import type { FieldType, MessageDescriptor, MessageDescriptors } from './openapi-proto.ts';

/** One OpenAPI 3 document, created on demand. */
export interface OpenApiV3Document {
  /** The name in the index: `api/v1`, `apis/apps/v1`, `apis/apps`. */
  readonly name: string;
  /** The kinds in the document, which changes only if they do. */
  readonly defs: readonly ResourceDef[];
  /** Creates the JSON of the document in steps; returns its pieces. */
  make(): Generator<void, readonly string[]>;
}

/** The OpenAPI 3 documents of a snapshot (API-12). */
export function openApiV3Documents(source: OpenApiSource): OpenApiV3Document[] {
  const { snapshot } = source;
  const versions = snapshot.groups().flatMap((group) => {
    const ofGroup = snapshot.groupVersions(group);
    return ofGroup.map((version) => versionDocument(source, { group, version }));
  });
  return [...rootDocuments(source), ...versions];
}

/** The document of a name, without a search among all groups; undefined if there is none. */
export function openApiV3Document(
  source: OpenApiSource,
  name: string,
): OpenApiV3Document | undefined {
  const [root, ...rest] = name.split('/');
  const [group = '', version = ''] = root === 'api' ? ['', ...rest] : rest;
  const isServed = source.snapshot.groupVersions(group).includes(version);
  const document = isServed ? versionDocument(source, { group, version }) : undefined;
  if (document?.name === name) return document;
  return rootDocuments(source).find((candidate) => candidate.name === name);
}

function rootDocuments(source: OpenApiSource): OpenApiV3Document[] {
  return rootDiscovery(source).map((path) => ({
    name: path.path.slice(1),
    defs: [],
    make: () => documentOf(source, { api: 'own', fill: (to) => to.addDiscovery(path) }),
  }));
}

function versionDocument(source: OpenApiSource, at: GroupVersion): OpenApiV3Document {
  const { snapshot } = source;
  const api = isBuiltIn(snapshot, at.group) ? 'own' : 'defined';
  return {
    name: `${at.group === '' ? 'api' : 'apis'}/${apiVersionOf(at)}`,
    defs: snapshot.ofGroup(at.group),
    make: () => documentOf(source, { api, fill: (to) => to.add(at) }),
  };
}

/** Creates a document in steps. That of a custom API omits what kube-apiserver omits. */
function* documentOf(
  source: OpenApiSource,
  { api, fill }: { readonly api: DescribedApi; readonly fill: (to: OpenApiBuilder) => void },
): Generator<void, readonly string[]> {
  const builder = openApiBuilder(source, { form: 'v3', operations, api });
  fill(builder);
  const { documentTitle } = source.dialect;
  yield;
  const { paths, definitions } = yield* builder.finish();
  yield;
  const securitySchemes =
    api === 'defined'
      ? undefined
      : { BearerToken: { type: 'apiKey', in: 'header', name: 'authorization' } };
  return objectPieces({
    openapi: '"3.0.0"',
    info: jsonText(
      api === 'defined'
        ? { title: `${documentTitle} CRD Swagger`, version: 'v0.1.0' }
        : { title: documentTitle, version: source.release },
    ),
    paths,
    components: objectPieces({
      schemas: definitions,
      securitySchemes: securitySchemes && jsonText(securitySchemes),
    }),
  });
}

/** The URL of a document, which includes its digest so that responses can be cached (API-12). */
export function documentUrl(name: string, digest: string): string {
  return `/openapi/v3/${name}?hash=${digest}`;
}

/** The index of documents, `/openapi/v3`. */
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
  responseMember: ({ produces }, schema) => `"content":${contentText(produces, schema)}`,
};

type Wrap = NonNullable<MessageDescriptor['wrap']>;

const refOr =
  (type: FieldType): Wrap =>
  (value) =>
    isObject(value) && value['$ref'] !== undefined ? [2, 'Reference'] : [1, type];

/** The field of a default; undefined unless it is a number, a boolean, or a string. */
function defaultField(value: JsonValue): readonly [number: number, type: FieldType] | undefined {
  if (typeof value === 'number') return [1, 'double'];
  if (typeof value === 'boolean') return [2, 'bool'];
  return typeof value === 'string' ? [3, 'string'] : undefined;
}

/** The messages of `openapi.v3`, with the members that the documents use. */
export const openApiV3Messages: MessageDescriptors = {
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
  SecuritySchemeOrReference: { wrap: refOr('SecurityScheme') },
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
  ParameterOrReference: { wrap: refOr('Parameter') },
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
  RequestBodyOrReference: { wrap: refOr('RequestBody') },
  RequestBody: {
    fields: { description: [1, 'string'], content: [2, 'MediaTypes'], required: [3, 'bool'] },
    extensions: 4,
  },
  MediaTypes: { named: [1, 'MediaType'] },
  MediaType: { fields: { schema: [1, 'SchemaOrReference'] }, extensions: 5 },
  Responses: { named: [2, 'ResponseOrReference'], extensions: 3 },
  ResponseOrReference: { wrap: refOr('Response') },
  Response: { fields: { description: [1, 'string'], content: [3, 'MediaTypes'] }, extensions: 5 },
  SchemaOrReference: { wrap: refOr('Schema') },
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
