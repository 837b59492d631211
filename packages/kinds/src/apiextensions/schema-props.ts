import type { JsonObject, JsonValue } from '@wheelhouse/machinery';
import type { CelRule } from '@wheelhouse/schema';

/** A JSONSchemaProps as the typed decoder leaves it: members that are there have their type. */
export interface SchemaProps extends JsonObject {
  id?: string;
  $schema?: string;
  $ref?: string;
  type?: string;
  default?: JsonValue;
  pattern?: string;
  required?: string[];
  nullable?: boolean;
  uniqueItems?: boolean;
  items?: SchemaProps | SchemaProps[];
  allOf?: SchemaProps[];
  oneOf?: SchemaProps[];
  anyOf?: SchemaProps[];
  not?: SchemaProps;
  properties?: { [name: string]: SchemaProps };
  additionalProperties?: boolean | SchemaProps;
  patternProperties?: { [name: string]: SchemaProps };
  dependencies?: { [name: string]: SchemaProps | string[] | null };
  additionalItems?: boolean | SchemaProps;
  definitions?: { [name: string]: SchemaProps };
  'x-kubernetes-preserve-unknown-fields'?: boolean;
  'x-kubernetes-embedded-resource'?: boolean;
  'x-kubernetes-int-or-string'?: boolean;
  'x-kubernetes-list-map-keys'?: string[];
  'x-kubernetes-list-type'?: string;
  'x-kubernetes-map-type'?: string;
  'x-kubernetes-validations'?: (CelRule & JsonObject)[];
}

/** The one schema of the items, if it is one. */
export function itemsOf(props: SchemaProps): SchemaProps | undefined {
  return Array.isArray(props.items) ? undefined : props.items;
}

/** The schema of additional properties, if there is one. */
export function additionalOf(props: SchemaProps): SchemaProps | undefined {
  return typeof props.additionalProperties === 'object' ? props.additionalProperties : undefined;
}

/** Own entries of a map of schemas. */
export function entriesOf(
  map: { [name: string]: SchemaProps } | undefined,
): readonly (readonly [string, SchemaProps])[] {
  return Object.entries(map ?? {});
}

/** Every schema inside a schema, itself first, junctors and all. */
export function* everySchema(props: SchemaProps): Generator<SchemaProps> {
  yield props;
  const lists = [props.allOf, props.anyOf, props.oneOf].flatMap((list) => list ?? []);
  const items = Array.isArray(props.items) ? props.items : [];
  const single = [itemsOf(props), props.not, additionalOf(props)];
  const maps = [props.properties, props.patternProperties, props.definitions];
  const named = maps.flatMap((map) => Object.values(map ?? {}));
  for (const child of [...lists, ...items, ...single, ...named]) {
    if (child !== undefined) yield* everySchema(child);
  }
}
