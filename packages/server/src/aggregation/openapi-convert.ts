import { isObject, type JsonObject, type JsonValue, member } from '@wheelhouse/machinery';
import type { OpenApiParts } from './openapi-parts.ts';

const methods = ['get', 'put', 'post', 'delete', 'options', 'head', 'patch'] as const;
/** Members of an operation that mean the same in both forms. */
const kept = ['tags', 'summary', 'description', 'externalDocs', 'operationId', 'deprecated'];

/** A document of OpenAPI 3 that says what parts of one of OpenAPI 2 say. */
export function convertOpenApi(parts: OpenApiParts): JsonObject {
  const paths = [...parts.paths].map(([path, item]) => [path, pathItem(item, parts)] as const);
  const schemas = [...parts.definitions].map(([name, one]) => [name, schemaOf(one)] as const);
  return {
    openapi: '3.0.0',
    info: parts.info,
    paths: Object.fromEntries(paths),
    components: { schemas: Object.fromEntries(schemas) },
  };
}

function pathItem(item: JsonValue, parts: OpenApiParts): JsonObject {
  const from = isObject(item) ? item : {};
  const operations = methods.flatMap((method) => {
    const operation = member(from, method);
    return isObject(operation) ? [[method, operationOf(operation, parts)] as const] : [];
  });
  return {
    ...Object.fromEntries(operations),
    ...parametersOf(from, parts).others,
    ...extensionsOf(from),
  };
}

function operationOf(from: JsonObject, parts: OpenApiParts): JsonObject {
  const { body, others } = parametersOf(from, parts);
  const same = kept.flatMap((name) => {
    const value = member(from, name);
    return value === undefined ? [] : [[name, value] as const];
  });
  const content = (types: JsonValue | undefined, schema: JsonValue) =>
    Object.fromEntries(textsOf(types).map((type) => [type, { schema: schemaOf(schema) }]));
  const responses = Object.entries(objectOf(from, 'responses')).map(([code, response]) => {
    const { description = '', schema } = isObject(response) ? response : {};
    const payload = schema === undefined ? {} : { content: content(from['produces'], schema) };
    return [code, code.startsWith('x-') ? response : { description, ...payload }] as const;
  });
  return {
    ...Object.fromEntries(same),
    ...others,
    ...(body === undefined ? {} : { requestBody: { content: content(from['consumes'], body) } }),
    responses: Object.fromEntries(responses),
    ...extensionsOf(from),
  };
}

/** The body's schema, and the other parameters as a member of their own. */
function parametersOf(
  from: JsonObject,
  parts: OpenApiParts,
): { readonly body: JsonValue | undefined; readonly others: JsonObject } {
  const parameters = listOf(from, 'parameters').flatMap((one) => {
    const reference = isObject(one) ? member(one, '$ref') : undefined;
    if (typeof reference !== 'string') return isObject(one) ? [one] : [];
    const found = parts.parameters.get(reference.replace('#/parameters/', ''));
    return isObject(found) ? [found] : [];
  });
  const isBody = (one: JsonObject) => one['in'] === 'body' && one['schema'] !== undefined;
  const others = parameters.filter((one) => !isBody(one)).map(parameterOf);
  return {
    body: parameters.find(isBody)?.['schema'],
    others: others.length === 0 ? {} : { parameters: others },
  };
}

/** What a parameter of OpenAPI 2 says of its value itself, its schema says in OpenAPI 3. */
function parameterOf(from: JsonObject): JsonObject {
  const { name, in: place, description, required, schema, ...rest } = from;
  const { type, format, uniqueItems } = rest;
  const simple = defined({ type, format, uniqueItems });
  return {
    ...defined({ name, in: place, description, required }),
    schema: schema === undefined ? simple : schemaOf(schema),
    ...extensionsOf(from),
  };
}

const definitionPrefix = '#/definitions/';

/** The schema with its references to components. With members beside it, `$ref` goes to `allOf`. */
function schemaOf(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(schemaOf);
  if (!isObject(value)) return value;
  const entries = Object.entries(value).map(([name, child]) => [
    name,
    child === undefined ? child : schemaOf(child),
  ]);
  const copy = Object.fromEntries(entries) as JsonObject;
  const reference = member(value, '$ref');
  if (typeof reference !== 'string' || !reference.startsWith(definitionPrefix)) return copy;
  const $ref = `#/components/schemas/${reference.slice(definitionPrefix.length)}`;
  const { $ref: _, ...beside } = copy;
  return Object.keys(beside).length === 0 ? { $ref } : { ...beside, allOf: [{ $ref }] };
}

function extensionsOf(from: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(from).filter(([name]) => name.startsWith('x-')));
}

function defined(members: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined));
}

function objectOf(from: JsonObject, name: string): JsonObject {
  const value = member(from, name);
  return isObject(value) ? value : {};
}

function listOf(from: JsonObject, name: string): readonly JsonValue[] {
  const value = member(from, name);
  return Array.isArray(value) ? value : [];
}

function textsOf(value: JsonValue | undefined): readonly string[] {
  return Array.isArray(value) ? value.filter((one) => typeof one === 'string') : [];
}
