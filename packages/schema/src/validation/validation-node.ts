import type { JsonValue } from '@wheelhouse/machinery';
import {
  isBooleanSchema,
  type NestedValidation,
  noSchema,
  type Property,
  resolved,
  type Schema,
  type ValueValidation,
} from '../schema.ts';
import { formatCheck } from './formats.ts';

/** A schema, or a validation nested in allOf and the like, as the validator sees it. */
export interface ValidationNode {
  readonly types: readonly string[];
  readonly nullable: boolean;
  /** Empty if the type is not checked. */
  readonly format: string;
  readonly enum: readonly JsonValue[] | undefined;
  readonly values: ValueValidation;
  readonly required: readonly string[];
  readonly properties: ReadonlyMap<string, () => ValidationNode>;
  /** Whether members without a schema are forbidden. */
  readonly closed: boolean;
  readonly additional: (() => ValidationNode) | undefined;
  readonly items: (() => ValidationNode) | undefined;
  /** How the schema is interpreted; the same for its alternatives. */
  readonly options: NodeOptions;
}

const nothing: ValueValidation = {};

function typesOf(node: Schema | NestedValidation): readonly string[] {
  if (node.intOrString === true) return ['integer', 'string'];
  return node.type === undefined ? [] : [node.type];
}

/** Returns a format if it is checked; others are only documentation. */
function checkedFormat(format: string | undefined): string {
  return format === undefined || formatCheck(format) === undefined ? '' : format;
}

/** How a schema is interpreted. */
interface NodeOptions {
  /**
   * Whether the schema validates a default instead of an object: int-or-string does not restrict
   * the type, errors about types contain unchecked formats, and alternatives are not closed.
   */
  readonly ofDefault: boolean;
}

/** Returns the node of a schema. */
export function nodeOfSchema(schema: Schema, options: NodeOptions): ValidationNode {
  const at = resolved(schema);
  const values = at.validation ?? nothing;
  const types = options.ofDefault && at.intOrString === true ? [] : typesOf(at);
  const properties = new Map<string, () => ValidationNode>();
  for (const [name, property] of at.properties ?? new Map<string, Property>()) {
    properties.set(name, () => nodeOfSchema(property.schema, options));
  }
  const { additionalProperties, items } = at;
  const hasAdditional =
    additionalProperties !== undefined && !isBooleanSchema(additionalProperties);
  return {
    types,
    nullable: at.nullable === true,
    format: options.ofDefault
      ? (values.format ?? at.format ?? '')
      : checkedFormat(values.format ?? at.format),
    enum: values.enum,
    values,
    required: at.required ?? [],
    properties,
    closed: additionalProperties === noSchema,
    additional: hasAdditional ? () => nodeOfSchema(additionalProperties, options) : undefined,
    items: items === undefined ? undefined : () => nodeOfSchema(items, options),
    options,
  };
}

/** Returns the node of a nested validation. */
export function nodeOfNested(nested: NestedValidation, options: NodeOptions): ValidationNode {
  const types = typesOf(nested);
  const properties = new Map<string, () => ValidationNode>();
  for (const [name, property] of nested.properties ?? new Map<string, NestedValidation>()) {
    properties.set(name, () => nodeOfNested(property, options));
  }
  const { additionalProperties, items } = nested;
  return {
    types,
    nullable: nested.nullable === true,
    format: checkedFormat(nested.format),
    enum: nested.enum,
    values: nested,
    required: nested.required ?? [],
    properties,
    closed: nested.closed === true && !options.ofDefault,
    additional:
      additionalProperties === undefined
        ? undefined
        : () => nodeOfNested(additionalProperties, options),
    items: items === undefined ? undefined : () => nodeOfNested(items, options),
    options,
  };
}
