import type { JsonValue } from '@wheelhouse/machinery';

/**
 * A structural schema of a built-in kind (from the generated table of facts) or of a custom kind
 * (from `openAPIV3Schema`). Schemas are immutable and may be cyclic through `resolve`.
 */
export interface Schema {
  /**
   * Undefined with `intOrString` means an integer or a string; alone, any value (only with
   * `preserveUnknownFields`, or in embedded raw JSON).
   */
  readonly type?: 'object' | 'array' | 'string' | 'integer' | 'number' | 'boolean';
  /** Set on a reference to a schema that is built later or is recursive. Use `resolved()`. */
  readonly resolve?: () => Schema;

  /** Named members in declaration order, which is the encoding order of built-in kinds. */
  readonly properties?: ReadonlyMap<string, Property>;
  readonly required?: readonly string[];
  /** Schema of the values of a map. Never set together with `properties`. */
  readonly additionalProperties?: Schema;
  readonly items?: Schema;

  readonly nullable?: boolean;
  readonly default?: JsonValue;
  readonly intOrString?: boolean;
  readonly preserveUnknownFields?: boolean;
  /**
   * A complete object with its own apiVersion, kind, and metadata
   * (`x-kubernetes-embedded-resource`).
   */
  readonly embeddedResource?: boolean;

  /** For lists; atomic if absent. */
  readonly listType?: 'atomic' | 'set' | 'map';
  readonly listMapKeys?: readonly string[];
  /** For objects and maps (`structType` and `mapType`); granular if absent. */
  readonly mapType?: 'atomic' | 'granular';

  /** For strategic merge; only for built-in kinds. */
  readonly patchStrategies?: readonly ('merge' | 'replace' | 'retainKeys')[];
  readonly patchMergeKey?: string;

  /**
   * `int32`, `int64`, `float`, `double`, `byte`, `date-time`, `micro-time`, `quantity`,
   * `duration`, …
   */
  readonly format?: string;
  readonly validation?: ValueValidation;
  readonly title?: string;
  readonly description?: string;
  /** CEL rules (`x-kubernetes-validations`). */
  readonly rules?: readonly CelRule[];

  /** Set on schemas of built-in Go types; determines how a decoder treats zero values. */
  readonly typed?: boolean;
  /**
   * Set if JSON has one of several types (a schema or a boolean, in a CustomResourceDefinition).
   * Such a value is otherwise opaque and atomic.
   */
  readonly alternatives?: Alternatives;
  /** Name of the built-in type (`io.k8s.api.core.v1.Pod` without vendor: `core.v1.Pod`). */
  readonly typeName?: string;
  /** Go's name of the type if it cannot be derived: `v1.RestartPolicy`. */
  readonly goName?: string;
}

/** The types that a value may have, and the schemas of an object or of list items. */
export interface Alternatives {
  readonly object?: Schema;
  readonly list?: Schema;
  readonly boolean?: true;
  /** Go's message for a value with none of these types; without it, such a value becomes null. */
  readonly otherwise?: string;
}

/** The schema of arbitrary values: `additionalProperties: true`. Compared by identity. */
export const anySchema: Schema = Object.freeze({});

/** The schema of forbidden members: `additionalProperties: false`. Compared by identity. */
export const noSchema: Schema = Object.freeze({});

/** Whether a schema is one of the two boolean schemas, which have no structure. */
export function isBooleanSchema(schema: Schema): boolean {
  return schema === anySchema || schema === noSchema;
}

/** A named member of an object. */
export interface Property {
  readonly schema: Schema;
  /** Protobuf field number; built-in kinds only. */
  readonly number?: number;
  /**
   * Set for a member of an embedded struct, which JSON inlines and protobuf nests: the field
   * numbers of the nested messages, outermost first. `number` is in the innermost.
   */
  readonly inlineIn?: readonly number[];
  /** Whether the encoding omits a zero value; only for built-in kinds. */
  readonly omitEmpty?: boolean;
  /** Whether absent differs from zero; only for built-in kinds. */
  readonly pointer?: boolean;
  /** Whether kube-apiserver's type is no pointer, although the specification needs `pointer`. */
  readonly isPlainUpstream?: boolean;
}

/** Value validations: the OpenAPI keywords that constrain a value without defining structure. */
export interface ValueValidation {
  readonly enum?: readonly JsonValue[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly exclusiveMinimum?: boolean;
  readonly exclusiveMaximum?: boolean;
  readonly multipleOf?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly pattern?: string;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly uniqueItems?: boolean;
  readonly minProperties?: number;
  readonly maxProperties?: number;
  readonly format?: string;
  readonly allOf?: readonly NestedValidation[];
  readonly anyOf?: readonly NestedValidation[];
  readonly oneOf?: readonly NestedValidation[];
  readonly not?: NestedValidation;
}

/**
 * Validations inside allOf, anyOf, oneOf, and not, which constrain values but define no structure.
 */
export interface NestedValidation extends ValueValidation {
  readonly type?: Schema['type'];
  readonly required?: readonly string[];
  readonly properties?: ReadonlyMap<string, NestedValidation>;
  readonly additionalProperties?: NestedValidation;
  /**
   * Whether `additionalProperties` is false. Only objects are validated against it: kube-apiserver
   * omits it for defaults and in OpenAPI documents.
   */
  readonly closed?: boolean;
  readonly items?: NestedValidation;
  readonly nullable?: boolean;
  /** Only allowed in the int-or-string pattern, where it widens `type`. */
  readonly intOrString?: boolean;
}

/** A CEL rule of `x-kubernetes-validations`. */
export interface CelRule {
  readonly rule: string;
  readonly message?: string;
  readonly messageExpression?: string;
  readonly reason?: string;
  readonly fieldPath?: string;
  readonly optionalOldSelf?: boolean;
}

/** Follows the references of a schema to one without a reference. */
export function resolved(schema: Schema): Schema {
  let at = schema;
  while (at.resolve !== undefined) at = at.resolve();
  return at;
}
